"""The worlds: what is planted, and which verdict on each copy would be true."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from disc_files import FRAGMENTED
from plant import Caps, Plant, Spinning
from platter import Disc

MB = 10**6
M100, M200, G1 = 100 * MB, 200 * MB, 1000 * MB
SLOW_SECONDS = 150
"""Budget of worlds in which a copy takes 10 s, or stalls for 3."""
Triple = tuple[str, str | None, str]
"""Component, side, cause, as in the report."""
COPIES = ("pull.cached", "pull.uncached", "push.cached", "push.uncached")

LINK: Triple = ("network", "path", "link-rate")
ROUND_TRIPS: Triple = ("smb", "server", "round-trips")
BUSY_LINK: Triple = ("network", "path", "contention")
LOSS: Triple = ("network", "path", "loss")
HOLE: Triple = ("network", "path", "mtu")


@dataclass(frozen=True)
class Expected:
    """The truth of one copy."""

    copy: str
    right: frozenset[Triple]
    """Verdicts that are true, the side and the cause included."""
    touched: bool
    """Whether the plant caps this copy: here "I do not know" is a miss."""


@dataclass(frozen=True)
class LabWorld:
    """One world and its truth."""

    name: str
    planted: str
    plant: Plant
    expected: tuple[Expected, ...]
    least_budget_seconds: int = 0
    """What its copies need, which are slow or stall."""
    size_bytes: int | None = None
    """Of the files; None: what the product chooses."""
    file: str | None = None
    """A user's own file on the share, which the product is pointed at."""

    def slowest_bytes_per_second(self) -> float | None:
        """Lowest planted rate; None: nothing is planted that has one."""
        rates: list[float | None] = [
            rate
            for caps in (self.plant.client, self.plant.server)
            for rate in (caps.disk_read_bytes_per_second, caps.disk_write_bytes_per_second)
        ]
        rates += [self.plant.payload_bytes_per_second(verb) for verb in ("push", "pull")]
        spinning = (self.plant.client.spinning, self.plant.server.spinning)
        rates += [each.disc.bytes_per_second(each.room[1]) for each in spinning if each]
        return min((rate for rate in rates if rate is not None), default=None)


def _cpu(side: str, *causes: str) -> set[Triple]:
    return {("cpu", side, cause) for cause in causes}


def _world(
    name: str,
    planted: str,
    client: Caps,
    server: Caps,
    touched: dict[str, set[Triple]],
    others: set[Triple],
    round_trip_seconds: float | None = None,
    samba_options: tuple[str, ...] = (),
    least_budget_seconds: int = 0,
    size_bytes: int | None = None,
    file: str | None = None,
    **path: Any,
) -> LabWorld:
    """path: what else Plant knows of a path with a round trip."""
    copies = (*COPIES, *(copy for copy in touched if copy not in COPIES))
    expected = tuple(
        Expected(copy, frozenset(touched.get(copy, others)), copy in touched) for copy in copies
    )
    plant = Plant(client, server, round_trip_seconds, samba_options, **path)
    return LabWorld(name, planted, plant, expected, least_budget_seconds, size_bytes, file)


def _caps(**caps: Any) -> Caps:
    return Caps(**{"sends_bits_per_second": G1, **caps})


def _tcp(side: str, cause: str) -> set[Triple]:
    return {("tcp", side, cause)}


def _wan(control: str = "cubic", /, bits_per_second: int = M100, **sysctls: str) -> Caps:
    """A host on a path with a delay, with a usual congestion control."""
    names = {"rmem": "net.ipv4.tcp_rmem", "wmem": "net.ipv4.tcp_wmem", "probing": _PROBING}
    told = tuple((names[name], value) for name, value in sysctls.items())
    return Caps(sends_bits_per_second=bits_per_second, sysctls=told, congestion_control=control)


_PROBING = "net.ipv4.tcp_mtu_probing"
_SMALL_RECEIVE, _SMALL_SEND = "4096 65536 131072", "4096 16384 65536"
_ORDINARY: dict[str, Any] = {"mtu_bytes": 1500, "queue_bytes": 250_000}
"""A path of ordinary frames, with a queue of 20 ms at 100 Mbit/s."""


_BUSY = _cpu("client", "one-core", "all-cores") | _cpu("server", "one-core", "all-cores")
"""With one core a host, a copy at 1 Gbit/s may also be capped by that core."""
_GIGABIT = {LINK} | _BUSY
_MACHINE = _BUSY | {
    ("disk", side, cause) for side in ("client", "server") for cause in ("read", "write")
}
_PULLS, _PUSHES = COPIES[:2], COPIES[2:]

_DISC = Disc(outer_bytes_per_second=60 * MB, inner_bytes_per_second=30 * MB)
_SLOW_TO_FLUSH = replace(_DISC, flush_seconds=0.03)


def _disc(disc: Disc = _DISC, **more: Any) -> Caps:
    """A host whose disk is a spinning disc, with room at the outer edge alone if not told."""
    return _caps(spinning=Spinning(disc, **more))


def _disk(*causes: str) -> set[Triple]:
    return {("disk", "server", cause) for cause in causes}


_ALL = (
    _world(
        "link-100",
        "link 100 Mbit/s",
        _caps(sends_bits_per_second=M100),
        _caps(sends_bits_per_second=M100),
        {c: {LINK} for c in COPIES},
        set(),
    ),
    _world("link-1000", "link 1 Gbit/s", _caps(), _caps(), {c: {LINK} for c in COPIES}, set()),
    _world(
        "link-1000-100",
        "1 Gbit/s out, 100 Mbit/s back",
        _caps(),
        _caps(sends_bits_per_second=M100),
        {c: {LINK} for c in COPIES},
        set(),
    ),
    _world(
        "server-read",
        "server disk reads 25 MB/s",
        _caps(),
        _caps(disk_read_bytes_per_second=25 * MB),
        {"pull.uncached": {("disk", "server", "read")}},
        _GIGABIT,
    ),
    _world(
        "server-write",
        "server disk writes 18 MB/s",
        _caps(),
        _caps(disk_write_bytes_per_second=18 * MB),
        {c: {("disk", "server", "write")} for c in _PUSHES},
        _GIGABIT,
    ),
    _world(
        "client-write",
        "client disk writes 22 MB/s",
        _caps(disk_write_bytes_per_second=22 * MB),
        _caps(),
        {c: {("disk", "client", "write")} for c in _PULLS},
        _GIGABIT,
    ),
    _world(
        "client-read",
        "client disk reads 28 MB/s",
        _caps(disk_read_bytes_per_second=28 * MB),
        _caps(),
        {"push.uncached": {("disk", "client", "read")}},
        _GIGABIT,
    ),
    _world(
        "server-quota",
        "server CPU quota 8 %",
        _caps(),
        _caps(quota_ratio=0.08),
        {c: _cpu("server", "quota") for c in COPIES},
        set(),
    ),
    _world(
        "client-quota",
        "client CPU quota 15 %",
        _caps(quota_ratio=0.15),
        _caps(),
        {c: _cpu("client", "quota") for c in COPIES},
        set(),
    ),
    _world(
        "server-quota-4",
        "server CPU quota 4 %",
        _caps(),
        _caps(quota_ratio=0.04),
        {c: _cpu("server", "quota") for c in COPIES},
        set(),
    ),
    _world(
        "client-quota-8",
        "client CPU quota 8 %",
        _caps(quota_ratio=0.08),
        _caps(),
        {c: _cpu("client", "quota") for c in COPIES},
        set(),
    ),
    _world("nothing", "nothing", Caps(), Caps(), {}, _MACHINE),
    _world(
        "rtt-10",
        "10 ms RTT, link 1 Gbit/s, good windows",
        _caps(),
        _caps(),
        {c: {LINK} for c in COPIES},
        set(),
        round_trip_seconds=0.01,
    ),
    _world(
        "rtt-10-credits",
        "10 ms RTT, the server grants 8 credits",
        _caps(),
        _caps(),
        {c: {ROUND_TRIPS} for c in COPIES},
        set(),
        round_trip_seconds=0.01,
        samba_options=("server min protocol = SMB2", "smb2 max credits = 8"),
    ),
    _world(
        "rwnd-client",
        "16 ms RTT, the client's receive buffer ends at 128 KiB",
        _wan(rmem=_SMALL_RECEIVE),
        _wan(),
        {c: _tcp("client", "receive-window") for c in _PULLS},
        {LINK},
        round_trip_seconds=0.016,
        **_ORDINARY,
    ),
    _world(
        "rwnd-server",
        "16 ms RTT, the server's receive buffer ends at 128 KiB",
        _wan(),
        _wan(rmem=_SMALL_RECEIVE),
        {c: _tcp("server", "receive-window") for c in _PUSHES},
        {LINK},
        round_trip_seconds=0.016,
        **_ORDINARY,
    ),
    _world(
        "sndbuf-server",
        "16 ms RTT, the server's send buffer ends at 64 KiB",
        _wan(),
        _wan(wmem=_SMALL_SEND),
        {c: _tcp("server", "send-buffer") for c in _PULLS},
        {LINK},
        round_trip_seconds=0.016,
        **_ORDINARY,
    ),
    _world(
        "sndbuf-client",
        "16 ms RTT, the client's send buffer ends at 64 KiB",
        _wan(wmem=_SMALL_SEND),
        _wan(),
        {c: _tcp("client", "send-buffer") for c in _PUSHES},
        {LINK},
        round_trip_seconds=0.016,
        **_ORDINARY,
    ),
    _world(
        "samba-sockopts",
        "4 ms RTT, SO_RCVBUF=8192 SO_SNDBUF=8192 in smb.conf",
        _wan(bits_per_second=M200),
        _wan(bits_per_second=M200),
        {
            **{c: _tcp("server", "send-buffer") for c in _PULLS},
            **{c: _tcp("server", "receive-window") for c in _PUSHES},
        },
        set(),
        round_trip_seconds=0.004,
        samba_options=("socket options = SO_RCVBUF=8192 SO_SNDBUF=8192",),
        least_budget_seconds=90,
        size_bytes=12 << 20,
        **_ORDINARY,
    ),
    _world(
        "loss-1",
        "20 ms RTT, 1 % of the packets lost, reno",
        _wan("reno"),
        _wan("reno"),
        {c: {LOSS} for c in COPIES},
        set(),
        round_trip_seconds=0.02,
        least_budget_seconds=SLOW_SECONDS,
        size_bytes=6 << 20,
        loss_ratio=0.01,
        **_ORDINARY,
    ),
    _world(
        "wan-40",
        "40 ms RTT, 200 Mbit/s, good windows",
        _wan(bits_per_second=M200),
        _wan(bits_per_second=M200),
        {},
        {LINK, ("smb", "path", "round-trips")},
        round_trip_seconds=0.04,
        mtu_bytes=9000,
        queue_bytes=1_000_000,
    ),
    _world(
        "mtu-hole",
        "10 ms RTT, IP packets above 1400 bytes vanish, hosts that probe for it",
        _wan(probing="1"),
        _wan(probing="1"),
        {c: {HOLE} for c in COPIES},
        set(),
        round_trip_seconds=0.01,
        least_budget_seconds=SLOW_SECONDS,
        size_bytes=16 << 20,
        largest_bytes=1400,
        **_ORDINARY,
    ),
    _world(
        "busy-link",
        "100 Mbit/s back, 50 of them somebody else's",
        _caps(),
        _caps(sends_bits_per_second=M100, foreign_bits_per_second=50 * MB),
        {c: {BUSY_LINK} for c in _PULLS},
        _GIGABIT,
    ),
    _world(
        "busy-server",
        "no link, a neighbour takes 75 % of the server's core",
        Caps(),
        Caps(hog_share_ratio=0.75),
        {c: _cpu("server", "contention") for c in COPIES},
        set(),
    ),
    _world(
        "disc-outer",
        "the server's disc turns: 60 MB/s outside, 30 inside; files outside",
        _caps(),
        _disc(),
        {"pull.uncached": _disk("read"), **{c: _disk("write") for c in _PUSHES}},
        _GIGABIT,
    ),
    _world(
        "disc-inner",
        "the same disc with room at its inner end alone",
        _caps(),
        _disc(room=(0.8, 1.0)),
        {"pull.uncached": _disk("zone"), **{c: _disk("write", "zone") for c in _PUSHES}},
        _GIGABIT,
    ),
    _world(
        "disc-fragments",
        "the same disc, a user's file in 500 fragments",
        _caps(),
        _disc(fragments=True),
        {
            "file.pull.uncached": _disk("seek"),
            "pull.uncached": _disk("read"),
            **{c: _disk("write") for c in _PUSHES},
        },
        _GIGABIT,
        least_budget_seconds=90,
        file=FRAGMENTED,
    ),
    _world(
        "disc-sync",
        "the same disc, sync always = yes, a flush takes 30 ms",
        _caps(),
        _disc(_SLOW_TO_FLUSH),
        {"pull.uncached": _disk("read"), **{c: _disk("sync") for c in _PUSHES}},
        _GIGABIT,
        samba_options=("sync always = yes",),
    ),
    _world(
        "disc-busy",
        "the same disc, somebody else reads it from end to end",
        _caps(),
        _disc(foreign=True),
        {c: _disk("contention") for c in ("pull.uncached", *_PUSHES)},
        _GIGABIT,
    ),
)
WORLDS = {each.name: each for each in _ALL}
