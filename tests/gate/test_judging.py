"""A gate's judgement of a report: the state of each expectation, and the worst of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck.cli import loading
from bottleneck.gate import metrics
from bottleneck.gate.expectation import cap, limit
from bottleneck.gate.judging import nothing_to_judge
from probes.core.records import Failed, Skipped
from tests import stored_reports

ROOT = Path(__file__).parents[2]


def test_nothing_asked_of_a_complete_report_is_ok_and_tells_every_copy(recorded, keep):
    keep(recorded)


def test_nothing_asked_of_a_partial_report_is_unknown_and_skipped_stages_have_no_value(build, keep):
    keep(build(skipped=("tcp.pull", "pull.cached"), status="partial"))


def test_a_stage_that_broke_and_a_headline_without_a_cap_are_unknown(build, keep):
    report = build()
    step, _ = report.entries[2]
    entries = (*report.entries[:2], (step, Failed("the cable burnt")), *report.entries[3:])
    keep(replace(report, entries=entries))
    keep(build({"pull.uncached": (0.2, 1.0, 3.0)}))
    keep(replace(report, entries=()))


@pytest.mark.parametrize(
    ("outcome", "skipped"), [(Failed("the cable burnt"), False), (Skipped("no time"), True)]
)
def test_what_was_not_measured_is_not_told_as_ok(build, gate, ruling, outcome, skipped):
    report = build()
    entries = tuple(
        (step, outcome if step.setting.get("copy") == "pull.cached" else measured)
        for step, measured in report.entries
    )
    verdict = ruling(gate(replace(report, entries=entries)), "pull.cached")
    assert (verdict.state, verdict.is_skipped) == ("unknown", skipped)


def test_a_limit_has_the_state_that_it_was_given_for(recorded, keep):
    both = (limit("pull.uncached < 80MB/s", "warning"), limit("pull.uncached < 20MB/s", "critical"))
    keep(recorded, *both)
    keep(recorded, both[0], limit("pull.uncached < 30MB/s", "critical"))


def test_limits_of_one_severity_are_a_line_each(recorded, keep):
    limits = [limit(f"pull.uncached < {each}MB/s", "warning") for each in (10, 20, 30)]
    keep(recorded, *limits)


def test_what_was_not_measured_is_unknown_never_ok(build, keep):
    limits = (limit("latency > 5ms", "warning"), limit("tcp.pull < 1MB/s", "critical"))
    keep(build(skipped=("tcp.pull",)), *limits, limit("pull.uncached < 80MB/s", "warning"))


def test_unknown_ranks_below_critical_and_above_warning(recorded, keep):
    warned = limit("pull.uncached < 80MB/s", "warning")
    unknown = limit("latency > 5ms", "critical")
    severe = limit("pull.cached < 900MB/s", "critical")
    keep(recorded, warned, unknown)
    keep(recorded, warned, unknown, severe)


def test_small_shares_are_not_told_as_none(recorded, keep):
    keep(recorded, limit("cpu.client > 1%", "warning"))


@pytest.mark.parametrize(
    "component",
    [
        *"disk disk/server disk/server/read disk/server/zone disk/client network".split(),
        *"push.cached=network/path/link-rate push.cached=disk push.cached@2.1=network".split(),
    ],
)
def test_another_sure_cap_is_critical(recorded, component, keep):
    keep(recorded, cap(component))


def test_a_cap_that_is_not_sure_or_not_known_is_unknown(build, keep):
    report = build({"pull.uncached": (0.2, 1.0, 3.0)})
    keep(report, cap("pull.uncached=network"))
    unsure = stored_reports.load(ROOT / "tests/data/report-v1-no-agent.json")
    keep(unsure, cap("tcp/server"))


def test_altered_bytes_are_critical_whatever_was_asked(build, alter, keep):
    altered = lambda outcome: replace(outcome, details={**outcome.details, "hash_ok": False})  # noqa: E731
    report = alter(build(), altered, copy="push.cached")
    keep(report, limit("pull.uncached < 1MB/s", "warning"))


@pytest.mark.parametrize("status", ["interrupted", "failed"])
def test_a_run_that_did_not_end_is_unknown_even_if_the_rest_holds(build, status, keep):
    report = build(status=status, notes=("the cat sat on it",))
    keep(report, limit("pull.uncached < 1MB/s", "warning"))
    keep(replace(report, entries=()))


def test_a_report_that_is_too_old_says_nothing_else(recorded, keep):
    severe = limit("pull.uncached < 80MB/s", "critical")
    keep(recorded, severe, age_seconds=30 * 3600.0, max_age_seconds=26 * 3600.0)
    keep(recorded, severe, age_seconds=3600.0, max_age_seconds=26 * 3600.0)
    keep(recorded, age_seconds=-3600.0)


def test_where_there_is_no_report_the_sentence_says_why():
    judgement = nothing_to_judge("no such file")
    assert (judgement.state, judgement.sentence) == ("unknown", "no such file")
    assert judgement.judged == ()


RECORDINGS = sorted([*ROOT.glob("tests/data/report-v1-*.json"), ROOT / "examples/ticket.toml"])


@pytest.mark.long
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_whatever_a_report_holds_it_is_judged(gate, recorded, path):
    """Reports come from strangers: every metric of every one, and as each other's baseline."""
    report = loading.load(path)
    limits = [limit(f"{metric}=0:", "warning") for metric in metrics.UNITS]
    caps = [cap("network"), cap("push.cached=disk/client/write")]
    for baselines in ((), (recorded,), (report,), (recorded, report)):
        judgement = gate(report, *limits, *caps, baselines=baselines)
        names = {each.metric for each in judgement.judged}
        assert {*metrics.UNITS} <= names
        assert all(each.message and each.metric.isascii() for each in judgement.judged)
        assert not any(" " in each.metric for each in judgement.judged)
    assert gate(recorded, baselines=(report,)).judged
    assert gate(report).judged


def test_where_proof_is_asked_for_a_copy_without_it_counts_as_not_measured(recorded, gate, ruling):
    """With a limit that it keeps, and where it is the headline."""
    entries = tuple(
        (step, replace(outcome, details={**outcome.details, "cache": {"proven": False}}))
        if step.setting.get("copy") == "pull.uncached" and step.setting.get("dialect") != "smb1"
        else (step, outcome)
        for step, outcome in recorded.entries
    )
    doubtful = replace(recorded, entries=entries)
    limits = [limit(f"{name} < 1MB/s", "warning") for name in ("pull.uncached", "push.cached")]
    for report, verified, state in (
        (doubtful, False, "ok"),
        (doubtful, True, "unknown"),
        (recorded, True, "ok"),
    ):
        judgement = gate(report, *limits, verified=verified)
        assert ruling(judgement, "pull.uncached").state == state
        assert ruling(judgement, "push.cached").state == "ok"
    assert "not verified" in ruling(gate(doubtful, *limits, verified=True), "pull.uncached").message
