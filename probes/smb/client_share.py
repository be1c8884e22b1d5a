"""A share on the client, held for a run, so that the server can start copies as well.

The user's own one (--client-share); else a private Samba on the client's address towards the
server, for the server alone and gone with the run; else, where there is no smbd, impacket's.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from probes.drivers.impacket_server import DIALECT, impacket_server
from probes.drivers.samba import find_smbd, private_samba, vanishing_folder
from probes.host import locate, mounted_folder, served_file
from probes.records import Access, Details, Endpoint
from probes.smb import run_folder
from probes.stage import Unavailable

SHARE = "bottleneck"
USER = "bottleneck"
GIVEN, SAMBA, IMPACKET = "given", "samba", "impacket"
"""Who serves the share: the user's server, a private Samba, impacket's server."""
WATCH_SECONDS = 0.05
WRITE_BACK_BYTES = 8 << 20


@dataclass(frozen=True)
class Setting:
    """Which share, for whom, and how it is to be reached."""

    run: str
    """Hex id of the run, 16 digits."""
    dialect: str
    """In which the copies will run."""
    folder: str
    """The client's folder; a private share lies in a folder of its own below it."""
    address: str = ""
    """Private share: where it listens."""
    allow: tuple[str, ...] = ()
    """Private share: the addresses that it answers."""
    signed: bool = False
    """Private share: it requires signing, as the server's share does."""
    encrypted: bool = False
    """Private share: it requires encryption."""


@contextmanager
def hold(setting: Setting, peer: Endpoint) -> Iterator[Endpoint]:
    """Keeps a folder bottleneck-RUN on the client's share until left; then nothing is left of it.

    peer: the user's share (host, port, share, folder, access), or empty for a private one. Yields
    where the server finds it, with the login, and facts: dialect, signing and encryption that it
    demands, free_bytes, total_bytes, engine_server (GIVEN, SAMBA, IMPACKET), local_path (of the
    folder on this host; empty: not found), on_folder_disk (whether it is known to lie on the file
    system of the client's folder). Raises Refused and Unavailable with the remedy.
    """
    name = f"bottleneck-{setting.run}"
    with ExitStack() as stack:
        if peer.share:
            opened = stack.enter_context(_in_run_folder(setting, peer))
            path = locate.locate(name, None) or ""
            if path:
                stack.enter_context(_guarded(path))
            server = GIVEN
        else:
            opened, server, path = stack.enter_context(_private(setting, name))
        if path:
            stack.callback(served_file.remove, path)
            stack.enter_context(_writing_back(Path(path)))
        near = bool(path) and Path(path).stat().st_dev == Path(setting.folder).stat().st_dev
        facts = {
            **opened.facts,
            "engine_server": server,
            "local_path": path,
            "on_folder_disk": near,
        }
        yield replace(opened, facts=facts)


@contextmanager
def _in_run_folder(setting: Setting, peer: Endpoint) -> Iterator[Endpoint]:
    """A session of our own with the share: it makes the folder, and tells what is demanded."""
    made = run_folder.Setting(run=setting.run, dialect=setting.dialect)
    with run_folder.hold(made, peer) as held:
        yield held


@contextmanager
def _private(setting: Setting, name: str) -> Iterator[tuple[Endpoint, str, str]]:
    access = Access(USER, secrets.token_urlsafe(24))
    with ExitStack() as stack:
        root, _ = stack.enter_context(vanishing_folder("bottleneck-share-", setting.folder))
        if find_smbd() is None:
            yield stack.enter_context(_by_impacket(setting, root, name, access))
            return
        options = [f"hosts allow = {' '.join(setting.allow)}"]
        options += ["restrict anonymous = 2", "server max protocol = SMB3_11"]
        if setting.signed:
            options.append("server signing = mandatory")
        if setting.encrypted:
            options.append("smb encrypt = required")
        served = stack.enter_context(
            private_samba(
                root,
                share=SHARE,
                username=USER,
                password=access.password,
                address=setting.address,
                options=options,
                share_options=["browseable = no"],
            )
        )
        place = Endpoint(host=served.host, port=served.port, share=served.share, access=access)
        held = stack.enter_context(_in_run_folder(setting, place))
        yield held, SAMBA, str(root / name)


@contextmanager
def _by_impacket(
    setting: Setting, root: Path, name: str, access: Access
) -> Iterator[tuple[Endpoint, str, str]]:
    if setting.signed or setting.encrypted:
        raise Unavailable(
            "copies with this server are signed or encrypted, which only Samba can match: "
            "install samba on the client, or give --client-share"
        )
    path = root / name
    path.mkdir(mode=0o700)
    with impacket_server(
        root, share=SHARE, access=access, address=setting.address, allow=setting.allow
    ) as served:
        # Its answers about free space are not those that a session of ours asks for.
        told = os.statvfs(root)
        facts: Details = {
            "dialect": DIALECT,
            "signing": None,
            "encryption": None,
            "free_bytes": told.f_bavail * told.f_frsize,
            "total_bytes": told.f_blocks * told.f_frsize,
        }
        yield replace(served, folder=name, facts=facts), IMPACKET, str(path)


@contextmanager
def _guarded(path: str) -> Iterator[None]:
    """Has the folder removed although this process is killed; its name is this run's alone."""
    guardian = mounted_folder.start_guardian(path)
    try:
        yield
    finally:
        # Whatever is left by now the session removes, which is left after this.
        mounted_folder.dismiss(guardian, "clean")


@contextmanager
def _writing_back(folder: Path) -> Iterator[None]:
    """Has the disk begin to write what arrives, as copies that we make ourselves do.

    The server's program flushes nothing on its way: all would wait for the end.
    """
    ended = threading.Event()
    thread = threading.Thread(target=_write_back, args=(folder, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _write_back(folder: Path, ended: threading.Event) -> None:
    begun: dict[str, int] = {}
    while not ended.wait(WATCH_SECONDS):
        # a file that went meanwhile, or that is another user's, is left alone
        with contextlib.suppress(OSError):
            for entry in os.scandir(folder):
                size = entry.stat(follow_symlinks=False).st_size
                if size - begun.get(entry.name, 0) < WRITE_BACK_BYTES:
                    continue
                begun[entry.name] = size
                fd = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    served_file.start_write_back(fd)
                finally:
                    os.close(fd)
