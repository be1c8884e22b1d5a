"""The disks of both hosts: a file of our own on each for the run, and what fio reads there."""

from __future__ import annotations

import math
import os
from contextlib import ExitStack
from dataclasses import asdict, replace

from bottleneck.agents.hosts import StageError
from bottleneck.run import plan
from bottleneck.run.bench import NEEDS_AGENT, Bench
from bottleneck.run.steps import files
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


Disks = frozenset[tuple[str, str]] | None
"""Sides with read or write; None: all of them."""


def hold_sources(bench: Bench, stack: ExitStack, sides: tuple[plan.Side, ...] = plan.SIDES) -> None:
    """A nameless file of payload in each side's folder, if it has none yet, until the stack closes.

    Raises:
        Refused: the client's folder cannot be written to; pushes would have no source.
    """
    settings = bench.world.options.settings
    needless = (settings.get("verb"), settings.get("pattern")) == ("write", "zones")
    if needless or _only_reads(bench) or bench.world.options.copy.startswith("pull"):
        return
    for side, host in bench.world.hosts.items():
        folder = bench.world.test_file_folder(side)
        if side not in sides or side in bench.sources or side in bench.no_source or not folder:
            continue
        size_bytes = bench.world.options.size_bytes or _source_bytes(bench)
        bench.tell(f"writing a file on the {side}")
        try:
            held = files.hold_source(
                bench, host, folder, size_bytes, FILL_GRACE_SECONDS, HELD_PARTS
            )
            bench.sources[side] = stack.enter_context(held)
        except (StageError, Unavailable, Refused) as error:
            if side == "client" and isinstance(error, Refused):
                raise
            bench.no_source[side] = str(error)
            bench.note(f"{side}: no test file in {folder}: {error}")


def first_sides(bench: Bench) -> tuple[plan.Side, ...]:
    """Sides that need a file of their own before the copies: the server's may read the pulls'."""
    long = bench.world.options.budget_seconds >= LONG_BUDGET_SECONDS
    other = long or not _reads_share(bench) or bench.world.agent_folder
    return plan.SIDES if other else ("client",)


def needs_server_file(bench: Bench, worth: Disks) -> bool:
    """Whether what is to be measured needs another file at the server than the pulls' source."""
    if worth is None:
        return True
    at_server = any(side == "server" for side, _ in worth)
    return at_server and bench.source_bytes < LEAST_SOURCE_BYTES


def _source_bytes(bench: Bench) -> int:
    """As much as the copies need at the rate of a first one: writing it takes time."""
    rate = max(bench.calibrated.values(), default=math.inf)
    most = plan.LARGEST_COPY_BYTES // 2
    if bench.world.options.budget_seconds >= LONG_BUDGET_SECONDS:
        return most
    return round(min(most, max(LEAST_SOURCE_BYTES, SOURCE_TIMES * rate * bench.world.times().copy)))


def measure_disks(bench: Bench, worth: Disks = None) -> list[str]:
    """The system's fio on both folders' disks: what bounds the copies.

    Where nothing but the disk was asked for, all of it; alone what --device and --file name. worth:
    by side and read or write; None: all of them. Returns the names of skipped tests.
    """
    alone = bench.world.alone("disk")
    named = (bench.world.options.device, bench.world.options.file)
    at_server = any(each is not None and each.side == "server" for each in named)
    here_alone = alone and bench.world.options.agent == "none" and not at_server
    sides: tuple[plan.Side, ...] = ("client",) if here_alone else plan.SIDES
    if plan.DISK_CHOICES & bench.world.options.settings.keys():
        for each in plan.chosen_disk_steps(sides, bench.world.options):
            _measure_all(bench, each, ALONE)
        return []
    left_out = []
    for each in plan.disk_steps(sides, bench.world.options, alone):
        if worth is not None and (each.side, each.verb) not in worth:
            left_out += [f"disk {each.side} {each.verb}"] if each.pattern == "sequential" else []
        elif alone or each.pattern == "sequential":
            _measure_all(bench, each, ALONE)
    return left_out


def explain_disks(bench: Bench, why: str) -> None:
    """What tells why a disk gives what it gives: after copies that may come near to it."""
    if bench.world.alone("disk"):
        return
    for each in plan.disk_steps(plan.SIDES, bench.world.options):
        if each.pattern != "sequential" and explains(bench, each):
            _measure_all(bench, each, why)


def _measure_all(bench: Bench, each: plan.DiskStep, why: str) -> None:
    times, named = _times(bench, each), bench.world.options.device
    chosen = named.path if named and plan.DISK_CHOICES & bench.world.options.settings.keys() else ""
    for device in _devices(bench, each) if each.pattern == "zones" else [chosen]:
        _measure(bench, each, device, times, why)


def _times(bench: Bench, each: plan.DiskStep) -> float:
    """How much longer than in a usual run a step is; what says its own time is obeyed."""
    said = "seconds" in bench.world.options.settings or each.writes_zones
    return ALONE_TIMES if bench.world.alone("disk") and not said else 1.0


def _only_reads(bench: Bench) -> bool:
    """Whether a device or a file was named and nothing else was asked for: nothing is written."""
    steps = plan.disk_steps(plan.SIDES, bench.world.options, bench.world.alone("disk"))
    return all(each.pattern in ("zones", "file") for each in steps)


def _measure(bench: Bench, each: plan.DiskStep, device: str, times: float, why: str) -> None:
    source, folder = bench.sources.get(each.side), bench.world.folder(each.side)
    seconds = times * _seconds(bench, each)
    usual = disk.Setting(
        **asdict(each),
        folder=bench.world.test_file_folder(each.side),
        size_bytes=bench.source_bytes_of(each.side) or bench.source_bytes_of("client"),
        seconds=seconds,
        seed=bench.seed,
        device=device,
        zones=bench.world.options.zones,
    )
    setting = bench.world.chosen(usual)
    peer = source or Endpoint()
    step = bench.step("disk", setting, each.side)
    kind = each.cache if each.pattern == "sequential" else each.pattern
    label = f"disk {each.side} {each.verb} {kind}"
    with bench.outcome(step, label, why, _is_optional(bench, each)) as take:
        if each.side not in bench.world.hosts:
            raise Unavailable(NEEDS_AGENT)
        if each.pattern == "file":
            path = files.look(bench).path
            folder = os.path.dirname(path)  # noqa: PTH120 - of whichever host
            step.setting.update({"path": path, "folder": folder})
            most = plan.LARGEST_COPY_BYTES
            setting = replace(setting, path=path, folder=folder, size_bytes=most)
            peer = Endpoint()
        elif setting.device:
            peer = Endpoint()
        elif each.pattern == "sustained" and source is not None:
            setting = replace(setting, size_bytes=bench.world.options.size_bytes or SUSTAINED_BYTES)
        elif each.writes_zones and folder:
            setting = replace(setting, size_bytes=bench.world.options.size_bytes or ZONES_BYTES)
        elif (
            source is None and each.verb == "read" and each.side == "server" and _reads_share(bench)
        ):
            size_bytes = files.ready_bytes(bench, str(bench.world.share.facts["dialect"]))
            folder, peer = bench.world.server_path or "", files.pulled_file(bench)
            step.setting.update({"folder": folder, "size_bytes": size_bytes})
            setting = replace(setting, folder=folder, size_bytes=size_bytes)
        elif source is None and (each.verb == "read" or each.side in bench.no_source or not folder):
            lost = "the share's folder was not found there (use --server-folder DIR)"
            if bench.world.share.facts.get("read_only"):
                lost = "the share is read-only: no test file can be made there"
            why = bench.no_source.get(each.side, "no test file could be written there")
            raise Unavailable(why if folder else lost)
        beside = 0.0 if each.pattern == "sequential" and not setting.chosen else LEAST_LEFT_SECONDS
        bench.clock.need(seconds + beside)
        take(bench.run(step, setting, peer, seconds + _grace(setting), both=False))


def _is_optional(bench: Bench, each: plan.DiskStep) -> bool:
    """Whether the run is complete without a step.

    Where a file lies explains a copy, no more, unless that was asked for.
    """
    if each.pattern in ("sequential", "file") or bench.world.options.device is not None:
        return False
    if each.writes_zones:
        return "pattern" not in bench.world.options.settings
    return not bench.world.alone("disk") or bench.world.options.file is not None


def _reads_share(bench: Bench) -> bool:
    """Whether the server's agent finds the file that pulls read."""
    pulls = any(each.startswith("pull") for each in bench.world.options.copies)
    return bench.world.wants("smb-copy") and pulls and bench.world.server_path is not None


def _grace(setting: disk.Setting) -> float:
    """How much longer than its time a step may take."""
    if setting.pattern == "zones":
        # Files that are placed are written first, for as long again; some zones once more.
        return STEP_GRACE_SECONDS + 2 * setting.seconds + ZONE_GRACE_SECONDS * setting.zones
    return STEP_GRACE_SECONDS


def _seconds(bench: Bench, each: plan.DiskStep) -> float:
    times = bench.world.times()
    if each.writes_zones and "seconds" not in bench.world.options.settings:
        scale = min(1.0, times.zones / plan.times(USUAL_BUDGET_SECONDS).zones)
        seconds, zones = ZONE_WRITE_SECONDS * scale, bench.world.options.zones
        left = bench.clock.left() - 1.5 * LEAST_LEFT_SECONDS
        return min(zones * seconds, max(zones * seconds / 2, left))
    if each.pattern not in ("sequential", "random"):
        return float(getattr(times, each.pattern))
    return times.disk_cached if each.cache == "cached" else times.disk


def _devices(bench: Bench, each: plan.DiskStep) -> list[str]:
    """Nodes of the devices whose zones are read; an empty one: files in the folder have to do.

    Of a disk without heads zones are written only where that was chosen: they are all alike.
    """
    if each.verb == "write":
        known = bench.world.facts.get(each.side)
        turns = known is None or known.folder is None or known.folder.rotational is not False
        return [""] if turns or "pattern" in bench.world.options.settings else []
    named = bench.world.options.device
    if named is not None and named.side == each.side:
        return [named.path]
    facts = bench.world.facts.get(each.side)
    below = facts.folder.device if facts is not None and facts.folder is not None else None
    own = files.device(bench, each.side)
    found = [own] if _only_reads(bench) else [below, own]
    # The kernel writes a slash in a node's name as ! (drivers/base/core.c).
    nodes = dict.fromkeys(f"/dev/{name.replace('!', '/')}" for name in found if name)
    readable = [node for node in nodes if _readable(bench, each.side, node)]
    if readable or _only_reads(bench):
        return readable or list(nodes)
    # Files that are placed in the folder show its zones, but have to be written first.
    return [""] if plan.has_time_to_write(bench.world.options, bench.world.alone("disk")) else []


def _readable(bench: Bench, side: plan.Side, node: str) -> bool:
    """Whether a host may read a device; one that gives no answer says so in a note."""
    host = bench.world.hosts.get(side)
    try:
        return host is not None and host.ask("readable-device", node=node) is True
    except (StageError, Unavailable, Refused) as error:
        bench.note(f"{side}: {node}: {error}")
        return False


def explains(bench: Bench, step: plan.DiskStep) -> bool:
    """Whether a step of the disk beyond its rate is worth its time in this run."""
    if plan.has_time_to_write(bench.world.options, alone=False):
        return True
    match step.pattern:
        case "file":
            return True
        case "zones":
            named = (bench.world.options.device, bench.world.options.file)
            if any(each is not None and each.side == step.side for each in named):
                return True
            return _near(bench, step.side)
        case "synced":
            return _forced(bench, step.side)
    return False


def _near(bench: Bench, side: plan.Side) -> bool:
    """Whether a copy ran near what the disk of a side reads or writes."""
    known = plan.known_rates(bench.log)
    for step, rate in plan.measured(bench.log):
        name = str(step.setting.get("copy", ""))
        if step.stage not in ("smb-copy", "native-copy") or step.setting.get("end") == "memory":
            continue
        if name.startswith("server."):
            continue
        verb, _, cache = name.rpartition(".")
        sender = "client" if verb.endswith("push") else "server"
        does = "write" if sender != side else "read"
        disk = known.get(f"{side}.{does}")
        if disk is not None and rate >= NEAR_RATIO * disk and (does, cache) != ("read", "cached"):
            return True
    return False


def _forced(bench: Bench, side: plan.Side) -> bool:
    """Whether a host is known to force each write to its disk."""
    config = (bench.world.samba_config or []) if side == "server" else []
    if any(each.get("option") == "sync always" for each in config):
        return True
    facts = bench.world.facts.get(side)
    options = facts.folder.mount_options if facts is not None and facts.folder is not None else None
    return "sync" in (options or "").split(",")
