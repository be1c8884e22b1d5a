"""The examples of figures that a person has: each verdict is what its author found."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from bottleneck import observations
from bottleneck.analysis import diagnose
from bottleneck.reports.console import print_report

EXAMPLES = Path(__file__).parent.parent / "examples"
GOLDEN = Path(__file__).parent / "reports" / "golden"
FILES = sorted(path.name for path in EXAMPLES.glob("*.toml"))


def told(name: str):
    return observations.told_report(observations.loads((EXAMPLES / name).read_bytes()))


def diagnosis(name: str):
    return diagnose(told(name))


def verdicts(name: str):
    return [
        (each.copy, each.verdict.component, each.verdict.side, each.verdict.cause)
        for each in diagnosis(name).copies
    ]


@pytest.mark.parametrize("name", FILES)
def test_the_output_is_the_one_that_was_looked_at(name):
    """`UPDATE_GOLDEN=1` writes it anew."""
    path = GOLDEN / f"told-{name.removesuffix('.toml')}-100.txt"
    shown = io.StringIO()
    report = told(name)
    console = Console(file=shown, width=100, highlight=False)
    print_report(report, diagnose(report), console, verbose=True)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(shown.getvalue(), encoding="utf-8")
    assert shown.getvalue() == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_no_verdict_on_told_figures_is_sure(name):
    assert all(each.verdict.confidence <= 0.8 for each in diagnosis(name).copies)


def test_11_from_every_client_is_a_100_mbit_hop_at_the_server():
    found = diagnosis("gigabit-back-of-the-envelope.toml")
    assert verdicts("gigabit-back-of-the-envelope.toml") == [
        ("push.cached", "network", "server", "link-rate")
    ]
    assert "a 100 Mbit/s link's payload" in found.summary
    assert "2 clients get the same" in found.summary


def test_uncached_pulls_are_the_servers_disk_and_25_against_96_is_not_explained():
    assert verdicts("gige-file-sharing.toml") == [
        ("pull.uncached", "disk", "server", "read"),
        ("pull.cached", "unknown", None, "inconclusive"),
        ("push.cached", "network", "path", "link-rate"),
    ]
    sentence = diagnosis("gige-file-sharing.toml").copies[1].verdict.sentence
    assert "not the network's rate, which carried 101 MB/s the other way" in sentence
    assert "something holds a pull alone" in sentence


def test_short_messages_are_bound_by_latency_and_long_ones_by_the_link():
    name = "latency-and-bandwidth.toml"
    assert verdicts(name) == [
        ("push.cached", "smb", "path", "round-trips"),
        ("push.cached", "network", "path", "link-rate"),
    ]
    (messages,) = diagnosis(name).comparisons
    assert messages.about == "messages" and "t(n) = 264 us + n / 108 MB/s" in messages.sentence


def test_149_ms_take_a_window_of_the_bdp_and_120_streams_fill_the_100_mbit_card():
    name = "transatlantic-bulk-throughput.toml"
    assert verdicts(name) == [
        ("push.cached", "tcp", "server", "receive-window"),
        ("push.cached", "network", "server", "link-rate"),
    ]
    one, many = diagnosis(name).copies
    assert "A receive window of 1.67 MiB or more" in one.advice[0]
    assert many.verdict.ceiling_bytes_per_second == pytest.approx(90e6 / 8)


def test_the_inner_zone_is_below_a_gigabit_jumbo_frames_help_and_the_sender_starts():
    name = "large-file-transfers.toml"
    assert verdicts(name) == [
        ("push.uncached", "disk", "client", "zone"),
        ("push.uncached", "network", "path", "link-rate"),
    ]
    found = diagnosis(name)
    assert found.copies[0].verdict.ceiling_bytes_per_second == pytest.approx(100e6)
    assert any("Jumbo frames" in each for each in found.copies[1].advice)
    (starts,) = found.comparisons
    assert starts.about == "initiator" and starts.significant
    assert starts.sentence.startswith("Start it from the sender")


def test_the_file_that_the_readme_shows_is_one():
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    shown = text.split("```toml\n")[1].split("```")[0]
    report = observations.told_report(observations.loads(shown.encode()))
    assert {step.stage for step, _ in report.entries} == {"tcp", "disk", "latency", "smb-copy"}
    assert all(name in text for name in FILES)


def test_a_ticket_that_rules_the_network_out_is_told_so_and_no_more():
    found = diagnosis("ticket.toml")
    assert verdicts("ticket.toml") == [("pull.uncached", "unknown", None, "inconclusive")]
    assert "It is not the network" in found.summary
    assert "about what a 100 Mbit/s link carries" in found.summary
