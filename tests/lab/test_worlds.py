"""Worlds are told apart, in CONTRACT's words, with room between their caps."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from experiment import Terms, judged_again
from plant import Caps, Plant
from truth import COPIES, GROUPS, WORLDS, LabWorld, planting

from bottleneck.analysis.rules.registry import check_words

RECORDED = Path(__file__).resolve().parents[1] / "data" / "report-v1-server-quota.json"
LEAST_WORLDS, LEAST_LIFTED = 40, 15
MAIN_CAUSES = (
    *"network/link-rate network/contention network/loss network/mtu".split(),
    *"tcp/receive-window tcp/send-buffer tcp/congestion-control smb/round-trips".split(),
    *"disk/read disk/write disk/zone disk/seek disk/sync disk/contention".split(),
    "cpu/quota",
    "cpu/contention",
)


def test_every_world_has_a_name_of_its_own() -> None:
    """A second one would hide the first."""
    assert len(WORLDS) == sum(len(group) for group in GROUPS.values()) >= LEAST_WORLDS


@pytest.mark.parametrize("case", WORLDS.values(), ids=lambda each: each.name)
def test_the_truth_is_told_in_words_that_a_verdict_has(case: LabWorld) -> None:
    """A word that no verdict can have would make a world that nobody can get right."""
    for expected in case.expected:
        for component, side, cause in expected.right:
            check_words(component, side, cause)
        assert expected.right
    assert {expected.copy for expected in case.expected} >= set(COPIES)


@pytest.mark.parametrize("cause", MAIN_CAUSES)
def test_each_main_cause_is_planted_three_times(cause: str) -> None:
    """With other figures each: one world alone could be got right by chance."""
    worlds = {
        each.name
        for each in WORLDS.values()
        for expected in each.expected
        if expected.touched
        if {f"{part}/{reason}" for part, _, reason in expected.right} == {cause}
    }
    assert len(worlds) >= 3, worlds


def test_the_caps_of_enough_worlds_can_be_lifted() -> None:
    """A lifted world differs from its own, and frees copies that its plant touches."""
    liftable = [each for each in WORLDS.values() if each.lifted is not None]
    assert len(liftable) >= LEAST_LIFTED
    for each in liftable:
        assert each.lifted != each.plant
        assert set(each.freed) <= {copy.copy for copy in each.expected if copy.touched}
        assert each.freed


def test_a_planting_changes_what_it_names_and_keeps_all_else() -> None:
    """A word for one host, for both, or for the path; an unknown one is refused."""
    plant, _ = planting("client.quota=0.1 server.quota=0.2 reads=2.5M smb: a = b; c = d", Plant())
    small, large = Caps(2_500_000, quota_ratio=0.1), Caps(2_500_000, quota_ratio=0.2)
    assert plant == Plant(small, large, samba_options=("a = b", "c = d"))
    free, options = planting("server.quota=none rtt=0.02 size=160Mi", plant)
    assert free == replace(plant, server=Caps(2_500_000), round_trip_seconds=0.02)
    assert options == {"size_bytes": 160 << 20}
    assert planting("smb: none", plant)[0].samba_options == ()
    with pytest.raises(KeyError):
        planting("server.speed=1M", plant)


def test_saved_reports_are_judged_by_their_names(tmp_path: Path) -> None:
    """A world without a file is left out, a file that is no report is a run that broke."""
    (tmp_path / "link-100.json").write_text('{"schema": "something else"}')
    shutil.copy(RECORDED, tmp_path / "server-quota.json")
    runs = {ran.world: ran for ran in judged_again(tmp_path, list(WORLDS.values()), Terms())}
    assert set(runs) == {"link-100", "server-quota"}
    assert runs["link-100"].broke and runs["link-100"].message
    assert {row.copy for row in runs["server-quota"].verdicts} == set(COPIES)
    assert runs["server-quota"].headline in COPIES
