"""What the server demands, refuses or does to the run's files: rows 12 to 22, 41, 45 and 46."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from functools import partial

from fault_world import BEFORE, PASSWORD, PATIENCE_SECONDS, Row, World, usual, wait_for
from impacket.smb3structs import (
    FILE_SHARE_DELETE,
    FILE_SHARE_READ,
    FILE_SHARE_WRITE,
)
from impacket.smbconnection import SessionError, SMBConnection

LOGIN = frozenset({77})
THIRD_HOST = "127.0.0.9"
HOLD_SECONDS = 3.0
TRIES = 20


def open_another(world: World, share_mode: int, name: str = "") -> None:
    """A second client opens the run's files (or one that is named) and holds them for a while."""
    assert world.server is not None
    server = world.server
    names = [name] if name else _run_files(world)
    session = SMBConnection(world.address, world.address, sess_port=server.port)
    session.login(server.username, PASSWORD)
    tree = session.connectTree(server.share)
    for each in names:
        # it may be gone again, or be held by the run against this
        with contextlib.suppress(SessionError):
            session.openFile(tree, each, desiredAccess=0x1, shareMode=share_mode)
    timer = threading.Timer(HOLD_SECONDS, session.close)
    timer.start()
    world.undo(timer.join)


def _run_files(world: World) -> list[str]:
    found: list[str] = []

    def look() -> list[str]:
        files = [each for each in world.share.rglob("*") if each.is_file()]
        found.extend(str(each.relative_to(world.share)) for each in files)
        return found

    if world.moment != BEFORE:
        wait_for(look, PATIENCE_SECONDS)
    return [each.replace("/", "\\") for each in found]


def own_file(world: World) -> None:
    """A file of the user's that the run is to pull."""
    (world.share / "own.bin").write_bytes(os.urandom(1 << 19))
    world.more += ["--file", "own.bin"]


def lock(world: World) -> None:
    """Somebody holds it alone."""
    open_another(world, 0, "own.bin")


def unknown_user(world: World) -> None:
    """One that the server takes for a guest."""
    if world.moment == BEFORE:
        world.user = "nobody-known"
        return
    assert world.server is not None
    world.call("pdbedit", "-s", world.server.configuration, "-x", "-u", "root", check=False)


def wrong_login(world: World) -> None:
    """The account is disabled."""
    assert world.server is not None
    world.call("pdbedit", "-s", world.server.configuration, "-c", "[D]", "-u", "root")


def sink(world: World) -> None:
    """Listens where referrals lead, and counts whoever calls."""
    listener = socket.create_server((THIRD_HOST, 445))

    def close() -> None:
        listener.settimeout(0.0)
        with contextlib.suppress(BlockingIOError):
            listener.accept()
            world.wrong.append("the host of the referral was asked")
        listener.close()

    world.undo(close)


def corrupt(world: World) -> None:
    """What was written reads differently from now on: the server drops what it acknowledged."""
    done = threading.Event()

    def work() -> None:
        while not done.wait(0.02):
            for path in world.share.rglob("*"):
                with contextlib.suppress(OSError), path.open("r+b", buffering=0) as file:
                    file.write(b"\xa5" * min(65536, path.stat().st_size))

    thread = threading.Thread(target=work)
    thread.start()

    def end() -> None:
        done.set()
        thread.join()

    world.undo(end)


READABLE, DELETABLE = FILE_SHARE_READ | FILE_SHARE_WRITE, FILE_SHARE_DELETE
OFFERED = ("server min protocol = NT1", "server max protocol = NT1")
REFERRAL = ("msdfs root = yes", f"msdfs proxy = \\{THIRD_HOST}\\share")
SMALL = ("smb2 max read = 65536", "smb2 max write = 65536", "smb2 max credits = 32")
ROWS = (
    Row(
        *("12", "no right to the share"),
        share_conf=("valid users = nobody",),
        before=LOGIN,
        during=usual(77),
    ),
    Row("13", "share made read-only", share_conf=("read only = yes",), before=usual(77)),
    Row("15", "the user's file locked", lock, prepare=own_file, before=usual(77)),
    Row("16", "a second reader", partial(open_another, share_mode=READABLE | DELETABLE)),
    Row("17", "signing required", conf=("server signing = mandatory",)),
    Row("17b", "signing switched off", conf=("server signing = disabled",)),
    Row("18", "encryption required", conf=("server smb encrypt = required",)),
    Row("18b", "encryption switched off", conf=("server smb encrypt = off",)),
    Row("19", "SMB1 alone", conf=OFFERED),
    Row(
        *("20", "login taken for a guest's", unknown_user),
        conf=("map to guest = Bad User",),
        before=LOGIN,
        during=usual(77),
    ),
    Row(
        *("21", "NTLM switched off"),
        conf=("ntlm auth = disabled",),
        before=LOGIN,
        during=usual(77),
    ),
    Row("21b", "account disabled", wrong_login, before=LOGIN, during=usual(77)),
    Row("22", "referred to a third host", sink, share_conf=REFERRAL, before=usual(69, 77)),
    Row("41", "opened by another, not to be deleted", partial(open_another, share_mode=READABLE)),
    Row("45", "32 credits, 64 KiB a request", conf=SMALL),
    Row("46", "acknowledged writes dropped", corrupt, says="alter|differ|corrupt|mismatch"),
)
