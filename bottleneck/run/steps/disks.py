"""Disk steps of both hosts: a source file on each for the run, and fio's measurements."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace

from bottleneck.agents.hosts import StageError
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.log import NEEDS_AGENT, Task, Tasks, step_of
from bottleneck.run.steps.sources import Sources, hold_source
from bottleneck.run.world import RunState
from probes.core.records import Endpoint
from probes.core.stage import LONG_BUDGET_SECONDS, USUAL_BUDGET_SECONDS, Refused, Unavailable
from probes.files.free_space import HELD_PARTS
from probes.stages import disk

FILL_GRACE_SECONDS = 20.0
STEP_GRACE_SECONDS = 15.0
ZONE_GRACE_SECONDS = 1.5
"""fio's pause before each of a zone's three passes."""
LEAST_SOURCE_BYTES, SOURCE_TIMES = 64 * plan.MIB, 1.5
"""Least size of a host's source file, and its size over the bytes of a copy in its time."""
LEAST_LEFT_SECONDS = 4.0
"""Time of fio's start and its pauses beside a step's own time."""
SUSTAINED_BYTES = 2 << 30
"""Enough to fill most caches, and no more dirty data than a server's RAM can bear."""
ZONES_BYTES = 2 << 30
"""Most bytes written to all zones of a disk together."""
ZONE_WRITE_SECONDS = 2.0
"""Time of each zone, of which the disk's cache and the last flush are a small part."""
NEAR_RATIO = 0.6
"""Least rate of a copy over its disk's at which the disk may limit it."""
ALONE = "the rate of each disk by itself"
ALONE_TIMES = 4.0
"""Factor of a step's time if only the disk stage is requested."""


Worth = frozenset[tuple[str, str]] | None
"""Sides with read or write; None: all of them."""


def _grace(setting: disk.Setting) -> float:
    """Returns the seconds that a step may take beyond its time."""
    if setting.pattern == "zones":
        # Placed files are written first, which takes as long again; some zones once more.
        return STEP_GRACE_SECONDS + 2 * setting.seconds + ZONE_GRACE_SECONDS * setting.zones
    return STEP_GRACE_SECONDS


@dataclass
class Disks(RunState):
    """Disks of both hosts, with a source file on each."""

    sources: Sources

    def hold_sources(self, stack: ExitStack, sides: tuple[plan.Side, ...] = plan.SIDES) -> None:
        """Creates an unnamed file of payload in each side's folder until the stack closes.

        Raises:
            Refused: the client's folder is not writable; pushes would have no source.
        """
        self.take_sources(self.begin_sources(stack, sides))

    def begin_sources(
        self, stack: ExitStack, sides: tuple[plan.Side, ...]
    ) -> dict[plan.Side, Callable[[], Endpoint]]:
        """Starts writing the files, which goes on beside steps that do not need them."""
        settings = self.world.options.settings
        needless = (settings.get("verb"), settings.get("pattern")) == ("write", "zones")
        begun: dict[plan.Side, Callable[[], Endpoint]] = {}
        if needless or self._only_reads() or self.world.options.copy.startswith("pull"):
            return begun
        for side, host in self.world.hosts.items():
            settled = self.files.sources.keys() | self.files.no_source.keys()
            folder = self.files.test_folder(side)
            if side not in sides or side in settled or not folder:
                continue
            size_bytes = self.world.options.size_bytes or self._source_bytes()
            self.log.tell(f"writing a file on the {side}")
            arguments = host, folder, size_bytes, FILL_GRACE_SECONDS, HELD_PARTS
            begun[side] = stack.enter_context(hold_source(self.world, self.clock, *arguments))
        return begun

    def take_sources(self, begun: Mapping[plan.Side, Callable[[], Endpoint]]) -> None:
        """Waits for the files that were begun. Errors: see hold_sources."""
        for side, opened in begun.items():
            try:
                self.files.sources[side] = opened()
            except (StageError, Unavailable, Refused) as error:
                if side == "client" and isinstance(error, Refused):
                    raise
                self.files.no_source[side] = str(error)
                folder = self.files.test_folder(side)
                self.log.note(f"{side}: no test file in {folder}: {error}")

    def first_sides(self) -> tuple[plan.Side, ...]:
        """Returns sides that need a file before the copies: the server may read the pulls'."""
        long = self.world.options.budget_seconds >= LONG_BUDGET_SECONDS
        other = long or not self._reads_share() or self.files.agent_folder
        return plan.SIDES if other else ("client",)

    def needs_server_file(self, worth: Worth) -> bool:
        """Whether the planned disk steps need a file on the server beside the pulls' source."""
        if worth is None:
            return True
        at_server = any(side == "server" for side, _ in worth)
        return at_server and self.files.source_bytes < LEAST_SOURCE_BYTES

    def _source_bytes(self) -> int:
        """Returns the size that copies need at the rate of a first one: writing takes time."""
        rate = max(self.log.first_rates.values(), default=math.inf)
        if self.world.options.budget_seconds >= LONG_BUDGET_SECONDS:
            rate = math.inf
        size_bytes = max(LEAST_SOURCE_BYTES, SOURCE_TIMES * rate * self.world.times().copy)
        return round(min(plan.LARGEST_COPY_BYTES // 2, size_bytes))

    def measure(self, worth: Worth = None) -> Tasks[list[str]]:
        """Measures both folders' disks by the system's fio, to bound the copies.

        If only the disk stage is requested, all patterns; with --device or --file only those.
        worth: sides with read or write; None: all. Returns the names of skipped tests.
        """
        is_only, options = self.world.is_only("disk"), self.world.options
        at_server = any(
            x is not None and x.side == "server" for x in (options.device, options.file)
        )
        here_alone = is_only and options.agent == "none" and not at_server
        sides: tuple[plan.Side, ...] = ("client",) if here_alone else plan.SIDES
        if plan.DISK_CHOICES & options.settings.keys():
            for each in plan.chosen_disk_steps(sides, options):
                yield from self._measure_all(each, ALONE)
            return []
        left_out = []
        for each in plan.disk_steps(sides, options, is_only):
            usual = each.pattern == "sequential"
            if worth is not None and (each.side, each.verb) not in worth:
                left_out += [f"disk {each.side} {each.verb}"] if usual else []
            elif is_only or usual:
                yield from self._measure_all(each, ALONE)
        return left_out

    def explain(self, why: str) -> Tasks[None]:
        """Measures the patterns that explain a disk's rate, for disks that may limit a copy."""
        if self.world.is_only("disk"):
            return
        for each in plan.disk_steps(plan.SIDES, self.world.options):
            if each.pattern != "sequential" and self.explains(each):
                yield from self._measure_all(each, why)

    def _measure_all(self, each: plan.DiskStep, why: str) -> Tasks[None]:
        device_option, settings = self.world.options.device, self.world.options.settings
        path = device_option.path if device_option and plan.DISK_CHOICES & settings.keys() else ""
        # A given time is obeyed.
        said = "seconds" in settings or each.writes_zones
        times = ALONE_TIMES if self.world.is_only("disk") and not said else 1.0
        for device in self._devices(each) if each.pattern == "zones" else [path]:
            yield from self._measure(each, device, times, why)

    def _only_reads(self) -> bool:
        """Whether only a named device or file is read, and nothing is written."""
        steps = plan.disk_steps(plan.SIDES, self.world.options, self.world.is_only("disk"))
        return all(each.pattern in ("zones", "file") for each in steps)

    def _measure(self, each: plan.DiskStep, device: str, times: float, why: str) -> Tasks[None]:
        seconds, files = times * self._seconds(each), self.files
        usual = disk.Setting(
            **asdict(each),
            folder=files.test_folder(each.side),
            size_bytes=files.source_bytes_of(each.side) or files.source_bytes_of("client"),
            seconds=seconds,
            seed=self.world.seed,
            device=device,
            zones=self.world.options.zones,
        )
        setting = self.world.apply_choices(usual)
        step = step_of("disk", setting, each.side)
        usual_pattern = each.pattern == "sequential"
        label = f"disk {each.side} {each.verb} {each.cache if usual_pattern else each.pattern}"
        with self.log.attempt(step, label, why, self._is_optional(each)) as add_run:
            if each.side not in self.world.hosts:
                raise Unavailable(NEEDS_AGENT)
            setting, peer = yield from self._resolve(each, setting, step)
            beside = 0.0 if usual_pattern and not setting.is_custom else LEAST_LEFT_SECONDS
            self.clock.require_seconds(seconds + beside)
            add_run((yield Task(step, setting, peer, seconds + _grace(setting), both=False)))

    def _resolve(
        self, each: plan.DiskStep, setting: disk.Setting, step: Step
    ) -> Tasks[tuple[disk.Setting, Endpoint]]:
        """Completes the setting when its turn comes; returns it with the file to read."""
        source, folder = self.files.sources.get(each.side), self.files.folder(each.side)
        size_bytes = self.world.options.size_bytes
        if each.pattern == "file":
            path = self.sources.file_facts().path
            folder = os.path.dirname(path)  # noqa: PTH120 - of whichever host
            step.setting.update({"path": path, "folder": folder})
            limit = plan.LARGEST_COPY_BYTES
            return replace(setting, path=path, folder=folder, size_bytes=limit), Endpoint()
        if setting.device:
            return setting, Endpoint()
        if each.pattern == "sustained" and source is not None:
            return replace(setting, size_bytes=size_bytes or SUSTAINED_BYTES), source
        if each.writes_zones and folder:
            return replace(setting, size_bytes=size_bytes or ZONES_BYTES), source or Endpoint()
        reads = source is None and each.verb == "read"
        if reads and each.side == "server" and self._reads_share():
            held_bytes = yield from self.sources.fill_source(self.files.dialect)
            folder = self.files.server_path or ""
            step.setting.update({"folder": folder, "size_bytes": held_bytes})
            setting = replace(setting, folder=folder, size_bytes=held_bytes)
            return setting, self.sources.pull_source()
        why_none = self.files.no_source.get(each.side)
        if reads or source is None and (why_none or not folder):
            lost = "the share's folder was not found there (use --server-folder DIR)"
            if self.files.share.facts.get("read_only"):
                lost = "the share is read-only: no test file can be made there"
            raise Unavailable(
                (why_none or "no test file could be written there") if folder else lost
            )
        return setting, source or Endpoint()

    def _is_optional(self, each: plan.DiskStep) -> bool:
        """Whether the run is complete without a step.

        Zones only explain a copy, unless they are requested.
        """
        if each.pattern in ("sequential", "file") or self.world.options.device is not None:
            return False
        if each.writes_zones:
            return "pattern" not in self.world.options.settings
        return not self.world.is_only("disk") or self.world.options.file is not None

    def _reads_share(self) -> bool:
        """Whether the server's agent finds the file that pulls read."""
        pulls = any(each.startswith("pull") for each in self.world.options.copies)
        return self.world.wants("smb-copy") and pulls and self.files.server_path is not None

    def _seconds(self, each: plan.DiskStep) -> float:
        times = self.world.times()
        if each.writes_zones and "seconds" not in self.world.options.settings:
            scale = min(1.0, times.zones / plan.times(USUAL_BUDGET_SECONDS).zones)
            seconds, zones = ZONE_WRITE_SECONDS * scale, self.world.options.zones
            remaining = self.clock.remaining() - 1.5 * LEAST_LEFT_SECONDS
            return min(zones * seconds, max(zones * seconds / 2, remaining))
        if each.pattern not in ("sequential", "random"):
            return float(getattr(times, each.pattern))
        return times.disk_cached if each.cache == "cached" else times.disk

    def _devices(self, each: plan.DiskStep) -> list[str]:
        """Returns nodes of devices whose zones are read; an empty one: files in the folder.

        Zones of a disk without heads are written only on request: they are all alike.
        """
        if each.verb == "write":
            facts = self.world.facts.get(each.side)
            spins = facts is None or facts.folder is None or facts.folder.rotational is not False
            return [""] if spins or "pattern" in self.world.options.settings else []
        device_option = self.world.options.device
        if device_option is not None and device_option.side == each.side:
            return [device_option.path]
        facts = self.world.facts.get(each.side)
        below = facts.folder.device if facts is not None and facts.folder is not None else None
        of_file = self.sources.device(each.side)
        names = [of_file] if self._only_reads() else [below, of_file]
        # The kernel writes a slash in a node's name as ! (drivers/base/core.c).
        nodes = dict.fromkeys(f"/dev/{name.replace('!', '/')}" for name in names if name)
        readable = [node for node in nodes if self._readable(each.side, node)]
        if readable or self._only_reads():
            return readable or list(nodes)
        # Placed files in the folder show its zones, but must be written first.
        is_long = plan.has_time_to_write(self.world.options, self.world.is_only("disk"))
        return [""] if is_long else []

    def _readable(self, side: plan.Side, node: str) -> bool:
        """Whether a host may read a device; an error gives a note."""
        host = self.world.hosts.get(side)
        try:
            return host is not None and host.ask("readable-device", node=node) is True
        except (StageError, Unavailable, Refused) as error:
            self.log.note(f"{side}: {node}: {error}")
            return False

    def explains(self, step: plan.DiskStep) -> bool:
        """Whether a step beyond the disk's rate is worth its time in this run."""
        if plan.has_time_to_write(self.world.options, is_only=False):
            return True
        match step.pattern:
            case "file":
                return True
            case "zones":
                choices = (self.world.options.device, self.world.options.file)
                if any(each is not None and each.side == step.side for each in choices):
                    return True
                return self._near(step.side)
            case "synced":
                return self._forces_writes(step.side)
        return False

    def _near(self, side: plan.Side) -> bool:
        """Whether a copy's rate came near the disk's rate on a side."""
        rates = plan.known_rates(self.log)
        for step, rate in plan.measured_rates(self.log):
            name = str(step.setting.get("copy", ""))
            if step.stage not in ("smb-copy", "native-copy") or step.setting.get("end") == "memory":
                continue
            if name.startswith("server."):
                continue
            verb, _, cache = name.rpartition(".")
            sender = "client" if verb.endswith("push") else "server"
            does = "write" if sender != side else "read"
            threshold = NEAR_RATIO * rates.get(f"{side}.{does}", math.inf)
            if rate >= threshold and (does, cache) != ("read", "cached"):
                return True
        return False

    def _forces_writes(self, side: plan.Side) -> bool:
        """Whether a host's settings force each write to its disk."""
        config = (self.world.samba_config or []) if side == "server" else []
        if any(each.get("option") == "sync always" for each in config):
            return True
        facts = self.world.facts.get(side)
        folder = facts.folder if facts is not None else None
        return folder is not None and "sync" in (folder.mount_options or "").split(",")
