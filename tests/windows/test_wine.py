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
