"""The plugin's output, held to a grammar that is written down from the plugin guideline."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from nagiosplugin import Range

from bottleneck.documents.nagios import LONGEST_STATUS, MOST_LINES, label, nagios_text
from bottleneck.gate.expectation import limit
from bottleneck.gate.judged import Ruling
from bottleneck.gate.judging import judge
from tests.stored_reports import diagnose

NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
"""A number of the guideline: digits, minus and dot, no exponent."""
RANGE = rf"@?(?:(?:~|{NUMBER}):)?(?:{NUMBER})?"
FIGURE = (
    r"(?P<label>'[^'=\n]+'|[A-Za-z0-9_]+)"
    rf"=(?P<value>{NUMBER})(?P<unit>s|us|ms|%|B|KB|MB|TB|c)?"
    rf"(?:;(?P<warn>{RANGE}))?(?:;(?P<crit>{RANGE}))?(?:;(?P<min>{NUMBER})?)?(?:;(?P<max>{NUMBER})?)?"
)
OUTPUT = re.compile(
    r"(?P<service>[A-Z]+) (?P<state>OK|WARNING|CRITICAL|UNKNOWN) - (?P<text>[^|\n]+?)"
    rf"(?: \| (?P<figures>{FIGURE}(?: {FIGURE.replace('?P<', '?P<again_')})*))?\n"
    r"(?P<long>(?:[^|\n]+\n)*)"
)
"""Guideline, `Plugin Output` and `Performance data`; our long text has no performance data."""


def parse(text):
    """Status, text, figures by label, long lines. Errors: AssertionError, it is no such output."""
    match = OUTPUT.fullmatch(text)
    assert match, text
    figures = {}
    for each in re.finditer(FIGURE, match["figures"] or ""):
        figures[each["label"].strip("'")] = each.groupdict()
    return match["state"], match["text"], figures, match["long"].splitlines()


def test_every_recorded_report_keeps_to_the_grammar(judged_report):
    parse(nagios_text(judged_report))


def test_a_long_sentence_is_cut_at_a_word_and_told_whole_below(judgement):
    sentence = "many words " * 40 + "end"
    _, text, _, lines = parse(nagios_text(replace(judgement, sentence=sentence)))
    assert len(f"BOTTLENECK CRITICAL - {text}") <= LONGEST_STATUS
    assert text.endswith(" many words...") or text.endswith(" many...")
    assert lines[0] == sentence


@pytest.mark.parametrize(
    ("sentence", "length"),
    [
        ("pull.cached is 24 MB/s, below 30 MB/s; limited by network: link speed; and 3 more", 69),
        (f"pull.cached is 24 MB/s, below 30 MB/s; and {'more ' * 20}", 37),
        (f"pulling a file that is cached runs at 24 MB/s because {'it was ' * 20}", 45),
    ],
)
def test_a_long_sentence_ends_with_a_clause_that_is_whole(judgement, sentence, length):
    _, text, _, _ = parse(nagios_text(replace(judgement, sentence=sentence)))
    assert text == sentence[:length]


def test_a_judgement_that_holds_tells_the_copy_that_was_judged(recorded_report):
    of_push = judge(
        recorded_report, diagnose(recorded_report), [limit("push.cached < 9MB/s", "warning")]
    )
    assert (
        parse(nagios_text(of_push))[1] == "push.cached is 109 MB/s; limited by network: link speed"
    )
    output = nagios_text(judge(recorded_report, diagnose(recorded_report)))
    assert parse(output)[1] == "pull.uncached (3.1.1): 23.6 MB/s, limited by server disk: read"


def test_a_run_without_measurements_is_one_line_with_its_reason(judgement):
    why = "the run failed: 10.0.0.2: login: wrong user or password; check user and password"
    empty = replace(judgement.report, entries=(), status="failed")
    judgements = (Ruling("the run was completed", "run", "unknown", why), *judgement.judged)
    unmeasured = replace(judgement, state="unknown", sentence=why, judged=judgements, report=empty)
    assert nagios_text(unmeasured) == f"BOTTLENECK UNKNOWN - {why}\n"


def test_many_expectations_stay_within_what_nagios_keeps(judgement):
    many = tuple(
        Ruling(
            f"expectation {index} {'x' * 400}",
            f"metric.{index}",
            "ok",
            "y" * 400,
            1e6 + index,
            "seconds",
        )
        for index in range(500)
    )
    output = nagios_text(replace(judgement, judged=many))
    assert len(output.encode()) < 8192
    assert f"and {500 - MOST_LINES} more" in parse(output)[3]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("80000000:", "80000000:"),
        ("80000000.0:", "80000000:"),
        ("0:5000000", "5000000"),
        ("@10:20.5", "@10:20.5"),
        ("~:0.005", "~:0.005"),
        ("0.000050", "0.00005"),
        ("", ""),
        ("not a range", ""),
        ("20:10", ""),
    ],
)
def test_ranges_are_written_in_plain_numbers_with_the_same_meaning(judgement, text, expected):
    one = Ruling("x", "tcp.pull", "ok", "x", 1.0, "seconds", text)
    written = parse(nagios_text(replace(judgement, judged=(one,))))[2]["tcp.pull"]["warn"]
    assert (written or "") == expected
    if expected:
        assert Range(written) == Range(text)


def test_labels_of_all_copies_are_told_apart_by_their_first_19_characters():
    copies = [
        f"{begin}{verb}.{cache}{dialect}"
        for begin in ("", "server.", "file.")
        for verb in ("pull", "push")
        for cache in ("cached", "uncached")
        for dialect in ("", "@smb1", "@2.0.2", "@2.1", "@3.0", "@3.0.2", "@3.1.1", "@native")
    ]
    labels = [label(each) for each in copies]
    assert len({each[:19] for each in labels}) == len(copies)
    assert all(re.fullmatch(r"[A-Za-z0-9@._/-]{1,19}", each) for each in labels)
    assert label("pull.uncached") == "pull.uncached"
