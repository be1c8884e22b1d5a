"""Small files: seconds a file, and what they go to, named with care."""

import pytest

ABOUT = ("small-files",)


def words(found):
    verdict = found.rows[0]["verdict"]
    return verdict["component"], verdict["side"], verdict["cause"]


def test_round_trips_are_named_where_they_are_most_of_a_files_time(world, says):
    world.copy("pull.cached", 112, memory=116)
    world.small_files("pull", 0.0322, 0.010)
    says(world)


def test_half_of_it_is_named_with_less_confidence(world, says):
    world.small_files("push", 0.05, 0.010)
    says(world)


def test_the_servers_work_is_what_is_left_over_and_is_named_with_doubt(world, says):
    world.copy("push.cached", 112)
    world.small_files("push", 0.0042, 0.0002)
    says(world)


def test_a_lans_round_trips_are_not_blamed_on_the_path(world, says):
    """Half of an ECHO on a LAN is the server's answering."""
    world.small_files("pull", 0.001, 0.0003)
    says(world)


def test_without_a_round_trip_nothing_is_named(world, says):
    world.small_files("pull", 0.0042, None)
    says(world)


def test_this_tools_own_work_is_not_the_servers(world, says):
    """Without filling its core it may be most of what is left."""
    busy = {"core_busy_ratios": (0.6, 0.1), "busiest_process_ratio": 0.55}
    world.small_files("pull", 0.0004, 0.00002, client=busy)
    says(world)


def test_the_bytes_on_a_slow_link_are_not_the_servers_work(world, says):
    world.copy("pull.cached", 0.5)
    world.small_files("pull", 0.04, 0.0005)
    says(world)


FULL = {"core_busy_ratios": (0.98, 0.1), "busiest_process_ratio": 0.97}
OTHERS = {"other_cpu_seconds": 5.0, "run_delay_seconds": 3.0}
FULL_CORES = {"core_busy_ratios": (0.98, 0.97), "busiest_process_ratio": 0.6}


@pytest.mark.parametrize(
    "loads",
    [
        {"client": FULL},
        {"server": FULL},
        {"server": {**FULL_CORES, "copy_cpu_seconds": 7.0}},
        {"client": {**FULL_CORES, **OTHERS}},
        {"server": {**FULL_CORES, **OTHERS}},
        {"server": {"throttled_ratio": 0.9, "quota_cores": 0.1}},
    ],
    ids=["this tool", "a core", "all cores", "the client's others", "the server's", "a quota"],
)
def test_a_host_that_was_full_meanwhile_is_named(world, loads, says):
    world.small_files("pull", 0.001, 0.0002, **loads)
    says(world)


def test_without_an_agent_the_server_is_not_looked_at(empty_world, says):
    world = empty_world(agent=False)
    world.small_files("pull", 0.0322, 0.010)
    says(world)


def test_altered_files_are_the_loudest_result(world, says):
    world.small_files("pull", 0.0042, 0.001, hash_ok=False)
    says(world)


def test_the_fastest_sound_copy_of_a_large_file_is_the_measure(world, says):
    world.copy("pull.uncached", 25)
    world.copy("pull.cached", 112)
    world.copy("pull.cached", 500, dialect="2.1", details={"hash_ok": False})
    world.copy("push.cached", 600)
    world.native("pull.cached", 700)
    world.small_files("pull", 0.0322, 0.010)
    says(world)


@pytest.mark.parametrize("verb", ["pull", "push"])
def test_strange_details_tell_nothing(world, verb, says):
    world.small_files("sideways", 0.03, 0.01)
    at = world.small_files(verb, 0.03, 0.01)
    step, outcome = world.entries[at]
    for strange in ({}, {"seconds_per_file": 0}, {"seconds_per_file": "3 ms"}):
        world.entries[at] = (step, type(outcome)(outcome.runs, outcome.initiator, None, strange))
        says(world)
