"""Fixtures for many tests: the program itself, and a real Samba."""

import ctypes
import gc
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from probes.programs.samba import private_samba
from probes.system import tools
from probes.system.waiting import signal
from tests.hostile.sshd import own_sshd

PR_CAPBSET_DROP, CAPABILITIES = 24, 64
PASSWORD = "correct horse 47 %&'\"$"
"""Characters that a shell, a URL or a file format would trip over."""

STATE = tempfile.mkdtemp(prefix="bottleneck-state-")


def pytest_unconfigure() -> None:
    """The journal of what these tests created goes with them."""
    shutil.rmtree(STATE)


def pytest_configure() -> None:
    """Makes the run independent of inherited signals and of this user's configuration."""
    os.environ["BOTTLENECK_CONFIG"] = ""
    os.environ["XDG_STATE_HOME"] = STATE
    os.environ.pop("COLUMNS", None)  # which pytest-xdist sets
    for number in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Keeps collected tests out of garbage collection, and out of each fork's."""
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def complaint(self):
        """The one line on stderr that is ours."""
        lines = [line for line in self.err.splitlines() if line.startswith("bottleneck: ")]
        assert len(lines) == 1, self.err
        return lines[0]


def begin(arguments, out, err, cwd, environment):
    """The program in this process, which has no other purpose; it ends with the program's code."""
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdin, sys.stdout, sys.stderr = (
            open(each, mode, closefd=False)  # noqa: SIM115 - they end with the process
            for each, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(cwd or ".")
        sys.argv = ["bottleneck", *arguments]
        from bottleneck.__main__ import main

        main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run_bottleneck(*arguments, password=None, seconds=120, cwd=None, environment=None):
    """Runs the program as a user's shell would, with nobody at a terminal.

    In a child of this process, which has loaded it before: loading takes longer than most runs.
    """
    from bottleneck.cli import app, check_runs

    assert app and check_runs
    environment = {**os.environ, **(environment or {})}
    environment.pop("BOTTLENECK_PASSWORD", None)
    if password is not None:
        environment["BOTTLENECK_PASSWORD"] = password
    environment = {name: str(value) for name, value in environment.items()}
    if sys.platform == "win32":
        return in_this_process([str(each) for each in arguments], cwd, environment)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            begin([str(each) for each in arguments], out.fileno(), err.fileno(), cwd, environment)
        killer = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
        killer.start()
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        finally:
            killer.cancel()
        out.seek(0)
        err.seek(0)
        done = Ended(code, out.read().decode(), err.read().decode())
    assert "Traceback" not in done.err, done.err
    return done


def in_this_process(arguments, cwd, environment):
    """Runs an offline command where there is no fork(2); returns its code and output."""
    from bottleneck.cli import app

    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2)]
    here, variables = Path.cwd(), dict(os.environ)
    os.environ.update(environment)
    os.chdir(cwd or ".")
    try:
        with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
            code = app.run(arguments)
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(variables)
    for each in streams:
        each.flush()
    return Ended(code, *(each.buffer.getvalue().decode() for each in streams))


@pytest.fixture
def bottleneck():
    return run_bottleneck


@pytest.fixture(scope="session")
def samba(tmp_path_factory):
    """A Samba with one share, SMB1 to 3.1.1, for all tests that change nothing about it."""
    shared = tmp_path_factory.mktemp("shared")
    with private_samba(str(shared), password=PASSWORD) as server:
        yield server, shared


@pytest.fixture
def auth_file(samba, tmp_path):
    server, _ = samba
    path = tmp_path / "auth"
    path.touch(0o600)
    path.write_text(f"username = {server.username}\npassword = {server.password}\n")
    return path


def target_of(server, share=None):
    return f"//{server.host}:{server.port}/{share or server.share}"


@pytest.fixture
def target(samba):
    return target_of(samba[0])


@pytest.fixture(scope="module")
def iperf3_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    process = subprocess.Popen(
        ["iperf3", "--server", "--port", str(port), "--forceflush"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    # A mere look at the port would keep it from its first client.
    while "listening" not in (line := process.stdout.readline()):
        assert line
    yield port
    process.kill()
    process.communicate()


def drop_privileges():
    """Between fork and exec: what root may do beside its own user's goes (capabilities(7))."""
    library = ctypes.CDLL(None)
    for each in range(CAPABILITIES):
        library.prctl(PR_CAPBSET_DROP, each, 0, 0, 0)


@pytest.fixture
def unprivileged():
    """Returns a preexec_fn for Popen that leaves a program its user's rights alone."""
    return drop_privileges


def _is_readable(pid):
    command = ["cat", f"/proc/{pid}/environ"]
    return subprocess.run(command, capture_output=True, preexec_fn=drop_privileges).returncode == 0


@pytest.fixture
def is_private():
    """Whether an unprivileged process leaves no core, and its user cannot read what it holds."""

    def look(pid):
        limits = Path(f"/proc/{pid}/limits").read_text()
        (core,) = [line for line in limits.splitlines() if line.startswith("Max core file size")]
        return core.split()[4:6] == ["0", "0"] and not _is_readable(pid)

    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, preexec_fn=drop_privileges) as usual:
        assert _is_readable(usual.pid)
    return look


@pytest.fixture(scope="session")
def sshd(tmp_path_factory):
    """An sshd of our own, and the configuration of its clients."""
    if shutil.which("sshd", path=f"/usr/sbin:{os.environ['PATH']}") is None:
        pytest.fail("openssh-server is not installed: run ./test, which installs it")
    folder = tmp_path_factory.mktemp("sshd")
    with own_sshd(folder, banner="This host belongs to nobody.\n") as server:
        yield server


@pytest.fixture
def ssh_on_path(sshd, monkeypatch):
    """The system's ssh, with this test's configuration in place of the user's; the sshd's folder.

    Here, and in the commands that are started: by PATH it would not be taken for the system's.
    """
    monkeypatch.setenv("PYTHONPATH", str(sshd.folder / "site"))
    find, wrapper = tools.find, str(sshd.folder / "bin" / "ssh")
    monkeypatch.setattr(tools, "find", lambda name: wrapper if name == "ssh" else find(name))
    return sshd.folder


@dataclass(frozen=True)
class SmbMount:
    """A share that this host has mounted."""

    folder: Path
    shared: Path
    """Path of the folder at the server."""
    smbd: int
    """Its process id, and its group's."""
    daemon: int
    """The process that is the mount."""


@contextmanager
def mounted_share(folders):
    """A share really mounted, with a Samba of its own; folders makes the two that it needs."""
    if os.geteuid() != 0:
        pytest.skip("NOT RUN: a network namespace and a mount need root")
    if not Path("/dev/fuse").exists():
        pytest.skip("NOT RUN: this kernel or container has no /dev/fuse")
    if shutil.which("smbnetfs") is None:
        pytest.fail("smbnetfs is not installed: run ./test, which installs it")
    shared, point = folders.mktemp("shared"), folders.mktemp("mounted")
    root = Path(__file__).parents[1]
    process = subprocess.Popen(
        ["unshare", "--net", sys.executable, "tests/lab/smb_mount.py", shared, point],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    try:
        smbd, daemon, folder = process.stdout.readline().split(maxsplit=2)
        yield SmbMount(Path(folder.strip()), shared, int(smbd), int(daemon))
    finally:
        process.stdin.close()
        process.wait(30)


@pytest.fixture(scope="session")
def smb_mount(tmp_path_factory):
    """A mounted share for all tests that change nothing about it."""
    with mounted_share(tmp_path_factory) as mount:
        yield mount


@pytest.fixture
def troubled_mount(tmp_path_factory):
    """A mounted share for one test, which stops its server or its daemon."""
    with mounted_share(tmp_path_factory) as mount:
        yield mount
        for each in (mount.smbd, mount.daemon):
            os.killpg(each, signal.SIGCONT)


LONG_FIGURE = re.compile(r"\d+\.\d{7,}(e[-+]\d+)?")
"""Its last digits are the machine's."""


def _stored_texts(path):
    """Returns the texts in a golden file, by the name of the test."""
    blocks = path.read_text("utf-8").split("\n== ") if path.exists() else []
    return dict(block.removeprefix("== ").split("\n", 1) for block in blocks)


@pytest.fixture
def golden(request):
    """Takes a test's lines, and holds them against what `golden/` keeps of it beside the test.

    A test's name is its claim, and the kept text shows that it is true: read it where it changes.
    `UPDATE_GOLDEN=1` keeps what is said now.
    """
    lines = []
    yield lambda line: lines.append(LONG_FIGURE.sub(lambda hit: f"{float(hit[0]):.9g}", line))
    path = request.path.parent / "golden" / f"{request.path.stem.removeprefix('test_')}.txt"
    stored, text = _stored_texts(path), "\n".join(lines).rstrip()
    if os.environ.get("UPDATE_GOLDEN"):
        stored[request.node.name] = text
        path.parent.mkdir(exist_ok=True)
        blocks = (f"== {name}\n{stored[name].rstrip()}\n" for name in sorted(stored))
        path.write_text("".join(blocks), "utf-8")
    assert text == stored.get(request.node.name, "").rstrip()
