"""Accounts by number; Windows has none."""

from __future__ import annotations

import contextlib
import os

with contextlib.suppress(ImportError):
    import grp
    import pwd


def home(uid: int) -> str:
    """Returns an account's home folder; empty: unknown, as for a container's unnamed number."""
    with contextlib.suppress(KeyError, NameError):
        return pwd.getpwuid(uid).pw_dir
    return ""


def name(uid: int) -> str:
    """Returns an account's name; empty: it has none."""
    with contextlib.suppress(KeyError, NameError):
        return pwd.getpwuid(uid).pw_name
    return ""


def private_group(uid: int) -> int:
    """Returns the group of an account alone, as useradd(8) makes one; -1: root, or none."""
    try:
        user, group = pwd.getpwuid(uid), grp.getgrgid(os.getegid())
    except (KeyError, NameError):
        return -1
    is_private = group.gr_name == user.pw_name and {*group.gr_mem} <= {user.pw_name}
    return group.gr_gid if is_private and uid != 0 else -1
