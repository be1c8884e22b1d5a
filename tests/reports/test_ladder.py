"""The ladder, the wanted rate and two reports side by side, on a terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck import report as reports
from bottleneck.analysis import changes
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.reports.compare import print_change
from bottleneck.reports.copies import ladder
from bottleneck.reports.copies import target as wanted

DATA = Path(__file__).parent.parent / "data"


def loaded(name):
    return reports.load(DATA / f"report-v1-{name}.json")


def chosen(name, rate=None):
    report = replace(loaded(name), target_rate_bytes_per_second=rate)
    found = diagnose(report).chosen
    assert found is not None
    return found


@pytest.fixture
def compared(shown):
    """Two reports side by side."""

    def of(before, after, width=80, verbose=False):
        found = changes.compare(before, after)
        return shown(lambda console: print_change(found, console, verbose), width)

    return of


def test_a_cap_alone_is_no_ladder(shown):
    copy = chosen("server-disk")
    assert shown(ladder(replace(copy, ladder=copy.ladder[:1]))) == ""


def test_a_wanted_rate_says_what_has_to_rise_or_that_nothing_has(shown):
    told = shown(wanted(chosen("server-disk", 200e6)))
    assert "What it takes to bring pull.uncached (3.1.1) to 200 MB/s" in told
    assert "- The server's disk must read" in told
    there = shown(wanted(chosen("server-disk", 10e6))).strip()
    assert there == "pull.uncached (3.1.1) reaches the 10 MB/s that are wanted"
    assert shown(wanted(chosen("server-disk"))) == ""
    copy = chosen("server-disk", 200e6)
    bare = replace(copy, target=replace(copy.target, needs=(), unknown=()))
    assert "Nothing that is known is in the way." in shown(wanted(bare))


@pytest.mark.parametrize("width", [80, 120])
def test_two_reports_read_as_they_were_looked_at(compared, golden, width):
    text = compared(loaded("lab-no-agent"), loaded("lab-with-agent"), width)
    golden(f"compare-{width}", text)


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_of_two_reports_is_wider_than_the_terminal(compared, width):
    text = compared(loaded("server-disk"), loaded("strange"), width, verbose=True)
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text


def test_more_facts_than_fit_are_counted(compared):
    few = compared(loaded("server-disk"), loaded("lab-with-agent"))
    all_of_them = compared(loaded("server-disk"), loaded("lab-with-agent"), verbose=True)
    assert "more with --verbose" in few
    assert "more with --verbose" not in all_of_them


def test_a_report_against_itself_shows_no_difference(compared):
    text = compared(loaded("server-disk"), loaded("server-disk"))
    assert "none differs by more than the noise" in text
    assert "in the noise" in text
    assert "What else is different" not in text


def test_reports_that_share_nothing_are_short(compared):
    empty = replace(loaded("server-disk"), entries=())
    assert compared(empty, empty).splitlines() == ["The two reports share no copy."]
    assert "Copies of the report before alone" in compared(loaded("server-disk"), empty)


def test_facts_are_written_as_a_person_reads_them(compared):
    report = loaded("server-disk")
    assert report.client is not None and report.client.interface is not None
    assert report.client.folder is not None
    other = replace(
        report.client,
        memory_total_bytes=4 << 30,
        virtual="kvm",
        interface=replace(report.client.interface, rate_bits_per_second=10**8),
        folder=replace(report.client.folder, rotational=True),
    )
    text = compared(report, replace(report, client=other))
    assert "client.memory_total_bytes: 8 GiB -> 4 GiB" in text
    assert "client.interface.rate_bits_per_second: 1 Gbit/s -> 100 Mbit/s" in text
    assert "client.folder.rotational: no -> yes" in text
    assert "client.virtual: not told -> kvm" in text


def test_a_copy_that_could_not_be_made_has_a_dot(compared):
    text = compared(loaded("lab-no-agent"), loaded("lab-with-agent"))
    row = next(line for line in text.splitlines() if line.startswith("pull.uncached  "))
    assert row.count("·") == 2
    back = compared(loaded("lab-with-agent"), loaded("lab-no-agent"))
    row = next(line for line in back.splitlines() if line.startswith("pull.uncached  "))
    assert row.count("·") == 3
