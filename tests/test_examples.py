"""Examples of figures that a person supplies: each verdict is what its author found."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.documents.console import print_report
from bottleneck.estimate import observations, supplied_report
from bottleneck.estimate.template import TEMPLATE

EXAMPLES = Path(__file__).parent.parent / "examples"
GOLDEN = Path(__file__).parent / "documents" / "golden"
FILES = sorted(path.name for path in EXAMPLES.glob("*.toml"))


def report_of(name: str):
    return supplied_report.report_of(observations.loads((EXAMPLES / name).read_bytes()))


@pytest.mark.parametrize("name", FILES)
def test_the_output_is_the_one_that_was_looked_at(name):
    """Each verdict in it is what the author of the file found; `UPDATE_GOLDEN=1` writes it anew."""
    path = GOLDEN / f"told-{name.removesuffix('.toml')}-100.txt"
    output = io.StringIO()
    report = report_of(name)
    console = Console(file=output, width=100, highlight=False)
    print_report(report, diagnose(report), console, ("all",))
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(output.getvalue(), encoding="utf-8")
    assert output.getvalue() == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_no_verdict_on_supplied_figures_is_sure(name):
    assert all(each.verdict.confidence <= 0.8 for each in diagnose(report_of(name)).copies)


def test_the_template_is_an_example_and_the_readme_names_them_all():
    report = supplied_report.report_of(observations.loads(TEMPLATE.encode()))
    assert {step.stage for step, _ in report.entries} == {"tcp", "disk", "smb-copy"}
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(name in text for name in FILES)
