"""Which windows and streams are tried: enough to see where the surface is flat, and no more."""

import pytest

from probes.net.windows import (
    AUTOTUNED,
    LARGEST_BYTES,
    following,
    knee,
    smallest_buffer,
    windows_for,
)

KIB, MIB = 1 << 10, 1 << 20
WINDOWS = (AUTOTUNED, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
STREAMS = (1, 2, 4, 8)


def surveyed(rate, granted=lambda window: 2 * window, windows=WINDOWS):
    """Every cell that is asked for, in order, of a path with those rates."""
    cells = {}
    while (place := following(windows, STREAMS, cells)) is not None:
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
    tried = list(surveyed(path(118e6, 0.02)))
    assert tried[: len(WINDOWS)] == [(window, 1) for window in WINDOWS]


def test_more_streams_are_tried_where_the_best_is_near_before_where_it_is_far():
    tried = list(surveyed(path(118e6, 0.02)))
    assert tried.index((256 * KIB, 8)) < tried.index((256 * KIB, 2))
    assert tried.index((256 * KIB, 8)) < tried.index((16 * KIB, 8))
    assert tried.index((MIB, 2)) < tried.index((64 * KIB, 2))


def test_a_path_that_carries_nothing_is_no_error():
    assert surveyed(lambda window, streams: 0.0)


def test_a_surface_that_keeps_rising_is_seen_whole():
    cells = surveyed(path(1e12, 0.1))
    assert set(cells) == {(window, streams) for window in WINDOWS for streams in STREAMS}


def test_a_row_that_is_flat_twice_ends():
    cells = surveyed(path(118e6, 0.001, 118e3))
    assert (AUTOTUNED, 4) in cells
    assert (AUTOTUNED, 8) not in cells


def test_the_rows_end_after_two_that_one_stream_fills():
    cells = surveyed(path(118e6, 0.001))
    assert (256 * KIB, 1) in cells
    assert (MIB, 1) in cells
    assert (4 * MIB, 1) not in cells


def test_windows_that_the_system_does_not_grant_are_not_tried_twice():
    most = 212_992
    cells = surveyed(path(1e9, 0.1, most), lambda window: 2 * min(window or MIB, most))
    assert (256 * KIB, 8) in cells
    assert (MIB, 1) in cells
    assert (4 * MIB, 1) not in cells


def test_the_knee_is_the_cheapest_cell_that_reaches_95_percent():
    cells = surveyed(path(50e6, 0.01))
    assert knee(cells.values()) == {"window_bytes": 256 * KIB, "streams": 2}
    assert knee(reversed(list(cells.values()))) == {"window_bytes": 256 * KIB, "streams": 2}


def test_of_two_that_cost_the_same_the_knee_has_fewer_streams():
    cells = surveyed(path(100e6, 0.01))
    assert cells[256 * KIB, 4]["bytes_per_second"] == cells[MIB, 1]["bytes_per_second"]
    assert knee(cells.values()) == {"window_bytes": MIB, "streams": 1}


def test_a_knee_that_only_autotuning_reaches_is_autotuned():
    cells = surveyed(path(100e6, 0.01), windows=(AUTOTUNED, 16 * KIB))
    assert knee(cells.values()) == {"window_bytes": AUTOTUNED, "streams": 1}


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
    while (place := following(windows, streams, cells, broken)) is not None:
        order.append(place)
        cells[place] = {"bytes_per_second": 1e6 * place[1]}
    assert order == [(16 << 10, 1), (16 << 10, 2), (AUTOTUNED, 2)]
    assert following(windows, streams, {}, {(AUTOTUNED, 1), (16 << 10, 1)}) is None


KNEE_KIB = 1 << 10


def points(rates, spread=0.0):
    return [
        {
            "buffer_bytes": size,
            "bytes_per_second": rate,
            "high_bytes_per_second": rate * (1 + spread),
        }
        for size, rate in rates.items()
    ]


SEED = {
    8 * KNEE_KIB: 34.12e6,
    16 * KNEE_KIB: 64e6,
    32 * KNEE_KIB: 93.16e6,
    64 * KNEE_KIB: 105e6,
    128 * KNEE_KIB: 103.73e6,
}


def test_it_is_the_first_that_reaches_95_percent_of_the_best():
    assert smallest_buffer(points(SEED)) == 64 * KNEE_KIB
    assert (
        smallest_buffer(points({4 * KNEE_KIB: 94.9, 8 * KNEE_KIB: 95.0, 16 * KNEE_KIB: 100.0}))
        == 8 * KNEE_KIB
    )


@pytest.mark.parametrize(
    ("rate", "found"), [(94.0, 4 * KNEE_KIB), (91.0, 4 * KNEE_KIB), (89.0, 8 * KNEE_KIB)]
)
def test_one_whose_fastest_pass_reaches_it_is_enough_if_it_is_not_far_below(rate, found):
    assert smallest_buffer(points({4 * KNEE_KIB: rate, 8 * KNEE_KIB: 100.0}, spread=0.07)) == found


@pytest.mark.parametrize(
    ("again", "found"), [(None, 8 * KNEE_KIB), (100.0, 4 * KNEE_KIB), (1.0, 4 * KNEE_KIB)]
)
def test_a_best_that_was_luck_is_not_what_the_others_have_to_reach(again, found):
    assert (
        smallest_buffer(
            points({2 * KNEE_KIB: 70.0, 4 * KNEE_KIB: 97.0, 8 * KNEE_KIB: 120.0}), again
        )
        == found
    )
