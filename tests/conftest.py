"""What many tests start: the program itself, and a real Samba of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from probes.drivers.samba import private_samba

PASSWORD = "correct horse 47 %&'\"$"
"""Characters that a shell, a URL or a file format would trip over."""


@dataclass(frozen=True)
class Ended:
    """How a run of the program ended."""

    code: int
    out: str
    err: str

    @property
    def complaint(self):
        """The one line on stderr that is ours."""
        lines = [line for line in self.err.splitlines() if line.startswith("bottleneck: ")]
        assert len(lines) == 1, self.err
        return lines[0]


def run_bottleneck(*arguments, password=None, seconds=120, cwd=None, environment=None):
    """Runs the program as a user's shell would, with nobody at a terminal."""
    environment = {**os.environ, **(environment or {})}
    environment.pop("BOTTLENECK_PASSWORD", None)
    environment["PYTHONPATH"] = str(Path(__file__).parents[1])
    if password is not None:
        environment["BOTTLENECK_PASSWORD"] = password
    done = subprocess.run(
        [sys.executable, "-m", "bottleneck", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        env=environment,
        cwd=cwd,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def bottleneck():
    """Runs the program."""
    return run_bottleneck


@pytest.fixture(scope="session")
def samba(tmp_path_factory):
    """A Samba with one share, SMB1 to 3.1.1, for all tests that change nothing about it."""
    shared = tmp_path_factory.mktemp("shared")
    with private_samba(str(shared), password=PASSWORD) as server:
        yield server, shared


@pytest.fixture
def auth_file(samba, tmp_path):
    """smbclient's file for that Samba."""
    server, _ = samba
    path = tmp_path / "auth"
    path.touch(0o600)
    path.write_text(f"username = {server.username}\npassword = {server.password}\n")
    return path


def target_of(server, share=None):
    """TARGET of a private Samba."""
    return f"//{server.host}:{server.port}/{share or server.share}"


@pytest.fixture
def target(samba):
    """TARGET of the Samba that all tests share."""
    return target_of(samba[0])


@pytest.fixture
def load_report():
    """Reads a report as an outsider would: as JSON."""
    return lambda path: json.loads(Path(path).read_text())
