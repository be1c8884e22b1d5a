"""What more connections of one SMB session move, and when that is no difference."""

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.reports.comparisons import TABLES, figures
from probes.records import Skipped

SETTING = {"verb": "pull", "dialect": "3.1.1", "size_bytes": 64 << 20}
FULL = {"core_busy_ratios": (0.97, 0.2), "busiest_process_ratio": 0.97}


def multichannel(world, rates, verb="pull", **details):
    cells = [{"channels": n, "bytes_per_second": rate * 1e6} for n, rate in rates.items()]
    told = {"cells": cells, "offered": [], "hash_ok": True, **details}
    world.add("smb-multichannel", "client", {**SETTING, "verb": verb}, max(rates.values()), told)


@pytest.fixture
def told(bare):
    """The comparisons of what was planted in a world without anything else."""
    return lambda: [e for e in diagnose(bare.report()).comparisons if e.about == "channels"]


@pytest.mark.parametrize(
    ("rates", "sentence", "significant"),
    [
        (
            {1: 112, 2: 210, 4: 208},
            "With 2 connections a pull runs at 210 MB/s, 1.9x one connection (112 MB/s).",
            True,
        ),
        (
            {1: 112, 2: 210, 4: 400},
            "With 4 connections a pull runs at 400 MB/s, 3.6x one connection (112 MB/s).",
            True,
        ),
        (
            {1: 112, 2: 115, 4: 118},
            "More connections do not help: no significant difference "
            "(1 connection 112 MB/s, 2 connections 115 MB/s).",
            False,
        ),
        (
            {1: 112, 2: 60, 4: 40},
            "With 2 connections a pull runs at 60.0 MB/s, 1.9x slower than with one (112 MB/s).",
            True,
        ),
    ],
    ids=["two are enough", "four are", "none helps", "more is less"],
)
def test_the_fewest_connections_that_are_enough_are_held_against_one(
    bare, told, rates, sentence, significant
):
    multichannel(bare, rates)
    found = told()
    assert [(each.sentence, each.significant) for each in found] == [(sentence, significant)]
    assert [row["channels"] for row in found[0].rows] == [1, 2, 4]
    assert found[0].rows[1]["one_connection_ratio"] == pytest.approx(rates[2] / rates[1])


def test_each_direction_has_its_own(bare, told):
    multichannel(bare, {1: 112, 2: 210})
    multichannel(bare, {1: 50, 2: 99}, verb="push")
    first, second = told()
    assert "a pull runs at 210 MB/s" in first.sentence
    assert "a push runs at 99.0 MB/s, 2.0x one connection (50.0 MB/s)." in second.sentence


def test_a_full_core_of_this_tool_may_hide_a_gain(bare, told):
    bare.busy["client"] = FULL
    multichannel(bare, {1: 112, 2: 115})
    assert "This tool used a full core of the client" in told()[0].sentence


@pytest.mark.parametrize(
    "reason",
    [
        "nas offers one connection a session",
        "//nas/media: the server lets no second connection join a session (0xc00000d0)",
    ],
)
def test_a_server_that_takes_one_connection_is_said_to_offer_no_more(bare, told, reason):
    bare.put("smb-multichannel", "client", SETTING, Skipped(reason))
    sentences = ["The server does not offer SMB multichannel: one connection per session."]
    found = told()
    assert [each.sentence for each in found] == sentences
    assert not found[0].significant
    assert [each.sentence for each in found] == figures("channels", found)[0]


def test_what_was_not_measured_or_arrived_altered_tells_nothing(bare, told):
    bare.put("smb-multichannel", "client", SETTING, Skipped("out of time"))
    multichannel(bare, {1: 112})
    multichannel(bare, {2: 112, 4: 200})
    multichannel(bare, {1: 112, 2: 210}, hash_ok=False)
    multichannel(bare, {1: 112}, cells=[7, {"channels": "2", "bytes_per_second": 1e8}])
    assert told() == []


def test_the_table_has_a_row_for_each_number(bare, told):
    multichannel(bare, {1: 112, 2: 210, 4: 208})
    _, table = figures("channels", told())
    assert table.title == TABLES["channels"].heading == "SMB multichannel"
    assert [row.cells for row in table.rows] == [
        ("pull", "1", "112 MB/s", "1.0x"),
        ("pull", "2", "210 MB/s", "1.9x"),
        ("pull", "4", "208 MB/s", "1.9x"),
    ]
