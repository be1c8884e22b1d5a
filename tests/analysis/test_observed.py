"""Figures that a person told: verdicts no surer than they deserve, and silence where they tell
nothing.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck import observations
from bottleneck.analysis import diagnose
from bottleneck.analysis.model import Band
from bottleneck.observations import SCHEMA

GIGABIT = """
[client]
link = "1 Gbit/s"
mtu = 1500
[server]
link = "1 Gbit/s"
mtu = 1500
"""


def told(text: str, hosts: str = ""):
    """The report of an observations file with these tables."""
    head = f'schema = "{SCHEMA}"\ntitle = "A ticket"\ndate = "2026-11-20"\n'
    return observations.told_report(observations.loads((head + hosts + text).encode()))


def copy(name: str, rate: str = "", more: str = "") -> str:
    line = f'rate = "{rate}"\n' if rate else ""
    return f'[[copy]]\ncopy = "{name}"\n{line}{more}\n'


def tcp(sender: str, rate: str, more: str = "") -> str:
    return f'[[tcp]]\nsender = "{sender}"\nrate = "{rate}"\n{more}\n'


def disk(side: str, verb: str, rate: str) -> str:
    return f'[[disk]]\nside = "{side}"\nverb = "{verb}"\nrate = "{rate}"\n'


def verdicts(report):
    return [each.verdict.named for each in diagnose(report).copies]


# -- what is measured is left alone ------------------------------------------------------------


def test_reports_that_were_measured_keep_their_verdicts(world):
    world.copy("push.cached", 116)
    (found,) = diagnose(world.report()).copies
    assert found.verdict.confidence > 0.8
    assert found.verdict.named == ("network", "path", "link-rate")


def test_a_strange_report_that_calls_itself_told_and_broke_off_raises_nothing(world):
    world.copy("push.cached", 116)
    report = world.report(status="interrupted", tool={"version": "0", "observations": "x"})
    assert len(diagnose(report).copies) == 4


# -- copies with a rate ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cap"),
    [
        (disk("server", "read", "60 MB/s") + copy("pull.uncached", "58 MB/s"), "read"),
        (disk("server", "write", "60 MB/s") + copy("push.cached", "58 MB/s"), "write"),
        (copy("push.cached", "113 MB/s"), "link-rate"),
        (tcp("server", "300 Mbit/s") + copy("pull.cached", "36 MB/s"), "link-rate"),
    ],
)
def test_a_ceiling_that_was_told_and_is_reached_caps_the_copy_at_most_fairly_surely(text, cap):
    (found,) = diagnose(told(text, GIGABIT)).copies
    assert found.verdict.cause == cap
    assert 0.6 <= found.verdict.confidence <= 0.8


def test_no_figure_of_a_person_makes_a_verdict_surer_than_0_8(world):
    world.copy("push.cached", 116)
    report = replace(world.report(), tool={"version": "0", "observations": SCHEMA})
    assert diagnose(report).copies[0].verdict.confidence == 0.8


@pytest.mark.parametrize(
    "text",
    [
        tcp("server", "940 Mbit/s") + copy("pull.uncached", "40 MB/s"),
        copy("pull.cached", "40 MB/s"),
        disk("server", "read", "160 MB/s") + copy("pull.uncached", "40 MB/s"),
    ],
)
def test_a_copy_below_all_that_was_told_is_blamed_on_nothing(text):
    (found,) = diagnose(told(text, GIGABIT)).copies
    assert found.verdict.named == ("unknown", None, "inconclusive")
    assert found.verdict.confidence == 0
    assert found.advice


def test_tcp_alone_rules_the_network_out_in_words():
    (found,) = diagnose(
        told(tcp("server", "940 Mbit/s") + copy("pull.uncached", "40 MB/s"), GIGABIT)
    ).copies
    assert "It is not the network: TCP alone moved 118 MB/s" in found.verdict.sentence
    assert not any("Measure TCP alone" in each for each in found.advice)


@pytest.mark.parametrize("rate", ["11 MB/s", "11 MiB/s", "11.8 MB/s"])
def test_a_rate_of_a_slower_link_than_was_told_is_pointed_at(rate):
    """940 Mbit/s by iperf and a copy at a hundredth of a gigabit: perhaps another way."""
    text = tcp("server", "940 Mbit/s") + copy("pull.uncached", rate)
    (found,) = diagnose(told(text, GIGABIT)).copies
    assert "about what a 100 Mbit/s link carries" in found.verdict.sentence
    assert found.verdict.named == ("unknown", None, "inconclusive")


@pytest.mark.parametrize("rate", ["9 MB/s", "14 MB/s", "60 MB/s"])
def test_a_rate_of_no_link_is_not(rate):
    text = tcp("server", "940 Mbit/s") + copy("pull.uncached", rate)
    (found,) = diagnose(told(text, GIGABIT)).copies
    assert "is about what" not in found.verdict.sentence


def test_without_any_faster_figure_a_slower_link_is_no_riddle():
    text = disk("server", "read", "60 MB/s") + copy("pull.uncached", "11.7 MB/s")
    (found,) = diagnose(told(text)).copies
    assert "below every ceiling" in found.verdict.sentence


# -- one way against the other -----------------------------------------------------------------


def test_the_other_way_rules_out_the_link_and_ram_the_disk():
    text = copy("pull.cached", "25 MB/s") + copy("push.cached", "96 MB/s")
    pull, push = diagnose(told(text, GIGABIT)).copies
    assert "not the network's rate, which carried 96 MB/s the other way" in pull.verdict.sentence
    assert "nor the server's disk" in pull.verdict.sentence
    assert pull.evidence[0] in pull.verdict.sentence
    assert any("Start the same copy at the server" in each for each in pull.advice)
    assert push.verdict.named == ("network", "path", "link-rate")


def test_an_uncached_copy_does_not_rule_out_its_disk():
    text = copy("pull.uncached", "25 MB/s") + copy("push.uncached", "96 MB/s")
    pull, _ = diagnose(told(text, GIGABIT)).copies
    assert "the other way: something holds a pull alone" in pull.verdict.sentence


@pytest.mark.parametrize("other", ["27 MB/s", "20 MB/s"])
def test_another_way_that_is_no_faster_rules_nothing_out(other):
    text = copy("pull.cached", "25 MB/s") + copy("push.cached", other)
    pull, _ = diagnose(told(text, GIGABIT)).copies
    assert "the other way" not in pull.verdict.sentence


def test_a_copy_that_both_hosts_started_is_not_asked_for_again():
    text = copy("pull.cached", "25 MB/s") + copy("server.push.cached", "27 MB/s")
    pull, _ = diagnose(told(text, GIGABIT)).copies
    assert not any("Start the same copy" in each for each in pull.advice)


# -- cached against uncached -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slow", "fast", "side"),
    [
        (("pull.uncached", "15 MB/s"), ("pull.cached", "25 MB/s"), "server"),
        (("push.uncached", "30 MB/s"), ("push.cached", "96 MB/s"), "client"),
        (("server.push.uncached", "20 MB/s"), ("server.push.cached", "60 MB/s"), "server"),
    ],
)
def test_what_a_copy_loses_without_its_source_in_ram_is_the_senders_disk(slow, fast, side):
    found, _ = diagnose(told(copy(*slow) + copy(*fast), GIGABIT)).copies
    assert found.verdict.named == ("disk", side, "read")
    assert found.verdict.confidence <= 0.75


def test_a_disk_whose_cached_twin_reaches_nothing_either_has_no_next():
    text = copy("pull.uncached", "15 MB/s") + copy("pull.cached", "25 MB/s")
    found, _ = diagnose(told(text, GIGABIT)).copies
    assert found.next is None and "was not found" in found.verdict.sentence
    assert isinstance(found.predicted_bytes_per_second, Band)
    assert found.predicted_bytes_per_second.median == pytest.approx(25e6)


def test_a_disk_whose_cached_twin_fills_the_link_has_it_for_next():
    text = copy("pull.uncached", "30 MB/s") + copy("pull.cached", "110 MB/s")
    found, _ = diagnose(told(text, GIGABIT)).copies
    assert found.next is not None and found.next.named == ("network", "path", "link-rate")


def test_a_cap_that_is_not_the_senders_disk_keeps_its_next():
    text = disk("client", "write", "16 MB/s") + disk("server", "read", "80 MB/s")
    text += copy("pull.uncached", "15 MB/s") + copy("pull.cached", "15.5 MB/s")
    found, _ = diagnose(told(text, GIGABIT)).copies
    assert found.verdict.named == ("disk", "client", "write")
    assert found.next is not None and found.next.named == ("disk", "server", "read")


@pytest.mark.parametrize(
    "text",
    [
        copy("pull.uncached", "24 MB/s") + copy("pull.cached", "25 MB/s"),
        copy("pull.uncached", "40 MB/s") + copy("pull.cached", "25 MB/s"),
        copy("pull.uncached", "15 MB/s") + copy("push.cached", "96 MB/s"),
        disk("server", "read", "150 MB/s")
        + copy("pull.uncached", "15 MB/s")
        + copy("pull.cached", "25 MB/s"),
    ],
)
def test_no_disk_is_blamed_where_the_twin_is_no_faster_or_the_disk_is_known(text):
    found = diagnose(told(text, GIGABIT)).copies[0]
    assert found.verdict.component != "disk"


def test_measured_copies_blame_no_disk_by_their_twin_unless_both_caches_are_proven(empty_world):
    for proven, cap in ((False, "unknown"), (True, "disk")):
        world = empty_world(agent=False)
        world.copy("pull.uncached", (29, 30, 31), proven=proven)
        world.copy("pull.cached", (89, 90, 91), proven=proven)
        assert diagnose(world.report()).copies[0].verdict.component == cap


# -- copies without a rate ---------------------------------------------------------------------


def test_a_copy_without_a_rate_is_told_what_bounds_it():
    (found,) = diagnose(told(tcp("client", "300 Mbit/s") + copy("push.cached"), GIGABIT)).copies
    assert found.verdict.named == ("network", "path", "link-rate")
    assert found.bytes_per_second is None
    assert found.verdict.ceiling_bytes_per_second == pytest.approx(37.5e6)
    assert "can run at no more than 37.5 MB/s" in found.verdict.sentence


def test_a_copy_of_which_nothing_is_known_is_not_judged():
    text = tcp("server", "300 Mbit/s") + copy("push.cached")
    (found,) = diagnose(told(text)).copies
    assert found.verdict.named == ("unknown", None, "not-measured")
    assert found.verdict.sentence == "Its rate was not told, nor what bounds it."


@pytest.mark.parametrize(
    ("write", "least"), [("110 MB/s", 0.5), ("140 MB/s", 0.6), ("1 GB/s", 0.7)]
)
def test_what_bounds_it_is_the_surer_the_further_the_next_ceiling_is(write, least):
    text = disk("server", "write", write) + copy("push.cached")
    (found,) = diagnose(told(text, GIGABIT)).copies
    assert found.verdict.confidence == least
    assert ("too close to tell" in found.verdict.sentence) == (least == 0.5)


# -- longer frames -----------------------------------------------------------------------------


def test_a_full_link_of_usual_frames_is_told_what_jumbo_frames_carry():
    (found,) = diagnose(told(copy("push.cached", "113 MB/s"), GIGABIT)).copies
    assert any("MTU 9000" in each and "5 % more, 124 MB/s" in each for each in found.advice)


@pytest.mark.parametrize(
    ("hosts", "rate"),
    [
        (GIGABIT.replace("1500", "9000"), "118 MB/s"),
        (GIGABIT.replace("mtu = 1500", ""), "113 MB/s"),
        ("", "11.7 MB/s"),
    ],
)
def test_frames_that_are_long_or_not_known_get_no_such_advice(hosts, rate):
    text = tcp("client", rate) + copy("push.cached", rate)
    (found,) = diagnose(told(text, hosts)).copies
    assert found.verdict.cause == "link-rate"
    assert not any("MTU 9000" in each for each in found.advice)


def test_a_hop_that_is_slower_than_the_links_gets_no_such_advice():
    text = tcp("client", "94 Mbit/s") + copy("push.cached", "11.5 MB/s")
    (found,) = diagnose(told(text, GIGABIT)).copies
    assert found.verdict.cause == "link-rate"
    assert not any("MTU 9000" in each for each in found.advice)


# -- who starts it -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sender", "better", "host"),
    [
        ("client", "sender", "client"),
        ("server", "receiver", "client"),
        ("server", "sender", "server"),
    ],
)
def test_who_should_start_a_copy_is_passed_on_without_figures(sender, better, host):
    text = f'[[start]]\nsender = "{sender}"\nbetter = "{better}"\n' + copy("push.cached", "90 MB/s")
    (found,) = [e for e in diagnose(told(text, GIGABIT)).comparisons if e.about == "initiator"]
    assert found.significant and found.ratio is None
    assert found.sentence.startswith(f"Start it from the {better}: ")
    assert f"when the {host} starts it" in found.sentence


def test_strange_words_of_who_starts_it_are_left_out():
    report = told(copy("push.cached", "90 MB/s"), GIGABIT)
    strange = [{"sender": "moon", "better": "sender"}, {"sender": "client", "better": 3}]
    report = replace(report, target={**report.target, "starts": strange})
    assert diagnose(report).comparisons == ()
