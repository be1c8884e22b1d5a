"""Limit of a disk that was measured alone, with one cause.

The sender's disk for uncached copies, the receiver's for all. In this order of proof: the host's
own swap, others' I/O (contention), fragments (seek), the place on the disc (zone), forced writes
(sync), the disk's link; else the disk itself (read, write).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bottleneck.analysis import steps, transfer_rates
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import Place, Zones, disk_steps, place_of, zones_under
from bottleneck.analysis.evidence.copies import Evidence, hindrance_text
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.memory import cache_size
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, rate_text

BUSY_RATIO = 0.5
AT_LIMIT_RATIO = 0.1
BURST_RATIO = 1.3
"""Most rate of any transfer / a throttled disk's at which the throttle's burst explains it."""
BY_CGROUP = "limited by a cgroup"
"""Detail of a disk's claim, which conditions.py reads."""
DOES = {"read": "reads", "write": "writes"}
DID = {"read": "read", "write": "wrote"}
READ = Cause("disk", "read", "read")
WRITE = Cause("disk", "write", "write")
CAUSES = {"read": READ, "write": WRITE}


@dataclass(frozen=True)
class DiskTest:
    """The best step of one side's disk in a copy's direction."""

    evidence: Evidence
    side: str
    verb: str
    """`read` or `write`."""
    best: MeasuredStep

    @property
    def report(self) -> Report:
        return self.evidence.report

    @property
    def disk(self) -> str:
        """Noun phrase: "the server's disk"."""
        return f"the {self.side}'s disk"

    @property
    def rate(self) -> float:
        return self.best.rate.median

    @property
    def limit(self) -> float | None:
        """Limit of a control group in the copy's direction, bytes per second; None: none."""
        limits = self.best.disk.limits
        reads = self.verb == "read"
        return limits.read_bytes_per_second if reads else limits.write_bytes_per_second

    @property
    def is_rotational(self) -> bool:
        """Whether the disk has heads that seek; True as well if that is not known."""
        host = self.evidence.host(self.side)
        return host is None or host.folder is None or host.folder.rotational is not False

    @property
    def place(self) -> Place | None:
        """Place of its file on the device; None: not known."""
        return place_of(self.best)

    @property
    def zones(self) -> Zones | None:
        """Zones of the device that its file lies on; None: not measured.

        For a write the zones that were read, if none were written or these give no curve: a disc
        turns at the same speed for both.
        """
        verbs = dict.fromkeys((self.verb, "read"))
        both = (zones_under(self.report, self.side, verb, self.place) for verb in verbs)
        zones = [each for each in both if each is not None]
        return next((each for each in zones if each.curve), zones[0] if zones else None)

    def without(self, where: str, bytes_per_second: float, *steps: int) -> Claim:
        """Returns the claim of the same disk without the cause, by the figures of other steps."""
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


Behind = Callable[[DiskTest], Iterator[Claim]]


def rule(
    evidence: Evidence, behind: Sequence[Behind], confirmed: Callable[[Evidence, Claim], Claim]
) -> Iterator[Claim | str]:
    """Yields the sequential limit of each disk that the copy uses, with its cause.

    A cached copy's source comes from RAM, unless observed to come from the disk; every copy is
    flushed to the receiver's disk.

    behind: rules of the causes behind a disk's rate; the first that yields a claim counts.
    confirmed: adds the evidence of the copy's own time to the claim of a disk that writes.
    """
    if evidence.copy.cache == "uncached" or cache_size.is_from_disk(evidence.copy):
        yield from _disk(evidence, evidence.sender, "read", behind)
    for each in _disk(evidence, evidence.receiver, "write", behind):
        yield each if isinstance(each, str) else confirmed(evidence, each)


def _disk(
    evidence: Evidence, side: str, verb: str, behind: Sequence[Behind]
) -> Iterator[Claim | str]:
    of_file = verb == "read" and evidence.copy.is_of_file
    candidates = [
        each
        for each in disk_steps(evidence.report, side, verb, "file" if of_file else "sequential")
        # A write is always flushed; a read counts only past the cache.
        if verb == "write" or each.setting.cache == "uncached"
    ]
    step = evidence.copy.step
    if candidates and side == "client" and step and step.details.on_folder_disk is False:
        yield (
            "The client's disk was not counted: the share of --client-share may be on another disk "
            "than the measured one."
        )
        return
    proven = [each for each in candidates if verb == "write" or each.disk.cache.proven]
    if candidates and not proven:
        yield (
            f"Not verified: that the {side}'s disk was read past the page cache. This measurement "
            "was not used."
        )
    best = steps.fastest(proven)
    if best is None:
        return
    test = DiskTest(evidence, side, verb, best)
    group = _group(test)
    # At a control group's limit neither a busy CPU nor others' I/O is the cause.
    limited = None if group else hindrance_text(best, side)
    if limited:
        yield (
            f"The {side}'s disk {DID[verb]} {rate_text(test.rate)} while {limited}; the disk may "
            "be faster."
        )
    elif group is None:
        claims = next(filter(None, (list(each(test)) for each in behind)), None)
        if claims is not None:
            yield from claims
            return
    yield _itself(test, group, limited)


def _itself(test: DiskTest, group: str | None, limited: str | None) -> Claim:
    evidence, side, verb = test.evidence, test.side, test.verb
    highest = transfer_rates.through_disk(evidence.report, evidence.copy, side)
    level = highest if group and test.rate < highest <= BURST_RATIO * test.rate else test.rate
    setting = forcing_setting(evidence, side) if verb == "write" else None
    whence = " from this file" if verb == "read" and evidence.copy.is_of_file else ""
    why = f"; the limit belongs to {group}, not to the disk" if group else ""
    # smbd's own setting does not apply to the program that measured the disk itself.
    mounted = setting if setting is not None and setting.remedy != NO_SYNC else None
    remedy, detail = ("", "") if mounted is None else (mounted.remedy, mounted.detail)
    return claim(
        CAUSES[verb],
        side,
        test.best,
        f"the {side}'s disk {DOES[verb]} at most {rate_text(level)}{whence}{why}",
        level=level,
        standing="at-least" if limited else "measured",
        evidence=tuple(_evidence(test, group, setting)),
        remedy=_lift(test, group) if group else remedy,
        detail=BY_CGROUP if group else detail,
    )


def _lift(test: DiskTest, group: str) -> str:
    now = "" if test.limit is None else f", now {rate_text(test.limit)}"
    where = f"{group} on the {test.side} (`io.max` or `blkio.throttle`{now})"
    return f"Raise or remove the I/O limit of {where}"


@dataclass(frozen=True)
class Setting:
    """Setting that makes a host force each write to its disk."""

    text: str
    """Words for it: "`sync always = yes` in smb.conf"."""
    remedy: str
    detail: str


_RISK = "unflushed data is lost in a power cut"
NO_SYNC = f"Set `sync always = no` in the server's smb.conf ({_RISK})"


def forcing_setting(evidence: Evidence, side: str) -> Setting | None:
    """Returns the setting that forces each write to a side's disk; None: none is known."""
    if any(each.option == "sync always" for each in evidence.smb_conf(side)):
        detail = "`sync always = yes`"
        return Setting(f"{detail} in smb.conf", NO_SYNC, detail)
    host = evidence.host(side)
    folder = host.folder if host is not None else None
    if folder is not None and "sync" in (folder.mount_options or "").split(","):
        text = "mounted with `sync`"
        how = f"Remount the {side}'s file system with `mount -o remount,async` ({_RISK})"
        return Setting(text, how, text)
    return None


def _group(test: DiskTest) -> str | None:
    """Returns the cgroup whose limit is the measured rate, in words; None: there is none."""
    limit, group = test.limit, test.best.disk.limits.group
    if limit is None or abs(test.rate / limit - 1) > AT_LIMIT_RATIO:
        return None
    return f"the cgroup {group}" if group else "its cgroup"


def _evidence(test: DiskTest, group: str | None, setting: Setting | None) -> Iterator[str]:
    copy, side, verb, limit = test.evidence.copy, test.side, test.verb, test.limit
    rate = rate_text(test.rate)
    if verb == "read":
        whence = " from this file" if copy.is_of_file else ""
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
    # A device that is throttled in front of its queue seems idle, which shows nothing.
    if usage and usage.device_busy_ratio is not None and usage.device_busy_ratio > BUSY_RATIO:
        busy = percent_text(min(1.0, usage.device_busy_ratio))
        yield f"The {side}'s disk had I/O in flight during {busy} of the copy."
