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
def test_the_fewest_connections_that_are_enough_are_held_against_one(hosts, rates, store):
    multichannel(hosts, rates)
    store(hosts)


def test_each_direction_has_its_own(hosts, store):
    multichannel(hosts, {1: 112, 2: 210})
    multichannel(hosts, {1: 50, 2: 99}, verb="push")
    store(hosts)


def test_a_full_core_of_this_tool_may_hide_a_gain(hosts, store):
    hosts.busy["client"] = FULL
    multichannel(hosts, {1: 112, 2: 115})
    store(hosts)


REASONS = {
    "of itself": "nas offers one connection a session",
    "by a refusal": (
        "//nas/media: the server lets no second connection join a session (0xc00000d0)"
    ),
}


@pytest.mark.parametrize("reason", REASONS.values(), ids=REASONS)
def test_a_server_that_takes_one_connection_is_said_to_offer_no_more(hosts, reason, store):
    hosts.put("smb-multichannel", "client", SETTING, Skipped(reason))
    store(hosts)
    comparisons = diagnose(hosts.report()).comparisons
    assert [each.sentence for each in comparisons] == figures("channels", comparisons)[0]


def test_what_was_not_measured_or_arrived_altered_tells_nothing(hosts, store):
    hosts.put("smb-multichannel", "client", SETTING, Skipped("out of time"))
    multichannel(hosts, {1: 112})
    multichannel(hosts, {2: 112, 4: 200})
    multichannel(hosts, {1: 112, 2: 210}, hash_ok=False)
    multichannel(hosts, {1: 112}, cells=[7, {"channels": "2", "bytes_per_second": 1e8}])
    store(hosts)


def test_the_table_has_a_row_for_each_number(hosts):
    multichannel(hosts, RATES["two are enough"])
    *_, table = figures("channels", list(diagnose(hosts.report()).comparisons))
    assert table.title == TABLES["channels"].heading == "SMB multichannel"
    assert [row.cells for row in table.rows] == [
        ("pull", "1", "112 MB/s", "1.0x"),
        ("pull", "2", "210 MB/s", "1.9x"),
        ("pull", "4", "208 MB/s", "1.9x"),
    ]
