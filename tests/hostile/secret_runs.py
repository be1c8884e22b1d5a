"""Real runs of the product with a password in its hands: who gets it how, and what happens."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from secret_scan import Sampler, Secret
from secret_watch import During, Folders, Outcome, folder_name, watch
from sshd import Sshd

from probes.programs.samba import Samba

PATIENCE_SECONDS = 60.0
USER = "anna"
STARTER = """
import os, secrets, sys
from pathlib import Path
real = secrets.token_urlsafe
password = Path(os.environ["LEAKS_SECRET"]).read_text().split("\\n")[0]
secrets.token_urlsafe = lambda length=None: password if length == 16 else real(length)
from bottleneck.__main__ import main
sys.argv[0] = "bottleneck"
main()
"""
"""The demonstration makes its own password: this gives it ours."""


@dataclass(frozen=True)
class Place:
    """Needs of the runs: a server, the secret in a file, and a way in by ssh."""

    folder: Path
    secret: Secret
    samba: Samba
    shared: Path
    sshd: Sshd | None

    @property
    def target(self) -> str:
        return f"//{self.samba.host}:{self.samba.port}/{self.samba.share}"


@dataclass(frozen=True)
class Run:
    """One run: its arguments ({} of Place's names), and how it gets the password."""

    arguments: tuple[str, ...]
    by: str = "env"
    """env, file, prompt, starter."""
    codes: tuple[int, ...] = (0, 3)
    """Exit codes it may end with: else it did not come as far as it shall."""
    during: Callable[[Place], During] | None = None
    wrong: bool = False
    """The password is not the server's."""
    environment: dict[str, str] = field(default_factory=dict)


def try_one(place: Place, name: str, run: Run, traced: bool = True) -> Outcome:
    """One run under watch, in folders of its own."""
    secret = Secret() if run.wrong else place.secret
    folders = Folders(place.folder / folder_name(name), secret, place.shared)
    hidden = folders.path / "hidden"
    hidden.mkdir(parents=True)
    texts = {
        "auth": f"username = {USER}\npassword = {secret.password}\n",
        "secret": f"{secret.password}\n{secret.marked}",
    }
    for file, text in texts.items():
        (hidden / file).touch(0o600)
        (hidden / file).write_text(text)
    environment = {"LEAKS_SECRET": str(hidden / "secret"), **run.environment}
    if place.sshd is not None:
        environment["PYTHONPATH"] = f"{place.sshd.folder}/site"
    if run.by == "env":
        environment["BOTTLENECK_PASSWORD"] = secret.password
    names = {"target": place.target, "shared": str(place.shared), "auth": str(hidden / "auth")}
    start = ["-c", STARTER] if run.by == "starter" else ["-m", "bottleneck"]
    return watch(
        folders,
        [sys.executable, *start, *(each.format(**names) for each in run.arguments)],
        environment=environment,
        typed=run.by == "prompt",
        during=run.during(place) if run.during else None,
        traced=traced,
    )


def _logged_in(product: psutil.Process, port: int) -> psutil.Process | None:
    """A child of an agent that talks to the server: it has the login, and so have its parents."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for each in product.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if any(one.raddr and one.raddr.port == port for one in each.net_connections("tcp")):
                    return each
    return None


def _at_work(place: Place, product: psutil.Process) -> psutil.Process | None:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until and product.is_running():
        process = _logged_in(product, place.samba.port)
        if process is not None:
            return process
        time.sleep(0.005)
    return None


def kill(who: str, number: signal.Signals) -> Callable[[Place], During]:
    """Ends the coordinator, an agent or an agent's child while it is logged in."""

    def of(place: Place) -> During:
        def during(product: psutil.Process, sampler: Sampler) -> None:
            child = _at_work(place, product)
            assert child is not None, "nobody ever logged in"
            with contextlib.suppress(psutil.NoSuchProcess):
                victims = {"coordinator": product, "agent": child.parent(), "child": child}
                victim = victims[who]
                assert victim is not None
                victim.send_signal(number)

        return during

    return of


def kill_server(place: Place) -> During:
    """Stops the file server for good while somebody is logged in."""

    def during(product: psutil.Process, sampler: Sampler) -> None:
        assert _at_work(place, product) is not None, "nobody ever logged in"
        os.killpg(place.samba.process_id, signal.SIGKILL)

    return during


QUICK = ("--quick", "--size", "1MiB", "--yes")
SHORT = ("--budget", "8", "--size", "1MiB", "--yes")
LOGIN = ("--user", USER)
AT = ("{target}", *LOGIN)
EVERYTHING = (
    *"--verbose --json run.json --html run.html --ticket run.md".split(),
    "--junit",
    "run.xml",
)
HERE = ("--server-folder", "{shared}")

RUNS: dict[str, Run] = {
    "diagnose, password in the environment": Run(("diagnose", *AT, *SHORT)),
    "diagnose, password in a file": Run(
        ("diagnose", "{target}", "--auth-file", "{auth}", *SHORT), by="file"
    ),
    "diagnose, password typed": Run(("diagnose", *AT, *SHORT), by="prompt"),
    "diagnose, wrong password": Run(
        ("diagnose", *AT, *SHORT, *EVERYTHING), codes=(77,), wrong=True
    ),
    "diagnose, wrong password in a file, debugging": Run(
        ("diagnose", "{target}", "--auth-file", "{auth}", *SHORT),
        by="file",
        codes=(77,),
        wrong=True,
        environment={"BOTTLENECK_DEBUG": "1"},
    ),
    "diagnose, every document": Run(("diagnose", *AT, *SHORT, *EVERYTHING)),
    "diagnose, agent by exec": Run(
        ("diagnose", *AT, "--agent", "exec:", *HERE, "--quick", "--yes", *EVERYTHING)
    ),
    "diagnose, agent by ssh": Run(
        ("diagnose", *AT, "--agent", "ssh://nas", *HERE, "--quick", "--yes", *EVERYTHING)
    ),
    "check": Run(("check", *AT, *SHORT, "--format", "json"), codes=(0, 1, 2, 3)),
    "probe, SMB copy": Run(("probe", "smb-copy", *AT, *SHORT)),
    "copies of the server": Run(
        ("diagnose", *AT, "--agent", "exec:", *HERE, "--budget", "120", "--size", "1MiB", "--yes")
    ),
    "demo": Run(("demo", *QUICK[:3], *EVERYTHING), by="starter"),
    "watch": Run(("watch", "127.0.0.1", "--seconds", "2"), codes=(0, 3, 64, 69)),
    "cleanup": Run(("cleanup", *AT, "--yes", "--agent", "exec:")),
    "doctor": Run(("doctor", *AT, "--agent", "exec:")),
    **{
        f"{signal.Signals(number).name} for the {who}": Run(
            ("diagnose", *AT, "--agent", "exec:", *HERE, *SHORT, "--json", "run.json"),
            codes=(-number, 0, 3, 69, 70, 128 + number),
            during=kill(who, number),
        )
        for who in ("coordinator", "agent", "child")
        for number in (signal.SIGABRT, signal.SIGSEGV)
    },
    # The last: nothing serves after it.
    "server killed": Run(
        ("diagnose", *AT, *SHORT, *EVERYTHING), codes=(0, 3, 69), during=kill_server
    ),
}
