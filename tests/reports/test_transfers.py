"""What is shown of TCP by itself: its processes, both directions at once, the share of a link."""

from __future__ import annotations

import io
import re
from dataclasses import replace

from rich.console import Console

from bottleneck.report import Report, Step
from bottleneck.reports import terminal
from bottleneck.reports.transfers import transfers
from probes.records import HostFacts, InterfaceFacts, Measured, Sample, Usage

IDLE = Usage(1.0, (0.1,), 0.1, 0.0, 0.0, 0.1, 0.1, 0.0, *(None,) * 12)
CARD = InterfaceFacts("eth0", "192.0.2.1", None, "full", 1500, "igc", virtual=False)
HOST = HostFacts(
    *("nas", "Linux", None, "3.11", 4, None, None, None),
    *(False, CARD, None, {}, None, {}),
)
END = {
    "seconds": 2.0,
    "user_seconds": 0.02,
    "system_seconds": 0.4,
    "calls": 1000,
    "seconds_per_call": 0.002,
    "granted_bytes": 131072,
}


def step(verb, rate, both_ways=False, **told):
    setting = {"verb": verb, "streams": 1, "both_ways": both_ways}
    run = Sample(0.0, 0), Sample(2.0, round(2e6 * rate))
    return Step("tcp", setting, "client"), Measured((run,), IDLE, None, told)


def shown(*entries, card=CARD):
    host = replace(HOST, interface=card)
    report = Report("complete", {}, "", 1.0, {}, host, None, entries)
    file = io.StringIO()
    terminal.show(Console(file=file, width=100), transfers(report))
    return file.getvalue()


def test_each_end_has_its_cpu_apart_its_calls_and_what_it_was_granted():
    text = shown(step("pull", 50, sender=END, receiver={**END, "user_seconds": "much"}))
    assert re.search(r"tcp pull +server sender +20 ms +400 ms +1,000 +2 ms +128 KiB", text)
    assert "client receiver" not in text


def test_both_directions_stand_beside_what_each_gets_by_itself():
    text = shown(
        step("push", 100), step("pull", 80), step("push", 50, True), step("pull", 60, True)
    )
    assert "- push: 50.0 MB/s, 50% of 100 MB/s by itself" in text
    assert "- pull: 60.0 MB/s, 75% of 80.0 MB/s by itself" in text
    assert "- sum: 110 MB/s" in text
    assert "directions" not in shown(step("push", 100), step("pull", 80))


def test_the_share_is_of_what_the_link_carries_as_payload():
    gigabit = replace(CARD, rate_bits_per_second=10**9)
    text = shown(step("push", 100.6), card=gigabit)
    assert "Share of the practical maximum of 1 Gbit/s, 117.7 MB/s (112 MiB/s)" in text
    assert "tcp push: 85%" in text
    virtual = replace(gigabit, virtual=True)
    assert "of 100 Mbit/s" in shown(step("push", 11.7), card=virtual), "a card that only claims"
    assert shown(step("push", 50)) == ""
