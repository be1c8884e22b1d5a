"""What every rule says of the stored reports: one clause, short sentences, the words of the style.

A claim's words follow "because", its remedy is an imperative; both get their full stop later.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bottleneck import report as reports
from bottleneck.analysis import ceilings, steps

ROOT = Path(__file__).parents[3]
REPORTS = sorted([*ROOT.glob("tests/data/report-v1-*.json"), *ROOT.glob("examples/*-disk-*.json")])
MOST_WORDS = 25
UNWANTED = re.compile(
    r"\b(no more than|no faster than|alone|somebody|nobody|others'|told|tells?|caps?|capped"
    r"|ceiling|lies|held|holds?|look at|round trips?|proven|vanish\w*|blamed?|jumps?|pieces"
    r"|meanwhile|sent again|control group|not known|far off|as told|RAM)\b",
    re.IGNORECASE,
)
"""Words of the left column of docs/style.md's glossary that a rule could fall back to."""
ENDS = (".", ":", ";", ",")


def found(path: Path) -> tuple[list[Any], list[str]]:
    """All claims and remarks of a report's copies."""
    report = reports.load(path)
    claims, remarks = [], []
    for copy in steps.copies(report):
        if copy.made is not None:
            ladder = ceilings.ladder(report, copy, copy.made.rate.median)
            claims += ladder.claims
            remarks += ladder.remarks
    return claims, remarks


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?]) (?=[A-Z`])", text)


def assert_plain(text: str) -> None:
    assert not UNWANTED.search(text), text
    for each in sentences(text):
        assert len(each.split()) <= MOST_WORDS, each


@pytest.mark.parametrize("path", REPORTS, ids=[each.stem for each in REPORTS])
def test_words_are_one_short_clause_that_follows_because(path: Path) -> None:
    for claim in found(path)[0]:
        assert_plain(claim.words)
        assert len(sentences(claim.words)) == 1 and not claim.words.endswith(ENDS)
        assert claim.words[0].islower() or claim.words.startswith(("SMB", "TCP")), claim.words


@pytest.mark.parametrize("path", REPORTS, ids=[each.stem for each in REPORTS])
def test_a_remedy_is_imperative_and_a_detail_is_a_part_of_a_line(path: Path) -> None:
    for claim in found(path)[0]:
        assert_plain(claim.remedy)
        assert not claim.remedy.endswith(ENDS) and claim.remedy[:1] == claim.remedy[:1].upper()
        assert not claim.detail.endswith(ENDS) and len(claim.detail.split()) <= 7


@pytest.mark.parametrize("path", REPORTS, ids=[each.stem for each in REPORTS])
def test_evidence_is_whole_sentences(path: Path) -> None:
    claims, remarks = found(path)
    for text in (*remarks, *(each for claim in claims for each in claim.evidence)):
        assert_plain(text)
        assert text.endswith("."), text
        assert not re.search(r"\.\.|[ ,]\.|  ", text), text


def test_the_stored_reports_speak_of_many_components() -> None:
    """Else the tests above would hold of nothing."""
    said = {claim.ceiling.named for path in REPORTS for claim in found(path)[0]}
    assert len(REPORTS) >= 8 and len({component for component, _, _ in said}) >= 6
