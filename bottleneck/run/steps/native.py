"""TARGET as a folder: its mount, and the copies that the operating system makes there."""

from __future__ import annotations

import secrets
import socket
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from bottleneck.agents import protocol
from bottleneck.agents.hosts import PartlyRan, StageError
from bottleneck.login.target import no_mount
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.clock import USEFUL_SECONDS
from bottleneck.run.files import Files
from bottleneck.run.log import WHOLE_COPY, Log, Task, Tasks
from bottleneck.run.steps.sources import (
    NEEDS_SERVER_CACHE,
    hold_source,
    prepare_cache,
    usable_bytes,
)
from bottleneck.run.world import RunState, World, path_of
from probes.core.records import Endpoint
from probes.core.stage import Refused, Unavailable, stages_of
from probes.files import created_folder
from probes.files.folders import SMB_FILESYSTEMS, Mount
from probes.files.free_space import HELD_PARTS
from probes.net import peers
from probes.stages import native_copy

STEP_OVERHEAD_SECONDS = 0.4
"""Time of a copy beside its transfer and its check: start, evict, prove, remove."""
ANSWER_SECONDS = 10.0
"""Time for the facts of a mount."""
OPENING_SECONDS = 45.0
"""Time beside writing the source file: each call into a slow mount may take long once."""
BEFORE_SECONDS = 60.0
"""Time of the calls before and after the window on a mount that hangs in each of them."""
FILL_FACTOR = 1.5
"""Time to write the pulls' source over that of a copy."""
WITHOUT_A_SERVER = {
    **dict.fromkeys(("9p", "virtiofs"), "a folder that the virtual machine's host shares"),
    **dict.fromkeys(("ceph", "fuse.ceph", "glusterfs", "fuse.glusterfs"), "a cluster's"),
}
"""Remote file systems without a single file server, described."""
SILENT = ("no answer within", "no end within its time; ")
"""Words in the error of a mount that hangs: the next step would wait for it again."""


def read_mount(world: World, files: Files, log: Log) -> World:
    """Reads the mount of TARGET's folder, which becomes the report's target and names the server.

    Raises:
        Refused: kind "unreachable", the mount does not answer; "usage", both folders are on it.
    """
    target, stages, folder = world.options.target, world.options.stages, world.options.folder
    mount, own_mount = _ask_mount(world, target.path), _ask_mount(world, folder)
    if mount is not None and not mount.remote:
        there = Path(target.path).is_dir()
        missing = f"{target.path}: folder not found on this host"
        raise Refused("usage", no_mount(target.path, mount.filesystem) if there else missing)
    if mount is not None and own_mount is not None and own_mount.point == mount.point:
        raise Refused(
            "usage",
            f"--folder {folder}: on the same mount as TARGET; use a folder on a disk of this host",
        )
    smb = mount is not None and mount.filesystem in SMB_FILESYSTEMS
    if mount is not None:
        host, share = mount.server or "", mount.share or ""
        target = replace(target, host=host, share=share, folder=mount.folder)
        security = {name: getattr(mount, name) for name in ("dialect", "signing", "encryption")}
        files.share = Endpoint(facts={**security, "mount": asdict(mount)})
        if mount.filesystem in WITHOUT_A_SERVER:
            log.note(
                f"{target.path}: {mount.filesystem} is {WITHOUT_A_SERVER[mount.filesystem]}; only "
                "copies through the mount are measured"
            )
    address = _address(mount, world.options.agent, log)
    if not smb or not (world.access.username or world.access.allow_guest):
        stages = tuple(stage for stage in stages if stage != "smb-copy")
    if not address:
        left_out = [each.name for each in stages_of(stages) if "server" in each.needs]
        if left_out:
            log.note(
                f"{', '.join(left_out)}: skipped: the mount does not show its server's "
                "address (use //host/share as TARGET)"
            )
        stages = tuple(stage for stage in stages if stage not in left_out)
    options = replace(world.options, target=target, stages=stages)
    return replace(world, address=address, options=options)


def _ask_mount(world: World, folder: str) -> Mount | None:
    try:
        plain = world.client.ask("mount", ANSWER_SECONDS, folder=folder)
    except StageError as error:
        raise Refused(
            "unreachable",
            f"{folder}: its mount does not answer ({error}); check that its server is up",
        ) from None
    return None if plain is None else protocol.from_plain(Mount, plain)


def _address(mount: Mount | None, agent: str, log: Log) -> str:
    """Returns the server's IP address by the mount or the ssh agent; empty: unknown."""
    if mount is None:
        return ""
    has_server = agent.startswith("ssh://") and mount.filesystem not in WITHOUT_A_SERVER
    for name in (mount.address, mount.server, urlsplit(agent).hostname if has_server else None):
        if not name:
            continue
        try:
            addresses = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
            return peers.zoned_address(addresses[0][4])
        except (OSError, UnicodeError):
            log.note(f"the server's name {name} cannot be resolved")
    return ""


@dataclass
class Native(RunState):
    """Copies between the run's folder in a mounted share and the client's folder."""

    folder: str = ""
    """Path of the run's folder; empty: it could not be created."""
    server_path: str | None = None
    source_bytes: int = 0
    """Size of the file that pulls read; it only shrinks."""
    fill_rate: float | None = None
    """Rate at which that file was written through the mount, bytes per second."""
    tells_room: bool = False
    """Whether the mount reports its free space."""
    lost: str = ""
    """Reason why nothing can be copied there any more."""
    own_path: str = ""
    """Unnamed file of the client that pushes read; for the user's command, which needs names, the
    run's folder."""
    own_bytes: int = plan.LARGEST_COPY_BYTES
    """Size of that file; it only shrinks."""

    def hold_folder(self, stack: ExitStack) -> None:
        """Creates the run's folder with its source file in TARGET, and finds it on the server.

        Raises:
            Refused: the folder is not writable, or does not answer.
        """
        target = self.world.options.target.path
        self.log.tell("writing a file in the mounted folder")
        size_bytes = self.world.options.size_bytes or plan.LARGEST_COPY_BYTES // 2
        try:
            endpoint = stack.enter_context(self._hold_on(target, size_bytes))
        except (StageError, Unavailable) as error:
            self.lost = str(error)
            self.log.note(f"client: no test file in {target}: {error}")
            return
        facts = endpoint.facts
        self.folder = endpoint.folder
        self.source_bytes = int(facts["size_bytes"])
        self.fill_rate = self.source_bytes / max(float(facts["seconds"]), 1e-6)
        self.tells_room = int(facts["total_bytes"]) > 0
        name = self.folder.rpartition("/")[2]
        self.server_path = path_of(self.world, name, "the mounted folder", self.log)
        self.files.server_path = self.files.server_path or self.server_path

    def _hold_on(self, folder: str, size_bytes: int) -> AbstractContextManager[Endpoint]:
        """Returns a holder of the run's folder with a source file."""
        seconds = FILL_FACTOR * self.world.times().copy
        run, seed = secrets.token_hex(16), self.world.seed
        setting = created_folder.Setting(folder, run, size_bytes, seconds, seed, HELD_PARTS)
        opening, lifetime = seconds + OPENING_SECONDS, self.clock.lifetime
        return self.world.client.hold("mounted-folder", setting, Endpoint(), lifetime, opening)

    def measure(self, stack: ExitStack) -> Tasks[None]:
        """Makes all four copies in turn, as often as time allows: drift affects all alike."""
        for number in range(1 if self.world.options.runs else plan.MAX_ROUNDS):
            for copy in plan.COPY_ORDER:
                if number == 0 or self._fits(copy):
                    yield from self._copy(copy, stack)

    def _step(self, copy: str) -> Step:
        """Returns the step of a copy, without keys that vary from run to run."""
        options = self.world.options
        setting = {"copy": copy, "folder": options.folder, "target_folder": options.target.path}
        return Step("native-copy", setting, "client")

    def _fits(self, copy: str) -> bool:
        """Whether one more run of a copy fits the remaining time."""
        rate = self.log.rate(self._step(copy))
        if rate is None or self.lost:
            return False
        size = self._size(copy)
        # A push is read back.
        passes = 2.0 if copy.startswith("push") else 1.0
        return self.clock.remaining() > 1.3 * passes * size / rate + STEP_OVERHEAD_SECONDS

    def _rates(self) -> dict[str, float]:
        """Returns rates that bound the copies, by the names of plan.Rates."""
        rates = plan.known_rates(self.log)
        if self.fill_rate is not None:
            rates["push.memory"] = self.fill_rate
        for step, rate in plan.measured_rates(self.log):
            if step.stage == "native-copy":
                rates[step.setting["copy"]] = rate
        pushed = [rates[copy] for copy in plan.COPY_ORDER[:2] if copy in rates]
        if pushed:
            # Before the first pull: most paths carry about as much in the other direction.
            rates["pull.memory"] = max(pushed)
        return rates

    def _size(self, copy: str) -> int:
        rate = plan.expected_rate(copy, self._rates())
        remaining = self.clock.remaining() - STEP_OVERHEAD_SECONDS
        seconds = max(USEFUL_SECONDS / 2, min(self.world.times().copy, remaining))
        if copy.startswith("pull"):
            room = usable_bytes(self.world.client, self.files.client_folder)
            room = min(room, self.source_bytes)
        else:
            room = self.own_bytes
            if self.tells_room:
                # Asked each time: the files of this run take room there too.
                room = min(room, usable_bytes(self.world.client, self.folder, ANSWER_SECONDS))
        return plan.copy_bytes(rate, seconds, room, self.world.options.size_bytes)

    def _hold_own(self, size: int, stack: ExitStack) -> None:
        """Creates the client's file that pushes read, which is cut to each copy's size."""
        if self.own_path:
            return
        # The next run may need a larger file.
        size_bytes = self.world.options.size_bytes or min(2 * size, plan.LARGEST_COPY_BYTES // 2)
        folder = self.world.options.folder
        if self.world.options.native_command:
            source = stack.enter_context(self._hold_on(folder, size_bytes))
        else:
            arguments = self.world.client, folder, size_bytes, OPENING_SECONDS, HELD_PARTS
            source = stack.enter_context(hold_source(self.world, self.clock, *arguments))()
        self.own_path = source.path or source.folder
        self.own_bytes = int(source.facts["size_bytes"])

    def _copy(self, copy: str, stack: ExitStack) -> Tasks[None]:
        """Makes one run of one copy."""
        step = self._step(copy)
        with self.log.attempt(step, f"{copy} native", WHOLE_COPY) as add_run:
            if self.lost:
                raise Unavailable(self.lost)
            if copy == "pull.uncached" and self.server_path is None:
                raise Unavailable(NEEDS_SERVER_CACHE)
            self.clock.require_seconds()
            size = self._size(copy)
            push = copy.startswith("push")
            command = self.world.options.native_command
            if (push or command) and size >= plan.MIB:
                self._hold_own(size, stack)
            if push:
                size = min(size, self.own_bytes)
            if size < plan.MIB:
                raise Unavailable("no source file, or not enough free space for a copy of 1 MiB")
            setting = native_copy.Setting(
                **step.setting,
                size_bytes=size,
                seconds=max(USEFUL_SECONDS, self.clock.remaining()),
                seed=self.world.seed,
                command=command,
            )
            peer = Endpoint(folder=self.folder, path=self.own_path if push or command else "")
            proof = prepare_cache(self.world.server, self.server_path, copy, size)
            details = {} if proof is None else {"cache": proof}
            if push:
                self.own_bytes = size
            else:
                self.source_bytes = size
            try:
                add_run(
                    (yield Task(step, setting, peer, setting.seconds + BEFORE_SECONDS)), details
                )
            except (PartlyRan, Refused) as error:
                if any(words in str(error) for words in SILENT):
                    self.lost = f"the mount did not answer before: {error}"
                raise
