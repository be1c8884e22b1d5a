"""Lost, late and duplicate datagrams, counted from their numbers alone."""

import random

import pytest

from probes.net.datagrams import MOST_DATAGRAMS, Tally, account

MILLISECOND = 1_000_000


def tally_of(numbers, limit=100):
    """Returns the tally of datagrams in order of arrival, sent and received 1 ms apart."""
    tally = Tally(limit)
    for millisecond, number in enumerate(numbers):
        tally.take(number, number * MILLISECOND, millisecond * MILLISECOND)
    return tally


def test_any_order_comes_to_what_the_definitions_say():
    draw = random.Random(4)
    for _ in range(50):
        sent = draw.randrange(1, 60)
        numbers = [draw.randrange(sent) for _ in range(draw.randrange(1, 90))]
        figures = account(tally_of(numbers), sent, 0)
        first = [n for index, n in enumerate(numbers) if n not in numbers[:index]]
        late = [n for index, n in enumerate(first) if any(m > n for m in first[:index])]
        gaps = "".join("-" if n in first else "x" for n in range(sent)).split("-")
        assert figures["received_datagrams"] == len(first)
        assert figures["duplicate_datagrams"] == len(numbers) - len(first)
        assert figures["lost_datagrams"] == sent - len(first)
        assert figures["reordered_datagrams"] == len(late)
        assert figures["reordered_ratio"] == pytest.approx(len(late) / len(first))
        assert figures["longest_gap_datagrams"] == max(map(len, gaps))


def test_what_the_receivers_own_socket_dropped_is_not_the_paths_loss():
    tally = tally_of([0, 1, 5, 6, 9])
    figures = account(tally, 10, 3)
    assert figures["receiver_dropped_datagrams"] == 3
    assert figures["lost_datagrams"] == 2
    assert figures["loss_ratio"] == pytest.approx(0.2)
    assert "longest_gap_datagrams" not in figures
    assert account(tally, 10, 8)["lost_datagrams"] == 0
    unknown = account(tally, 10, None)
    assert "receiver_dropped_datagrams" not in unknown and unknown["lost_datagrams"] == 5


def test_a_number_beyond_the_plan_is_none_of_the_run():
    tally = tally_of([0, 1, 7], limit=5)
    assert (tally.unique, tally.expected) == (2, 2)


def test_jitter_is_rfc_3550s_sixteenth_and_blind_to_the_clocks_offset():
    tally = Tally(3)
    for number, arrived in enumerate((10**15, 10**15 + MILLISECOND, 10**15 + 18 * MILLISECOND)):
        tally.take(number, number * MILLISECOND, arrived)
    assert tally.jitter_seconds == pytest.approx(0.016 / 16)


@pytest.mark.parametrize("limit", [0, -1, MOST_DATAGRAMS + 1])
def test_the_account_is_bounded(limit):
    with pytest.raises(ValueError, match="no such number"):
        Tally(limit)
