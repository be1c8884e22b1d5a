"""The files of copies that the server starts: what it sends, and what it finds at the client."""

from __future__ import annotations

import secrets
from typing import Any

from bottleneck.hosts import StageError
from bottleneck.steps.meeting import CLOSING_SECONDS, OPENING_SECONDS, OWN, Meeting
from probes.host import source_file
from probes.records import Endpoint
from probes.smb import run_folder
from probes.stage import Refused, Unavailable

GRACE_SECONDS = 12.0
LOOK_SECONDS = 20.0
WHOLE_RATIO = 0.8
"""A source that is not much larger than wanted is copied whole."""


def whole_source(meeting: Meeting, size: int) -> tuple[int, str]:
    """The server's file of exactly that size, which is all that smbclient can send; its path."""
    bench = meeting.bench
    source = meeting.smaller or bench.sources["server"]
    whole = int(source.facts["size_bytes"])
    if size >= WHOLE_RATIO * whole:
        return whole, source.path
    assert bench.server is not None
    setting = source_file.Setting(
        folder=bench.server_path or "",
        size_bytes=size,
        seconds=bench.times.fill,
        seed=bench.seed,
    )
    lifetime = bench.options.budget_seconds + CLOSING_SECONDS
    held = bench.server.hold("source-file", setting, Endpoint(), lifetime, OPENING_SECONDS)
    smaller = meeting.stack.enter_context(held)
    meeting.smaller = smaller
    return int(smaller.facts["size_bytes"]), smaller.path


def looked_at(meeting: Meeting, name: str, size: int) -> bool | None:
    """Whether what arrived at the client is the payload; None: its agent cannot look."""
    if not meeting.path:
        return None
    bench = meeting.bench
    asked = {"path": meeting.path, "file_name": name, "size_bytes": size, "seed": bench.seed}
    try:
        return bool(bench.client.ask("served-intact", LOOK_SECONDS, **asked))
    except (StageError, Refused, Unavailable) as error:
        bench.note(f"what the server pushed could not be looked at: {error}")
        return None


def replace_source(meeting: Meeting, name: str, size: int) -> None:
    """What was pushed last is what pulls read."""
    older, meeting.name, meeting.good_bytes = meeting.name, name, size
    if older and meeting.path:
        meeting.bench.client.ask("served-remove", path=meeting.path, file_name=older)


def source_of(meeting: Meeting, size: int) -> int:
    """Brings the file that a pull reads to that size, where the client's agent can; its size."""
    if not meeting.path:
        return meeting.good_bytes
    bench = meeting.bench
    own = meeting.engine == OWN
    name = meeting.name or (run_folder.SOURCE if own else f"pushed-{secrets.token_hex(8)}")
    asked: dict[str, Any] = {"path": meeting.path, "file_name": name, "seed": bench.seed}
    asked |= {"limit_seconds": bench.times.fill, "create": meeting.private}
    seconds = bench.times.fill + GRACE_SECONDS
    try:
        if not meeting.good_bytes:
            bench.client.ask("served-resize", seconds, size_bytes=0, **asked)
        made = int(bench.client.ask("served-resize", seconds, size_bytes=size, **asked))
    except (StageError, Refused, Unavailable):
        # Another user's file: it is pulled as it is.
        return meeting.good_bytes
    meeting.name, meeting.good_bytes = name, made
    return made


def client_cache(meeting: Meeting, copy: str, size: int) -> dict[str, Any]:
    """Has the client make a pull's source cold or warm, and prove it; goes into the details."""
    requested = copy.partition(".")[2]
    why = "the client's agent does not find the folder of its share"
    if meeting.path:
        asked = {"path": meeting.path, "requested": requested, "first_bytes": size}
        try:
            told = meeting.bench.client.ask(
                "set-cache", LOOK_SECONDS, file_name=meeting.name, **asked
            )
            return {**told, "side": "client"}
        except (StageError, Refused) as error:
            why = str(error)
    if requested == "uncached":
        raise Unavailable(f"the source could not be made uncached: {why}")
    return {
        "side": "client",
        "requested": requested,
        "proven": False,
        "cached_ratio_before": None,
    }
