"""Small files: seconds a file, and what they go to, named with care."""

import pytest

from tests.analysis.comparisons.conftest import plan

ABOUT = ("small-files",)

FULL = {"core_busy_ratios": (0.98, 0.1), "busiest_process_ratio": 0.97}
OTHERS = {"other_cpu_seconds": 5.0, "run_delay_seconds": 3.0}
CORES = {"core_busy_ratios": (0.98, 0.97), "busiest_process_ratio": 0.6}
LIGHT = {"core_busy_ratios": (0.6, 0.1), "busiest_process_ratio": 0.55}
FAR = ("small_files", "pull", 0.0322, 0.010)


def near(**loads):
    return (("small_files", "pull", 0.001, 0.0002, loads),)


PLANTED = {
    "round trips that are most of a file's time": plan(
        ("copy", "pull.cached", 112, {"memory": 116}), FAR
    ),
    "half of it, with less confidence": (("small_files", "push", 0.05, 0.010),),
    "the server's work is what is left over, with doubt": plan(
        ("copy", "push.cached", 112), ("small_files", "push", 0.0042, 0.0002)
    ),
    "on a LAN half of an ECHO is the server's answering": (("small_files", "pull", 0.001, 0.0003),),
    "without a round trip nothing is named": (("small_files", "pull", 0.0042, None),),
    "this tool's own work is not the server's, without filling its core": (
        ("small_files", "pull", 0.0004, 0.00002, {"client": LIGHT}),
    ),
    "the bytes on a slow link are not the server's work": plan(
        ("copy", "pull.cached", 0.5), ("small_files", "pull", 0.04, 0.0005)
    ),
    "this tool fills its core": near(client=FULL),
    "the server's core is full": near(server=FULL),
    "all its cores are": near(server={**CORES, "copy_cpu_seconds": 7.0}),
    "others fill the client": near(client={**CORES, **OTHERS}),
    "others fill the server": near(server={**CORES, **OTHERS}),
    "a quota stops the server": near(server={"throttled_ratio": 0.9, "quota_cores": 0.1}),
    "altered files are the loudest result": (
        ("small_files", "pull", 0.0042, 0.001, {"hash_ok": False}),
    ),
    "the fastest sound copy of a large file is the measure": plan(
        ("copy", "pull.uncached", 25),
        ("copy", "pull.cached", 112),
        ("copy", "pull.cached", 500, {"dialect": "2.1", "details": {"hash_ok": False}}),
        ("copy", "push.cached", 600),
        ("native", "pull.cached", 700),
        FAR,
    ),
}


@pytest.mark.parametrize("steps", PLANTED.values(), ids=PLANTED)
def test_what_the_time_of_a_small_file_goes_to(world, plant, steps, store):
    store(plant(world, *steps))


def test_a_folder_of_the_users_own_is_told_by_its_files(world, store):
    """4 MB/s in 400 files of whatever size."""
    index = world.small_files("push", 0.004, 0.0002)
    world.entries[index][0].setting["tree"] = "/home/ann/project"
    store(world)


def test_without_an_agent_the_server_is_not_looked_at(empty_world, plant, store):
    store(plant(empty_world(agent=False), FAR))


@pytest.mark.parametrize("verb", ["pull", "push"])
def test_strange_details_tell_nothing(world, verb, store):
    world.small_files("sideways", 0.03, 0.01)
    index = world.small_files(verb, 0.03, 0.01)
    step, outcome = world.entries[index]
    for strange in ({}, {"seconds_per_file": 0}, {"seconds_per_file": "3 ms"}):
        world.entries[index] = (step, type(outcome)(outcome.runs, outcome.initiator, None, strange))
        store(world)
