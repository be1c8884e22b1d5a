"""The ladder, the wanted rate and two reports side by side, on a terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck.analysis import changes
from bottleneck.documents.compare import print_change
from bottleneck.documents.copies import ladder
from bottleneck.documents.copies import target as wanted
from tests import stored_reports
from tests.stored_reports import diagnose

DATA = Path(__file__).parent.parent / "data"


def loaded(name):
    return stored_reports.load(DATA / f"report-v1-{name}.json")


def chosen(name, rate=None):
    report = replace(loaded(name), target_rate_bytes_per_second=rate)
    found = diagnose(report).main_copy
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
        assert not lines[1] and lines[2] in (
            "Copies, before and after",
            "What else differs, and may be why",
        )


def other_facts(report):
    """The same of a client with other memory, another link and disk, and virtual."""
    client = report.client
    changed = replace(
        client,
        memory_total_bytes=4 << 30,
        virtual="kvm",
        interface=replace(client.interface, rate_bits_per_second=10**8),
        folder=replace(client.folder, rotational=True),
    )
    return replace(report, client=changed)


@pytest.mark.parametrize("verbose", [False, True])
def test_each_kind_of_change_reads_as_it_was_looked_at(compared, golden, verbose):
    """A fix is held against its prediction; no line is wider than the terminal."""
    disk, agent = loaded("server-disk"), loaded("lab-with-agent")
    pairs = {
        "faster": (disk, after_the_fix(disk)),
        "slower": (after_the_fix(disk), disk),
        "itself": (disk, disk),
        "facts": (disk, other_facts(disk)),
        "many facts": (disk, agent),
        "nothing shared": (disk, replace(disk, entries=())),
        "nothing": (replace(disk, entries=()),) * 2,
        "copy not made before": (loaded("lab-no-agent"), agent),
        "copy not made after": (agent, loaded("lab-no-agent")),
        "foreign text": (disk, loaded("strange")),
    }
    for name, (before, after) in pairs.items():
        text = compared(before, after, 100, verbose)
        assert max(map(len, text.splitlines())) <= 100 and "\x1b" not in text
        golden(f"compare/{name.replace(' ', '-')}{'-verbose' * verbose}", text)
