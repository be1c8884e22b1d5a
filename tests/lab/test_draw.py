"""Worlds that are drawn: the same by a seed, of every kind, and with a truth; judged by time."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from by_time import by_time
from draw import KINDS, drawn
from experiment import Terms, judged
from judge import RIGHT
from truth import WORLDS

from bottleneck.analysis.rules.registry import BY_WORDS
from bottleneck.report.report import from_json
from tests.traces import VIEWS

KEPT = Path(__file__).parents[1] / "data" / "traces"


def test_a_seed_draws_the_same_worlds_and_another_draws_others() -> None:
    assert drawn(24, "ab12") == drawn(24, "ab12")
    assert drawn(24, "ab12") != drawn(24, "ab13")
    assert drawn(8, "ab12") == drawn(24, "ab12")[:8]


def test_each_kind_comes_before_one_comes_again_and_has_a_truth() -> None:
    worlds = drawn(3 * len(KINDS), "cd")
    kinds = [each.name.split("-", 2)[2] for each in worlds]
    assert sorted(kinds[: len(KINDS)]) == sorted(KINDS)
    for each in worlds:
        assert all(copy.right for copy in each.expected)
        for component, _, cause in {right for copy in each.expected for right in copy.right}:
            assert (component, cause) in BY_WORDS


def test_a_kept_trace_is_judged_by_its_time_in_each_view() -> None:
    told = json.loads(gzip.decompress((KEPT / "server-read.json.gz").read_bytes()))
    ran = judged(WORLDS["server-read"], told, Terms())
    assert list(ran.by_time) == list(VIEWS)
    assert all({row.grade for row in rows} == {RIGHT} for rows in ran.by_time.values())
    before = json.dumps(told)
    by_time(from_json(told), told, "alone")
    assert json.dumps(told) == before
