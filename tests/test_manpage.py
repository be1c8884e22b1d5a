"""The man page says what the commands are, and roff has nothing to say about it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bottleneck.cli.app import tree
from bottleneck.cli.command_line import commands_of, options_of

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/man/bottleneck.1"
REMEDY = "run: .venv/bin/python scripts/manpage.py"


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
    """As a terminal without bold shows it, in one line."""
    return " ".join(re.sub(".\b", "", rendered().stdout).split())


@pytest.mark.long
def test_the_page_is_the_one_that_the_commands_make() -> None:
    made = subprocess.run(
        [sys.executable, str(ROOT / "scripts/manpage.py"), "-"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert PAGE.read_text() == made.stdout, REMEDY


def test_roff_warns_of_nothing() -> None:
    done = rendered("-z")
    assert (done.returncode, done.stderr) == (0, "")


def test_every_command_and_every_option_is_in_it() -> None:
    shown = plain()
    for name, command in commands_of(tree()).items():
        assert f"bottleneck {name}" in shown
        for option in options_of(command):
            for flag in option.flags:
                assert re.search(rf"(?<![\w-]){flag}(?![\w-])", shown), (name, flag)


def test_what_is_copied_from_it_is_plain_ascii() -> None:
    assert PAGE.read_bytes().isascii()
    text = plain()
    assert r"\\host\share[\folder]" in text
    assert 'agent = "ssh://nas"' in text
    assert "source <(bottleneck --show-completion bash)" in text
    assert "~/.config/copy-bottleneck/config.toml" in text


def test_it_is_installed_where_man_looks() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    data = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert data == {"docs/man/bottleneck.1": "share/man/man1/bottleneck.1"}
    assert PAGE.is_file()
