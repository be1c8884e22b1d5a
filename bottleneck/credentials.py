"""Where the login comes from: a file, the environment, or a prompt; never an argument."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from bottleneck import environment
from probes.records import Access
from probes.smb import kerberos
from probes.stage import Refused

PASSWORD_VARIABLE = "BOTTLENECK_PASSWORD"
_taken: list[str] = []


def take_from_environment() -> None:
    """Takes the password out of the environment: no process that we start inherits it."""
    password = environment.take(PASSWORD_VARIABLE)
    if password is not None:
        _taken[:] = [password]


def read_auth_file(path: Path) -> dict[str, str]:
    """`username`, `password` and `domain` of a file in smbclient's format.

    Raises:
        Refused: kind "usage"; readable or written by others, not a regular file, or not the format.
    """
    return _parsed(path, private_text(path, "--auth-file").splitlines())


def private_text(path: Path, told_by: str) -> str:
    """What stands in a file that nobody else may read.

    told_by: the option or variable that named it. Raises Refused, "usage".
    """
    try:
        # The opened file is judged, through links too, and not what the name may mean later.
        with open(path, opener=_open_at_once) as file:
            _check(f"{told_by} {path}", path, os.fstat(file.fileno()))
            return file.read(1 << 16)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise Refused("usage", f"{told_by} {path}: {why}") from None


def _open_at_once(path: str, flags: int) -> int:
    # Opening a pipe without a writer would wait for ever.
    return os.open(path, flags | os.O_NONBLOCK)


def _check(name: str, path: Path, about: os.stat_result) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise Refused(
            "usage",
            f"{name}: not a regular file (a pipe will not do); write it to a file of mode 0600",
        )
    if stat.S_IMODE(about.st_mode) & 0o077:
        raise Refused("usage", f"{name}: others may read it; chmod 600 {path}")
    if about.st_uid not in {0, os.geteuid()}:
        raise Refused("usage", f"{name}: it belongs to another user; chown it")


def _parsed(path: Path, lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = line.partition("=")
        name = key.strip().lower()
        if not equals or name not in {"username", "password", "domain"}:
            raise Refused(
                "usage",
                f"--auth-file {path}, line {number}: write username =, password =, domain =",
            )
        found[name] = value.strip()
    return found


def access(
    user: str | None,
    domain: str | None,
    auth_file: Path | None,
    allow_guest: bool,
    prompt: Callable[[str], str] | None,
) -> Access:
    """Who logs in; nobody by name where a Kerberos ticket or a guest session will do.

    Args:
        prompt: asks for a password where a terminal is there; None: nobody can be asked.

    Raises:
        Refused: kind "usage" or "login", where nothing says who it is.
    """
    told = read_auth_file(auth_file) if auth_file else {}
    username = user or told.get("username", "")
    if user and "%" in user:
        raise Refused("usage", "--user takes no password: everybody could read it; use --auth-file")
    if username and "\\" in username and not domain:
        domain, _, username = username.partition("\\")
    if not username:
        if allow_guest or kerberos.principal():
            return Access(allow_guest=allow_guest)
        raise Refused(
            "login",
            "nobody to log in as: give --user NAME or --auth-file F, or --allow-guest"
            f"{kerberos.hint()}",
        )
    take_from_environment()
    from_environment = _taken.pop() if _taken else None
    password = told.get("password", from_environment)
    if password is None and prompt is not None:
        password = prompt(f"Password of {username}: ")
    if password is None:
        raise Refused(
            "login",
            f"no password for {username}: set {PASSWORD_VARIABLE}, give --auth-file F, "
            "or run it at a terminal",
        )
    return Access(username, password, domain or told.get("domain", ""), allow_guest)
