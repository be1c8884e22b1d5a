"""min(ceiling, in flight / RTT) fitted to planted points: what was planted comes back."""

from __future__ import annotations

import random

import pytest

from probes.smb_matrix import Fit, fit

FLIGHTS = [size * depth for size in (1 << 16, 1 << 20, 1 << 22) for depth in (1, 2, 4, 8, 16)]


def planted(ceiling: float, rtt: float, noise: float = 0.0) -> list[tuple[float, float]]:
    dice = random.Random(7)
    return [
        (flight, min(ceiling, flight / rtt) * (1 + dice.uniform(-noise, noise)))
        for flight in FLIGHTS
    ]


@pytest.mark.parametrize(
    ("ceiling", "rtt"),
    [(1.18e7, 0.01), (1.18e7, 0.04)]
    + [(rate, rtt) for rate in (1.18e8, 1.18e9) for rtt in (0.002, 0.01, 0.04)],
)
@pytest.mark.parametrize("noise", [0.0, 0.04])
def test_a_planted_ceiling_and_rtt_are_found_within_5_percent(
    ceiling: float, rtt: float, noise: float
) -> None:
    found = fit(planted(ceiling, rtt, noise))
    assert found.ceiling_bytes_per_second == pytest.approx(ceiling, rel=0.05)
    assert found.rtt_seconds == pytest.approx(rtt, rel=0.05)
    assert found.worst_residual_ratio is not None
    assert found.worst_residual_ratio <= 2.5 * noise + 1e-9


def test_without_a_ceiling_in_reach_none_is_claimed() -> None:
    found = fit(planted(1e12, 0.01, 0.03))
    assert found.ceiling_bytes_per_second is None
    assert found.rtt_seconds == pytest.approx(0.01, rel=0.05)
    assert found.rate(1 << 20) == pytest.approx((1 << 20) / 0.01, rel=0.05)


def test_where_nothing_waits_for_round_trips_no_rtt_is_claimed() -> None:
    found = fit(planted(1e7, 1e-6, 0.03))
    assert found.rtt_seconds is None
    assert found.ceiling_bytes_per_second == pytest.approx(1e7, rel=0.05)
    assert found.rate(1) == found.rate(1 << 30) == found.ceiling_bytes_per_second


def test_the_order_of_the_points_does_not_matter() -> None:
    points = planted(1e8, 0.01, 0.05)
    assert fit(points) == fit(points[::-1])


@pytest.mark.parametrize("points", [[], [(65536, 1e6)], [(65536, 1e6), (65536, 1.1e6)]], ids=len)
def test_one_number_of_bytes_in_flight_tells_nothing(points: list[tuple[float, float]]) -> None:
    assert fit(points) == Fit(None, None, None)
    with pytest.raises(ValueError, match="empty"):
        fit(points).rate(1)


def test_the_worst_point_is_told() -> None:
    points = planted(1e8, 0.01)
    points[3] = (points[3][0], points[3][1] * 0.5)
    told = fit(points).worst_residual_ratio
    assert told is not None and 0.4 < told < 0.6
