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
"""Signs before a ceiling's rate, by its standing."""
LEAST_SHARE = 0.005
"""Least share of a copy's time that is mentioned."""
NAMES = {"cpu": "CPU", "tcp": "TCP", "smb": "SMB"}
NOT_NAMED = {"inconclusive": "not identified", "not-measured": "not made"}
SURE_RATIO = 0.9
MEDIUM_RATIO = 0.7
T = TypeVar("T")


def cell_text(write: Callable[[T], str], value: T | None) -> str | None:
    """Returns a table cell's text; None: the value is not known."""
    return None if value is None else write(value)


def spread_text(low: float, high: float, always: bool = False) -> str:
    """Returns a range with an en dash; empty if both ends read alike.

    always: returns the one figure then.
    """
    text = range_text(low, high)
    return text if always or "\u2013" in text else ""


def confidence_text(verdict: Verdict, unknown: str = "none (inconclusive)") -> str:
    """Returns a confidence as word and number: `high (0.97)`; unknown: text without a cap."""
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
    """Returns component, side and cause in one phrase: `server disk: read`."""
    if verdict.component == "unknown":
        return NOT_NAMED[verdict.cause]
    label = BY_WORDS[verdict.component, verdict.cause].label
    return f"{_component(verdict)}: {label}" if label else _component(verdict)


def first_line(diagnosis: Diagnosis) -> str:
    """Returns the verdict in one line: `Bottleneck: server disk (read), limited by a cgroup`."""
    copy = diagnosis.main_copy
    if diagnosis.healthy:
        return f"No fault found: {diagnosis.healthy}"
    if copy is None:
        return (
            "No copy was made" if not diagnosis.comparisons else diagnosis.comparisons[0].sentence
        )
    verdict = copy.verdict
    if verdict.component == "unknown":
        is_measured = any(each.bytes_per_second for each in diagnosis.copies)
        return f"Bottleneck: not identified{'' if is_measured else ' (no copy was made)'}"
    label = BY_WORDS[verdict.component, verdict.cause].label
    name = f"{_component(verdict)} ({label})" if label else _component(verdict)
    apart = " " if verdict.detail.startswith("or ") else ", "
    return f"Bottleneck: {name}{apart if verdict.detail else ''}{safe(verdict.detail, 60)}"


def time_text(time: Sequence[TimeShare], count: int = 3) -> str:
    """Returns a copy's time in one phrase: `71% server disk, 22% network`; empty: not known."""
    shares = (each for each in time[:count] if each.ratio >= LEAST_SHARE)
    return ", ".join(f"{percent_text(each.ratio)} {share_name(each)}" for each in shares)


def _component(words: Words) -> str:
    if words.component == "instrument":
        return f"this tool on the {words.side}"
    place = "" if words.side in (None, "path") else f"{words.side} "
    return f"{place}{NAMES.get(words.component, words.component)}"


def share_name(share: TimeShare | Verdict) -> str:
    """Returns the component of a part of a copy's time: "server disk"."""
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
    """Returns a step in a few words: `tcp pull 4 connections`, `disk server read uncached`."""
    pairs = ((key, word) for key, word in step.setting.items() if word is not None)
    words = {key: "supplied" if word == "told" else safe(word, 24) for key, word in pairs}
    streams = words.get("streams", "1")
    many = "" if streams == "1" else f" {streams} connections"
    match step.stage:
        case "smb-copy":
            where = " mem" if words.get("end") == "memory" else ""
            by = f" {words['engine']}" if words.get("engine", "own") != "own" else ""
            return f"{words.get('copy', '')} {words.get('dialect', '')}{where}{by}"
        case "native-copy":
            return f"{words.get('copy', '')} native"
        case "smb-tax":
            return f"smb-tax {words.get('verb', '')} {words.get('security', '')}"
        case "disk":
            how = words.get("pattern", "sequential").replace("told", "supplied")
            if how == "sequential":
                how = words.get("cache", "") if words.get("verb") == "read" else ""
            return f"disk {words.get('side', '')} {words.get('verb', '')} {how}".rstrip()
        case "loopback":
            return f"loopback {step.initiator}{many}"
        case "matrix":
            return f"matrix {words.get('verb', '')}"
        case "sweep":
            over = words.get("over", "")
            where = step.initiator if over == "loopback" else words.get("verb", "")
            return f"sweep {over} {where}"
        case stage:
            both = " both ways" if step.setting.get("both_ways") is True else ""
            return f"{safe(stage, 24)} {words.get('verb', '')}{many}".rstrip() + both


def dialect_text(dialect: str) -> str:
    """Returns a dialect's usual spelling: `SMB 3.1.1`, `SMB1`, `native`, `none`."""
    if dialect in ("native", "none"):
        return dialect
    if dialect == "unknown":
        return "SMB"
    return "SMB1" if dialect == "smb1" else f"SMB {safe(dialect, 16)}"


def busy_text(usage: Usage | None) -> str:
    """Returns a host's busiest core and its RAM in use: `12% 1.17 GiB`; empty: not known.

    A star means that a CPU quota stopped it some of the time.
    """
    if usage is None or not usage.core_busy_ratios:
        return ""
    core = percent_text(min(1.0, usage.busiest_core_ratio)).replace(" ", "")
    core += "*" if usage.throttled_ratio else ""
    used = usage.memory_used_bytes
    return core if used is None else f"{core} {size_text(used)}"
