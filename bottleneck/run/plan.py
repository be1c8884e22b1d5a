"""Plans a run: stages, times, disk steps and copy sizes, from options and results so far; pure.

A small copy comes first: it sizes the others, so that a slow path gets a small file and the run
ends within its budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bottleneck.login.target import MetricsUrl, NamedDevice, NamedFile, Target, TcpPeer
from bottleneck.report.report import Step
from bottleneck.run.log import Log
from probes import STAGES
from probes.core.records import DIALECTS, FILE_COPY
from probes.core.stage import LONG_BUDGET_SECONDS, USUAL_BUDGET_SECONDS, Refused, stages_of
from probes.stages import tcp

Side = Literal["client", "server"]
SIDES: tuple[Side, ...] = ("client", "server")
COPY_ORDER = ("push.uncached", "push.cached", "pull.cached", "pull.uncached")
"""Order of the copies: pulls read a file that was just written, and so is cached. If only the rate
shows that a source was uncached, the cached copy's rate is known by then."""

MIB = 1 << 20
SMALLEST_COPY_BYTES = 3 * MIB
"""Size of the smallest usual copy: some seconds at 10 Mbit/s."""
SLOW_PATH_COPY_BYTES = 256 << 10
"""Least size of a copy on a slow path."""
SLOW_COPY_SECONDS = 3.0
"""Time of a copy on a path on which SMALLEST_COPY_BYTES would take longer."""
UNKNOWN_COPY_BYTES = 16 * MIB
"""Size of a copy on an unknown path."""
LARGEST_COPY_BYTES = 1 << 30
LEAST_ROUNDS, MAX_ROUNDS, THOROUGH_ROUNDS = 2, 3, 5
USUAL_ZONES, MOST_ZONES = 9, 256


def newest_first(dialects: tuple[str, ...]) -> tuple[str, ...]:
    """Sorts dialects in the order in which a session is tried."""
    return tuple(sorted(dialects, key=DIALECTS.index, reverse=True))


def stages(
    of_folder: bool = False, budget_seconds: float = USUAL_BUDGET_SECONDS
) -> tuple[str, ...]:
    """Returns the default stages of a run; of_folder: TARGET is a folder, not a share.

    For a folder, stages that explain copies over SMB are left out: its own copies count.
    """
    return tuple(
        each.name
        for each in stages_of(STAGES)
        if each.from_budget_seconds <= budget_seconds
        and not ("share" in each.needs and each.explains if of_folder else "mount" in each.needs)
    )


def side(word: str) -> Side:
    """Converts a word into a side."""
    return "server" if word == "server" else "client"


@dataclass(frozen=True)
class Options:
    """Options of the user."""

    target: Target
    folder: str
    agent: str = "none"
    server_folder: str | None = None
    client_share: str | None = None
    """Share of the client, written as TARGET; None: a private one is opened if needed."""
    dialects: tuple[str, ...] = ()
    size_bytes: int | None = None
    security: str = ""
    """Security of our own copies, as probes.smb.login takes it."""
    budget_seconds: float = USUAL_BUDGET_SECONDS
    stages: tuple[str, ...] = field(default_factory=stages)
    tcp_peer: TcpPeer | None = None
    """iperf3 server for the TCP stage if no agent can run."""
    metrics: MetricsUrl | None = None
    """Address of the server's own counters, read if no agent can run."""
    file: NamedFile | None = None
    """File of the user to read, and to pull if it lies on the share."""
    tree: NamedFile | None = None
    """Folder of the user to push, or to pull if it lies on the share."""
    native_command: tuple[str, ...] = ()
    """Words of the command that makes the native copies in place of cp."""
    device: NamedDevice | None = None
    """Block device whose zones are read; None: the one under each folder."""
    zones: int = USUAL_ZONES
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the stage's Setting that the user chose, if only one stage is run."""
    copy_settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the Setting of copies over SMB, whatever other stages are run."""
    copy: str = ""
    """The only copy of COPY_ORDER to make, once; empty: all of them."""
    runs: int = 0
    """Number of runs of everything after a warm-up; 0: as time allows."""
    target_rate_bytes_per_second: float | None = None
    """Rate that the user wants each copy to reach."""
    server_outlives_run: bool = True
    """Whether the server outlives this run if it is killed with all its processes."""

    @property
    def usual_seconds(self) -> float:
        """Budget of one run: the usual one if there are several runs."""
        return USUAL_BUDGET_SECONDS if self.runs else self.budget_seconds

    @property
    def copies(self) -> tuple[str, ...]:
        """Copies of the run's own files, in order; empty if only --file is copied."""
        if self.copy == FILE_COPY:
            return ()
        return (self.copy,) if self.copy else COPY_ORDER


@dataclass(frozen=True)
class Times:
    """Seconds of each part of a run, by its budget."""

    tcp: float
    tcp_many: float
    disk: float
    disk_cached: float
    zones: float
    """Time for all zones of one disk."""
    synced: float
    file: float
    """Time to read the user's file on its host."""
    sustained: float
    fill_source: float
    copy: float


ROUND_TRIPS_TO_FILL, MOST_TO_FILL_SECONDS = 15, 3.0
"""Round trips, and most seconds, until a transfer on a far path reaches its rate."""
ROUND_TRIPS_OF_COPY, MOST_COPY_SECONDS = 50, 4.5
"""Round trips of a copy, of which slow start takes ten at most; seconds within a usual budget."""
MOST_COPY_SCALE = 1.6
"""Factor of a copy's time at most: a long run makes more copies, not longer ones."""


def times(budget_seconds: float, round_trip_seconds: float = 0.0) -> Times:
    """Divides the budget: a sixth to the network, a fifth to the disks, the rest to copies."""
    scale = min(5.0, max(0.25, budget_seconds / USUAL_BUDGET_SECONDS))
    copy_scale = min(MOST_COPY_SCALE, scale)
    filling = min(MOST_TO_FILL_SECONDS * scale, ROUND_TRIPS_TO_FILL * round_trip_seconds)
    far_seconds = min(MOST_COPY_SECONDS * copy_scale, ROUND_TRIPS_OF_COPY * round_trip_seconds)
    return Times(
        tcp=max(0.8, 1.2 * scale) + filling,
        tcp_many=max(0.8, 1.0 * scale),
        disk=max(0.8, 1.4 * scale),
        disk_cached=max(0.25, 0.3 * scale),
        zones=max(1.0, 2.4 * scale),
        synced=max(0.5, 0.8 * scale),
        file=max(0.6, 1.6 * scale),
        sustained=max(2.0, 2.4 * scale),
        fill_source=max(0.5, 1.3 * scale),
        copy=max(0.8, 2.5 * copy_scale, far_seconds),
    )


Pattern = Literal["sequential", "random", "zones", "file", "synced", "sustained"]


@dataclass(frozen=True)
class DiskStep:
    """One disk measurement on one side."""

    side: Side
    verb: Literal["read", "write"]
    cache: Literal["cached", "uncached"]
    pattern: Pattern = "sequential"

    @property
    def writes_zones(self) -> bool:
        """Whether files are written across the disk, each zone for its own time."""
        return (self.pattern, self.verb) == ("zones", "write")


def has_time_to_write(options: Options, is_only: bool) -> bool:
    """Whether there is time to write files that no copy needs."""
    return is_only or options.budget_seconds >= LONG_BUDGET_SECONDS


LEAST_DISK_BUDGET_SECONDS = 45.0
"""Least budget for measurements by zone."""


def disk_steps(
    sides: tuple[Side, ...], options: Options, is_only: bool = False
) -> Iterator[DiskStep]:
    """Yields the disk steps of each side, in order; is_only: only the disk stage was requested.

    If only a named device or file is measured, it is read, and nothing is written.
    """
    reads_only_named = is_only and (options.device is not None or options.file is not None)
    long = has_time_to_write(options, is_only)
    for side in sides:
        named_sides = {each.side for each in (options.device, options.file) if each is not None}
        if reads_only_named and side not in named_sides:
            continue
        if long and not reads_only_named:
            # The page cache bounds no copy: only a long run measures it.
            yield DiskStep(side, "read", "cached")
        if not reads_only_named:
            yield DiskStep(side, "read", "uncached")
        if reads_only_named or options.budget_seconds >= LEAST_DISK_BUDGET_SECONDS:
            yield DiskStep(side, "read", "uncached", "zones")
        if options.file is not None and options.file.side == side:
            yield DiskStep(side, "read", "uncached", "file")
        if reads_only_named:
            continue
        yield DiskStep(side, "write", "uncached")
        if long or side == "server" and options.budget_seconds >= LEAST_DISK_BUDGET_SECONDS:
            yield DiskStep(side, "write", "uncached", "synced")
        if long:
            yield DiskStep(side, "write", "uncached", "sustained")
            yield DiskStep(side, "write", "uncached", "zones")


DISK_CHOICES = frozenset(("block_bytes", "depth", "pattern", "verb"))
"""Settings of the disk stage that restrict it to one chosen pattern."""


def check_disk(options: Options) -> None:
    """Raises Refused, "usage", for options of the disk stage that exclude each other."""
    if DISK_CHOICES & options.settings.keys() and options.file is not None:
        raise Refused(
            "usage", "--file: not allowed with --block-size, --depth, --pattern or --access"
        )
    if options.device is not None and options.settings.get("verb") == "write":
        raise Refused("usage", "--device: only read; use --access read")
    if options.settings.get("block_bytes", 0) > (options.size_bytes or LARGEST_COPY_BYTES):
        raise Refused("usage", "--block-size: larger than --size")


def chosen_disk_steps(sides: tuple[Side, ...], options: Options) -> Iterator[DiskStep]:
    """Yields the disk steps of the user's pattern: read, and write unless it is a device."""
    if options.device is not None:
        sides = (options.device.side,)
    for side in sides:
        pattern = options.settings.get("pattern", "sequential")
        if options.settings.get("verb") != "write":
            yield DiskStep(side, "read", "uncached", pattern)
        if options.device is None and options.settings.get("verb") != "read":
            yield DiskStep(side, "write", "uncached", pattern)


TCP_STEPS = tuple(tcp.Setting(verb, streams) for streams in (1, 4) for verb in ("push", "pull"))

Rates = Mapping[str, float]
"""Bytes per second by name: loopback, tcp.push, tcp.pull, client.read, client.write, server.read,
server.write, and each measured copy."""


OF_LOOPBACK_RATIO = 0.5
"""Share of a host's loopback rate that a copy reaches at most: SMB and a file double its cost."""


def measured_rates(log: Log) -> Iterator[tuple[Step, float]]:
    """Yields each step that has a rate, with the rate in bytes per second."""
    for step in log.steps:
        rate = log.rate(step)
        if rate is not None:
            yield step, rate


def known_rates(log: Log) -> dict[str, float]:
    """Returns rates of the bare network and the uncached disks, by name.

    A copy has one connection: the rate of several streams bounds it only if one was not measured
    by itself.
    """
    rates_by_name: dict[str, float] = {}
    for step, rate in measured_rates(log):
        setting = step.setting
        if step.stage == "loopback":
            limit = min(rate * OF_LOOPBACK_RATIO, rates_by_name.get("loopback", rate))
            rates_by_name["loopback"] = limit
        elif step.stage == "tcp":
            name = f"tcp.{setting['verb']}"
            if setting["streams"] == 1:
                rates_by_name[name] = rate
            else:
                rates_by_name.setdefault(name, rate)
        elif (
            step.stage == "disk"
            and setting["cache"] == "uncached"
            and setting["pattern"] == "sequential"
        ):
            rates_by_name[f"{setting['side']}.{setting['verb']}"] = rate
    return rates_by_name


def expected_rate(copy: str, rates: Rates) -> float | None:
    """Returns the lowest known bound of a copy, bytes per second; None: none is known."""
    if copy in rates:
        return rates[copy]
    verb, _, cache = copy.partition(".")
    sender, receiver = ("client", "server") if verb == "push" else ("server", "client")
    names = [f"tcp.{verb}", f"{verb}.memory", f"{receiver}.write"]
    if cache == "uncached":
        names.append(f"{sender}.read")
    bounds = [rates[name] for name in names if name in rates]
    # The loopback rate alone does not predict an unknown path.
    return min([*bounds, rates.get("loopback", math.inf)]) if bounds else None


def copy_bytes(
    rate: float | None,
    seconds: float,
    most_bytes: int,
    asked_bytes: int | None,
    slow_seconds: float = SLOW_COPY_SECONDS,
) -> int:
    """Returns the file size of a copy of about `seconds`, whole MiB.

    Args:
        rate: expected bytes per second; None: unknown.
        most_bytes: limit by the room on the file systems and the source file.
        asked_bytes: --size, which is obeyed up to most_bytes.
        slow_seconds: longest time of the smallest copy.
    """
    if asked_bytes is not None:
        size_bytes = asked_bytes
    elif rate is None:
        size_bytes = UNKNOWN_COPY_BYTES
    else:
        slow = max(SLOW_PATH_COPY_BYTES, int(rate * max(seconds, slow_seconds)))
        smallest = min(SMALLEST_COPY_BYTES, slow // SLOW_PATH_COPY_BYTES * SLOW_PATH_COPY_BYTES)
        size_bytes = min(LARGEST_COPY_BYTES, max(smallest, int(rate * seconds)))
    fitting = min(size_bytes, most_bytes)
    return fitting // MIB * MIB if fitting > MIB else fitting
