"""The likelihood of each component to be the cap, by each kind of fact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck.analysis.decision.causes import TABLE
from bottleneck.analysis.decision.reasons import weights
from bottleneck.analysis.decision.verdict import decide
from bottleneck.analysis.decision.weigh import weigh
from bottleneck.analysis.facts.record import (
    ALLOWS,
    ALONE,
    BUSY,
    NETWORK,
    SHOWN,
    UNKNOWN,
    CopyFacts,
    Level,
    Part,
    Sign,
)
from bottleneck.analysis.rules.registry import BY_WORDS
from tests.analysis.decision.planted import CHAIN, CORE, SENDER, WINDOW, copy, fact


def likely(part: Part, facts: CopyFacts) -> float:
    return weigh(facts)[part]


def test_the_likelihoods_of_all_components_and_of_the_unseen_sum_to_1() -> None:
    weighed = weigh(copy(50, fact(SENDER, ALONE, 55)))
    assert sum(weighed.values()) == pytest.approx(1.0)
    assert set(weighed) == {*CHAIN, UNKNOWN}
    assert max(weighed, key=weighed.__getitem__) == SENDER


def test_a_copy_at_a_limit_is_likelier_held_by_it_the_more_exactly_that_is_known() -> None:
    exact = copy(50, fact(SENDER, ALONE, 52))
    wide = replace(exact.facts[0], level=Level(20e6, 50e6, 100e6))
    apart = copy(50, fact(SENDER, ALONE, 520))
    assert likely(SENDER, exact) > likely(SENDER, replace(exact, facts=(wide,))) > 0.3
    assert likely(SENDER, apart) < 0.1


def test_a_limit_that_the_copy_exceeds_is_none_and_a_second_witness_counts_less() -> None:
    assert likely(NETWORK, copy(50, fact(NETWORK, ALLOWS, 30))) == pytest.approx(
        likely(NETWORK, copy(50))
    )
    one, two = fact(NETWORK, ALONE, 52), fact(NETWORK, ALLOWS, 52)
    single, both = likely(NETWORK, copy(50, one)), likely(NETWORK, copy(50, one, two))
    assert single < both < 1


def test_what_moved_more_through_a_component_speaks_against_it_and_not_without_end() -> None:
    facts = [copy(50, fact(SENDER, SHOWN, rate)) for rate in (40, 80, 8000, 80_000)]
    tiny, some, big, huge = (likely(SENDER, each) for each in facts)
    assert tiny > some > big == huge > 0


def test_a_twin_clears_what_was_not_seen_too() -> None:
    """All but the sender's disk moved more: what is left is that disk."""
    others = [part for part in CHAIN if part != SENDER]
    witnesses = [fact(part, SHOWN, 118, is_of_twin=True) for part in others]
    twin = copy(15, *witnesses)
    stranger = copy(15, *(replace(each, is_of_twin=False) for each in witnesses))
    assert likely(SENDER, twin) > likely(SENDER, stranger)
    assert likely(UNKNOWN, twin) < 0.1 and decide(twin).key == ("disk", "server", "read")


def test_the_busiest_component_is_the_likeliest() -> None:
    facts = (fact(SENDER, BUSY, 0.95), fact(NETWORK, BUSY, 0.3), fact(UNKNOWN, BUSY, 0.05))
    watched = copy(50, *facts, view="both")
    assert decide(watched).part == SENDER
    assert decide(watched).confidence > 0.9


def test_work_that_a_view_cannot_see_lies_in_its_unknown_time() -> None:
    facts = (fact(NETWORK, BUSY, 0.2), fact(UNKNOWN, BUSY, 0.8))
    blind = copy(50, *facts, view="alone", unseen=frozenset({SENDER}))
    assert likely(SENDER, blind) > likely(NETWORK, blind)
    assert likely(SENDER, blind) > likely(SENDER, replace(blind, unseen=frozenset()))


def test_what_is_seen_in_this_copy_voids_what_other_moments_showed() -> None:
    """Others came to the path after a test of it."""
    facts = (fact(NETWORK, SHOWN, 118), fact(NETWORK, BUSY, 0.9))
    plain = copy(20, *facts, view="both")
    shared = replace(plain, signs=(Sign("others-traffic", "server", 0.8),))
    assert likely(NETWORK, shared) > likely(NETWORK, plain)
    assert decide(shared).key == ("network", "path", "contention")


def test_a_sign_of_a_component_that_rested_counts_for_nothing() -> None:
    facts = (fact(CORE, BUSY, 0.1), fact(NETWORK, BUSY, 0.9))
    rested = copy(50, *facts, view="both")
    crowded = replace(rested, signs=(Sign("crowded", "server", 0.9),))
    assert likely(CORE, crowded) == likely(CORE, rested)


def test_a_rate_like_that_of_a_disk_at_rest_is_not_its_limit() -> None:
    facts = (fact(SENDER, ALONE, 52), fact(SENDER, BUSY, 0.1), fact(CORE, BUSY, 0.8))
    assert decide(copy(50, *facts, view="both")).part == CORE


def test_neither_windows_nor_requests_matter_on_a_short_path() -> None:
    near = copy(50, fact(WINDOW, ALLOWS, 52))
    far = replace(near, rtt_seconds=0.02)
    assert likely(WINDOW, near) < 0.2 and likely(WINDOW, far) > 0.4


def test_below_one_half_nothing_is_named_but_two_in_a_tie_are_named_together() -> None:
    tie = copy(50, fact(SENDER, ALONE, 52), fact(NETWORK, ALONE, 52))
    decision = decide(tie)
    assert {decision.part, decision.rival} == {SENDER, NETWORK}
    assert decision.confidence < 0.5
    nothing = decide(copy(50))
    assert nothing.key == ("unknown", None, "inconclusive") and len(nothing.suspects) == 4


def test_no_verdict_is_surer_than_its_view_allows() -> None:
    facts = (fact(SENDER, BUSY, 1.0), fact(SENDER, ALONE, 52))
    views = {view: copy(50, *facts, view=view) for view in ("both", "hidden", "alone", "counters")}
    confidences = [decide(each).confidence for each in views.values()]
    assert confidences == sorted(confidences, reverse=True) and confidences[0] <= 0.98
    assert decide(replace(views["both"], supplied=True)).confidence <= 0.7
    assert decide(replace(views["both"], trust=0.6)).confidence == 0.6


def test_scattered_runs_name_only_what_the_copys_own_time_shows() -> None:
    facts = (fact(SENDER, ALONE, 52),)
    assert decide(copy(50, *facts)).part == SENDER
    assert decide(copy(50, *facts, is_scattered=True, view="counters")).part == UNKNOWN
    watched = copy(50, *facts, fact(SENDER, BUSY, 0.95), is_scattered=True, view="both")
    assert decide(watched).part == SENDER


def test_the_evidence_weighs_the_suspects_with_what_speaks_for_and_against_each() -> None:
    facts = (fact(SENDER, ALONE, 52), fact(SENDER, BUSY, 0.9), fact(NETWORK, SHOWN, 118))
    lines = list(weights(decide(copy(50, *facts, view="both"))))
    assert lines[0].endswith(
        "% likely: the server's disk (at work for 90% of the copy's time; another step: 52.0 MB/s, "
        "close to the copy's rate)."
    )
    open_case = list(weights(decide(copy(50, fact(NETWORK, SHOWN, 118)))))
    assert not any("100%" in line or "the network" in line for line in lines[1:] + open_case)


def test_each_cause_that_a_verdict_can_name_has_a_row_and_each_row_is_a_cause() -> None:
    rows = {row.words for rows in TABLE.values() for row in rows}
    assert rows == {"/".join(words) for words in BY_WORDS}
