"""The law of the report: no verdict contradicts what its own run moved; pure.

Told from the steps themselves, and not by what the analysis uses to obey it.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import hardware_limits, steps, transfer_rates
from bottleneck.analysis.finding import Ceiling, CopyDiagnosis, Diagnosis
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.report.report import Report

TOLERANCE_RATIO = 1.1
"""Two measurements of one thing are no further apart."""
OVER_SMB = ("smb-copy", "smb-matrix", "smb-tax")
DISKLESS_RATIO = 1.5
"""Factor that a host may move more where it neither reads nor writes a file."""
STALLED_RATIO = 0.05
"""Share of the requests: more waits for credits, and they set the window."""
FULL_RATIO = 0.8
"""In flight over what may be: a window that was used."""
WHOLE_PATH = ("link-rate", "duplex", "wrong-path")
OF_ITS_TIME = ("contention", "delay", "loss", "quota", "mtu", "zone", "seek", "sync")
"""Causes that come and go, or belong to one place or length: another step may be without them."""


def broken_laws(report: Report, diagnosis: Diagnosis) -> tuple[str, ...]:
    """Each place where the diagnosis says what its own report refutes."""
    copies = {
        (copy.name, copy.dialect, copy.initiator, copy.step.rate.median): copy
        for copy in steps.copies(report)
        if copy.step is not None
    }
    faults = []
    for row in diagnosis.copies:
        key = (row.copy, row.dialect, row.initiator, row.bytes_per_second or 0.0)
        if key in copies:
            faults += [
                f"{row.copy} {row.dialect}: {each}" for each in _copy_laws(report, copies[key], row)
            ]
    return tuple(faults)


def _copy_laws(report: Report, copy: Copy, row: CopyDiagnosis) -> Iterator[str]:
    for ceiling in row.ceilings:
        if ceiling.standing != "at-least":
            for what, rate in _moved_rates(report, copy, ceiling):
                if rate > TOLERANCE_RATIO * ceiling.bytes_per_second:
                    level = ceiling.bytes_per_second
                    yield f"{ceiling.words} at {level:.4g}, but {what} moved {rate:.4g}"
    following, level_now = row.next, row.verdict.ceiling_bytes_per_second
    if following is None:
        return
    level = following.ceiling_bytes_per_second
    if level_now is not None and level < level_now:
        yield f"next {following.words} at {level:.4g} is below the verdict's {level_now:.4g}"
    meant = [e for e in row.ceilings if (e.key, e.bytes_per_second) == (following.key, level)]
    if meant and all(each.standing == "at-least" for each in meant):
        yield f"next {following.words} at {level:.4g} is only known to be no lower"
    for each in meant:
        if each.cause == "round-trips" and each.standing != "at-least":
            yield from _is_throttled(copy, each)


def _is_throttled(copy: Copy, window: Ceiling) -> Iterator[str]:
    """A window read off what was in flight while neither the depth nor the credits ran out."""
    assert copy.step is not None
    facts = copy.step.details
    total = (facts.request_bytes or 0.0) * (facts.depth or 0.0)
    ran_out = facts.credit_stalls > STALLED_RATIO * facts.requests
    few = bool(facts.in_flight_bytes) and FULL_RATIO * total > (facts.in_flight_bytes or 0.0)
    if facts.rtt_seconds and facts.in_flight_bytes and few and not ran_out:
        throttled = TOLERANCE_RATIO * facts.in_flight_bytes / facts.rtt_seconds
        if window.standing != "measured" and window.bytes_per_second <= throttled:
            yield f"next {window.words} is what was in flight of {total:.4g} bytes"


def _moved_rates(report: Report, copy: Copy, ceiling: Ceiling) -> Iterator[tuple[str, float]]:
    """Yields what the run moved over the same part in the same direction."""
    assert copy.step is not None
    yield "the copy", copy.step.rate.median
    if ceiling.cause in OF_ITS_TIME or ceiling.component in ("memory", "bus"):
        return
    for stage in ("tcp", *OVER_SMB):
        for each in steps.measured_steps(report, stage):
            if not each.is_intact or hardware_limits.impossible(report, each):
                continue
            if _sender(each) == copy.sender and _passes(copy, each, ceiling):
                yield f"{stage} {each.setting.copy or each.setting.verb}", each.rate.median
                if stage == "smb-matrix" and ceiling.component != "smb":
                    for cell in transfer_rates.credible_cells(report, each):
                        yield "a cell of smb-matrix", cell.bytes_per_second or 0.0


def _sender(record: MeasuredStep) -> str:
    copy = record.setting.copy.split(".")
    return steps.sender(record.setting.verb or copy[-2], record.plan.initiator)


def _passes(copy: Copy, record: MeasuredStep, ceiling: Ceiling) -> bool:
    """Whether its bytes passed what the ceiling is of, with no less to do there."""
    assert copy.step is not None
    stage, setting, usual = record.plan.stage, record.setting, copy.step.details
    engine = setting.engine or steps.OWN
    ends = stage != "tcp" and (record.plan.initiator, engine) == (copy.initiator, copy.engine)
    match ceiling.component:
        case "network" if ceiling.cause in WHOLE_PATH:
            # A path may have become slower since: the copy itself saw it.
            return ceiling.steps != (copy.step.index,) or record.index > copy.step.index
        case "network" | "tcp":
            return ends
        case "smb" if ceiling.cause == "round-trips":
            details, same = record.details, setting.dialect == copy.dialect
            shape = (usual.request_bytes, usual.depth)
            return ends and same and (details.request_bytes, details.depth) == shape
        case "cpu" if ceiling.standing == "estimated":
            # A core that the copy itself filled may have had more to do for it.
            free = ceiling.bytes_per_second > TOLERANCE_RATIO * copy.step.rate.median
            secured = stage != "smb-tax" or steps.security(record) == steps.security(copy.step)
            # Without a disk of its own the initiator has less to do for each byte.
            as_much = ceiling.side != copy.initiator or setting.end == "folder"
            as_much = as_much or record.rate.median > DISKLESS_RATIO * ceiling.bytes_per_second
            return ends and as_much and free and secured and setting.dialect == copy.dialect
        case "disk":
            return (
                stage == "smb-copy" and setting.end == "folder" and _on_disk(copy, record, ceiling)
            )
    return False


def _on_disk(copy: Copy, record: MeasuredStep, ceiling: Ceiling) -> bool:
    if record.setting.copy.startswith(steps.OF_FILE) != copy.is_of_file:
        return False
    if ceiling.side == copy.receiver:
        return record.details.flushed is not False
    return "uncached" in record.setting.copy and bool(record.details.cache.proven)
