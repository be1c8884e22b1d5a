"""Parses TARGET, --file, --device, --tcp-peer and --metrics; resolves no host name.

TARGET is a share on a server or a folder of this host. File and device are the user's and only
read. The TCP peer is a running iperf3 server.
"""

from __future__ import annotations

import ipaddress
import os
import re
import stat
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import unquote

from probes.core.records import SMB_PORT, Access, Endpoint
from probes.core.stage import Refused

SUCCESSORS = {
    "tcp://": "--agent tcp:// was removed: use ssh://[user@]host, or exec:COMMAND",
    "--listen": "agent --listen was removed: use --agent ssh://[user@]host on the client",
    "--any-address": "agent --any-address was removed together with --listen",
    "--history": "--history was removed: write reports with --json into a folder, and use "
    "bottleneck compare FOLDER",
    "history": "bottleneck history was removed: use bottleneck compare FOLDER, of reports that "
    "--json wrote",
    "--idle": "agent --idle was removed together with --listen",
    "ttcp://": "--tcp-peer ttcp:// was removed: use iperf3://host[:port]",
    "--job": "--job was removed: run fio JOBFILE itself, or use --pattern, --block-size, --depth",
    "--cold-from": "--cold-from was removed: use --file FILE to pull a file that is not cached",
}
"""Refusals of earlier releases' options, each with its replacement."""

_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)\Z")
_ZONE = re.compile(r"[!-~]{1,15}\Z")
"""Zone of a link-local IPv6 address: the name of a network interface."""
_PLAIN_FOLDER = re.compile(r"/(?!/)|\.{1,2}(/|\Z)")
"""Beginning of a text that can only be a path: /folder, ./folder, ../folder, . and .."""
_LIKE_A_SHARE = re.compile(r"[A-Za-z0-9.-]+/[A-Za-z0-9_$.-]+")
"""A share whose slashes are missing: host/share."""
_NOT_IN_A_NAME = re.compile(r'[\x00-\x1f<>:"|?*]')
_HERE = re.compile(r"/|\.{1,2}(/|\Z)|~(/|\Z)")
"""Beginning of a path of this host."""
SERVER_PREFIX = "server:"
IPERF3, IPERF3_PORT = "iperf3://", 5201


@dataclass(frozen=True)
class Target:
    """A share and a folder on it, or a folder of this host where the system mounts one."""

    host: str
    """Name in ASCII (IDNA) or address; empty: a folder whose mount names no server."""
    port: int
    share: str
    folder: str
    """Path on the share, separated by backslashes, none at its ends; empty: the root."""
    username: str | None = None
    path: str = ""
    """The folder as a path of this host; empty: TARGET is a share."""

    @property
    def name(self) -> str:
        """Text that a user writes: //host[:port]/share[/folder], or the folder's path."""
        if not self.share:
            return self.path
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == SMB_PORT else f":{self.port}"
        folder = "/" + self.folder.replace("\\", "/") if self.folder else ""
        return f"//{host}{port}/{self.share}{folder}"

    def endpoint(self, access: Access | None) -> Endpoint:
        """Returns the share with the credentials to log in there."""
        where = {"host": self.host, "port": self.port, "share": self.share, "folder": self.folder}
        return Endpoint(**where, access=access)  # type: ignore[arg-type]


def make_local(path: str) -> Target:
    """Returns the target for a folder of this host."""
    return Target("", SMB_PORT, "", "", path=path)


def no_mount(path: str, filesystem: str) -> str:
    """Returns the refusal of a folder that is not on a mounted share."""
    return (
        f"{path}: a local folder ({filesystem}), not a mounted share; mount the share first, "
        "or name it: //host/share"
    )


def parse(text: str, is_folder: Callable[[str], bool] = lambda path: False) -> Target:
    r"""Parses `//host[:port]/share[/folder]`, `\\host\share[\folder]`, `smb://[user@]host/...`.

    Anything else is a folder of this host if it can only be a path, or if is_folder says so of a
    name such as `media`.

    Raises:
        Refused: kind "usage", with a sentence that says what is wrong.
    """
    username = None
    if scheme := re.match("(?i)(smb|cifs)://", text):
        username, rest = _user_and_rest(text[scheme.end() :])
    elif text.startswith(("//", "\\\\")):
        rest = text[2:]
    elif "\0" not in text and (_PLAIN_FOLDER.match(text) or is_folder(text)):
        return make_local(text)
    else:
        remedy = "use //host/share, \\\\host\\share, smb://host/share or an existing folder"
        if _LIKE_A_SHARE.fullmatch(text):
            remedy = f"did you mean //{text}?"
        shares = "/".join(filter(None, text.split("\\")))
        if text.startswith("\\") and _LIKE_A_SHARE.fullmatch(shares):
            remedy = f"the shell took a backslash: quote it, or use //{shares}"
        raise _refusal(f"{_without_user(text)} is not a share or a folder; {remedy}")
    host_port, _, path = rest.replace("\\", "/").partition("/")
    if "@" in path and not re.fullmatch(r"[^:@]*|\[[^]@]*\](:\d+)?|[^:@]*:\d+", host_port):
        raise _refusal("TARGET: the part before the last @ is not a host; use --user NAME")
    host, port = host_and_port(host_port, SMB_PORT)
    parts = [part for part in path.split("/") if part]
    if not parts:
        raise _refusal(f"{_without_user(text)}: no share given; use //{host}/SHARE")
    for part in parts:
        if part in {".", ".."} or _NOT_IN_A_NAME.search(part) or len(part) > 255:
            raise _refusal(f"{_without_user(part)}: not a valid name of a share or folder")
    return Target(host, port, parts[0], "\\".join(parts[1:]), username)


def _user_and_rest(text: str) -> tuple[str | None, str]:
    """Splits a URL behind its smb:// into the user and the rest, with the path's escapes undone.

    A password may hold any character, a slash too, so that it may reach to the last @.
    """
    authority, slash, path = text.partition("/")
    if ":" in unquote(text.rpartition("@")[0]):
        raise _refusal(
            "TARGET: must not contain a password, other users can read it; use --auth-file FILE, "
            "and write %40 for an @ in a folder"
        )
    user, separator, host = authority.rpartition("@")
    if "@" in user:
        raise _refusal("smb://user@host: more than one @; write %40 for an @ of the user's name")
    host = re.sub(r"\A(\[[^%]*)%25", r"\1%", host)  # before a zone: RFC 6874
    return unquote(user) if separator else None, host + slash + unquote(path)


def spelling_hint(target: Target) -> str:
    """Returns what may be wrong in the spelling of a share or folder that is not found, or ""."""
    decoded = replace(target, share=unquote(target.share), folder=unquote(target.folder)).name
    escape = re.search("%[0-9A-Fa-f]{2}", f"{target.share}/{target.folder}")
    if escape and decoded.isprintable() and "\ufffd" not in decoded:
        return f"did you mean {decoded}? ({escape[0]} is decoded in smb:// only)"
    composed = unicodedata.normalize("NFC", target.name)
    if composed != target.name:
        return f"the name is in decomposed letters (NFD); try the composed form: {composed}"
    return ""


def _without_user(text: str) -> str:
    """Quotes a part of TARGET for a refusal, without all before an @: it may be a password."""
    userinfo, separator, rest = text.rpartition("@")
    return repr(f"...@{rest}" if separator else rest)


def _refusal(sentence: str) -> Refused:
    return Refused("usage", sentence)


def host_and_port(text: str, usual_port: int) -> tuple[str, int]:
    """Parses `host[:port]`, an IPv6 address in brackets. Raises Refused, "usage"."""
    if "@" in text:
        raise _refusal("user@host: not allowed here; use smb://user@host/share or --user NAME")
    parts = re.fullmatch(r"(\[[^]]*\]|[^:]*)(?::(\d{0,5}))?", text)
    if parts is None:
        raise _refusal(f"{text!r}: not host[:port]; put an IPv6 address in brackets")
    host, port = parts[1], int(parts[2] or usual_port)
    if host.startswith("["):
        host = host[1:-1]
        try:
            zone = ipaddress.IPv6Address(host).scope_id
        except ValueError:
            raise _refusal(f"{host!r}: not an IPv6 address") from None
        if zone and not _ZONE.match(zone):
            raise _refusal(f"{zone!r}: not a valid interface name")
    else:
        # One form, in ASCII (IDNA), for DNS, Kerberos, other programs and redaction.
        with suppress(UnicodeError):
            # IDNA 2003 maps these to other letters; in IDNA 2008 they name another host.
            is_plain = not set(host) & set("ßς\u200c\u200d")
            host = host.encode("idna").decode().removesuffix(".") if is_plain else host
        if len(host) > 253 or not all(map(_LABEL.match, host.split("."))):
            raise _refusal(f"{_without_user(unquote(parts[1]))}: not a valid host name")
    if parts[2] == "":
        raise _refusal(f"{text!r}: the port is missing; use {text}{usual_port}, or no colon")
    if not 0 < port < 65536:
        raise _refusal(f"port {port}: must be from 1 to 65535")
    return host, port


# -- --file and --device -----------------------------------------------------------------------


@dataclass(frozen=True)
class NamedFile:
    side: Literal["client", "server"]
    path: str
    """At the client an absolute path; at the server the path below TARGET, backslashes in it."""


@dataclass(frozen=True)
class NamedDevice:
    side: Literal["client", "server"]
    path: str


def parse_file(text: str, target: Target | None, option: str = "--file") -> NamedFile:
    """Parses --file: a path below TARGET, unless it begins like a path of this host.

    Without a TARGET it is a path of this host. Raises Refused ("usage", "permission").
    """
    if target is not None and target.path:
        raise Refused("usage", f"{option}: TARGET must be a share, //host/share")
    if target is None or _HERE.match(text):
        return NamedFile("client", _existing_path(option, text))
    parts = [part for part in text.replace("\\", "/").split("/") if part]
    if not parts or any(part in {".", ".."} or _NOT_IN_A_NAME.search(part) for part in parts):
        raise Refused("usage", f"{option} {text!r}: not a name below TARGET")
    return NamedFile("server", "\\".join(parts))


def parse_device(text: str) -> NamedDevice:
    """Parses --device: a block device of this host, or after `server:` one of the server.

    It is opened later, for reading only. Raises Refused, "usage": it is no block device.
    """
    if text.startswith(SERVER_PREFIX):
        path = text.removeprefix(SERVER_PREFIX)
        if not path.startswith("/"):
            raise Refused("usage", f"--device {text}: not a device; use server:/dev/NAME")
        return NamedDevice("server", path)
    try:
        mode = os.stat(text).st_mode  # noqa: PTH116 - a name with a NUL is a ValueError here
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a path"
        raise Refused("usage", f"--device {text!r}: {why.lower()}") from None
    if not stat.S_ISBLK(mode):
        raise Refused("usage", f"--device {text!r}: not a block device; use /dev/NAME")
    return NamedDevice("client", os.path.abspath(text))  # noqa: PTH100 - a link stays one


def _existing_path(option: str, text: str) -> str:
    """Returns the absolute path of a readable file, or of the folder of --tree."""
    path = os.path.abspath(os.path.expanduser(text))  # noqa: PTH100, PTH111 - as the user wrote it
    folder, label = option == "--tree", f"{option} {text!r}"
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - a name with a NUL is a ValueError here
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a path"
        raise Refused("usage", f"{label}: {why.lower()}") from None
    if stat.S_ISBLK(mode):
        raise Refused("usage", f"{label}: a block device; use --device")
    if not (stat.S_ISDIR(mode) if folder else stat.S_ISREG(mode)):
        raise Refused("usage", f"{label}: not a {'folder' if folder else 'regular file'}")
    if not os.access(path, os.R_OK | (os.X_OK if folder else 0)):
        raise Refused("permission", f"{label}: no read permission")
    return os.path.realpath(path) if folder else path


# -- --tcp-peer ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TcpPeer:
    """Address of an iperf3 server."""

    host: str
    port: int

    @property
    def name(self) -> str:
        """Text that a user writes."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == IPERF3_PORT else f":{self.port}"
        return f"{IPERF3}{host}{port}"


def parse_peer(text: str) -> TcpPeer:
    """Parses `iperf3://host[:port]`. Raises Refused, "usage"."""
    if text.startswith("ttcp://"):
        raise Refused("usage", SUCCESSORS["ttcp://"])
    if not text.startswith(IPERF3):
        raise Refused("usage", "--tcp-peer: must be iperf3://host[:port]")
    try:
        host, port = host_and_port(text.removeprefix(IPERF3).rstrip("/"), IPERF3_PORT)
    except Refused as refused:
        raise Refused("usage", f"--tcp-peer: {refused.text}") from None
    return TcpPeer(host, port)


# -- --metrics -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class MetricsUrl:
    """Address of a server's own counters."""

    host: str
    port: int
    path: str
    is_secure: bool

    @property
    def name(self) -> str:
        """Text that a user writes."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.is_secure else ''}://{host}:{self.port}{self.path}"


def parse_metrics(text: str) -> MetricsUrl:
    """Parses `http://host[:port]/path`, or https. Raises Refused, "usage"."""
    parts = re.fullmatch(r"http(s?)://([^/?#]+)(/[^\s?#]{0,200})?", text)
    if parts is None:
        raise Refused("usage", "--metrics: must be http://host[:port]/metrics")
    try:
        host, port = host_and_port(parts[2], 443 if parts[1] else 80)
    except Refused as refused:
        raise Refused("usage", f"--metrics: {refused.text}") from None
    return MetricsUrl(host, port, parts[3] or "/metrics", bool(parts[1]))
