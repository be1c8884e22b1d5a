"""A server, a run beside it, and the moment when a fault comes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from probes.programs.samba import Samba, private_samba  # noqa: E402

BEFORE, EARLY, LATE = MOMENTS = ("before", "early", "late")
PASSWORD = "correct-horse-47-Faults"  # noqa: S105 - of a server that this makes for itself
FIRST_COPIES = r"disk server write|(push|pull)\.(un)?cached"
FIRST_PASSES = r"disk client"
"""Passes of fio's, where `disk` is probed alone."""
LATE_RATIO = 0.7
"""Share of the budget, by the run's own clock."""
MORE_SECONDS = 10.0
"""Seconds that a run may take beyond its budget."""
PATIENCE_SECONDS = 5.0
"""For what ends, or is removed, right behind the run."""
LARGE_BYTES = 1 << 20


Fault = Callable[["World"], None]


class NotHere(Exception):
    """This machine lacks what the fault is made with; the text says what."""


def usual(*extra: int) -> frozenset[int]:
    """Exit codes of a run that went on: done, or a stage is missing."""
    return frozenset({0, 3, *extra})


Given = ParamSpec("Given")


def fault(work: Callable[Concatenate[World, Given], None]) -> Callable[Given, Fault]:
    """A fault for each set of further arguments."""

    def of(*arguments: Given.args, **keywords: Given.kwargs) -> Fault:
        return lambda world: work(world, *arguments, **keywords)

    return of


@dataclass(frozen=True)
class Row:
    number: str
    title: str
    fault: Fault = lambda world: None
    """Makes it: called before the run, or while it goes on."""
    prepare: Fault = lambda world: None
    """Makes what the fault needs, before the server and the run; none yet."""
    conf: tuple[str, ...] = ()
    """Lines of smb.conf that are the fault, in [global] and in the share's part."""
    share_conf: tuple[str, ...] = ()
    late: str = ""
    """The line of progress that is late in a run that ends early; else its clock tells."""
    at_start: frozenset[int] = usual()
    """Exit codes that CONTRACT.md has for it, there before the start."""
    during: frozenset[int] = usual()
    refused: InitVar[int] = 0
    """The only code before the start, and one more that there may be in mid-run."""
    either: InitVar[tuple[int, ...]] = ()
    """Codes that there may be whenever it comes."""
    says: str = ""
    """Pattern that the run has to say, there before the start."""
    reason: str = ""
    """Why files cannot be gone at once; `cleanup` has to remove them then."""

    def __post_init__(self, refused: int, either: tuple[int, ...]) -> None:
        if refused:
            object.__setattr__(self, "at_start", frozenset({refused}))
        if either:
            object.__setattr__(self, "at_start", usual(*either))
        if refused or either:
            object.__setattr__(self, "during", usual(*either, *filter(None, [refused])))


@dataclass
class World:
    folder: Path
    moment: str
    stack: ExitStack
    budget_seconds: int = 20
    job: str = "diagnose"
    """The command; or a stage, which `probe` measures alone."""
    server: Samba | None = None
    process: subprocess.Popen[str] | None = None
    host: str = ""
    address: str = "127.0.0.1"
    below: str = ""
    """Behind the share, in the target."""
    agent: str = "exec:"
    user: str = ""
    prefix: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    conf: list[str] = field(default_factory=list)
    share_conf: list[str] = field(default_factory=list)
    ssh_port: int = 0
    excused_seconds: float = 0.0
    """For which the run was held."""
    extra: list[subprocess.Popen[str]] = field(default_factory=list)
    """Programs that the fault started."""
    wrong: list[str] = field(default_factory=list)
    """Complaints of the fault itself."""
    baseline: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # The folder for states is the desktop's or the system's; what is in it is ours to remove.
        for name in ("client", "share", "tmp", "home", "home/state", "own"):
            (self.folder / name).mkdir()
        self.client, self.share = self.folder / "client", self.folder / "share"
        self.own = self.folder / "own"
        """The fault's: nothing of the run is looked for in it."""

    @property
    def smbd(self) -> Samba:
        assert self.server is not None
        return self.server

    @property
    def run(self) -> subprocess.Popen[str]:
        assert self.process is not None
        return self.process

    def served(self, port: int = 0) -> AbstractContextManager[Samba]:
        conf = {"options": self.conf, "share_options": self.share_conf}
        return private_samba(self.share, password=PASSWORD, address=self.address, port=port, **conf)

    def beside(self, *command: str, ends: int = signal.SIGKILL) -> None:
        """A program of the fault's, until the run is over."""
        quiet = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, **quiet)
        self.undo(process.wait)
        self.undo(process.send_signal, ends)

    def undo(self, call: Callable[..., object], *arguments: object) -> None:
        """Called once the run is over, in reverse."""
        self.stack.callback(call, *arguments)

    def call(self, *command: object, check: bool = True) -> str:
        """A command of the system's; its stdout."""
        words = [str(each) for each in command]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        if check and done.returncode:
            raise NotHere(f"{words[0]}: {done.stderr.strip()[-200:]}")
        return done.stdout

    def mount(self, place: Path, *options: object) -> None:
        self.call("mount", *options, place)
        self.undo(self.call, "umount", "--lazy", place)

    def packets(self, rule: str) -> None:
        """A rule for what comes in over loopback ({port}: the server's), until the run is over."""
        rule = rule.format(port=self.smbd.port)
        text = f"table inet fault {{ chain i {{ type filter hook input priority 0; {rule}; }}; }}\n"
        subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True, capture_output=True)
        self.undo(self.call, "nft", "delete", "table", "inet", "fault")

    def reload(self, conf: tuple[str, ...], share_conf: tuple[str, ...]) -> None:
        """More lines for the server; for connections to come where it runs already."""
        if self.server is None:
            self.conf += conf
            self.share_conf += share_conf
            return
        file = Path(self.server.configuration)
        head, _, tail = file.read_text().partition(f"[{self.server.share}]")
        lines, ends = "\n".join(conf), "\n".join(share_conf)
        file.write_text(f"{head}{lines}\n[{self.server.share}]{tail}{ends}\n")
        self.signal_server(signal.SIGHUP)

    def signal_server(self, number: int) -> None:
        os.killpg(self.smbd.process_id, number)

    def sessions(self) -> list[int]:
        sockets = self.call("ss", "-Htnp", f"sport = :{self.smbd.port}", check=False)
        return sorted({int(each) for each in re.findall(r"pid=(\d+)", sockets)})

    def agents(self) -> list[int]:
        """Returns the run's agents, the client's first."""
        children = psutil.Process(self.run.pid).children()
        return sorted(each.pid for each in children if "python" in command_of(each.pid))

    def command(self) -> list[str]:
        host = self.host or self.address
        host = f"[{host}]" if ":" in host else host
        target = f"//{host}:{self.smbd.port}/{self.smbd.share}{self.below}"
        options = ["--user", self.user or self.smbd.username, "--folder", str(self.client)]
        options += ["--agent", self.agent, "--yes", "--budget", str(self.budget_seconds)]
        job = [self.job] if self.job == "diagnose" else ["probe", self.job]
        words = [sys.executable, "-m", "bottleneck", *job, target, *options]
        return [*self.prefix, *words, "--json", "-", *self.options]

    def variables(self) -> dict[str, str]:
        settings = {"BOTTLENECK_PASSWORD": PASSWORD, "PYTHONPATH": str(ROOT)}
        settings |= {"TMPDIR": str(self.folder / "tmp"), "HOME": str(self.folder / "home")}
        settings |= {"XDG_STATE_HOME": str(self.folder / "home" / "state")}
        return {**os.environ, **settings, **self.environment}

    def files(self) -> dict[str, str]:
        """Whatever lies where a run may write to, and what is in the small ones."""
        contents = {}
        for place in (self.client, self.share, self.folder / "tmp", self.folder / "home"):
            for parent, folders, names in os.walk(place):
                for name in (*folders, *names):
                    contents[f"{parent}/{name}"] = digest(Path(parent, name))
        return contents

    def keep(self) -> None:
        """Takes what lies there now for somebody's own."""
        self.baseline = self.files()


def digest(path: Path) -> str:
    """Returns the hash of a small file's content; of anything else its kind."""
    with contextlib.suppress(OSError):
        if path.is_file() and not path.is_symlink():
            if path.stat().st_size > LARGE_BYTES:
                return "large"
            return hashlib.sha256(path.read_bytes()).hexdigest()
    return "other"


@dataclass
class Record:
    row: str
    moment: str
    faults: list[str]
    """In how far the run broke a promise; none: it kept them all."""
    summary: str = ""
    not_here: str = ""
    """Why it could not be tried."""
    cleaned: bool = False
    """Whether files stayed until `cleanup`."""
    elapsed_seconds: float = 0.0
    stdout: str = ""
    stderr: str = ""


def descendants(of: int, without: frozenset[int] = frozenset()) -> set[int]:
    """Live processes below one, but for some and what is below those."""
    pids: set[int] = set()
    with contextlib.suppress(psutil.NoSuchProcess):
        for each in psutil.Process(of).children():
            if each.pid not in without:
                with contextlib.suppress(psutil.NoSuchProcess):
                    if each.status() != psutil.STATUS_ZOMBIE:
                        pids.add(each.pid)
                pids |= descendants(each.pid, without)
    return pids


def command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ").strip()
    return ""


def wait_for(true: Callable[[], Any], seconds: float) -> Any:
    """Returns what comes true, or what it is at the end."""
    until = time.monotonic() + seconds
    while not (value := true()) and time.monotonic() < until:
        time.sleep(0.05)
    return value


class Run:
    """The diagnosis, its words, and the moment of the fault."""

    def __init__(self, world: World, row: Row, out: Path) -> None:
        self._world, self._row = world, row
        self.lines: list[str] = []
        self.applied = world.moment == BEFORE
        self.began = time.monotonic()
        with out.open("wb") as stdout:
            self.process = subprocess.Popen(
                world.command(),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                errors="backslashreplace",
                env=world.variables(),
                start_new_session=True,
            )
        world.process = self.process
        self._due: float | None = None
        self._copies = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with contextlib.suppress(ValueError):  # a fault has closed the stream
            for line in self.process.stderr:
                self.lines.append(line)
                ran = re.match(r" *([\d.]+) s  ", line)
                if self._row.late and re.search(self._row.late, line):
                    self._due = time.monotonic()
                elif ran is not None and self._due is None:
                    to_come = LATE_RATIO * self._world.budget_seconds - float(ran[1])
                    self._due = time.monotonic() + to_come
                first = FIRST_PASSES if self._world.job == "disk" else FIRST_COPIES
                if re.search(first, line):
                    self._copies.set()

    def finish(self) -> float:
        """Puts the fault in at its moment, waits for the end; the run's seconds."""
        patience = 3 * self._world.budget_seconds + 4 * MORE_SECONDS
        while self.process.poll() is None and time.monotonic() - self.began < patience:
            if not self.applied and self._is_time():
                self.applied = True
                self._world.reload(self._row.conf, self._row.share_conf)
                self._row.fault(self._world)
            time.sleep(0.02)
        elapsed = time.monotonic() - self.began
        if self.process.poll() is None:
            self._world.wrong.append(f"it did not end in {patience:.0f} s")
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(PATIENCE_SECONDS)
        return elapsed

    def _is_time(self) -> bool:
        if self._world.moment == EARLY:
            return self._copies.is_set()
        return self._due is not None and time.monotonic() > self._due
