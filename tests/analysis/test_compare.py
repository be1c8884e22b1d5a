"""Two reports: what differs by more than the noise, and whether a gain was foreseen."""

import json
from dataclasses import replace

import pytest

from bottleneck.analysis import changes
from probes.core.typed import to_plain

IDLE = {"core_busy_ratios": (0.02, 0.02), "busiest_process_ratio": 0.01}


@pytest.fixture
def earlier(empty_world):
    return build(empty_world, 25, (23.5, 23.6, 23.8))


def build(empty_world, disk, rate, link=117.6, write=900, cached=(113, 114, 115)):
    world = empty_world()
    world.busy = {"client": dict(IDLE), "server": dict(IDLE)}
    world.tcp("pull", link)
    world.disk("server", "read", disk)
    world.disk("client", "write", write)
    world.copy("pull.cached", cached)
    world.copy("pull.uncached", rate)
    return world


@pytest.fixture
def store(golden):
    """Keeps what changed from one world to another, a line a copy, a stage and a fact."""

    def note(earlier, later, **changed):
        document = to_plain(changes.compare(earlier.report(), later.report(**changed)))
        for name, rows in document.items():
            for each in rows if isinstance(rows, list) else [rows]:
                golden(f"{name}: {json.dumps(each, allow_nan=False)}")

    return note


def test_a_lifted_cap_with_the_predicted_gain_is_right(empty_world, earlier, store):
    store(earlier, build(empty_world, 500, (111, 112, 113)))


def test_a_gain_that_stays_below_names_what_holds_it_instead(empty_world, earlier, store):
    store(earlier, build(empty_world, 500, (58, 59, 60), write=62, cached=(58, 59, 60)))


def test_a_gain_above_the_prediction_is_said_so(empty_world, earlier, store):
    store(earlier, build(empty_world, 500, (255, 260, 262), link=290, cached=(270, 275, 280)))


def test_a_ceiling_that_rose_is_held_against_its_own_rise(empty_world, earlier, store):
    store(earlier, build(empty_world, 50, (46.9, 47, 47.2)))


def test_the_same_run_again_is_in_the_noise_and_nothing_was_lifted(empty_world, earlier, store):
    store(earlier, build(empty_world, 25.2, (23.4, 23.7, 23.9)))


def test_a_new_cap_in_front_of_the_old_one_lifts_nothing(empty_world, earlier, store):
    store(earlier, build(empty_world, 25, (10.9, 11, 11.1), link=11.77, cached=(11.2, 11.3, 11.4)))


def test_a_cap_that_is_not_measured_any_more_may_be_gone(empty_world, earlier, store):
    later = empty_world(agent=False)
    later.tcp("pull", 117.6)
    later.copy("pull.uncached", (110, 112, 113))
    store(earlier, later)


def test_what_could_not_be_predicted_is_not_judged(empty_world, store):
    first, second = empty_world(agent=False), empty_world(agent=False)
    first.tcp("push", 11.77)
    first.copy("push.cached", (11.5, 11.6, 11.7))
    second.tcp("push", 117.6)
    second.copy("push.cached", (113, 114, 115))
    store(first, second)


def test_where_no_cap_is_found_none_was_lifted(empty_world, earlier, store):
    store(earlier, build(empty_world, 500, (58, 59, 60)))


@pytest.mark.parametrize("good", [(True, False), (False, True), (False, False)])
def test_a_copy_that_one_report_could_not_make_has_no_ratio(empty_world, good, store):
    worlds = empty_world(), empty_world()
    for world, is_made in zip(worlds, good, strict=True):
        if is_made:
            world.copy("pull.cached", 100)
        else:
            world.skip("pull.cached", "the disk is full")
    store(*worlds)


def test_a_copy_in_another_dialect_is_the_same_copy(empty_world, store):
    first, second = empty_world(), empty_world()
    first.copy("pull.cached", 50, dialect="2.1")
    first.copy("pull.cached", 20, dialect="smb1")
    second.copy("pull.cached", 100)
    second.copy("pull.cached", 21, dialect="smb1")
    store(first, second)


def test_copies_of_one_report_alone_are_listed(empty_world, earlier, store):
    later = empty_world()
    later.copy("pull.cached", 114)
    later.copy("push.cached", 114)
    store(earlier, later)


def test_reports_that_share_no_copy_say_so(empty_world, earlier, store):
    store(earlier, empty_world())


def test_stages_are_paired_by_what_they_measure(empty_world, earlier, store):
    later = build(empty_world, 500, (111, 112, 113))
    later.loopback("client", 2000)
    store(earlier, later)


def test_facts_that_are_others_now_are_listed(empty_world, earlier, store):
    later = build(empty_world, 500, (111, 112, 113))
    faster = replace(later.server.interface, rate_bits_per_second=10**10)
    later.server = replace(later.server, interface=faster, folder=None, system="Linux 6.8")
    store(earlier, later, target={"share": "//nas/media", "dialect": "3.0", "signing": None})


def test_of_a_host_that_was_not_seen_the_name_stands_for_all(empty_world, earlier, store):
    store(earlier, empty_world(agent=False))


def test_the_summary_is_of_a_copy_that_both_have(empty_world, earlier, store):
    later = empty_world()
    later.skip("pull.uncached", "needs an agent")
    later.copy("pull.cached", 114)
    store(earlier, later)
