"""The file of --file: looked at by the host that has it, and pulled where it lies on the share."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from bottleneck import plan
from bottleneck.bench import NEEDS_AGENT, Bench
from bottleneck.hosts import StageError
from probes import smb_copy
from probes.host import page_cache
from probes.smb.run_folder import joined
from probes.stage import Refused, Unavailable

CACHED_RATIO = 0.5
"""From here on more of the file comes from the server's RAM than from its disk."""
GRACE_SECONDS = 8.0
LEAST_SECONDS = 1.5
NOT_FOUND = "the share's folder was not found on the server: --server-folder DIR"


@dataclass(frozen=True)
class Looked:
    """What the host that has it tells of the user's file."""

    path: str
    size_bytes: int
    cached_ratio: float | None
    device: str | None


def look(bench: Bench) -> Looked:
    """Asks the host that has it; the answer holds for this moment.

    Raises:
        Unavailable: there is no agent there, it does not find the file or may not read it.
    """
    named = bench.options.file
    assert named is not None
    host = bench.reached.get(named.side)
    if host is None:
        raise Unavailable(NEEDS_AGENT)
    if named.side == "client":
        folder, name = os.path.split(named.path)
        parts = [name]
    else:
        if bench.server_path is None:
            raise Unavailable(NOT_FOUND)
        # The run's own folder lies in TARGET's; it is a path of another host.
        folder, parts = os.path.dirname(bench.server_path), named.path.split("\\")  # noqa: PTH120 - the server's path
    try:
        told = host.ask(
            "user-file", folder=folder, parts=parts, first_bytes=plan.LARGEST_COPY_BYTES
        )
    except (StageError, Refused) as error:
        raise Unavailable(f"{named.path}: {error}") from None
    try:
        ratio = told["cached_ratio"]
        cached = None if ratio is None else float(ratio)
        device = None if told["device"] is None else str(told["device"])
        return Looked(str(told["path"]), int(told["size_bytes"]), cached, device)
    except (KeyError, TypeError, ValueError):
        raise Unavailable(f"{named.path}: {named.side}'s agent told nonsense of it") from None


def device(bench: Bench, side: plan.Side) -> str | None:
    """Kernel name of what the user's file on a side lies on; None: none, or it is unknown."""
    named = bench.options.file
    if named is None or named.side != side:
        return None
    try:
        return look(bench).device
    except Unavailable:
        return None  # the file's own step will say why


def pull_file(bench: Bench, dialect: str, labels: dict[str, object]) -> None:
    """Pulls the user's file from the share into the client's folder, as a user would.

    Nothing of the server's cache is changed for it: the copy is named by what was in it.
    """
    named = bench.options.file
    if named is None or named.side != "server":
        return
    cached_ratio: float | None = None
    why = ""
    try:
        cached_ratio = look(bench).cached_ratio
    except Unavailable as error:
        why = str(error)
    cached = cached_ratio is not None and cached_ratio >= CACHED_RATIO
    copy = f"file.pull.{'cached' if cached else 'uncached'}"
    setting = smb_copy.Setting(
        copy=copy,
        dialect=dialect,
        end="folder",
        size_bytes=0,
        seconds=0.0,
        folder=bench.options.folder,
        file=joined(bench.options.target.folder, named.path),
        **labels,  # type: ignore[arg-type]  # signing and encryption, as the session told them
    )
    step = bench.step("smb-copy", setting, "client")
    step.setting["file"] = setting.file
    with bench.outcome(step, f"{copy} {dialect}"):
        if why:
            bench.note(f"--file: what the server's cache holds of it is not known: {why}")
        if bench.left() < LEAST_SECONDS:
            raise Unavailable("no time left in the budget: give a larger --budget")
        seconds = bench.left() if bench.alone("smb-copy") else bench.times.copy
        usable = int(bench.client.ask("usable-bytes", folder=bench.options.folder))
        setting = replace(
            setting,
            size_bytes=min(plan.LARGEST_COPY_BYTES, usable),
            seconds=max(LEAST_SECONDS, bench.left()),
            file_seconds=min(max(LEAST_SECONDS, seconds), bench.left()),
        )
        proof = {
            "side": "server",
            "requested": "cached" if cached else "uncached",
            "proven": cached_ratio is not None
            and min(cached_ratio, 1 - cached_ratio) <= page_cache.DOUBT_RATIO,
            "cached_ratio_before": cached_ratio,
        }
        peer = replace(bench.share, path="")
        timeout = setting.seconds + GRACE_SECONDS
        bench.initiate(step, setting, peer, timeout, details={"cache": proof})
