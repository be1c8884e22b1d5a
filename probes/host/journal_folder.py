"""Where the journal's entries lie: a folder that is this user's alone, gone while it is empty."""

from __future__ import annotations

import contextlib
import os
import pwd
from typing import Iterator, Optional, Tuple

FALLBACK = "/var/tmp/copy-bottleneck-{}"
"""For a user whose home cannot be written to; {}: the user's number."""


def made() -> Optional[int]:
    """Descriptor of the folder of entries, made where it is missing; None: there can be none."""
    for path in _paths():
        with contextlib.suppress(OSError):  # read-only, or another user's: the next one
            os.makedirs(path, 0o700, exist_ok=True)  # noqa: PTH103 - any bytes
            fd = _opened(path)
            if fd is not None:
                return fd
    return None


def tidy() -> None:
    """Removes the folders of entries, and the one of ours around them, where they are empty."""
    for path in _paths():
        with contextlib.suppress(OSError):  # there are more entries, or a history
            os.rmdir(path)  # noqa: PTH106 - any bytes
            if path.endswith("/copy-bottleneck/runs"):
                os.rmdir(os.path.dirname(path))  # noqa: PTH106, PTH120 - any bytes


def there() -> Iterator[int]:
    """Descriptors of the folders of entries that are there, each until the next is asked for."""
    for path in _paths():
        try:
            runs = _opened(path)
        except OSError:  # there is none
            continue
        if runs is None:
            continue
        try:
            yield runs
        finally:
            os.close(runs)


def _paths() -> Tuple[str, ...]:
    """Where the folder of entries may lie, the best first."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not _is_ours(state):
        home = os.environ.get("HOME", "")
        home = home if _is_ours(home) else _own_home()
        state = f"{home}/.local/state" if home else ""
    fallback = FALLBACK.format(os.geteuid())
    if not _is_ours(state):
        return (fallback,)
    return f"{state}/copy-bottleneck/runs", fallback


def _is_ours(path: str) -> bool:
    """Whether it, or what it would be made in, is this user's: root keeps out of others' homes."""
    if not os.path.isabs(path):  # noqa: PTH117 - any bytes
        return False
    while not os.path.lexists(path):  # noqa: PTH110 - any bytes
        path = os.path.dirname(path)  # noqa: PTH120 - any bytes
    try:
        return os.stat(path).st_uid == os.geteuid()  # noqa: PTH116 - any bytes
    except OSError:
        return False


def _own_home() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:  # a number without a name, as in a container
        return ""


def _opened(path: str) -> Optional[int]:
    """Descriptor of a folder of entries; None: others may write to it. Errors: OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    told = os.fstat(fd)
    if told.st_uid == os.geteuid() and not told.st_mode & 0o077:
        return fd
    os.close(fd)
    return None
