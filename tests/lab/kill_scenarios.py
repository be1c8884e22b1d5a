"""The commands that are killed, the folders that they write to, and the next start after each."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from probes.programs.samba import Samba, private_samba

ROOT = Path(__file__).resolve().parents[2]
FREEZER = Path("/sys/fs/cgroup/freezer")
"""Holds all processes of a run while they are killed: none can act on another's end."""
NEXT_SECONDS = 60.0
PASSWORD = "correct-horse-47"  # noqa: S105 - of a server that this makes for itself


FILES = 10_000
PER_FOLDER = 100
BIN = ".recycle"
RECYCLE = (
    "vfs objects = recycle",
    f"recycle:repository = {BIN}",
    "recycle:keeptree = yes",
    "recycle:versions = yes",
)
CANARIES = ("photos", "bottleneck-notes", "bottleneck-0123456789abcdef.old")
"""Trees of somebody else's in each place; two look like what a run makes."""


def plant(places: Sequence[Path], files: int) -> None:
    for number in range(files):
        place = places[number % len(places)]
        tree = place / CANARIES[number // len(places) % len(CANARIES)]
        folder = tree / str(number // (PER_FOLDER * len(places) * len(CANARIES)))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.bin").write_bytes(f"canary {number}\n".encode() * (number % 40))


def digest(places: Sequence[Path]) -> tuple[int, str]:
    """Returns how many there are, and the hash of all names, modes, times and contents."""
    hashed, count = hashlib.sha256(), 0
    for place in places:
        for name in CANARIES:
            for parent, folders, names in os.walk(place / name):
                folders.sort()
                for each in sorted(names):
                    path = Path(parent, each)
                    facts = path.lstat()
                    hashed.update(f"{path} {facts.st_mode} {facts.st_mtime_ns}\n".encode())
                    hashed.update(path.read_bytes())
                    count += 1
    return count, hashed.hexdigest()


@dataclass
class Place:
    """The folders that a run may write to, and the server, which may be another after a kill."""

    root: Path
    stack: contextlib.ExitStack
    options: tuple[str, ...] = ()
    """Lines of the share's part of smb.conf."""
    server: Samba = field(init=False)

    def __post_init__(self) -> None:
        names = ("client", "share", "tmp", "reports")
        self.folders = tuple(self.root / name for name in names)
        """The last is where the report goes, which may be there; `tmp` is the run's TMPDIR."""
        self.client, self.share, self.temporary, self.reports = self.folders
        for each in self.folders:
            each.mkdir()
        self.serve()

    def serve(self) -> None:
        """Starts a server for the share; one that was there is gone."""
        self.stack.close()
        server = private_samba(self.share, password=PASSWORD, share_options=self.options)
        self.server = self.stack.enter_context(server)

    def leftovers(self) -> list[str]:
        paths = []
        for folder in self.folders:
            for parent, folders, files in os.walk(folder):
                if parent == str(folder):
                    folders[:] = [each for each in folders if each not in CANARIES]
                paths += [str(Path(parent, each)) for each in (*folders, *files)]
        own_paths = {str(self.reports / "report.json"), str(self.share / BIN)}
        return sorted(each for each in paths if each not in own_paths)


@dataclass(frozen=True)
class Scenario:
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
        lambda place: ["probe", "disk", "--folder", str(place.client), "--size", "64MiB"],
        weight=4,
    ),
    Scenario(
        "zones",
        ("coordinator", "agent", "everything"),
        lambda place: ["probe", "disk", "--folder", str(place.client), "--size", "64MiB"],
        budget_seconds=45,
    ),
    Scenario(
        "share",
        ("coordinator", "agent", "server-agent", "server", "session", "everything"),
        lambda place: [
            *f"diagnose {_share(place)} --agent exec: --user {place.server.username}".split(),
            *f"--folder {place.client} --server-folder {place.share} --size 32MiB".split(),
        ],
        budget_seconds=7,
        weight=10,
    ),
)


def _quietly(place: Place) -> dict[str, Any]:
    variables = {"TMPDIR": str(place.temporary), "PYTHONPATH": str(ROOT), "HOME": str(place.root)}
    return {
        **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL),
        "env": {**os.environ, **variables, "BOTTLENECK_PASSWORD": PASSWORD},
    }


def start_command(scenario: Scenario, place: Place) -> subprocess.Popen[bytes]:
    """The scenario's command, in a session and a freezer's group of its own."""
    options = ["--budget", str(scenario.budget_seconds), "--yes", "--quiet"]
    options += ["--json", str(place.reports / "report.json")]
    words = [sys.executable, "-m", "bottleneck", *scenario.arguments(place), *options]
    group().mkdir(exist_ok=True)
    joining = ["sh", "-c", f'echo $$ > {group()}/cgroup.procs && exec "$@"', "sh"]
    return subprocess.Popen([*joining, *words], start_new_session=True, **_quietly(place))


def group() -> Path:
    """The freezer's group that holds a run of this trial, whatever it starts."""
    return FREEZER / f"bottleneck-kills-{os.getpid()}"


def next_start(scenario: Scenario, place: Place, how: str) -> None:
    """Does what a person does next: `cleanup` of the same places, or the same again."""
    words = scenario.arguments(place)
    if how == "cleanup":
        # a probe's folder stands in an option, a diagnosis's target in front
        words = words[2:] if words[0] == "probe" else words[1:]
        index = words.index("--size")
        words = ["cleanup", *words[:index], *words[index + 2 :], "--older-than", "0"]
    else:
        words += ["--budget", str(scenario.budget_seconds)]
    words = [sys.executable, "-m", "bottleneck", *words, "--yes"]
    subprocess.run(words, timeout=NEXT_SECONDS, check=False, **_quietly(place))


@contextlib.contextmanager
def place(has_bin: bool = False) -> Iterator[Place]:
    """Folders on a disk, and a server for one of them; has_bin: with a recycle bin."""
    root = Path(mkdtemp(prefix="bottleneck-kills-", dir="/var/tmp"))  # noqa: S108 - a disk
    try:
        with contextlib.ExitStack() as server:
            yield Place(root, server, RECYCLE if has_bin else ())
    finally:
        shutil.rmtree(root)
        with contextlib.suppress(FileNotFoundError):
            group().rmdir()
