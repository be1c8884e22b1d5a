"""Whether an agent may carry out a request: decided by the agent itself, whatever its caller says.

An installed one (`bottleneck agent --folder DIR`, for ssh's forced commands) works only with what
its own command line names and what it handed out itself, and runs no command. One that a caller
started for himself has his rights anyway: it is guarded against mistakes alone. Runs on Python 3.9
with the standard library alone.
"""

from __future__ import annotations

import os
import re
import socket
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

from bottleneck.agents import protocol, requests
from bottleneck.agents.requests import ENVELOPES, Takes
from probes.core import typed
from probes.core.meaning import Keys, keys
from probes.core.records import Endpoint
from probes.core.stage import Refused
from probes.host.counters import Watched
from probes.sockets import sock_diag
from probes.system.child import NoAnswer, answered

MOST_SECONDS = 86_400.0
MOST_AT_ONCE = 16
"""A run needs about eight; each may take the memory of a child."""
MOST_TASKS = 20_000
MOST_COUNT = 1 << 30
MOST_TEXT = 4096
MOST_ITEMS = 1000
FOLDER_SECONDS = 5.0
_INTERFACE = re.compile(r"[0-9A-Za-z_.-]{1,15}")
"""A network interface's name as it is in use (IFNAMSIZ of linux/if.h)."""


INSTALLED_REQUESTS = {
    "ask": frozenset(
        (
            *("facts", "samba-config", "locate", "set-cache", "mount", "writable-folder"),
            *("usable-bytes", "user-file", "readable-device", "reach", "readiness", "smbclient"),
            *("leftovers", "remove-leftover", "running-copies"),
        )
    ),
    "hold": frozenset(
        ("source-file", "tcp", "latency", "udp", "matrix", "path", "paths", "sweep", "loopback")
    ),
    "initiate": frozenset(
        (
            *("tcp", "latency", "udp", "matrix", "path", "paths", "sweep", "loopback"),
            *("disk", "smbclient-copy"),
        )
    ),
    "observe": frozenset(("sockets",)),
}
"""What an installed agent does: what the server's end of a run needs, and no other login."""


@dataclass(frozen=True)
class AllowedPaths:
    """What the command line of an installed agent allows, as absolute paths without links."""

    folders: Tuple[str, ...] = ()
    """That may be worked in, with what lies below them."""
    devices: Tuple[str, ...] = ()
    """That may be read."""

    def holds(self, path: str) -> bool:
        """Whether a path, with its links followed, is one of the folders or in one of them."""
        return path.startswith("/") and _is_below(path, self.folders)


def allowed_paths(folders: Iterable[str], devices: Iterable[str]) -> AllowedPaths:
    """What a command line allows. Raises Refused, "usage": a path is not absolute, or not there."""
    real = []
    for each in folders:
        if not os.path.isabs(each) or not os.path.isdir(each):  # noqa: PTH112, PTH117 - as typed
            raise Refused("usage", f"--folder {each or '(empty)'}: not the full path of a folder")
        real.append(os.path.realpath(each))
    for each in devices:
        if not os.path.isabs(each):  # noqa: PTH117 - as typed
            raise Refused("usage", f"--device {each or '(empty)'}: not the full path of a device")
    return AllowedPaths(tuple(real), tuple(devices))


@dataclass
class Session:
    """What one agent has handed out in one session, and what its command line allows."""

    allowed: Optional[AllowedPaths] = None
    """None: its caller may choose what this host reads and writes."""
    tasks: int = 0
    leftovers: Set[str] = field(default_factory=set)
    held: Dict[int, str] = field(default_factory=dict)
    """By the hold's number the file that it made and handed out."""

    def hand_out(self, number: int, do: str, name: str, event: Dict[str, Any]) -> None:
        """Remembers what an event tells the caller of, for the requests that come back with it.

        Leftovers elsewhere than an installed agent may work are taken out of it.
        """
        if (do, name) == ("ask", "leftovers") and "answer" in event:
            if self.allowed is not None:
                event["answer"] = [e for e in event["answer"] if self.allowed.holds(e["path"])]
            self.leftovers.update(each["path"] for each in event["answer"])
        elif (do, name) == ("hold", "source-file") and event.get("endpoint", {}).get("path"):
            self.held[number] = event["endpoint"]["path"]

    def take_back(self, number: int) -> None:
        """A hold is over: another child may have its descriptor's number next."""
        self.held.pop(number, None)


def whole_address(address: str) -> str:
    """An IP address without its interface; one of IPv4 in IPv6 as IPv4. Empty: it is none.

    The whole text has to be one: whatever else it holds a resolver or a configuration would read.
    """
    text, percent, interface = address.partition("%")
    plain = sock_diag.plain_address(text)
    if plain is None or percent and not (":" in text and _INTERFACE.fullmatch(interface)):
        return ""
    return str(plain)


def check(request: protocol.Message, session: Session) -> None:
    """Raises Refused ("usage" or "permission") where a request may not be carried out."""
    checked = _Checked(session)
    try:
        do = typed.text(request.get("do"), "do")
        if do not in ENVELOPES:
            raise typed.NotTyped(f"unknown request {do[:40]!r}")
        _closed(request, ("id", "do", *ENVELOPES[do]), "a request")
        if "name" in ENVELOPES[do]:
            name = typed.text(request.get("name"), "name")
            if not requests.is_known(do, name):
                raise typed.NotTyped(f"unknown {do} {name[:40]!r}")
            if session.allowed is not None and name not in INSTALLED_REQUESTS.get(do, (name,)):
                raise _refused(f"an installed agent does not {do} {name}")
        if do == "watch":
            checked.keys(keys(Watched), request.get("watched"), "watched")
        elif do == "close" and request.get("window") is not None:
            ends = typed.array(request["window"], "window")
            if len(ends) != 2:
                raise typed.NotTyped("window must be two numbers")
            for each in ends:
                typed.number(each, "window")
        elif "seconds" in ENVELOPES[do]:
            _check_work(request, requests.takes(do, request["name"]), checked)
            _count(session)
    except typed.NotTyped as error:
        raise Refused("usage", f"the agent refuses a request: {error}") from None


def _check_work(request: protocol.Message, takes: Takes, checked: _Checked) -> None:
    do, session = request["do"], checked.session
    checked.reads_only = request["name"] == "disk"
    checked.value("seconds", request.get("seconds"), "seconds")
    given = request.get("arguments" if do == "ask" else "setting")
    checked.keys(takes.keys, given, "a setting")
    assert isinstance(given, dict)
    for key in takes.keys if do != "ask" else ():
        # One that is left out would be what nobody has checked: its default.
        if key not in given:
            raise typed.NotTyped(f"a setting lacks {key!r}")
    if session.allowed is not None and do != "ask" and not given.get("device"):
        for key, kind in takes.keys.items():
            # The current folder is nobody's choice.
            if kind.startswith("folder") and not given[key]:
                raise _refused(f"{request['name']} needs a folder")
    if "parts" in given and isinstance(given["parts"], list) and session.allowed is not None:
        checked.below(given["folder"], given["parts"])
    if "peer" in ENVELOPES[do]:
        checked.keys(keys(Endpoint), request.get("peer"), "peer")


def _closed(given: Dict[str, Any], known: Iterable[str], where: str) -> None:
    for key in given:
        if key not in known:
            raise typed.NotTyped(f"{where} has an unknown key {key[:40]!r}")


def _count(session: Session) -> None:
    if session.tasks >= MOST_TASKS:
        raise _refused(f"more than {MOST_TASKS} requests in one session of an agent")
    session.tasks += 1


def _refused(what: str) -> Refused:
    return Refused("permission", f"{socket.gethostname()}: {what}")


class _Checked:
    """The values of one request as they are looked at."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.reads_only = False
        """Whether no content of what is named leaves this host."""

    def keys(self, known: Keys, given: object, where: str) -> None:
        """All of them, and no others."""
        told = typed.mapping(given, where)
        _closed(told, known, where)
        for key, value in told.items():
            self.value(known[key], value, key)

    def value(self, kind: str, value: Any, where: str) -> None:
        """One value of a kind."""
        if kind.endswith("?"):
            if value is not None and value != "":
                self.value(kind[:-1], value, where)
        elif kind.endswith("*"):
            items = typed.array(value, where)
            if len(items) > MOST_ITEMS:
                raise typed.NotTyped(f"{where} has {len(items)} items")
            for each in items:
                self.value(kind[:-1], each, where)
        else:
            _KINDS[kind](self, value, where)

    def text(self, value: Any, where: str) -> str:
        """Text of a length that a path or a name may have."""
        found = typed.text(value, where)
        if len(found) > MOST_TEXT or "\0" in found:
            raise typed.NotTyped(f"{where} is too long, or has a NUL")
        return found

    def seconds(self, value: Any, where: str) -> None:
        """A time that a request may take."""
        if typed.number(value, where) > MOST_SECONDS:
            raise typed.NotTyped(f"{where} is more than {MOST_SECONDS:.0f}")

    def hex(self, value: Any, where: str) -> None:
        """The id of a run."""
        if not re.fullmatch("[0-9a-f]{8,64}", self.text(value, where)):
            raise typed.NotTyped(f"{where} is not the id of a run")

    def name(self, value: Any, where: str) -> None:
        """A name in a folder."""
        if self.text(value, where) in ("", ".", "..") or "/" in value:
            raise typed.NotTyped(f"{where} is not a name")

    def address(self, value: Any, where: str) -> None:
        """An address that stands in a configuration; a name would be looked up."""
        text = self.text(value, where)
        if self.session.allowed is not None and text and not whole_address(text):
            raise _refused(f"{where}: {text[:100]!r} is not an IP address")

    def folder(self, value: Any, where: str) -> None:
        """A folder that is read from or written to."""
        path, allowed = self.text(value, where), self.session.allowed
        if allowed is not None and not allowed.holds(path):
            raise _refused(f"{path!r} is in no folder that its agent was started with (--folder)")

    def below(self, folder: str, parts: List[str]) -> None:
        """A file by its way down from a folder, no link on which leads out of it."""
        path = os.path.join(folder, *parts)  # noqa: PTH118 - any bytes
        if not (os.path.lexists(path) and _is_below(path, (folder,))):  # noqa: PTH110 - any bytes
            raise _refused(f"{path!r} was not found, or a link leads to another folder")

    def file(self, value: Any, where: str) -> None:
        """A file that is read here; empty: none."""
        if self.text(value, where):
            self.folder(value, where)

    def handed(self, value: Any, where: str) -> None:
        """A file whose content may leave this host; empty: none."""
        path = self.text(value, where)
        allowed, made = self.session.allowed, self.session.held.values()
        if path == "" or allowed is None or path in made:
            return
        if not (self.reads_only and allowed.holds(path)):
            raise _refused("its agent copies only files that it made")

    def device(self, value: Any, where: str) -> None:
        """A block device that is read; empty: none."""
        node, allowed = self.text(value, where), self.session.allowed
        if node and allowed is not None and node not in allowed.devices:
            raise _refused(f"its agent was not started with --device {node}")

    def leftover(self, value: Any, where: str) -> None:
        """Something that a look for leftovers told of."""
        path = self.text(value, where)
        if self.session.allowed is not None and path not in self.session.leftovers:
            raise _refused(f"{path!r} is not a leftover that the agent listed")


def _at_most(most: int, value: Any, where: str) -> None:
    if typed.whole_number(value, where) > most:
        raise typed.NotTyped(f"{where} is out of range")


_KINDS: Dict[str, Callable[[_Checked, Any, str], object]] = {
    "text": _Checked.text,
    "truth": lambda checked, value, where: typed.truth(value, where),
    "number": lambda checked, value, where: typed.number(value, where),
    "count": lambda checked, value, where: _at_most(MOST_COUNT, value, where),
    "any": lambda checked, value, where: None,
    "port": lambda checked, value, where: _at_most(65535, value, where),
    "seconds": _Checked.seconds,
    "size": lambda checked, value, where: typed.whole_number(value, where),
    "hex": _Checked.hex,
    "name": _Checked.name,
    "address": _Checked.address,
    "folder": _Checked.folder,
    "file": _Checked.file,
    "handed": _Checked.handed,
    "device": _Checked.device,
    "leftover": _Checked.leftover,
}


def _is_below(path: str, folders: Tuple[str, ...]) -> bool:
    """Whether a path, with its links followed, is one of the folders or in one of them."""

    def look() -> bool:
        real = os.path.realpath(path)
        return any(os.path.commonpath((real, top)) == top for top in map(os.path.realpath, folders))

    try:
        return answered(path, time.monotonic() + FOLDER_SECONDS, look)
    except (NoAnswer, OSError, ValueError):
        return False
