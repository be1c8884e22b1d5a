"""Runs a command with every sink of a secret in view: terminal, files, processes, system calls."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from secret_scan import Leak, Sampler, Secret, found_in, in_trace, in_tree, tracing_words

RUN_SECONDS = 400.0
PROMPT = b"Password"
ROOT = Path(__file__).parents[2]

During = Callable[[psutil.Process, Sampler], None]
"""Action in the middle of a run; gets the command's own process."""


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str
    leaks: tuple[Leak, ...]


@dataclass
class Folders:
    """The folders of one run: all that it may write to but the share."""

    path: Path
    secret: Secret
    share: Path | None = None

    def __post_init__(self) -> None:
        self.cwd = self.path / "cwd"

    def environment(self) -> dict[str, str]:
        """HOME and TMPDIR of its own, and nothing of this process's but the way to programs."""
        variables = {"HOME": str(self.path / "home"), "TMPDIR": str(self.path / "tmp")}
        variables |= {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "PYTHONPATH": str(ROOT)}
        return {**variables, "BOTTLENECK_CONFIG": "", "LANG": "C.UTF-8"}


def folder_name(title: str) -> str:
    return re.sub(r"\W+", "-", title)


def watch(
    dirs: Folders,
    command: list[str],
    *,
    environment: dict[str, str] | None = None,
    typed: bool = False,
    during: During | None = None,
    traced: bool = True,
) -> Outcome:
    """Runs the command to its end, and tells where the run's secret came to light.

    typed: the password is typed at a terminal's prompt. traced: by strace too, which takes root.
    """
    for name in ("cwd", "home", "tmp", "said", "trace"):
        (dirs.path / name).mkdir(parents=True, exist_ok=True)
    variables = {**dirs.environment(), **(environment or {})}
    forms = dirs.secret.forms()
    is_in_environment = any(found_in(each.encode(), forms) for each in variables.values())
    sampler = Sampler(forms, [dirs.path / "tmp", dirs.path / "home"], is_in_environment)
    prefix = tracing_words(dirs.path / "trace") if traced else []
    with _start(dirs, [*prefix, *command], variables, typed) as (process, our_end):
        watched = _product(process, traced)
        if traced:
            sampler.pass_over(process.pid)
        sampler.may_hold_pid = watched.pid if watched else None
        sampler.start()
        if our_end is not None:
            _type(our_end, dirs)
        if during is not None and watched is not None:
            during(watched, sampler)
        if process.stdin is not None:
            process.stdin.close()
        code = _wait(process, watched)
        sampler.stop()
    leaks = set(sampler.leaks)
    for folder in (dirs.cwd, dirs.path / "home", dirs.path / "tmp", dirs.path / "said", dirs.share):
        if folder is not None:
            leaks.update(in_tree(folder, forms))
    if traced:
        receiver = watched.pid if watched is not None and is_in_environment else None
        leaks |= in_trace(dirs.path / "trace", forms, dirs.secret.password, receiver)
        shutil.rmtree(dirs.path / "trace")
    out, err = ((dirs.path / "said" / name).read_text(errors="replace") for name in ("out", "err"))
    return Outcome(code, out, err, tuple(sorted(leaks)))


@contextlib.contextmanager
def _start(
    dirs: Folders, command: list[str], environment: dict[str, str], typed: bool
) -> Iterator[tuple[subprocess.Popen[bytes], int | None]]:
    """The process, and the other end of its terminal or None; both ends of it are ours to close."""
    our_end, process_end = pty.openpty() if typed else (None, None)

    def enter() -> None:
        # Whoever wants a core may have one: what the product does about it is the question.
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
        if process_end is not None:
            fcntl.ioctl(process_end, termios.TIOCSCTTY, 0)

    said = dirs.path / "said"
    with (said / "out").open("wb") as out, (said / "err").open("wb") as err:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if process_end is None else process_end,
            stdout=out,
            stderr=err,
            cwd=dirs.cwd,
            env=environment,
            start_new_session=True,
            preexec_fn=enter,
        )
    try:
        yield process, our_end
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for each in (our_end, process_end):
            if each is not None:
                os.close(each)


def _product(process: subprocess.Popen[bytes], traced: bool) -> psutil.Process | None:
    """The command's own process: strace's first child; None: it has ended."""
    top = psutil.Process(process.pid)
    while traced and process.poll() is None:
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in top.children():
                if Path(child.exe()).name != "strace":
                    return child
        time.sleep(0.001)
    return None if traced else top


def _type(our_end: int, dirs: Folders) -> None:
    """Types the password once it is asked for; what the terminal showed becomes a file."""
    text = b""
    until = time.monotonic() + RUN_SECONDS
    while PROMPT not in text and select.select([our_end], [], [], until - time.monotonic())[0]:
        text += os.read(our_end, 4096)
    os.write(our_end, dirs.secret.password.encode() + b"\n")
    # The terminal echoes the end of the line.
    while b"\n" not in text and select.select([our_end], [], [], until - time.monotonic())[0]:
        text += os.read(our_end, 4096)
    (dirs.path / "said" / "terminal").write_bytes(text)


def _wait(process: subprocess.Popen[bytes], watched: psutil.Process | None) -> int:
    """The exit code; one that does not end in RUN_SECONDS is a defect, which is raised."""
    try:
        return process.wait(RUN_SECONDS)
    except subprocess.TimeoutExpired:
        if watched is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                watched.kill()
        raise
