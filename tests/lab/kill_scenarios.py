"""The commands that are killed, the folders that they write to, and the next start after each."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

import canary

from probes.drivers.samba import Samba, private_samba

ROOT = Path(__file__).resolve().parents[2]
FREEZER = Path("/sys/fs/cgroup/freezer")
"""Holds all processes of a run while they are killed: none can act on another's end."""
NEXT_SECONDS = 60.0
PASSWORD = "correct-horse-47"  # noqa: S105 - of a server that this makes for itself


@dataclass
class Place:
    """The folders that a run may write to, and the server, which may be another after a kill."""

    root: Path
    stack: contextlib.ExitStack
    server: Samba = field(init=False)

    def __post_init__(self) -> None:
        for each in self.folders:
            each.mkdir()
        self.serve()

    def serve(self) -> None:
        """Starts a server for the share; one that was there is gone."""
        self.stack.close()
        self.server = self.stack.enter_context(private_samba(str(self.share), password=PASSWORD))

    @property
    def folders(self) -> tuple[Path, ...]:
        """All of them."""
        return self.client, self.share, self.temporary, self.reports

    @property
    def client(self) -> Path:
        """The client's folder."""
        return self.root / "client"

    @property
    def share(self) -> Path:
        """The folder that the server serves."""
        return self.root / "share"

    @property
    def temporary(self) -> Path:
        """TMPDIR of the run."""
        return self.root / "tmp"

    @property
    def reports(self) -> Path:
        """Where the report goes; the report itself may be there."""
        return self.root / "reports"

    def left(self) -> list[str]:
        """What lies in any of them."""
        found = []
        for folder in self.folders:
            for parent, folders, files in os.walk(folder):
                if parent == str(folder):
                    folders[:] = [each for each in folders if each not in canary.NAMES]
                found += [str(Path(parent, each)) for each in (*folders, *files)]
        return sorted(each for each in found if each != str(self.reports / "report.json"))


@dataclass(frozen=True)
class Scenario:
    """One command that is killed."""

    name: str
    victims: tuple[str, ...]
    arguments: Callable[[Place], list[str]]
    budget_seconds: int = 5
    weight: int = 1
    """Its part of the kills."""


def _share(place: Place) -> str:
    return f"//127.0.0.1:{place.server.port}/{place.server.share}"


SCENARIOS = (
    Scenario(
        "disk",
        ("coordinator", "agent", "everything"),
        lambda at: ["probe", "disk", "--folder", str(at.client), "--size", "64MiB"],
        weight=4,
    ),
    Scenario(
        "zones",
        ("coordinator", "agent", "everything"),
        lambda at: ["probe", "disk", "--folder", str(at.client), "--size", "64MiB"],
        budget_seconds=45,
    ),
    Scenario(
        "share",
        ("coordinator", "agent", "server-agent", "server", "session", "everything"),
        lambda at: [
            *("diagnose", _share(at), "--user", at.server.username, "--folder", str(at.client)),
            *("--agent", "exec:", "--server-folder", str(at.share), "--size", "32MiB"),
        ],
        budget_seconds=7,
        weight=10,
    ),
    Scenario(
        "folder",
        ("coordinator", "agent", "everything"),
        lambda at: ["diagnose", str(at.share), "--folder", str(at.client), "--size", "32MiB"],
        weight=5,
    ),
)


def _environment(place: Place) -> dict[str, str]:
    own = {"TMPDIR": str(place.temporary), "PYTHONPATH": str(ROOT), "HOME": str(place.root)}
    return {**os.environ, **own, "BOTTLENECK_PASSWORD": PASSWORD}


def started(scenario: Scenario, place: Place) -> subprocess.Popen[bytes]:
    """The scenario's command, in a session and a freezer's group of its own."""
    options = ["--budget", str(scenario.budget_seconds), "--yes", "--quiet"]
    options += ["--json", str(place.reports / "report.json")]
    words = [sys.executable, "-m", "bottleneck", *scenario.arguments(place), *options]
    held = group()
    held.mkdir(exist_ok=True)
    return subprocess.Popen(
        ["sh", "-c", f'echo $$ > {held}/cgroup.procs && exec "$@"', "sh", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_environment(place),
        start_new_session=True,
    )


def group() -> Path:
    """The freezer's group that holds a run of this trial, whatever it starts."""
    return FREEZER / f"bottleneck-kills-{os.getpid()}"


def next_start(scenario: Scenario, place: Place, how: str) -> None:
    """What a person does next: `cleanup` of the same places, or the same again."""
    words = scenario.arguments(place)
    if how == "cleanup":
        # a probe's folder stands in an option, a diagnosis's target in front
        words = words[2:] if words[0] == "probe" else words[1:]
        at = words.index("--size")
        words = ["cleanup", *words[:at], *words[at + 2 :], "--older-than", "0"]
    else:
        words += ["--budget", str(scenario.budget_seconds)]
    subprocess.run(
        [sys.executable, "-m", "bottleneck", *words, "--yes"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_environment(place),
        timeout=NEXT_SECONDS,
        check=False,
    )


@contextlib.contextmanager
def place() -> Iterator[Place]:
    """Folders on a disk, and a server for one of them."""
    root = Path(mkdtemp(prefix="bottleneck-kills-", dir="/var/tmp"))  # noqa: S108 - a disk
    try:
        with contextlib.ExitStack() as server:
            yield Place(root, server)
    finally:
        shutil.rmtree(root)
        with contextlib.suppress(FileNotFoundError):
            group().rmdir()
