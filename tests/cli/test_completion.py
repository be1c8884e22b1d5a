"""Shell completion: the scripts, the candidates, and a real bash that has them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bottleneck.cli.app import tree
from bottleneck.cli.command_line import commands_of
from bottleneck.text.units import STYLES
from probes import STAGES
from probes.core.records import DIALECTS

ROOT = Path(__file__).parents[2]


def candidates(bottleneck, line, **options):
    words = line.split(" ")
    variables = {
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_BOTTLENECK_COMPLETE": "complete_bash",
    }
    done = bottleneck(environment={**variables, **options})
    assert done.code == 0
    assert done.err == ""
    return done.out.split()


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("bottleneck pro", ["probe"]),
        ("bottleneck probe ", list(STAGES)),
        ("bottleneck probe smb", [each for each in STAGES if each.startswith("smb")]),
        ("bottleneck diagnose //nas/media --units ", list(STYLES)),
        ("bottleneck diagnose --dialects ", list(DIALECTS)),
        ("bottleneck diagnose --dialects smb1,3.", ["smb1,3.0", "smb1,3.0.2", "smb1,3.1.1"]),
        ("bottleneck diagnose --thor", ["--thorough"]),
        ("bottleneck explain x.json --format h", ["html"]),
        ("bottleneck config di", ["diagnose"]),
    ],
)
def test_words_are_completed(bottleneck, line, expected):
    assert candidates(bottleneck, line) == expected


@pytest.mark.long
@pytest.mark.parametrize(
    "command", [("check",), ("compare", "a", "b"), ("doctor",), ("explain", "a")], ids=" ".join
)
def test_the_formats_that_are_completed_are_those_that_are_taken(bottleneck, command):
    offered = candidates(bottleneck, f"bottleneck {' '.join(command)} --format ")
    refused = bottleneck(*command, "--format", "none of them")
    assert refused.code in {64, 3}
    listed = refused.complaint.rpartition("must be one of ")[2]
    assert listed.split(", ") == offered


def test_every_command_is_completed(bottleneck):
    assert candidates(bottleneck, "bottleneck ") == list(commands_of(tree()))


def test_completing_reads_no_configuration(bottleneck):
    broken = {"BOTTLENECK_CONFIG": "/nonexistent"}
    assert candidates(bottleneck, "bottleneck diag", **broken) == ["diagnose"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("shell", "mark"),
    [
        ("bash", "complete -o default -F _bottleneck_completion bottleneck"),
        ("zsh", "compdef _bottleneck_completion bottleneck"),
        ("fish", "complete --command bottleneck"),
        ("powershell", "Register-ArgumentCompleter -Native -CommandName bottleneck"),
    ],
)
def test_the_script_of_each_shell_is_shown(bottleneck, shell, mark):
    done = bottleneck("--show-completion", shell)
    assert done.code == 0
    assert mark in done.out
    assert done.err == ""


def bash(script, home):
    """Returns the output of a bash without settings, this `bottleneck` being on its PATH."""
    program = home / "bin/bottleneck"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m bottleneck "$@"\n')
    program.chmod(0o755)
    variables = {"HOME": str(home), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**variables, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout


ASK = """
COMP_WORDS=(bottleneck diagnose //nas/media --unit) COMP_CWORD=3
_bottleneck_completion bottleneck
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.long
def test_a_bash_that_sources_the_script_completes(tmp_path):
    outcome = bash(
        f"source <(bottleneck --show-completion bash)\ncomplete -p bottleneck{ASK}", tmp_path
    )
    assert outcome.splitlines() == [
        "complete -o default -F _bottleneck_completion bottleneck",
        "--units",
    ]


PLACES = {
    "bash": ".local/share/bash-completion/completions/bottleneck",
    "zsh": ".local/share/copy-bottleneck/zsh/_bottleneck",
    "fish": ".config/fish/completions/bottleneck.fish",
}


def files(home):
    return [str(each.relative_to(home)) for each in home.rglob("*") if each.is_file()]


@pytest.mark.parametrize("shell", PLACES)
def test_it_is_installed_as_one_file_of_its_own_twice_if_wanted(bottleneck, tmp_path, shell):
    for name in (".bashrc", ".zshrc"):
        (tmp_path / name).write_text("theirs")
    home = {"HOME": str(tmp_path)}
    for _ in range(2):
        done = bottleneck("--install-completion", shell, environment=home)
        assert done.code == 0, done.err
        assert str(tmp_path / PLACES[shell]) in done.out
    assert (tmp_path / PLACES[shell]).read_text() == bottleneck("--show-completion", shell).out
    assert sorted(files(tmp_path)) == sorted([".bashrc", ".zshrc", PLACES[shell]])
    assert (tmp_path / ".bashrc").read_text() == (tmp_path / ".zshrc").read_text() == "theirs"
    assert ("fpath+=" in done.out) == (shell == "zsh")


@pytest.mark.parametrize("plant", ["file", "link"])
def test_a_file_that_is_not_its_own_is_not_replaced(bottleneck, tmp_path, plant):
    path, theirs = tmp_path / PLACES["bash"], tmp_path / "theirs"
    path.parent.mkdir(parents=True)
    theirs.write_text("" if plant == "link" else "complete -F _theirs bottleneck")
    path.symlink_to(theirs) if plant == "link" else theirs.rename(path)
    text = path.read_text()
    done = bottleneck("--install-completion", "bash", environment={"HOME": str(tmp_path)})
    assert done.code == 77
    assert f"{path}: " in done.complaint and "use --show-completion" in done.complaint
    assert path.read_text() == text and path.is_symlink() == (plant == "link")


@pytest.mark.parametrize("option", ["--show-completion", "--install-completion"])
def test_another_shell_is_a_usage_error(bottleneck, option):
    done = bottleneck(option, "tcsh")
    assert done.code == 64
    assert "bash, zsh, fish" in done.complaint


def test_a_home_without_the_right_to_write_is_told(bottleneck, tmp_path):
    (tmp_path / ".local").touch()
    done = bottleneck("--install-completion", "bash", environment={"HOME": str(tmp_path)})
    assert done.code == 77
    assert ".local/share" in done.complaint
