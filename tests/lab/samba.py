"""A real smbd on the lab's server, with its own state and one user."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from host import SHARE, USER, Host
from plant import Plant

_SLOW_CRYPTO = ("env", "GNUTLS_CPUID_OVERRIDE=0x1", "NETTLE_FAT_OVERRIDE=none")
"""Environment in which GnuTLS and Nettle, which smbd uses, see a CPU without such instructions."""

GLOBAL = """[global]
workgroup = LAB
netbios name = SERVER
server role = standalone server
security = user
map to guest = never
server min protocol = NT1
client min protocol = NT1
ntlm auth = ntlmv2-only
disable netbios = yes
smb ports = 445
load printers = no
printing = bsd
printcap name = /dev/null
disable spoolss = yes
log level = 0
private dir = {state}
state directory = {state}
cache directory = {state}
lock directory = {state}
pid directory = {state}
ncalrpc dir = {state}
log file = {state}/log.%m
{options}
"""
_SHARE = """
[{share}]
path = {folder}
read only = no
valid users = {user}
"""


WORKS_SECONDS = 0.01
"""Seconds of work of a server that stands still again and again, between two stops."""


@dataclass(frozen=True)
class Share:
    target: str
    user: str
    password: str = field(repr=False)


@contextlib.contextmanager
def serve(server: Host, address: str, work: Path, plant: Plant) -> Iterator[Share]:
    """An smbd in the server's namespace and cgroups, on port 445, until the block ends.

    plant: what is planted in it; of the same option in [global] the last line counts.
    """
    state = work / "samba"
    state.mkdir()
    folder = server.folder / SHARE
    server.run(["install", "-d", "-o", USER, "-m", "0700", folder])
    configuration = work / "smb.conf"
    configuration.write_text(
        (GLOBAL + _SHARE).format(
            state=state,
            folder=folder,
            share=SHARE,
            user=USER,
            options="\n".join(plant.samba_options),
        )
    )
    password = secrets.token_hex(12)
    subprocess.run(
        ["smbpasswd", "-c", configuration, "-L", "-s", "-a", USER],
        input=f"{password}\n{password}\n",
        text=True,
        check=True,
        capture_output=True,
    )
    command: list[str | Path]
    command = [*(_SLOW_CRYPTO if plant.slow_crypto else ()), "smbd", "-s", configuration]
    command += ["--foreground", "--no-process-group"]
    with server.running(command, work / "smbd.log") as process:
        _wait_until_open(server, address, process, work / "smbd.log")
        with stalls(process.pid, plant.stop_seconds):
            yield Share(f"//{address}/{SHARE}", USER, password)


def _wait_until_open(
    server: Host, address: str, process: subprocess.Popen[bytes], log: Path
) -> None:
    probe = f"import socket; socket.create_connection(({address!r}, 445), 1).close()"
    deadline = time.monotonic() + 30
    while server.run(["python3", "-c", probe], check=False).returncode != 0:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"smbd did not come up: {log.read_text()[-500:]}")
        time.sleep(0.1)


@contextlib.contextmanager
def stalls(group: int, stop_seconds: float) -> Iterator[None]:
    """Stop all processes of a group for so long, and again, until the block ends; 0: never.

    What is stopped uses no CPU time and does not wait for any.
    """
    if not stop_seconds:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_stop_and_go, args=(group, stop_seconds, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _stop_and_go(group: int, stop_seconds: float, ended: threading.Event) -> None:
    """Ends with the group at work; a group that is gone ends it too."""
    with contextlib.suppress(ProcessLookupError):
        while not ended.wait(WORKS_SECONDS):
            os.killpg(group, signal.SIGSTOP)
            time.sleep(stop_seconds)
            os.killpg(group, signal.SIGCONT)
