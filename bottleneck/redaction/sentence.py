"""A sentence with its names, addresses and paths replaced, and with no word that may be one."""

from __future__ import annotations

import ipaddress
import re
from functools import cache

from bottleneck.redaction import vocabulary
from bottleneck.redaction.names import Names, is_token

GONE = "[redacted]"
LONGEST = 4000
"""Characters of a sentence that are looked at; the rest is left out."""
_END = r"[^\s'\"<>|,;()\[\]{}`]"
_PATTERNS = re.compile(
    rf"""
    (?P<url>\b[a-z][a-z0-9+.-]{{1,15}}://{_END}+)
  | (?P<unc>(?<![\w:/\\])(?://|\\\\){_END}+)
  | (?P<mac>(?<![\w:-])[0-9A-Fa-f]{{2}}(?:[:-][0-9A-Fa-f]{{2}}){{5}}(?![\w:-]))
  | (?P<guid>\b[0-9A-Fa-f]{{8}}-(?:[0-9A-Fa-f]{{4}}-){{3}}[0-9A-Fa-f]{{12}}\b)
  | (?P<ip6>(?<![\w:.])[0-9A-Fa-f]{{0,4}}:[0-9A-Fa-f:.]*:[0-9A-Fa-f.]*(?:%\w+)?(?![\w:]))
  | (?P<ip4>(?<![\w.])\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?![\w]|\.\d))
  | (?P<mail>[\w.+-]+@[\w.-]+)
  | (?P<drive>\b[A-Za-z]:[\\/]{_END}*)
  | (?P<path>(?<![\w/.~])~?/[\w.@~-]{_END}+)
  | (?P<quoted>'[^'\s]{{1,64}}'|"[^"\s]{{1,64}}")
  | (?P<word>[^\W_][\w.'-]*|_[\w.'-]*)
    """,
    re.VERBOSE,
)
_KERNEL_PATH = re.compile(
    r"/proc/sys(/[a-z0-9_.]+)*|/proc/(pressure|diskstats|mounts|self)(/[a-z]+)*"
    r"|/sys/fs/cgroup(/[a-z_,]+)?|/sys/(class|block|module)|/etc/samba/smb\.conf|/dev/(null|shm)"
)
_DISK = re.compile(
    r"(sd|vd|xvd|hd)[a-z]{1,3}\d{0,3}|nvme\d+n\d+(p\d+)?|(loop|md|dm-|sr|zram|ram|nbd|bcache)\d+"
    r"|mmcblk\d+(p\d+)?|disk\d+(s\d+)*|PhysicalDrive\d+"
)
_INTERFACE = re.compile(
    r"lo\d?|(eth|wlan|tun|tap|bond|br|veth|docker|virbr|wg|ppp|vlan|ib|team)\d{0,4}"
    r"|(en|wl)(o\d+|p\d+s\d+(f\d+)?|s\d+|\d+)(\.\d+)?"
)
_DOMAINS = re.compile(
    r"(local|lan|home|internal|intranet|corp|localdomain|arpa|com|net|org|edu|gov|info|io|eu|de|at|ch"
    r"|fr|nl|be|uk|us|ca|au|it|es|pl|se|no|dk|fi|cz|ru|jp|cn|in|br|box)"
)


def is_disk(name: str) -> bool:
    """Whether it is a kernel's own name of a disk or partition, which tells nothing."""
    return _DISK.fullmatch(name) is not None


def is_interface(name: str) -> bool:
    """Whether it is a system's own name of an interface; one with a hardware address is not."""
    return _INTERFACE.fullmatch(name) is not None


def is_own(address: str) -> bool:
    """Whether an address is every host's: 127.0.0.1, ::1, 0.0.0.0."""
    try:
        found = ipaddress.ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return found.is_loopback or found.is_unspecified


def is_address(text: str) -> bool:
    """Whether it is an IP address."""
    try:
        ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return True


class Sentences:
    """Replaces in free text what names have tokens, and what only looks like one."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def redacted(self, text: str) -> str:
        """The text: known names and what has the shape of one as tokens, other words GONE."""
        cut = text[:LONGEST]
        spaced = [re.escape(name) for name in self.names.spaced()]
        if not spaced:
            return self._part(cut)
        known = re.compile(rf"(?<![\w/\\-])({'|'.join(spaced)})(?![\w-]|[/\\]\w)", re.IGNORECASE)
        pieces = known.split(cut)
        for at, piece in enumerate(pieces):
            pieces[at] = self._part(piece) if at % 2 == 0 else self.names.known(piece) or GONE
        return "".join(pieces)

    def _part(self, text: str) -> str:
        found = _PATTERNS.sub(self._replaced, text)
        return re.sub(rf"{re.escape(GONE)}([\s,.]+{re.escape(GONE)})+", GONE, found)

    def _replaced(self, match: re.Match[str]) -> str:
        kind, text = match.lastgroup or "word", match[0]
        body = text.rstrip(".:")
        return getattr(self, f"_{kind}")(body) + text[len(body) :]  # type: ignore[no-any-return]

    def place(self, text: str, role: str = "host") -> str:
        """A host or an address, with its port where one follows."""
        bracketed = re.fullmatch(r"\[([^]]*)\](:\d{1,5})?", text)
        if bracketed is not None:
            return f"[{self.place(bracketed[1], role)}]{bracketed[2] or ''}"
        if is_address(text):
            return text if is_own(text) else self.names.token("address", text)
        name, colon, port = text.partition(":")
        if colon and re.fullmatch(r"\d{1,5}", port):
            return f"{self.place(name, role)}:{port}"
        return text if text.casefold() in ("localhost", "") else self.host(text, role)

    def host(self, name: str, role: str = "host") -> str:
        """The token of a host; its short name and its full one have the same."""
        short = name.partition(".")[0]
        token = self.names.known(name, "host") or self.names.known(short, "host")
        token = token or self.names.token(role, name)
        for each in (name, short):
            self.names.alias(role, each, token)
        return token

    def unc(self, text: str, role: str = "host") -> str:
        """//host[:port]/share[/folder] in either slash; the folder is one token."""
        slash = text[0]
        host, *rest = (part for part in re.split(r"[/\\]+", text[2:]))
        found = [self.place(host, role)]
        if rest and rest[0]:
            found.append(rest[0] if rest[0] == "-" else self.names.token("share", rest[0]))
        folder = "/".join(part for part in rest[1:] if part)
        if folder:
            found.append(self.names.token("path", folder))
        return slash * 2 + slash.join(found)

    def _stands_for_any(self, text: str) -> bool:
        """Whether a sentence of ours shows with it how something is written: //host/share."""
        host = re.split(r"[/\\:]", text)[0]
        return host in ("host", "HOST", "CLIENT", "SERVER", "TARGET") and not self.names.known(host)

    def path(self, text: str) -> str:
        """A path as one token; the kernel's and the system's own stay."""
        body = text.rstrip("/") or text
        if is_token(body) or _KERNEL_PATH.fullmatch(body) or body in ("/", "."):
            return text
        if body.startswith("/dev/"):
            return f"/dev/{self.device(body[5:])}"
        user = re.match(r"/(?:home|Users)/([^/]+)", body)
        if user is not None:
            self.names.token("user", user[1])
        return self.names.token("path", body)

    def device(self, name: str) -> str:
        """A disk's name; the kernel's own stay, those that somebody gave do not."""
        if name.startswith("/"):
            return self.path(name)
        known = is_disk(name) or is_token(name) or re.fullmatch(r"device-\d+", name)
        return name if known or not name else self.names.token("device", name)

    def _unc(self, text: str) -> str:
        return text if self._stands_for_any(text[2:]) else self.unc(text)

    def _path(self, text: str) -> str:
        return self.path(text)

    def _url(self, text: str) -> str:
        scheme, _, rest = text.partition("://")
        if self._stands_for_any(rest) and vocabulary.may_stay(scheme):
            return text
        authority, slash, path = rest.partition("/")
        user, at, place = authority.rpartition("@")
        if scheme == "smb" and slash:
            found = self.unc(f"//{place}/{path}")[2:]
        else:
            tail = f"/{self.names.token('path', path)}" if path else slash
            found = self.place(place) + tail
        who = f"{self.names.token('user', user)}@" if at else ""
        if not vocabulary.may_stay(scheme):
            scheme = GONE
        return f"{scheme}://{who}{found}"

    def _mac(self, text: str) -> str:
        return self.names.token("address", text)

    def _guid(self, text: str) -> str:
        return self.names.token("guid", text)

    def _ip4(self, text: str) -> str:
        return self.place(text) if is_address(text) else text

    def _ip6(self, text: str) -> str:
        return self.place(text) if is_address(text) else _PATTERNS_OF_WORDS.sub(self._words, text)

    def _mail(self, text: str) -> str:
        user, _, host = text.rpartition("@")
        return f"{self.names.token('user', user)}@{self.place(host)}"

    def _drive(self, text: str) -> str:
        return self.names.token("path", text)

    def _quoted(self, text: str) -> str:
        """In quotes even a word of the schema is a name, where it is known as one."""
        known = self.names.known(text[1:-1])
        if known is not None:
            return f"{text[0]}{known}{text[0]}"
        return text[0] + self._part(text[1:-1]) + text[-1]

    def _words(self, match: re.Match[str]) -> str:
        return self._word(match[0])

    def _word(self, word: str) -> str:
        known = self.names.known(word)
        if known is not None and word.casefold() not in _schema_words():
            return known
        if is_token(word) or is_disk(word) or is_interface(word):
            return word
        if "." in word and _DOMAINS.fullmatch(word.rpartition(".")[2].lower()):
            return self.place(word)
        parts = [part for part in re.split(r"[.'_-]+", word) if part]
        named = (self.names.known(part) for part in parts if part not in _schema_words())
        if len(parts) > 1 and any(each is not None for each in named):
            return GONE
        return word if vocabulary.may_stay(word) else GONE


@cache
def _schema_words() -> frozenset[str]:
    return vocabulary.schema_words()


_PATTERNS_OF_WORDS = re.compile(r"[^\W_][\w.'-]*|_[\w.'-]*")
