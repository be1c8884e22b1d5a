#!/usr/bin/env python3
"""Replace a run's folder and files as another user of the share could; check what is touched.

Usage: python tests/hostile/swaps.py [--cases N] [--seed S]

A real Samba, and a run's own steps. At one of them the folder, a file in it or the folder around it
is renamed, and a link, a hard link, another folder or another file takes its place. The victim's
folder has to keep each name, inode and byte; and a file of the swapper's own, which a server may
delete by the name that he gave it, each byte. Told: the run said that something was replaced.
Exit code: 0 nothing of anybody else's was touched; 1 something was; 69 this machine cannot hold it.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402

from probes.core.records import Endpoint  # noqa: E402
from probes.core.stage import Refused, Unavailable  # noqa: E402
from probes.files import served_file  # noqa: E402
from probes.files.leftovers import OnShare  # noqa: E402
from probes.programs.samba import Samba, find_smbd, private_samba  # noqa: E402
from probes.smb import leftovers, pipe2, run_folder  # noqa: E402
from probes.smb.frames import SmbError  # noqa: E402 - behind sys.path
from probes.stages import small_files, smb_copy  # noqa: E402

UNTOUCHED, TOUCHED, NO_TRIAL = 0, 1, 69
SEED, MIB = "5eed", 1 << 20
RUN_ERRORS = (Refused, Unavailable, SmbError, OSError, ValueError)
OPEN = ("directory mask = 0777", "create mask = 0666", "force directory mode = 0777")
SERVERS = {
    "plain": (),
    "inherit owner": ("inherit owner = yes",),
    "fruit": ("vfs objects = fruit streams_xattr",),
    "no lasting identity": (),
}
"""Lines of the share's part of smb.conf; of the last one the client is told new identities."""
DIALECTS = ("smb1", "2.1", "3.1.1")
STEPS = ("created", "fill", "filled", "push", "pull", "small", "close", "sweep", "cleanup")
WAIT_SECONDS = 4.0


@dataclass(frozen=True)
class Case:
    swap: str
    step: str
    dialect: str = "3.1.1"
    server: str = "plain"
    agent: bool = False
    """Whether the server's agent works on the run's files too."""


@dataclass
class Place:
    """The folder in which a run makes its own, and a victim's beside it."""

    share: Path

    def __post_init__(self) -> None:
        self.around, self.victim = self.share / "around", self.share / "alice"
        self.papers, self.mallory = self.victim / "papers", self.share / "mallory"
        for folder in (self.around, self.victim, self.papers, self.mallory):
            folder.mkdir()
        for folder in (self.around, self.mallory):
            folder.chmod(0o777)
        for name in ("thesis.doc", "source", "papers/source", "papers/pushed-0123456789abcdef"):
            (self.victim / name).write_bytes(random.randbytes(9500))
        (self.mallory / "own").write_bytes(random.randbytes(9500))
        (self.victim / "swapper").hardlink_to(self.mallory / "own")
        self.before = self.state()

    @property
    def run_folder(self) -> Path:
        return next(self.around.glob("bottleneck-*"))

    @property
    def file(self) -> Path:
        """The run's file that was made last."""
        files = [*self.run_folder.iterdir()]
        return max(files, key=lambda path: path.lstat().st_ctime_ns)

    def give_back(self) -> None:
        """Puts back the victim's folder, which has the run's name: that is the swapper's doing."""
        for each in self.around.glob("bottleneck-*"):
            with suppress(FileNotFoundError):  # it is just being removed
                if each.lstat().st_ino == self.before["papers"][0]:
                    each.rename(self.papers)

    def state(self) -> dict[str, tuple[int, int, str]]:
        """Returns inode, size and hash of each of the victim's files."""

        def look(path: Path) -> tuple[int, int, str]:
            facts, content = path.stat(), path.read_bytes() if path.is_file() else b""
            return facts.st_ino, len(content), hashlib.sha256(content).hexdigest()

        return {str(each.relative_to(self.victim)): look(each) for each in self.victim.rglob("*")}


def instead_of(what: str, make: Callable[[Path, Place], None]) -> Callable[[Place], None]:
    """Moves the run's folder or its file away, and makes something else in its place."""

    def swap(place: Place) -> None:
        path = getattr(place, what)
        path.rename(place.mallory / path.name)
        make(path, place)

    return swap


def folder_of_links(path: Path, place: Place) -> None:
    path.mkdir(0o777)
    for file in (place.mallory / path.name).iterdir():
        (path / file.name).symlink_to(THESIS)


def parent_is_link(place: Place) -> None:
    place.around.rename(place.share / "moved")
    place.around.symlink_to("alice")


THESIS = "../../alice/thesis.doc"
SWAPS: dict[str, Callable[[Place], None]] = {
    "folder with links": instead_of("run_folder", folder_of_links),
    "folder is a link": instead_of("run_folder", lambda path, _: path.symlink_to("../alice")),
    "folder is another's": instead_of("run_folder", lambda path, place: place.papers.rename(path)),
    "file is a link": instead_of("file", lambda file, _: file.symlink_to(THESIS)),
    "file is a hard link": instead_of(
        "file", lambda file, place: file.hardlink_to(place.victim / "thesis.doc")
    ),
    "file is another": instead_of(
        "file", lambda file, place: file.hardlink_to(place.mallory / "own")
    ),
    "parent is a link": parent_is_link,
}


def cases() -> list[Case]:
    """Every swap at every step; dialect, server and agent change from case to case."""
    kinds = itertools.cycle(itertools.product(DIALECTS, SERVERS, (False, True)))
    plain = [Case(swap, step) for swap, step in itertools.product(SWAPS, STEPS)]
    others = [
        replace(case, dialect=dialect, server=server, agent=agent)
        for case, (dialect, server, agent) in zip(plain * 2, kinds, strict=False)
    ]
    return [*plain, *others]


class Attempt:
    def __init__(self, case: Case, place: Place, peer: Endpoint, server: int) -> None:
        """server: process id of smbd."""
        self.case, self.place, self.peer, self.server = case, place, peer, server
        self.swapped = False
        self.errors: list[str] = []

    def swap(self) -> None:
        with suppress(StopIteration, ValueError, FileNotFoundError):
            SWAPS[self.case.swap](self.place)
            self.swapped = True

    def swap_at(self, step: str) -> None:
        if self.case.step == step:
            self.swap()

    @contextmanager
    def during(self, step: str, pattern: str, size: int) -> Iterator[None]:
        """Swaps as soon as a file of that name has grown to a size."""

        def work() -> None:
            until = time.monotonic() + WAIT_SECONDS
            while time.monotonic() < until and not self.swapped:
                for path in self.place.around.glob(f"bottleneck-*/{pattern}"):
                    with suppress(FileNotFoundError):
                        if not self.swapped and path.stat().st_size >= size:
                            self.swap()

        thread = threading.Thread(target=work, daemon=True)
        if self.case.step == step:
            thread.start()
        yield
        if self.case.step == step:
            thread.join()

    def stage(self, module: ModuleType, setting: Any, peer: Endpoint) -> None:
        try:
            deque(module.initiate(setting, replace(peer, path="")), maxlen=0)
        except RUN_ERRORS as error:
            self.errors.append(str(error))
        if self.case.agent:
            self.agent(peer)

    def agent(self, peer: Endpoint) -> None:
        """Does what the server's agent does with the file that pulls read, and one of a push."""
        path = f"{self.place.share.parent}/" + peer.folder.replace("\\", "/")
        for name in (served_file.source_name(path), *os.listdir(self.place.mallory)):
            with suppress(*RUN_ERRORS):
                served_file.set_cache(path, "uncached", 0, name)
            with suppress(*RUN_ERRORS):
                served_file.resize(path, name, 3 * MIB, SEED, 2.0)

    def run(self, setting: run_folder.Setting) -> None:
        dialect = setting.dialect
        usual = {"dialect": dialect, "end": "memory", "seconds": 15.0, "seed": SEED}
        fill = smb_copy.Setting("push.cached", size_bytes=2 * MIB, fill_source=True, **usual)
        push = smb_copy.Setting("push.cached", size_bytes=24 * MIB, **usual)
        pull = smb_copy.Setting("pull.cached", size_bytes=MIB, **usual)
        small = small_files.Setting("push", 60, 16384, dialect, 2.0, SEED)
        with run_folder.hold(setting, self.peer) as endpoint:
            self.swap_at("created")
            with self.during("fill", "source-*", MIB):
                self.stage(smb_copy, fill, endpoint)
            self.swap_at("filled")
            self.stage(smb_copy, replace(fill, size_bytes=4 * MIB), endpoint)
            with self.during("push", "pushed-*", MIB):
                self.stage(smb_copy, push, endpoint)
            with self.during("pull", "source-*", 0):
                self.stage(smb_copy, pull, endpoint)
            with self.during("small", "small-*", 0):
                self.stage(small_files, small, endpoint)
            self.swap_at("close")

    def be_killed(self, setting: run_folder.Setting) -> None:
        """Kills server and run, as at a container's end; the next start finds what lies there."""
        holder = os.fork()
        if not holder:
            with suppress(*RUN_ERRORS), run_folder.hold(setting, self.peer):
                signal.pause()
            os._exit(1)
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until and not [*self.place.around.glob("*/source-*")]:
            time.sleep(0.02)
        for each in psutil.Process(self.server).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                each.kill()
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        self.swap()
        if self.case.step == "sweep":
            with run_folder.hold(replace(setting, run=os.urandom(16).hex()), self.peer):
                pass
        names = tuple(each.name for each in self.place.around.glob("bottleneck-*"))
        with leftovers.hold(OnShare(0.0, names), self.peer):
            pass


def attempt(case: Case, server: Samba, share: Path) -> tuple[bool, list[str], bool]:
    """Returns whether something was swapped, what of others' changed, and whether it was told."""
    place = Place(share)
    peer = replace(server.endpoint, folder=f"{share.name}\\around")
    tried = Attempt(case, place, peer, server.process_id)
    try:
        # Simulates a server that reports a new file identity at each open.
        anew = mock.patch.object(pipe2, "identity_of", lambda body: os.urandom(16))
        with anew if case.server == "no lasting identity" else nullcontext():
            setting = run_folder.Setting(os.urandom(16).hex(), case.dialect, seed=SEED)
            (tried.be_killed if case.step in ("sweep", "cleanup") else tried.run)(setting)
    except RUN_ERRORS as error:
        tried.errors.append(str(error))
    place.give_back()
    later = place.state()
    changed = [name for name in place.before if later.get(name) != place.before[name]]
    is_told = any("replaced" in each or "renamed" in each for each in tried.errors)
    return tried.swapped, changed + sorted(set(later) - set(place.before)), is_told


def run_cases(drawn: list[Case]) -> Iterator[tuple[Case, tuple[bool, list[str], bool]]]:
    extra: Any = {"options": ["server min protocol = NT1"], "password": "correct-horse-47"}
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp"))  # noqa: S108 - a disk
        os.environ["XDG_STATE_HOME"] = f"{name}/state"
        share = Path(name, "share")
        share.mkdir()
        started = {
            kind: stack.enter_context(private_samba(share, share_options=(*OPEN, *lines), **extra))
            for kind, lines in SERVERS.items()
        }
        for number, case in enumerate(drawn):
            folder = share / f"case-{number}"
            folder.mkdir()
            folder.chmod(0o777)
            yield case, attempt(case, started[case.server], folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=0, help="so many, drawn by the seed")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    if os.geteuid() or find_smbd() is None:
        print("needs root and Samba", file=sys.stderr)
        return NO_TRIAL
    rows: dict[str, dict[str, str]] = {}
    touched = swapped = 0
    drawn = random.sample(cases(), options.cases) if options.cases else cases()
    for case, (did, changed, is_told) in run_cases(drawn):
        swapped += did
        touched += bool(changed)
        mark = "X" if changed else ("t" if is_told else ".") if did else "-"
        row = rows.setdefault(case.swap, {})
        row[case.step] = row.get(case.step, "") + mark
        if changed:
            print(f"touched: {case}: {', '.join(changed)}")
    print(f"{'':22}" + "".join(f"{step:>9}" for step in STEPS))
    for swap, row in rows.items():
        print(f"{swap:22}" + "".join(f"{row.get(step, ''):>9}" for step in STEPS))
    print("X touched, t told, . nothing to tell or not told, - nothing was there to be swapped")
    print(f"{swapped} swaps, bytes or names of somebody else's changed in {touched}")
    return TOUCHED if touched else UNTOUCHED


if __name__ == "__main__":
    sys.exit(main())
