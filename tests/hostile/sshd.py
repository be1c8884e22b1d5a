"""An sshd of our own on a loopback port, and an ssh that knows it as `nas`."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.living import until


@dataclass(frozen=True)
class Sshd:
    """Files of an sshd; site/ on PYTHONPATH makes bin/ssh the program's ssh."""

    folder: Path
    port: int


@contextmanager
def own_sshd(folder: Path, login: str = "", banner: str = "") -> Iterator[Sshd]:
    """Serves until left; RuntimeError where it does not come up.

    banner: what it says before a login. login: a shell script that every login runs, its command
    in SSH_ORIGINAL_COMMAND.
    """
    for name in ("host", "user"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(key, check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "login").write_text(login)
    forced = f'command="/bin/sh {folder}/login" ' if login else ""
    (folder / "authorized").write_text(forced + (folder / "user.pub").read_text())
    (folder / "banner").write_text(banner)
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
        f"PasswordAuthentication no\nPermitRootLogin yes\nBanner {folder}/banner\n"
    )
    public = (folder / "host.pub").read_text().split()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {public[0]} {public[1]}\n")
    (folder / "client").write_text(
        f"Host nas\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {folder}/user\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known\n  User {getpass.getuser()}\n"
    )
    wrapper = folder / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/client "$@"\n')
    wrapper.chmod(0o755)
    # In PATH it would not be taken for the system's.
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "from probes.system import tools\nfind = tools.find\n"
        f"tools.find = lambda name: {str(wrapper)!r} if name == 'ssh' else find(name)\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    program = shutil.which("sshd", path=f"/usr/sbin:{os.environ['PATH']}") or "sshd"
    command = [program, "-D", "-e", "-f", str(folder / "config")]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        if not until(lambda: _answers(port)):
            raise RuntimeError("sshd did not come up")
        yield Sshd(folder, port)
    finally:
        server.terminate()
        server.wait()


def _answers(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0
