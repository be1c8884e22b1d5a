"""Faults of the network and the server: rows 1 to 8, 12, 13, 15 to 22, 32, 41, 45 and 46."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from pathlib import Path

from fault_world import BEFORE, PASSWORD, PATIENCE_SECONDS, Row, World, fault, usual, wait_for
from impacket.smb3structs import FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE
from impacket.smbconnection import SessionError, SMBConnection

NAME = "nas.example"
THIRD_HOST = "127.0.0.9"
HOLD_SECONDS = 3.0


def kill_session(world: World) -> None:
    """The process of smbd that serves the run; before the run there is none."""
    for pid in world.sessions():
        if pid != world.smbd.process_id:
            world.call("kill", "-9", pid, check=False)


def reset(world: World) -> None:
    """Each connection with the server ends with a RST; before the run each try does."""
    if world.moment == BEFORE:
        world.packets("tcp dport {port} reject with tcp reset")
    else:
        world.call("ss", "-K", "dport", "=", f":{world.smbd.port}", check=False)


def stop_server(world: World) -> None:
    """It holds its connections and answers no more."""
    world.signal_server(signal.SIGSTOP)
    world.undo(world.signal_server, signal.SIGCONT)


@fault
def lost(world: World, rule: str) -> None:
    world.packets(rule)


@fault
def by_name(world: World, hosts: str = "127.0.0.1 {name}\n") -> None:
    """The server has a name, in a file of hosts of the cell's own."""
    (world.own / "hosts").write_text(hosts.format(name=NAME))
    world.mount(Path("/etc/hosts"), "--bind", world.own / "hosts")
    world.host = NAME


def dead_resolver(world: World) -> None:
    """The name is known no more, and whoever resolves names does not answer."""
    (world.own / "hosts").write_text("")
    (world.own / "resolv.conf").write_text("nameserver 127.0.0.53\n")
    world.mount(Path("/etc/resolv.conf"), "--bind", world.own / "resolv.conf")
    world.packets("udp dport 53 drop")


def by_six(world: World) -> None:
    world.address = "::1"
    world.call("ip", "address", "del", "127.0.0.1/8", "dev", "lo", check=False)


def lose_six(world: World) -> None:
    world.call("ip", "-6", "address", "del", "::1/128", "dev", "lo")
    world.undo(world.call, "ip", "-6", "address", "add", "::1/128", "dev", "lo")


@fault
def opened(world: World, share_mode: int, name: str = "") -> None:
    """A second client opens the run's files (or one that is named) and holds them for a while."""
    session = SMBConnection(world.address, world.address, sess_port=world.smbd.port)
    session.login(world.smbd.username, PASSWORD)
    tree = session.connectTree(world.smbd.share)
    for each in [name] if name else _run_files(world):
        # it may be gone again, or be held by the run against this
        with contextlib.suppress(SessionError):
            session.openFile(tree, each, desiredAccess=0x1, shareMode=share_mode)
    timer = threading.Timer(HOLD_SECONDS, session.close)
    timer.start()
    world.undo(timer.join)


def _run_files(world: World) -> list[str]:
    def look() -> list[str]:
        files = [each for each in world.share.rglob("*") if each.is_file()]
        return [str(each.relative_to(world.share)).replace("/", "\\") for each in files]

    own_files: list[str] = [] if world.moment == BEFORE else wait_for(look, PATIENCE_SECONDS)
    return own_files


def own_file(world: World) -> None:
    (world.share / "own.bin").write_bytes(os.urandom(1 << 19))
    world.options += ["--file", "own.bin"]


def unknown_user(world: World) -> None:
    """One that the server takes for a guest."""
    if world.moment == BEFORE:
        world.user = "nobody-known"
        return
    world.call("pdbedit", "-s", world.smbd.configuration, "-x", "-u", "root", check=False)


def disabled(world: World) -> None:
    world.call("pdbedit", "-s", world.smbd.configuration, "-c", "[D]", "-u", "root")


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
    """Corrupts what was written: the server drops what it acknowledged."""
    done = threading.Event()

    def work() -> None:
        while not done.wait(0.02):
            for path in world.share.rglob("*"):
                with contextlib.suppress(OSError), path.open("r+b", buffering=0) as file:
                    file.write(b"\xa5" * min(65536, path.stat().st_size))

    thread = threading.Thread(target=work)
    thread.start()
    world.undo(thread.join)
    world.undo(done.set)


UNAWARE = "the server does not know yet that the client is gone"
SMBD_GONE = "the server that would have removed them is gone"
NOBODY_TELLS = "nobody can tell the run that they are gone: its note waits"
READABLE, DELETABLE = FILE_SHARE_READ | FILE_SHARE_WRITE, FILE_SHARE_DELETE
NT1 = ("server min protocol = NT1", "server max protocol = NT1")
REFERRAL = ("msdfs root = yes", f"msdfs proxy = \\{THIRD_HOST}\\share")
SMALL = ("smb2 max read = 65536", "smb2 max write = 65536", "smb2 max credits = 32")
TWO = by_name("::1 {name}\n127.0.0.1 {name}\n")
GUEST = ("map to guest = Bad User",)
FIREWALL = "tcp flags & (syn|ack) == syn tcp dport != {port} reject"


def kill_server(world: World) -> None:
    world.signal_server(signal.SIGKILL)


ROWS = (
    Row("1", "smbd killed", kill_server, refused=69, says="refused|listens", reason=SMBD_GONE),
    Row("1b", "smbd's session killed", kill_session),
    Row("2", "connections reset", reset, refused=69),
    Row("3", "server stopped, half open", stop_server, refused=69, reason=NOBODY_TELLS),
    Row("4", "black hole", lost("tcp dport {port} drop"), refused=69, reason=UNAWARE),
    Row("5", "2% of packets lost", lost("tcp dport {port} numgen random mod 100 < 2 drop")),
    Row("6", "MTU black hole", lost("tcp dport {port} meta length > 1000 drop"), either=(69,)),
    Row("7", "dead resolver", dead_resolver, by_name(), at_start=frozenset({69}), says="resolv"),
    Row("8", "IPv6 only, address gone", lose_six, by_six, refused=69, reason=UNAWARE),
    Row("8b", "two addresses, IPv6 dead", lost("ip6 daddr ::1 drop"), TWO),
    Row("12", "no access to the share", share_conf=("valid users = nobody",), refused=77),
    Row("13", "share made read-only", share_conf=("read only = yes",), at_start=usual(77)),
    Row("15", "the user's file locked", opened(0, "own.bin"), own_file, at_start=usual(77)),
    Row("16", "a second reader", opened(READABLE | DELETABLE)),
    Row("17", "signing required", conf=("server signing = mandatory",)),
    Row("17b", "signing switched off", conf=("server signing = disabled",)),
    Row("18", "encryption required", conf=("server smb encrypt = required",)),
    Row("18b", "encryption switched off", conf=("server smb encrypt = off",)),
    Row("19", "SMB1 alone", conf=NT1),
    Row("20", "login taken for a guest's", unknown_user, conf=GUEST, refused=77),
    Row("21", "NTLM switched off", conf=("ntlm auth = disabled",), refused=77),
    Row("21b", "account disabled", disabled, refused=77),
    Row("22", "referred to a third host", sink, share_conf=REFERRAL, at_start=usual(69, 77)),
    Row("32", "all other ports firewalled", lost(FIREWALL)),
    Row("41", "opened by another, not to be deleted", opened(READABLE)),
    Row("45", "32 credits, 64 KiB a request", conf=SMALL),
    Row("46", "acknowledged writes dropped", corrupt, says="alter|differ|corrupt|mismatch"),
)
