"""What a server's refusals mean for the person who runs a copy (MS-ERREF 2.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from probes.records import Endpoint
from probes.smb.frames import Broken, Late
from probes.stage import Refused

SUCCESS = 0
PENDING = 0x00000103
ACCESS_DENIED = 0xC0000022
NOT_SUPPORTED = 0xC00000BB
NO_ROOM = (0xC000007F, 0xC0000044, 0xC0000802)
"""DISK_FULL, QUOTA_EXCEEDED, DISK_QUOTA_EXCEEDED."""

SHORT_OF_MEMORY = (0xC0000017, 0xC000009A)

_PASSWORD = "check user, password and domain; it was tried once, to lock nobody out"
_ACCOUNT = "ask the server's administrator"
_WRITE = "give the user write and delete rights there, or choose another folder"

_MEANINGS: dict[int, tuple[str, str, str, str]] = {
    0xC000006D: ("STATUS_LOGON_FAILURE", "login", "wrong user or password", _PASSWORD),
    0xC000006A: ("STATUS_WRONG_PASSWORD", "login", "wrong password", _PASSWORD),
    0xC0000064: ("STATUS_NO_SUCH_USER", "login", "no such user", _PASSWORD),
    0xC0000234: ("STATUS_ACCOUNT_LOCKED_OUT", "login", "the account is locked", _ACCOUNT),
    0xC0000072: ("STATUS_ACCOUNT_DISABLED", "login", "the account is disabled", _ACCOUNT),
    0xC0000193: ("STATUS_ACCOUNT_EXPIRED", "login", "the account has expired", _ACCOUNT),
    0xC0000071: ("STATUS_PASSWORD_EXPIRED", "login", "the password has expired", "set a new one"),
    0xC0000224: (
        "STATUS_PASSWORD_MUST_CHANGE",
        "login",
        "the password has to be changed first",
        "set a new one",
    ),
    0xC000006E: ("STATUS_ACCOUNT_RESTRICTION", "login", "the account may not log in", _ACCOUNT),
    0xC000006F: ("STATUS_INVALID_LOGON_HOURS", "login", "not at this hour", _ACCOUNT),
    0xC0000070: ("STATUS_INVALID_WORKSTATION", "login", "not from this host", _ACCOUNT),
    0xC000015B: ("STATUS_LOGON_TYPE_NOT_GRANTED", "login", "no right to log in", _ACCOUNT),
    0xC0000413: ("STATUS_AUTHENTICATION_FIREWALL_FAILED", "login", "no right here", _ACCOUNT),
    0xC0000418: ("STATUS_NTLM_BLOCKED", "login", "the server takes no NTLM login", _ACCOUNT),
    0xC000005E: ("STATUS_NO_LOGON_SERVERS", "login", "no domain controller answers", _ACCOUNT),
    0xC00000CC: (
        "STATUS_BAD_NETWORK_NAME",
        "share",
        "there is no such share",
        "smbclient -L lists the shares",
    ),
    0xC00000CA: ("STATUS_NETWORK_ACCESS_DENIED", "permission", "no right to this share", _ACCOUNT),
    0xC0000034: (
        "STATUS_OBJECT_NAME_NOT_FOUND",
        "share",
        "there is no such file or folder",
        "check the path on the share",
    ),
    0xC000003A: (
        "STATUS_OBJECT_PATH_NOT_FOUND",
        "share",
        "there is no such folder",
        "check the path on the share",
    ),
    0xC0000056: ("STATUS_DELETE_PENDING", "share", "it is being deleted", "try again"),
    0xC0000011: ("STATUS_END_OF_FILE", "share", "the file ends before that", "run it again"),
    0xC0000033: ("STATUS_OBJECT_NAME_INVALID", "share", "the name is not valid", "check the path"),
    0xC0000103: ("STATUS_NOT_A_DIRECTORY", "share", "this is no folder", "check the path"),
    0xC0000257: (
        "STATUS_PATH_NOT_COVERED",
        "share",
        "the path is a DFS link to another server, which is not followed",
        "name the target itself",
    ),
    0x8000002D: (
        "STATUS_STOPPED_ON_SYMLINK",
        "share",
        "the path is a symbolic link, which is not followed",
        "name the target itself",
    ),
    ACCESS_DENIED: ("STATUS_ACCESS_DENIED", "permission", "access is denied", _WRITE),
    0xC0000061: ("STATUS_PRIVILEGE_NOT_HELD", "permission", "a right is missing", _WRITE),
    0xC00000A2: (
        "STATUS_MEDIA_WRITE_PROTECTED",
        "permission",
        "the share is read-only",
        "make it writable, or choose another share",
    ),
    0xC0000121: ("STATUS_CANNOT_DELETE", "permission", "files there cannot be deleted", _WRITE),
    0xC000007F: ("STATUS_DISK_FULL", "space", "the server's disk is full", "make room there"),
    0xC0000044: ("STATUS_QUOTA_EXCEEDED", "space", "the user's quota is used up", "make room"),
    0xC0000802: ("STATUS_DISK_QUOTA_EXCEEDED", "space", "the quota is used up", "make room"),
    0xC0000035: ("STATUS_OBJECT_NAME_COLLISION", "usage", "it exists already", "try again"),
    0xC0000043: ("STATUS_SHARING_VIOLATION", "permission", "it is in use", "try again later"),
    0xC00000D0: (
        "STATUS_REQUEST_NOT_ACCEPTED",
        "unreachable",
        "the server takes no more sessions",
        "close others, or raise its limit",
    ),
    0xC0000017: (
        "STATUS_NO_MEMORY",
        "unreachable",
        "the server is short of memory",
        "try again, and look into its log",
    ),
    0xC000009A: (
        "STATUS_INSUFFICIENT_RESOURCES",
        "unreachable",
        "the server is short of resources",
        "try again, and look into its log",
    ),
    NOT_SUPPORTED: (
        "STATUS_NOT_SUPPORTED",
        "unreachable",
        "the server does not support it",
        "try another dialect",
    ),
}


class ServerSaid(Broken):
    """A request in the middle of a copy was answered with an error."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def said(what: str, status: int) -> ServerSaid:
    """The error of a request that was answered with status."""
    return ServerSaid(f"{what} was answered with {named(status)}", status)


def named(status: int) -> str:
    """A status in words: what it means, its name and number."""
    known = _MEANINGS.get(status)
    if known is None:
        return f"status 0x{status:08x}"
    return f"{known[0]}: {known[2]}"


def refusal(host: str, step: str, status: int) -> Refused:
    """The Refused of a step that the server answered with status; login steps never retry."""
    known = _MEANINGS.get(status)
    if known is None:
        return Refused("unreachable", f"{host}: {step}: refused with status 0x{status:08x}")
    name, kind, meaning, remedy = known
    if status == ACCESS_DENIED and step.partition(" ")[0] in ("login", "share"):
        remedy = "the server may require encryption (SMB 3), or give the user no right to the share"
    return Refused(kind, f"{host}: {step}: {meaning} ({name}); {remedy}")


@contextmanager
def error_context(what: Callable[[], str], peer: Endpoint, limit: str = "") -> Iterator[None]:
    """Names host, share and what was under way in a Broken of the body; limit: what Late adds.

    Raises Refused instead where the share has no room: that is the user's to mend.
    """
    try:
        yield
    except Broken as error:
        text = f"//{peer.host}/{peer.share}: {what()}: {error}"
        if isinstance(error, ServerSaid):
            if error.status in NO_ROOM:
                text += "; make room there, or name a smaller size"
                raise Refused("space", text) from error
            raise ServerSaid(text, error.status) from error
        raise type(error)(text + limit if isinstance(error, Late) else text) from error
