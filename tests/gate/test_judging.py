"""What a gate says of a report: the state of each expectation, and the worst of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck import report
from bottleneck.cli import loading
from bottleneck.gate import metrics, nothing_to_judge
from bottleneck.gate.expectation import cap, limit
from probes.records import Failed, Measured

ROOT = Path(__file__).parents[2]


def test_nothing_asked_of_a_complete_report_is_ok_and_tells_every_copy(judged, recorded):
    found = judged(recorded)
    assert found.state == "ok"
    assert [each.metric for each in found.judged] == [
        *("push.uncached", "push.cached", "pull.uncached", "pull.cached")
    ]
    assert found.sentence == found.diagnosis.summary


def test_nothing_asked_of_a_partial_report_is_unknown_and_skipped_stages_have_no_value(
    judged, as_if, line
):
    found = judged(as_if(gone=("tcp.pull", "pull.cached"), status="partial"))
    assert found.state == "unknown"
    for metric in ("tcp.pull", "pull.cached"):
        told = line(found, metric)
        assert (told.state, told.value, bool(told.unit)) == ("ok", None, True)
        assert "the dog" in told.message


def test_a_stage_that_broke_and_a_headline_without_a_cap_are_unknown(judged, as_if, line):
    known = as_if()
    step, _ = known.entries[2]
    entries = (*known.entries[:2], (step, Failed("the cable burnt")), *known.entries[3:])
    found = judged(replace(known, entries=entries))
    assert line(found, "tcp.push").state == "unknown"
    assert "the cable burnt" in found.sentence
    unclear = judged(as_if({"pull.uncached": (0.2, 1.0, 3.0)}))
    assert line(unclear, "pull.uncached").state == "unknown"
    assert judged(replace(known, entries=())).state == "unknown"


def test_a_limit_has_the_state_that_it_was_given_for(judged, recorded, line):
    both = (limit("pull.uncached < 80MB/s", "warning"), limit("pull.uncached < 20MB/s", "critical"))
    found = judged(recorded, *both)
    told = line(found, "pull.uncached")
    assert (found.state, told.state) == ("warning", "warning")
    assert told.name == "pull.uncached >= 80MB/s and >= 20MB/s (critical)"
    assert (told.warning, told.critical) == ("80000000:", "20000000:")
    assert told.value == pytest.approx(24.5e6, rel=0.01)
    assert found.sentence == (
        "pull.uncached is 24.5 MB/s, below 80MB/s; its cap is server disk: read"
    )
    worse = judged(recorded, both[0], limit("pull.uncached < 30MB/s", "critical"))
    assert (worse.state, len(worse.judged)) == ("critical", 1)


def test_limits_of_one_severity_are_a_line_each(judged, recorded):
    asked = [limit(f"pull.uncached < {each}MB/s", "warning") for each in (10, 20, 30)]
    found = judged(recorded, *asked)
    assert [each.state for each in found.judged] == ["ok", "ok", "warning"]


def test_what_was_not_measured_is_unknown_never_ok(judged, as_if, line):
    asked = (limit("latency > 5ms", "warning"), limit("tcp.pull < 1MB/s", "critical"))
    found = judged(as_if(gone=("tcp.pull",)), *asked, limit("pull.uncached < 80MB/s", "warning"))
    assert found.state == "unknown"
    assert line(found, "latency").value is None
    assert "the dog" in line(found, "tcp.pull").message
    assert found.sentence.endswith("; and 2 more")


def test_unknown_ranks_below_critical_and_above_warning(judged, recorded):
    warned = limit("pull.uncached < 80MB/s", "warning")
    unknown = limit("latency > 5ms", "critical")
    severe = limit("pull.cached < 900MB/s", "critical")
    assert judged(recorded, warned, unknown).state == "unknown"
    assert judged(recorded, warned, unknown, severe).state == "critical"


def test_small_shares_are_not_told_as_none(judged, recorded):
    found = judged(recorded, limit("cpu.client > 1%", "warning"))
    assert "cpu.client is 2.3 %, above 1%" in found.sentence


@pytest.mark.parametrize(
    ("asked", "state"),
    [
        ("disk", "ok"),
        ("disk/server", "ok"),
        ("disk/server/read", "ok"),
        ("disk/server/zone", "critical"),
        ("disk/client", "critical"),
        ("network", "critical"),
        ("push.cached=network/path/link-rate", "ok"),
        ("push.cached=disk", "critical"),
        ("push.cached@2.1=network", "unknown"),
    ],
)
def test_another_sure_cap_is_critical(judged, recorded, asked, state):
    found = judged(recorded, cap(asked))
    assert found.state == state
    (told,) = found.judged
    assert told.metric == ("cap" if "=" not in asked else f"cap.{asked.partition('=')[0]}")


def test_a_cap_that_is_not_sure_or_not_known_is_unknown(judged, as_if):
    known = as_if({"pull.uncached": (0.2, 1.0, 3.0)})
    assert judged(known, cap("pull.uncached=network")).state == "unknown"
    unsure = report.load(ROOT / "tests/data/report-v1-no-agent.json")
    found = judged(unsure, cap("tcp/server"))
    confidence = found.diagnosis.chosen.verdict.confidence
    assert found.state == ("critical" if confidence >= 0.8 else "unknown")


def test_altered_bytes_are_critical_whatever_was_asked(judged, as_if):
    known = as_if()
    entries = tuple(
        (step, replace(outcome, details={**outcome.details, "hash_ok": False}))
        if step.setting.get("copy") == "push.cached" and isinstance(outcome, Measured)
        else (step, outcome)
        for step, outcome in known.entries
    )
    found = judged(replace(known, entries=entries), limit("pull.uncached < 1MB/s", "warning"))
    assert found.state == "critical" and "not the bytes" in found.sentence


@pytest.mark.parametrize("status", ["interrupted", "failed"])
def test_a_run_that_did_not_end_is_unknown_even_if_the_rest_holds(judged, as_if, status):
    known = as_if(status=status, notes=("the cat sat on it",))
    found = judged(known, limit("pull.uncached < 1MB/s", "warning"))
    assert found.state == "unknown" and "the cat" in found.sentence
    nothing = judged(replace(known, entries=()))
    assert (nothing.state, [each.metric for each in nothing.judged]) == ("unknown", ["run"])


def test_a_report_that_is_too_old_says_nothing_else(judged, recorded):
    severe = limit("pull.uncached < 80MB/s", "critical")
    found = judged(recorded, severe, age_seconds=30 * 3600.0, max_age_seconds=26 * 3600.0)
    assert (found.state, len(found.judged)) == ("unknown", 1)
    assert found.sentence == "the report is 30 h old, and 26 h are allowed"
    fresh = judged(recorded, severe, age_seconds=3600.0, max_age_seconds=26 * 3600.0)
    assert (fresh.state, fresh.age_seconds) == ("critical", 3600.0)
    ahead = judged(recorded, age_seconds=-3600.0)
    assert ahead.state == "unknown" and "a clock is wrong" in ahead.sentence


def test_where_there_is_no_report_the_sentence_says_why():
    found = nothing_to_judge("no such file")
    assert (found.state, found.sentence, found.judged) == ("unknown", "no such file", ())


RECORDINGS = sorted([*ROOT.glob("tests/data/report-v1-*.json"), ROOT / "examples/ticket.toml"])


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_whatever_a_report_holds_it_is_judged(judged, recorded, path):
    """Reports come from strangers: every metric of every one, and as each other's baseline."""
    known = loading.load(path)
    limits = [limit(f"{metric}=0:", "warning") for metric in metrics.UNITS]
    caps = [cap("network"), cap("push.cached=disk/client/write")]
    for baseline in (None, recorded, known):
        found = judged(known, *limits, *caps, baseline=baseline)
        names = {each.metric for each in found.judged}
        assert {*metrics.UNITS} <= names
        assert all(each.message and each.metric.isascii() for each in found.judged)
        assert not any(" " in each.metric for each in found.judged)
    assert judged(recorded, baseline=known).judged
    assert judged(known).judged
