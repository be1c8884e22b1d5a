"""Whoever is killed, at whatever moment: nothing is left."""

import kills
import pytest

from probes.programs.samba import find_smbd


@pytest.mark.long
@pytest.mark.skipif(find_smbd() is None, reason="NOT RUN: needs samba")
def test_three_kills_leave_nothing() -> None:
    runs = list(kills.trial(3, seed=2, only="share", files=300))
    assert len(runs) == 3
    assert all(each.clean for each in runs), runs


def test_what_is_left_is_counted_and_ends_with_1() -> None:
    killed = kills.KillResult("disk", "agent", 1.0, 2.0, ["/a/b"], ["/a/b"], ["fio --x"], 1, [], [])
    assert not killed.clean
    assert kills.table([killed]).splitlines()[1].split() == [
        *"disk agent 1 1.00 1.00 2.00 1 1 1 1 0 0".split()
    ]
