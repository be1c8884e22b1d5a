"""Small files: seconds a file, and what they go to, named with care."""

import pytest

from bottleneck.analysis import diagnose


def compared(world):
    found = diagnose(world.report()).comparisons
    return [each for each in found if each.about == "small-files"]


def words(found):
    verdict = found.rows[0]["verdict"]
    return verdict["component"], verdict["side"], verdict["cause"]


def test_round_trips_are_named_where_they_are_most_of_a_files_time(world):
    world.copy("pull.cached", 112, memory=116)
    world.small_files("pull", 0.0322, 0.010)
    (found,) = compared(world)
    assert words(found) == ("smb", "path", "round-trips")
    assert found.sentence == (
        "A folder of small files pulls at 31.1 files/s, whatever the link: 32.2 ms a file of "
        "16 KiB (3 round trips of 10 ms are 30 ms of it). 10,000 of them take 5 min 22 s, the "
        "same bytes as one file 1.46 s at 112 MB/s."
    )
    row = found.rows[0]
    assert row["verdict"]["confidence"] == 0.9
    assert row["round_trips_seconds"] == pytest.approx(0.03)
    assert row["rest_seconds"] == pytest.approx(0.0022)
    assert row["files_per_second"] == pytest.approx(31.06, abs=0.01)
    assert found.significant
    assert found.steps == (10, 9)


def test_half_of_it_is_named_with_less_confidence(world):
    world.small_files("push", 0.05, 0.010)
    (found,) = compared(world)
    assert words(found) == ("smb", "path", "round-trips")
    assert found.rows[0]["verdict"]["confidence"] == 0.7
    assert "whatever the link" not in found.sentence  # no large file to tell it by
    assert found.sentence.endswith("10,000 of them take 8 min 20 s.")
    assert found.ratio is None


def test_the_servers_work_is_what_is_left_over_and_is_named_with_doubt(world):
    world.copy("push.cached", 112)
    world.small_files("push", 0.0042, 0.0002)
    (found,) = compared(world)
    assert words(found) == ("smb", "server", "server-software")
    assert found.rows[0]["verdict"]["confidence"] <= 0.5
    assert "the rest is mostly the server's own work on each file" in found.sentence


def test_a_lans_round_trips_are_not_blamed_on_the_path(world):
    """Half of an ECHO on a LAN is the server's answering."""
    world.small_files("pull", 0.001, 0.0003)
    (found,) = compared(world)
    assert words(found) == ("unknown", None, "inconclusive")
    assert "nothing else stands out" in found.sentence


def test_without_a_round_trip_nothing_is_named(world):
    world.small_files("pull", 0.0042, None)
    (found,) = compared(world)
    assert words(found) == ("unknown", None, "inconclusive")
    assert found.rows[0]["rest_seconds"] is None


def test_this_tools_own_work_is_not_the_servers(world):
    """Without filling its core it may be most of what is left."""
    busy = {"core_busy_ratios": (0.6, 0.1), "busiest_process_ratio": 0.55}
    world.small_files("pull", 0.0004, 0.00002, client=busy)
    assert words(compared(world)[0]) == ("unknown", None, "inconclusive")


def test_the_bytes_on_a_slow_link_are_not_the_servers_work(world):
    world.copy("pull.cached", 0.5)
    world.small_files("pull", 0.04, 0.0005)
    (found,) = compared(world)
    assert words(found) == ("unknown", None, "inconclusive")
    assert "whatever the link" not in found.sentence


FULL = {"core_busy_ratios": (0.98, 0.1), "busiest_process_ratio": 0.97}
OTHERS = {"other_cpu_seconds": 5.0, "run_delay_seconds": 3.0}
FULL_CORES = {"core_busy_ratios": (0.98, 0.97), "busiest_process_ratio": 0.6}


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        ({"client": FULL}, ("instrument", "client", "ceiling")),
        ({"server": FULL}, ("cpu", "server", "one-core")),
        ({"server": {**FULL_CORES, "copy_cpu_seconds": 7.0}}, ("cpu", "server", "all-cores")),
        ({"client": {**FULL_CORES, **OTHERS}}, ("cpu", "client", "contention")),
        ({"server": {**FULL_CORES, **OTHERS}}, ("cpu", "server", "contention")),
        ({"server": {"throttled_ratio": 0.9, "quota_cores": 0.1}}, ("cpu", "server", "quota")),
    ],
    ids=["this tool", "a core", "all cores", "the client's others", "the server's", "a quota"],
)
def test_a_host_that_was_full_meanwhile_is_named(world, loads, expected):
    world.small_files("pull", 0.001, 0.0002, **loads)
    assert words(compared(world)[0]) == expected


def test_without_an_agent_the_server_is_not_looked_at(empty_world):
    world = empty_world(agent=False)
    world.small_files("pull", 0.0322, 0.010)
    assert words(compared(world)[0]) == ("smb", "path", "round-trips")


def test_altered_files_are_the_loudest_result(world):
    world.small_files("pull", 0.0042, 0.001, hash_ok=False)
    (found,) = compared(world)
    assert words(found) == ("unknown", None, "inconclusive")
    assert found.sentence.startswith("THE SMALL FILES THAT ARRIVED ARE NOT")


def test_the_fastest_sound_copy_of_a_large_file_is_the_measure(world):
    world.copy("pull.uncached", 25)
    world.copy("pull.cached", 112)
    world.copy("pull.cached", 500, dialect="2.1", details={"hash_ok": False})
    world.copy("push.cached", 600)
    world.native("pull.cached", 700)
    world.small_files("pull", 0.0322, 0.010)
    assert compared(world)[0].rows[0]["one_file_bytes_per_second"] == 112e6


@pytest.mark.parametrize("verb", ["pull", "push"])
def test_strange_details_tell_nothing(world, verb):
    world.small_files("sideways", 0.03, 0.01)
    at = world.small_files(verb, 0.03, 0.01)
    step, outcome = world.entries[at]
    for strange in ({}, {"seconds_per_file": 0}, {"seconds_per_file": "3 ms"}):
        world.entries[at] = (step, type(outcome)(outcome.runs, outcome.initiator, None, strange))
        assert compared(world) == []
