"""What copies read and write: room, caches, the source on the share, and what the user named."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bottleneck.agents import protocol
from bottleneck.agents.hosts import Host, StageError
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.clock import USEFUL_SECONDS, Clock
from bottleneck.run.files import Files
from bottleneck.run.log import NEEDS_AGENT, WHOLE_COPY, Log, Task, Tasks, step_of
from bottleneck.run.world import World
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


def copy_setting(world: World, copy: str, dialect: str, **more: Any) -> smb_copy.Setting:
    """Of a copy between the client's folder and the share, where nothing else is said."""
    usual = {"end": "folder", "size_bytes": 0, "seconds": 0.0, "seed": world.seed}
    given = {"copy": copy, "dialect": dialect, "folder": world.options.folder, **usual, **more}
    return world.apply_choices(smb_copy.Setting(**{**given, **world.options.copy_settings}))


def usable_bytes(host: Host, folder: str | None, seconds: float = 10.0) -> int:
    """How much a run may write into a host's folder."""
    return int(host.ask("usable-bytes", seconds, folder=folder))


def hold_source(
    world: World,
    clock: Clock,
    host: Host,
    folder: str,
    size_bytes: int,
    grace_seconds: float,
    parts: int = 1,
) -> AbstractContextManager[Callable[[], Endpoint]]:
    """A nameless file of payload on a host, until left; what is yielded waits until it is there."""
    setting = source_file.Setting(
        folder=folder,
        size_bytes=size_bytes,
        seconds=world.times().fill,
        seed=world.seed,
        parts=parts,
    )
    opening_seconds = setting.seconds + grace_seconds
    return host.holding("source-file", setting, Endpoint(), clock.lifetime, opening_seconds)


@dataclass(frozen=True)
class Looked:
    """What the host that has it tells of the user's file."""

    path: str
    size_bytes: int
    cached_ratio: float | None
    device: str | None


@dataclass
class Sources:
    """Room and sources of a run's copies on the share, and what the user named to be copied."""

    world: World
    clock: Clock
    log: Log
    files: Files

    def room_bytes(self, untold_bytes: int = MOST_BYTES) -> int:
        """Returns how much more may be written to the share; what its owner needs stays free.

        Beside the files that this run itself holds there. A file that is still to be made for pulls
        leaves as much room to what is pushed later. Less than LEAST_SHARE_BYTES is none.
        untold_bytes: what is taken where the server does not tell.
        """
        if self.files.limit_bytes is not None:
            return self.files.limit_bytes
        free, total = (self.files.share.facts.get(name) for name in ("free_bytes", "total_bytes"))
        if free is None or total is None:
            return untold_bytes
        if beyond_reserve_bytes(int(free), int(total)) < LEAST_SHARE_BYTES:
            return 0
        room = beyond_reserve_bytes(
            int(free) - self.files.source_bytes - self._held_bytes(), int(total)
        )
        if self.world.server is not None and self.files.server_path is not None:
            # Where it may not look it holds no file either.
            with suppress(StageError, Refused, Unavailable):
                room = min(room, usable_bytes(self.world.server, self.files.server_path))
        return room if self.files.source_bytes else room // 2

    def too_small(self, pulled: bool) -> str:
        """Why not even the smallest copy can be made: no source, or no room, with all figures."""
        if pulled and not self.files.source_bytes:
            return "no source file on the share: the push that writes it failed or had no room"
        there = f"//{self.files.share.host}/{self.files.share.share}"
        if self.files.limit_bytes is not None and not pulled:
            return f"{there}: full, or a quota is reached; free some space there"
        if not pulled and not self.files.source_bytes_of("client"):
            why = self.files.no_source.get("client", "it has not enough free space")
            return f"no test file in {self.world.options.folder}: {why}"
        free, total = (self.files.share.facts.get(name) for name in ("free_bytes", "total_bytes"))
        if pulled or free is None or total is None:
            return f"{self.world.options.folder}: not enough free space for a copy; free some space"
        return f"{there}: too small to measure: {no_room(int(free), int(total), LEAST_SHARE_BYTES)}"

    def _held_bytes(self) -> int:
        """Size of the client's own file, where it lies on the very disk that the share does."""
        own = self.world.facts["client"].folder if "client" in self.world.facts else None
        if own is None or own.total_bytes != self.files.share.facts["total_bytes"]:
            return 0
        return self.files.source_bytes_of("client")

    def ready_bytes(self, dialect: str) -> Tasks[int]:
        """Bytes of the source file; fills it first where it is empty.

        Raises:
            Unavailable: there is no room, or no time.
            PartlyRan, StageError, Refused: it could not be filled.
        """
        if not self.files.source_bytes:
            first = min(FIRST_BYTES, int(self.log.first_rates.get("push", FIRST_BYTES)))
            rate = yield from self._fill(dialect, max(plan.LEAST_COPY_BYTES, first))
            wanted = min(MOST_BYTES, self.room_bytes(), int(rate * FILL_SECONDS))
            if wanted > 2 * FIRST_BYTES:
                yield from self._fill(dialect, wanted // plan.MIB * plan.MIB)
        return self.files.source_bytes

    def pulled_file(self) -> Endpoint:
        """The file that pulls read, as the server's agent finds it."""
        folder = self.files.server_path or ""
        return Endpoint(path=os.path.join(folder, source_name(folder)))  # noqa: PTH118 - on the server

    def _fill(self, dialect: str, size_bytes: int) -> Tasks[float]:
        """Writes the file from memory; the rate, bytes per second."""
        if self.room_bytes() < size_bytes:
            raise Unavailable(NO_ROOM)
        self.clock.need(FILL_SECONDS)
        given = {"end": "memory", "size_bytes": size_bytes, "seconds": self.clock.remaining()}
        setting = copy_setting(self.world, "push.cached", dialect, fill_source=True, **given)
        peer = replace(self.files.share, path="")
        step, seconds = step_of("smb-copy", setting, "client"), setting.seconds + GRACE_SECONDS
        ran = yield Task(step, setting, peer, seconds, both=False, is_shown=False)
        self.files.source_bytes = size_bytes
        return run_rate(ran.samples)

    def look(self) -> Looked:
        """Asks the host that has it; the answer holds for this moment.

        Raises:
            Unavailable: there is no agent there, it does not find the file or may not read it.
        """
        named = self.world.options.file
        assert named is not None
        host = self.world.hosts.get(named.side)
        if host is None:
            raise Unavailable(NEEDS_AGENT)
        if named.side == "client":
            folder, name = os.path.split(named.path)
            parts = [name]
        else:
            # The run's own folder lies in TARGET's; a read-only share has none.
            own = self.files.server_path and os.path.dirname(self.files.server_path)  # noqa: PTH120 - the server's path
            folder, parts = own or self.world.options.server_folder or "", named.path.split("\\")
            if not folder:
                raise Unavailable(NOT_FOUND)
        try:
            most = plan.LARGEST_COPY_BYTES
            told = host.ask("user-file", folder=folder, parts=parts, first_bytes=most)
        except (StageError, Refused) as error:
            raise Unavailable(f"{named.path}: {error}") from None
        try:
            return protocol.from_plain(Looked, told)
        except protocol.WireError:
            raise Unavailable(f"{named.path}: invalid data from the {named.side}'s agent") from None

    def device(self, side: plan.Side) -> str | None:
        """Kernel name of what the user's file on a side lies on; None: none, or it is unknown."""
        named = self.world.options.file
        if named is None or named.side != side:
            return None
        try:
            return self.look().device
        except Unavailable:
            return None  # the file's own step will say why

    def copy_file(self, dialect: str, labels: dict[str, object]) -> Tasks[None]:
        """Pulls the user's file from the share into the client's folder, or pushes it to the run's.

        Nothing of the sender's cache is changed for it: the copy is named by what was in it.
        """
        named = self.world.options.file
        if named is None:
            return
        ratio, why = None, ""
        try:
            ratio = self.look().cached_ratio
        except Unavailable as error:
            why = str(error)
        cached = ratio is not None and ratio >= CACHED_RATIO
        pushed = named.side == "client"
        copy = f"file.{'push' if pushed else 'pull'}.{'cached' if cached else 'uncached'}"
        file = named.path if pushed else joined(self.world.options.target.folder, named.path)
        setting = copy_setting(self.world, copy, dialect, file=file, checked=not pushed, **labels)
        step = step_of("smb-copy", setting, "client")
        step.setting["file"] = setting.file
        with self.log.attempt(step, f"{copy} {dialect}", WHOLE_COPY) as take:
            if why:
                unknown = f"unknown how much of it the {named.side}'s cache holds"
                self.log.note(f"--file: {unknown}: {why}")
            self.clock.need()
            seconds = (
                self.clock.remaining()
                if self.world.is_only("smb-copy")
                else self.world.times().copy
            )
            seconds = float(self.world.options.settings.get("seconds", seconds))
            setting = replace(
                setting,
                size_bytes=self._file_bytes(named.path if pushed else "", seconds),
                seconds=max(USEFUL_SECONDS, self.clock.remaining()),
                most_seconds=min(max(USEFUL_SECONDS, seconds), self.clock.remaining()),
            )
            proven = ratio is not None and min(ratio, 1 - ratio) <= page_cache.DOUBT_RATIO
            proof = cache_proof(named.side, copy.rpartition(".")[2], proven, ratio)
            peer = replace(self.files.share, path=named.path if pushed else "")
            timeout = setting.seconds + GRACE_SECONDS
            take((yield Task(step, setting, peer, timeout)), {"cache": proof})

    def _file_bytes(self, path: str, seconds: float) -> int:
        """How much of the user's file is copied at most; path: of one that is pushed."""
        if not path:
            usable = usable_bytes(self.world.client, self.world.options.folder)
            return min(plan.LARGEST_COPY_BYTES, usable)
        pushes = [
            rate
            for step, rate in plan.measured(self.log)
            if step.stage == "smb-copy" and str(step.setting["copy"]).startswith("push")
        ]
        # Its end is not known before it is sent: as much as the slowest of the run's would take.
        rate = min(pushes, default=self.log.first_rates.get("push", UNKNOWN_RATE))
        likely = int(rate * min(seconds, self.clock.remaining() / 2))
        room = self.room_bytes(plan.LARGEST_COPY_BYTES)
        try:
            size_bytes = Path(path).stat().st_size
        except OSError as error:
            raise Unavailable(f"{path}: {error.strerror}") from None
        if size_bytes < smb_copy.FILE_LEAST_BYTES:
            raise Unavailable(f"{path} is smaller than 1 MiB; use a larger file, or --tree")
        if room < smb_copy.FILE_LEAST_BYTES:
            raise Unavailable(NO_ROOM)
        return min(size_bytes, room, max(smb_copy.FILE_LEAST_BYTES, likely))

    def copy_tree(self, dialect: str) -> Tasks[None]:
        """The files of --tree, one after the other: pushed into the run's folder, or pulled."""
        named = self.world.options.tree
        if named is None:
            return
        pushed = named.side == "client"
        tree = named.path if pushed else joined(self.world.options.target.folder, named.path)
        verb, folder = ("push", "") if pushed else ("pull", self.files.client_folder)
        usual = small_files.Setting(verb, 0, 0, dialect, 0.0, self.world.seed, tree=tree)
        setting = self.world.apply_choices(replace(usual, folder=folder))
        step = step_of("small-files", setting, "client")
        with self.log.attempt(step, f"tree {verb} {dialect}", WHOLE_COPY) as take:
            self.clock.need(LEAST_TREE_SECONDS)
            # Removing the files takes about as long as making them.
            seconds = self.clock.remaining() / 2
            if not self.world.is_only("smb-copy"):
                seconds = min(seconds, TREE_COPIES * self.world.times().copy)
            room = self.room_bytes() if pushed else usable_bytes(self.world.client, folder)
            setting = replace(setting, seconds=seconds, size_bytes=room)
            peer = replace(self.files.share, path=named.path if pushed else "")
            take((yield Task(step, setting, peer, setting.seconds + TREE_GRACE_SECONDS)))
            self._note_tree(step)

    def _note_tree(self, step: Step) -> None:
        """What of the folder was not copied."""
        made = self.log.latest(step)
        told = made.details if made else {}
        if told.get("whole") is False:
            remedy = "use a larger --budget, or a smaller folder"
            self.log.note(f"--tree: not all of it was copied ({remedy})")
        for name, what in (
            ("special_files", "skipped: links, special files or other file systems"),
            ("unreadable_files", f"could not be read ({told.get('first_unreadable')})"),
        ):
            if told.get(name):
                self.log.note(f"--tree: {told[name]} {what}")
