"""Tokens for names, and free text in which known names, and texts shaped like one, are replaced.

A name has the same token everywhere, numbered within its role. Other words stay.
"""

from __future__ import annotations

import ipaddress
import re
from functools import cache

from bottleneck.analysis.finding import ABOUTS
from bottleneck.analysis.rules.registry import CAUSES
from probes import STAGES
from probes.core.records import DIALECTS, SIDES

GONE = "[redacted]"
SHORTEST_NAME = 3
"""Least characters of a sentence's word that may be a name; in a path or quotes any may."""
LONGEST = 4000
"""Characters of a text that are redacted; the rest is dropped."""
_END = r"[^\s'\"<>|,;()\[\]{}`]"
_PATTERNS = re.compile(
    rf"""
    (?P<url>\b[a-z][a-z0-9+.-]{{1,15}}://{_END}+)
  | (?P<unc>(?<![\w:/\\])(?://|\\\\){_END}+)
  | (?P<address>(?<![\w:-])[0-9A-Fa-f]{{2}}(?:[:-][0-9A-Fa-f]{{2}}){{5}}(?![\w:-]))
  | (?P<guid>\b[0-9A-Fa-f]{{8}}-(?:[0-9A-Fa-f]{{4}}-){{3}}[0-9A-Fa-f]{{12}}\b)
  | (?P<ip>(?<![\w:.])[0-9A-Fa-f]{{0,4}}:[0-9A-Fa-f:.]*:[0-9A-Fa-f.]*(?:%\w+)?(?![\w:])
      | (?<![\w.])\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?![\w]|\.\d))
  | (?P<mail>[\w.+-]+@[\w.-]+)
  | (?P<drive>\b[A-Za-z]:[\\/]{_END}*)
  | (?P<path>(?<![\w/.~])~?/[\w.@~-]{_END}+)
  | (?P<option>(?<![\w-])--[a-z][\w-]*)
  | (?P<quoted>'[^'\s]{{1,64}}'|"[^"\s]{{1,64}}")
  | (?P<word>[^\W_][\w.'-]*|_[\w.'-]*)
    """,
    re.VERBOSE,
)
_SYSTEM_PATH = re.compile(r"/(proc|sys|etc|usr|bin|sbin|lib|dev/(null|shm))(/[\w.,@+-]+)*")
_OWN_FOLDER = re.compile(r"/(\.?bottleneck-[0-9a-f]{16})")
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


@cache
def schema_words() -> frozenset[str]:
    """Returns words of the report's own fields, which are no names in a sentence."""
    words = [*CAUSES, *(cause for each in CAUSES.values() for cause in each), *ABOUTS, *STAGES]
    words += [*DIALECTS, *SIDES, "host", "share", "folder", "localhost", "uncached", "measured"]
    words += ["skipped", "failed", "complete", "partial", "agent", "path", "pull", "push", "cached"]
    return frozenset(part for each in words for part in (each, *re.split(r"[-.]", each)) if part)


def is_interface(name: str) -> bool:
    """Whether a name is a system's own for an interface, without a hardware address."""
    return _INTERFACE.fullmatch(name) is not None


def address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parses an IP address, with brackets and scope; None: it is none."""
    try:
        return ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None


# -- names and their tokens -----------------------------------------------------------------------

UNNUMBERED = ("client-host", "server-host")
"""Roles with one name, whose token has no number; a second name is numbered from 2 on."""
_TOKEN = re.compile(
    r"(client-host|server-host)(-\d{1,6})?|(key|host|share|user|domain|address|path|file|device|command"
    r"|interface|serial|guid|option)-\d{1,6}"
)
EVERYBODYS = frozenset(("root", "guest", "administrator", "nobody"))
"""Users that every host has."""
ORDINARY = EVERYBODYS | {"admin", "user", "users", "test", "backup", "debian", "ubuntu", "fedora"}
"""Usual words, which are taken for a host's or user's name only if somebody typed them as one."""
FAMILIES = tuple("host share user domain file path address device interface command".split())
"""Families of roles, in the order in which a word of a sentence is looked up."""
MOST_NAMES = 2_000
"""Names in one report: each sentence is searched for all of them."""


def is_token(text: str) -> bool:
    """Whether a text is a token already: redacting twice changes nothing."""
    return _TOKEN.fullmatch(text) is not None


class TooManyNames(ValueError):
    """A document has more names than a run's report; the message is one line."""


def _family(role: str) -> str:
    return "host" if role in UNNUMBERED else role


class Names:
    """Tokens of one run, in the order of its names.

    A name has one token in each role: a share may have the name of its host.
    """

    def __init__(self) -> None:
        self._tokens: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def token(self, role: str, name: str) -> str:
        """Returns the token of a name, or a new one of this role. Case does not count."""
        if not name or is_token(name):
            return name
        key = _family(role), name.casefold()
        if key not in self._tokens:
            if len(self._tokens) >= MOST_NAMES:
                raise TooManyNames(f"more than {MOST_NAMES} names to replace")
            count = self._counts[role] = self._counts.get(role, 0) + 1
            is_first = role in UNNUMBERED and count == 1
            self._tokens[key] = role if is_first else f"{role}-{count}"
        return self._tokens[key]

    def find(self, name: str, *families: str) -> str | None:
        """Returns the token of a known name in the first of these families; None: unknown."""
        folded = name.casefold()
        for family in families or FAMILIES:
            if (family, folded) in self._tokens:
                return self._tokens[family, folded]
        return None

    def alias(self, role: str, name: str, token: str) -> None:
        """Adds another name for a token."""
        if name and not is_token(name):
            self._tokens.setdefault((_family(role), name.casefold()), token)

    def spaced_names(self) -> list[str]:
        """Returns the names of more than one word, the longest first."""
        names = {
            name
            for family, name in self._tokens
            if family in FAMILIES and re.search(r"[^\w.'-]", name)
        }
        return sorted(names, key=lambda name: (-len(name), name))


class Texts:
    """Replaces known names in free text, and texts shaped like a name."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def redacted_text(self, text: str) -> str:
        """Returns the text with tokens for names."""
        cut = text[:LONGEST]
        spaced = [re.escape(name) for name in self.names.spaced_names()]
        if spaced:
            pattern = rf"(?<![\w-])({'|'.join(spaced)})(/{_END}*|(?![\w-]))"
            cut = re.sub(pattern, self._replace_known, cut, flags=re.IGNORECASE)
        return self._part(cut)

    def _replace_known(self, match: re.Match[str]) -> str:
        """Returns the token of a name of several words; a path below it gets another token."""
        token, below = self.names.find(match[1]) or GONE, match[2].rstrip(".:")
        rest = match[2][len(below) :]
        if below.strip("/") and not _OWN_FOLDER.fullmatch(below) and "/" in match[1]:
            below = f"/{self.names.token('path', below[1:])}"
        return f"{token}{below}{rest}"

    def _part(self, text: str) -> str:
        return _PATTERNS.sub(self._replaced_match, text)

    def _replaced_match(self, match: re.Match[str]) -> str:
        kind, text = match.lastgroup or "word", match[0]
        body = text.rstrip(".:")
        return self._token_of(kind, body) + text[len(body) :]

    def _token_of(self, kind: str, text: str) -> str:
        match kind:
            case "url":
                return self._url(text)
            case "unc":
                return text if self._stands_for_any(text[2:]) else self.unc(text)
            case "address" | "guid":
                return self.names.token(kind, text)
            case "ip" if address(text) is not None:
                return self.place(text)
            case "mail":
                user, _, host = text.rpartition("@")
                return f"{self.names.token('user', user)}@{self.place(host)}"
            case "option":
                return text
            case "drive":
                return self.names.token("path", text)
            case "path":
                return self.path(text)
            case "quoted":
                # In quotes even a word of the schema is a name, if it is known as one.
                inner = self.names.find(text[1:-1]) or self._part(text[1:-1])
                return f"{text[0]}{inner}{text[0]}"
            case _:
                return self._word(text)

    def place(self, text: str, role: str = "host") -> str:
        """Replaces a host or an address, with or without a port."""
        bracketed = re.fullmatch(r"\[([^]]*)\](:\d{1,5})?", text)
        if bracketed is not None:
            return f"[{self.place(bracketed[1], role)}]{bracketed[2] or ''}"
        ip = address(text)
        if ip is not None:
            # Every host has 127.0.0.1, ::1 and 0.0.0.0.
            everybodys = ip.is_loopback or ip.is_unspecified
            return text if everybodys else self.names.token("address", text)
        name, colon, port = text.partition(":")
        if colon and re.fullmatch(r"\d{1,5}", port):
            return f"{self.place(name, role)}:{port}"
        return text if text.casefold() in ("localhost", "") else self.host(text, role)

    def host(self, name: str, role: str = "host") -> str:
        """Returns the token of a host, the same for its short and its full name."""
        short = name.partition(".")[0]
        token = self.names.find(name, "host") or self.names.find(short, "host")
        token = token or self.names.token(role, name)
        for each in (name, short):
            self.names.alias(role, each, token)
        return token

    def unc(self, text: str, role: str = "host") -> str:
        """Replaces //host[:port]/share[/folder] with either slash; the folder is one token."""
        slash = text[0]
        host, *rest = (part for part in re.split(r"[/\\]+", text[2:]))
        parts = [self.place(host, role)]
        if rest and rest[0]:
            parts.append(rest[0] if rest[0] == "-" else self.names.token("share", rest[0]))
        folder = "/".join(part for part in rest[1:] if part)
        if folder:
            parts.append(self.names.token("path", folder))
        return slash * 2 + slash.join(parts)

    def _stands_for_any(self, text: str) -> bool:
        """Whether a text is a placeholder in one of our own sentences: //host/share."""
        host = re.split(r"[/\\:]", text)[0].rpartition("@")[2]
        placeholders = ("host", "HOST", "CLIENT", "SERVER", "TARGET")
        return host.strip("[]") in placeholders and not self.names.find(host)

    def path(self, text: str) -> str:
        """Replaces a path by one token; the system's own paths stay."""
        body = text.rstrip("/") or text
        token = self.names.find(body, "path")
        if token is not None:
            return token
        if is_token(body) or _SYSTEM_PATH.fullmatch(body) or body in ("/", "."):
            return text
        if body.startswith("/dev/"):
            return f"/dev/{self.device(body[5:])}"
        user = re.match(r"/(?:home|Users)/([^/]+)", body)
        if user is not None and user[1].casefold() not in ORDINARY:
            self.names.token("user", user[1])
        return self.names.token("path", body)

    def device(self, name: str) -> str:
        """Replaces a disk's name; the kernel's own names stay."""
        if name.startswith("/"):
            return self.path(name)
        is_system_name = _DISK.fullmatch(name) or is_token(name)
        return name if is_system_name or not name else self.names.token("device", name)

    def _url(self, text: str) -> str:
        scheme, _, rest = text.partition("://")
        if self._stands_for_any(rest):
            return text
        authority, slash, path = rest.partition("/")
        user, separator, place = authority.rpartition("@")
        if scheme == "smb" and slash:
            target = self.unc(f"//{place}/{path}")[2:]
        else:
            below = f"/{self.names.token('path', path)}" if path else slash
            target = self.place(place) + below
        who = f"{self.names.token('user', user)}@" if separator else ""
        return f"{scheme}://{who}{target}"

    def _word(self, word: str) -> str:
        if word.endswith("'s"):
            return f"{self._word(word[:-2])}'s"
        token = self.names.find(word) if len(word) >= SHORTEST_NAME else None
        if token is not None and word.casefold() not in schema_words():
            return token
        if "." in word and _DOMAINS.fullmatch(word.rpartition(".")[2].lower()):
            return self.place(word)
        parts = [part for part in re.split(r"[.'_-]+", word) if part]
        names = (part for part in parts if part.casefold() not in schema_words())
        if len(parts) > 1 and any(self.names.find(part) is not None for part in names):
            return GONE
        return word
