"""Headline, state and cases of a fleet's result agree in each document."""

import json
import math
from dataclasses import replace

import pytest

from bottleneck.analysis.finding import Words
from bottleneck.documents import fleet as documents
from bottleneck.documents import fleet_rows as rows
from bottleneck.documents.document import Text
from bottleneck.fleet.records import Node, Pair, Rate
from bottleneck.fleet.result import judge_pairs

USUAL = 110e6
PAIRS = [Pair(f"pc{n}", f"nas{to}") for n in range(6) for to in range(3)]
COPY = "pull.cached"


def result(rates, **words):
    """All pairs; rates: of those that have another than the usual one."""
    return judge_pairs({COPY: [Rate(each, rates.get(each, USUAL), **words) for each in PAIRS]})


@pytest.mark.parametrize(
    ("slow", "words"),
    [([PAIRS[4]], "1 slow pair"), ([PAIRS[4], PAIRS[9]], "2 slow pairs")],
    ids=["one", "two"],
)
def test_slow_pairs_that_nothing_explains_are_undecided(slow, words):
    fleet = result(dict.fromkeys(slow, 20e6))
    assert not fleet.is_decided and not fleet.culprits
    judgement = documents.judgement(fleet)
    assert judgement.state == "unknown"
    assert judgement.sentence == f"Bottleneck: not identified, no shared host explains {words}"


def test_pairs_that_are_healthy_at_a_lower_rate_are_slow_nowhere():
    fleet = result(dict.fromkeys(PAIRS[:3], 40e6), healthy=True)
    judgement = documents.judgement(fleet)
    assert fleet.findings[0].slow == () and fleet.is_decided and judgement.state == "ok"
    assert judgement.sentence.startswith("No fault found: no pair with a faster link is slower")
    assert {each.state for each in judgement.judged} == {"ok"}
    assert [each.critical for each in judgement.judged] == [""] * 3 + ["88000000:"] * 15
    assert "*" not in str(documents.matrix(fleet, 9, 9).rows)
    assert "*" in str(documents.matrix(result({PAIRS[0]: 40e6}), 9, 9).rows)


DISK, CORE, LINK = (
    Words("disk", "server", "read"),
    Words("cpu", "client", "one-core"),
    Words("network", "path", "link-rate"),
)


def of_pc0(*verdicts):
    """Pc0 is slow with as many servers; what each of those pairs names itself."""
    rates = [
        Rate(Pair(f"pc{pc}", f"nas{to}"), USUAL if pc else 20e6, *(() if pc else (words, 0.9)))
        for pc in range(6)
        for to, words in enumerate(verdicts)
    ]
    return judge_pairs({COPY: rates})


@pytest.mark.parametrize("verdicts", [[DISK] * 6, [DISK] * 3 + [None] * 3], ids=["all", "half"])
def test_a_host_is_not_named_against_what_its_pairs_name_themselves(verdicts):
    fleet = of_pc0(*verdicts)
    (doubt,) = fleet.undecided_suspects
    assert fleet.culprits == () and doubt.node == Node("client", "pc0") and doubt.verdict is None
    assert doubt.confidence < 0.7 and not fleet.is_decided
    assert documents.headline(fleet) == "Bottleneck: not identified, client pc0"
    assert f"{doubt.opposed} of them name a limit of another part." in "".join(
        documents.sentences(fleet)
    )


@pytest.mark.parametrize("words", [CORE, LINK], ids=["own", "path"])
def test_a_few_that_name_another_side_lower_the_confidence_in_what_most_name(words):
    (all_agree,) = of_pc0(*[words] * 6).culprits
    (culprit,) = of_pc0(*[words] * 5, DISK).culprits
    assert (culprit.verdict, culprit.agreeing, culprit.opposed) == (words, 5, 1)
    assert 0.7 <= culprit.confidence < all_agree.confidence


@pytest.mark.parametrize("rate", [math.inf, -math.inf, math.nan, 1e308, -1.0])
def test_a_rate_that_is_none_costs_its_own_pair_alone(rate):
    fleet = result({PAIRS[4]: rate})
    assert fleet.missing == {PAIRS[4]: "no valid rate"} and not fleet.is_decided
    assert fleet.findings[0].slow == () and fleet.findings[0].measured == 17
    assert "No fault found" in rows.to_json(fleet) and "pc1,nas2" in rows.table_csv(fleet)
    assert documents.page(fleet) and documents.ticket(fleet) and list(documents.blocks(fleet))


@pytest.mark.parametrize("rate", [math.inf, 0.0], ids=str)
def test_documents_are_made_where_no_pair_has_a_rate(rate):
    fleet = result(dict.fromkeys(PAIRS, rate))
    assert fleet.culprits == () and len(fleet.missing) == (18 if rate else 0)
    assert rows.to_json(fleet) and documents.page(fleet) and documents.ticket(fleet)
    assert list(documents.blocks(fleet)) and documents.judgement(fleet).judged


def test_a_pair_without_time_for_a_whole_copy_is_slow_by_the_upper_limit_of_its_rate():
    """One without a disk in between is as slow: then no copy is faster."""
    slow = {pair: 20e6 for pair in PAIRS if pair.server == "nas2"}
    rates = [Rate(each, slow.get(each, USUAL), at_most=each in slow) for each in PAIRS]
    case = judge_pairs({COPY: rates}, missing=dict.fromkeys(slow, "out of time"))
    assert [each.node for each in case.culprits] == [Node("server", "nas2")]
    assert case.missing == {} and case.at_most == slow.keys()
    assert any(
        "6 slow pairs had no time for a whole copy" in each for each in documents.sentences(case)
    )
    assert [each["at_most"] for each in json.loads(rows.to_json(case))["pairs"]].count(True) == 6


def test_an_upper_limit_shows_no_fast_pair_and_none_of_a_pair_that_has_a_rate():
    fast, slow = PAIRS[4], PAIRS[5]
    rates = [Rate(each, USUAL) for each in PAIRS if each not in (fast, slow)]
    limits = [Rate(fast, USUAL, at_most=True), Rate(slow, 20e6, at_most=True)]
    other = [Rate(slow, USUAL)]
    fleet = judge_pairs({COPY: rates + limits, "push.cached": other}, missing={fast: "out of time"})
    assert fleet.missing == {fast: "out of time"} and fast not in fleet.rates[COPY]
    assert fleet.findings[0].slow == () and not fleet.at_most
    assert documents.headline(fleet).endswith("(1 pair not measured)")
    case = judge_pairs({COPY: [Rate(slow, 20e6, at_most=True)]}, missing={slow: "out of time"})
    assert case.missing == {slow: "out of time"} and not case.findings


def test_a_file_that_cannot_be_read_leaves_a_fleet_without_fault_undecided():
    fleet = replace(result({}), unread=("nas.json: cannot be read: empty",))
    assert documents.headline(fleet).endswith("(1 not readable)") and not fleet.is_decided
    assert documents.judgement(fleet).state == "unknown"
    assert replace(result(dict.fromkeys(PAIRS[::3], 20e6)), unread=fleet.unread).is_decided


def test_a_fleet_of_which_most_was_not_measured_is_not_called_healthy():
    missing = dict.fromkeys(PAIRS[1:], "no login")
    case = judge_pairs({COPY: [Rate(PAIRS[0], USUAL)]}, missing=missing)
    assert f"only 1 of {len(PAIRS)} pairs could be measured" in documents.headline(case)
    (text,) = [e.text for e in documents.details(case) if isinstance(e, Text) and "mend" in e.text]
    first = min(missing)
    assert f"//{first.server}/SHARE --json FILE` on {first.client}" in text and "--resume" in text
