"""A private Samba server for a demonstration or a trial, removed without trace at its end.

Runs on Python 3.9 with the standard library alone. No root needed: smbd serves a high port as
whoever starts it, and the one SMB user is mapped to that account.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterable, Iterator, Optional, Tuple, Union

from probes.core.records import Access, Endpoint
from probes.core.stage import Unavailable
from probes.files import removal
from probes.files.created_folder import CreatedFolder, own_folder
from probes.files.open_files import listeners, sockets
from probes.system import accounts, tools
from probes.system.child import end_with_parent
from probes.system.tools import others_can_change

START_SECONDS = 20.0
"""Limit of smbd's time until it listens."""
STOP_SECONDS = 3.0
"""Limit of smbd's time to end before it is killed."""


@dataclass(frozen=True)
class Samba:
    """A listening server, with the login to its share."""

    host: str
    port: int
    share: str
    username: str
    password: str = field(repr=False)
    configuration: str
    """Path of its smb.conf, for smbcontrol, pdbedit and the like."""
    process_id: int
    """The first smbd; its process group has the same number."""

    @property
    def endpoint(self) -> Endpoint:
        """Its share, with the login."""
        access = Access(self.username, self.password)
        return Endpoint(self.host, self.port, share=self.share, access=access)


def find_smbd() -> Optional[str]:
    """Returns the path of smbd, or None; searches system folders that PATH may lack too."""
    return tools.find("smbd")


@contextmanager
def private_samba(
    folder: Union[str, os.PathLike[str]],
    *,
    share: str = "share",
    username: str = "bottleneck",
    password: str,
    address: str = "127.0.0.1",
    port: int = 0,
    options: Iterable[str] = (),
    share_options: Iterable[str] = (),
) -> Iterator[Samba]:
    """Serves folder as share until closed; it ends with the caller, after SIGKILL too.

    port 0 takes a free one. options and share_options are lines of smb.conf ("server min protocol
    = NT1") and override the defaults. Raises Unavailable where Samba is not installed or does not
    start, with the last line of its log. The thread that starts it has to outlive the server.
    """
    smbd, pdbedit = _programs()
    shared = _servable(folder, (share, username, password, address, *options, *share_options))
    account = _account()
    with vanishing_folder("bottleneck-samba-") as (state, tree), _reserve(address, port) as number:
        configuration = state / "smb.conf"
        configuration.write_text(
            _global_section(state, account, address, number, options)
            + _share_section(share, state / "served", share_options)
        )
        # smb.conf cannot quote: a per cent sign in the folder's own name would be substituted.
        (state / "served").symlink_to(shared)
        (state / "users").write_text(f'!{account} = "{username}"\n')
        _add_user(pdbedit, configuration, account, password)
        server = _start(smbd, configuration)
        tree.ends_first(server.pid)
        try:
            _wait_until_listening(server, address, number, state)
            yield Samba(
                host=address,
                port=number,
                share=share,
                username=username,
                password=password,
                configuration=str(configuration),
                process_id=server.pid,
            )
        finally:
            _stop(server)


def _programs() -> Tuple[str, str]:
    smbd, pdbedit = find_smbd(), tools.find("pdbedit")
    if smbd is None or pdbedit is None:
        raise Unavailable(
            f"Samba is not installed on {socket.gethostname()} (apt-get install samba)"
        )
    return smbd, pdbedit


def _servable(folder: Union[str, os.PathLike[str]], lines: Iterable[str]) -> Path:
    """Returns the folder; Unavailable where it is missing, or a line is impossible in smb.conf."""
    shared = Path(folder).resolve()
    if not shared.is_dir():
        raise Unavailable(f"folder {shared} not found")
    if not all(line.isprintable() and not line.endswith("\\") for line in lines):
        raise Unavailable("an option, name or password has characters that Samba cannot take")
    return shared


@contextmanager
def vanishing_folder(
    prefix: str,
    parent: Union[str, os.PathLike[str], None] = None,
    remedy: str = "set TMPDIR to another folder",
) -> Iterator[Tuple[Path, CreatedFolder]]:
    """Creates a folder of our own; yields its path and its OwnFolder, for a process group in it.

    It is removed at the end of the block; after a kill by the next run. parent None is the system's
    folder for temporary files. Raises Unavailable with the remedy where others could replace it: a
    server uses its path.
    """
    # Short: the paths of smbd's sockets in it may have 107 bytes (unix(7)).
    name = prefix + secrets.token_urlsafe(6)
    path = Path(parent or tempfile.gettempdir(), name).absolute()
    # The dot: others may create theirs beside it (/tmp). Checked first, as it can be replaced.
    foreign = others_can_change(f"{path.parent}/.", sticky=True)
    if foreign:
        raise Unavailable(
            f"{foreign}: other users than root and this one can change it, so no server may "
            f"use a folder below it; {remedy}"
        )
    with own_folder(removal.TREE, str(path.parent), name) as tree:
        if not tree.is_noted:
            raise Unavailable(
                "what is made cannot be noted for the case that this run is killed: the home and "
                "/var/tmp are full or read-only; free some space there"
            )
        tree.create()
        try:
            yield path, tree
        finally:
            # By descriptor, in case that it was renamed.
            with contextlib.suppress(OSError):
                tree.empty()
            # The last process of the group may still be closing its files.
            with contextlib.suppress(OSError):
                tree.remove(STOP_SECONDS)


@contextmanager
def _reserve(address: str, port: int) -> Iterator[int]:
    """Reserves a port that nobody listens on: bound, not listening, so only smbd can share it.

    smbd sets SO_REUSEPORT: two servers of one user on one port would take turns with the clients.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    if port and listeners(address, port):
        raise Unavailable(f"port {port} on {address} is in use")
    with socket.socket(family) as blocker:
        blocker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        blocker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            blocker.bind((address, port))
        except OSError as error:
            raise Unavailable(f"{address} port {port}: {error.strerror or error}") from error
        yield int(blocker.getsockname()[1])


def _account() -> str:
    name = accounts.name(os.geteuid())
    if not name:
        text = f"Samba serves accounts that have a name; user id {os.geteuid()} has none"
        raise Unavailable(text)
    return name


def _global_section(
    state: Path, account: str, address: str, port: int, options: Iterable[str]
) -> str:
    """Returns the [global] section of smb.conf; creates the state's folders."""
    folders = {
        "private dir": "private",
        "lock directory": "lock",
        "state directory": "state",
        "cache directory": "cache",
        "pid directory": "pid",
        "ncalrpc dir": "ncalrpc",
    }
    for name in folders.values():
        (state / name).mkdir(mode=0o755, exist_ok=True)
    lines = [f"{key} = {state / name}" for key, name in folders.items()]
    return "\n".join(
        [
            "[global]",
            "server role = standalone server",
            "workgroup = WORKGROUP",
            "netbios name = BOTTLENECK",
            "disable netbios = yes",
            f"interfaces = {address}",
            "bind interfaces only = yes",
            f"smb ports = {port}",
            *lines,
            f"passdb backend = tdbsam:{state / 'private' / 'passdb.tdb'}",
            f"username map = {state / 'users'}",
            f"guest account = {account}",
            "map to guest = never",
            "max log size = 1000",
            # Helpers leave smbd's process group and would outlive it; a copy needs none of them.
            "rpc start on demand helpers = no",
            "disable spoolss = yes",
            "load printers = no",
            "printcap name = /dev/null",
            "multicast dns register = no",
            "server min protocol = SMB2_02",
            *options,
            "",
        ]
    )


def _share_section(share: str, shared: Path, options: Iterable[str]) -> str:
    return "\n".join([f"[{share}]", f"path = {shared}", "read only = no", *options, ""])


def _add_user(pdbedit: str, configuration: Path, account: str, password: str) -> None:
    result = subprocess.run(
        [pdbedit, "-s", str(configuration), "-t", "-a", "-u", account],
        input=f"{password}\n{password}\n",
        capture_output=True,
        text=True,
        errors="replace",
        timeout=START_SECONDS,
    )
    if result.returncode != 0:
        raise Unavailable(
            f"Samba's user could not be created: {_last_line(result.stderr or result.stdout)}"
        )


def _start(smbd: str, configuration: Path) -> subprocess.Popen[bytes]:
    starter = os.getpid()
    folder = configuration.parent
    with (folder / "output").open("ab") as output:
        return subprocess.Popen(
            # The log's folder is an option too: before it reads smb.conf smbd tries /var/log.
            [smbd, "-s", str(configuration), "-l", str(folder), "-F", "--no-process-group"],
            stdin=subprocess.DEVNULL,  # a pipe or socket there would make it an inetd server
            stdout=output,
            stderr=output,
            cwd=folder,
            start_new_session=True,  # smbd signals its whole group when it ends: not ours
            preexec_fn=lambda: end_with_parent(starter),
        )


def _wait_until_listening(
    server: subprocess.Popen[bytes], address: str, port: int, state: Path
) -> None:
    """Waits until this very smbd, and nobody else, listens on the port; raises Unavailable."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        listening = listeners(address, port)
        if listening and listening <= sockets(server.pid):
            return
        if server.poll() is not None:
            raise Unavailable(f"smbd ended at once: {_last_words(state)}")
        time.sleep(0.01)
    raise Unavailable(
        f"smbd did not listen on {address} port {port} within {START_SECONDS:.0f} s: "
        f"{_last_words(state)}"
    )


def _last_words(state: Path) -> str:
    """Returns the last line of smbd's log, or of its output before it had one."""
    for name in ("log.smbd", "output"):
        with contextlib.suppress(OSError):
            text = (state / name).read_text(errors="replace").strip()
            if text:
                return _last_line(text)
    return "it logged nothing"


def _last_line(text: str) -> str:
    # smbd's last line before it aborts is only the path of the core dump.
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("dumping core")]
    return lines[-1] if lines else "it logged nothing"


def _stop(server: subprocess.Popen[bytes]) -> None:
    """Ends smbd and its processes; returns when none of them runs."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + STOP_SECONDS
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, sign)
        while time.monotonic() < deadline:
            # smbd is reaped last, so that the group's number cannot be used again meanwhile.
            if not _group_runs(server.pid):
                server.wait()
                return
            time.sleep(0.01)
    server.wait(STOP_SECONDS)


def _group_runs(group: int) -> bool:
    """Whether a process of the group is more than a zombie (proc(5), stat fields 3 and 5)."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                state, _, number = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(number) == group and state not in "ZX":
                    return True
    return False
