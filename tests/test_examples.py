"""The examples of figures that a person has: each verdict is what its author found."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from bottleneck import observations
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.reports.console import print_report

EXAMPLES = Path(__file__).parent.parent / "examples"
GOLDEN = Path(__file__).parent / "reports" / "golden"
FILES = sorted(path.name for path in EXAMPLES.glob("*.toml"))


def told(name: str):
    return observations.told_report(observations.loads((EXAMPLES / name).read_bytes()))


def diagnosis(name: str):
    return diagnose(told(name))


@pytest.mark.parametrize("name", FILES)
def test_the_output_is_the_one_that_was_looked_at(name):
    """`UPDATE_GOLDEN=1` writes it anew."""
    path = GOLDEN / f"told-{name.removesuffix('.toml')}-100.txt"
    shown = io.StringIO()
    report = told(name)
    console = Console(file=shown, width=100, highlight=False)
    print_report(report, diagnose(report), console, ("all",))
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(shown.getvalue(), encoding="utf-8")
    assert shown.getvalue() == path.read_text(encoding="utf-8")


VERDICTS = {
    "gigabit-back-of-the-envelope.toml": ["push.cached network/server/link-rate"],
    "gige-file-sharing.toml": [
        "pull.uncached disk/server/read",
        "pull.cached unknown/None/inconclusive",
        "push.cached network/path/link-rate",
    ],
    "large-file-transfers.toml": [
        "push.uncached disk/client/zone",
        "push.uncached network/path/link-rate",
    ],
    "latency-and-bandwidth.toml": [
        "push.cached smb/path/round-trips",
        "push.cached network/path/link-rate",
    ],
    "ticket.toml": ["pull.uncached unknown/None/inconclusive"],
    "transatlantic-bulk-throughput.toml": [
        "push.cached tcp/server/receive-window",
        "push.cached network/server/link-rate",
    ],
}
"""What the author of each file found; the words are the golden's."""


@pytest.mark.parametrize("name", VERDICTS)
def test_each_verdict_is_what_its_author_found(name):
    assert VERDICTS[name] == [
        f"{each.copy} {each.verdict.component}/{each.verdict.side}/{each.verdict.cause}"
        for each in diagnosis(name).copies
    ]


@pytest.mark.parametrize("name", FILES)
def test_no_verdict_on_told_figures_is_sure(name):
    assert all(each.verdict.confidence <= 0.8 for each in diagnosis(name).copies)


def test_the_file_that_the_readme_shows_is_one():
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    shown = text.split("```toml\n")[1].split("```")[0]
    report = observations.told_report(observations.loads(shown.encode()))
    assert {step.stage for step, _ in report.entries} == {"tcp", "disk", "latency", "smb-copy"}
    assert all(name in text for name in FILES)
