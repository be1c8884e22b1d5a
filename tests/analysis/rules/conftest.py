"""Planted worlds that the rules' tests begin with, and how plainly the rules speak of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from bottleneck.analysis import steps
from bottleneck.analysis.decision.limit import ladder_of
from bottleneck.analysis.finding import Claim
from bottleneck.report.report import Report

MOST_WORDS, MOST_DETAIL = 25, 7
UNWANTED = re.compile(
    r"\b(no more than|no faster than|alone|somebody|nobody|others'|told|tells?|caps?|capped"
    r"|ceiling|lies|held|holds? (?:it|back)|look at|round trips?|proven|vanish\w*|blamed?|jumps?"
    r"|pieces|meanwhile|sent again|control group|not known|far off|as told|RAM)\b",
    re.IGNORECASE,
)
"""Words of the left column of docs/style.md's glossary that a rule could fall back to."""
ENDS = (".", ":", ";", ",")


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?]) (?=[A-Z`])", text)


def _plain(text: str) -> None:
    assert not UNWANTED.search(text), text
    for each in sentences(text):
        assert len(each.split()) <= MOST_WORDS, each


def _plain_claim(claim: Claim) -> None:
    words, remedy = claim.words, claim.remedy
    for text in (words, remedy):
        _plain(text)
        assert not text.endswith(ENDS), text
    assert len(sentences(words)) == 1, words
    assert words[0].islower() or words[0].isdigit() or words.startswith(("SMB", "TCP")), words
    assert remedy[:1] == remedy[:1].upper(), remedy
    assert len(claim.detail.split()) <= MOST_DETAIL and not claim.detail.endswith(ENDS)


@pytest.fixture
def plain_claims() -> Callable[[Report], list[Claim]]:
    """Checks all that the rules say of a report's copies, and returns their claims.

    Words are one clause, which follows "because"; a remedy is an imperative; both get their full
    stop later. Evidence and remarks are whole sentences.
    """

    def checked(report: Report) -> list[Claim]:
        claims: list[Claim] = []
        for copy in steps.copies(report):
            if copy.step is None:
                continue
            ladder = ladder_of(report, copy)
            claims += ladder.claims
            for claim in ladder.claims:
                _plain_claim(claim)
            said = (each for claim in ladder.claims for each in claim.evidence)
            for text in (*ladder.remarks, *said):
                _plain(text)
                assert text.endswith(".") and not re.search(r"\.\.|[ ,]\.|  ", text), text
        return claims

    return checked


@pytest.fixture
def expect(
    expect: Callable[..., None], plain_claims: Callable[[Report], list[Claim]]
) -> Callable[..., None]:
    """Keeps what the rules say as for all of the analysis; it has to be plain as well."""

    def noted(world: Any, *expected: str, **target: Any) -> None:
        expect(world, *expected, **target)
        report = world if isinstance(world, Report) else world.report()
        report.target.update(target)
        plain_claims(report)

    return noted


@pytest.fixture
def no_agent(empty_world: Callable[..., Any]) -> Any:
    """A client whose disks are fast, and no agent on the server."""
    world = empty_world(agent=False)
    world.loopback("client", 2100)
    world.disk("client", "read", (1480, 1500, 1510))
    world.disk("client", "write", (890, 900, 915))
    return world
