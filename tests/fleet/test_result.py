"""What a fleet's result says in its headline, its state and its cases is the same in each."""

import pytest

from bottleneck.fleet.records import Pair, Seen
from bottleneck.fleet.result import of_pairs
from bottleneck.reports import fleet as shown

USUAL = 110e6
PAIRS = [Pair(f"pc{at}", f"nas{to}") for at in range(6) for to in range(3)]
COPY = "pull.cached"


def result(rates, **more):
    """All pairs; rates: of those that have another than the usual one."""
    return of_pairs({COPY: [Seen(each, rates.get(each, USUAL), **more) for each in PAIRS]})


@pytest.mark.parametrize(
    ("slow", "told"),
    [([PAIRS[4]], "1 slow pair"), ([PAIRS[4], PAIRS[9]], "2 slow pairs")],
    ids=["one", "two"],
)
def test_slow_pairs_that_nothing_explains_are_undecided(slow, told):
    found = result(dict.fromkeys(slow, 20e6))
    assert not found.is_decided and not found.culprits
    judgement = shown.judgement(found)
    assert judgement.state == "unknown"
    assert judgement.sentence == f"Bottleneck: not identified, no shared host explains {told}"


def test_pairs_that_are_healthy_at_a_lower_rate_are_slow_nowhere():
    found = result(dict.fromkeys(PAIRS[:3], 40e6), healthy=True)
    judgement = shown.judgement(found)
    assert found.found[0].slow == () and found.is_decided and judgement.state == "ok"
    assert judgement.sentence.startswith("No fault found: no pair with a faster link is slower")
    assert {each.state for each in judgement.judged} == {"ok"}
    assert [each.critical for each in judgement.judged] == [""] * 3 + ["88000000:"] * 15
    assert "*" not in str(shown.matrix(found, 9, 9).rows)
    assert "*" in str(shown.matrix(result({PAIRS[0]: 40e6}), 9, 9).rows)
