"""The disks of both hosts: a file of our own on each for the run, and what fio reads there."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace

from bottleneck.agents.hosts import StageError
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.clock import Clock
from bottleneck.run.files import Files
from bottleneck.run.log import NEEDS_AGENT, Log, Task, Tasks, step_of
from bottleneck.run.steps.sources import Sources, hold_source
from bottleneck.run.world import World
from probes.core.records import Endpoint
from probes.core.stage import LONG_BUDGET_SECONDS, USUAL_BUDGET_SECONDS, Refused, Unavailable
from probes.files.free_space import HELD_PARTS
from probes.stages import disk

FILL_GRACE_SECONDS = 20.0
STEP_GRACE_SECONDS = 15.0
ZONE_GRACE_SECONDS = 1.5
"""fio's pause before each of a zone's three passes."""
LEAST_SOURCE_BYTES, SOURCE_TIMES = 64 * plan.MIB, 1.5
"""Of a host's own file: what tells a disk, and what a copy may move in its time."""
LEAST_LEFT_SECONDS = 4.0
"""What fio's start and its pauses may take beside a step's own time."""
SUSTAINED_BYTES = 2 << 30
"""Enough to fill most caches, and no more than a server's RAM can bear to have dirty."""
ZONES_BYTES = 2 << 30
"""Written for all zones of a disk together, at most."""
ZONE_WRITE_SECONDS = 2.0
"""Of each zone: the disk's own cache and the last flush are a small part of it."""
NEAR_RATIO = 0.6
"""Of what its disk gives, from which on a copy may be held by it."""
ALONE = "the rate of each disk by itself"
ALONE_TIMES = 4.0
"""How much longer a step is where nothing but the disk was asked for."""


Worth = frozenset[tuple[str, str]] | None
"""Sides with read or write; None: all of them."""


def _grace(setting: disk.Setting) -> float:
    """How much longer than its time a step may take."""
    if setting.pattern == "zones":
        # Files that are placed are written first, for as long again; some zones once more.
        return STEP_GRACE_SECONDS + 2 * setting.seconds + ZONE_GRACE_SECONDS * setting.zones
    return STEP_GRACE_SECONDS


@dataclass
class Disks:
    """The disks of both hosts, and a file of this tool's own on each."""

    world: World
    clock: Clock
    log: Log
    files: Files
    sources: Sources

    def hold_sources(self, stack: ExitStack, sides: tuple[plan.Side, ...] = plan.SIDES) -> None:
        """A nameless file of payload in each side's folder that has none, until the stack closes.

        Raises:
            Refused: the client's folder cannot be written to; pushes would have no source.
        """
        self.take_sources(self.begin_sources(stack, sides))

    def begin_sources(
        self, stack: ExitStack, sides: tuple[plan.Side, ...]
    ) -> dict[plan.Side, Callable[[], Endpoint]]:
        """Begins to write them, which goes on beside what does not need them."""
        settings = self.world.options.settings
        needless = (settings.get("verb"), settings.get("pattern")) == ("write", "zones")
        begun: dict[plan.Side, Callable[[], Endpoint]] = {}
        if needless or self._only_reads() or self.world.options.copy.startswith("pull"):
            return begun
        for side, host in self.world.hosts.items():
            known = self.files.sources.keys() | self.files.no_source.keys()
            folder = self.files.test_folder(side)
            if side not in sides or side in known or not folder:
                continue
            size_bytes = self.world.options.size_bytes or self._source_bytes()
            self.log.tell(f"writing a file on the {side}")
            given = host, folder, size_bytes, FILL_GRACE_SECONDS, HELD_PARTS
            held = hold_source(self.world, self.clock, *given)
            begun[side] = stack.enter_context(held)
        return begun

    def take_sources(self, begun: Mapping[plan.Side, Callable[[], Endpoint]]) -> None:
        """Waits for those that were begun. Errors: see hold_sources."""
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
        """Sides that need an own file before the copies: the server's may read the pulls'."""
        long = self.world.options.budget_seconds >= LONG_BUDGET_SECONDS
        other = long or not self._reads_share() or self.files.agent_folder
        return plan.SIDES if other else ("client",)

    def needs_server_file(self, worth: Worth) -> bool:
        """Whether what is to be measured needs another file there than the pulls' source."""
        if worth is None:
            return True
        at_server = any(side == "server" for side, _ in worth)
        return at_server and self.files.source_bytes < LEAST_SOURCE_BYTES

    def _source_bytes(self) -> int:
        """As much as the copies need at the rate of a first one: writing it takes time."""
        rate = max(self.log.first_rates.values(), default=math.inf)
        if self.world.options.budget_seconds >= LONG_BUDGET_SECONDS:
            rate = math.inf
        wanted = max(LEAST_SOURCE_BYTES, SOURCE_TIMES * rate * self.world.times().copy)
        return round(min(plan.LARGEST_COPY_BYTES // 2, wanted))

    def measure(self, worth: Worth = None) -> Tasks[list[str]]:
        """The system's fio on both folders' disks: what bounds the copies.

        Where nothing but the disk was asked for, all of it; alone what --device and --file name.
        worth: by side and read or write; None: all of them. Returns the names of skipped tests.
        """
        alone, options = self.world.is_only("disk"), self.world.options
        at_server = any(
            x is not None and x.side == "server" for x in (options.device, options.file)
        )
        here_alone = alone and options.agent == "none" and not at_server
        sides: tuple[plan.Side, ...] = ("client",) if here_alone else plan.SIDES
        if plan.DISK_CHOICES & options.settings.keys():
            for each in plan.chosen_disk_steps(sides, options):
                yield from self._measure_all(each, ALONE)
            return []
        left_out = []
        for each in plan.disk_steps(sides, options, alone):
            usual = each.pattern == "sequential"
            if worth is not None and (each.side, each.verb) not in worth:
                left_out += [f"disk {each.side} {each.verb}"] if usual else []
            elif alone or usual:
                yield from self._measure_all(each, ALONE)
        return left_out

    def explain(self, why: str) -> Tasks[None]:
        """What tells why a disk gives what it gives: after copies that may come near to it."""
        if self.world.is_only("disk"):
            return
        for each in plan.disk_steps(plan.SIDES, self.world.options):
            if each.pattern != "sequential" and self.explains(each):
                yield from self._measure_all(each, why)

    def _measure_all(self, each: plan.DiskStep, why: str) -> Tasks[None]:
        named, settings = self.world.options.device, self.world.options.settings
        chosen = named.path if named and plan.DISK_CHOICES & settings.keys() else ""
        # What says its own time is obeyed.
        said = "seconds" in settings or each.writes_zones
        times = ALONE_TIMES if self.world.is_only("disk") and not said else 1.0
        for device in self._devices(each) if each.pattern == "zones" else [chosen]:
            yield from self._measure(each, device, times, why)

    def _only_reads(self) -> bool:
        """Whether nothing but a device or a file that is named is read: nothing is written."""
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
        with self.log.attempt(step, label, why, self._is_optional(each)) as take:
            if each.side not in self.world.hosts:
                raise Unavailable(NEEDS_AGENT)
            setting, peer = yield from self._found(each, setting, step)
            beside = 0.0 if usual_pattern and not setting.is_custom else LEAST_LEFT_SECONDS
            self.clock.need(seconds + beside)
            take((yield Task(step, setting, peer, seconds + _grace(setting), both=False)))

    def _found(
        self, each: plan.DiskStep, setting: disk.Setting, step: Step
    ) -> Tasks[tuple[disk.Setting, Endpoint]]:
        """The setting with what is found out when its turn comes, and the file that is read."""
        source, folder = self.files.sources.get(each.side), self.files.folder(each.side)
        size_bytes = self.world.options.size_bytes
        if each.pattern == "file":
            path = self.sources.look().path
            folder = os.path.dirname(path)  # noqa: PTH120 - of whichever host
            step.setting.update({"path": path, "folder": folder})
            most = plan.LARGEST_COPY_BYTES
            return replace(setting, path=path, folder=folder, size_bytes=most), Endpoint()
        if setting.device:
            return setting, Endpoint()
        if each.pattern == "sustained" and source is not None:
            return replace(setting, size_bytes=size_bytes or SUSTAINED_BYTES), source
        if each.writes_zones and folder:
            return replace(setting, size_bytes=size_bytes or ZONES_BYTES), source or Endpoint()
        reads = source is None and each.verb == "read"
        if reads and each.side == "server" and self._reads_share():
            held_bytes = yield from self.sources.ready_bytes(self.files.dialect)
            folder = self.files.server_path or ""
            step.setting.update({"folder": folder, "size_bytes": held_bytes})
            setting = replace(setting, folder=folder, size_bytes=held_bytes)
            return setting, self.sources.pulled_file()
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

        Where a file lies explains a copy, no more, unless that was asked for.
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
            left = self.clock.remaining() - 1.5 * LEAST_LEFT_SECONDS
            return min(zones * seconds, max(zones * seconds / 2, left))
        if each.pattern not in ("sequential", "random"):
            return float(getattr(times, each.pattern))
        return times.disk_cached if each.cache == "cached" else times.disk

    def _devices(self, each: plan.DiskStep) -> list[str]:
        """Nodes of the devices whose zones are read; an empty one: files in the folder have to do.

        Of a disk without heads zones are written only where that was chosen: they are all alike.
        """
        if each.verb == "write":
            known = self.world.facts.get(each.side)
            turns = known is None or known.folder is None or known.folder.rotational is not False
            return [""] if turns or "pattern" in self.world.options.settings else []
        named = self.world.options.device
        if named is not None and named.side == each.side:
            return [named.path]
        facts = self.world.facts.get(each.side)
        below = facts.folder.device if facts is not None and facts.folder is not None else None
        own = self.sources.device(each.side)
        found = [own] if self._only_reads() else [below, own]
        # The kernel writes a slash in a node's name as ! (drivers/base/core.c).
        nodes = dict.fromkeys(f"/dev/{name.replace('!', '/')}" for name in found if name)
        readable = [node for node in nodes if self._readable(each.side, node)]
        if readable or self._only_reads():
            return readable or list(nodes)
        # Files that are placed in the folder show its zones, but have to be written first.
        return (
            [""] if plan.has_time_to_write(self.world.options, self.world.is_only("disk")) else []
        )

    def _readable(self, side: plan.Side, node: str) -> bool:
        """Whether a host may read a device; one that gives no answer says so in a note."""
        host = self.world.hosts.get(side)
        try:
            return host is not None and host.ask("readable-device", node=node) is True
        except (StageError, Unavailable, Refused) as error:
            self.log.note(f"{side}: {node}: {error}")
            return False

    def explains(self, step: plan.DiskStep) -> bool:
        """Whether a step of the disk beyond its rate is worth its time in this run."""
        if plan.has_time_to_write(self.world.options, is_only=False):
            return True
        match step.pattern:
            case "file":
                return True
            case "zones":
                named = (self.world.options.device, self.world.options.file)
                if any(each is not None and each.side == step.side for each in named):
                    return True
                return self._near(step.side)
            case "synced":
                return self._forced(step.side)
        return False

    def _near(self, side: plan.Side) -> bool:
        """Whether a copy ran near what the disk of a side reads or writes."""
        known = plan.known_rates(self.log)
        for step, rate in plan.measured(self.log):
            name = str(step.setting.get("copy", ""))
            if step.stage not in ("smb-copy", "native-copy") or step.setting.get("end") == "memory":
                continue
            if name.startswith("server."):
                continue
            verb, _, cache = name.rpartition(".")
            sender = "client" if verb.endswith("push") else "server"
            does = "write" if sender != side else "read"
            least = NEAR_RATIO * known.get(f"{side}.{does}", math.inf)
            if rate >= least and (does, cache) != ("read", "cached"):
                return True
        return False

    def _forced(self, side: plan.Side) -> bool:
        """Whether a host is known to force each write to its disk."""
        config = (self.world.samba_config or []) if side == "server" else []
        if any(each.get("option") == "sync always" for each in config):
            return True
        facts = self.world.facts.get(side)
        folder = facts.folder if facts is not None else None
        return folder is not None and "sync" in (folder.mount_options or "").split(",")
