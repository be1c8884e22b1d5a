"""Provides a share on the client during a run, so that the server can start copies as well.

It is the user's (--client-share) or a private Samba on the client's address towards the server,
for the server only, which ends with the run.
"""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from probes.core.field_types import Address, Folder, Hex, Text
from probes.core.records import Access, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import free_space, removal, served_file, unnamed_file
from probes.files.created_folder import CreatedFolder, own_folder
from probes.programs import served_folder
from probes.programs.samba import find_smbd, private_samba, vanishing_folder
from probes.smb import run_folder
from probes.system.platform import descriptor, os
from probes.system.tools import others_can_change
from probes.system.waiting import signal

SHARE = "bottleneck"
USER = "bottleneck"
GIVEN, SAMBA = "given", "samba"
"""Server of the share: the user's, a private Samba."""
REMEDY = "install samba, or use --client-share"
WATCH_SECONDS = 0.02
MOST_INODES = 1000
"""Inodes that others may use there: many times as many as a run creates."""
WRITE_BACK_BYTES = 8 << 20


@dataclass(frozen=True)
class Setting:
    """The share's folder, address, clients and security."""

    run: Hex
    """Hex id of the run, 16 digits."""
    dialect: Text
    folder: Folder
    """The client's folder; a private share is a new folder in it, or in the system's folder for
    temporary files where others may write to this one."""
    address: Address = ""
    """Private share: address to listen on."""
    allow: tuple[Text, ...] = ()
    """Private share: addresses of its clients."""
    signed: bool = False
    """Private share: it requires signing, as the server's share does."""
    encrypted: bool = False
    """Private share: it requires encryption."""


@contextmanager
def hold(setting: Setting, peer: Endpoint) -> Iterator[Endpoint]:
    """Creates a folder bottleneck-RUN on the client's share, and removes it at the end.

    peer: the user's share (host, port, share, folder, access), or empty for a private one. Yields
    its endpoint for the server, with the login, and facts: dialect, signing and encryption that it
    requires, free_bytes, total_bytes, engine_server (GIVEN, SAMBA), local_path (of the folder on
    this host; empty: not found), on_folder_disk (whether it is known to be on the file system of
    the client's folder). Raises Refused and Unavailable with the remedy.
    """
    name = f"bottleneck-{setting.run}"
    with ExitStack() as stack:
        if peer.share:
            endpoint = stack.enter_context(_in_run_folder(setting, peer, outlived=True))
            path = served_folder.locate(name, None) or ""
            if path:
                stack.enter_context(_guard(path))
            server = GIVEN
        else:
            endpoint, server, path = stack.enter_context(_open_private(setting, name))
        if path:
            stack.callback(_remove_files, path)
            stack.enter_context(_look_repeatedly(_WriteBack(path).look))
        is_same_disk = bool(path) and Path(path).stat().st_dev == Path(setting.folder).stat().st_dev
        facts = {
            **endpoint.facts,
            "engine_server": server,
            "local_path": path,
            "on_folder_disk": is_same_disk,
        }
        yield replace(endpoint, facts=facts)


def single_address(text: str) -> str:
    """Returns an IP address without its scope, as file servers compare them.

    Raises Unavailable for everything else that their lists of hosts accept: names, networks, ALL.
    The text may come from another host.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        address = None
    if address is None or address.is_unspecified or address.is_multicast:
        raise Unavailable(
            f"{text!r} is not the IP address of one host; a share opened here accepts no others"
        )
    return str(address).partition("%")[0]


def _in_run_folder(
    setting: Setting, peer: Endpoint, outlived: bool
) -> AbstractContextManager[Endpoint]:
    """Opens a session with the share, which creates the folder and reports the security."""
    folder_setting = run_folder.Setting(run=setting.run, dialect=setting.dialect, outlived=outlived)
    return run_folder.hold(folder_setting, peer)


@contextmanager
def _open_private(setting: Setting, name: str) -> Iterator[tuple[Endpoint, str, str]]:
    if find_smbd() is None:
        raise Unavailable(f"Samba was not found on this host ({REMEDY})")
    access = Access(USER, secrets.token_urlsafe(24))
    allow = tuple(map(single_address, setting.allow))
    # In a folder that others may change they could replace the share's folder.
    is_open = others_can_change(f"{setting.folder}/.", sticky=True)
    place = unnamed_file.on_disk() if is_open else setting.folder
    free_space.fitting_size(free_space.LEAST_BYTES, place)
    with ExitStack() as stack:
        remedy = "use another --folder, or --client-share"
        root, folder = stack.enter_context(vanishing_folder("bottleneck-share-", place, remedy))
        reserve = _Reserve(folder, place)
        options = [f"hosts allow = {' '.join(allow)}"]
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
        reserve.end = partial(os.killpg, served.process_id, signal.SIGKILL)
        stack.enter_context(reserve.watch())
        endpoint = stack.enter_context(_in_run_folder(setting, served.endpoint, outlived=False))
        yield endpoint, SAMBA, str(root / name)


class _Reserve:
    """Ends a private share before others' writes to it use up the space that has to stay free."""

    def __init__(self, share_folder: CreatedFolder, place: str) -> None:
        """share_folder: the served folder; place: its location, for the message."""
        self.end: Callable[[], None] = lambda: None
        """Ends its server at once."""
        self._share_folder = share_folder
        self._place = place
        self._free_bytes = self._inodes = 0
        self._looks = 0
        """Looks since the free space last fell."""
        self._ended = ""

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Watches the free space. Raises Refused ("space") where the share was ended meanwhile."""
        with _look_repeatedly(self._look):
            try:
                yield
            except Exception:
                # Whatever uses the share breaks when it is ended.
                if not self._ended:
                    raise
        if self._ended:
            raise Refused("space", self._ended)

    def _look(self) -> None:
        free, total = free_space.space_of(self._share_folder.pin)
        fallen = max(0, self._free_bytes - free)
        self._looks += 1
        # Expected growth until the next look, at the rate since the last fall: some file systems
        # (ZFS, btrfs) account for the writes of some seconds at once.
        coming = 2 * fallen // self._looks
        self._free_bytes = free
        if fallen:
            self._looks = 0
        enough = not total or free - coming >= free_space.reserve_bytes(total)
        if self._ended or enough and self._has_inodes():
            return
        self._ended = (
            f"{self._place}: the share opened here was closed, because free space ran low; "
            "free some space, or use --client-share"
        )
        self.end()
        self._share_folder.empty()

    def _has_inodes(self) -> bool:
        """Whether enough inodes are free, without which others can create no files.

        A run itself needs a few of them; some file systems have as many as they have bytes.
        """
        status = os.fstatvfs(self._share_folder.pin)
        self._inodes = max(self._inodes, status.f_favail)
        used = self._inodes - status.f_favail
        return not status.f_files or used < MOST_INODES or status.f_favail >= status.f_files // 10


def _remove_files(path: str) -> None:
    """Removes the run's files in its folder on the share."""
    # Somebody may have moved it; the session or the private folder removes the rest.
    with contextlib.suppress(OSError):
        served_file.remove(path)


@contextmanager
def _guard(path: str) -> Iterator[None]:
    """Has the folder removed even if this process is killed; its name is unique to this run."""
    place, name = os.path.split(path)
    with own_folder(removal.RUN, place, name) as folder:
        folder.adopt()
        yield
        # The session ends after this, and removes the rest.
        folder.disown()


@contextmanager
def _look_repeatedly(look: Callable[[], None]) -> Iterator[None]:
    """Calls `look` repeatedly in a thread while the block runs."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(WATCH_SECONDS):
            # A file may vanish meanwhile, or be another user's.
            with contextlib.suppress(OSError):
                look()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class _WriteBack:
    """Starts write-back of arriving data, as our own copies do.

    The server's program does not flush during a copy: all writes would wait for the end.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._begun: dict[str, int] = {}

    def look(self) -> None:
        """Starts it for each file that has grown enough."""
        for entry in os.scandir(self._folder):
            size = entry.stat(follow_symlinks=False).st_size
            if size - self._begun.get(entry.name, 0) < WRITE_BACK_BYTES:
                continue
            self._begun[entry.name] = size
            with descriptor(os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)) as fd:
                served_file.start_write_back(fd)
