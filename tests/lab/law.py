"""The law of the report: no verdict contradicts what its own run moved; pure.

Told from the steps themselves, and not by what the analysis uses to obey it.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import hardware_limits, shown, steps
from bottleneck.analysis.finding import Ceiling, CopyDiagnosis, Diagnosis
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report.report import Report

TOLERANCE_RATIO = 1.1
"""Two measurements of one thing are no further apart."""
OVER_SMB = ("smb-copy", "smb-matrix", "smb-tax")
DISKLESS_RATIO = 1.5
"""What a host may move more where it neither reads nor writes a file."""
STALLED_RATIO = 0.05
"""Of the requests: more waits for credits, and they set the window."""
FULL_RATIO = 0.8
"""In flight over what may be: a window that was used."""
WHOLE_PATH = ("link-rate", "duplex", "wrong-path")
OF_ITS_TIME = ("contention", "delay", "loss", "quota", "mtu", "zone", "seek", "sync")
"""Causes that come and go, or belong to one place or length: another step may be without them."""


def broken(report: Report, diagnosis: Diagnosis) -> tuple[str, ...]:
    """Each place where the diagnosis says what its own report refutes."""
    made = {
        (copy.name, copy.dialect, copy.initiator, copy.step.rate.median): copy
        for copy in steps.copies(report)
        if copy.step is not None
    }
    found = []
    for told in diagnosis.copies:
        key = (told.copy, told.dialect, told.initiator, told.bytes_per_second or 0.0)
        if key in made:
            found += [
                f"{told.copy} {told.dialect}: {each}" for each in _of(report, made[key], told)
            ]
    return tuple(found)


def _of(report: Report, copy: Copy, told: CopyDiagnosis) -> Iterator[str]:
    for ceiling in told.ceilings:
        if ceiling.standing != "at-least":
            for what, rate in _moved(report, copy, ceiling):
                if rate > TOLERANCE_RATIO * ceiling.bytes_per_second:
                    level = ceiling.bytes_per_second
                    yield f"{ceiling.words} at {level:.4g}, but {what} moved {rate:.4g}"
    after, least = told.next, told.verdict.ceiling_bytes_per_second
    if after is None:
        return
    level = after.ceiling_bytes_per_second
    if least is not None and level < least:
        yield f"next {after.words} at {level:.4g} is below the verdict's {least:.4g}"
    meant = [e for e in told.ceilings if (e.key, e.bytes_per_second) == (after.key, level)]
    if meant and all(each.standing == "at-least" for each in meant):
        yield f"next {after.words} at {level:.4g} is only known to be no lower"
    for each in meant:
        if each.cause == "round-trips" and each.standing != "at-least":
            yield from _throttled(copy, each)


def _throttled(copy: Copy, window: Ceiling) -> Iterator[str]:
    """A window read off what was in flight while neither the depth nor the credits ran out."""
    assert copy.step is not None
    told = copy.step.details
    asked = (told.request_bytes or 0.0) * (told.depth or 0.0)
    ran_out = told.credit_stalls > STALLED_RATIO * told.requests
    few = bool(told.in_flight_bytes) and FULL_RATIO * asked > (told.in_flight_bytes or 0.0)
    if told.rtt_seconds and told.in_flight_bytes and few and not ran_out:
        throttled = TOLERANCE_RATIO * told.in_flight_bytes / told.rtt_seconds
        if window.standing != "measured" and window.bytes_per_second <= throttled:
            yield f"next {window.words} is what was in flight of {asked:.4g} bytes"


def _moved(report: Report, copy: Copy, ceiling: Ceiling) -> Iterator[tuple[str, float]]:
    """What the run moved over the same part in the same direction."""
    assert copy.step is not None
    yield "the copy", copy.step.rate.median
    if ceiling.cause in OF_ITS_TIME or ceiling.component in ("memory", "bus"):
        return
    for stage in ("tcp", *OVER_SMB):
        for each in steps.measured(report, stage):
            if not each.intact or hardware_limits.impossible(report, each):
                continue
            if _sender(each) == copy.sender and _passes(copy, each, ceiling):
                yield f"{stage} {each.setting.copy or each.setting.verb}", each.rate.median
                if stage == "smb-matrix" and ceiling.component != "smb":
                    for cell in shown.credible(report, each):
                        yield "a cell of smb-matrix", cell.bytes_per_second or 0.0


def _sender(found: Found) -> str:
    copy = found.setting.copy.split(".")
    return steps.sender(found.setting.verb or copy[-2], found.step.initiator)


def _passes(copy: Copy, found: Found, ceiling: Ceiling) -> bool:
    """Whether its bytes passed what the ceiling is of, with no less to do there."""
    assert copy.step is not None
    stage, setting, own = found.step.stage, found.setting, copy.step.details
    engine = setting.engine or steps.OWN
    ends = stage != "tcp" and (found.step.initiator, engine) == (copy.initiator, copy.engine)
    match ceiling.component:
        case "network" if ceiling.cause in WHOLE_PATH:
            # A path may have become slower since: the copy itself saw it.
            return ceiling.steps != (copy.step.index,) or found.index > copy.step.index
        case "network" | "tcp":
            return ends
        case "smb" if ceiling.cause == "round-trips":
            told, same = found.details, setting.dialect == copy.dialect
            shape = (own.request_bytes, own.depth)
            return ends and same and (told.request_bytes, told.depth) == shape
        case "cpu" if ceiling.standing == "estimated":
            # A core that the copy itself filled may have had more to do for it.
            free = ceiling.bytes_per_second > TOLERANCE_RATIO * copy.step.rate.median
            secured = stage != "smb-tax" or steps.security(found) == steps.security(copy.step)
            # Without a disk of its own the initiator has less to do for each byte.
            as_much = ceiling.side != copy.initiator or setting.end == "folder"
            as_much = as_much or found.rate.median > DISKLESS_RATIO * ceiling.bytes_per_second
            return ends and as_much and free and secured and setting.dialect == copy.dialect
        case "disk":
            return (
                stage == "smb-copy" and setting.end == "folder" and _on_disk(copy, found, ceiling)
            )
    return False


def _on_disk(copy: Copy, found: Found, ceiling: Ceiling) -> bool:
    if found.setting.copy.startswith(steps.OF_FILE) != copy.of_file:
        return False
    if ceiling.side == copy.receiver:
        return found.details.flushed is not False
    return "uncached" in found.setting.copy and bool(found.details.cache.proven)
