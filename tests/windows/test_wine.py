"""Under wine a Windows Python prints what this host's prints. Where wine, its linker or maven is
missing the test says so and is skipped: `pytest -ra` shows it."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.windows import bed
from tests.windows.test_platforms import COMMANDS, ROOT, said

OF_THIS_HOST = ("config", "history nowhere/there-is-none.sqlite")
"""Commands that name folders of the system, or have the system's words for an error."""


@pytest.mark.long
def test_under_wine_help_and_offline_commands_say_the_same(windows):
    stub = bed.windows_path(Path(__file__).with_name("stub.py"))
    command = [bed.WINE, str(windows.python), stub, "linux", "run", json.dumps(COMMANDS)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=windows.environment(COLUMNS="80"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    here = said("linux")
    there = dict(zip(map(" ".join, COMMANDS), json.loads(done.stdout), strict=True))
    for name, ending in there.items():
        if name not in OF_THIS_HOST:
            assert ending == here[name], name


@pytest.mark.long
@pytest.mark.parametrize("limits, told", [("9", "hello"), ("999", "WinError 87")])
def test_a_child_without_its_memory_limit_does_no_work(windows, limits, told):
    """Windows refuses limits of a kind that it does not know; the reason gets to the parent."""
    root = bed.windows_path(ROOT)
    code = f"import sys; sys.path[:0] = [{root!r}]; from probes.host.windows import process"
    code += f"; process.EXTENDED_LIMITS = {limits}; process.child()"
    done = subprocess.run(
        [bed.WINE, str(windows.python), "-c", code],
        cwd=ROOT,
        env=windows.environment(),
        input=b'["tests.windows.child_work", "say_hello", []]\n',
        capture_output=True,
        timeout=60,
    )
    assert told in done.stdout.decode(), done
    assert ("hello" in done.stdout.decode()) == (told == "hello")
