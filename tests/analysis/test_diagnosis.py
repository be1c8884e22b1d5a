"""The whole: which copies are told of, which one leads, and that the same report gives the same."""

from dataclasses import replace

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.report.report import Step
from probes.core.records import OWN_COPIES, Sample, Skipped


def test_the_headline_is_the_slowest_copy_that_a_user_would_make(world):
    world.copy("pull.cached", 112, memory=116)
    world.copy("push.uncached", 95, memory=116)
    world.copy("push.cached", 108, memory=116)
    diagnosis = diagnose(world.report())
    assert diagnosis.headline == "push.uncached"
    assert diagnosis.main_copy is not None
    assert diagnosis.summary == diagnosis.main_copy.verdict.sentence


def test_the_newest_dialect_leads_and_smb1_only_where_it_is_alone(world):
    world.copy("pull.cached", 20, dialect="smb1")
    world.copy("pull.cached", 112, memory=116)
    diagnosis = diagnose(world.report())
    assert [copy.dialect for copy in diagnosis.copies] == ["3.1.1", "smb1"]
    assert diagnosis.main_copy is not None
    assert diagnosis.main_copy.dialect == "3.1.1"
    world.entries.pop()
    world.entries.pop()
    smb1_only = diagnose(world.report())
    assert smb1_only.main_copy is not None
    assert smb1_only.main_copy.dialect == "smb1"
    assert "over SMB1" in smb1_only.summary


def test_a_copy_that_several_may_limit_names_the_two_likeliest_and_what_tells_them_apart(two_hosts):
    world = two_hosts(118, disk=89)
    world.copy("pull.cached", 44)
    diagnosis = world.diagnosis_of()
    assert diagnosis.verdict.words == "unknown/inconclusive"
    names = diagnosis.verdict.sentence.partition("most likely ")[2]
    assert names == "the SMB window or something that was not measured (22% each)."
    assert [each.confidence for each in diagnosis.suspects] == sorted(
        (each.confidence for each in diagnosis.suspects), reverse=True
    )
    assert diagnosis.advice == (
        "Repeat with --thorough: more runs of each copy, about 5 times as long.",
    )


def test_copies_that_got_no_time_are_no_sign_of_health(two_hosts):
    world = two_hosts(118, disk=89)
    world.copy("push.cached", 44)
    world.skip("pull.cached", "out of time (use a larger --budget)")
    world.skip("pull.uncached", "no agent")
    advice = "Use a larger --budget: pull.cached was skipped and may be slower still."
    assert advice in world.diagnosis_of().advice
    world.server = None
    assert advice in world.diagnosis_of().advice


def test_altered_bytes_of_any_stage_come_first(world):
    world.tax("pull", "plain", 100)
    world.tax("pull", "signed", 50, hash_ok=False)
    world.copy("pull.cached", 112, memory=116)
    diagnosis = diagnose(world.report())
    assert diagnosis.altered == ("smb-tax pull",)
    assert diagnosis.summary.startswith(
        "DATA CORRUPTED: the received bytes differ from the sent bytes (smb-"
    )
    assert diagnosis.main_copy is not None
    assert diagnosis.summary.endswith(diagnosis.main_copy.verdict.sentence)


def test_copies_that_the_server_started_do_not_lead(world):
    world.copy("pull.cached", 112, memory=116)
    world.copy("server.push.cached", 40, initiator="server")
    diagnosis = diagnose(world.report())
    assert diagnosis.headline == "pull.cached"
    assert "started by the server" in diagnosis.copies[1].verdict.sentence


def test_a_copy_that_failed_leads_only_where_none_was_made(world):
    world.fail("pull.cached", "nas: reset")
    assert diagnose(world.report()).headline == "pull.cached"
    world.copy("push.cached", 110, memory=116)
    assert diagnose(world.report()).headline == "push.cached"


def test_a_run_that_ended_early_tells_of_the_copies_that_it_never_came_to(world):
    world.copy("push.cached", 110, memory=116)
    diagnosis = diagnose(world.report(status="interrupted"))
    untried = {c.copy: c.verdict.sentence for c in diagnosis.copies if c.bytes_per_second is None}
    assert set(untried) == {"pull.cached", "pull.uncached", "push.uncached"}
    assert all("interrupted" in sentence for sentence in untried.values())
    complete = diagnose(world.report())
    assert [c.copy for c in complete.copies] == ["push.cached"]


def test_a_report_without_copies_names_none_not_even_one_that_it_was_meant_to_make(world):
    for status in ("complete", "partial"):
        diagnosis = diagnose(world.report(status=status))
        assert diagnosis.headline is None
        assert diagnosis.copies == ()
        assert "No copy was made" in diagnosis.summary


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_a_run_that_ended_before_the_first_copy_gives_the_reason_for_each(empty_world, status):
    notes = ("a banner", "nas: ann was refused: check the password")
    report = empty_world().report(status=status, notes=notes, target={"share": "//nas/media"})
    diagnosis = diagnose(report)
    assert [each.copy for each in diagnosis.copies] == list(OWN_COPIES)
    for each in diagnosis.copies:
        assert (each.verdict.component, each.verdict.cause) == ("unknown", "not-measured")
        assert each.verdict.sentence == notes[-1]
        assert each.bytes_per_second is None
    assert diagnosis.headline in OWN_COPIES
    assert diagnosis.summary == notes[-1]


def test_one_without_a_note_says_how_it_ended(empty_world):
    diagnosis = diagnose(empty_world().report(status="interrupted"))
    assert "the run was interrupted" in diagnosis.summary


def test_runs_that_failed_beside_measured_ones_are_told(world):
    world.copy("pull.cached", 112, details={"failed_runs": ["nas: reset", "nas: gone"]})
    evidence = world.diagnosis_of().evidence
    assert "2 runs failed beside those that were measured: nas: reset" in evidence


@pytest.mark.parametrize("strange", [None, 7, "x", [3, None], {"a": 1}, []])
def test_strange_failed_runs_are_left_aside(world, strange):
    world.copy("pull.cached", 112, details={"failed_runs": strange})
    assert not any("failed beside" in e for e in world.diagnosis_of().evidence)


def test_steps_with_strange_settings_are_left_aside(world):
    for setting in ({}, {"copy": 5, "dialect": "3.1.1"}, {"copy": "sideways", "dialect": "2.1"}):
        world.put("smb-copy", "client", setting, Skipped("x"))
    world.put("tcp", "client", {"verb": 7}, Skipped("x"))
    world.tcp("pull", 117.6)
    world.entries[-1] = (Step("tcp", {}, "client"), world.entries[-1][1])
    assert diagnose(world.report()).copies == ()


def test_ceilings_are_listed_lowest_first_and_point_at_their_steps(world):
    world.copy("pull.uncached", 112, memory=116)
    diagnosis = world.diagnosis_of()
    levels = [each.bytes_per_second for each in diagnosis.ceilings]
    assert levels == sorted(levels)
    stages = {world.entries[index][0].stage for each in diagnosis.ceilings for index in each.steps}
    assert stages == {"tcp", "disk", "loopback", "smb-copy"}


def test_a_flush_that_takes_long_is_told(world):
    slow = {"flush_seconds": 1.2, "acknowledged_bytes_per_second": 160e6}
    world.copy("push.cached", 112, memory=116, details=slow)
    assert any("more to flush it to disk" in e for e in world.diagnosis_of().evidence)


def test_a_run_without_duration_is_no_figure(world):
    world.copy("pull.cached", 113, memory=116)
    step, outcome = world.entries[-1]
    instant = (Sample(0.0, 0), Sample(0.0, 9))
    world.entries[-1] = (step, replace(outcome, runs=(instant,)))
    diagnosis = world.diagnosis_of()
    assert diagnosis.verdict.cause == "not-measured"


def test_a_lower_bound_below_the_copy_says_nothing_and_is_left_out(empty_world):
    world = empty_world()
    world.tcp("pull", 40, by="receive-window")
    world.copy("pull.cached", 60)
    diagnosis = world.diagnosis_of()
    assert not any(c.component == "network" for c in diagnosis.ceilings)


def test_a_copy_beyond_its_links_names_nobody(empty_world):
    """A rate that no 1 Gbit/s card can carry is a broken clock or wrong facts, no measurement."""
    world = empty_world()
    world.copy("pull.cached", 110)
    gigabit = world.client, world.server
    world.copy("push.cached", 220)
    world.client, world.server = gigabit
    copies = {each.copy: each for each in diagnose(world.report()).copies}
    assert copies["push.cached"].verdict.cause == "inconclusive"
    assert "Not credible" in copies["push.cached"].verdict.sentence
    assert "Not credible" not in copies["pull.cached"].verdict.sentence


def test_an_interrupted_run_is_to_be_made_again(world):
    world.status = "interrupted"
    world.copy("pull.cached", 30)
    diagnosis = world.diagnosis_of()
    assert diagnosis.verdict.words == "unknown/inconclusive"
    assert diagnosis.advice == ("Run again: the run was interrupted before the tests that decide.",)


def test_what_the_likeliest_limits_lack_is_advised(empty_world):
    world, idle = empty_world(), {"core_busy_ratios": (0.0, 0.0), "busiest_process_ratio": 0.0}
    world.copy("pull.cached", 30, client=idle, server=idle)
    (advice,) = world.diagnosis_of().advice
    assert advice == "Run again with a larger --budget. It measures the client's disk by itself."


def test_of_a_copy_that_was_asked_for_alone_its_rate_is_told_and_nothing_advised(empty_world):
    world = empty_world(agent=False)
    world.copy("pull.cached", 80)
    report = world.report()
    report.target["copy_alone"] = True
    (diagnosis,) = diagnose(report).copies
    assert "Only the copy was measured" in diagnosis.verdict.sentence and diagnosis.advice == ()
