"""A judgement in each form that a program reads: as it was looked at, state by state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck.documents.github import github_summary, github_text
from bottleneck.documents.junit import junit_text
from bottleneck.documents.nagios import nagios_text
from bottleneck.documents.openmetrics import openmetrics_text
from bottleneck.gate.judged import Ruling

FORMATS = {
    "github": lambda judgement: github_text(judgement) + github_summary(judgement),
    "junit": junit_text,
    "nagios": nagios_text,
    "openmetrics": lambda judgement: openmetrics_text(judgement, share="//nas/asked"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_judgement_reads_as_it_was_looked_at(golden, name, judgement, rulings, empty_judgement):
    one = Ruling("disk server read", "disk.server.read", "ok", "no agent", unit="bytes_per_second")
    judgements = {
        "critical": judgement,
        "ok": replace(judgement, state="ok", sentence="all hold", judged=rulings[2:4]),
        "unmeasured": replace(judgement, state="ok", judged=(one,)),
        "nothing": empty_judgement,
    }
    for state, each in judgements.items():
        golden(f"formats/{name}-{state}", FORMATS[name](each))
