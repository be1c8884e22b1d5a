"""What strace(1) saw of a run: each program that was started, each byte that was written."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

from secret_forms import found_in
from secret_sinks import Forms, Leak, is_users_file

CALLS = (
    "execve,execveat,write,pwrite64,writev,pwritev,pwritev2,sendto,sendmsg,sendmmsg,"
    "symlink,symlinkat,mkdir,mkdirat,openat,rename,renameat,renameat2"
)
LONGEST_BYTES = 65536
_CALL = re.compile(rb"(\w+)\((?:\d+<([^>]*)>)?")
_TEXT = re.compile(rb'"((?:[^"\\]+|\\.)*)"')
_REQUEST = re.compile(rb'\{"id":\d+,"do":"(?:hold|initiate)",.*"peer":\{')
DUMPED = b"(core dumped)"


def command(folder: Path) -> list[str]:
    """What stands before a command to have it watched; a file for each process in the folder."""
    calls = ["-e", f"trace={CALLS}", "-e", "signal=none"]
    return ["strace", "-ff", "-v", "-y", "-s", str(LONGEST_BYTES), *calls, "-o", f"{folder}/of"]


def in_trace(folder: Path, forms: Forms, secret: str, handed_over_to: int | None) -> set[Leak]:
    """Every leak that the files of a trace show.

    handed_over_to: the process that was started with the secret in its environment.
    """
    found: set[Leak] = set()
    for path in folder.iterdir():
        first = path.name.endswith(f".{handed_over_to}")
        with path.open("rb") as lines:
            for line in lines:
                if first and line.startswith(b"execve("):
                    first = False
                    continue
                found.update(_in_call(line, forms, secret))
    return found


def _in_call(line: bytes, forms: Forms, secret: str) -> Iterator[Leak]:
    if DUMPED in line and line.startswith(b"+++"):
        yield Leak("core", "all that the process knew")
    call = _CALL.match(line)
    if call is None:
        return
    name, target = call[1].decode(), (call[2] or b"").decode(errors="replace")
    texts = [codecs.escape_decode(each)[0] for each in _TEXT.findall(line)]
    data = (b"\0" if name.startswith("exec") else b"").join(texts)
    held = found_in(data, forms)
    if not held or is_users_file(target) or _is_hand_over(target, data, forms, secret):
        return
    where = target.partition(":")[0] if ":[" in target else target
    for form in held:
        yield Leak(f"{name}{f' to {where}' if where else ''}", form)


def _is_hand_over(target: str, data: bytes, forms: Forms, secret: str) -> bool:
    """Whether a process of ours gets its login: a request to an agent, or the password's own line.

    An agent's reply is neither.
    """
    if not target.startswith("pipe:["):
        return False
    lines = [line for line in data.split(b"\n") if found_in(line, forms)]
    return all(line == secret.encode() or _REQUEST.match(line) for line in lines)
