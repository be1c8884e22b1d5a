"""What --file and --device name: a file of the user's, a block device; both are only ever read."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from typing import Literal

from bottleneck.target import Target
from probes.stage import Refused

_HERE = re.compile(r"/|\.{1,2}/|~/")
"""How a path of this host begins."""
_NOT_IN_A_NAME = re.compile(r'[\x00-\x1f<>:"|?*]')
SERVER_PREFIX = "server:"


@dataclass(frozen=True)
class NamedFile:
    """A file that the user named."""

    side: Literal["client", "server"]
    path: str
    """At the client an absolute path; at the server the path below TARGET, backslashes in it."""


@dataclass(frozen=True)
class NamedDevice:
    """A block device that the user named."""

    side: Literal["client", "server"]
    path: str


def parse_file(text: str, target: Target | None) -> NamedFile:
    """The file of --file: below TARGET, a share, unless it begins as a path of this host does.

    Without a TARGET it is always this host's. Raises Refused ("usage", "permission").
    """
    if target is not None and target.path:
        raise Refused("usage", "--file needs the share itself as TARGET: //host/share")
    if target is None or _HERE.match(text):
        return NamedFile("client", _regular_file(text))
    parts = [part for part in text.replace("\\", "/").split("/") if part]
    if not parts or any(part in {".", ".."} or _NOT_IN_A_NAME.search(part) for part in parts):
        raise Refused("usage", f"--file {text!r} is no name of a file below TARGET")
    return NamedFile("server", "\\".join(parts))


def parse_device(text: str) -> NamedDevice:
    """The block device of --device: this host's, or with server: in front of it the server's.

    Raises Refused, "usage": it is none. It is opened later, for reading alone.
    """
    if text.startswith(SERVER_PREFIX):
        path = text.removeprefix(SERVER_PREFIX)
        if not path.startswith("/"):
            raise Refused("usage", f"--device {text}: write server:/dev/NAME")
        return NamedDevice("server", path)
    try:
        mode = os.stat(text).st_mode  # noqa: PTH116 - a name with a NUL is a ValueError here
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no path"
        raise Refused("usage", f"--device {text!r}: {why.lower()}") from None
    if not stat.S_ISBLK(mode):
        raise Refused("usage", f"--device {text!r} is no block device: write /dev/NAME")
    return NamedDevice("client", os.path.abspath(text))  # noqa: PTH100 - a link stays one


def _regular_file(text: str) -> str:
    path = os.path.abspath(os.path.expanduser(text))  # noqa: PTH100, PTH111 - as the user wrote it
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - a name with a NUL is a ValueError here
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no path"
        raise Refused("usage", f"--file {text!r}: {why.lower()}") from None
    if stat.S_ISBLK(mode):
        raise Refused("usage", f"--file {text!r} is a block device: --device reads one")
    if not stat.S_ISREG(mode):
        raise Refused("usage", f"--file {text!r} is no regular file")
    if not os.access(path, os.R_OK):
        raise Refused("permission", f"--file {text!r}: no right to read it")
    return path
