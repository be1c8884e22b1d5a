"""A coordinator before a hostile agent: a short cut of `python tests/hostile/hostile_agent.py`."""

from __future__ import annotations

from dataclasses import replace

import hostile_agent
import pytest
from hostile_agent import BEHAVIOURS, MOST_BYTES, Result

SHORT_CUT = ("40 replies of 1 MiB of empty lists to what it holds",)
LEAST_BEHAVIOURS = 60


@pytest.mark.long
@pytest.mark.parametrize("name", SHORT_CUT)
def test_a_hostile_agent_ends_its_run_in_time_and_in_little_memory(name: str) -> None:
    """The others are behind the command: each takes a run's own seconds."""
    (behaviour,) = [each for each in BEHAVIOURS if each.name == name]
    result = hostile_agent.run_behaviour(behaviour)
    assert result.faults(hostile_agent.GIVE_UP_SECONDS) == [], result


def test_there_are_many_ways_and_each_has_its_name() -> None:
    """Behaviours are chosen by name."""
    names = [each.name for each in BEHAVIOURS]
    assert len(names) == len(set(names)) >= LEAST_BEHAVIOURS


def test_a_fault_of_a_coordinator_is_seen() -> None:
    good = Result(69, "", "bottleneck: the agent is gone\n", 5.0, 50 << 20)
    assert good.faults(5.0) == []
    for bad in (
        replace(good, code=70),
        replace(good, code=-9),
        replace(good, peak_bytes=MOST_BYTES + 1),
        replace(good, elapsed_seconds=500.0),
        replace(good, err="Traceback (most recent call last)"),
        replace(good, err="\x1b[2J"),
        replace(good, report="a report that cannot be read"),
    ):
        assert bad.faults(5.0), bad
