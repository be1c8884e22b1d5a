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
    assert "Needed for 200 MB/s: pull.uncached (3.1.1)" in told
    assert "- The server's disk must read" in told
    there = shown(wanted(chosen("server-disk", 10e6))).strip()
    assert there == "pull.uncached (3.1.1) reaches 10.0 MB/s"
    assert shown(wanted(chosen("server-disk"))) == ""
    copy = chosen("server-disk", 200e6)
    bare = replace(copy, target=replace(copy.target, needs=(), unknown=()))
    assert "No measured component is in the way." in shown(wanted(bare))


@pytest.mark.parametrize("width", [80, 120])
def test_two_reports_read_as_they_were_looked_at(compared, golden, width):
    text = compared(loaded("lab-no-agent"), loaded("lab-with-agent"), width)
    golden(f"compare-{width}", text)


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_of_two_reports_is_wider_than_the_terminal(compared, width):
    text = compared(loaded("server-disk"), loaded("strange"), width, verbose=True)
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text


def after_the_fix(before, faster=4.7):
    """The same with another disk: its reads and the uncached copies are faster."""
    entries = []
    for step, outcome in before.entries:
        reads = step.stage == "disk" and step.setting["verb"] == "read"
        if reads or step.setting.get("copy") == "pull.uncached":
            runs = tuple(
                tuple(replace(e, elapsed_seconds=e.elapsed_seconds / faster) for e in run)
                for run in outcome.runs
            )
            entries.append((step, replace(outcome, runs=runs)))
        else:
            entries.append((step, outcome))
    return replace(before, entries=tuple(entries))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("server-disk", "strange"),
        ("lab-no-agent", "lab-with-agent"),
        ("comparisons", "server-disk"),
        ("thorough", "strange"),
    ],
)
def test_two_reports_are_one_screen_and_its_first_line_is_the_result(compared, before, after):
    for first, second in ((before, after), (after, before)):
        lines = compared(loaded(first), loaded(second), 100).splitlines()
        assert len(lines) <= 30
        assert lines[0].startswith(("No significant change", "Slower: ", "pull.", "push."))
        assert not lines[1] and lines[2] == "Copies, before and after"


def test_a_fix_is_held_against_its_prediction_in_one_line(compared):
    before = loaded("server-disk")
    lines = compared(before, after_the_fix(before), 100).splitlines()
    assert lines[0] == "pull.uncached is 4.7x faster: 23.6 -> 111 MB/s, as predicted (108–112 MB/s)"
    row = next(line.split() for line in lines if line.startswith("pull.uncached 3.1.1"))
    assert " ".join(row).endswith("23.6 MB/s 111 MB/s 4.7x faster 108–112 MB/s")
    back = compared(after_the_fix(before), before, 100).splitlines()
    assert back[0].startswith("Slower: pull.uncached, 111 -> 23.6 MB/s (4.7x)")


def test_more_facts_than_fit_are_counted(compared):
    few = compared(loaded("server-disk"), loaded("lab-with-agent"))
    all_of_them = compared(loaded("server-disk"), loaded("lab-with-agent"), verbose=True)
    assert "more with --verbose" in few
    assert "more with --verbose" not in all_of_them


def test_a_report_against_itself_shows_no_difference(compared):
    text = compared(loaded("server-disk"), loaded("server-disk"))
    assert text.splitlines()[0] == "No significant change"
    assert "no difference" in text
    assert "16 tests without a significant" in text
    assert "Differences in the setup" not in text


def test_reports_that_share_nothing_are_short(compared):
    empty = replace(loaded("server-disk"), entries=())
    assert compared(empty, empty).splitlines() == ["Not comparable: the reports share no copy"]
    assert "Only in the report before" in compared(loaded("server-disk"), empty, verbose=True)
    assert "copies in one report only: " in compared(loaded("server-disk"), empty)


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
    assert "client.virtual: unknown -> kvm" in text


def test_a_copy_that_could_not_be_made_has_a_dot(compared):
    text = compared(loaded("lab-no-agent"), loaded("lab-with-agent"))
    row = next(line for line in text.splitlines() if line.startswith("pull.uncached  "))
    assert row.count("·") == 3
    back = compared(loaded("lab-with-agent"), loaded("lab-no-agent"))
    row = next(line for line in back.splitlines() if line.startswith("pull.uncached  "))
    assert row.count("·") == 3
