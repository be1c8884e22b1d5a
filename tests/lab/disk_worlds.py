"""Worlds of the disks: throttled ones, and discs that turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from disc_files import FRAGMENTED
from plant import Caps, Spinning
from platter import Disc
from truth import GIGABIT, MB, PULLS, PUSHES, LabWorld, caps, planted, words

_VERBS = {
    ("server", "read"): ("pull.uncached",),
    ("server", "write"): PUSHES,
    ("client", "read"): ("push.uncached",),
    ("client", "write"): PULLS,
}
"""The copies that a disk caps."""


def _throttled(name: str, side: str, verb: str, megabytes_per_second: int) -> LabWorld:
    field = f"disk_{verb}_bytes_per_second"
    slow = caps(**{field: megabytes_per_second * MB})
    return planted(
        name,
        f"{side} disk {verb}s {megabytes_per_second} MB/s",
        slow if side == "client" else caps(),
        slow if side == "server" else caps(),
        {copy: words("disk", side, verb) for copy in _VERBS[side, verb]},
        GIGABIT,
        lift={side: {field: None}},
    )


_DISC = Disc(outer_bytes_per_second=60 * MB, inner_bytes_per_second=30 * MB)
_FAST_DISC = Disc(outer_bytes_per_second=80 * MB, inner_bytes_per_second=40 * MB)
_SLOW_TO_FLUSH = replace(_DISC, flush_seconds=0.03)


def _disc(disc: Disc = _DISC, **more: Any) -> Caps:
    """A host whose disk is a spinning disc, with room at the outer edge alone if not told."""
    return caps(spinning=Spinning(disc, **more))


def _server(*causes: str) -> set[tuple[str, str | None, str]]:
    return words("disk", "server", *causes)


DISK_WORLDS = (
    _throttled("server-read", "server", "read", 25),
    _throttled("server-read-12", "server", "read", 12),
    _throttled("server-read-60", "server", "read", 60),
    _throttled("server-write", "server", "write", 18),
    _throttled("server-write-40", "server", "write", 40),
    _throttled("server-write-60", "server", "write", 60),
    _throttled("client-write", "client", "write", 22),
    _throttled("client-write-12", "client", "write", 12),
    _throttled("client-write-60", "client", "write", 60),
    _throttled("client-read", "client", "read", 28),
    _throttled("client-read-12", "client", "read", 12),
    _throttled("client-read-60", "client", "read", 60),
)

DISC_WORLDS = (
    planted(
        "disc-outer",
        "the server's disc turns: 60 MB/s outside, 30 inside; files outside",
        caps(),
        _disc(),
        {"pull.uncached": _server("read"), **{copy: _server("write") for copy in PUSHES}},
        GIGABIT,
    ),
    planted(
        "disc-inner",
        "the same disc with room at its inner end alone",
        caps(),
        _disc(room=(0.8, 1.0)),
        {"pull.uncached": _server("zone"), **{c: _server("write", "zone") for c in PUSHES}},
        GIGABIT,
    ),
    planted(
        "disc-inner-80",
        "a disc of 80 MB/s outside, 40 inside, with room at its inner end alone",
        caps(),
        _disc(_FAST_DISC, room=(0.8, 1.0)),
        {"pull.uncached": _server("zone"), **{c: _server("write", "zone") for c in PUSHES}},
        GIGABIT,
    ),
    planted(
        "disc-inner-client",
        "the client's disc, 60 MB/s outside, 30 inside, with room at its inner end alone",
        _disc(room=(0.8, 1.0)),
        caps(),
        {
            "push.uncached": words("disk", "client", "zone"),
            **{copy: words("disk", "client", "write", "zone") for copy in PULLS},
        },
        GIGABIT,
    ),
    planted(
        "disc-fragments",
        "the same disc, a user's file in 500 fragments",
        caps(),
        _disc(fragments=True),
        {
            "file.pull.uncached": _server("seek"),
            "pull.uncached": _server("read"),
            **{copy: _server("write") for copy in PUSHES},
        },
        GIGABIT,
        least_budget_seconds=90,
        file=FRAGMENTED,
    ),
    planted(
        "disc-fragments-80",
        "a disc of 80 MB/s, seeks of 12 ms, a user's file in 500 fragments",
        caps(),
        _disc(replace(_FAST_DISC, seek_seconds=0.012), fragments=True),
        {
            "file.pull.uncached": _server("seek"),
            "pull.uncached": _server("read"),
            **{copy: _server("write") for copy in PUSHES},
        },
        GIGABIT,
        least_budget_seconds=90,
        file=FRAGMENTED,
    ),
    planted(
        "disc-fragments-5",
        "a disc of 100 MB/s, seeks of 5 ms, a user's file in 500 fragments",
        caps(),
        _disc(Disc(100 * MB, 60 * MB, seek_seconds=0.005), fragments=True),
        {
            "file.pull.uncached": _server("seek"),
            "pull.uncached": _server("read"),
            **{copy: _server("write") for copy in PUSHES},
        },
        GIGABIT,
        least_budget_seconds=90,
        file=FRAGMENTED,
    ),
    planted(
        "disc-sync",
        "the same disc, sync always = yes, a flush takes 30 ms",
        caps(),
        _disc(_SLOW_TO_FLUSH),
        {"pull.uncached": _server("read"), **{copy: _server("sync") for copy in PUSHES}},
        GIGABIT,
        samba_options=("sync always = yes",),
        lift={"samba_options": ()},
        frees=PUSHES,
    ),
    planted(
        "disc-sync-80",
        "a disc of 80 MB/s, sync always = yes, a flush takes 60 ms",
        caps(),
        _disc(replace(_FAST_DISC, flush_seconds=0.06)),
        {"pull.uncached": _server("read"), **{copy: _server("sync") for copy in PUSHES}},
        GIGABIT,
        samba_options=("sync always = yes",),
        lift={"samba_options": ()},
        frees=PUSHES,
    ),
    planted(
        "disc-sync-15",
        "the same disc, sync always = yes, a flush takes 15 ms",
        caps(),
        _disc(replace(_DISC, flush_seconds=0.015)),
        {"pull.uncached": _server("read"), **{c: _server("sync") for c in PUSHES}},
        GIGABIT,
        samba_options=("sync always = yes",),
    ),
    planted(
        "disc-busy",
        "the same disc, somebody else reads it from end to end",
        caps(),
        _disc(foreign=True),
        {copy: _server("contention") for copy in ("pull.uncached", *PUSHES)},
        GIGABIT,
    ),
    planted(
        "disc-busy-80",
        "a disc of 80 MB/s, somebody else reads it from end to end",
        caps(),
        _disc(_FAST_DISC, foreign=True),
        {copy: _server("contention") for copy in ("pull.uncached", *PUSHES)},
        GIGABIT,
    ),
    planted(
        "disc-busy-client",
        "the client's disc, 60 MB/s, somebody else reads it from end to end",
        _disc(foreign=True),
        caps(),
        {copy: words("disk", "client", "contention") for copy in ("push.uncached", *PULLS)},
        GIGABIT,
    ),
)
