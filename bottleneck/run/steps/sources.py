"""Sources and room of copies: caches, the source on the share, and the user's files."""

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
from bottleneck.run.log import NEEDS_AGENT, WHOLE_COPY, Task, Tasks, step_of
from bottleneck.run.world import RunState, World
from probes.core.records import Details, Endpoint, run_rate
from probes.core.stage import NO_ROOM, Refused, Unavailable
from probes.files import page_cache, source_file
from probes.files.free_space import LEAST_SHARE_BYTES, beyond_reserve_bytes, no_room
from probes.files.served_file import source_name
from probes.smb.run_folder import join_path
from probes.stages import small_files, smb_copy

CACHE_SECONDS = 20.0
NEEDS_SERVER_CACHE = (
    "the server's page cache cannot be cleared over SMB (needs an agent that finds the "
    "share's folder)"
)
FIRST_BYTES = 2 * plan.MIB
"""First size of the source, whose rate determines the final size."""
MOST_BYTES = 128 * plan.MIB
FILL_SECONDS = 1.0
GRACE_SECONDS = 8.0
UNKNOWN_RATE = 4.0 * plan.MIB
LEAST_TREE_SECONDS = 3.0
TREE_TIMES = 3.0
"""Longest copy of a tree over the usual time of a copy."""
TREE_GRACE_SECONDS = 60.0
"""Time beyond a tree's copy, which includes the removal of pushed files."""
CACHED_RATIO = 0.5
"""Least cached share of a file whose copy counts as cached."""
NOT_FOUND = "the share's folder was not found on the server (use --server-folder DIR)"


def prepare_cache(
    host: Host | None, path: str | None, copy: str, size_bytes: int, **file: str
) -> Details | None:
    """Has a host make a pull's source cold or warm, and returns the state proven; None: it cannot.

    file: its name, unless it is the run's own source. Raises Unavailable if the source of an
    uncached copy could not be made cold.
    """
    verb, _, requested = copy.partition(".")
    if verb != "pull" or host is None or not path:
        return None
    arguments = {"path": path, "requested": requested, "first_bytes": size_bytes, **file}
    try:
        details: Details = host.ask("set-cache", CACHE_SECONDS, **arguments)
    except (StageError, Refused) as error:
        if requested == "uncached":
            raise Unavailable(f"the source stays in the page cache: {error}") from None
        return None
    return details


def cache_details(
    side: plan.Side, requested: str, proven: bool = False, cached_ratio: float | None = None
) -> Details:
    place = {"side": side, "requested": requested}
    return {**place, "proven": proven, "cached_ratio_before": cached_ratio}


def copy_setting(world: World, copy: str, dialect: str, **changes: Any) -> smb_copy.Setting:
    """Returns the setting of a copy between the client's folder and the share."""
    usual = {"end": "folder", "size_bytes": 0, "seconds": 0.0, "seed": world.seed}
    fields = {"copy": copy, "dialect": dialect, "folder": world.options.folder, **usual, **changes}
    return world.apply_choices(smb_copy.Setting(**{**fields, **world.options.copy_settings}))


def usable_bytes(host: Host, folder: str | None, seconds: float = 10.0) -> int:
    """Returns the bytes that a run may write into a host's folder."""
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
    """Holds an unnamed file of payload on a host; the yielded function waits until it is there."""
    setting = source_file.Setting(
        folder=folder,
        size_bytes=size_bytes,
        seconds=world.times().fill_source,
        seed=world.seed,
        parts=parts,
    )
    opening_seconds = setting.seconds + grace_seconds
    return host.start_hold("source-file", setting, Endpoint(), clock.lifetime, opening_seconds)


@dataclass(frozen=True)
class FileFacts:
    """Facts of the user's file, from its host."""

    path: str
    size_bytes: int
    cached_ratio: float | None
    device: str | None


@dataclass
class Sources(RunState):
    """Room and sources of a run's copies on the share, and the user's files."""

    def room_bytes(self, untold_bytes: int = MOST_BYTES) -> int:
        """Returns the bytes that may still be written to the share, without its owner's reserve.

        The files that this run holds there are subtracted. Before the pulls' source exists, half is
        kept for it. Less than LEAST_SHARE_BYTES counts as none. untold_bytes: result if the server
        does not report its free space.
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
            # An agent that may not look there says nothing of its room: SMB's figure stands.
            with suppress(StageError, Refused, Unavailable):
                room = min(room, usable_bytes(self.world.server, self.files.server_path))
        return room if self.files.source_bytes else room // 2

    def why_no_copy(self, pulled: bool) -> str:
        """Returns why not even the smallest copy can be made: no source, or no room."""
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
        """Returns the size of the client's file if it is on the same disk as the share."""
        folder = self.world.facts["client"].folder if "client" in self.world.facts else None
        if folder is None or folder.total_bytes != self.files.share.facts["total_bytes"]:
            return 0
        return self.files.source_bytes_of("client")

    def fill_source(self, dialect: str) -> Tasks[int]:
        """Returns the size of the source file; fills it first if it is empty.

        Raises:
            Unavailable: there is no room, or no time.
            PartlyRan, StageError, Refused: it could not be filled.
        """
        if not self.files.source_bytes:
            first = min(FIRST_BYTES, int(self.log.first_rates.get("push", FIRST_BYTES)))
            rate = yield from self._fill(dialect, max(plan.SLOW_PATH_COPY_BYTES, first))
            needed = min(MOST_BYTES, self.room_bytes(), int(rate * FILL_SECONDS))
            if needed > 2 * FIRST_BYTES:
                yield from self._fill(dialect, needed // plan.MIB * plan.MIB)
        return self.files.source_bytes

    def pull_source(self) -> Endpoint:
        """Returns an endpoint with the server's path of the file that pulls read."""
        folder = self.files.server_path or ""
        return Endpoint(path=os.path.join(folder, source_name(folder)))  # noqa: PTH118 - on the server

    def _fill(self, dialect: str, size_bytes: int) -> Tasks[float]:
        """Writes the file from memory; returns the rate, bytes per second."""
        if self.room_bytes() < size_bytes:
            raise Unavailable(NO_ROOM)
        self.clock.require_seconds(FILL_SECONDS)
        fields = {"end": "memory", "size_bytes": size_bytes, "seconds": self.clock.remaining()}
        setting = copy_setting(self.world, "push.cached", dialect, fill_source=True, **fields)
        peer = replace(self.files.share, path="")
        step, seconds = step_of("smb-copy", setting, "client"), setting.seconds + GRACE_SECONDS
        ran = yield Task(step, setting, peer, seconds, both=False, is_shown=False)
        self.files.source_bytes = size_bytes
        return run_rate(ran.samples)

    def file_facts(self) -> FileFacts:
        """Asks the host of the user's file for its current facts.

        Raises:
            Unavailable: there is no agent, or it does not find the file or may not read it.
        """
        file = self.world.options.file
        assert file is not None
        host = self.world.hosts.get(file.side)
        if host is None:
            raise Unavailable(NEEDS_AGENT)
        if file.side == "client":
            folder, name = os.path.split(file.path)
            parts = [name]
        else:
            # The run's folder is in TARGET; a read-only share has none.
            parent = self.files.server_path and os.path.dirname(self.files.server_path)  # noqa: PTH120 - the server's path
            folder, parts = parent or self.world.options.server_folder or "", file.path.split("\\")
            if not folder:
                raise Unavailable(NOT_FOUND)
        try:
            limit = plan.LARGEST_COPY_BYTES
            answer = host.ask("user-file", folder=folder, parts=parts, first_bytes=limit)
        except (StageError, Refused) as error:
            raise Unavailable(f"{file.path}: {error}") from None
        try:
            return protocol.from_plain(FileFacts, answer)
        except protocol.WireError:
            raise Unavailable(f"{file.path}: invalid data from the {file.side}'s agent") from None

    def device(self, side: plan.Side) -> str | None:
        """Returns the kernel's name of the device of the user's file on a side; None: unknown."""
        file = self.world.options.file
        if file is None or file.side != side:
            return None
        try:
            return self.file_facts().device
        except Unavailable:
            return None  # the file's own step will report the error

    def copy_file(self, dialect: str, protection: dict[str, object]) -> Tasks[None]:
        """Pulls the user's file into the client's folder, or pushes it to the run's folder.

        The sender's cache is not changed: the copy is named after its present state.
        """
        entry = self.world.options.file
        if entry is None:
            return
        ratio, why = None, ""
        try:
            ratio = self.file_facts().cached_ratio
        except Unavailable as error:
            why = str(error)
        cached = ratio is not None and ratio >= CACHED_RATIO
        pushed = entry.side == "client"
        copy = f"file.{'push' if pushed else 'pull'}.{'cached' if cached else 'uncached'}"
        file = entry.path if pushed else join_path(self.world.options.target.folder, entry.path)
        setting = copy_setting(
            self.world, copy, dialect, file=file, checked=not pushed, **protection
        )
        step = step_of("smb-copy", setting, "client")
        step.setting["file"] = setting.file
        with self.log.attempt(step, f"{copy} {dialect}", WHOLE_COPY) as add_run:
            if why:
                unknown = f"unknown how much of it the {entry.side}'s cache holds"
                self.log.note(f"--file: {unknown}: {why}")
            self.clock.require_seconds()
            seconds = (
                self.clock.remaining()
                if self.world.is_only("smb-copy")
                else self.world.times().copy
            )
            seconds = float(self.world.options.settings.get("seconds", seconds))
            setting = replace(
                setting,
                size_bytes=self._file_bytes(entry.path if pushed else "", seconds),
                seconds=max(USEFUL_SECONDS, self.clock.remaining()),
                most_seconds=min(max(USEFUL_SECONDS, seconds), self.clock.remaining()),
            )
            proven = ratio is not None and min(ratio, 1 - ratio) <= page_cache.DOUBT_RATIO
            cache = cache_details(entry.side, copy.rpartition(".")[2], proven, ratio)
            peer = replace(self.files.share, path=entry.path if pushed else "")
            timeout = setting.seconds + GRACE_SECONDS
            add_run((yield Task(step, setting, peer, timeout)), {"cache": cache})

    def _file_bytes(self, path: str, seconds: float) -> int:
        """Returns the most bytes of the user's file to copy; path: of a pushed file."""
        if not path:
            usable = usable_bytes(self.world.client, self.world.options.folder)
            return min(plan.LARGEST_COPY_BYTES, usable)
        pushes = [
            rate
            for step, rate in plan.measured_rates(self.log)
            if step.stage == "smb-copy" and str(step.setting["copy"]).startswith("push")
        ]
        # Its duration is unknown: as many bytes as the run's slowest push would send.
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
        """Copies the files of --tree one by one: pushed into the run's folder, or pulled."""
        entry = self.world.options.tree
        if entry is None:
            return
        pushed = entry.side == "client"
        tree = entry.path if pushed else join_path(self.world.options.target.folder, entry.path)
        verb, folder = ("push", "") if pushed else ("pull", self.files.client_folder)
        usual = small_files.Setting(verb, 0, 0, dialect, 0.0, self.world.seed, tree=tree)
        setting = self.world.apply_choices(replace(usual, folder=folder))
        step = step_of("small-files", setting, "client")
        with self.log.attempt(step, f"tree {verb} {dialect}", WHOLE_COPY) as add_run:
            self.clock.require_seconds(LEAST_TREE_SECONDS)
            # Removing the files takes about as long as creating them.
            seconds = self.clock.remaining() / 2
            if not self.world.is_only("smb-copy"):
                seconds = min(seconds, TREE_TIMES * self.world.times().copy)
            room = self.room_bytes() if pushed else usable_bytes(self.world.client, folder)
            setting = replace(setting, seconds=seconds, size_bytes=room)
            peer = replace(self.files.share, path=entry.path if pushed else "")
            add_run((yield Task(step, setting, peer, setting.seconds + TREE_GRACE_SECONDS)))
            self._note_tree(step)

    def _note_tree(self, step: Step) -> None:
        """Notes which parts of the folder were not copied."""
        latest = self.log.latest(step)
        details = latest.details if latest else {}
        if details.get("whole") is False:
            remedy = "use a larger --budget, or a smaller folder"
            self.log.note(f"--tree: not all of it was copied ({remedy})")
        for name, what in (
            ("special_files", "skipped: links, special files or other file systems"),
            ("unreadable_files", f"could not be read ({details.get('first_unreadable')})"),
        ):
            if details.get(name):
                self.log.note(f"--tree: {details[name]} {what}")
