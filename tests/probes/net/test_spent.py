"""A transfer of which only the end is wanted is run to its end."""

import pytest

from probes.net.spent import spent


def counting(seen, broken=False):
    for number in range(3):
        seen.append(number)
        yield number
    if broken:
        raise RuntimeError("broke")
    return "told"


def test_it_is_run_to_its_end_and_its_result_is_given():
    seen = []
    assert spent(counting(seen)) == "told"
    assert seen == [0, 1, 2]


def test_one_that_was_begun_elsewhere_is_run_from_there():
    seen = []
    running = counting(seen)
    next(running)
    assert spent(running) == "told"


def test_what_it_raises_is_raised():
    with pytest.raises(RuntimeError, match="broke"):
        spent(counting([], broken=True))
