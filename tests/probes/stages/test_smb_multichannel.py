"""The smb-multichannel stage on a real share: its cells, and what is offered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from probes.core.records import Sample
from probes.core.stage import Last, RunFacts, Unavailable
from probes.stages import smb_multichannel
from probes.stages.smb_multichannel import CHANNELS, Setting
from tests.probes.conftest import SEED

MIB = 1 << 20
KNOWN = RunFacts("10.0.0.2", 445, "3.1.1", SEED, 60.0, True, True, 0.001)


@pytest.mark.parametrize("verb", ["pull", "push"])
def test_each_number_of_channels_moves_the_payload(run_folder, run_stage, verb):
    setting = Setting(verb, "3.1.1", 8 * MIB, 0.3, SEED)
    with run_folder(source_bytes=8 * MIB) as (peer, folder, _):
        samples, details = run_stage(smb_multichannel, setting, peer)
        pushed = [each.name for each in folder.rglob("pushed-*")]
    assert samples[0] == Sample(0.0, 0) and isinstance(samples[-1], Last)
    assert samples[-1].moved_bytes > 0 and pushed == []
    assert [each["channels"] for each in details["cells"]] == list(CHANNELS)
    assert all(each["bytes_per_second"] > 0 for each in details["cells"])
    assert details["hash_ok"] and details["dialect"] == "3.1.1"
    assert details["offered"] and "address" in details["offered"][0]


def test_a_server_that_lets_none_join_is_not_tried(run_folder, run_stage):
    setting = Setting("pull", "3.1.1", 4 * MIB, 0.3, SEED)
    one = "server multi channel support = no"
    with (
        run_folder(one, source_bytes=4 * MIB) as (peer, _, _),
        pytest.raises(Unavailable, match="one connection per session"),
    ):
        run_stage(smb_multichannel, setting, peer)


def test_what_arrives_altered_is_told(run_folder, run_stage):
    setting = Setting("pull", "3.1.1", 4 * MIB, 0.3, "00")
    with run_folder(source_bytes=4 * MIB) as (peer, _, _):
        assert run_stage(smb_multichannel, setting, peer)[1]["hash_ok"] is False


@pytest.mark.parametrize(("dialect", "turns"), [("3.1.1", 2), ("3.0", 2), ("2.1", 0), ("smb1", 0)])
def test_smb3_alone_has_channels(dialect, turns):
    assert len(list(smb_multichannel.turns(replace(KNOWN, dialect=dialect)))) == turns


def test_a_share_without_room_is_not_tried():
    setting = Setting("push", "3.1.1", 0, 1.0)
    with pytest.raises(Unavailable, match="not enough free space"):
        smb_multichannel.fit_setting(setting, replace(KNOWN, room_bytes=1000))
