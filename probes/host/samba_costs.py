"""Which values of smb.conf cost throughput, when, why, and what to do.

Runs on Python 3.9 with the standard library alone. Sources: smb.conf(5) and the vfs_*(8) pages of
Samba 4.17; for aio, sendfile and recvfile its source3/smbd/smb2_read.c, smb2_write.c and aio.c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Mapping, Optional, Tuple

Values = Mapping[str, str]

KIB, MIB = 1024, 1024 * 1024
_REQUIRED = ("required", "mandatory", "force", "forced", "enforced")
# if_required, the default, encrypts nothing by itself (smb.conf(5), server smb encrypt)
_ENCRYPTS = (*_REQUIRED, "desired")
_OLD_DIALECTS = ("core", "coreplus", "lanman1", "lanman2", "nt1", "smb1", "smb2_02")
_READ_BY_ONE = "while it waits for the disk, smbd answers nothing else on that connection"


@dataclass(frozen=True)
class Rule:
    """An option of smb.conf, and when it costs."""

    option: str
    costs: Callable[[str, Values], bool]
    """From the option's value and all values that hold with it."""
    matters_for: str
    why: str
    remedy: str


def _one_of(words: Tuple[str, ...]) -> Callable[[str, Values], bool]:
    return lambda value, _: value.lower() in words


_yes = _one_of(("yes", "true", "1", "on"))
_no = _one_of(("no", "false", "0", "off"))
_zero = _one_of(("0",))


def _positive(value: str, _: Values) -> bool:
    return (_number(value) or 0) > 0


def _below(limit: int) -> Callable[[str, Values], bool]:
    def below(value: str, _: Values) -> bool:
        number = _number(value)
        return number is not None and number < limit

    return below


def _fixed_buffers(value: str, _: Values) -> bool:
    return bool(re.search(r"\bSO_(SND|RCV)BUF\b", value, re.IGNORECASE))


def _nagle(value: str, _: Values) -> bool:
    told = re.search(r"\bTCP_NODELAY\b(\s*=\s*(\d+))?", value, re.IGNORECASE)
    return told is None or told[2] == "0"


def _syncs_always(value: str, values: Values) -> bool:
    return _yes(value, values) and not _no(values.get("strict sync", "yes"), values)


def _sends_by_sendfile(value: str, values: Values) -> bool:
    # with asynchronous reads smbd never comes to it
    return _yes(value, values) and _zero(values.get("aio read size", "1"), values)


def _logs_much(value: str, _: Values) -> bool:
    return any(int(level) >= 3 for level in re.findall(r"(?:^|[\s:])(\d+)(?=\s|@|$)", value))


def _not_first(best: str) -> Callable[[str, Values], bool]:
    return lambda value, _: value.replace(",", " ").split()[:1] not in ([best], [])


def _number(value: str) -> Optional[int]:
    try:
        return int(value, 0)
    except ValueError:
        return None


RULES = (
    Rule(
        "socket options",
        _fixed_buffers,
        "all",
        "a fixed socket buffer switches off the kernel's tuning: no more than it is in flight per "
        "round trip",
        "take SO_SNDBUF and SO_RCVBUF out of it",
    ),
    Rule(
        "socket options",
        _nagle,
        "small-files",
        "without TCP_NODELAY a short reply waits until the client has acknowledged the one before",
        "socket options = TCP_NODELAY (the default)",
    ),
    Rule(
        "aio read size",
        _zero,
        "read",
        f"reads are made one after the other: {_READ_BY_ONE}",
        "aio read size = 1 (the default)",
    ),
    Rule(
        "aio write size",
        _zero,
        "write",
        f"writes are made one after the other: {_READ_BY_ONE}",
        "aio write size = 1 (the default)",
    ),
    Rule(
        "aio max threads",
        _below(8),
        "all",
        "no more reads and writes than that reach the disk at once",
        "aio max threads = 100 (the default)",
    ),
    Rule(
        "use sendfile",
        _sends_by_sendfile,
        "read",
        "where reads are not asynchronous, those without signature and encryption go by sendfile: "
        f"{_READ_BY_ONE}",
        "aio read size = 1, or use sendfile = no; measure both",
    ),
    Rule(
        "min receivefile size",
        _positive,
        "write",
        "longer writes without signature are taken by recvfile, which cannot be asynchronous: "
        f"{_READ_BY_ONE}",
        "min receivefile size = 0 (the default); measure both",
    ),
    Rule(
        "sync always",
        _syncs_always,
        "write",
        "every write is followed by an fsync: the rate is that of the disk's smallest writes",
        "sync always = no (the default); clients still flush when they ask for it",
    ),
    Rule(
        "strict sync",
        _no,
        "durability",
        "smbd ignores the client's FLUSH: what looks durable may be in the server's memory only, "
        "and a push looks faster than the disk",
        "strict sync = yes (the default)",
    ),
    Rule(
        "strict allocate",
        _yes,
        "write",
        "each file's blocks are allocated before they are written: slow where the file system has "
        "no unwritten extents (ZFS, ext3)",
        "strict allocate = no (the default) on such file systems",
    ),
    Rule(
        "strict locking",
        _yes,
        "all",
        "smbd looks for locks before each single read and write",
        "strict locking = auto (the default)",
    ),
    Rule(
        "smb2 max read",
        _below(MIB),
        "read",
        "clients may not ask for more in one request: more round trips and more work per byte",
        "smb2 max read = 8388608 (the default)",
    ),
    Rule(
        "smb2 max write",
        _below(MIB),
        "write",
        "clients may not send more in one request: more round trips and more work per byte",
        "smb2 max write = 8388608 (the default)",
    ),
    Rule(
        "smb2 max trans",
        _below(MIB),
        "small-files",
        "folders are listed in smaller pieces: more round trips",
        "smb2 max trans = 8388608 (the default)",
    ),
    Rule(
        "smb2 max credits",
        _below(512),
        "all",
        "at most that many 64 KiB are in flight per connection: too few for a long path",
        "smb2 max credits = 8192 (the default)",
    ),
    Rule(
        "max mux",
        _below(50),
        "smb1",
        "SMB1 clients may have no more requests in flight",
        "max mux = 50 (the default)",
    ),
    Rule(
        "max xmit",
        _below(16644),
        "smb1",
        "SMB1 requests that are signed, and all where large readwrite is off, are no longer",
        "max xmit = 16644 (the default)",
    ),
    Rule(
        "large readwrite",
        _no,
        "smb1",
        "SMB1 reads and writes are kept below max xmit instead of 64 KiB and more",
        "large readwrite = yes (the default)",
    ),
    Rule(
        "server max protocol",
        _one_of(_OLD_DIALECTS),
        "all",
        "requests are 64 KiB at most in that dialect, and what SMB 3 adds is missing",
        "server max protocol = SMB3 (the default)",
    ),
    Rule(
        "server max protocol",
        _one_of(("smb2", "smb2_10")),
        "all",
        "without SMB 3 there is no AES: signing by HMAC-SHA256 costs more, and there is neither "
        "encryption nor multi-channel",
        "server max protocol = SMB3 (the default)",
    ),
    Rule(
        "server multi channel support",
        _no,
        "all",
        "a client uses one connection, and so one core of the server, whatever both have",
        "server multi channel support = yes (the default since 4.15)",
    ),
    Rule(
        "server signing",
        _one_of(_REQUIRED),
        "all",
        "every message is signed: work for one core on both sides, in SMB1 and 2 most of all",
        "keep it where the network is not trusted; SMB 3.1.1 signs by AES-GMAC, the cheapest",
    ),
    Rule(
        "server smb encrypt",
        _one_of(_ENCRYPTS),
        "all",
        "every message is encrypted: work for one core on both sides",
        "keep it where the network is not trusted; AES-128-GCM of SMB 3.1.1 is the cheapest",
    ),
    Rule(
        "server smb3 signing algorithms",
        _not_first("AES-128-GMAC"),
        "all",
        "AES-GMAC is not the first choice of SMB 3.1.1's signatures: the others cost more",
        "put AES-128-GMAC first (the default)",
    ),
    Rule(
        "server smb3 encryption algorithms",
        _not_first("AES-128-GCM"),
        "all",
        "AES-128-GCM is not the first choice of SMB 3.1.1's ciphers: the others cost more",
        "put AES-128-GCM first (the default)",
    ),
    Rule(
        "oplocks",
        _no,
        "small-files",
        "clients may not cache: each open, read and write is a round trip of its own",
        "oplocks = yes (the default)",
    ),
    Rule(
        "level2 oplocks",
        _no,
        "small-files",
        "two clients that read one file may not cache it",
        "level2 oplocks = yes (the default)",
    ),
    Rule(
        "kernel oplocks",
        _yes,
        "small-files",
        "leases and level 2 oplocks are off with it: clients cache less",
        "kernel oplocks = no (the default), unless local programs share the files",
    ),
    Rule(
        "smb2 leases",
        _no,
        "small-files",
        "clients cache less: closing and opening a file again throws its cache away",
        "smb2 leases = yes (the default)",
    ),
    Rule(
        "case sensitive",
        _one_of(("no", "auto")),
        "small-files",
        "before a name is found missing, smbd reads the whole folder for other spellings: each new "
        "file costs more, the more files lie there",
        "fewer files in one folder; or case sensitive = yes, where every client spells each name "
        "as it is",
    ),
    Rule(
        "hide unreadable",
        _yes,
        "small-files",
        "each file is looked at for rights before it is listed",
        "hide unreadable = no (the default)",
    ),
    Rule(
        "hide unwriteable files",
        _yes,
        "small-files",
        "each file is looked at for rights before it is listed",
        "hide unwriteable files = no (the default)",
    ),
    Rule(
        "stat cache",
        _no,
        "small-files",
        "the spelling of each path is looked up again and again",
        "stat cache = yes (the default)",
    ),
    Rule(
        "getwd cache",
        _no,
        "small-files",
        "the path of the current folder is asked again and again",
        "getwd cache = yes (the default)",
    ),
    Rule(
        "log level",
        _logs_much,
        "all",
        "from level 3 on smbd writes lines for each single request",
        "log level = 1",
    ),
    Rule(
        "deadtime",
        lambda value, _: 0 < (_number(value) or 0) <= 15,
        "small-files",
        "a client that rests for so few minutes without an open file has to log in again",
        "deadtime = 10080 (the default)",
    ),
)
