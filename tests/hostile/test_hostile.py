"""Whoever lies, stalls, downgrades or leads elsewhere is refused: in time, in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from behaviour import Behaviour
from trial import BEHAVIOURS, CHILD_BYTES, COORDINATOR_BYTES, EACH_ONCE, LATE_FAULT, SECRET, Result

LEAST_BEHAVIOURS = 60
TRIAL = Path(__file__).with_name("trial.py")


@pytest.fixture(
    scope="session", params=[EACH_ONCE, pytest.param(BEHAVIOURS, marks=pytest.mark.long)], ids=len
)
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Returns the results of trial.py, run in a process of its own, and its output."""
    results = tmp_path_factory.mktemp("hostile") / "results.json"
    command = [sys.executable, str(TRIAL), "--json", str(results)]
    command += ["--first", "--workers", "2"] if request.param is EACH_ONCE else []
    done = subprocess.run(command, capture_output=True, text=True)
    assert results.exists(), done.stdout + done.stderr
    document = {**json.loads(results.read_text()), "printed": done.stdout}
    assert len(document["results"]) == len(request.param)
    return document


def test_nobody_fools_us(trial: dict[str, Any]) -> None:
    """Each is refused for its reason or is harmless; one login, no other host, one line of text."""
    behaviours = {each.name: each for each in BEHAVIOURS}
    results = [Result(**each) for each in trial["results"]]
    faults = [(each, set(each.faults(behaviours[each.name])) - {LATE_FAULT}) for each in results]
    assert [each for each in faults if each[1]] == []


def test_there_are_many_ways_to_lie() -> None:
    """The names are what is counted, and none comes twice; harmless ones are none."""
    names = [each.name for each in BEHAVIOURS]
    assert len(names) == len(set(names))
    hostile = [each for each in BEHAVIOURS if each.outcome != "harmless"]
    assert len(hostile) >= LEAST_BEHAVIOURS


def test_memory_stays_bounded(trial: dict[str, Any]) -> None:
    """No child took more than its share, and the coordinator next to nothing."""
    assert max(each["child_peak_bytes"] for each in trial["results"]) <= CHILD_BYTES
    assert trial["coordinator_peak_bytes"] <= COORDINATOR_BYTES


def test_the_third_host_saw_nobody(trial: dict[str, Any]) -> None:
    """It listens where referrals, links and redirections lead."""
    assert trial["third_host_calls"] == 0


def test_the_password_is_nowhere(trial: dict[str, Any]) -> None:
    """Neither in a text nor in any other result."""
    assert SECRET not in json.dumps(trial)


def test_a_fault_is_seen() -> None:
    """The judgement itself: an accepted lie, a late end, a second login, a foreign host."""
    lie = Behaviour("a lie", "wrong signature")
    text, addresses = "a reply came with a wrong signature", ("127.0.0.1",)
    good = Result(lie.name, "failed", text, None, "", 1.0, 8.0, 1, addresses, 1, misbehaved=1)
    assert good.faults(lie) == []
    for change in (
        {"outcome": "measured", "hash_ok": True},
        {"text": "no room"},
        {"text": "a wrong signature\x1b[2J"},
        {"text": f"a wrong signature for {SECRET}"},
        {"elapsed_seconds": 9.5},
        {"child_peak_bytes": CHILD_BYTES + 1},
        {"logins": 2},
        {"weak_logins": 1},
        {"leaks": 1},
        {"misbehaved": 0},
        {"asked_hosts": ("127.0.0.1", "127.0.0.77")},
        {"outcome": "lost"},
    ):
        assert Result(**{**vars(good), **change}).faults(lie), change


def test_a_table_is_printed(trial: dict[str, Any]) -> None:
    """One row a behaviour, and what came of all."""
    *rows, last = trial["printed"].splitlines()
    assert sorted(row[7:65].rstrip() for row in rows) == sorted(
        each["name"][:58].rstrip() for each in trial["results"]
    )
    assert last.startswith(f"{len(rows)} behaviours, ")
