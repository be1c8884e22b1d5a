"""Files without a name: the kernel removes them at their last close, kill -9 included.

Also the place of a run's temporary folders: TMPDIR replaces both /tmp and /var/tmp
(file-hierarchy(7)).
"""

from __future__ import annotations

import errno
import getpass
import secrets
import socket
import tempfile
from contextlib import suppress
from pathlib import PurePath

from probes.core.field_types import Folder
from probes.core.stage import Refused
from probes.system.platform import os

WITHOUT_TMPFILE = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)
"""Errors of vfat, NFS, FUSE and kernels before 3.11 for O_TMPFILE."""


def create(folder: str) -> int:
    """Creates an empty, nameless file in folder; returns its descriptor (O_RDWR, mode 0600).

    O_TMPFILE where the file system knows it; else a random name, created exclusively and unlinked
    at once. An existing file is never opened. Raises OSError of the folder: missing, not
    writable, read-only file system. Source: open(2).
    """
    if hasattr(os, "O_TMPFILE"):
        try:
            # O_EXCL beside O_TMPFILE: nobody can give the file a name later
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600)
        except OSError as error:
            if error.errno not in WITHOUT_TMPFILE:
                raise
    return _created_and_unlinked(folder)


def writable_folder(folder: Folder) -> str:
    """Returns a folder on the folder's file system in which this user may create nameless files.

    Itself, a folder above it, this user's home or one for temporary files: no name appears in
    those. Raises Refused ("permission") where there is none.
    """
    with suppress(OSError):
        os.close(create(folder))
        return folder
    device = os.stat(folder).st_dev  # noqa: PTH116 - any bytes
    usual = (os.path.expanduser("~"), ON_DISK, tempfile.gettempdir())  # noqa: PTH111
    for each in (*map(str, PurePath(folder).parents), *usual):
        with suppress(OSError):
            if hasattr(os, "O_TMPFILE") and os.stat(each).st_dev == device:  # noqa: PTH116
                os.close(os.open(each, os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600))
                return each
    raise Refused(
        "permission",
        f"{getpass.getuser()} on {socket.gethostname()} may not write on the share's file system: "
        "use --agent with an account that may, or root",
    )


def _created_and_unlinked(folder: str) -> int:
    path = os.path.join(folder, f".bottleneck-{secrets.token_hex(16)}")  # noqa: PTH118
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        os.unlink(path)  # noqa: PTH108
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


ON_DISK = "/var/tmp"


def on_disk() -> str:
    """Returns a temporary folder on a disk, where /tmp may be memory: TMPDIR or /var/tmp."""
    return tempfile.gettempdir() if os.environ.get("TMPDIR") else ON_DISK
