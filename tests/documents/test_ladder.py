"""The ladder, the wanted rate and two reports side by side, on a terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck.analysis import changes
from bottleneck.documents.compare import print_change
from bottleneck.documents.copies import ladder
from bottleneck.documents.copies import target as target_lines
from tests import stored_reports
from tests.stored_reports import diagnose

DATA = Path(__file__).parent.parent / "data"


def load_report(name):
    return stored_reports.load(DATA / f"report-v1-{name}.json")


def main_copy(name, rate=None):
    report = replace(load_report(name), target_rate_bytes_per_second=rate)
    copy = diagnose(report).main_copy
    assert copy is not None
    return copy


@pytest.fixture
def comparison_text(render):
    def of(earlier, later, width=80, verbose=False):
        change = changes.compare(earlier, later)
        return render(lambda console: print_change(change, console, verbose), width)

    return of


def test_a_cap_alone_is_no_ladder(render):
    copy = main_copy("server-disk")
    assert render(ladder(replace(copy, ladder=copy.ladder[:1]))) == ""


def test_a_wanted_rate_says_what_has_to_rise_or_that_nothing_has(render):
    text = render(target_lines(main_copy("server-disk", 200e6)))
    assert "Needed for 200 MB/s: pull.uncached (3.1.1)" in text
    assert "- The server's disk must read" in text
    reached_text = render(target_lines(main_copy("server-disk", 10e6))).strip()
    assert reached_text == "pull.uncached (3.1.1) reaches 10.0 MB/s"
    assert render(target_lines(main_copy("server-disk"))) == ""
    copy = main_copy("server-disk", 200e6)
    bare = replace(copy, target=replace(copy.target, needs=(), unknown=()))
    assert "No measured component is in the way." in render(target_lines(bare))


@pytest.mark.parametrize("width", [80, 120])
def test_the_comparison_is_its_golden_text(comparison_text, golden, width):
    text = comparison_text(load_report("lab-no-agent"), load_report("lab-with-agent"), width)
    golden(f"compare-{width}", text)


def after_the_fix(report, faster=4.7):
    """Returns the report with faster reads of its disk, and faster uncached copies."""
    entries = []
    for step, outcome in report.entries:
        reads = step.stage == "disk" and step.setting["verb"] == "read"
        if reads or step.setting.get("copy") == "pull.uncached":
            runs = tuple(
                tuple(replace(e, elapsed_seconds=e.elapsed_seconds / faster) for e in run)
                for run in outcome.runs
            )
            entries.append((step, replace(outcome, runs=runs)))
        else:
            entries.append((step, outcome))
    return replace(report, entries=tuple(entries))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("server-disk", "strange"),
        ("lab-no-agent", "lab-with-agent"),
        ("comparisons", "server-disk"),
        ("thorough", "strange"),
    ],
)
def test_two_reports_are_one_screen_that_begins_with_the_result(comparison_text, earlier, later):
    for first, second in ((earlier, later), (later, earlier)):
        lines = comparison_text(load_report(first), load_report(second), 100).splitlines()
        assert len(lines) <= 30
        assert lines[0].startswith(("No significant change", "Slower: ", "pull.", "push."))
        assert not lines[1] and lines[2] in (
            "Copies, before and after",
            "What else differs, and may be why",
        )


def other_facts(report):
    """Returns the report of a virtual client with other memory, another link and disk."""
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
def test_each_kind_of_change_is_its_golden_text(comparison_text, golden, verbose):
    """A fix is held against its prediction; no line is wider than the terminal."""
    disk, agent = load_report("server-disk"), load_report("lab-with-agent")
    pairs = {
        "faster": (disk, after_the_fix(disk)),
        "slower": (after_the_fix(disk), disk),
        "itself": (disk, disk),
        "facts": (disk, other_facts(disk)),
        "many facts": (disk, agent),
        "nothing shared": (disk, replace(disk, entries=())),
        "nothing": (replace(disk, entries=()),) * 2,
        "copy not made before": (load_report("lab-no-agent"), agent),
        "copy not made after": (agent, load_report("lab-no-agent")),
        "foreign text": (disk, load_report("strange")),
    }
    for name, (earlier, later) in pairs.items():
        text = comparison_text(earlier, later, 100, verbose)
        assert max(map(len, text.splitlines())) <= 100 and "\x1b" not in text
        golden(f"compare/{name.replace(' ', '-')}{'-verbose' * verbose}", text)
