"""Planted against found: pure, from a report (CONTRACT's JSON) and a world's truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from truth import BUSY_LINK, LINK, NEEDS_AGENT, WRONG_PATH, ExpectedCap, LabWorld, Triple

REACHED_RATIO, FULL_RATIO = 0.85, 0.97
"""Shares of the shaped payload rate: below the first a copy does not reach the link and the link
cannot be its cap; above the second it fills the link and nothing else can; between, either may."""
FAR_SECONDS, FAR_REACHED_RATIO = 0.03, 0.7
"""On a far path a copy of seconds spends a part of them on the first round trips and the last."""
START_TRIPS = 8
"""Round trips of slow start, the first requests and the last ones."""
MEMORY_TOLERANCE, FOLDER_TOLERANCE, TCP_TOLERANCE = 0.03, 0.10, 0.02
BLAMES_NOBODY = ("unknown", "instrument")

RIGHT, WRONG, MISSED, ABSTAINED = "right", "wrong", "missed", "abstained"
NOT_COUNTED = "not counted"
"""Grades: missed is to blame nobody where the plant caps the copy; abstained, where it does not;
not counted is a copy that nobody can make without an agent."""
NOBODY = "nobody"
"""The verdict of a copy that is not in the report."""


@dataclass(frozen=True)
class JudgedCopy:
    copy: str
    dialect: str | None
    bytes_per_second: float | None
    verdict: str
    confidence: float | None
    grade: str
    right: tuple[str, ...]
    """Every verdict that is true of it."""


@dataclass(frozen=True)
class Ratio:
    """A measured rate over the true one."""

    what: str
    ratio: float
    tolerance: float | None
    """None: told for the record, they need not agree."""

    @property
    def within(self) -> bool:
        """Whether the two agree as well as they should."""
        return self.tolerance is None or abs(self.ratio - 1) <= self.tolerance


def verdicts(case: LabWorld, report: dict[str, Any], *, agent: bool = True) -> list[JudgedCopy]:
    """Every copy of the world in each dialect of the report; one that is not there is missed.

    agent: whether the run had one on the server; without it some copies cannot be made.
    """
    judged = []
    for expected in (*case.expected, *_mirror(case, report)):
        copies = [c for c in report["diagnosis"]["copies"] if c["copy"] == expected.copy]
        excused = not agent and expected.copy in NEEDS_AGENT
        judged += [_verdict(case, expected, report, copy, copies, excused) for copy in copies]
        if not copies:
            grade = MISSED if expected.touched else ABSTAINED
            grade = NOT_COUNTED if excused else grade
            right = _words(expected.right)
            judged.append(JudgedCopy(expected.copy, None, None, NOBODY, None, grade, right))
    return judged


def _mirror(case: LabWorld, report: dict[str, Any]) -> Iterator[ExpectedCap]:
    """The truth of the copies that the server started, as far as they were made.

    Bytes that the server pushes go the way of those that the client pulls, through the same hosts;
    but smbd is the client's then, and what the server's smb.conf says is not true of it.
    """
    if case.plant.samba_options:
        return
    copies = report["diagnosis"]["copies"]
    measured = {copy["copy"] for copy in copies if copy["bytes_per_second"] is not None}
    for each in case.expected:
        verb, _, cache = each.copy.partition(".")
        name = f"server.{'push' if verb == 'pull' else 'pull'}.{cache}"
        if name in measured:
            yield replace(each, copy=name)


def _verb(copy: str) -> str:
    """Returns the way its bytes go, seen from the client: push or pull."""
    *initiator, verb, _ = copy.split(".")
    if initiator == ["server"]:
        return "pull" if verb == "push" else "push"
    return verb


def _verdict(
    case: LabWorld,
    expected: ExpectedCap,
    report: dict[str, Any],
    copy: dict[str, Any],
    same: list[dict[str, Any]],
    excused: bool,
) -> JudgedCopy:
    """same: the copy in every dialect; if it was made in one of them, one left out is no miss.

    excused: whether it cannot be made in this run.
    """
    verdict, rate = copy["verdict"], copy["bytes_per_second"]
    answer = (verdict["component"], verdict["side"], verdict["cause"])
    payload = case.plant.payload_bytes_per_second(_verb(expected.copy))
    filled = (rate or 0) / _moving_ratio(case, report, copy) / payload if payload else None
    right = truth(expected.right, filled, _reached_ratio(case, report, copy))
    # A copy that comes near the link although something else is planted may leave open which.
    undecided = LINK in right and LINK not in expected.right
    measured = any(each["bytes_per_second"] is not None for each in same)
    if rate is None and excused:
        grade = NOT_COUNTED
    elif answer in right:
        grade = RIGHT
    elif verdict["component"] not in BLAMES_NOBODY:
        grade = WRONG
    elif expected.touched and not undecided and (rate is not None or not measured):
        grade = MISSED
    else:
        grade = ABSTAINED
    return JudgedCopy(
        copy=copy["copy"],
        dialect=copy.get("dialect"),
        bytes_per_second=rate,
        verdict="/".join(str(word) for word in answer if word is not None),
        confidence=verdict.get("confidence"),
        grade=grade,
        right=_words(right or expected.right),
    )


def _step(report: dict[str, Any], copy: dict[str, Any]) -> dict[str, Any] | None:
    """The outcome of the step that made a copy; None: there is none."""
    for step in report["steps"]:
        setting, outcome = step["setting"], step["outcome"]
        key = (setting.get("copy"), setting.get("dialect"), setting.get("end"))
        if outcome["kind"] == "measured" and key == (copy["copy"], copy["dialect"], "folder"):
            details: dict[str, Any] = outcome
            return details
    return None


def _moving_ratio(case: LabWorld, report: dict[str, Any], copy: dict[str, Any]) -> float:
    """Share of a copy's time in which bytes moved; 1 where a planted disk makes them durable.

    The flush of a disk in which nothing is planted takes some 30 ms: of a file that the link
    carries in 140 ms that is much, and none of it shows another cap than the link.
    """
    receiver = case.plant.server if _verb(copy["copy"]) == "push" else case.plant.client
    if receiver.disk_write_bytes_per_second is not None or receiver.spinning is not None:
        return 1.0
    step = _step(report, copy)
    flush = step["details"].get("flush_seconds") if step else None
    return 1 - min(0.5, float(flush) / float(step["samples"][-1][0])) if step and flush else 1.0


def _reached_ratio(case: LabWorld, report: dict[str, Any], copy: dict[str, Any]) -> float:
    """Share of the link's rate from which on it may be the cap: less where round trips are long."""
    rtt_seconds = case.plant.round_trip_seconds or 0.0
    # What the server starts is smbclient's copy, its log-in included.
    if rtt_seconds >= FAR_SECONDS or copy["copy"].startswith("server."):
        return FAR_REACHED_RATIO
    step = _step(report, copy)
    if not step or not rtt_seconds:
        return REACHED_RATIO
    waits = START_TRIPS * rtt_seconds / float(step["samples"][-1][0])
    return max(FAR_REACHED_RATIO, REACHED_RATIO * (1 - waits))


def truth(
    expected: frozenset[Triple], filled: float | None, reached_ratio: float = REACHED_RATIO
) -> frozenset[Triple]:
    """True verdicts of a copy that fills this share of the shaped link; None: no shaped link.

    Whether a copy fills the link is a fact of its rate, whatever else is planted: a quota that
    leaves enough CPU for the whole link caps nothing. A link shared with others stays
    shared, and one that was chosen wrongly stays that.
    """
    if filled is None or {BUSY_LINK, WRONG_PATH} & expected:
        return expected
    if filled >= FULL_RATIO:
        return frozenset({LINK})
    return expected | {LINK} if filled >= reached_ratio else expected - {LINK}


def _words(right: frozenset[Triple]) -> tuple[str, ...]:
    return tuple(sorted("/".join(str(word) for word in triple) for triple in right))


def rates(case: LabWorld, report: dict[str, Any], iperf3: dict[str, float]) -> Iterator[Ratio]:
    """Measured over true rates: tcp over iperf3, disks over what is planted, copies over the link.

    Copies are compared in the worlds where the link alone is planted. iperf3: payload rate by verb
    ("push", "pull") of one stream run beside it, bytes per second; a verb not there is left out.
    """
    link_world = all(LINK in expected.right and expected.touched for expected in case.expected)
    link_world = link_world and case.plant.payload_bytes_per_second("push") is not None
    for step in report["steps"]:
        setting, outcome = step["setting"], step["outcome"]
        if outcome["kind"] != "measured" or "bytes_per_second" not in outcome:
            continue
        rate = outcome["bytes_per_second"]["median"]
        if step["stage"] == "tcp" and setting["streams"] == 1 and setting["verb"] in iperf3:
            what = f"tcp {setting['verb']} / iperf3"
            tolerance = TCP_TOLERANCE if _link_caps_tcp(case, setting["verb"]) else None
            yield Ratio(what, rate / iperf3[setting["verb"]], tolerance)
        elif step["stage"] == "smb-copy" and link_world:
            payload = case.plant.payload_bytes_per_second(_verb(setting["copy"]))
            assert payload is not None
            tolerance = MEMORY_TOLERANCE if setting["end"] == "memory" else FOLDER_TOLERANCE
            what = f"{setting['copy']} {setting['dialect']} {setting['end']} / link"
            yield Ratio(what, rate / payload, tolerance)
        elif step["stage"] == "disk":
            planted = _planted_disk(case, setting)
            if planted is not None:
                what = f"disk {setting['side']} {setting['verb']} / planted"
                yield Ratio(what, rate / planted, FOLDER_TOLERANCE)


def _link_caps_tcp(case: LabWorld, verb: str) -> bool:
    """Whether two TCP generators must agree: short of CPU, buffers or packets each has its own."""
    hosts = (case.plant.client, case.plant.server)
    shaped = case.plant.payload_bytes_per_second(verb) is not None
    free = all(caps.quota_ratio is None and not caps.sysctls for caps in hosts)
    intact = not case.plant.loss_ratio and all(caps.largest_bytes is None for caps in hosts)
    return shaped and free and intact


def _planted_disk(case: LabWorld, setting: dict[str, Any]) -> int | None:
    caps = case.plant.client if setting["side"] == "client" else case.plant.server
    if setting["verb"] == "write":
        return caps.disk_write_bytes_per_second
    return caps.disk_read_bytes_per_second if setting["cache"] == "uncached" else None
