"""What caps a disk that was measured alone, by its cause, one at a time.

The sender's disk for uncached copies, the receiver's for all. In this order of proof: the host's
own swap, others' I/O (contention), fragments (seek), the place on the disc (zone), forced writes
(sync), the link that the disk hangs on; else the disk itself (read, write).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bottleneck.analysis import shown, steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import Place, Zones, disk_steps, place_of, zones_under
from bottleneck.analysis.evidence.copies import Evidence, hindered
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.memory import cache_size
from bottleneck.analysis.steps import Found
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, rate_text

BUSY_RATIO = 0.5
AT_LIMIT_RATIO = 0.1
BURST_RATIO = 1.3
"""A copy so little above a throttled disk had the burst that the throttle allows for."""
BY_CGROUP = "limited by a cgroup"
"""Detail of a disk's claim that conditions.py reads."""
DOES = {"read": "reads", "write": "writes"}
DID = {"read": "read", "write": "wrote"}
READ = Cause("disk", "read", "read")
WRITE = Cause("disk", "write", "write")
CAUSES = {"read": READ, "write": WRITE}


@dataclass(frozen=True)
class Alone:
    """The best step of one side's disk in a copy's direction."""

    given: Evidence
    side: str
    verb: str
    """read, write."""
    best: Found

    @property
    def report(self) -> Report:
        return self.given.report

    @property
    def disk(self) -> str:
        """As a person calls it: "the server's disk"."""
        return f"the {self.side}'s disk"

    @property
    def rate(self) -> float:
        """Median of its runs, bytes per second."""
        return self.best.rate.median

    @property
    def limit(self) -> float | None:
        """What a control group lets through in the copy's direction; None: nothing is set."""
        limits = self.best.disk.limits
        reads = self.verb == "read"
        return limits.read_bytes_per_second if reads else limits.write_bytes_per_second

    @property
    def rotational(self) -> bool:
        """Whether it has heads that seek, or nobody knows."""
        host = self.given.host(self.side)
        return host is None or host.folder is None or host.folder.rotational is not False

    @property
    def place(self) -> Place | None:
        """Where its file lies; None: not known."""
        return place_of(self.best)

    @property
    def zones(self) -> Zones | None:
        """The zones of the device that its file lies on; None: not measured.

        Of a write those that were read, where none were written or these lie too near each other:
        a disc turns alike for both.
        """
        verbs = dict.fromkeys((self.verb, "read"))
        both = (zones_under(self.report, self.side, verb, self.place) for verb in verbs)
        found = [each for each in both if each is not None]
        return next((each for each in found if each.curve), found[0] if found else None)

    def without(self, where: str, bytes_per_second: float, *steps: int) -> Claim:
        """What the same disk allows once the cause is gone, by the figures of other steps."""
        rate = rate_text(bytes_per_second)
        return claim(
            CAUSES[self.verb],
            self.side,
            None,
            f"{self.disk} {DOES[self.verb]} at most {rate} {where}",
            level=bytes_per_second,
            steps=steps,
            standing="inferred",
        )


Behind = Callable[[Alone], Iterator[Claim]]


def rule(
    given: Evidence, behind: Sequence[Behind], confirmed: Callable[[Evidence, Claim], Claim]
) -> Iterator[Claim | str]:
    """What each disk on the copy's way reads or writes in sequence, and what keeps it there.

    A cached copy's source comes from RAM, if not seen to come from the disk; every copy is flushed
    to the receiver's disk.

    behind: the causes behind a disk's rate; the first that says something is believed. confirmed:
    what the copy's own time says of a disk that writes.
    """
    if given.copy.cache == "uncached" or cache_size.from_disk(given.copy):
        yield from _disk(given, given.sender, "read", behind)
    for each in _disk(given, given.receiver, "write", behind):
        yield each if isinstance(each, str) else confirmed(given, each)


def _disk(given: Evidence, side: str, verb: str, behind: Sequence[Behind]) -> Iterator[Claim | str]:
    of_file = verb == "read" and given.copy.of_file
    found = [
        each
        for each in disk_steps(given.report, side, verb, "file" if of_file else "sequential")
        # A write is flushed whatever its cache is called; a read counts only past the cache.
        if verb == "write" or each.setting.cache == "uncached"
    ]
    made = given.copy.step
    if found and side == "client" and made and made.details.on_folder_disk is False:
        yield (
            "The client's disk was not counted: the share of --client-share may be on another disk "
            "than the measured one."
        )
        return
    proven = [each for each in found if verb == "write" or each.disk.cache.proven]
    if found and not proven:
        yield (
            f"Not verified: that the {side}'s disk was read past the page cache. This measurement "
            "was not used."
        )
    best = steps.fastest(proven)
    if best is None:
        return
    alone = Alone(given, side, verb, best)
    group = _group(alone)
    # At a control group's limit neither a busy CPU nor others' I/O is what keeps the disk there.
    limited = None if group else hindered(best, side)
    if limited:
        yield (
            f"The {side}'s disk {DID[verb]} {rate_text(alone.rate)} while {limited}; the disk may "
            "be faster."
        )
    elif group is None:
        named = next(filter(None, (list(each(alone)) for each in behind)), None)
        if named is not None:
            yield from named
            return
    yield _itself(alone, group, limited)


def _itself(alone: Alone, group: str | None, limited: str | None) -> Claim:
    """The disk as its own cause, with what is set there behind it."""
    given, side, verb = alone.given, alone.side, alone.verb
    most = shown.through_disk(given.report, given.copy, side)
    level = most if group and alone.rate < most <= BURST_RATIO * alone.rate else alone.rate
    setting = forced(given, side) if verb == "write" else None
    whence = " from this file" if verb == "read" and given.copy.of_file else ""
    why = f"; the limit belongs to {group}, not to the disk" if group else ""
    # smbd's own setting forces no write of a program that was measured on the disk itself.
    mounted = setting if setting is not None and setting.remedy != NO_SYNC else None
    remedy, detail = ("", "") if mounted is None else (mounted.remedy, mounted.detail)
    return claim(
        CAUSES[verb],
        side,
        alone.best,
        f"the {side}'s disk {DOES[verb]} at most {rate_text(level)}{whence}{why}",
        level=level,
        standing="at-least" if limited else "measured",
        evidence=tuple(_evidence(alone, group, setting)),
        remedy=_lift(alone, group) if group else remedy,
        detail=BY_CGROUP if group else detail,
    )


def _lift(alone: Alone, group: str) -> str:
    now = "" if alone.limit is None else f", now {rate_text(alone.limit)}"
    where = f"{group} on the {alone.side} (`io.max` or `blkio.throttle`{now})"
    return f"Raise or remove the I/O limit of {where}"


@dataclass(frozen=True)
class Setting:
    """What makes a host force each write to its disk."""

    text: str
    """As the administrator finds it: "`sync always = yes` in smb.conf"."""
    remedy: str
    detail: str


_RISK = "unflushed data is lost in a power cut"
NO_SYNC = f"Set `sync always = no` in the server's smb.conf ({_RISK})"


def forced(given: Evidence, side: str) -> Setting | None:
    """What makes a side's disk force each write, as it is set; None: nothing that is known."""
    if any(each.option == "sync always" for each in given.smb_conf(side)):
        detail = "`sync always = yes`"
        return Setting(f"{detail} in smb.conf", NO_SYNC, detail)
    host = given.host(side)
    folder = host.folder if host is not None else None
    if folder is not None and "sync" in (folder.mount_options or "").split(","):
        text = "mounted with `sync`"
        how = f"Remount the {side}'s file system with `mount -o remount,async` ({_RISK})"
        return Setting(text, how, text)
    return None


def _group(alone: Alone) -> str | None:
    """The cgroup whose limit on the device is the rate that was measured; None: none is."""
    limit, group = alone.limit, alone.best.disk.limits.group
    if limit is None or abs(alone.rate / limit - 1) > AT_LIMIT_RATIO:
        return None
    return f"the cgroup {group}" if group else "its cgroup"


def _evidence(alone: Alone, group: str | None, setting: Setting | None) -> Iterator[str]:
    copy, side, verb, limit = alone.given.copy, alone.side, alone.verb, alone.limit
    rate = rate_text(alone.rate)
    if verb == "read":
        whence = " from this file" if copy.of_file else ""
        yield (
            f"Verified: the {side}'s disk by itself read {rate}{whence} in sequence, not from the "
            "page cache."
        )
    else:
        yield f"The {side}'s disk by itself wrote {rate} in sequence, flushed at the end."
    if group is not None and limit is not None:
        yield f"{group[0].upper()}{group[1:]} limited its {verb}s to {rate_text(limit)}."
    if setting is not None:
        yield f"Each write was forced to the {side}'s disk: {setting.text}."
    usage = copy.step and copy.step.usage(side)
    # A device that is throttled in front of its queue seems idle: that would say nothing.
    if usage and usage.device_busy_ratio is not None and usage.device_busy_ratio > BUSY_RATIO:
        busy = percent_text(min(1.0, usage.device_busy_ratio))
        yield f"The {side}'s disk had I/O in flight during {busy} of the copy."
