"""The program starts where POSIX's or Linux's own modules are missing, and its offline commands say
the same there. What is missing is taken from a Python of this host (stub.py)."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bottleneck.cli.app import tree
from bottleneck.cli.command_line import commands_of

ROOT = Path(__file__).resolve().parents[2]
REPORT = "examples/server-disk-read.json"
PLATFORMS = ("win32", "darwin")
POSIX_OWN = {
    "win32": {"bottleneck.run.demo.hosts", "bottleneck.run.demo.network", "probes.system.forked"},
    "darwin": set(),
}
"""Modules that nobody imports there."""
OFFLINE = (
    ("schema",),
    ("config",),
    ("config", "diagnose"),
    ("estimate", "--link", "1Gbit/s"),
    ("explain", REPORT),
    ("explain", REPORT, "--format", "html"),
    ("explain", REPORT, "--format", "ticket"),
    ("explain", REPORT, "--redact", "--format", "json"),
    ("compare", REPORT, REPORT),
    ("check", "--report", REPORT, "--format", "nagios"),
)
NAMES = sorted(commands_of(tree()))
COMMANDS = [*([name, "--help"] for name in NAMES), *map(list, OFFLINE)]


def stubbed(platform, what, *arguments):
    command = [sys.executable, "tests/windows/stub.py", platform, what, *arguments]
    environment = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=120)


def endings(commands, printed):
    """Each command's, as stub.py printed them. The age of a report grows from run to run."""
    text = re.sub(rb"\d+ h ago", b"hours ago", printed)
    return dict(zip(map(" ".join, commands), json.loads(text), strict=True))


def said(platform, commands=COMMANDS):
    done = stubbed(platform, "run", json.dumps(commands))
    assert done.returncode == 0, done.stderr
    return endings(commands, done.stdout)


@pytest.fixture(scope="module")
def here():
    return said("linux")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_module_that_a_command_may_import_imports_there(platform):
    lines = stubbed(platform, "import").stdout.decode().splitlines()
    assert {line.partition(":")[0] for line in lines} == POSIX_OWN[platform], lines


@pytest.mark.long
@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_import_that_fails_there_is_seen(platform):
    """A module that uses Linux's own calls is named."""
    text = stubbed(platform, "import", "tests.windows.linux_alone").stdout.decode()
    assert text.startswith("tests.windows.linux_alone: AttributeError: module 'os' has no"), text


@pytest.mark.long
@pytest.mark.parametrize("platform", PLATFORMS)
def test_help_and_offline_commands_say_the_same_there(platform, here):
    there = said(platform)
    assert all(here[f"{name} --help"][0] == 0 for name in NAMES)
    for command, ending in there.items():
        assert ending == here[command], command
