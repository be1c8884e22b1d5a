"""Doubts: what is not clear yet, and the look that would tell suspects apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bottleneck.analysis.doubts import Doubt, disks_to_measure, doubts, next_look, refining_stage
from bottleneck.analysis.finding import (
    Ceiling,
    CopyDiagnosis,
    Diagnosis,
    Suspect,
    TimeShare,
    Verdict,
)
from bottleneck.report.report import Report, Step
from probes.core.records import Measured, Sample, Usage
from probes.core.stage import stages_of

READ, LINK, CORE = (
    ("disk", "server", "read"),
    ("network", "path", "link-rate"),
    ("cpu", "server", "all-cores"),
)
RATE = 50e6
DISK_THEN_LINK = (TimeShare("disk", "server", 0.8), TimeShare("network", "path", 0.2))
IDLE = Usage(1.0, (0.1,), 0.1, 0.0, 0.0, 0.1, 0.1, 0.0, *(None,) * 12)


def ceiling(words: Any, rate: float) -> Ceiling:
    component, side, cause = words
    return Ceiling(component, side, cause, rate, rate, rate, (0,), "measured")


def copy(verdict: Any, confidence: float, *ceilings: Ceiling, **extra: Any) -> CopyDiagnosis:
    component, side, cause = verdict or ("unknown", None, "inconclusive")
    cap = Verdict(component, side, cause, confidence, None, "said")
    fields = {"copy": "pull.uncached", "initiator": "client", "dialect": "3.1.1", **extra}
    rate = fields.pop("bytes_per_second", RATE)
    return CopyDiagnosis(bytes_per_second=rate, verdict=cap, ceilings=ceilings, **fields)


def report(*rates: float, **details: Any) -> Report:
    setting = {"copy": "pull.uncached", "dialect": "3.1.1", "end": "folder"}
    runs = tuple((Sample(0.0, 0), Sample(1.0, int(rate))) for rate in rates)
    outcome = Measured(runs, IDLE, None, details)
    steps = ((Step("smb-copy", setting, "client"), outcome),) if rates else ()
    return Report("partial", {}, "", 1.0, {}, None, None, steps)


def judge(*copies: CopyDiagnosis, base: Report | None = None) -> tuple[Doubt, ...]:
    return doubts(base or report(RATE), Diagnosis(None, copies, ""), ("3.1.1",))


@pytest.mark.parametrize(
    ("sure", "time", "clear"),
    [(0.8, True, True), (0.7, True, False), (0.6, False, True), (0.5, False, False)],
)
def test_a_cap_that_is_sure_is_a_clear_case(sure: float, time: bool, clear: bool) -> None:
    """A copy without times of its own has only the limits beside it."""
    shares = DISK_THEN_LINK if time else ()
    assert (judge(copy(READ, sure, ceiling(READ, RATE), time=shares)) == ()) is clear


@pytest.mark.parametrize(
    "other", [{"initiator": "server"}, {"dialect": "smb1"}, {"bytes_per_second": None}]
)
def test_copies_that_are_not_the_clients_own_of_this_dialect_or_were_not_made_are_no_doubt(
    other: dict[str, Any],
) -> None:
    assert judge(copy(None, 0.0, **other)) == ()


def test_the_two_likeliest_are_suspected_and_no_other() -> None:
    likely = tuple(Suspect(*each, p) for each, p in ((READ, 0.5), (LINK, 0.4), (CORE, 0.05)))
    (doubt,) = judge(copy(READ, 0.5, suspects=likely))
    assert doubt.suspects == {("disk", "read"), ("network", "link-rate")}
    assert doubt.reason == "pull.uncached may be limited by the server's disk or the network"
    assert not doubt.unstable


@pytest.mark.parametrize(
    ("likely", "sure", "doubts"), [(0.95, 0.7, 0), (0.95, 0.6, 1), (0.7, 0.7, 1)]
)
def test_that_nobody_proved_a_source_cold_is_no_doubt_of_what_limits_its_copy(
    likely: float, sure: float, doubts: int
) -> None:
    """An ordinary account proves none: its runs went on to the end for that."""
    base = report(RATE, cache={"side": "server", "requested": "uncached", "proven": False})
    pull = copy(LINK, sure, time=DISK_THEN_LINK, suspects=(Suspect(*LINK, likely),))
    assert len(judge(pull, base=base)) == doubts
    worth = disks_to_measure(base, Diagnosis(None, (pull,), ""), ("3.1.1",))
    assert (worth is None) == bool(doubts)


def test_where_nothing_is_named_everything_is_suspected() -> None:
    (doubt,) = judge(copy(None, 0.0, suspects=(Suspect(*LINK, 0.2),)))
    assert doubt.suspects == frozenset()
    assert "not clear" in doubt.reason


def test_runs_that_lie_far_apart_are_unstable() -> None:
    (doubt,) = judge(copy(None, 0.0), base=report(RATE, 0.3 * RATE, 1.1 * RATE))
    assert doubt.unstable


def test_one_run_that_lies_far_off_among_four_is_another_load_that_went() -> None:
    (doubt,) = judge(copy(None, 0.0), base=report(RATE, 0.3 * RATE, 1.1 * RATE, 1.05 * RATE))
    assert not doubt.unstable


def speaking_stages(*stages: str) -> dict[str, tuple[str, ...]]:
    return {each.name: each.speaks_of for each in stages_of(stages)}


def behind(one: CopyDiagnosis, *stages: str, base: Report | None = None) -> str | None:
    refines = {each.name: each.refines for each in stages_of(stages)}
    look = refining_stage(base or report(RATE), Diagnosis(None, (one,), ""), ("3.1.1",), refines)
    return None if look is None else look.stage


def test_the_look_that_speaks_of_most_doubts_comes_first() -> None:
    disk = Doubt("pull.uncached", "3.1.1", frozenset({("disk", "read")}), "a tie", False)
    core = Doubt("push.cached", "3.1.1", frozenset({("cpu", "one-core")}), "a core", False)
    stages = ("path", "disk", "smb-tax")
    look = next_look((disk, disk, core), speaking_stages(*stages))
    assert look is not None and look.stage == "disk" and look.why.endswith("a tie")
    assert getattr(next_look((core,), speaking_stages(*stages)), "stage", "") == "smb-tax"


def test_of_everything_suspected_the_first_that_is_left_is_looked_at() -> None:
    anything = Doubt("pull.cached", "3.1.1", frozenset(), "what caps it is not clear", False)
    subjects = speaking_stages("small-files", "latency", "disk")
    assert getattr(next_look((anything,), subjects), "stage", "") == "latency"


def test_no_look_where_none_speaks_of_a_doubt_and_where_nothing_is_left() -> None:
    link = Doubt("pull.cached", "3.1.1", frozenset({("network", "link-rate")}), "x", False)
    assert next_look((link,), speaking_stages("disk", "small-files")) is None
    assert next_look((), speaking_stages("disk")) is None
    assert next_look((link,), {}) is None


def test_what_helps_a_slow_disk_depends_on_the_cause_however_sure_the_disk_is() -> None:
    sure = copy(READ, 0.97, ceiling(READ, RATE))
    assert behind(sure, "path", "disk", "smb-tax") == "disk"
    assert behind(sure, "path", "smb-tax") is None, "it was looked into already"


@pytest.mark.parametrize(
    "other",
    [
        copy(LINK, 0.97),
        copy(("disk", "server", "zone"), 0.9),
        copy(READ, 0.97, initiator="server"),
        copy(READ, 0.97, dialect="smb1"),
    ],
)
def test_nothing_is_behind_a_link_nor_behind_a_cause_that_is_found(other: CopyDiagnosis) -> None:
    assert behind(other, "disk", "smb-tax") is None


def test_a_link_that_nobody_measured_alone_may_be_a_disk_that_a_flush_waits_for() -> None:
    guessed = copy(LINK, 0.8, Ceiling(*LINK, RATE, RATE, RATE, (0,), "inferred"))
    assert behind(guessed, "smb-tax") == "smb-tax"
    (_, outcome), tcp = report(RATE).entries[0], Step("tcp", {"verb": "pull"}, "client")
    carried = replace(report(), entries=((tcp, outcome),))
    assert behind(guessed, "smb-tax", base=carried) is None


def test_a_copy_that_can_be_made_once_alone_is_no_doubt() -> None:
    """Again its source would come from the server's cache."""
    base = report(RATE)
    assert judge(copy(READ, 0.5, ceiling(READ, RATE)), base=base)
    ((step, outcome),) = base.entries
    assert isinstance(outcome, Measured)
    details = {"cache": {"proven": False, "cold_source": "past-cache"}}
    base = replace(base, entries=((step, replace(outcome, details=details)),))
    assert judge(copy(READ, 0.5, ceiling(READ, RATE)), base=base) == ()


# -- what of the disks is worth a look alone ------------------------------------------------------

LINK_THEN_DISK = (TimeShare("network", "path", 0.8), TimeShare("disk", "client", 0.1))


def worth(*copies: CopyDiagnosis) -> frozenset[tuple[str, str]] | None:
    return disks_to_measure(report(), Diagnosis(None, copies, ""), ("3.1.1",))


def test_the_disk_that_holds_a_copy_and_the_one_that_comes_next_are_measured() -> None:
    pull = copy(READ, 0.9, time=DISK_THEN_LINK)
    push = copy(LINK, 0.9, time=LINK_THEN_DISK, copy="push.cached")
    assert worth(pull, push) == {("server", "read"), ("client", "read")}
    assert worth(copy(LINK, 0.9, time=LINK_THEN_DISK)) == {("client", "write")}


def test_the_gain_of_the_headlines_copy_needs_the_disks_on_its_way() -> None:
    shares = (TimeShare("network", "path", 1.0),)
    copies = [copy(LINK, 0.9, time=shares, copy=name) for name in ("push.cached", "pull.uncached")]
    case = Diagnosis("pull.uncached", tuple(copies), "")
    assert disks_to_measure(report(), case, ("3.1.1",)) == {("client", "write"), ("server", "read")}


def test_a_pushed_file_of_the_users_is_read_here() -> None:
    push = copy(LINK, 0.9, time=(TimeShare("network", "path", 1.0),), copy="file.push.uncached")
    case = Diagnosis(push.copy, (push,), "")
    assert disks_to_measure(report(), case, ("3.1.1",)) == {("client", "read"), ("server", "write")}


def test_where_nothing_but_the_link_had_work_no_disk_is_measured() -> None:
    shares = (TimeShare("network", "path", 0.9), TimeShare("unknown", None, 0.1))
    assert worth(copy(LINK, 0.9, time=shares)) == frozenset()


@pytest.mark.parametrize(
    "unsure",
    [
        copy(READ, 0.79, time=DISK_THEN_LINK),
        copy(None, 0.0, time=DISK_THEN_LINK),
        copy(READ, 0.9),
        copy(CORE, 0.9, time=DISK_THEN_LINK),
    ],
    ids=["in doubt", "not named", "its time is unknown", "a CPU may be this tool's own work"],
)
def test_each_limit_may_decide_where_a_copy_is_in_doubt(unsure: CopyDiagnosis) -> None:
    assert worth(copy(READ, 0.9, time=DISK_THEN_LINK), unsure) is None
    assert worth() is None
