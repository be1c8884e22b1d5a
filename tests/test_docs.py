"""The documentation holds what the program has: pages, pictures, and the man page."""

import importlib.util
import re
import shutil
import struct
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bottleneck.analysis.rules.registry import CAUSES
from bottleneck.cli import exits
from bottleneck.cli.app import tree
from bottleneck.cli.command_line import commands_of, options_of
from bottleneck.records import schema as report_schema

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
NAMED = ("README.md", "CONTRIBUTING.md", "examples/README.md", "examples/windows.md")
PAGES = [*(ROOT / each for each in NAMED), *DOCS]
EXPLAIN = commands_of(tree())["explain"]
READING = (ROOT / "docs/reading-the-result.md").read_text()


def rows(text):
    return [line.split(" | ")[0].strip("| ") for line in text.splitlines() if line.startswith("|")]


def test_what_the_screen_says_in_troubleshooting_is_what_the_program_says():
    sources = [*(ROOT / "bottleneck").rglob("*.py"), *(ROOT / "probes").rglob("*.py")]
    said = "\n".join(each.read_text() for each in sources)
    lines = [row for row in rows((ROOT / "docs/troubleshooting.md").read_text()) if "`" in row]
    words = [each for row in lines for each in re.findall(r"`([^`]+)`", row) if "sudo" not in row]
    assert len(words) > 12
    assert [each for each in words if each not in said] == []


@pytest.mark.parametrize(
    ("component", "cause"), [(each, cause) for each in CAUSES for cause in sorted(CAUSES[each])]
)
def test_every_verdict_has_its_row_with_a_meaning_and_a_next_step(component, cause):
    matches = [row for row in rows(READING) if re.search(rf"`{component}/(\S+/)?{cause}`", row)]
    assert matches, f"{component}/{cause}"


def test_no_row_is_about_a_verdict_that_cannot_be():
    for row in rows(READING):
        for verdict in re.findall(r"`(\w+/[^`]*)`", row):
            component, *_, cause = verdict.split("/")
            assert cause in CAUSES[component], verdict


def test_every_section_of_the_answer_has_its_row():
    table = READING.partition("| section |")[2].partition("\n\n")[0]
    sections = [row.strip("`") for row in rows(table) if row.startswith("`")]
    (section,) = [each for each in options_of(EXPLAIN) if each.key == "section"]
    assert sections and not [each for each in sections if each not in section.help]


def test_every_exit_code_is_told():
    documented = set(rows((ROOT / "docs/check.md").read_text()))
    codes = {code for name, code in vars(exits).items() if name.isupper() and isinstance(code, int)}
    assert {str(code) for code in codes} <= documented
    assert {"0", "1", "2", "3"} <= documented


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


# -- the man page, and what roff has to say about it ---------------------------------------------

PAGE = ROOT / "docs/man/bottleneck.1"
MAN_REMEDY = "run: .venv/bin/python scripts/manpage.py"


def rendered(*options: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("groff") is None:
        pytest.fail("groff is not installed: run ./test, which installs it")
    return subprocess.run(
        ["groff", "-man", "-ww", "-Tascii", "-P-c", "-rLL=120n", *options, str(PAGE)],
        capture_output=True,
        text=True,
        check=False,
    )


def plain() -> str:
    """Returns the page as a terminal without bold shows it, in one line."""
    return " ".join(re.sub(".\b", "", rendered().stdout).split())


def test_the_page_is_the_one_that_the_commands_make():
    outcome = subprocess.run(
        [sys.executable, str(ROOT / "scripts/manpage.py"), "-"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert PAGE.read_text() == outcome.stdout, MAN_REMEDY


def test_roff_warns_of_nothing():
    done = rendered("-z")
    assert (done.returncode, done.stderr) == (0, "")


def test_every_command_and_every_option_is_in_it():
    page = plain()
    for name, command in commands_of(tree()).items():
        assert f"bottleneck {name}" in page
        for option in options_of(command):
            for flag in option.flags:
                assert re.search(rf"(?<![\w-]){flag}(?![\w-])", page), (name, flag)


def test_what_is_copied_from_it_is_plain_ascii():
    assert PAGE.read_bytes().isascii()
    text = plain()
    assert r"\\host\share[\folder]" in text
    assert 'agent = "ssh://nas"' in text
    assert "source <(bottleneck --show-completion bash)" in text
    assert "~/.config/copy-bottleneck/config.toml" in text


def test_it_is_installed_where_man_looks():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    data = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert data == {"docs/man/bottleneck.1": "share/man/man1/bottleneck.1"}
    assert PAGE.is_file()


# -- the pictures, of a real run as the program shows it today ------------------------------------

PICTURES = ROOT / "docs/pictures"
PICTURE_REMEDY = "made anew by .venv/bin/python scripts/pictures.py"


def script():
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "scripts/pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_terminals_picture_is_what_the_program_prints():
    assert (PICTURES / "terminal.svg").read_text() == script().terminal_svg(script().EXAMPLE), (
        f"docs/pictures/terminal.svg is {PICTURE_REMEDY}"
    )


def test_the_course_of_a_copy_is_what_the_page_draws():
    drawing = (PICTURES / "time.svg").read_text()
    assert drawing == script().time_svg(), f"docs/pictures/time.svg is {PICTURE_REMEDY}"
    text = " ".join(ElementTree.fromstring(drawing).itertext())
    assert "who had work" in text and "server disk" in text
    assert "url(" not in drawing and "@font-face" not in drawing and "href" not in drawing


def test_the_terminals_picture_asks_for_nothing_outside_and_ends_with_a_whole_section():
    drawing = (PICTURES / "terminal.svg").read_text()
    assert "url(http" not in drawing and "@font-face" not in drawing and "href" not in drawing
    text = "".join(ElementTree.fromstring(drawing).itertext())
    assert "the\u00a0server's\u00a0disk\u00a0reads" in text


def test_the_pages_picture_is_one_of_the_size_that_the_script_makes():
    content = (PICTURES / "page.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert struct.unpack(">II", content[16:24]) == (script().WIDTH, script().HEIGHT)


def test_the_cores_for_faster_links_follow_from_the_measured_costs():
    results = (ROOT / "benchmarks/RESULTS.md").read_text()
    cell = re.compile(
        r"^(\S+)\.(\S+)\.(read|write) +([\d.]+) ([MG])B/s .* ([\d.]+)   [\d.]+$", re.M
    )
    measured = {
        f"SMB{dialect} {'' if how == 'plain' else how + ' '}{verb}": (
            float(rate) / (1000 if unit == "M" else 1),
            float(cost),
        )
        for name, how, verb, rate, unit, cost in cell.findall(results)
        for dialect in ["1" if name == "nt1" else f" {name}"]
    }
    table = re.findall(r"^\| (SMB.*?) \|(.*)\|$", (ROOT / "docs/scale.md").read_text(), re.M)
    assert len(table) == 10
    for copy, cells in table:
        rate, cost = measured[copy]
        cores = [f"{cost * gigabits * 0.9415 / 8:.1f}" for gigabits in (10, 25, 100)]
        expected = [f"{cost:.2f}", f"{1 / cost:.2f} GB/s", f"{rate:.2f} GB/s", *cores]
        assert [each.strip() for each in cells.split("|")] == expected, copy
