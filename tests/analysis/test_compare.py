"""Two reports: what differs by more than the noise, and whether a gain was foreseen."""

import json
from dataclasses import replace

import pytest

from bottleneck.analysis import changes, diagnose
from bottleneck.wire import to_plain

MB = 1e6
IDLE = {"core_busy_ratios": (0.02, 0.02), "busiest_process_ratio": 0.01}


@pytest.fixture
def before(empty_world):
    """A server's disk of 25 on a gigabit link, and the copy from RAM."""
    return made(empty_world, 25, (23.5, 23.6, 23.8))


def made(empty_world, disk, rate, link=117.6, write=900, cached=(113, 114, 115)):
    world = empty_world()
    world.busy = {"client": dict(IDLE), "server": dict(IDLE)}
    world.tcp("pull", link)
    world.disk("server", "read", disk)
    world.disk("client", "write", write)
    world.copy("pull.cached", cached)
    world.copy("pull.uncached", rate)
    return world


def change(before, after, name="pull.uncached"):
    found = changes.compare(before.report(), after.report())
    return next(each for each in found.copies if each.copy == name)


def test_a_lifted_cap_with_the_predicted_gain_is_right(empty_world, before):
    found = change(before, made(empty_world, 500, (111, 112, 113)))
    assert found.ratio == pytest.approx(112 / 23.6)
    assert found.significant
    assert (found.lift.component, found.lift.cause) == ("disk", "read")
    assert found.lift.to_bytes_per_second is None
    assert found.lift.judged == "right"
    assert "predicted 114 MB/s (109-119 MB/s), got 112 MB/s: right" in found.sentence
    assert found.sentence.endswith("Its cap is now the network (link-rate), 118 MB/s.")


def test_a_gain_that_stays_below_names_what_holds_it_instead(empty_world, before):
    after = made(empty_world, 500, (58, 59, 60), write=62, cached=(58, 59, 60))
    found = change(before, after)
    assert found.lift.judged == "less"
    assert found.sentence.endswith("Its cap is now the client's disk (write), 62 MB/s.")


def test_a_gain_above_the_prediction_is_said_so(empty_world, before):
    after = made(empty_world, 500, (255, 260, 262), link=290, cached=(270, 275, 280))
    assert change(before, after).lift.judged == "more"


def test_a_ceiling_that_rose_is_held_against_its_own_rise(empty_world, before):
    found = change(before, made(empty_world, 50, (46.9, 47, 47.2)))
    assert found.lift.to_bytes_per_second == pytest.approx(50e6)
    assert found.lift.predicted_bytes_per_second.median == pytest.approx(47.2e6)
    assert found.lift.judged == "right"
    assert "rose to 50 MB/s" in found.sentence


def test_the_same_run_again_is_in_the_noise_and_nothing_was_lifted(empty_world, before):
    found = change(before, made(empty_world, 25.2, (23.4, 23.7, 23.9)))
    assert not found.significant
    assert found.lift is None
    assert "no difference that these runs can tell" in found.sentence


def test_a_new_cap_in_front_of_the_old_one_lifts_nothing(empty_world, before):
    after = made(empty_world, 25, (10.9, 11, 11.1), link=11.77, cached=(11.2, 11.3, 11.4))
    found = change(before, after)
    assert found.lift is None
    assert "2.1x slower" not in found.sentence
    assert "takes 2.1x the time" in found.sentence
    assert found.sentence.endswith("Its cap is now the network (link-rate), 11.8 MB/s.")


def test_a_cap_that_is_not_measured_any_more_may_be_gone(empty_world, before):
    after = empty_world(agent=False)
    after.tcp("pull", 117.6)
    after.copy("pull.uncached", (110, 112, 113))
    assert change(before, after).lift is not None


def test_what_could_not_be_predicted_is_not_judged(empty_world):
    first, second = empty_world(agent=False), empty_world(agent=False)
    first.tcp("push", 11.77)
    first.copy("push.cached", (11.5, 11.6, 11.7))
    second.tcp("push", 117.6)
    second.copy("push.cached", (113, 114, 115))
    found = change(first, second, "push.cached")
    assert found.lift.judged is None
    assert "nothing was predicted of it" in found.sentence


def test_where_no_cap_is_found_none_was_lifted(empty_world, before):
    after = made(empty_world, 500, (58, 59, 60))
    found = change(before, after)
    assert found.after_verdict.component == "unknown"
    assert found.lift is None
    assert found.sentence.endswith("What caps it now was not found.")


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (True, False, "could not be made after: the disk is full"),
        (False, True, "could not be made before: the disk is full"),
        (False, False, "could not be made: the disk is full"),
    ],
)
def test_a_copy_that_one_report_could_not_make_has_no_ratio(empty_world, first, second, words):
    worlds = []
    for good in (first, second):
        world = empty_world()
        if good:
            world.copy("pull.cached", 100)
        else:
            world.skip("pull.cached", "the disk is full")
        worlds.append(world)
    found = change(*worlds, "pull.cached")
    assert found.ratio is None
    assert not found.significant
    assert words in found.sentence


def test_a_copy_in_another_dialect_is_the_same_copy(empty_world):
    first, second = empty_world(), empty_world()
    first.copy("pull.cached", 50, dialect="2.1")
    first.copy("pull.cached", 20, dialect="smb1")
    second.copy("pull.cached", 100)
    second.copy("pull.cached", 21, dialect="smb1")
    found = changes.compare(first.report(), second.report())
    pairs = {(each.before_dialect, each.after_dialect) for each in found.copies}
    assert pairs == {("2.1", "3.1.1"), ("smb1", "smb1")}


def test_copies_of_one_report_alone_are_listed(empty_world, before):
    after = empty_world()
    after.copy("pull.cached", 114)
    after.copy("push.cached", 114)
    found = changes.compare(before.report(), after.report())
    assert found.only_before == ("pull.uncached (3.1.1)",)
    assert found.only_after == ("push.cached (3.1.1)",)


def test_reports_that_share_no_copy_say_so(empty_world, before):
    found = changes.compare(before.report(), empty_world().report())
    assert found.copies == ()
    assert found.summary == "The two reports share no copy."


def test_the_summary_is_that_of_the_headlines_copy(empty_world, before):
    after = made(empty_world, 500, (111, 112, 113))
    found = changes.compare(before.report(), after.report())
    assert diagnose(before.report()).headline == "pull.uncached"
    assert found.summary.startswith("pull.uncached ran at 23.6 MB/s")


def test_stages_are_paired_by_what_they_measure(empty_world, before):
    after = made(empty_world, 500, (111, 112, 113))
    after.loopback("client", 2000)
    found = {each.stage: each for each in changes.compare(before.report(), after.report()).stages}
    assert set(found) == {"tcp", "disk"}
    stages = changes.compare(before.report(), after.report()).stages
    read = next(each for each in stages if each.setting.get("verb") == "read")
    assert read.ratio == pytest.approx(20)
    assert read.significant
    assert not found["tcp"].significant


def test_facts_that_are_others_now_are_listed(empty_world, before):
    after = made(empty_world, 500, (111, 112, 113))
    faster = replace(after.server.interface, rate_bits_per_second=10**10)
    after.server = replace(after.server, interface=faster, folder=None, system="Linux 6.8")
    target = {"share": "//nas/media", "dialect": "3.0", "signing": None}
    found = changes.compare(before.report(), after.report(target=target)).facts
    told = {each.fact: (each.before, each.after) for each in found}
    assert told["server.interface.rate_bits_per_second"] == (10**9, 10**10)
    assert told["server.system"] == ("Linux 6.1.0-18-amd64", "Linux 6.8")
    assert told["target.dialect"] == ("3.1.1", "3.0")
    assert told["target.signing"] == ("aes-gmac", None)
    assert told["server.folder.filesystem"] == ("ext4", None)
    assert not any(fact.startswith("client.") for fact in told)


def test_of_a_host_that_was_not_seen_the_name_stands_for_all(empty_world, before):
    after = empty_world(agent=False)
    found = changes.compare(before.report(), after.report()).facts
    told = [each for each in found if each.fact.startswith("server.")]
    assert [(each.fact, each.before, each.after) for each in told] == [("server.name", "nas", None)]


def test_the_summary_is_of_a_copy_that_both_have(empty_world, before):
    after = empty_world()
    after.skip("pull.uncached", "needs an agent")
    after.copy("pull.cached", 114)
    found = changes.compare(before.report(), after.report())
    assert found.summary.startswith("pull.cached ran at 114 MB/s")


def test_the_change_is_plain_json(empty_world, before):
    found = changes.compare(before.report(), made(empty_world, 500, (111, 112, 113)).report())
    assert json.loads(json.dumps(to_plain(found), allow_nan=False))["summary"] == found.summary
