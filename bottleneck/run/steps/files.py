"""The files of a run: its folder and source on the share, its own on each host, and the user's."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bottleneck.agents import protocol
from bottleneck.agents.hosts import Host, StageError
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.bench import NEEDS_AGENT, WHOLE_COPY, Bench
from bottleneck.run.clock import USEFUL_SECONDS
from probes.core.records import Details, Endpoint, run_rate
from probes.core.stage import NO_ROOM, Refused, Unavailable
from probes.files import page_cache, source_file
from probes.files.free_space import LEAST_SHARE_BYTES, beyond_reserve_bytes, no_room
from probes.files.served_file import source_name
from probes.smb.run_folder import joined
from probes.stages import small_files, smb_copy

CACHE_SECONDS = 20.0
NEEDS_SERVER_CACHE = (
    "the server's page cache cannot be cleared over SMB (needs an agent that finds the "
    "share's folder)"
)
FIRST_BYTES = 2 * plan.MIB
"""Tells the rate by which the file's size is chosen."""
MOST_BYTES = 128 * plan.MIB
FILL_SECONDS = 1.0
GRACE_SECONDS = 8.0
UNKNOWN_RATE = 4.0 * plan.MIB
LEAST_TREE_SECONDS, TREE_COPIES = 3.0, 3.0
TREE_GRACE_SECONDS = 60.0
"""For the removal of what was pushed, too."""
CACHED_RATIO = 0.5
"""From here on more of the file comes from the server's RAM than from its disk."""
NOT_FOUND = "the share's folder was not found on the server (use --server-folder DIR)"


def ready_cache(
    host: Host | None, path: str | None, copy: str, size_bytes: int, **file: str
) -> Details | None:
    """Has a host make a pull's source cold or warm, and prove it; None: it cannot tell.

    file: its name, where it is not the run's own source. Raises Unavailable where an uncached
    copy's source could not be made cold.
    """
    verb, _, requested = copy.partition(".")
    if verb != "pull" or host is None or not path:
        return None
    asked = {"path": path, "requested": requested, "first_bytes": size_bytes, **file}
    try:
        proof: Details = host.ask("set-cache", CACHE_SECONDS, **asked)
    except (StageError, Refused) as error:
        if requested == "uncached":
            raise Unavailable(f"the source stays in the page cache: {error}") from None
        return None
    return proof


def cache_proof(
    side: plan.Side, requested: str, proven: bool = False, cached_ratio: float | None = None
) -> Details:
    """What the details of a copy say of its source's cache."""
    known = {"side": side, "requested": requested}
    return {**known, "proven": proven, "cached_ratio_before": cached_ratio}


def copy_setting(bench: Bench, copy: str, dialect: str, **more: Any) -> smb_copy.Setting:
    """Of a copy between the client's folder and the share, where nothing else is said."""
    usual = {"end": "folder", "size_bytes": 0, "seconds": 0.0, "seed": bench.seed}
    given = {
        "copy": copy,
        "dialect": dialect,
        "folder": bench.world.options.folder,
        **usual,
        **more,
    }
    return bench.world.chosen(smb_copy.Setting(**{**given, **bench.world.options.copy_settings}))


def usable_bytes(host: Host, folder: str | None, seconds: float = 10.0) -> int:
    """How much a run may write into a host's folder."""
    return int(host.ask("usable-bytes", seconds, folder=folder))


def hold_source(
    bench: Bench,
    host: Host,
    folder: str,
    size_bytes: int,
    grace_seconds: float,
    parts: int = 1,
) -> AbstractContextManager[Endpoint]:
    """A nameless file of payload on a host, until left."""
    setting = source_file.Setting(
        folder=folder,
        size_bytes=size_bytes,
        seconds=bench.world.times().fill,
        seed=bench.seed,
        parts=parts,
    )
    opening_seconds = setting.seconds + grace_seconds
    return host.hold("source-file", setting, Endpoint(), bench.clock.lifetime, opening_seconds)


def room_bytes(bench: Bench, untold_bytes: int = MOST_BYTES) -> int:
    """Returns how much more may be written to the share; what its owner needs stays free.

    Beside the files that this run itself holds there. A file that is still to be made for pulls
    leaves as much room to what is pushed later. Less than LEAST_SHARE_BYTES is none.
    untold_bytes: what is taken where the server does not tell.
    """
    if bench.file_limit_bytes is not None:
        return bench.file_limit_bytes
    free, total = (bench.world.share.facts.get(name) for name in ("free_bytes", "total_bytes"))
    if free is None or total is None:
        return untold_bytes
    if beyond_reserve_bytes(int(free), int(total)) < LEAST_SHARE_BYTES:
        return 0
    room = beyond_reserve_bytes(int(free) - bench.source_bytes - _held_bytes(bench), int(total))
    if bench.world.server is not None and bench.world.server_path is not None:
        # Where it may not look it holds no file either.
        with suppress(StageError, Refused, Unavailable):
            room = min(room, usable_bytes(bench.world.server, bench.world.server_path))
    return room if bench.source_bytes else room // 2


def too_small(bench: Bench, pulled: bool) -> str:
    """Why not even the smallest copy can be made: no source, or no room, with all figures."""
    if pulled and not bench.source_bytes:
        return "no source file on the share: the push that writes it failed or had no room"
    there = f"//{bench.world.share.host}/{bench.world.share.share}"
    if bench.file_limit_bytes is not None and not pulled:
        return f"{there}: full, or a quota is reached; free some space there"
    if not pulled and not bench.source_bytes_of("client"):
        why = bench.no_source.get("client", "it has not enough free space")
        return f"no test file in {bench.world.options.folder}: {why}"
    free, total = (bench.world.share.facts.get(name) for name in ("free_bytes", "total_bytes"))
    if pulled or free is None or total is None:
        return f"{bench.world.options.folder}: not enough free space for a copy; free some space"
    return f"{there}: too small to measure: {no_room(int(free), int(total), LEAST_SHARE_BYTES)}"


def _held_bytes(bench: Bench) -> int:
    """Size of the client's own file, where it lies on the very disk that the share does."""
    own = bench.world.facts["client"].folder if "client" in bench.world.facts else None
    if own is None or own.total_bytes != bench.world.share.facts["total_bytes"]:
        return 0
    return bench.source_bytes_of("client")


def ready_bytes(bench: Bench, dialect: str) -> int:
    """Bytes of the source file; fills it first where it is empty.

    Raises:
        Unavailable: there is no room, or no time.
        PartlyRan, StageError, Refused: it could not be filled.
    """
    if not bench.source_bytes:
        known = bench.calibrated.get("push", FIRST_BYTES)
        rate = _fill(bench, dialect, max(plan.LEAST_COPY_BYTES, min(FIRST_BYTES, int(known))))
        wanted = min(MOST_BYTES, room_bytes(bench), int(rate * FILL_SECONDS))
        if wanted > 2 * FIRST_BYTES:
            _fill(bench, dialect, wanted // plan.MIB * plan.MIB)
    return bench.source_bytes


def pulled_file(bench: Bench) -> Endpoint:
    """The file that pulls read, as the server's agent finds it."""
    folder = bench.world.server_path or ""
    return Endpoint(path=os.path.join(folder, source_name(folder)))  # noqa: PTH118 - on the server


def _fill(bench: Bench, dialect: str, size_bytes: int) -> float:
    """Writes the file from memory; the rate, bytes per second."""
    if room_bytes(bench) < size_bytes:
        raise Unavailable(NO_ROOM)
    bench.clock.need(FILL_SECONDS)
    given = {"end": "memory", "size_bytes": size_bytes, "seconds": bench.clock.left()}
    setting = copy_setting(bench, "push.cached", dialect, fill_source=True, **given)
    peer = replace(bench.world.share, path="")
    ran = bench.world.client.initiate("smb-copy", setting, peer, setting.seconds + GRACE_SECONDS)
    bench.source_bytes = size_bytes
    return run_rate(ran.samples)


# -- the user's own file --------------------------------------------------------------------------


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
    named = bench.world.options.file
    assert named is not None
    host = bench.world.hosts.get(named.side)
    if host is None:
        raise Unavailable(NEEDS_AGENT)
    if named.side == "client":
        folder, name = os.path.split(named.path)
        parts = [name]
    else:
        # The run's own folder lies in TARGET's; a read-only share has none.
        own = bench.world.server_path and os.path.dirname(bench.world.server_path)  # noqa: PTH120 - the server's path
        folder, parts = own or bench.world.options.server_folder or "", named.path.split("\\")
        if not folder:
            raise Unavailable(NOT_FOUND)
    try:
        told = host.ask(
            "user-file", folder=folder, parts=parts, first_bytes=plan.LARGEST_COPY_BYTES
        )
    except (StageError, Refused) as error:
        raise Unavailable(f"{named.path}: {error}") from None
    try:
        return protocol.from_plain(Looked, told)
    except protocol.WireError:
        raise Unavailable(f"{named.path}: invalid data from the {named.side}'s agent") from None


def device(bench: Bench, side: plan.Side) -> str | None:
    """Kernel name of what the user's file on a side lies on; None: none, or it is unknown."""
    named = bench.world.options.file
    if named is None or named.side != side:
        return None
    try:
        return look(bench).device
    except Unavailable:
        return None  # the file's own step will say why


def copy_file(bench: Bench, dialect: str, labels: dict[str, object]) -> None:
    """Pulls the user's file from the share into the client's folder, or pushes it into the run's.

    Nothing of the sender's cache is changed for it: the copy is named by what was in it.
    """
    named = bench.world.options.file
    if named is None:
        return
    cached_ratio: float | None = None
    why = ""
    try:
        cached_ratio = look(bench).cached_ratio
    except Unavailable as error:
        why = str(error)
    cached = cached_ratio is not None and cached_ratio >= CACHED_RATIO
    pushed = named.side == "client"
    copy = f"file.{'push' if pushed else 'pull'}.{'cached' if cached else 'uncached'}"
    file = named.path if pushed else joined(bench.world.options.target.folder, named.path)
    setting = copy_setting(bench, copy, dialect, file=file, checked=not pushed, **labels)
    step = bench.step("smb-copy", setting, "client")
    step.setting["file"] = setting.file
    with bench.outcome(step, f"{copy} {dialect}", WHOLE_COPY) as take:
        if why:
            bench.note(f"--file: unknown how much of it the {named.side}'s cache holds: {why}")
        bench.clock.need()
        seconds = bench.clock.left() if bench.world.alone("smb-copy") else bench.world.times().copy
        seconds = float(bench.world.options.settings.get("seconds", seconds))
        setting = replace(
            setting,
            size_bytes=_file_bytes(bench, named.path if pushed else "", seconds),
            seconds=max(USEFUL_SECONDS, bench.clock.left()),
            most_seconds=min(max(USEFUL_SECONDS, seconds), bench.clock.left()),
        )
        proven = (
            cached_ratio is not None
            and min(cached_ratio, 1 - cached_ratio) <= page_cache.DOUBT_RATIO
        )
        requested = "cached" if cached else "uncached"
        proof = cache_proof(named.side, requested, proven, cached_ratio)
        peer = replace(bench.world.share, path=named.path if pushed else "")
        timeout = setting.seconds + GRACE_SECONDS
        take(bench.run(step, setting, peer, timeout), {"cache": proof})


def _file_bytes(bench: Bench, path: str, seconds: float) -> int:
    """How much of the user's file is copied at most; path: of one that is pushed."""
    if not path:
        usable = usable_bytes(bench.world.client, bench.world.options.folder)
        return min(plan.LARGEST_COPY_BYTES, usable)
    pushes = [
        rate
        for step, rate in plan.measured(bench.log)
        if step.stage == "smb-copy" and str(step.setting["copy"]).startswith("push")
    ]
    # Its end is not known before it is sent: as much as the slowest of the run's own would take.
    rate = min(pushes, default=bench.calibrated.get("push", UNKNOWN_RATE))
    likely = int(rate * min(seconds, bench.clock.left() / 2))
    room = room_bytes(bench, plan.LARGEST_COPY_BYTES)
    try:
        size_bytes = Path(path).stat().st_size
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}") from None
    if size_bytes < smb_copy.FILE_LEAST_BYTES:
        raise Unavailable(f"{path} is smaller than 1 MiB; use a larger file, or --tree")
    if room < smb_copy.FILE_LEAST_BYTES:
        raise Unavailable(NO_ROOM)
    return min(size_bytes, room, max(smb_copy.FILE_LEAST_BYTES, likely))


# -- the user's own folder ------------------------------------------------------------------------


def copy_tree(bench: Bench, dialect: str) -> None:
    """The files of --tree, one after the other: pushed into the run's folder, or pulled."""
    named = bench.world.options.tree
    if named is None:
        return
    pushed = named.side == "client"
    tree = named.path if pushed else joined(bench.world.options.target.folder, named.path)
    verb = "push" if pushed else "pull"
    usual = small_files.Setting(verb, 0, 0, dialect, 0.0, bench.seed, tree=tree)
    setting = bench.world.chosen(
        replace(usual, folder="" if pushed else bench.world.options.folder)
    )
    step = bench.step("small-files", setting, "client")
    with bench.outcome(step, f"tree {verb} {dialect}", WHOLE_COPY) as take:
        bench.clock.need(LEAST_TREE_SECONDS)
        # Removing the files takes about as long as making them.
        seconds = (
            bench.clock.left() / 2
            if bench.world.alone("smb-copy")
            else TREE_COPIES * bench.world.times().copy
        )
        room = (
            room_bytes(bench)
            if pushed
            else usable_bytes(bench.world.client, bench.world.options.folder)
        )
        setting = replace(setting, seconds=min(seconds, bench.clock.left() / 2), size_bytes=room)
        peer = replace(bench.world.share, path=named.path if pushed else "")
        take(bench.run(step, setting, peer, setting.seconds + TREE_GRACE_SECONDS))
        _note_tree(bench, step)


def _note_tree(bench: Bench, step: Step) -> None:
    """What of the folder was not copied."""
    made = bench.log.latest(step)
    told = made.details if made else {}
    if told.get("whole") is False:
        bench.note("--tree: not all of it was copied (use a larger --budget, or a smaller folder)")
    for name, what in (
        ("special_files", "skipped: links, special files or other file systems"),
        ("unreadable_files", f"could not be read ({told.get('first_unreadable')})"),
    ):
        if told.get(name):
            bench.note(f"--tree: {told[name]} {what}")
