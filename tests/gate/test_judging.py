"""What a gate says of a report: the state of each expectation, and the worst of them."""

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


def test_nothing_asked_of_a_complete_report_is_ok_and_tells_every_copy(recorded, says):
    says(recorded)


def test_nothing_asked_of_a_partial_report_is_unknown_and_skipped_stages_have_no_value(as_if, says):
    says(as_if(gone=("tcp.pull", "pull.cached"), status="partial"))


def test_a_stage_that_broke_and_a_headline_without_a_cap_are_unknown(as_if, says):
    known = as_if()
    step, _ = known.entries[2]
    entries = (*known.entries[:2], (step, Failed("the cable burnt")), *known.entries[3:])
    says(replace(known, entries=entries))
    says(as_if({"pull.uncached": (0.2, 1.0, 3.0)}))
    says(replace(known, entries=()))


@pytest.mark.parametrize(
    ("outcome", "skipped"), [(Failed("the cable burnt"), False), (Skipped("no time"), True)]
)
def test_what_was_not_measured_is_not_told_as_ok(as_if, judged, line, outcome, skipped):
    known = as_if()
    entries = tuple(
        (step, outcome if step.setting.get("copy") == "pull.cached" else made)
        for step, made in known.entries
    )
    found = line(judged(replace(known, entries=entries)), "pull.cached")
    assert (found.state, found.is_skipped) == ("unknown", skipped)


def test_a_limit_has_the_state_that_it_was_given_for(recorded, says):
    both = (limit("pull.uncached < 80MB/s", "warning"), limit("pull.uncached < 20MB/s", "critical"))
    says(recorded, *both)
    says(recorded, both[0], limit("pull.uncached < 30MB/s", "critical"))


def test_limits_of_one_severity_are_a_line_each(recorded, says):
    asked = [limit(f"pull.uncached < {each}MB/s", "warning") for each in (10, 20, 30)]
    says(recorded, *asked)


def test_what_was_not_measured_is_unknown_never_ok(as_if, says):
    asked = (limit("latency > 5ms", "warning"), limit("tcp.pull < 1MB/s", "critical"))
    says(as_if(gone=("tcp.pull",)), *asked, limit("pull.uncached < 80MB/s", "warning"))


def test_unknown_ranks_below_critical_and_above_warning(recorded, says):
    warned = limit("pull.uncached < 80MB/s", "warning")
    unknown = limit("latency > 5ms", "critical")
    severe = limit("pull.cached < 900MB/s", "critical")
    says(recorded, warned, unknown)
    says(recorded, warned, unknown, severe)


def test_small_shares_are_not_told_as_none(recorded, says):
    says(recorded, limit("cpu.client > 1%", "warning"))


@pytest.mark.parametrize(
    "asked",
    [
        *"disk disk/server disk/server/read disk/server/zone disk/client network".split(),
        *"push.cached=network/path/link-rate push.cached=disk push.cached@2.1=network".split(),
    ],
)
def test_another_sure_cap_is_critical(recorded, asked, says):
    says(recorded, cap(asked))


def test_a_cap_that_is_not_sure_or_not_known_is_unknown(as_if, says):
    known = as_if({"pull.uncached": (0.2, 1.0, 3.0)})
    says(known, cap("pull.uncached=network"))
    unsure = stored_reports.load(ROOT / "tests/data/report-v1-no-agent.json")
    says(unsure, cap("tcp/server"))


def test_altered_bytes_are_critical_whatever_was_asked(as_if, changed, says):
    altered = lambda made: replace(made, details={**made.details, "hash_ok": False})  # noqa: E731
    known = changed(as_if(), altered, copy="push.cached")
    says(known, limit("pull.uncached < 1MB/s", "warning"))


@pytest.mark.parametrize("status", ["interrupted", "failed"])
def test_a_run_that_did_not_end_is_unknown_even_if_the_rest_holds(as_if, status, says):
    known = as_if(status=status, notes=("the cat sat on it",))
    says(known, limit("pull.uncached < 1MB/s", "warning"))
    says(replace(known, entries=()))


def test_a_report_that_is_too_old_says_nothing_else(recorded, says):
    severe = limit("pull.uncached < 80MB/s", "critical")
    says(recorded, severe, age_seconds=30 * 3600.0, max_age_seconds=26 * 3600.0)
    says(recorded, severe, age_seconds=3600.0, max_age_seconds=26 * 3600.0)
    says(recorded, age_seconds=-3600.0)


def test_where_there_is_no_report_the_sentence_says_why():
    found = nothing_to_judge("no such file")
    assert (found.state, found.sentence, found.judged) == ("unknown", "no such file", ())


RECORDINGS = sorted([*ROOT.glob("tests/data/report-v1-*.json"), ROOT / "examples/ticket.toml"])


@pytest.mark.long
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_whatever_a_report_holds_it_is_judged(judged, recorded, path):
    """Reports come from strangers: every metric of every one, and as each other's baseline."""
    known = loading.load(path)
    limits = [limit(f"{metric}=0:", "warning") for metric in metrics.UNITS]
    caps = [cap("network"), cap("push.cached=disk/client/write")]
    for baselines in ((), (recorded,), (known,), (recorded, known)):
        found = judged(known, *limits, *caps, baselines=baselines)
        names = {each.metric for each in found.judged}
        assert {*metrics.UNITS} <= names
        assert all(each.message and each.metric.isascii() for each in found.judged)
        assert not any(" " in each.metric for each in found.judged)
    assert judged(recorded, baselines=(known,)).judged
    assert judged(known).judged


def test_where_proof_is_asked_for_a_copy_without_it_counts_as_not_measured(recorded, judged, line):
    """With a limit that it keeps, and where it is the headline."""
    entries = tuple(
        (step, replace(outcome, details={**outcome.details, "cache": {"proven": False}}))
        if step.setting.get("copy") == "pull.uncached" and step.setting.get("dialect") != "smb1"
        else (step, outcome)
        for step, outcome in recorded.entries
    )
    doubtful = replace(recorded, entries=entries)
    asked = [limit(f"{name} < 1MB/s", "warning") for name in ("pull.uncached", "push.cached")]
    for known, verified, state in (
        (doubtful, False, "ok"),
        (doubtful, True, "unknown"),
        (recorded, True, "ok"),
    ):
        found = judged(known, *asked, verified=verified)
        assert line(found, "pull.uncached").state == state
        assert line(found, "push.cached").state == "ok"
    assert "not verified" in line(judged(doubtful, *asked, verified=True), "pull.uncached").message
