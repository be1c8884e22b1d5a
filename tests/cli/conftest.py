"""Starting the program beside the test, and looking at what it leaves behind."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.living import GENEROUS_SECONDS, below, ended, until

ROOT = Path(__file__).parents[2]


def wait_for(process, pattern):
    """Reads progress from stderr until a line matches; the lines read."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        if re.search(pattern, line):
            return lines
    raise AssertionError(f"no line like {pattern}: {''.join(lines)}")


def finish(process, seconds=GENEROUS_SECONDS):
    """Waits for the end; returns stdout and our lines of stderr; a traceback fails."""
    out, err = process.communicate(timeout=seconds)
    assert "Traceback" not in err, err
    return out, [line for line in err.splitlines() if line.startswith("bottleneck: ")]


def paths_in(*folders):
    # os.walk passes over what is removed while it looks.
    return sorted(
        str(Path(parent, name))
        for each in folders
        for parent, *kinds in os.walk(each)
        for names in kinds
        for name in names
    )


def all_removed(*folders):
    """Whether nothing is left in the folders, once the server has done its part."""
    return until(lambda: paths_in(*folders) == [])


@pytest.fixture
def helpers():
    """The functions above, and those of tests/living.py."""
    return SimpleNamespace(
        wait_for=wait_for,
        finish=finish,
        until=until,
        paths_in=paths_in,
        all_removed=all_removed,
        descendants=below,
        all_end=ended,
    )


@pytest.fixture
def begin():
    """Starts the program with arguments; killed when the test ends."""
    started = []

    def go(*arguments, environment=None, prefix=(), code=None, **options):
        program = ["-c", code] if code else ["-m", "bottleneck"]
        variables = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
        process = subprocess.Popen(
            [*prefix, sys.executable, *program, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=variables,
            **options,
        )
        started.append(process)
        return process

    yield go
    for process in started:
        process.kill()
        process.communicate()
