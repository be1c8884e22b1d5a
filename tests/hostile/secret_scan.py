"""Every form of a password, and where it can come to light: files, processes, system calls."""

from __future__ import annotations

import base64
import codecs
import contextlib
import os
import re
import secrets
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from impacket.ntlm import compute_nthash

ALIGNMENTS = 3
"""Base64 writes three bytes as four characters: where a text begins decides how it looks."""


@dataclass(frozen=True)
class Secret:
    """A password, and its marked part: no quoting of a format changes that."""

    marked: str = field(default_factory=lambda: f"Leak{secrets.token_hex(10)}")

    @property
    def password(self) -> str:
        """With characters that a shell, a URL or a file format has to quote."""
        return f"%47 &'\"${self.marked}<>"

    def forms(self) -> dict[str, bytes]:
        digest, coded = compute_nthash(self.password), dict[str, bytes]()
        plain = {coding: self.marked.encode(coding) for coding in ("utf-8", "utf-16-le")}
        for name, text in {**plain, "NT hash": digest}.items():
            coded[name] = text
            coded[f"{name} hex"] = text.hex().encode()
            coded[f"{name} HEX"] = text.hex().upper().encode()
        for coding, text in plain.items():
            for index in range(ALIGNMENTS):
                coded[f"{coding} base64, alignment {index}"] = _inner_base64(text, index)
        coded["URL, each byte"] = "".join(f"%{each:02X}" for each in plain["utf-8"]).encode()
        return coded


def _inner_base64(plain: bytes, offset: int) -> bytes:
    """Returns base64 of it behind so many other bytes, without what depends on its neighbours.

    No 62nd or 63rd character comes out of letters and digits in UTF-8: the URL-safe alphabet is
    the same.
    """
    end = (len(plain) + offset) // 3 * 3
    coded = base64.b64encode((b"\0" * offset + plain)[:end])
    return coded[4:] if offset else coded


def found_in(data: bytes, forms: dict[str, bytes]) -> list[str]:
    return [name for name, form in forms.items() if form in data]


STEP_BYTES = 8 << 20
OVERLAP_BYTES = 1 << 10
SMALL_BYTES = 1 << 20
"""Bytes read of each file while a run is at work; all of it is read at its end."""
LOOK_SECONDS = 0.02

Forms = dict[str, bytes]


@dataclass(frozen=True, order=True)
class Leak:
    where: str
    form: str


def is_users_file(path: str) -> bool:
    """Whether it is the list of users of a private Samba, where its own hash has to be."""
    return "/bottleneck-samba-" in path and path.endswith("/private/passdb.tdb")


def in_file(path: Path, forms: Forms, most_bytes: int | None = None) -> set[str]:
    names: set[str] = set()
    rest = b""
    with path.open("rb") as file:
        while chunk := file.read(most_bytes or STEP_BYTES):
            names.update(found_in(rest + chunk, forms))
            rest = chunk[-OVERLAP_BYTES:]
            if most_bytes:
                break
    return names


def in_tree(root: Path, forms: Forms, most_bytes: int | None = None) -> Iterator[Leak]:
    """Yields leaks in the content and the names of the files below a folder."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            for form in found_in(os.fsencode(name), forms):
                yield Leak("name of a file", form)
            with contextlib.suppress(OSError):  # removed meanwhile
                if not stat.S_ISREG(path.lstat().st_mode) or is_users_file(str(path)):
                    continue
                for form in in_file(path, forms, most_bytes):
                    yield Leak(f"file {path.relative_to(root)}", form)


class Sampler(threading.Thread):
    """Reads arguments and environment of every process that began after it, until it is stopped.

    A secret that was handed over in the environment may be in that of its receiver until this has
    started a process of its own: no program runs before its first line.
    """

    def __init__(self, forms: Forms, folders: list[Path], is_in_environment: bool) -> None:
        super().__init__(daemon=True)
        self.forms, self.folders, self.is_in_environment = forms, folders, is_in_environment
        self.may_hold_pid: int | None = None
        self.leaks: set[Leak] = set()
        self.looked = 0
        self._older = set(os.listdir("/proc"))
        self._passed_over: set[int] = set()
        self._ended = threading.Event()

    def pass_over(self, pid: int) -> None:
        """Leaves a process of the scanner's own out."""
        self._passed_over.add(pid)

    def run(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self.look()

    def stop(self) -> None:
        """Ends it, with a last look."""
        self._ended.set()
        self.join()
        self.look()

    def look(self) -> None:
        """One look at all processes, and at what lies in the folders."""
        for name in os.listdir("/proc"):
            if name.isdigit() and name not in self._older and int(name) not in self._passed_over:
                with contextlib.suppress(OSError):  # it ended meanwhile
                    self._look_at(int(name))
        for folder in self.folders:
            self.leaks.update(in_tree(folder, self.forms, SMALL_BYTES))
        self.looked += 1

    def _look_at(self, pid: int) -> None:
        proc = Path(f"/proc/{pid}")
        for form in found_in((proc / "cmdline").read_bytes(), self.forms):
            self.leaks.add(Leak("arguments of a process", form))
        children = (proc / f"task/{pid}/children").read_text()
        if self.is_in_environment and self.may_hold_pid in (None, pid) and not children:
            return
        for form in found_in((proc / "environ").read_bytes(), self.forms):
            self.leaks.add(Leak("environment of a process", form))


# -- what strace(1) saw: each program that was started, each byte that was written --

CALLS = (
    "execve,execveat,write,pwrite64,writev,pwritev,pwritev2,sendto,sendmsg,sendmmsg,"
    "symlink,symlinkat,mkdir,mkdirat,openat,rename,renameat,renameat2"
)
LONGEST_BYTES = 65536
_CALL = re.compile(rb"(\w+)\((?:\d+<([^>]*)>)?")
_TEXT = re.compile(rb'"((?:[^"\\]+|\\.)*)"')
_REQUEST = re.compile(rb'\{"id":\d+,"do":"(?:hold|initiate)",.*"peer":\{')
DUMPED = b"(core dumped)"


def tracing_words(folder: Path) -> list[str]:
    """Returns words that have a command watched; a file for each process in the folder."""
    calls = ["-e", f"trace={CALLS}", "-e", "signal=none"]
    return ["strace", "-ff", "-v", "-y", "-s", str(LONGEST_BYTES), *calls, "-o", f"{folder}/of"]


def in_trace(folder: Path, forms: Forms, secret: str, may_hold_pid: int | None) -> set[Leak]:
    """Every leak that the files of a trace show.

    may_hold_pid: the process that was started with the secret in its environment.
    """
    leaks: set[Leak] = set()
    for path in folder.iterdir():
        first = path.name.endswith(f".{may_hold_pid}")
        with path.open("rb") as lines:
            for line in lines:
                if first and line.startswith(b"execve("):
                    first = False
                    continue
                leaks.update(_in_call(line, forms, secret))
    return leaks


def _in_call(line: bytes, forms: Forms, secret: str) -> Iterator[Leak]:
    if DUMPED in line and line.startswith(b"+++"):
        yield Leak("core", "all that the process knew")
    call = _CALL.match(line)
    if call is None:
        return
    name, target = call[1].decode(), (call[2] or b"").decode(errors="replace")
    texts = [codecs.escape_decode(each)[0] for each in _TEXT.findall(line)]
    data = (b"\0" if name.startswith("exec") else b"").join(texts)
    names = found_in(data, forms)
    if not names or is_users_file(target) or _is_hand_over(target, data, forms, secret):
        return
    where = target.partition(":")[0] if ":[" in target else target
    for form in names:
        yield Leak(f"{name}{f' to {where}' if where else ''}", form)


def _is_hand_over(target: str, data: bytes, forms: Forms, secret: str) -> bool:
    """Whether a process of ours gets its login: a request to an agent, or the password's own line.

    An agent's reply is neither.
    """
    if not target.startswith("pipe:["):
        return False
    lines = [line for line in data.split(b"\n") if found_in(line, forms)]
    return all(line == secret.encode() or _REQUEST.match(line) for line in lines)
