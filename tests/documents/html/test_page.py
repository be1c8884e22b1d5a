"""The page is whole, pure and the same for every report there is."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck.analysis.finding import Diagnosis
from bottleneck.analysis.phrases import confidence_text, first_line
from bottleneck.documents import stages
from bottleneck.documents.document import Heat, HeatCell
from bottleneck.documents.html import HEAT_LEVELS, shaded_table
from bottleneck.documents.html import document as html_text
from bottleneck.documents.tcp_tables import windows_heat
from bottleneck.report.report import Report
from bottleneck.text.units import explorer_text, shown_as
from probes.core.records import Failed, Skipped
from tests import stored_reports
from tests.stored_reports import diagnose

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
FILES = [*sorted(DATA.glob("report-v1-*.json")), ROOT / "examples" / "server-disk-read.json"]


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def stored_report(request):
    return request.param


def test_a_page_is_well_formed_and_the_same_each_time(stored_report, page_of, tree):
    page = page_of(stored_report)
    assert page == page_of(stored_report)
    assert page.isascii()
    parsed = tree(page)
    assert parsed.strange == []
    assert parsed.open == []


def test_a_page_runs_and_fetches_nothing(stored_report, page_of, tree):
    parsed = tree(page_of(stored_report))
    for element, attributes in parsed.elements:
        assert element not in {"script", "link", "iframe", "img", "image", "object", "use"}
        for name, value in attributes.items():
            assert not name.startswith("on"), (element, name)
            assert name not in {"style", "src", "srcset"}, element
            if name.endswith("href"):
                assert (value or "").startswith("#"), (element, value)
            if name != "content":
                assert "javascript:" not in (value or "")
                assert not re.search(r"url\((?!#)", value or ""), (element, value)
    (style,) = [piece for element, piece in parsed.texts if element == "style"]
    assert "url(" not in style
    assert "@import" not in style


def test_the_policy_lets_in_the_one_style_sheet_alone(page_of, tree):
    page = page_of(FILES[0])
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = [
        each["content"]
        for each in tree(page).attributes_of("meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("style-src") == f"'sha256-{digest}'"
    assert set(rules.values()) == {"'none'"}
    assert "default-src" in rules
    # It has to stand before whatever it is to hold off.
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_headings_descend_and_every_place_has_its_own_name(stored_report, page_of, tree):
    parsed = tree(page_of(stored_report))
    levels = [int(name[1]) for name, _ in parsed.elements if re.fullmatch(r"h[1-6]", name)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(following <= level + 1 for level, following in zip(levels, levels[1:], strict=False))
    names = [each["id"] for _, each in parsed.elements if "id" in each]
    assert len(names) == len(set(names))
    for _, attributes in parsed.elements:
        for key in ("aria-labelledby", "aria-describedby"):
            assert set((attributes.get(key) or "").split()) <= set(names)
        if "href" in attributes:
            assert attributes["href"][1:] in names


def test_tables_have_captions_and_heads_with_a_scope(stored_report, page_of, tree):
    parsed = tree(page_of(stored_report))
    assert len(parsed.attributes_of("caption")) == len(parsed.attributes_of("table"))
    assert all(each.get("scope") in {"col", "row"} for each in parsed.attributes_of("th"))


def test_what_was_found_comes_first_and_nothing_is_kept_back(stored_report, page_of, tree):
    report = stored_reports.load(stored_report)
    diagnosis = diagnose(report)
    words = flat(tree(page_of(stored_report)).words)
    copy_first = diagnosis.main_copy
    assert copy_first is not None
    assert words.index(flat(first_line(diagnosis))) < words.index(flat(diagnosis.summary)[:900])
    assert flat(f"Confidence {confidence_text(copy_first.verdict)}") in words
    for copy in diagnosis.copies:
        for line in (*copy.evidence, *copy.advice):
            assert flat(line) in words
    for each in diagnosis.comparisons:
        assert flat(each.sentence)[:900] in words
    if copy_first.advice:
        first = words.index(flat(copy_first.advice[0]))
        assert words.index("Whattodo") < first < words.rindex("Limitsof")
    for each in (*stages.missing_lines(report), *report.notes):
        if each.isprintable():
            assert flat(each) in words


def flat(text: str) -> str:
    """Without spaces and marks of code, as elements begin and end anywhere."""
    return re.sub(r"[\s`]+", "", text)


def test_a_report_without_anything_still_has_a_page(tree):
    nothing = Report("failed", {}, "2026-11-20T23:45:00", 0.0, {}, None, None)
    for diagnosis in (diagnose(nothing), Diagnosis(None, (), "Nothing was measured.")):
        parsed = tree(html_text(nothing, diagnosis))
        assert parsed.strange == []
        assert "No agent ran on this host" in parsed.words
        assert "Partial results: the run failed" in parsed.words
        assert "0 MB/s" not in parsed.words


def test_steps_that_were_not_made_are_told_with_their_reason(tree):
    report = stored_reports.load(DATA / "report-v1-server-disk.json")
    outcomes = (Skipped("no time left"), Failed("the server went away"))
    entries = tuple((step, outcomes[n % 2]) for n, (step, _) in enumerate(report.entries))
    broken = replace(report, entries=entries, status="partial")
    parsed = tree(html_text(broken, diagnose(broken)))
    assert "no time left" in parsed.words
    assert "failed: the server went away" in parsed.words
    assert "MB/s" not in parsed.words


def test_a_report_with_thousands_of_steps_has_a_page_that_a_browser_can_open(tree):
    report = stored_reports.load(DATA / "report-v1-server-disk.json")
    (step, outcome), *_ = (each for each in report.entries if each[0].stage == "smb-copy")
    many = tuple(
        (replace(step, setting={**step.setting, "dialect": f"3.{n}"}), outcome) for n in range(1000)
    )
    large = replace(report, entries=many)
    page = html_text(large, diagnose(large))
    assert "more in the report" in tree(page).words
    assert len(page) < 2_000_000


def test_the_command_that_repeats_the_run_is_quoted_for_a_shell(tree):
    report = stored_reports.load(DATA / "report-v1-server-disk.json")
    tool = {**report.tool, "command": ["bottleneck", "diagnose", "//nas/my media; rm"]}
    report = replace(report, tool=tool)
    words = tree(html_text(report, diagnose(report))).words
    assert "bottleneck diagnose '//nas/my media; rm'" in words
    assert "bottleneck explain REPORT.json --format html" in words


def test_rates_read_in_the_style_that_is_on(tree):
    report = stored_reports.load(DATA / "report-v1-comparisons.json")
    with shown_as("bits"):
        words = tree(html_text(report, diagnose(report))).words
    body = words.replace(explorer_text(58e6), "")
    assert "464 Mbit/s" in body
    assert "MB/s" not in body


def test_a_map_is_a_table_with_a_colour_for_each_step_of_the_highest_rate():
    report = stored_reports.load(DATA / "report-v1-comparisons.json")
    (windows,) = (e for e in diagnose(report).comparisons if e.about == "windows")
    _, rows = shaded_table(windows_heat(windows))
    cells = [cell for _, each in rows for cell in each if cell is not None]
    assert len(cells) == len(windows.rows)
    assert {cell.step for cell in cells} <= set(range(HEAT_LEVELS))
    assert max(cell.step for cell in cells) == HEAT_LEVELS - 1
    assert [cell.framed for cell in cells].count(True) == 1
    page = html_text(report, diagnose(report))
    assert page.count('class="heat-4 framed"') >= 1


def test_a_large_map_is_bounded():
    cells = tuple(HeatCell(n // 100, n % 100, 1e8, "12.3 ms") for n in range(10_000))
    titles, rows = shaded_table(Heat(cells, "window", "streams", str, str))
    assert (len(titles), len(rows)) == (8, 16)
    assert shaded_table(Heat((), "window", "streams", str, str)) == ([], [])
