"""TARGET as a folder: the mount under it, and the copies that the operating system makes there."""

from __future__ import annotations

import secrets
import socket
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bottleneck.agents import protocol
from bottleneck.agents.hosts import PartlyRan, StageError
from bottleneck.report.report import Step
from bottleneck.run import plan, world
from bottleneck.run.bench import WHOLE_COPY, Bench
from bottleneck.run.clock import USEFUL_SECONDS
from bottleneck.run.steps import files
from bottleneck.target.target import no_mount
from probes.core.records import Endpoint
from probes.core.stage import Refused, Unavailable, described
from probes.files import own_folder
from probes.files.folders import SMB_FILESYSTEMS, Mount
from probes.files.free_space import HELD_PARTS
from probes.stages import native_copy

STEP_OVERHEAD_SECONDS = 0.4
"""Start, evict, prove, remove: what a copy costs beside its transfer and its check."""
ANSWER_SECONDS = 10.0
"""What a mount may take to say where it lies."""
OPENING_SECONDS = 45.0
"""Beside the writing of the source file: each call into a mount may take its time once."""
BEFORE_SECONDS = 60.0
"""What the calls before and after the window may take, of a mount that hangs in each of them."""
FILL_FACTOR = 1.5
"""The source of all pulls may take longer to write than a copy that counts."""
WITHOUT_A_SERVER = {
    **dict.fromkeys(("9p", "virtiofs"), "a folder that the virtual machine's host shares"),
    **dict.fromkeys(("ceph", "fuse.ceph", "glusterfs", "fuse.glusterfs"), "a cluster's"),
}
"""File systems from elsewhere that no single file server is behind, with what they are."""
SILENT = ("no answer within", "no end within its time; ")
"""What a step says of a mount that hangs: the next one would only wait for it again."""


@dataclass
class Mounted:
    """The run's folder in a mounted share."""

    mount: Mount | None
    folder: str = ""
    """Path of the run's own folder; empty: it could not be made."""
    server_path: str | None = None
    """The same as the server's agent sees it."""
    source_bytes: int = 0
    """Size of the file that pulls read; it only shrinks."""
    fill_rate: float | None = None
    """Bytes per second at which that file was written through the mount."""
    tells_room: bool = False
    """Whether the mount says how much room there is."""
    lost: str = ""
    """Why nothing can be copied there, or no more."""
    own_path: str = ""
    """The client's nameless file that pushes read, once it is held; the run's folder for a command
    of the user's, which needs names."""
    own_bytes: int = plan.LARGEST_COPY_BYTES
    """Its size; it only shrinks."""


def read_mount(bench: Bench) -> Mounted:
    """What TARGET's folder lies on: it becomes the report's target, and says where the server is.

    Raises:
        Refused: kind "unreachable", the mount does not answer; "usage", both ends lie on it.
    """
    target = bench.world.options.target
    mount = _ask_mount(bench, target.path)
    own = _ask_mount(bench, bench.world.options.folder)
    if mount is not None and not mount.remote:
        there = Path(target.path).is_dir()
        missing = f"{target.path}: folder not found on this host"
        raise Refused("usage", no_mount(target.path, mount.filesystem) if there else missing)
    if mount is not None and own is not None and own.point == mount.point:
        raise Refused(
            "usage",
            f"--folder {bench.world.options.folder}: on the same mount as TARGET; use a folder on "
            "a disk of this host",
        )
    smb = mount is not None and mount.filesystem in SMB_FILESYSTEMS
    if mount is not None:
        host, share = mount.server or "", mount.share or ""
        target = replace(target, host=host, share=share, folder=mount.folder)
        kept = {name: getattr(mount, name) for name in ("dialect", "signing", "encryption")}
        opened = Endpoint(facts={**kept, "mount": asdict(mount)})
        bench.world = replace(bench.world, share=opened)
        if mount.filesystem in WITHOUT_A_SERVER:
            bench.note(
                f"{target.path}: {mount.filesystem} is {WITHOUT_A_SERVER[mount.filesystem]}; only "
                "copies through the mount are measured"
            )
    bench.world = replace(bench.world, address=_address(bench, mount))
    stages = bench.world.options.stages
    if not smb or not (bench.world.access.username or bench.world.access.allow_guest):
        stages = tuple(stage for stage in stages if stage != "smb-copy")
    if not bench.world.address:
        left_out = [each.name for each in described(stages) if "server" in each.needs]
        if left_out:
            bench.note(
                f"{', '.join(left_out)}: skipped: the mount does not show its server's "
                "address (use //host/share as TARGET)"
            )
        stages = tuple(stage for stage in stages if stage not in left_out)
    options = replace(bench.world.options, target=target, stages=stages)
    bench.world = replace(bench.world, options=options)
    return Mounted(mount)


def _ask_mount(bench: Bench, folder: str) -> Mount | None:
    try:
        plain = bench.world.client.ask("mount", ANSWER_SECONDS, folder=folder)
    except StageError as error:
        raise Refused(
            "unreachable",
            f"{folder}: its mount does not answer ({error}); check that its server is up",
        ) from None
    return None if plain is None else protocol.from_plain(Mount, plain)


def _address(bench: Bench, mount: Mount | None) -> str:
    """The server's IP address; empty: the mount does not tell it."""
    if mount is None:
        return ""
    for told in (mount.address, mount.server):
        if not told:
            continue
        try:
            return str(socket.getaddrinfo(told, None, type=socket.SOCK_STREAM)[0][4][0])
        except (OSError, UnicodeError):
            bench.note(f"the mount's server {told} cannot be resolved")
    return ""


def hold_folder(bench: Bench, mounted: Mounted, stack: ExitStack) -> None:
    """Holds the run's folder with its source file in TARGET's folder, and finds it at the server.

    Raises:
        Refused: the folder cannot be written to, or does not answer.
    """
    target = bench.world.options.target.path
    bench.tell("writing a file in the mounted folder")
    size_bytes = bench.world.options.size_bytes or plan.LARGEST_COPY_BYTES // 2
    try:
        endpoint = stack.enter_context(_held(bench, target, size_bytes))
    except (StageError, Unavailable) as error:
        mounted.lost = str(error)
        bench.note(f"client: no test file in {target}: {error}")
        return
    facts = endpoint.facts
    mounted.folder = endpoint.folder
    mounted.source_bytes = int(facts["size_bytes"])
    mounted.fill_rate = mounted.source_bytes / max(float(facts["seconds"]), 1e-6)
    mounted.tells_room = int(facts["total_bytes"]) > 0
    name = mounted.folder.rpartition("/")[2]
    mounted.server_path = world.path_of(bench.world, name, "the mounted folder", bench.log)
    found = bench.world.server_path or mounted.server_path
    bench.world = replace(bench.world, server_path=found)


def _held(bench: Bench, folder: str, size_bytes: int) -> AbstractContextManager[Endpoint]:
    """A folder of the run's with a source file in it."""
    seconds = FILL_FACTOR * bench.world.times().copy
    run = secrets.token_hex(16)
    setting = own_folder.Setting(folder, run, size_bytes, seconds, bench.seed, HELD_PARTS)
    opening = seconds + OPENING_SECONDS
    return bench.world.client.hold(
        "mounted-folder", setting, Endpoint(), bench.clock.lifetime, opening
    )


def measure_copies(bench: Bench, mounted: Mounted, stack: ExitStack) -> None:
    """All four copies in turn, as often as the time allows: drift hits them alike."""
    for number in range(1 if bench.world.options.runs else plan.MAX_ROUNDS):
        for copy in plan.COPY_ORDER:
            if number == 0 or _fits(bench, mounted, copy):
                _copy(bench, mounted, copy, stack)


def _step(bench: Bench, copy: str) -> Step:
    """The step of a copy, without what changes from run to run."""
    options = bench.world.options
    setting = {"copy": copy, "folder": options.folder, "target_folder": options.target.path}
    return Step("native-copy", setting, "client")


def _fits(bench: Bench, mounted: Mounted, copy: str) -> bool:
    """Whether one more run of a copy that was made before fits the time that is left."""
    rate = bench.log.rate(_step(bench, copy))
    if rate is None or mounted.lost:
        return False
    size = _size(bench, mounted, copy)
    # A push is read back.
    passes = 2.0 if copy.startswith("push") else 1.0
    return bench.clock.left() > 1.3 * passes * size / rate + STEP_OVERHEAD_SECONDS


def _rates(bench: Bench, mounted: Mounted) -> dict[str, float]:
    """What is known to bound the copies, by plan.Rates' names."""
    known = plan.known_rates(bench.log)
    if mounted.fill_rate is not None:
        known["push.memory"] = mounted.fill_rate
    for step, rate in plan.measured(bench.log):
        if step.stage == "native-copy":
            known[step.setting["copy"]] = rate
    pushed = [known[copy] for copy in plan.COPY_ORDER[:2] if copy in known]
    if pushed:
        # Nothing was pulled yet: most paths carry about as much the other way.
        known["pull.memory"] = max(pushed)
    return known


def _size(bench: Bench, mounted: Mounted, copy: str) -> int:
    """Bytes of the next run of a copy."""
    rate = plan.expected_rate(copy, _rates(bench, mounted))
    seconds = max(
        USEFUL_SECONDS / 2,
        min(bench.world.times().copy, bench.clock.left() - STEP_OVERHEAD_SECONDS),
    )
    if copy.startswith("pull"):
        usable = files.usable_bytes(bench.world.client, bench.world.options.folder)
        room = min(mounted.source_bytes, usable)
    else:
        room = mounted.own_bytes
        if mounted.tells_room:
            # Asked each time: what this run holds there counts too, whoever made it.
            room = min(room, files.usable_bytes(bench.world.client, mounted.folder, ANSWER_SECONDS))
    return plan.copy_bytes(rate, seconds, room, bench.world.options.size_bytes)


def _hold_own(bench: Bench, mounted: Mounted, size: int, stack: ExitStack) -> None:
    """The client's file that pushes read: no other stage's, for it is cut to each copy's size."""
    if mounted.own_path:
        return
    # The next run may turn out to be worth a larger file.
    size_bytes = bench.world.options.size_bytes or min(2 * size, plan.LARGEST_COPY_BYTES // 2)
    folder = bench.world.options.folder
    if bench.world.options.native_command:
        held = _held(bench, folder, size_bytes)
    else:
        held = files.hold_source(
            bench, bench.world.client, folder, size_bytes, OPENING_SECONDS, HELD_PARTS
        )
    own = stack.enter_context(held)
    mounted.own_path = own.path or own.folder
    mounted.own_bytes = int(own.facts["size_bytes"])


def _copy(bench: Bench, mounted: Mounted, copy: str, stack: ExitStack) -> None:
    """One run of one copy."""
    step = _step(bench, copy)
    with bench.outcome(step, f"{copy} native", WHOLE_COPY) as take:
        if mounted.lost:
            raise Unavailable(mounted.lost)
        if copy == "pull.uncached" and mounted.server_path is None:
            raise Unavailable(files.NEEDS_SERVER_CACHE)
        bench.clock.need()
        size = _size(bench, mounted, copy)
        push = copy.startswith("push")
        command = bench.world.options.native_command
        if (push or command) and size >= plan.MIB:
            _hold_own(bench, mounted, size, stack)
        if push:
            size = min(size, mounted.own_bytes)
        if size < plan.MIB:
            raise Unavailable("no source file, or not enough free space for a copy of 1 MiB")
        setting = native_copy.Setting(
            **step.setting,
            size_bytes=size,
            seconds=max(USEFUL_SECONDS, bench.clock.left()),
            seed=bench.seed,
            command=command,
        )
        own_path = mounted.own_path if push or command else ""
        peer = Endpoint(folder=mounted.folder, path=own_path)
        proof = files.ready_cache(bench.world.server, mounted.server_path, copy, size)
        told = {} if proof is None else {"cache": proof}
        if push:
            mounted.own_bytes = size
        else:
            mounted.source_bytes = size
        try:
            take(bench.run(step, setting, peer, setting.seconds + BEFORE_SECONDS), told)
        except (PartlyRan, Refused) as error:
            if any(words in str(error) for words in SILENT):
                mounted.lost = f"the mount did not answer before: {error}"
            raise
