"""The documentation holds what the program has: verdicts, exit codes, links, keys."""

import re
from pathlib import Path

import pytest

from bottleneck import report_schema
from bottleneck.analysis.rules import CAUSES
from bottleneck.cli import exits

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "examples/README.md", *DOCS]
READING = (ROOT / "docs/reading-the-result.md").read_text()


def rows(text):
    """The first cells of a table's rows."""
    return [line.split(" | ")[0].strip("| ") for line in text.splitlines() if line.startswith("|")]


@pytest.mark.parametrize(
    ("component", "cause"), [(each, cause) for each in CAUSES for cause in sorted(CAUSES[each])]
)
def test_every_verdict_has_its_row_with_a_meaning_and_a_next_step(component, cause):
    told = [row for row in rows(READING) if re.search(rf"`{component}/(\S+/)?{cause}`", row)]
    assert told, f"{component}/{cause}"


def test_no_row_is_about_a_verdict_that_cannot_be():
    for row in rows(READING):
        for verdict in re.findall(r"`(\w+/[^`]*)`", row):
            component, *_, cause = verdict.split("/")
            assert cause in CAUSES[component], verdict


def test_every_exit_code_is_told():
    told = set(rows((ROOT / "docs/exit-codes.md").read_text()))
    codes = {code for name, code in vars(exits).items() if name.isupper() and name != "OF_REFUSAL"}
    assert {str(code) for code in codes} <= told
    assert {"0", "1", "2", "3"} <= told


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_inside_of_the_project_leads_somewhere(page):
    for link in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if not link.startswith("https://"):
            assert (page.parent / link).exists(), link


def test_every_page_is_found_from_the_readme():
    readme = (ROOT / "README.md").read_text()
    for page in DOCS:
        assert f"docs/{page.name}" in readme, page.name


def test_the_reports_keys_are_those_of_its_schema():
    schema = report_schema.schema()
    page = (ROOT / "docs/report.md").read_text()
    for key in schema["properties"]:
        assert f"`{key}" in page or key == "schema", key
    for key in schema["$defs"]["copy"]["properties"] if "copy" in schema["$defs"] else ():
        assert f"`{key}`" in page, key
