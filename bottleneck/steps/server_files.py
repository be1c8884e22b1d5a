"""The run's folder and source file at the server: where they lie, their room, their cache."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from bottleneck import plan
from bottleneck.bench import Bench
from bottleneck.hosts import StageError
from probes import smb_copy
from probes.host.free_space import beyond_reserve_bytes
from probes.records import run_rate
from probes.stage import NO_ROOM, Refused, Unavailable

LOCATE_SECONDS = 15.0
CACHE_SECONDS = 20.0
NEEDS_SERVER_CACHE = (
    "the server's page cache cannot be emptied over SMB: "
    "needs an agent that finds the share's folder there"
)
FIRST_BYTES = 2 * plan.MIB
"""Tells the rate by which the file's size is chosen."""
MOST_BYTES = 128 * plan.MIB
FILL_SECONDS = 1.0
GRACE_SECONDS = 8.0


def locate(bench: Bench, folder_name: str, what: str) -> str | None:
    """Path of the run's folder at the server; None: no agent, or it does not find it (noted).

    what: the folder that is looked for, in words.
    """
    if bench.server is None:
        return None
    path: str | None = None
    try:
        path = bench.server.ask(
            "locate",
            folder_name=folder_name,
            hint=bench.options.server_folder,
            seconds=LOCATE_SECONDS,
        )
    except StageError as error:
        bench.note(f"server: looking for {what}: {error}")
    if path is None:
        bench.note(f"the server's agent does not find {what}: give --server-folder DIR")
    return path


def ready_cache(
    bench: Bench, path: str | None, copy: str, size_bytes: int
) -> dict[str, Any] | None:
    """Has the server make a pull's source cold or warm, and prove it; None: it cannot tell.

    Raises:
        Unavailable: an uncached copy's source could not be made cold.
    """
    verb, _, requested = copy.partition(".")
    if verb != "pull" or bench.server is None or path is None:
        return None
    try:
        proof: dict[str, Any] = bench.server.ask(
            "set-cache",
            path=path,
            requested=requested,
            first_bytes=size_bytes,
            seconds=CACHE_SECONDS,
        )
    except (StageError, Refused) as error:
        if requested == "uncached":
            raise Unavailable(f"the source could not be made uncached: {error}") from None
        return None
    return proof


def free_bytes(bench: Bench) -> int | None:
    """How much more may be written to the share; what its owner needs stays free. None: untold.

    Beside the files that this run itself holds there. A file that is still to be made for pulls
    leaves as much room to what is pushed later.
    """
    free, total = (bench.share.facts.get(name) for name in ("free_bytes", "total_bytes"))
    if free is None or total is None:
        return None
    room = beyond_reserve_bytes(int(free) - bench.source_bytes - _held_bytes(bench), int(total))
    if bench.server is not None and bench.server_path is not None:
        # Where it may not look it holds no file either.
        with suppress(StageError, Refused, Unavailable):
            room = min(room, int(bench.server.ask("usable-bytes", folder=bench.server_path)))
    return room if bench.source_bytes else room // 2


def _held_bytes(bench: Bench) -> int:
    """Size of the client's own file, where it lies on the very disk that the share does."""
    own = bench.facts["client"].folder if "client" in bench.facts else None
    if own is None or own.total_bytes != bench.share.facts["total_bytes"]:
        return 0
    source = bench.sources.get("client")
    return int(source.facts["size_bytes"]) if source else 0


def room_bytes(bench: Bench) -> int:
    """The same, of what such a file needs at most."""
    free = free_bytes(bench)
    return MOST_BYTES if free is None else free


def ready_bytes(bench: Bench, dialect: str) -> int:
    """Bytes of the source file; fills it first where it is empty.

    Raises:
        Unavailable: there is no room, or no time.
        PartlyRan, StageError, Refused: it could not be filled.
    """
    if not bench.source_bytes:
        rate = _fill(bench, dialect, FIRST_BYTES)
        wanted = min(MOST_BYTES, room_bytes(bench), int(rate * FILL_SECONDS))
        if wanted > 2 * FIRST_BYTES:
            _fill(bench, dialect, wanted // plan.MIB * plan.MIB)
    return bench.source_bytes


def _fill(bench: Bench, dialect: str, size_bytes: int) -> float:
    """Writes the file from memory; the rate, bytes per second."""
    if room_bytes(bench) < size_bytes:
        raise Unavailable(NO_ROOM)
    if bench.left() < FILL_SECONDS:
        raise Unavailable("no time left in the budget: give a larger --budget")
    setting = smb_copy.Setting(
        copy="push.cached",
        dialect=dialect,
        end="memory",
        size_bytes=size_bytes,
        seconds=bench.left(),
        folder=bench.options.folder,
        seed=bench.seed,
        fill_source=True,
    )
    peer = replace(bench.share, path="")
    ran = bench.client.initiate("smb-copy", setting, peer, setting.seconds + GRACE_SECONDS)
    bench.source_bytes = size_bytes
    return run_rate(ran.samples)
