#!/usr/bin/env python3
"""Leaks on purpose: what the scanner has to find. They are run as `secret_plants.py NAME...`.

The secret's file is named by LEAKS_SECRET; its second line is the marked part.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from html import escape
from pathlib import Path
from urllib.parse import quote

from impacket.ntlm import compute_nthash

Plant = Callable[[str], object]
_waiting: list[subprocess.Popen[bytes]] = []


def _child(*arguments: str, environment: dict[str, str] | None = None) -> None:
    """A process that stays for as long as we do."""
    command = ["/bin/sh", "-c", "read -r _", *arguments]
    variables = {**os.environ, **(environment or {})}
    _waiting.append(subprocess.Popen(command, stdin=subprocess.PIPE, env=variables))


def _short_process(*arguments: str, environment: dict[str, str] | None = None) -> None:
    """A process that nobody who only looks now and then would see."""
    subprocess.run(["/bin/true", *arguments], env={**os.environ, **(environment or {})})


def _file(name: str, text: str | bytes, folder: str | Path = "") -> None:
    Path(folder, name).write_bytes(text if isinstance(text, bytes) else text.encode())


def _deleted_file(data: bytes) -> None:
    with tempfile.TemporaryFile() as file:
        os.pwrite(file.fileno(), data, 0)


def _pipe(data: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(reading)
    os.close(writing)


def _sent_message(data: bytes, scattered: bool = False) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as connection,
    ):
        if scattered:
            connection.sendmsg([b"head", data])
        else:
            connection.sendall(data)


def _traceback(secret: str) -> None:
    try:
        raise ValueError(f"wrong password {secret!r}")
    except ValueError:
        traceback.print_exc()


def _memory_file(data: bytes) -> None:
    fd = os.memfd_create("report")
    os.writev(fd, [b"x", data])


def _die(secret: str) -> None:
    os.kill(os.getpid(), signal.SIGABRT)


def _base64(text: str, offset: int = 0, coding: str = "utf-8") -> bytes:
    return base64.b64encode(b"x" * offset + text.encode(coding) + b"xyz")


SEEN: dict[str, Plant] = {
    "argument of a child": _child,
    "argument of a child, HEX": lambda secret: _child(secret.encode().hex().upper()),
    "environment of a child": lambda secret: _child(environment={"WORD": secret}),
    "environment of a child, base64": lambda secret: _child(
        environment={"AUTH": _base64(secret).decode()}
    ),
    "log": lambda secret: _file("run.log", f"login as anna with {secret}\n"),
    "report as JSON": lambda secret: _file("report.json", json.dumps({"note": secret})),
    "page": lambda secret: _file("page.html", f"<p>{escape(secret)}</p>"),
    "ticket, base64 behind 1 byte": lambda secret: _file("ticket.md", _base64(secret, 1)),
    "temporary file, base64 behind 2 bytes": lambda secret: _file(
        "state", _base64(secret, 2), tempfile.gettempdir()
    ),
    "temporary file, UTF-16 in base64": lambda secret: _file(
        "lock", _base64(secret, 1, "utf-16-le"), tempfile.gettempdir()
    ),
    "file at home, NT hash": lambda secret: _file(
        ".smbpasswd", compute_nthash(secret).hex().upper(), Path.home()
    ),
    "name of a file": lambda secret: _file(quote(secret, safe=""), ""),
    "stdout, URL": lambda secret: print(f"smb://anna:{quote(secret)}@nas/share"),
    "stdout, each byte of a URL": lambda secret: print(
        "".join(f"%{each:02X}" for each in secret.encode())
    ),
    "stderr, traceback": _traceback,
}
"""Plants that need no strace."""

TRACED: dict[str, Plant] = {
    "core": _die,
    "execve, argument in hex": lambda secret: _short_process(secret.encode().hex()),
    "execve, environment": lambda secret: _short_process(environment={"WORD": secret}),
    "write to a deleted file, UTF-16": lambda secret: _deleted_file(secret.encode("utf-16-le")),
    "writev to memory": lambda secret: _memory_file(secret.encode()),
    "send in clear": lambda secret: _sent_message(b"PASS " + secret.encode()),
    "sendmsg of the NT hash": lambda secret: _sent_message(compute_nthash(secret), True),
    "reply of an agent": lambda secret: _pipe(
        json.dumps({"id": 7, "failed": f"no login with {secret}"}).encode() + b"\n"
    ),
}
PLANTS = SEEN | TRACED


def main() -> None:
    secret, _ = Path(os.environ["LEAKS_SECRET"]).read_text().split("\n")
    for name in sys.argv[1:]:
        PLANTS[name](secret)
    sys.stdout.flush()
    Path("ready").touch()
    sys.stdin.read()
    for each in _waiting:
        each.communicate()


if __name__ == "__main__":
    main()
