"""Options and what is known so far to ordered Steps; pure.

A small copy comes first: it sizes the others, so that a slow path gets a small file and the whole
run ends within its budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bottleneck.report.report import Step
from bottleneck.run.log import Log
from bottleneck.target.target import NamedDevice, NamedFile, Target, TcpPeer
from probes import STAGES
from probes.core.records import DIALECTS, FILE_COPY
from probes.core.stage import LONG_BUDGET_SECONDS, USUAL_BUDGET_SECONDS, Refused, described
from probes.stages import tcp

Side = Literal["client", "server"]
SIDES: tuple[Side, ...] = ("client", "server")
COPY_ORDER = ("push.uncached", "push.cached", "pull.cached", "pull.uncached")
"""In the order in which they are made: what pulls read was just written, and so is cached; where
only its rate shows that a source was not, the cached one's is known by then."""

MIB = 1 << 20
SMALLEST_COPY_BYTES = 3 * MIB
"""Some seconds at 10 Mbit/s."""
LEAST_COPY_BYTES = 256 << 10
SLOW_COPY_SECONDS = 3.0
"""Where even the smallest copy would take longer, it is as small as that takes, and no smaller."""
UNKNOWN_COPY_BYTES = 16 * MIB
"""Where nothing is known of the path."""
LARGEST_COPY_BYTES = 1 << 30
LEAST_ROUNDS, MAX_ROUNDS, THOROUGH_ROUNDS = 2, 3, 5
USUAL_ZONES, MOST_ZONES = 9, 256


def newest_first(dialects: tuple[str, ...]) -> tuple[str, ...]:
    """The dialects in the order in which a session is tried."""
    return tuple(sorted(dialects, key=DIALECTS.index, reverse=True))


def stages(
    of_folder: bool = False, budget_seconds: float = USUAL_BUDGET_SECONDS
) -> tuple[str, ...]:
    """The stages of a run that nobody chose any for; of_folder: TARGET is one, and no share.

    What explains copies over SMB is left out for a folder: they are not the ones that count there.
    """
    return tuple(
        each.name
        for each in described(STAGES)
        if each.from_budget_seconds <= budget_seconds
        and not ("share" in each.needs and each.explains if of_folder else "mount" in each.needs)
    )


def side(word: str) -> Side:
    """One of the two hosts."""
    return "server" if word == "server" else "client"


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    target: Target
    folder: str
    agent: str = "none"
    server_folder: str | None = None
    client_share: str | None = None
    """The client's own share, as TARGET is written; None: a private one is opened where needed."""
    dialects: tuple[str, ...] = ()
    size_bytes: int | None = None
    security: str = ""
    """Of our own copies, as probes.smb.login takes it."""
    budget_seconds: float = USUAL_BUDGET_SECONDS
    stages: tuple[str, ...] = field(default_factory=stages)
    tcp_peer: TcpPeer | None = None
    """Who answers the TCP stage where no agent can run."""
    file: NamedFile | None = None
    """A file of the user's to look at, and to pull where it lies on the share."""
    tree: NamedFile | None = None
    """A folder of the user's that is pushed, or pulled where it lies on the share."""
    native_command: tuple[str, ...] = ()
    """The words of what makes the native copies in place of cp."""
    device: NamedDevice | None = None
    """The block device whose zones are read; None: the one under each folder."""
    zones: int = USUAL_ZONES
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the stage's Setting that the user chose, where one stage alone is made."""
    copy_settings: Mapping[str, Any] = field(default_factory=dict)
    """The same of the copies over SMB alone, whatever else is made."""
    copy: str = ""
    """The only one of COPY_ORDER that is made, once; empty: all of them."""
    runs: int = 0
    """How often all of it is made, after a run that is not counted; 0: as the time allows."""
    target_rate_bytes_per_second: float | None = None
    """The rate that the user wants of each copy."""
    outlived: bool = True
    """Whether the server lives on when this run is killed with all that it started."""

    @property
    def usual_seconds(self) -> float:
        """The budget that a run's parts are made for: of several runs the usual one of each."""
        return USUAL_BUDGET_SECONDS if self.runs else self.budget_seconds

    @property
    def copies(self) -> tuple[str, ...]:
        """Copies of the run's own files, in order; none if only --file is copied."""
        if self.copy == FILE_COPY:
            return ()
        return (self.copy,) if self.copy else COPY_ORDER


@dataclass(frozen=True)
class Times:
    """Seconds that each part of a run may take, from its budget."""

    tcp: float
    tcp_many: float
    disk: float
    disk_cached: float
    zones: float
    """Of all zones of one disk."""
    synced: float
    file: float
    """Of the user's file, read by the host that has it."""
    sustained: float
    fill: float
    copy: float


ROUND_TRIPS_TO_FILL, MOST_TO_FILL_SECONDS = 15, 3.0
"""That a transfer needs on a far path until it runs as it does."""
ROUND_TRIPS_OF_COPY, MOST_COPY_SECONDS = 50, 4.5
"""Of which a slow start, ten at most, is a small part; and what a usual budget can afford."""
MOST_COPY_SCALE = 1.6
"""A long run makes more copies, not ever longer ones."""


def times(budget_seconds: float, round_trip_seconds: float = 0.0) -> Times:
    """The budget shared out: a sixth to the network, a fifth to the disks, the rest to copies."""
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
        fill=max(0.5, 1.3 * scale),
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
        """Whether files are spread over the disk and written, each zone for its own time."""
        return (self.pattern, self.verb) == ("zones", "write")


def has_time_to_write(options: Options, alone: bool) -> bool:
    """Whether files may be written that no copy needs."""
    return alone or options.budget_seconds >= LONG_BUDGET_SECONDS


LEAST_DISK_BUDGET_SECONDS = 45.0
"""A shorter run has no time for where on its disk a file lies."""


def disk_steps(
    sides: tuple[Side, ...], options: Options, alone: bool = False
) -> Iterator[DiskStep]:
    """What is measured of each side's disk, in order; alone: nothing but the disk was asked for.

    A named device or file that is all there is to look at is read, and nothing is written.
    """
    looks = alone and (options.device is not None or options.file is not None)
    long = has_time_to_write(options, alone)
    for side in sides:
        named = {each.side for each in (options.device, options.file) if each is not None}
        if looks and side not in named:
            continue
        if long and not looks:
            # What the page cache gives bounds no copy: it is for who wants to know it all.
            yield DiskStep(side, "read", "cached")
        if not looks:
            yield DiskStep(side, "read", "uncached")
        if looks or options.budget_seconds >= LEAST_DISK_BUDGET_SECONDS:
            yield DiskStep(side, "read", "uncached", "zones")
        if options.file is not None and options.file.side == side:
            yield DiskStep(side, "read", "uncached", "file")
        if looks:
            continue
        yield DiskStep(side, "write", "uncached")
        if long or side == "server" and options.budget_seconds >= LEAST_DISK_BUDGET_SECONDS:
            yield DiskStep(side, "write", "uncached", "synced")
        if long:
            yield DiskStep(side, "write", "uncached", "sustained")
            yield DiskStep(side, "write", "uncached", "zones")


DISK_CHOICES = frozenset(("block_bytes", "depth", "pattern", "verb"))
"""Settings of the disk stage with which it measures that alone."""


def check_disk(options: Options) -> None:
    """Raises Refused, "usage", for choices of how a disk is used that cannot be made together."""
    chosen = DISK_CHOICES & options.settings.keys()
    if chosen and options.file is not None:
        raise Refused(
            "usage", "--file: not allowed with --block-size, --depth, --pattern or --access"
        )
    if options.device is not None and options.settings.get("verb") == "write":
        raise Refused("usage", "--device: only read; use --access read")
    if options.settings.get("block_bytes", 0) > (options.size_bytes or LARGEST_COPY_BYTES):
        raise Refused("usage", "--block-size: larger than --size")


def chosen_disk_steps(sides: tuple[Side, ...], options: Options) -> Iterator[DiskStep]:
    """The disk used as the user chose: read, and written where it is no device."""
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
server.write, and each copy once it was made."""


OF_LOOPBACK_RATIO = 0.5
"""Of what a host moves to itself: SMB and a file cost it at least as much again."""


def measured(log: Log) -> Iterator[tuple[Step, float]]:
    """The steps that have a rate, with it; bytes per second."""
    for step in log.steps:
        rate = log.rate(step)
        if rate is not None:
            yield step, rate


def known_rates(log: Log) -> dict[str, float]:
    """Of the bare network and of the disks past their cache, by their names.

    A copy has one connection: what several streams carry together bounds it where one was not
    measured alone.
    """
    known: dict[str, float] = {}
    for step, rate in measured(log):
        setting = step.setting
        if step.stage == "loopback":
            least = min(rate * OF_LOOPBACK_RATIO, known.get("loopback", rate))
            known["loopback"] = least
        elif step.stage == "tcp":
            name = f"tcp.{setting['verb']}"
            if setting["streams"] == 1:
                known[name] = rate
            else:
                known.setdefault(name, rate)
        elif (
            step.stage == "disk"
            and setting["cache"] == "uncached"
            and setting["pattern"] == "sequential"
        ):
            known[f"{setting['side']}.{setting['verb']}"] = rate
    return known


def expected_rate(copy: str, rates: Rates) -> float | None:
    """The least of what is known to bound a copy, bytes per second; None: nothing is known."""
    if copy in rates:
        return rates[copy]
    verb, _, cache = copy.partition(".")
    sender, receiver = ("client", "server") if verb == "push" else ("server", "client")
    names = [f"tcp.{verb}", f"{verb}.memory", f"{receiver}.write"]
    if cache == "uncached":
        names.append(f"{sender}.read")
    known = [rates[name] for name in names if name in rates]
    # What a host moves to itself says nothing of a path that nobody knows.
    return min([*known, rates.get("loopback", math.inf)]) if known else None


def copy_bytes(
    rate: float | None,
    seconds: float,
    most_bytes: int,
    asked_bytes: int | None,
    slow_seconds: float = SLOW_COPY_SECONDS,
) -> int:
    """File size for a copy that should take about `seconds`; whole MiB.

    Args:
        rate: what is expected, bytes per second; None: nothing is known yet.
        most_bytes: what the file systems and the source file have room for.
        asked_bytes: --size; it is obeyed up to most_bytes.
        slow_seconds: what the smallest copy may take.
    """
    if asked_bytes is not None:
        wanted = asked_bytes
    elif rate is None:
        wanted = UNKNOWN_COPY_BYTES
    else:
        slow = max(LEAST_COPY_BYTES, int(rate * max(seconds, slow_seconds)))
        least = min(SMALLEST_COPY_BYTES, slow // LEAST_COPY_BYTES * LEAST_COPY_BYTES)
        wanted = min(LARGEST_COPY_BYTES, max(least, int(rate * seconds)))
    fitting = min(wanted, most_bytes)
    return fitting // MIB * MIB if fitting > MIB else fitting
