"""Worlds of the link: its rate, others' traffic on it, lost packets, a hole for long ones."""

from __future__ import annotations

from truth import (
    BUSY_LINK,
    COPIES,
    GIGABIT,
    HOLE,
    LINK,
    LOSS,
    MB,
    PULLS,
    PUSHES,
    WRONG_PATH,
    caps,
    planted,
)
from wan import ORDINARY, wan

M10, M50, M100, M200, M300 = (each * MB for each in (10, 50, 100, 200, 300))
SLOW_SECONDS = 150
"""Budget of worlds in which a copy takes 10 s, or stalls for 3."""
_ALL_LINK = {copy: {LINK} for copy in COPIES}
_ALL_LOSS = {copy: {LOSS} for copy in COPIES}
_ALL_HOLE = {copy: {HOLE} for copy in COPIES}
_ALL_WRONG = {copy: {WRONG_PATH} for copy in COPIES}


def _sends(client_bits: int, server_bits: int) -> dict[str, dict[str, int]]:
    sends = "sends_bits_per_second"
    return {"client": {sends: client_bits}, "server": {sends: server_bits}}


LINK_WORLDS = (
    planted(
        "link-10",
        "link 10 Mbit/s",
        caps(sends_bits_per_second=M10),
        caps(sends_bits_per_second=M10),
        _ALL_LINK,
        set(),
        # The link that the advice names: what is predicted is that one.
        lift=_sends(M100, M100),
    ),
    planted(
        "link-50",
        "link 50 Mbit/s",
        caps(sends_bits_per_second=M50),
        caps(sends_bits_per_second=M50),
        _ALL_LINK,
        set(),
    ),
    planted(
        "link-100",
        "link 100 Mbit/s",
        caps(sends_bits_per_second=M100),
        caps(sends_bits_per_second=M100),
        _ALL_LINK,
        set(),
    ),
    planted(
        "link-300",
        "link 300 Mbit/s",
        caps(sends_bits_per_second=M300),
        caps(sends_bits_per_second=M300),
        _ALL_LINK,
        set(),
    ),
    planted("link-1000", "link 1 Gbit/s", caps(), caps(), _ALL_LINK, set()),
    planted(
        "wrong-card",
        "link 100 Mbit/s, and a faster one beside it that nobody uses",
        caps(sends_bits_per_second=M100),
        caps(sends_bits_per_second=M100),
        _ALL_WRONG,
        set(),
        beside=True,
    ),
    planted(
        "overlay",
        "a tunnel of 200 Mbit/s over 2 ms, and the plain link beside it",
        caps(sends_bits_per_second=M200),
        caps(sends_bits_per_second=M200),
        _ALL_WRONG,
        set(),
        round_trip_seconds=0.002,
        beside=True,
    ),
    planted(
        "link-1000-100",
        "1 Gbit/s out, 100 Mbit/s back",
        caps(),
        caps(sends_bits_per_second=M100),
        _ALL_LINK,
        set(),
    ),
    planted(
        "link-50-300",
        "50 Mbit/s out, 300 Mbit/s back",
        caps(sends_bits_per_second=M50),
        caps(sends_bits_per_second=M300),
        _ALL_LINK,
        set(),
    ),
    planted(
        "rtt-10",
        "10 ms RTT, link 1 Gbit/s, good windows",
        caps(),
        caps(),
        _ALL_LINK,
        set(),
        round_trip_seconds=0.01,
    ),
    planted(
        "busy-link",
        "100 Mbit/s back, 50 of them somebody else's",
        caps(),
        caps(sends_bits_per_second=M100, foreign_bits_per_second=M50),
        {copy: {BUSY_LINK} for copy in PULLS},
        GIGABIT,
        lift={"server": {"foreign_bits_per_second": None}},
    ),
    planted(
        "busy-link-out",
        "200 Mbit/s out, 80 of them somebody else's",
        caps(sends_bits_per_second=M200, foreign_bits_per_second=80 * MB),
        caps(sends_bits_per_second=M200),
        {copy: {BUSY_LINK} for copy in PUSHES},
        {LINK},
        lift={"client": {"foreign_bits_per_second": None}},
    ),
    planted(
        "busy-link-most",
        "300 Mbit/s back, 200 of them somebody else's",
        caps(sends_bits_per_second=M300),
        caps(sends_bits_per_second=M300, foreign_bits_per_second=M200),
        {copy: {BUSY_LINK} for copy in PULLS},
        {LINK},
    ),
    planted(
        "loss-1",
        "20 ms RTT, 1 % of the packets lost, reno",
        wan("reno"),
        wan("reno"),
        _ALL_LOSS,
        set(),
        round_trip_seconds=0.02,
        least_budget_seconds=SLOW_SECONDS,
        size_bytes=6 << 20,
        loss_ratio=0.01,
        **ORDINARY,
    ),
    planted(
        "loss-2",
        "8 ms RTT, 2 % of the packets lost, reno",
        wan("reno"),
        wan("reno"),
        _ALL_LOSS,
        set(),
        round_trip_seconds=0.008,
        size_bytes=6 << 20,
        loss_ratio=0.02,
        **ORDINARY,
    ),
    planted(
        "loss-03",
        "10 ms RTT, 0.3 % of the packets lost, reno",
        wan("reno"),
        wan("reno"),
        _ALL_LOSS,
        set(),
        round_trip_seconds=0.01,
        loss_ratio=0.003,
        **ORDINARY,
    ),
    planted(
        "loss-cubic",
        "20 ms RTT, 0.5 % of the packets lost, CUBIC",
        wan(),
        wan(),
        _ALL_LOSS,
        set(),
        round_trip_seconds=0.02,
        size_bytes=6 << 20,
        loss_ratio=0.005,
        **ORDINARY,
    ),
    planted(
        "mtu-hole",
        "10 ms RTT, IP packets above 1400 bytes vanish, hosts that probe for it",
        wan(probing="1"),
        wan(probing="1"),
        _ALL_HOLE,
        set(),
        round_trip_seconds=0.01,
        least_budget_seconds=SLOW_SECONDS,
        size_bytes=16 << 20,
        largest_bytes=1400,
        **ORDINARY,
    ),
    planted(
        "mtu-hole-1492",
        "4 ms RTT, IP packets above 1492 bytes vanish, hosts that probe for it",
        wan(probing="1"),
        wan(probing="1"),
        _ALL_HOLE,
        set(),
        round_trip_seconds=0.004,
        least_budget_seconds=SLOW_SECONDS,
        size_bytes=16 << 20,
        largest_bytes=1492,
        **ORDINARY,
    ),
    planted(
        "mtu-hole-1280",
        "20 ms RTT, IP packets above 1280 bytes vanish, hosts that probe for it",
        wan(probing="1"),
        wan(probing="1"),
        _ALL_HOLE,
        set(),
        round_trip_seconds=0.02,
        least_budget_seconds=SLOW_SECONDS,
        size_bytes=16 << 20,
        largest_bytes=1280,
        **ORDINARY,
    ),
)
"""The payload of a copy that fills the link is told by Plant; loss by the law of Mathis et al."""
