"""The knee of a series of rates: found where it was planted, not found in noise."""

import random

import pytest

from probes.storage import sustained

MIB = 1 << 20


def series(*parts, seed=1, noise=0.1):
    """Windows of 0.1 s: (number, bytes per second) each, with Gaussian noise."""
    chance = random.Random(seed)
    return [
        (0.1, max(0, round(0.1 * rate * chance.gauss(1, noise))))
        for number, rate in parts
        for _ in range(number)
    ]


def test_a_cache_that_fills_up_is_a_knee_at_its_size():
    windows = series((20, 1000 * MIB), (30, 100 * MIB))
    found = sustained.find(windows)
    assert found.at_bytes == sum(size for _, size in windows[:20])
    assert found.before_bytes_per_second == pytest.approx(1000 * MIB, rel=0.1)
    assert found.after_bytes_per_second == pytest.approx(100 * MIB, rel=0.1)


def test_a_writer_that_is_stopped_and_let_go_again_has_a_knee():
    """Past the limit of dirty memory the kernel lets writers wait for 0.2 s at a time."""
    waits = [(0.2, 8 * MIB), (0.1, 40 * MIB), (0.1, 2 * MIB)] * 8
    found = sustained.find([*series((15, 1500 * MIB)), *waits])
    assert found.after_bytes_per_second == pytest.approx(8 * 50 * MIB / 3.2, rel=0.2)


@pytest.mark.parametrize("seed", range(40))
def test_noise_has_no_knee(seed):
    assert sustained.find(series((50, 100 * MIB), seed=seed, noise=0.4)) is None


def test_what_becomes_faster_or_a_little_slower_has_no_knee():
    assert sustained.find(series((20, 100 * MIB), (30, 1000 * MIB), noise=0.02)) is None
    assert sustained.find(series((20, 100 * MIB), (30, 80 * MIB), noise=0.02)) is None


def test_a_hiccup_and_too_few_windows_have_no_knee():
    assert sustained.find(series((40, 100 * MIB), (2, MIB), noise=0.05)) is None
    assert sustained.find(series((3, 1000 * MIB), (3, MIB))) is None
    assert sustained.find([]) is None
    assert sustained.find([(0.0, MIB)] * 20) is None
