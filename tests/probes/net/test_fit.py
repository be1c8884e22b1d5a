"""The line through messages' times: right where they lie on one, refused where they do not."""

from __future__ import annotations

import pytest

from probes.net.fit import fit, line

SIZES = (1, 10, 100, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
MB = 1e6


def times(latency, bandwidth, sizes=SIZES, extra=lambda size: 0.0):
    return [(size, latency + size / bandwidth + extra(size)) for size in sizes]


@pytest.mark.parametrize("segment_bytes", [0, 1448])
@pytest.mark.parametrize(("latency", "bandwidth"), [(0.0003, 117 * MB), (0.04, 12 * MB)])
def test_times_on_a_line_give_that_line(latency, bandwidth, segment_bytes):
    sizes = (*SIZES, 10_000_000)
    line = fit(times(latency, bandwidth, sizes), segment_bytes)
    assert line["latency_seconds"] == pytest.approx(latency)
    assert line["bandwidth_bytes_per_second"] == pytest.approx(bandwidth)
    assert line["n_half_bytes"] == pytest.approx(latency * bandwidth)
    assert line["worst_residual_ratio"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("switches", [-1, 1, 2])
def test_what_the_first_segment_takes_besides_is_no_part_of_either(switches):
    """Switches that take it in whole first; or a shaper that lets it pass (-1)."""
    latency, bandwidth, segment = 0.0003, 11.8 * MB, 1448
    points = times(latency, bandwidth, extra=lambda n: switches * min(n, segment) / bandwidth)
    fitted = fit(points, segment)
    assert fitted["latency_seconds"] == pytest.approx(latency)
    assert fitted["bandwidth_bytes_per_second"] == pytest.approx(bandwidth)
    blind = line(points)
    assert blind["bandwidth_bytes_per_second"] != pytest.approx(bandwidth, rel=0.02)


def test_a_long_message_that_is_a_little_off_moves_the_latency_hardly():
    points = times(0.001, 12 * MB)
    points[-1] = (points[-1][0], 1.02 * points[-1][1])
    assert fit(points)["latency_seconds"] == pytest.approx(0.001, rel=0.02)


def test_times_that_are_far_off_the_line_are_refused_with_how_far():
    points = times(0.001, 12 * MB)
    points[4] = (points[4][0], 2 * points[4][1])
    fitted = fit(points)
    assert fitted["refused"] == "the times do not fit a straight line"
    assert fitted["worst_residual_ratio"] > 0.15
    assert "latency_seconds" not in fitted
    assert line(points) is not None  # for those who want to see it


FLAT = [(size, 0.001) for size in (1, 10, 100, 1000)]


@pytest.mark.parametrize(
    ("points", "why"),
    [
        (times(0.04, 100 * MB), "long enough"),
        (times(0.001, 12 * MB, (1, 1000, 1_000_000)), "only 3 sizes of messages could be timed"),
        (FLAT, "did not take longer"),
        ([(size, 0.001 - size * 1e-7) for size, _ in FLAT], "did not take longer"),
    ],
)
def test_what_shows_no_bandwidth_is_refused(points, why):
    line = fit(points)
    assert why in line["refused"] and "bandwidth_bytes_per_second" not in line


@pytest.mark.parametrize("points", [[], [(1, 0.001)], [(1, 0.0), (2, 0.0)]], ids=len)
def test_too_few_times_have_no_line(points):
    assert line(points) is None


def burst(size, latency=0.0003, first=117 * MB, rate=24 * MB, burst_bytes=32768):
    """Returns the seconds of a size through a shaper that lets a burst pass before its rate."""
    return latency + min(size, burst_bytes) / first + max(0, size - burst_bytes) / rate


def test_a_path_with_two_regimes_has_a_line_for_each():
    line = fit([(size, burst(size)) for size in SIZES], 1448)
    short, long = line["pieces"]
    assert line["latency_seconds"] == pytest.approx(0.0003)
    assert line["bandwidth_bytes_per_second"] == pytest.approx(24 * MB)
    assert short["to_bytes"] == 30_000
    assert short["bandwidth_bytes_per_second"] == pytest.approx(117 * MB)
    assert long["seconds"] == pytest.approx(burst(0) + 32768 / (117 * MB) - 32768 / (24 * MB))
    half = line["n_half_bytes"]
    assert half / burst(half) == pytest.approx(12 * MB)


@pytest.mark.parametrize("rate", [24 * MB, 1000 * MB])
def test_half_of_a_slower_or_a_faster_long_line_is_reached_where_it_says(rate):
    line = fit([(n, 0.001 if n < 10_000 else 0.04 + n / rate) for n in (*SIZES, 10**8)])
    assert line["pieces"][0]["to_bytes"] == 3000
    assert line["n_half_bytes"] == pytest.approx(0.04 * rate)


def test_a_time_that_is_far_off_two_lines_as_well_is_refused():
    points = [(size, burst(size) * (2 if size == 100 else 1)) for size in SIZES]
    assert "pieces" not in fit(points) and "refused" in fit(points)
