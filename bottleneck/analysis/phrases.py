"""A verdict, its confidence, a dialect and a step in a few words, the same in every output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from bottleneck.analysis.finding import Diagnosis, TimeShare, Verdict, Words
from bottleneck.analysis.rules.registry import BY_WORDS
from bottleneck.report.report import Step
from bottleneck.text.safe import safe
from bottleneck.text.units import percent_text, range_text, size_text
from probes.core.records import Usage

DOUBT_SIGNS = {"measured": "", "at-least": "> ", "estimated": "~ ", "inferred": "~ "}
"""Before a ceiling's rate, by its standing."""
LEAST_SHARE = 0.005
"""Of a copy's time that is worth a word."""
NAMES = {"cpu": "CPU", "tcp": "TCP", "smb": "SMB"}
NOT_NAMED = {"inconclusive": "not identified", "not-measured": "not made"}
SURE_RATIO = 0.9
MEDIUM_RATIO = 0.7
T = TypeVar("T")


def known(write: Callable[[T], str], value: T | None) -> str | None:
    """A cell's text; None: what it would tell is not known."""
    return None if value is None else write(value)


def spread_text(low: float, high: float, always: bool = False) -> str:
    """A range with the dash that print has; empty where both ends read alike.

    always: then the one figure.
    """
    told = range_text(low, high)
    return told if always or "\u2013" in told else ""


def confidence_text(verdict: Verdict, unknown: str = "none (inconclusive)") -> str:
    """A confidence in a word and a number: `high (0.97)`; unknown: where nothing is named."""
    if verdict.component == "unknown":
        return unknown
    if verdict.confidence >= SURE_RATIO:
        word = "high"
    elif verdict.confidence >= MEDIUM_RATIO:
        word = "medium"
    else:
        word = "low"
    return f"{word} ({verdict.confidence:.2f})"


def cap_text(verdict: Words) -> str:
    """A component, its side and the cause in one phrase: `server disk: read`."""
    if verdict.component == "unknown":
        return NOT_NAMED[verdict.cause]
    label = BY_WORDS[verdict.component, verdict.cause].label
    return f"{_component(verdict)}: {label}" if label else _component(verdict)


def first_line(diagnosis: Diagnosis) -> str:
    """The verdict alone: `Bottleneck: server disk (read), limited by a cgroup`."""
    chosen = diagnosis.chosen
    if diagnosis.healthy:
        return f"No fault found: {diagnosis.healthy}"
    if chosen is None:
        return (
            "No copy was made" if not diagnosis.comparisons else diagnosis.comparisons[0].sentence
        )
    verdict = chosen.verdict
    if verdict.component == "unknown":
        made = any(each.bytes_per_second for each in diagnosis.copies)
        return f"Bottleneck: not identified{'' if made else ' (no copy was made)'}"
    label = BY_WORDS[verdict.component, verdict.cause].label
    named = f"{_component(verdict)} ({label})" if label else _component(verdict)
    apart = " " if verdict.detail.startswith("or ") else ", "
    return f"Bottleneck: {named}{apart if verdict.detail else ''}{safe(verdict.detail, 60)}"


def time_text(time: Sequence[TimeShare], most: int = 3) -> str:
    """Where a copy's time went, in one phrase: `71% server disk, 22% network`; empty: not known."""
    shown = (each for each in time[:most] if each.ratio >= LEAST_SHARE)
    return ", ".join(f"{percent_text(each.ratio)} {share_name(each)}" for each in shown)


def _component(words: Words) -> str:
    if words.component == "instrument":
        return f"this tool on the {words.side}"
    place = "" if words.side in (None, "path") else f"{words.side} "
    return f"{place}{NAMES.get(words.component, words.component)}"


def share_name(share: TimeShare | Verdict) -> str:
    """Whose a part of a copy's time was: "server disk"."""
    match share.component:
        case "network":
            return "network"
        case "smb":
            return "SMB round trips"
        case "unknown":
            return "unknown"
        case component:
            return f"{share.side} {NAMES.get(component, component)}"


def stage_text(step: Step) -> str:
    """A step in a few words: `tcp pull 4 connections`, `disk server read uncached`."""
    given = ((key, word) for key, word in step.setting.items() if word is not None)
    told = {key: "supplied" if word == "told" else safe(word, 24) for key, word in given}
    streams = told.get("streams", "1")
    many = "" if streams == "1" else f" {streams} connections"
    match step.stage:
        case "smb-copy":
            where = " mem" if told.get("end") == "memory" else ""
            by = f" {told['engine']}" if told.get("engine", "own") != "own" else ""
            return f"{told.get('copy', '')} {told.get('dialect', '')}{where}{by}"
        case "native-copy":
            return f"{told.get('copy', '')} native"
        case "smb-tax":
            return f"smb-tax {told.get('verb', '')} {told.get('security', '')}"
        case "disk":
            how = told.get("pattern", "sequential").replace("told", "supplied")
            if how == "sequential":
                how = told.get("cache", "") if told.get("verb") == "read" else ""
            return f"disk {told.get('side', '')} {told.get('verb', '')} {how}".rstrip()
        case "loopback":
            return f"loopback {step.initiator}{many}"
        case "matrix":
            return f"matrix {told.get('verb', '')}"
        case "sweep":
            over = told.get("over", "")
            where = step.initiator if over == "loopback" else told.get("verb", "")
            return f"sweep {over} {where}"
        case stage:
            both = " both ways" if step.setting.get("both_ways") is True else ""
            return f"{safe(stage, 24)} {told.get('verb', '')}{many}".rstrip() + both


def dialect_text(dialect: str) -> str:
    """A dialect as people write it: `SMB 3.1.1`, `SMB1`, `native`, `none`."""
    if dialect in ("native", "none"):
        return dialect
    if dialect == "unknown":
        return "SMB"
    return "SMB1" if dialect == "smb1" else f"SMB {safe(dialect, 16)}"


def busy_text(usage: Usage | None) -> str:
    """A host's busiest core and its RAM in use: `12% 1.17 GiB`; empty where nothing is known.

    A star: a CPU quota stopped it some of the time.
    """
    if usage is None or not usage.core_busy_ratios:
        return ""
    core = percent_text(min(1.0, usage.busiest_core_ratio)).replace(" ", "")
    core += "*" if usage.throttled_ratio else ""
    used = usage.memory_used_bytes
    return core if used is None else f"{core} {size_text(used)}"
