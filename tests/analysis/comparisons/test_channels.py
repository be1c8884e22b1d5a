"""More connections of one SMB session: what they move, and when that is no difference."""

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.documents.comparisons import TABLES, figures
from probes.core.records import Skipped

ABOUT = ("channels",)

SETTING = {"verb": "pull", "dialect": "3.1.1", "size_bytes": 64 << 20}
FULL = {"core_busy_ratios": (0.97, 0.2), "busiest_process_ratio": 0.97}


def multichannel(world, rates, verb="pull", **details):
    cells = [{"channels": n, "bytes_per_second": rate * 1e6} for n, rate in rates.items()]
    fields = {"cells": cells, "offered": [], "hash_ok": True, **details}
    world.add("smb-multichannel", "client", {**SETTING, "verb": verb}, max(rates.values()), fields)


RATES = {
    "two are enough": {1: 112, 2: 210, 4: 208},
    "four are": {1: 112, 2: 210, 4: 400},
    "none helps": {1: 112, 2: 115, 4: 118},
    "more is less": {1: 112, 2: 60, 4: 40},
}


@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
def test_the_fewest_connections_that_are_enough_are_held_against_one(bare, rates, says):
    multichannel(bare, rates)
    says(bare)


def test_each_direction_has_its_own(bare, says):
    multichannel(bare, {1: 112, 2: 210})
    multichannel(bare, {1: 50, 2: 99}, verb="push")
    says(bare)


def test_a_full_core_of_this_tool_may_hide_a_gain(bare, says):
    bare.busy["client"] = FULL
    multichannel(bare, {1: 112, 2: 115})
    says(bare)


REASONS = {
    "of itself": "nas offers one connection a session",
    "by a refusal": (
        "//nas/media: the server lets no second connection join a session (0xc00000d0)"
    ),
}


@pytest.mark.parametrize("reason", REASONS.values(), ids=REASONS)
def test_a_server_that_takes_one_connection_is_said_to_offer_no_more(bare, reason, says):
    bare.put("smb-multichannel", "client", SETTING, Skipped(reason))
    says(bare)
    comparisons = diagnose(bare.report()).comparisons
    assert [each.sentence for each in comparisons] == figures("channels", comparisons)[0]


def test_what_was_not_measured_or_arrived_altered_tells_nothing(bare, says):
    bare.put("smb-multichannel", "client", SETTING, Skipped("out of time"))
    multichannel(bare, {1: 112})
    multichannel(bare, {2: 112, 4: 200})
    multichannel(bare, {1: 112, 2: 210}, hash_ok=False)
    multichannel(bare, {1: 112}, cells=[7, {"channels": "2", "bytes_per_second": 1e8}])
    says(bare)


def test_the_table_has_a_row_for_each_number(bare):
    multichannel(bare, RATES["two are enough"])
    *_, table = figures("channels", list(diagnose(bare.report()).comparisons))
    assert table.title == TABLES["channels"].heading == "SMB multichannel"
    assert [row.cells for row in table.rows] == [
        ("pull", "1", "112 MB/s", "1.0x"),
        ("pull", "2", "210 MB/s", "1.9x"),
        ("pull", "4", "208 MB/s", "1.9x"),
    ]
