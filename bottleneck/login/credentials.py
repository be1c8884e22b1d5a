"""Credentials of a login, from a file, the environment or a prompt; never from an argument."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from probes.core.records import Access
from probes.core.stage import Refused
from probes.smb import kerberos
from probes.system.child import overwrite_variable
from probes.system.platform import os

PASSWORD_VARIABLE, DESCRIPTOR_VARIABLE = "BOTTLENECK_PASSWORD", "BOTTLENECK_PASSWORD_FD"
"""The first holds the password, the second the number of a descriptor to read it from."""
_taken: dict[str, str] = {}
"""Secrets taken out of the environment, by variable."""


def take_from_environment() -> None:
    """Takes the password out of the environment: no process that we start inherits it.

    /proc/PID/environ shows the block with which this process began, whatever os.environ holds
    now: the password is overwritten there.
    """
    if PASSWORD_VARIABLE in os.environ:
        overwrite_variable(os.fsencode(PASSWORD_VARIABLE))
        _taken[PASSWORD_VARIABLE] = os.environ.pop(PASSWORD_VARIABLE)
    number = os.environ.pop(DESCRIPTOR_VARIABLE, "")
    # A descriptor that is not open gives no password, which access() reports.
    with suppress(OSError, ValueError), os.fdopen(int(number), "rb") as file:
        _taken[PASSWORD_VARIABLE] = os.fsdecode(file.read(1 << 16).removesuffix(b"\n"))


def read_auth_file(path: Path) -> dict[str, str]:
    """Reads `username`, `password`, `domain` and `realm` from a file in smbclient's format.

    Raises:
        Refused: kind "usage"; readable or written by others, not a regular file, or not the format.
    """
    entries: dict[str, str] = {}
    for number, line in enumerate(private_text(path, "--auth-file").split("\n"), 1):
        if line.lstrip()[:1] in ("", "#", ";"):
            continue
        key, equals, value = line.partition("=")
        name = key.strip().lower()
        if not equals or name not in {"username", "password", "domain", "realm"}:
            text = f"--auth-file {path}, line {number}: must be username =, password = or domain ="
            raise Refused("usage", text)
        # A password may end in blanks; those in front are cut, as smbclient does.
        entries[name] = value.lstrip(" \t") if name == "password" else value.strip()
    return entries


def private_text(path: Path, origin: str) -> str:
    """Reads a file that no other user may read.

    origin: option or variable that named the file. Raises Refused, "usage".
    """
    try:
        # The open file is checked, not its name, which may lead elsewhere later.
        # O_NONBLOCK: opening a pipe without a writer would wait for ever.
        with os.fdopen(os.open(path, os.O_NONBLOCK), encoding="utf-8-sig") as file:
            _check(f"{origin} {path}", path, os.fstat(file.fileno()))
            return file.read(1 << 16)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text; save it as UTF-8"
        raise Refused("usage", f"{origin} {path}: {why}") from None


def _check(name: str, path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Refused(
            "usage", f"{name}: not a regular file (pipes are not accepted); use a file of mode 0600"
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise Refused("usage", f"{name}: readable by other users; run: chmod 600 {path}")
    if status.st_uid not in {0, os.geteuid()}:
        raise Refused("usage", f"{name}: owned by another user; change its owner with chown")


def _account(user: str | None, domain: str | None, entries: dict[str, str]) -> tuple[str, str]:
    r"""Returns user and domain of options and auth file; `DOM\user`, `DOM/user`, `DOM;user` too.

    A realm stands in for a missing domain, but user@lab.org needs none. Raises Refused, "usage".
    """
    text = user or entries.get("username", "")
    *prefix, name = re.split(r"[\\/;]", text, maxsplit=1)  # no user's name has one of the three
    domains = [each for each in (*prefix, domain or entries.get("domain")) if each]
    if len({each.lower() for each in domains}) > 1:
        origin = "--domain" if domain else "domain ="
        raise Refused("usage", f"the domain in front of the user contradicts {origin}; use one")
    return name, next(iter(domains), "" if "@" in name else entries.get("realm", ""))


def access(
    user: str | None,
    domain: str | None,
    auth_file: Path | None,
    allow_guest: bool,
    prompt: Callable[[str], str] | None,
) -> Access:
    """Returns the credentials; without a user if a Kerberos ticket or a guest session will do.

    Args:
        prompt: asks for a password where a terminal is there; None: nobody can be asked.

    Raises:
        Refused: kind "usage" or "login", if no user is known.
    """
    entries = read_auth_file(auth_file) if auth_file else {}
    if user and "%" in user:
        raise Refused(
            "usage", "--user: other users can read a password there; use --auth-file FILE"
        )
    username, domain = _account(user, domain, entries)
    if not username:
        if allow_guest or kerberos.principal():
            return Access(allow_guest=allow_guest)
        raise Refused(
            "login",
            "cannot log in: no user; use --user NAME, --auth-file FILE or --allow-guest"
            f"{kerberos.hint()}",
        )
    take_from_environment()
    password = entries.get("password", _taken.pop(PASSWORD_VARIABLE, None))
    try:
        if password is None and prompt is not None:
            password = prompt(f"Password of {username}: ")
        (password or "").encode()
    except UnicodeError:
        text = f"cannot log in: the password of {username} is not UTF-8; type or set it as UTF-8"
        raise Refused("login", text) from None
    if password is None:
        raise Refused(
            "login",
            f"cannot log in: no password for {username}; set {PASSWORD_VARIABLE}, use "
            "--auth-file FILE, or run at a terminal",
        )
    return Access(username, password, domain, allow_guest)
