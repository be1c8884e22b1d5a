"""The law of the report, over every report that is kept; and where it makes a difference."""

from pathlib import Path

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.report.report import ReportError, load
from tests.lab.law import broken_laws

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tests/data", "tests/data/answers", "examples")
MIB = 1 << 20


def load_reports():
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).glob("*.json")):
            try:
                yield pytest.param(load(file), id=file.stem)
            except ReportError:
                continue  # a dashboard, a schema


@pytest.mark.parametrize("report", list(load_reports()))
def test_no_stored_report_contradicts_itself(report):
    assert broken_laws(report, diagnose(report)) == ()


def lawful(world):
    report = world.report()
    diagnosis = diagnose(report)
    assert broken_laws(report, diagnosis) == ()
    return diagnosis.copies


def window(in_flight_bytes, depth, stalls=0, **extra):
    figures = {"request_bytes": MIB, "requests": 200, "credit_stalls": stalls, "rtt_seconds": 0.02}
    return {"in_flight_bytes": in_flight_bytes, "depth": depth, **figures, **extra}


# -- no ceiling below what was moved --------------------------------------------------------------


def test_a_link_that_smb_moved_more_over_is_only_known_to_carry_that(empty_world):
    """TCP by itself had a bad moment: a link of no standard rate, then twice as much in a copy."""
    world = empty_world()
    world.tcp("pull", 50)
    world.disk("client", "write", 500)
    world.copy("pull.cached", 70, memory=100)
    world.copy("pull.uncached", 70)
    for copy in lawful(world):
        (link,) = [each for each in copy.ceilings if each.component == "network"]
        assert (link.standing, link.bytes_per_second) == ("at-least", 100e6)


def test_a_link_is_never_a_little_slower_than_its_fastest_copy(empty_world):
    world = empty_world()
    world.tcp("pull", 115)
    world.disk("client", "write", 500)
    world.copy("pull.cached", 113, memory=118)
    (copy,) = lawful(world)
    assert copy.verdict.ceiling_bytes_per_second == 118e6
    assert "at most 118 MB/s" in copy.verdict.sentence


@pytest.mark.parametrize(("in_matrix", "listed"), [(50, True), (110, False)])
def test_a_clients_cpu_is_not_said_to_end_below_what_it_did(two_hosts, in_matrix, listed):
    world = two_hosts(117.6)
    world.matrix("pull", {(MIB, 1): 30, (MIB, 8): in_matrix}, 0.001)
    half = {"core_busy_ratios": (0.6, 0.4), "busiest_process_ratio": 0.1}
    world.copy("pull.cached", 30, client=half)
    (copy,) = lawful(world)
    keys = {each.key for each in copy.ceilings}
    assert (("cpu", "client", "all-cores") in keys) is listed


def test_a_disk_below_another_copy_to_it_is_none(two_hosts):
    world = two_hosts(500)
    world.forget("disk", side="server", verb="write")
    world.disk("server", "write", 40)
    world.copy("push.cached", 90)
    world.copy("push.uncached", 38)
    for copy in lawful(world):
        assert ("disk", "server", "write") not in [each.key for each in copy.ceilings]


def test_others_that_come_and_go_are_not_refuted_by_another_moment(empty_world):
    """A rival that was there during one copy of two."""
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("client", "write", 500)
    busy = {"interface_received_bytes": int(4.0 * 118e6 * 1.05)}
    world.copy("pull.uncached", 20, client=busy)
    world.copy("pull.cached", 113)
    assert ("network", "path", "contention") in {
        each.key for copy in lawful(world) for each in copy.ceilings
    }


# -- the SMB window -------------------------------------------------------------------------------


def test_what_was_in_flight_behind_a_full_link_is_no_window(two_hosts):
    """400 KiB were in flight because the link took no more: 32 MiB would have been allowed."""
    world = two_hosts(11.7)
    world.copy("push.cached", 11.5, details=window(400 << 10, 32))
    (copy,) = lawful(world)
    assert copy.verdict.words == "network/path/link-rate"
    assert copy.next is not None and copy.next.cause != "round-trips"
    (trips,) = [each for each in copy.ceilings if each.cause == "round-trips"]
    assert trips.bytes_per_second > 400e6


@pytest.mark.parametrize(("stalls", "credits"), [(0, False), (190, True)])
def test_the_send_buffer_is_innocent_where_the_credits_ran_out(two_hosts, sockets, stalls, credits):
    """8 credits over 10 ms: all of them on their way, and a buffer just as large."""
    connection = sockets(
        **{"min_rtt_seconds": 0.0101, "rtt_seconds_median": 0.0118, "unsent_bytes_median": 0},
        **{"send_buffer_bytes": 600_000, "congestion_window_bytes_median": 525_000},
        **{"in_flight_bytes_median": 524_000, "in_flight_bytes_high": 525_000},
    )
    few = window(512 << 10, 64, stalls, request_seconds_median=0.0127, sockets=connection)
    few |= {"rtt_seconds": 0.0105, "request_bytes": 65536}
    world = two_hosts(119)
    world.copy("push.cached", 38, details=few)
    (copy,) = lawful(world)
    words = "smb/server/round-trips" if credits else "tcp/client/send-buffer"
    assert copy.verdict.words == words


def test_a_round_trip_in_others_queue_tells_no_window(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("client", "write", 500)
    busy = {"interface_received_bytes": int(4.0 * 118e6 * 1.05)}
    loaded = window(4 * MIB, 4) | {"rtt_seconds": 0.28}
    world.copy("pull.cached", 4, details=loaded, client=busy)
    (copy,) = lawful(world)
    assert copy.verdict.words == "network/path/contention"
    assert copy.next is not None and copy.next.words == "network/path/link-rate"


def test_nothing_comes_next_where_the_link_was_only_seen_throttled(two_hosts):
    """Small windows: four connections carried 26 MB/s, and nobody knows what more there is."""
    world = two_hosts(6.5, 26, limits={"by": "receive-window"})
    for step, outcome in world.entries:
        if step.stage == "tcp":
            outcome.details["limits"]["by"] = "receive-window"
    world.disk("server", "write", 25)
    world.copy("pull.cached", 6.4)
    (copy,) = lawful(world)
    assert copy.next is None


# -- nothing beyond physics -----------------------------------------------------------------------


def test_cells_beyond_the_link_are_said_and_left_out(world):
    """WRITEs of 342 MB/s over a link that TCP showed to carry 118."""
    world.matrix("push", {(65536, 1): 40, (MIB, 4): 156, (MIB, 8): 342, (4 * MIB, 4): 116}, 0.001)
    step, outcome = world.entries[-1]
    world.forget("smb-matrix")
    world.add("smb-matrix", "client", step.setting, 116, outcome.details)
    world.copy("push.cached", 113)
    report = world.report()
    diagnosis = diagnose(report)
    assert broken_laws(report, diagnosis) == ()
    (comparison,) = [each for each in diagnosis.comparisons if each.about == "requests"]
    assert comparison.sentence.startswith("Not credible: 2 results of up to 342 MB/s")
    assert max(row["bytes_per_second"] for row in comparison.rows) <= 118e6


@pytest.mark.parametrize("others_seconds", [0.0, 1.0])
def test_full_cores_are_a_limit_at_the_copys_own_rate_whatever_another_copy_reached(
    two_hosts, others_seconds
):
    """91 % busy, or less of what others leave: what is missing to all of it is no room."""
    world = two_hosts(900, 900)
    load = {"core_busy_ratios": (0.905,), "other_cpu_seconds": others_seconds}
    full = {**load, "copy_cpu_seconds": 2.4, "run_delay_seconds": 1.5}
    world.copy("push.uncached", 170, dialect="NT1", server=full)
    world.copy("push.cached", 230, dialect="NT1")
    copies = lawful(world)
    assert copies[0].verdict.key == ("cpu", "server", "all-cores")


def test_nor_is_a_full_core_of_several_refuted_by_another_copy(two_hosts):
    world = two_hosts(900, 900)
    load = {"core_busy_ratios": (0.905, 0.1), "busiest_process_ratio": 0.905}
    world.copy("push.uncached", 170, dialect="NT1", server=load)
    world.copy("push.cached", 230, dialect="NT1")
    assert lawful(world)[0].verdict.key == ("cpu", "server", "one-core")


def test_full_cores_far_below_another_copy_are_those_of_another_moment(two_hosts):
    """Others took them: the same programs moved 2.5 times as much before."""
    world = two_hosts(900, 900)
    load = {"core_busy_ratios": (0.99,), "copy_cpu_seconds": 3.9, "run_delay_seconds": 0.1}
    world.copy("pull.cached", 56, dialect="NT1")
    world.copy("pull.uncached", 22, dialect="NT1", client=load)
    (copy,) = [each for each in lawful(world) if each.copy == "pull.uncached"]
    assert copy.verdict.confidence < 0.7
