"""Accounts by number; Windows has none."""

from __future__ import annotations

import contextlib
import os

with contextlib.suppress(ImportError):
    import grp
    import pwd


def home(uid: int) -> str:
    """Of an account; empty: it is not known, as of a number without a name in a container."""
    with contextlib.suppress(KeyError, NameError):
        return pwd.getpwuid(uid).pw_dir
    return ""


def name(uid: int) -> str:
    """Of an account; empty: it has none."""
    with contextlib.suppress(KeyError, NameError):
        return pwd.getpwuid(uid).pw_name
    return ""


def private_group(uid: int) -> int:
    """The group that is an account's alone, as useradd(8) makes one for each; -1: root, or none."""
    try:
        user, group = pwd.getpwuid(uid), grp.getgrgid(os.getegid())
    except (KeyError, NameError):
        return -1
    alone = group.gr_name == user.pw_name and {*group.gr_mem} <= {user.pw_name}
    return group.gr_gid if alone and uid != 0 else -1
