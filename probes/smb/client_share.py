"""A share on the client, held for a run, so that the server can start copies as well.

The user's own one (--client-share); else a private Samba on the client's address towards the
server, for the server alone and gone with the run.
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

from probes.core.meaning import Address, Folder, Hex, Text
from probes.core.records import Access, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import free_space, nameless, removal, served_file
from probes.files.own_folder import OwnFolder, own_folder
from probes.programs import served_folder
from probes.programs.samba import find_smbd, private_samba, vanishing_folder
from probes.smb import run_folder
from probes.system.platform import descriptor, os
from probes.system.tools import others_can_change
from probes.system.waiting import signal

SHARE = "bottleneck"
USER = "bottleneck"
GIVEN, SAMBA = "given", "samba"
"""Who serves the share: the user's server, a private Samba."""
REMEDY = "install samba, or use --client-share"
WATCH_SECONDS = 0.02
MOST_INODES = 1000
"""Of all that a run makes there, many times over."""
WRITE_BACK_BYTES = 8 << 20


@dataclass(frozen=True)
class Setting:
    """Which share, for whom, and how it is to be reached."""

    run: Hex
    """Hex id of the run, 16 digits."""
    dialect: Text
    """In which the copies will run."""
    folder: Folder
    """The client's folder; a private share lies in a folder of its own below
    it, or where others may write to it in the system's folder for temporary files."""
    address: Address = ""
    """Private share: where it listens."""
    allow: tuple[Text, ...] = ()
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
    demands, free_bytes, total_bytes, engine_server (GIVEN, SAMBA), local_path (of the
    folder on this host; empty: not found), on_folder_disk (whether it is known to lie on the file
    system of the client's folder). Raises Refused and Unavailable with the remedy.
    """
    name = f"bottleneck-{setting.run}"
    with ExitStack() as stack:
        if peer.share:
            opened = stack.enter_context(_in_run_folder(setting, peer, outlived=True))
            path = served_folder.locate(name, None) or ""
            if path:
                stack.enter_context(_guarded(path))
            server = GIVEN
        else:
            opened, server, path = stack.enter_context(_private(setting, name))
        if path:
            stack.callback(_clear, path)
            stack.enter_context(_beside(_WriteBack(path).look))
        near = bool(path) and Path(path).stat().st_dev == Path(setting.folder).stat().st_dev
        facts = {
            **opened.facts,
            "engine_server": server,
            "local_path": path,
            "on_folder_disk": near,
        }
        yield replace(opened, facts=facts)


def single_address(text: str) -> str:
    """An IP address without its scope, as file servers compare them.

    Raises Unavailable for everything else that their lists of hosts understand: names, networks,
    ALL. Another host may have told it.
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
    """A session of our own with the share: it makes the folder, and tells what is demanded."""
    made = run_folder.Setting(run=setting.run, dialect=setting.dialect, outlived=outlived)
    return run_folder.hold(made, peer)


@contextmanager
def _private(setting: Setting, name: str) -> Iterator[tuple[Endpoint, str, str]]:
    if find_smbd() is None:
        raise Unavailable(f"Samba was not found on this host ({REMEDY})")
    access = Access(USER, secrets.token_urlsafe(24))
    allow = tuple(map(single_address, setting.allow))
    # In a folder that others may change they could put something else in the share's place.
    is_open = others_can_change(f"{setting.folder}/.", sticky=True)
    place = nameless.on_disk() if is_open else setting.folder
    free_space.fitting(free_space.LEAST_BYTES, place)
    with ExitStack() as stack:
        remedy = "use another --folder, or --client-share"
        root, made = stack.enter_context(vanishing_folder("bottleneck-share-", place, remedy))
        kept = _Reserve(made, place)
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
        kept.end = partial(os.killpg, served.process_id, signal.SIGKILL)
        stack.enter_context(kept.watched())
        held = stack.enter_context(_in_run_folder(setting, served.endpoint, outlived=False))
        yield held, SAMBA, str(root / name)


class _Reserve:
    """Ends a private share before what others write to it touches what has to stay free."""

    def __init__(self, made: OwnFolder, place: str) -> None:
        """made: what is served; place: where it lies, for the message."""
        self.end: Callable[[], None] = lambda: None
        """Ends its server at once."""
        self._made = made
        self._place = place
        self._free_bytes = self._inodes = 0
        self._looks = 0
        """Since it fell."""
        self._ended = ""

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watches it until left. Raises Refused ("space") where it was ended meanwhile."""
        with _beside(self._look):
            try:
                yield
            except Exception:
                # With the share all that is done with it breaks.
                if not self._ended:
                    raise
        if self._ended:
            raise Refused("space", self._ended)

    def _look(self) -> None:
        free, total = free_space.space_of(self._made.pin)
        fallen = max(0, self._free_bytes - free)
        self._looks += 1
        # What comes until the next look, if it comes as fast as since the last fall: some file
        # systems (ZFS, btrfs) tell at once what was written in seconds.
        coming = 2 * fallen // self._looks
        self._free_bytes = free
        if fallen:
            self._looks = 0
        enough = not total or free - coming >= free_space.reserve_bytes(total)
        if self._ended or enough and self._names_left():
            return
        self._ended = (
            f"{self._place}: the share opened here was closed, because free space ran low; "
            "free some space, or use --client-share"
        )
        self.end()
        self._made.empty()

    def _names_left(self) -> bool:
        """Whether others can make files there still: a full table of inodes leaves them no room.

        A run itself needs a few of them; some file systems have as many as they have bytes.
        """
        about = os.fstatvfs(self._made.pin)
        self._inodes = max(self._inodes, about.f_favail)
        took = self._inodes - about.f_favail
        return not about.f_files or took < MOST_INODES or about.f_favail >= about.f_files // 10


def _clear(path: str) -> None:
    """Removes the run's files in its folder on the share."""
    # Somebody may have moved it; what stays goes with the session or with the private folder.
    with contextlib.suppress(OSError):
        served_file.remove(path)


@contextmanager
def _guarded(path: str) -> Iterator[None]:
    """Has the folder removed although this process is killed; its name is this run's alone."""
    place, name = os.path.split(path)
    with own_folder(removal.RUN, place, name) as made:
        made.adopt()
        yield
        # Whatever is left by now the session removes, which is left after this.
        made.disown()


@contextmanager
def _beside(look: Callable[[], None]) -> Iterator[None]:
    """Has a thread look again and again until the block is left."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(WATCH_SECONDS):
            # a file that went meanwhile, or that is another user's, is left alone
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
    """Has the disk begin to write what arrives, as copies that we make ourselves do.

    The server's program flushes nothing on its way: all would wait for the end.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._begun: dict[str, int] = {}

    def look(self) -> None:
        """Begins it for each file that has grown enough."""
        for entry in os.scandir(self._folder):
            size = entry.stat(follow_symlinks=False).st_size
            if size - self._begun.get(entry.name, 0) < WRITE_BACK_BYTES:
                continue
            self._begun[entry.name] = size
            with descriptor(os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)) as fd:
                served_file.start_write_back(fd)
