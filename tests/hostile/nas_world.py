"""A NAS of its own for each case of nas.py, a run against it, and what befalls them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from socket import create_server

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402 - after sys.path

from probes.programs.samba import Samba, private_samba  # noqa: E402

PASSWORD = "correct-horse-47"
AUTH = f"username = bottleneck\npassword = {PASSWORD}\n"
LOG = ("log level = 1 auth_audit:3", "max log size = 0")
LOGIN = re.compile(r"Auth: \[SMB.* status \[(\w+)\]")
RUN_FOLDER, RUN_NAME = "bottleneck-*", re.compile("bottleneck-", re.IGNORECASE)
END_SECONDS, SETTLE_SECONDS, WAIT_SECONDS = 75.0, 4.0, 20.0
RUN = "diagnose {target}"
OPTIONS = {
    "diagnose": "--budget {budget} --yes --folder {client} --json {report}",
    "probe": "--yes --folder {client}",
    "cleanup": "--yes --folder {client}",
    "doctor": "--folder {client}",
}
"""Options that every case gives to a command, beside the login file."""


@dataclass(frozen=True)
class Case:
    """One server, the command that meets it, and the ends that are right."""

    name: str
    exits: tuple[int, ...] = (0, 3)
    says: str = ""
    """Pattern that has to stand in the output; several are parted by " & "."""
    share_lines: str = ""
    """Lines of the share's section, parted by " | "."""
    lines: str = ""
    """Lines of the global section."""
    words: str = RUN
    """Commands, one a line; the exit code of the last one is judged."""
    never: str = r"unexpected status from the server"
    """Pattern that may not stand in the output."""
    prepare: Action | None = None
    """Prepares the place, before the server is started."""
    begin: Action | None = None
    """Changes the server, before the first command."""
    during: Action | None = None
    """Acts while the first command runs."""
    tells: bool = False
    """Whether something may be left, if the output names it."""
    failed_logins: int = 0
    verdict: bool = True
    """Whether a component may be blamed."""
    share: str = "share"
    login: str | bytes = AUTH
    """Content of the login file; empty: none is given."""
    password: str = PASSWORD
    variables: tuple[tuple[str, str], ...] = ()
    budget: int = 8


class World:
    """Folders, server and current process of one case."""

    server: Samba
    process: subprocess.Popen[bytes]
    peer: subprocess.Popen[bytes]
    """The iperf3 server of the case."""

    def __init__(self, case: Case, stack: ExitStack) -> None:
        name = tempfile.TemporaryDirectory("-nas", dir="/var/tmp")  # noqa: S108 - a disk
        self.case, self.stack, self.place = case, stack, Path(stack.enter_context(name))
        self.place.chmod(0o711)
        self.shared, self.client, self.home = map(self._make_folder, ("shared", "client", "home"))
        self.printed, self.outside = map(self._make_folder, ("printed", "outside"))
        self.report, self.auth = self.place / "report.json", self.place / "auth"
        self.hosts = self.place / "hosts"
        """Names of hosts for the run alone, if it is there."""
        self.auth.write_bytes(case.login if isinstance(case.login, bytes) else case.login.encode())
        self.auth.chmod(0o600)
        self.servers = stack.enter_context(ExitStack())
        self.output, self.exit_code, self.failed_logins = "", -1, 0
        self.fields = {"budget": str(case.budget), "script": str(self.place / "script")}
        """Words and lines may name them in braces."""
        for each in ("place", "shared", "client", "auth", "report"):
            self.fields[each] = str(getattr(self, each))

    def _make_folder(self, name: str) -> Path:
        folder = self.place / name
        folder.mkdir()
        folder.chmod(0o777)
        return folder

    def start(self, port: int = 0) -> None:
        case = self.case
        parts = (case.lines.split(" | "), case.share_lines.split(" | "))
        options, lines = ([line.format(**self.fields) for line in part] for part in parts)
        extra = {"share": case.share, "password": case.password, "share_options": lines}
        serving = private_samba(self.shared, port=port, options=[*LOG, *options], **extra)
        self.server = self.servers.enter_context(serving)
        self.fields |= {"port": str(self.server.port), "users": self.server.configuration}
        self.fields["target"] = f"//127.0.0.1:{self.server.port}/{case.share}"
        # Guests and forced users go through it to the share.
        Path(self.server.configuration).parent.chmod(0o711)

    def stop(self) -> None:
        """Counts the failed logins and ends the server."""
        for log in Path(self.server.configuration).parent.glob("log.*"):
            logins = LOGIN.findall(log.read_text(errors="replace"))
            self.failed_logins += sum(status != "NT_STATUS_OK" for status in logins)
        self.servers.close()

    def signal_sessions(self, number: int) -> None:
        """Sends a signal to each process of the server but the first."""
        for each in psutil.Process(self.server.process_id).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                each.send_signal(number)

    def freeze(self, seconds: float) -> None:
        os.kill(self.server.process_id, signal.SIGSTOP)
        self.signal_sessions(signal.SIGSTOP)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        self.signal_sessions(signal.SIGCONT)
        os.kill(self.server.process_id, signal.SIGCONT)

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Returns when the condition holds, or the command has ended, or it takes too long."""
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            with suppress(OSError):
                if condition():
                    return
            time.sleep(0.02)

    def wait_for_file(self, pattern: str, size_bytes: int) -> None:
        """Waits for a file of the run on the share that is as large; {run} is its folder then."""
        place = f"{RUN_FOLDER}/{pattern}"
        self.wait_for(lambda: any(size(each) >= size_bytes for each in self.shared.glob(place)))
        self.fields["run"] = str(next(self.shared.glob(RUN_FOLDER), self.shared / "no-run"))

    def run(self) -> None:
        for number, line in enumerate(self.case.words.split("\n")):
            words = [*line.split(), *OPTIONS[line.split()[0]].split()]
            words += ["--auth-file", "{auth}"] if self.case.login else []
            self._run_one(self.fill(words), self.case.during if number == 0 else None)

    def fill(self, words: list[str]) -> list[str]:
        """Returns words with fields filled in; a ~ stands for a blank."""
        return [word.replace("~", " ").format(**self.fields) for word in words]

    def _run_one(self, words: list[str], during: Action | None) -> None:
        variables = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        # The product that this trial stands beside.
        variables |= {"PYTHONPATH": str(ROOT), **dict(self.case.variables)}
        mount = f'mount --bind {self.hosts} /etc/hosts; exec "$@"'
        own_hosts = ["unshare", "-m", "sh", "-c", mount, "sh"] if self.hosts.exists() else []
        command = [*own_hosts, sys.executable, "-P", "-m", "bottleneck", *words]
        with (self.place / "output").open("w+b") as output:
            streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            self.process = subprocess.Popen(
                command, cwd=self.place, env=variables, start_new_session=True, **streams
            )
            try:
                if during is not None:
                    during(self)
                self.exit_code = self.process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self.output += "it did not end"
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            output.seek(0)
            self.output += output.read().decode(errors="replace")

    def leftovers(self, earlier: set[Path]) -> list[Path]:
        """Returns what a run left on the share, in its bin, at the printer and on the client.

        Folders of a bin itself are the server's; in a bin outside the share no bytes may stay.
        """
        until = time.monotonic() + SETTLE_SECONDS
        while True:
            paths = {*self.shared.rglob("*")} - earlier
            paths = {path for path in paths if path.is_file() or RUN_NAME.match(path.name)}
            paths |= {*self.client.rglob("*"), *self.printed.rglob("*")}
            paths |= {path for path in self.outside.rglob("*") if path.is_file() and size(path)}
            if not paths or time.monotonic() > until:
                return sorted(paths)
            time.sleep(0.05)


Action = Callable[[World], object]


def size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def list_processes(home: Path) -> list[str]:
    names = []
    for each in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            names += [each.name()] if each.environ().get("HOME") == str(home) else []
    return names


@contextmanager
def enter(case: Case) -> Iterator[tuple[World, set[Path]]]:
    """Makes the world of a case, and yields it with what its share holds before the run."""
    with ExitStack() as stack:
        world = World(case, stack)
        if case.prepare is not None:
            case.prepare(world)
        paths = {*world.shared.rglob("*")}
        world.start()
        if case.begin is not None:
            case.begin(world)
        yield world, paths


def file(name: str, text: str) -> Action:
    """Writes a program, or names of hosts, in which words in braces are filled in."""

    def write(world: World) -> None:
        (world.place / name).write_text(text.format(**world.fields))
        (world.place / name).chmod(0o755)

    return write


def command(words: str, undoing: str = "") -> Action:
    """Runs a command as root, and another one when the case ends."""

    def run(world: World) -> None:
        todo, undo = (world.fill(text.split()) for text in (words, undoing))
        subprocess.run(todo, check=True, capture_output=True)
        if undo:
            world.stack.callback(subprocess.run, undo)

    return run


def when(pattern: str, size_bytes: int, action: Action) -> Action:
    """Acts when a file of the run, or with no pattern its folder, is on the share."""
    return lambda world: (world.wait_for_file(pattern, size_bytes), action(world))


def freeze(seconds: float) -> Action:
    """Lets no process of the server run for so long, or until the command has ended."""
    return lambda world: world.freeze(seconds)


def restart(world: World) -> None:
    """Ends the server and starts it anew at the same port."""
    world.stop()
    world.start(world.server.port)


def crash(world: World) -> None:
    """Kills the whole server, and starts it when the run has ended."""
    os.kill(world.server.process_id, signal.SIGSTOP)  # it takes no more connections
    world.signal_sessions(signal.SIGKILL)
    os.kill(world.server.process_id, signal.SIGKILL)
    world.process.wait(END_SECONDS)
    restart(world)


def move_share(world: World) -> None:
    """Moves the share's folder away; what lies there counts as left."""
    world.shared = world.shared.rename(world.place / "moved")


def silent_peer(world: World) -> None:
    """Holds a port {peer} that takes connections and never says a word."""
    server = world.stack.enter_context(create_server(("127.0.0.1", 0)))
    world.fields["peer"] = str(server.getsockname()[1])


def serve_iperf3(world: World) -> None:
    with create_server(("127.0.0.1", 0)) as free:
        world.fields["peer"] = port = str(free.getsockname()[1])
    command = ["iperf3", "-s", "-B", "127.0.0.1", "-p", port]
    world.peer = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    world.stack.callback(world.peer.wait)
    world.stack.callback(world.peer.kill)


def kill_iperf3(world: World) -> None:
    """Kills the iperf3 server as soon as a test's data connection stands beside its control."""
    connections = psutil.Process(world.peer.pid).net_connections
    world.wait_for(lambda: sum(each.status == "ESTABLISHED" for each in connections()) > 1)
    world.peer.kill()
