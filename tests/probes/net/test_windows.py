"""The windows and streams to try: enough to see where the surface is flat, and no more."""

import pytest

from probes.net.windows import (
    AUTOTUNED,
    LARGEST_BYTES,
    choose_next,
    knee,
    smallest_buffer,
    windows_for,
)

KIB, MIB = 1 << 10, 1 << 20
WINDOWS = (AUTOTUNED, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
STREAMS = (1, 2, 4, 8)


def survey(rate, granted=lambda window: 2 * window, windows=WINDOWS):
    """Returns every cell that is measured, in order, on a path with those rates."""
    cells = {}
    while (place := choose_next(windows, STREAMS, cells)) is not None:
        assert place not in cells
        cells[place] = {
            "window_bytes": place[0],
            "streams": place[1],
            "bytes_per_second": rate(*place),
            "granted_bytes": granted(place[0]),
        }
    return cells


def path(bytes_per_second, rtt_seconds, autotuned=4 * MIB):
    def rate(window, streams):
        return min(bytes_per_second, streams * (window or autotuned) / rtt_seconds)

    return rate


@pytest.mark.parametrize("bdp", [0, 1e3, 35e3, 125e3, 1e6, 2.4e6, 20e6, 1e12])
def test_the_windows_reach_twice_the_product_in_few_steps(bdp):
    auto, *fixed = windows_for(bdp)
    assert auto == AUTOTUNED
    assert fixed[0] == 16 * KIB
    assert fixed == sorted(set(fixed))
    assert 3 <= len(fixed) <= 5
    assert fixed[-1] >= min(2 * bdp, LARGEST_BYTES)
    assert fixed[-1] <= max(64 * KIB, min(4 * bdp, LARGEST_BYTES))


def test_the_autotuned_window_comes_first_then_each_window_with_one_stream():
    tried = list(survey(path(118e6, 0.02)))
    assert tried[: len(WINDOWS)] == [(window, 1) for window in WINDOWS]


def test_more_streams_are_tried_where_the_best_is_near_before_where_it_is_far():
    tried = list(survey(path(118e6, 0.02)))
    assert tried.index((256 * KIB, 8)) < tried.index((256 * KIB, 2))
    assert tried.index((256 * KIB, 8)) < tried.index((16 * KIB, 8))
    assert tried.index((MIB, 2)) < tried.index((64 * KIB, 2))


def test_a_path_that_carries_nothing_is_no_error():
    assert survey(lambda window, streams: 0.0)


EVERY = {(window, streams) for window in WINDOWS for streams in STREAMS}


@pytest.mark.parametrize(
    ("rate", "tried", "left_out"),
    [
        (path(1e12, 0.1), EVERY, set()),
        # a row that is flat twice ends
        (path(118e6, 0.001, 118e3), {(AUTOTUNED, 4)}, {(AUTOTUNED, 8)}),
        # the rows end after two that one stream fills
        (path(118e6, 0.001), {(256 * KIB, 1), (MIB, 1)}, {(4 * MIB, 1)}),
    ],
    ids=["keeps rising", "flat", "one stream"],
)
def test_a_surface_is_seen_until_it_is_flat(rate, tried, left_out):
    cells = set(survey(rate))
    assert cells >= tried and not cells & left_out


def test_windows_that_the_system_does_not_grant_are_not_tried_twice():
    limit = 212_992
    cells = survey(path(1e9, 0.1, limit), lambda window: 2 * min(window or MIB, limit))
    assert (256 * KIB, 8) in cells
    assert (MIB, 1) in cells
    assert (4 * MIB, 1) not in cells


@pytest.mark.parametrize(
    ("rate", "windows", "cell"),
    [
        (path(50e6, 0.01), WINDOWS, (256 * KIB, 2)),
        # of two that cost the same it has fewer streams
        (path(100e6, 0.01), WINDOWS, (MIB, 1)),
        # one that only autotuning reaches
        (path(100e6, 0.01), (AUTOTUNED, 16 * KIB), (AUTOTUNED, 1)),
    ],
)
def test_the_knee_is_the_cheapest_cell_that_reaches_95_percent(rate, windows, cell):
    cells = list(survey(rate, windows=windows).values())
    for order in (cells, cells[::-1]):
        assert knee(order) == {"window_bytes": cell[0], "streams": cell[1]}


def test_the_knee_is_taken_from_the_bests_second_run_where_that_was_slower():
    rates = {16 * KIB: 30.0, 64 * KIB: 100.0, 256 * KIB: 108.0}
    cells = [
        {"window_bytes": window, "streams": 1, "bytes_per_second": rate}
        for window, rate in rates.items()
    ]
    assert knee(cells)["window_bytes"] == 256 * KIB
    assert knee(cells, 120.0)["window_bytes"] == 256 * KIB
    assert knee(cells, 101.0)["window_bytes"] == 64 * KIB
    assert knee(cells, 10.0)["window_bytes"] == 64 * KIB


def test_a_broken_cell_is_not_tried_again_and_its_row_comes_last():
    windows, streams = (AUTOTUNED, 16 << 10), (1, 2)
    broken, cells, order = {(AUTOTUNED, 1)}, {}, []
    while (place := choose_next(windows, streams, cells, broken)) is not None:
        order.append(place)
        cells[place] = {"bytes_per_second": 1e6 * place[1]}
    assert order == [(16 << 10, 1), (16 << 10, 2), (AUTOTUNED, 2)]
    assert choose_next(windows, streams, {}, {(AUTOTUNED, 1), (16 << 10, 1)}) is None


def points(rates, spread):
    return [
        {
            "buffer_bytes": size * KIB,
            "bytes_per_second": rate,
            "high_bytes_per_second": rate * (1 + spread),
        }
        for size, rate in rates.items()
    ]


BY_SIZE = {8: 34.12e6, 16: 64e6, 32: 93.16e6, 64: 105e6, 128: 103.73e6}


@pytest.mark.parametrize(
    ("rates", "spread", "again", "kib"),
    [
        (BY_SIZE, 0.0, None, 64),
        ({4: 94.9, 8: 95.0, 16: 100.0}, 0.0, None, 8),
        # one whose fastest pass reaches it is enough, if it is not far below
        *(({4: rate, 8: 100.0}, 0.07, None, k) for rate, k in ((94.0, 4), (91.0, 4), (89.0, 8))),
        # a best that was luck is not what the others have to reach
        *(({2: 70.0, 4: 97.0, 8: 120.0}, 0.0, a, k) for a, k in ((None, 8), (100.0, 4), (1.0, 4))),
    ],
)
def test_it_is_the_first_that_reaches_95_percent_of_the_best(rates, spread, again, kib):
    assert smallest_buffer(points(rates, spread), again) == kib * KIB
