"""What the administrator of a host allows every agent there: a file, read before the first request.

`/etc/copy-bottleneck/limits.toml`, a small part of TOML: whole numbers, and lists of text in one
line. An agent that cannot trust or understand the file does not start. Runs on Python 3.9 with the
standard library alone.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

from probes.host.system import os

PATH = "/etc/copy-bottleneck/limits.toml"
LONGEST_BYTES = 64 << 10
NUMBERS = ("bytes", "seconds", "rate")
LISTS = ("folders", "devices", "peers")

_NUMBER = r"0|[1-9][0-9]*(?:_[0-9]+)*"
_TEXT = r'"[^"\\\x00-\x1f]*"'
_LINE = re.compile(
    rf"\s*([a-z]+)\s*=\s*(?:({_NUMBER})|\[\s*((?:{_TEXT}(?:\s*,\s*{_TEXT})*)?)\s*\])\s*(?:#.*)?"
)


class Untrusted(Exception):
    """The file is there and cannot be used; the text says why and what to do, in one line."""


@dataclass(frozen=True)
class Limits:
    """None: no such limit."""

    bytes: Optional[int] = None
    """The sum of the sizes that the requests of one session name."""
    seconds: Optional[int] = None
    """Of a request, and of a session in all."""
    rate: Optional[int] = None
    """Bytes per second over the network. What nothing paces is refused then."""
    folders: Optional[Tuple[str, ...]] = None
    """Only these and what lies below them may be read from or written to."""
    devices: Optional[Tuple[str, ...]] = None
    """Block devices that may be read."""
    peers: Optional[Tuple[str, ...]] = None
    """IP addresses or networks (192.0.2.0/24) that this host may call; no names."""


def load(path: str = PATH) -> Limits:
    """The limits of this host; none where there is no such file.

    Errors: Untrusted, where it belongs to or may be written by others, cannot be read, or holds
    what is no limit.
    """
    try:
        _check_owner(path, os.stat(os.path.dirname(path)))  # noqa: PTH116, PTH120 - by os, as below
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return Limits()
    except OSError as error:
        raise Untrusted(f"{path}: cannot be read by this agent: {error.strerror}") from None
    try:
        told = os.fstat(fd)
        if not stat.S_ISREG(told.st_mode):
            raise Untrusted(f"{path}: not a regular file")
        _check_owner(path, told)
        return parse(os.read(fd, LONGEST_BYTES + 1), path)
    except OSError as error:
        raise Untrusted(f"{path}: cannot be read by this agent: {error.strerror}") from None
    finally:
        os.close(fd)


def _check_owner(path: str, told: os.stat_result) -> None:
    """Raises Untrusted where another user may change the file, or exchange it in its folder."""
    if told.st_uid not in (0, os.geteuid()) or told.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Untrusted(
            f"{path}: other users can change it or its folder; chown root and chmod go-w both"
        )


def parse(content: bytes, path: str = PATH) -> Limits:
    """The limits in a file's content; pure. Errors: Untrusted."""
    if len(content) > LONGEST_BYTES:
        raise Untrusted(f"{path}: larger than {LONGEST_BYTES} bytes")
    found: Dict[str, Any] = {}
    for at, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or match[1] not in (NUMBERS if match[2] else LISTS) or match[1] in found:
            known = ", ".join((*NUMBERS, *LISTS))
            raise Untrusted(f"{path}: line {at}: not a limit; must be one of {known}, each once")
        name, number, items = match.groups()
        found[name] = int(number) if number else tuple(re.findall(r'"([^"]*)"', items))
        if name in ("folders", "devices") and not all(each[:1] == "/" for each in found[name]):
            raise Untrusted(f"{path}: line {at}: each path must begin with a slash")
    return Limits(**found)
