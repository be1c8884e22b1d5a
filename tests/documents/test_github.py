"""Annotations and the step's summary: no name forges a command, markup or a link."""

from __future__ import annotations

import re
from dataclasses import replace

from bottleneck.documents.github import MOST_ANNOTATIONS, github_summary, github_text
from bottleneck.gate.judged import Ruling

COMMAND = re.compile(r"::(?P<level>error|warning|notice) title=(?P<title>[^:,\r\n]+)::(?P<data>.*)")


def commands(text):
    """Level, title, message of each line, as the runner reads them."""
    annotations = []
    for line in text.splitlines():
        match = COMMAND.fullmatch(line)
        assert match, line
        title, data = (
            re.sub("%(25|0D|0A|3A|2C)", lambda hit: chr(int(hit[1], 16)), match[name])
            for name in ("title", "data")
        )
        annotations.append((match["level"], title, data))
    return annotations


def test_there_are_at_most_ten_and_the_last_says_how_many_more(judgement):
    many = tuple(Ruling(f"x{index}", "x", "warning", "slow") for index in range(15))
    last_commands = commands(github_text(replace(judgement, judged=many)))
    assert len(last_commands) == MOST_ANNOTATIONS
    assert last_commands[-1][2] == "6 more expectations are not met"
    assert len(commands(github_text(replace(judgement, judged=many[:10])))) == 10


def test_every_recorded_report_is_annotated(judged_report):
    assert commands(github_text(judged_report))
    assert judged_report.state.upper() in github_summary(judged_report)


def test_the_summary_stays_far_below_what_github_takes(judgement):
    many = tuple(Ruling("n" * 9000, "x", "warning", "|" * 9000) for _ in range(3000))
    text = github_summary(replace(judgement, judged=many))
    assert len(text.encode()) < 1 << 19
    assert "and 2800 more" in text
