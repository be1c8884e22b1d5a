"""The stages beside the copies, as a run makes them on a real server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bottleneck import plan, report, session
from bottleneck.analysis import diagnose
from bottleneck.bench import Bench
from bottleneck.steps import requests, security, small_files, source
from bottleneck.steps.allowance import seconds_for, thorough
from bottleneck.target import parse
from probes.drivers.samba import private_samba
from probes.records import Access, Measured, Skipped

PASSWORD = "correct horse 47"
STAGES = ("loopback", "smb-copy", "smb-matrix", "smb-tax", "small-files")
MEASURE: dict[str, Callable[[Bench], None]] = {
    "smb-matrix": requests.measure_requests,
    "smb-tax": security.measure_security,
    "small-files": small_files.measure_small_files,
}


def bench_of(budget: float, stages: tuple[str, ...], target: str = "//nas/x") -> Bench:
    options = plan.Options(
        target=parse(target), folder="/tmp", budget_seconds=budget, stages=stages
    )
    return Bench(options, Access("bottleneck", PASSWORD), lambda event: None, lambda report: None)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes stages' steps on a real server; what is left on its share is checked."""
    for module, seconds in ((requests, 0.25), (security, 0.3), (small_files, 0.2)):
        monkeypatch.setattr(module, "USUAL_SECONDS", seconds)

    @contextmanager
    def made(
        *options: str, budget: float = 60.0, stages: tuple[str, ...] = STAGES
    ) -> Iterator[Bench]:
        shared = tmp_path / "shared"
        shared.mkdir()
        with private_samba(str(shared), password=PASSWORD, options=options) as server:
            bench = bench_of(budget, stages, f"//{server.host}:{server.port}/{server.share}")
            with ExitStack() as stack:
                bench.address = server.host
                session._reach(bench, stack)
                session._open_share(bench, stack)
                session._learn(bench)
                for stage in stages:
                    if stage in MEASURE:
                        MEASURE[stage](bench)
            yield bench
        assert list(shared.iterdir()) == []

    return made


def test_a_usual_run_measures_all_three_and_its_report_says_so(run: Any) -> None:
    with run() as bench:
        made = bench.report()
        assert made.notes == () and bench.ledger.complete()
        assert all(isinstance(outcome, Measured) for _, outcome in made.entries)
        assert all(outcome.details["hash_ok"] is True for _, outcome in made.entries)
        assert [(step.stage, step.setting["verb"]) for step, _ in made.entries] == [
            ("smb-matrix", "pull"),
            *[("smb-tax", verb) for _ in range(3) for verb in ("pull", "push")],
            ("small-files", "push"),
            ("small-files", "pull"),
        ]
        taxed = [step.setting for step, _ in made.entries if step.stage == "smb-tax"]
        assert {each["security"] for each in taxed} == {"plain", "signed", "encrypted"}
        moved = [
            (step.setting["verb"], run[-1].moved_bytes)
            for step, outcome in made.entries
            if step.stage == "smb-tax" and isinstance(outcome, Measured)
            for run in outcome.runs
        ]
        assert len(set(moved)) == 2  # the same bytes whatever the security
        written = json.loads(report.dumps(made, diagnose(made)))
        for step in written["steps"]:
            assert "seed" not in step["setting"] and step["setting"]["dialect"] == "3.1.1"


def test_a_short_run_leaves_them_out_and_says_so(run: Any) -> None:
    with run(budget=20.0) as bench:
        made = bench.report()
        assert made.entries == () and bench.ledger.complete()
        assert len(made.notes) == 3
        for stage, note in zip(MEASURE, made.notes, strict=True):
            assert note.startswith(f"{stage}: left out") and "--budget" in note


def test_a_thorough_run_has_the_matrix_of_pushes_too(run: Any) -> None:
    with run(budget=300.0, stages=("smb-copy", "smb-matrix")) as bench:
        verbs = [step.setting["verb"] for step, _ in bench.report().entries]
        assert verbs == ["pull", "push"]


def test_security_that_the_server_does_not_allow_is_a_note(run: Any) -> None:
    with run("server signing = mandatory", stages=("smb-copy", "smb-tax")) as bench:
        made = bench.report()
        assert bench.ledger.complete()
        assert {step.setting["security"] for step, _ in made.entries} == {"signed", "encrypted"}
        assert [note for note in made.notes if "requires signing" in note] == list(made.notes)
        assert len(made.notes) == 1


def test_it_is_a_skipped_step_where_nothing_else_was_asked_for(run: Any) -> None:
    with run("server signing = mandatory", stages=("smb-tax",)) as bench:
        outcomes = {
            (step.setting["security"], step.setting["verb"]): outcome
            for step, outcome in bench.report().entries
        }
        for verb in ("pull", "push"):
            denied = outcomes["plain", verb]
            assert isinstance(denied, Skipped) and "requires signing" in denied.reason
            assert isinstance(outcomes["signed", verb], Measured)


@pytest.mark.parametrize("stage", MEASURE)
def test_one_stage_alone_is_measured_even_in_a_short_run(run: Any, stage: str) -> None:
    with run(budget=10.0, stages=(stage,)) as bench:
        entries = bench.report().entries
        assert {step.stage for step, _ in entries} == {stage}
        assert all(isinstance(outcome, Measured) for _, outcome in entries)


def test_a_full_share_is_a_skipped_step_that_says_so(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "beyond_reserve_bytes", lambda free, total: 0)
    with run() as bench:
        entries = bench.report().entries
        assert {step.stage for step, _ in entries} == set(MEASURE)
        for _, outcome in entries:
            assert isinstance(outcome, Skipped) and "no room on the share" in outcome.reason


def test_the_time_is_a_share_of_the_budget_and_never_more_than_a_quarter_of_what_is_left() -> None:
    usual = bench_of(60.0, STAGES)
    assert seconds_for(usual, "smb-matrix", 2.5) == 2.5
    late = bench_of(60.0, STAGES)
    late.began -= 50.0
    left = late.left()
    told = seconds_for(late, "smb-matrix", 2.5)
    assert told is not None and told <= left / 4
    late.began -= 6.0
    assert seconds_for(late, "smb-matrix", 2.5) is None and len(late.ledger.notes) == 1
    long = bench_of(300.0, STAGES)
    assert seconds_for(long, "smb-matrix", 2.5) == 12.5 and thorough(long, "smb-matrix")
    assert not thorough(usual, "smb-matrix") and thorough(bench_of(20.0, ("x",)), "x")
