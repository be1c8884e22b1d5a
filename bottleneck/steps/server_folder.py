"""The server's own view of the run's folder: where it lies, and what of it is in the page cache."""

from __future__ import annotations

from typing import Any

from bottleneck.bench import Bench
from bottleneck.hosts import StageError
from probes.stage import Refused, Unavailable

LOCATE_SECONDS = 15.0
CACHE_SECONDS = 20.0
NEEDS_SERVER_CACHE = (
    "the server's page cache cannot be emptied over SMB: "
    "needs an agent that finds the share's folder there"
)


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
