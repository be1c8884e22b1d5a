"""Repeated runs, and TCP by itself: outliers, spreads, both directions, the share of a link."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck.documents.copies import cache_growth, work
from bottleneck.documents.stages import outliers, runs, transfers
from bottleneck.report.report import WARMED_UP, Report, Step
from probes.core.records import HostFacts, InterfaceFacts, Measured, Sample, Usage

IDLE = Usage(1.0, (0.1,), 0.1, 0.0, 0.0, 0.1, 0.1, 0.0, *(None,) * 12)
CARD = InterfaceFacts("eth0", "192.0.2.1", None, "full", 1500, "igc", virtual=False)
GIGABIT = replace(CARD, rate_bits_per_second=10**9)
HOST = HostFacts("nas", "Linux", None, "3.11", 4, None, None, None, False, CARD, None, {}, None, {})
END = {
    "seconds": 2.0,
    "user_seconds": 0.02,
    "system_seconds": 0.4,
    "calls": 1000,
    "seconds_per_call": 0.002,
    "granted_bytes": 131072,
}


def report_of(*entries, card=CARD):
    host = replace(HOST, interface=card)
    return Report("complete", {}, "", 1.0, {}, host, None, entries, (WARMED_UP,))


def step(verb, *rates, both_ways=False, **details):
    setting = {"verb": verb, "streams": 1, "both_ways": both_ways}
    runs_of_rates = tuple((Sample(0.0, 0), Sample(2.0, round(2e6 * rate))) for rate in rates)
    return Step("tcp", setting, "client"), Measured(runs_of_rates, IDLE, None, details)


@pytest.mark.parametrize(
    ("values", "far"),
    [
        ([5.0, 500.0], 0),
        ([9.8, 10.0, 10.2], 0),
        ([9.8, 10.0, 10.2, 14.0], 1),
        ([10.1, 10.0, 9.9, 10.0, 10.2, 30.0, 1.0], 2),
        ([10.0] * 7 + [10.1], 1),
    ],
)
def test_an_outlier_lies_ten_deviations_from_the_median(values, far):
    assert outliers(values) == far


@pytest.mark.parametrize(
    ("copy", "grown", "lines"),
    [("pull.uncached", 64 << 20, 1), ("pull.cached", 0, 0), ("push.cached", 64 << 20, 0)],
)
def test_what_a_pull_left_in_its_senders_page_cache_is_shown(copy, grown, lines):
    sender = replace(IDLE, memory_cached_growth_bytes=grown)
    setting = {"copy": copy, "dialect": "3.1.1", "end": "folder"}
    outcome = Measured(((Sample(0.0, 0), Sample(1.0, 5)),), IDLE, sender)
    growths = list(cache_growth(report_of((Step("smb-copy", setting, "client"), outcome))))
    assert len(growths) == lines
    assert not growths or "64 MiB in one run" in str(growths[0])


def test_what_each_copy_checked_spent_and_waited_for_is_shown():
    cost = {
        **{"hash_ok": True, "checked_bytes": 50, "requests": 8, "pending_replies": 3},
        **{"user_seconds": 0.02, "system_seconds": 0.3},
        "sockets": {"retransmitted_segments": 5, "congestion_window_bytes_median": 14480},
    }
    run = (Sample(0.0, 0), Sample(1.0, 100))
    entry = Step("smb-copy", {"copy": "push.cached", "dialect": "3.1.1"}, "client")
    stolen = replace(IDLE, steal_ratio=0.25)
    table, altered = (
        next(work(report_of((entry, Measured((run,), IDLE, stolen, details)))))
        for details in (cost, {**cost, "hash_ok": False})
    )
    figures = ("50%", "20 ms", "300 ms", "8", "3", "5", "14.1 KiB", "25%")
    assert table.rows[0].cells == ("push.cached 3.1.1", *figures)
    assert altered.rows[0].cells[1] == "ALTERED"
    nothing = (entry, Measured((run,), IDLE, stolen, {})), step("push", 1.0)
    assert list(work(report_of(*nothing))) == []


RUNS = {
    "five": [100, 102, 98, 100, 30],
    "three": [100, 102, 98],
    "two alike": [100, 100],
    "one": [100],
}


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_mean_deviation_range_and_outliers_stand_in_a_line_of_the_test(render, golden, encoding):
    """Several runs only; an encoding without blocks has digits."""
    blocks = (
        f"== {name}\n{render(runs(report_of(step('push', *RUNS[name]))), 100, encoding)}"
        for name in RUNS
    )
    golden(f"runs-{encoding}", "".join(blocks))


BOTH_WAYS = [
    step("push", 100),
    step("pull", 80),
    step("push", 50, both_ways=True),
    step("pull", 60, both_ways=True),
]
TRANSFERS = {
    "process": report_of(step("pull", 50, sender=END, receiver={**END, "user_seconds": "much"})),
    "both directions": report_of(*BOTH_WAYS),
    "each by itself": report_of(*BOTH_WAYS[:2]),
    "gigabit": report_of(step("push", 100.6), card=GIGABIT),
    "a card that only claims": report_of(step("push", 11.7), card=replace(GIGABIT, virtual=True)),
    "no known link": report_of(step("push", 50)),
}


def test_tcp_by_itself_reads_as_it_was_looked_at(render, golden):
    """A share is of what the link carries as payload; what an end told wrongly is left out."""
    blocks = (f"== {name}\n{render(transfers(TRANSFERS[name]), 100)}" for name in TRANSFERS)
    golden("transfers", "".join(blocks))
