"""Explains a server's error statuses to the user, with remedies (MS-ERREF 2.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from probes.core.records import Endpoint
from probes.core.stage import Refused
from probes.smb.frames import DeadlinePassed, SmbError

SUCCESS = 0
PENDING = 0x00000103
ACCESS_DENIED, NAME_NOT_FOUND = 0xC0000022, 0xC0000034
ELSEWHERE = (0xC0000257, 0xC00000CC)
"""PATH_NOT_COVERED, and BAD_NETWORK_NAME, Samba's reply for a share that is a DFS link."""
NO_ROOM = (0xC000007F, 0xC0000044, 0xC0000802)
"""DISK_FULL, QUOTA_EXCEEDED, DISK_QUOTA_EXCEEDED."""

SHORT_OF_MEMORY = (0xC0000017, 0xC000009A)

_TABLE = """
login: check user, password and domain (only one attempt was made, to avoid a lockout)
 0xC000006D STATUS_LOGON_FAILURE wrong user or password
 0xC000006A STATUS_WRONG_PASSWORD wrong password
 0xC0000064 STATUS_NO_SUCH_USER no such user
login: ask the server's administrator
 0xC0000234 STATUS_ACCOUNT_LOCKED_OUT the account is locked
 0xC0000072 STATUS_ACCOUNT_DISABLED the account is disabled
 0xC0000193 STATUS_ACCOUNT_EXPIRED the account has expired
 0xC000006E STATUS_ACCOUNT_RESTRICTION the account may not log in
 0xC000006F STATUS_INVALID_LOGON_HOURS not at this hour
 0xC0000070 STATUS_INVALID_WORKSTATION not from this host
 0xC000015B STATUS_LOGON_TYPE_NOT_GRANTED no permission to log in
 0xC0000413 STATUS_AUTHENTICATION_FIREWALL_FAILED no permission here
 0xC0000418 STATUS_NTLM_BLOCKED the server does not accept NTLM logins
 0xC000005E STATUS_NO_LOGON_SERVERS no domain controller answers
login: set a new one
 0xC0000071 STATUS_PASSWORD_EXPIRED the password has expired
 0xC0000224 STATUS_PASSWORD_MUST_CHANGE the password has to be changed first
share: smbclient -L lists the shares
 0xC00000CC STATUS_BAD_NETWORK_NAME share not found
permission: ask the server's administrator
 0xC00000CA STATUS_NETWORK_ACCESS_DENIED no permission for this share
share: check the path on the share
 0xC0000034 STATUS_OBJECT_NAME_NOT_FOUND file or folder not found
 0xC000003A STATUS_OBJECT_PATH_NOT_FOUND folder not found
share: run it again
 0xC0000011 STATUS_END_OF_FILE the file ends before that
share: check the path
 0xC0000033 STATUS_OBJECT_NAME_INVALID the name is not valid
 0xC0000103 STATUS_NOT_A_DIRECTORY not a folder
share: use the target itself
 0xC0000257 STATUS_PATH_NOT_COVERED the path is a DFS link to another server, which is not followed
 0x8000002D STATUS_STOPPED_ON_SYMLINK the path is a symbolic link, which is not followed
permission: give the user write and delete rights there, or choose another folder
 0xC0000022 STATUS_ACCESS_DENIED access is denied
 0xC0000061 STATUS_PRIVILEGE_NOT_HELD a permission is missing
 0xC0000121 STATUS_CANNOT_DELETE files there cannot be deleted
permission: make it writable, or choose another share
 0xC00000A2 STATUS_MEDIA_WRITE_PROTECTED the share is read-only
space: free some space there
 0xC000007F STATUS_DISK_FULL the server's disk is full, or a quota is reached
space: free some space
 0xC0000044 STATUS_QUOTA_EXCEEDED the user's quota is used up
 0xC0000802 STATUS_DISK_QUOTA_EXCEEDED the quota is used up
usage: try again
 0xC0000035 STATUS_OBJECT_NAME_COLLISION it already exists
permission: try again later
 0xC0000043 STATUS_SHARING_VIOLATION it is in use
 0xC0000056 STATUS_DELETE_PENDING it is being deleted
unreachable: close others, or raise its limit
 0xC00000D0 STATUS_REQUEST_NOT_ACCEPTED the server accepts no more sessions
unreachable: try again, and look into its log
 0xC0000017 STATUS_NO_MEMORY the server is short of memory
 0xC000009A STATUS_INSUFFICIENT_RESOURCES the server is short of resources
 0xC0000185 STATUS_IO_DEVICE_ERROR its disk failed
 0xC0000236 STATUS_CONNECTION_REFUSED the server refuses the connection
 0xC0000203 STATUS_USER_SESSION_DELETED the server ended the session
 0xC00000C9 STATUS_NETWORK_NAME_DELETED the server closed the share
unreachable: try another dialect
 0xC00000BB STATUS_NOT_SUPPORTED the server does not support it
"""
"""Kind of refusal and remedy, each with its statuses: number, name, meaning."""


def _meanings(table: str) -> Iterator[tuple[int, tuple[str, str, str, str]]]:
    """Yields each status with its name, kind, meaning and remedy."""
    kind = remedy = ""
    for line in table.strip().split("\n"):
        if line.startswith(" "):
            number, name, meaning = line.split(maxsplit=2)
            yield int(number, 16), (name, kind, meaning, remedy)
        else:
            kind, remedy = line.split(": ", 1)


_MEANINGS = dict(_meanings(_TABLE))


class ServerSaid(SmbError):
    """The server answered a request of a copy with an error status."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def error_of(what: str, status: int) -> ServerSaid:
    """Returns the error for a request that was answered with status."""
    return ServerSaid(f"{what} was answered with {describe(status)}", status)


def describe(status: int) -> str:
    """Returns a status in words: its name and meaning, or its number."""
    entry = _MEANINGS.get(status)
    return f"status 0x{status:08x}" if entry is None else f"{entry[0]}: {entry[2]}"


def refusal(host: str, step: str, status: int) -> Refused:
    """Returns the Refused for a step that the server answered with status."""
    entry = _MEANINGS.get(status)
    if entry is None:
        # It may count as a failed login, towards a lockout.
        kind = "login" if step == "login" else "unreachable"
        return Refused(kind, f"{host}: {step}: refused with status 0x{status:08x}")
    name, kind, meaning, remedy = entry
    verb = step.partition(" ")[0]
    if status == ACCESS_DENIED and verb in ("login", "share"):
        remedy = "the server may require encryption (SMB 3), or deny this user or host access"
    elif status in SHORT_OF_MEMORY and verb == "share":
        kind = "crowded"
        meaning = "the share takes no more connections, or the server is short of memory"
        remedy = "a run needs two at once: raise `max connections`, or close others"
    elif status == NAME_NOT_FOUND and verb == "create":
        # A missing folder would be OBJECT_PATH_NOT_FOUND.
        kind, meaning = "permission", "the server allows no file or folder of this name"
        remedy = "look for `veto files` in its configuration, or use another share"
    return Refused(kind, f"{host}: {step}: {meaning} ({name}); {remedy}")


@contextmanager
def error_context(what: Callable[[], str], peer: Endpoint, limit: str = "") -> Iterator[None]:
    """Adds host, share and `what` to an SmbError of the body; limit: text for a DeadlinePassed.

    Raises Refused instead where the share has no room, which the user can mend.
    """
    try:
        yield
    except SmbError as error:
        text = f"//{peer.host}/{peer.share}: {what()}: {error}"
        if isinstance(error, ServerSaid):
            if error.status in NO_ROOM:
                text += "; free some space there, or use a smaller --size"
                raise Refused("space", text) from error
            raise ServerSaid(text, error.status) from error
        raise type(error)(text + limit if isinstance(error, DeadlinePassed) else text) from error
