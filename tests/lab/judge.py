"""Planted against found: pure, from a report (CONTRACT's JSON) and a world's truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from worlds import LINK, Expected, LabWorld

REACHED_RATIO = 0.85
"""Below this share of the shaped payload rate a copy does not reach the link."""
MEMORY_TOLERANCE, FOLDER_TOLERANCE, TCP_TOLERANCE = 0.03, 0.10, 0.02
BLAMES_NOBODY = ("unknown", "instrument")

RIGHT, WRONG, MISSED, ABSTAINED = "right", "wrong", "missed", "abstained"
"""Grades: missed is to blame nobody where the plant caps the copy; abstained, where it does not."""


@dataclass(frozen=True)
class Judged:
    """One copy's verdict against the truth."""

    copy: str
    dialect: str | None
    bytes_per_second: float | None
    verdict: str
    confidence: float | None
    grade: str
    right: tuple[str, ...]


@dataclass(frozen=True)
class Ratio:
    """A measured rate over the true one."""

    what: str
    ratio: float
    tolerance: float

    @property
    def within(self) -> bool:
        """Whether the two agree as well as they should."""
        return abs(self.ratio - 1) <= self.tolerance


def verdicts(chosen: LabWorld, report: dict[str, Any]) -> list[Judged]:
    """Every copy of the world, in each dialect that the report holds; a copy not there is missed."""
    judged = []
    for expected in chosen.expected:
        payload = chosen.plant.payload_bytes_per_second(expected.copy.split(".")[0])
        found = [c for c in report["diagnosis"]["copies"] if c["copy"] == expected.copy]
        judged += [_verdict(expected, copy, payload) for copy in found]
        if not found:
            grade = MISSED if expected.touched else ABSTAINED
            judged.append(
                Judged(expected.copy, None, None, "not in the report", None, grade, _words(expected))
            )
    return judged


def _verdict(expected: Expected, copy: dict[str, Any], payload: float | None) -> Judged:
    verdict, rate = copy["verdict"], copy["bytes_per_second"]
    found = (verdict["component"], verdict["side"], verdict["cause"])
    at_link = payload is not None and (rate or 0) >= REACHED_RATIO * payload
    right = set(expected.right)
    if payload is not None:
        # Two caps can stand close together in a world; whether the link is reached is a fact.
        right = right | {LINK} if at_link else right - {LINK}
    if found in right:
        grade = RIGHT
    elif verdict["component"] not in BLAMES_NOBODY:
        grade = WRONG
    elif expected.touched and not (at_link and LINK not in expected.right):
        grade = MISSED
    else:
        grade = ABSTAINED
    return Judged(
        copy["copy"],
        copy.get("dialect"),
        rate,
        "/".join(str(word) for word in found if word is not None),
        verdict.get("confidence"),
        grade,
        _words(expected),
    )


def _words(expected: Expected) -> tuple[str, ...]:
    return tuple(sorted("/".join(str(word) for word in triple) for triple in expected.right))


def rates(
    chosen: LabWorld, report: dict[str, Any], iperf3: dict[str, float]
) -> Iterator[Ratio]:
    """Measured over true rates: tcp over iperf3 always, copies over the link where it alone is planted.

    iperf3: payload rate by verb ("push", "pull") of one stream run beside it, bytes per second.
    """
    link_world = all(LINK in expected.right and expected.touched for expected in chosen.expected)
    for step in report["steps"]:
        setting, outcome = step["setting"], step["outcome"]
        if outcome["kind"] != "measured":
            continue
        rate = outcome["bytes_per_second"]["median"]
        if step["stage"] == "tcp" and setting["verb"] in iperf3:
            what = f"tcp {setting['verb']} x{setting['streams']} / iperf3"
            yield Ratio(what, rate / iperf3[setting["verb"]], TCP_TOLERANCE)
        elif step["stage"] == "smb-copy" and link_world:
            payload = chosen.plant.payload_bytes_per_second(setting["copy"].split(".")[0])
            assert payload is not None
            tolerance = MEMORY_TOLERANCE if setting["end"] == "memory" else FOLDER_TOLERANCE
            what = f"{setting['copy']} {setting['dialect']} {setting['end']} / link"
            yield Ratio(what, rate / payload, tolerance)
        elif step["stage"] == "disk":
            planted = _planted_disk(chosen, setting)
            if planted is not None:
                what = f"disk {setting['side']} {setting['verb']} / planted"
                yield Ratio(what, rate / planted, FOLDER_TOLERANCE)


def _planted_disk(chosen: LabWorld, setting: dict[str, Any]) -> int | None:
    caps = chosen.plant.client if setting["side"] == "client" else chosen.plant.server
    if setting["verb"] == "write":
        return caps.disk_write_bytes_per_second
    return caps.disk_read_bytes_per_second if setting["cache"] == "uncached" else None
