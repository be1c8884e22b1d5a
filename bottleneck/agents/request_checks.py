"""Decides in the agent itself whether a request may be carried out, whatever its caller claims.

An installed agent (`bottleneck agent --folder DIR`, for ssh's forced commands) works only with
paths of its own command line and files that it created, and runs no command. An agent that a caller
started has the caller's rights anyway: it is only guarded against mistakes. Runs on Python 3.9 with
the standard library alone.
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
from probes.core.field_types import Keys, keys
from probes.core.records import Endpoint
from probes.core.stage import Refused
from probes.host.counters import CountedObjects
from probes.sockets import sock_diag
from probes.system.child import NoAnswer, call_until

MOST_SECONDS = 86_400.0
MOST_AT_ONCE = 16
"""Requests at once: a run needs about eight; each may take the memory of a child."""
MOST_TASKS = 20_000
MOST_COUNT = 1 << 30
MOST_TEXT = 4096
MOST_ITEMS = 1000
FOLDER_SECONDS = 5.0
_INTERFACE = re.compile(r"[0-9A-Za-z_.-]{1,15}")
"""Name of a network interface (IFNAMSIZ of linux/if.h)."""


_NETWORK_STAGES = ("tcp", "latency", "udp", "matrix", "path", "paths", "sweep", "loopback")
INSTALLED_REQUESTS = {
    "ask": frozenset(
        "facts samba-config locate set-cache mount writable-folder usable-bytes user-file "
        "readable-device reach readiness smbclient leftovers remove-leftover running-copies".split()
    ),
    "hold": frozenset(("source-file", *_NETWORK_STAGES)),
    "initiate": frozenset((*_NETWORK_STAGES, "disk", "smbclient-copy")),
    "observe": frozenset(("sockets",)),
}
"""Requests to an installed agent: those of a run's server end, without any login elsewhere."""


@dataclass(frozen=True)
class AllowedPaths:
    """Paths on the command line of an installed agent, absolute and without links."""

    folders: Tuple[str, ...] = ()
    """Folders that the agent may read and write, with all below them."""
    devices: Tuple[str, ...] = ()
    """Block devices that it may read."""

    def holds(self, path: str) -> bool:
        """Whether a path, with its links followed, is one of the folders or in one of them."""
        return path.startswith("/") and _is_below(path, self.folders)


def allowed_paths(folders: Iterable[str], devices: Iterable[str]) -> AllowedPaths:
    """Resolves the paths. Raises Refused, "usage": one is not absolute, or does not exist."""
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
    """State of one session: names given to the caller, and allowed paths."""

    allowed: Optional[AllowedPaths] = None
    """None: the caller may choose any path of this host."""
    tasks: int = 0
    leftovers: Set[str] = field(default_factory=set)
    source_files: Dict[int, str] = field(default_factory=dict)
    """Path of the file that a hold created, by the hold's number."""

    def hand_out(self, number: int, do: str, name: str, event: Dict[str, Any]) -> None:
        """Remembers leftovers and files that an event names, for later requests with them.

        Leftovers outside an installed agent's folders are removed from the event.
        """
        if (do, name) == ("ask", "leftovers") and "answer" in event:
            if self.allowed is not None:
                event["answer"] = [e for e in event["answer"] if self.allowed.holds(e["path"])]
            self.leftovers.update(each["path"] for each in event["answer"])
        elif (do, name) == ("hold", "source-file") and event.get("endpoint", {}).get("path"):
            self.source_files[number] = event["endpoint"]["path"]


def whole_address(address: str) -> str:
    """Returns an IP address without its interface, IPv4 in IPv6 as IPv4; empty: it is none.

    The whole text must be one: a resolver or a configuration would read anything else in it.
    """
    text, percent, interface = address.partition("%")
    plain = sock_diag.plain_address(text)
    if plain is None or percent and not (":" in text and _INTERFACE.fullmatch(interface)):
        return ""
    return str(plain)


def check(request: protocol.Message, session: Session) -> None:
    """Raises Refused ("usage" or "permission") if a request must not be carried out."""
    checked = _ValueChecks(session)
    try:
        do = typed.text(request.get("do"), "do")
        if do not in ENVELOPES:
            raise typed.NotTyped(f"unknown request {do[:40]!r}")
        _refuse_unknown_keys(request, ("id", "do", *ENVELOPES[do]), "a request")
        if "name" in ENVELOPES[do]:
            name = typed.text(request.get("name"), "name")
            if not requests.is_known(do, name):
                raise typed.NotTyped(f"unknown {do} {name[:40]!r}")
            if session.allowed is not None and name not in INSTALLED_REQUESTS.get(do, (name,)):
                raise _refusal(f"an installed agent does not {do} {name}")
        if do == "watch":
            checked.keys(keys(CountedObjects), request.get("watched"), "watched")
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


def _check_work(request: protocol.Message, takes: Takes, checked: _ValueChecks) -> None:
    do, session = request["do"], checked.session
    checked.reads_only = request["name"] == "disk"
    checked.value("seconds", request.get("seconds"), "seconds")
    values = request.get("arguments" if do == "ask" else "setting")
    checked.keys(takes.keys, values, "a setting")
    assert isinstance(values, dict)
    for key in takes.keys if do != "ask" else ():
        # The default of a missing key would be an unchecked value.
        if key not in values:
            raise typed.NotTyped(f"a setting lacks {key!r}")
    if session.allowed is not None and do != "ask" and not values.get("device"):
        for key, kind in takes.keys.items():
            # Without a folder the current one would be used, which nobody chose.
            if kind.startswith("folder") and not values[key]:
                raise _refusal(f"{request['name']} needs a folder")
    if "parts" in values and isinstance(values["parts"], list) and session.allowed is not None:
        checked.check_below(values["folder"], values["parts"])
    if "peer" in ENVELOPES[do]:
        checked.keys(keys(Endpoint), request.get("peer"), "peer")


def _refuse_unknown_keys(values: Dict[str, Any], names: Iterable[str], where: str) -> None:
    for key in values:
        if key not in names:
            raise typed.NotTyped(f"{where} has an unknown key {key[:40]!r}")


def _count(session: Session) -> None:
    if session.tasks >= MOST_TASKS:
        raise _refusal(f"more than {MOST_TASKS} requests in one session of an agent")
    session.tasks += 1


def _refusal(what: str) -> Refused:
    return Refused("permission", f"{socket.gethostname()}: {what}")


class _ValueChecks:
    """Checks of the values of one request, by meaning."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.reads_only = False
        """Whether no file's content leaves this host."""

    def keys(self, meanings: Keys, value: object, where: str) -> None:
        """Checks an object: all of these keys, and no others."""
        values = typed.mapping(value, where)
        _refuse_unknown_keys(values, meanings, where)
        for key, item in values.items():
            self.value(meanings[key], item, key)

    def value(self, kind: str, value: Any, where: str) -> None:
        """Checks one value by its meaning."""
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
        """Returns text of a length that a path or a name may have."""
        text = typed.text(value, where)
        if len(text) > MOST_TEXT or "\0" in text:
            raise typed.NotTyped(f"{where} is too long, or has a NUL")
        return text

    def seconds(self, value: Any, where: str) -> None:
        """Checks a time that a request may take."""
        if typed.number(value, where) > MOST_SECONDS:
            raise typed.NotTyped(f"{where} is more than {MOST_SECONDS:.0f}")

    def hex(self, value: Any, where: str) -> None:
        """Checks the id of a run."""
        if not re.fullmatch("[0-9a-f]{8,64}", self.text(value, where)):
            raise typed.NotTyped(f"{where} is not the id of a run")

    def name(self, value: Any, where: str) -> None:
        """Checks a name in a folder."""
        if self.text(value, where) in ("", ".", "..") or "/" in value:
            raise typed.NotTyped(f"{where} is not a name")

    def address(self, value: Any, where: str) -> None:
        """Checks an address for a configuration; a name would be looked up."""
        text = self.text(value, where)
        if self.session.allowed is not None and text and not whole_address(text):
            raise _refusal(f"{where}: {text[:100]!r} is not an IP address")

    def folder(self, value: Any, where: str) -> None:
        """Checks a folder that is read or written."""
        path, allowed = self.text(value, where), self.session.allowed
        if allowed is not None and not allowed.holds(path):
            raise _refusal(f"{path!r} is in no folder that its agent was started with (--folder)")

    def check_below(self, folder: str, parts: List[str]) -> None:
        """Checks a file below a folder: no link on the way may lead out of it."""
        path = os.path.join(folder, *parts)  # noqa: PTH118 - any bytes
        if not (os.path.lexists(path) and _is_below(path, (folder,))):  # noqa: PTH110 - any bytes
            raise _refusal(f"{path!r} was not found, or a link leads to another folder")

    def file(self, value: Any, where: str) -> None:
        """Checks a file that is read here; empty: none."""
        if self.text(value, where):
            self.folder(value, where)

    def check_handed_file(self, value: Any, where: str) -> None:
        """Checks a file whose content may leave this host; empty: none."""
        path = self.text(value, where)
        allowed, handed_out = self.session.allowed, self.session.source_files.values()
        if path == "" or allowed is None or path in handed_out:
            return
        if not (self.reads_only and allowed.holds(path)):
            raise _refusal("its agent copies only files that it made")

    def device(self, value: Any, where: str) -> None:
        """Checks a block device that is read; empty: none."""
        node, allowed = self.text(value, where), self.session.allowed
        if node and allowed is not None and node not in allowed.devices:
            raise _refusal(f"its agent was not started with --device {node}")

    def leftover(self, value: Any, where: str) -> None:
        """Checks a path that a search for leftovers returned."""
        path = self.text(value, where)
        if self.session.allowed is not None and path not in self.session.leftovers:
            raise _refusal(f"{path!r} is not a leftover that the agent listed")


def _at_most(limit: int, value: Any, where: str) -> None:
    if typed.whole_number(value, where) > limit:
        raise typed.NotTyped(f"{where} is out of range")


_KINDS: Dict[str, Callable[[_ValueChecks, Any, str], object]] = {
    "text": _ValueChecks.text,
    "truth": lambda checked, value, where: typed.truth(value, where),
    "number": lambda checked, value, where: typed.number(value, where),
    "count": lambda checked, value, where: _at_most(MOST_COUNT, value, where),
    "any": lambda checked, value, where: None,
    "port": lambda checked, value, where: _at_most(65535, value, where),
    "seconds": _ValueChecks.seconds,
    "size": lambda checked, value, where: typed.whole_number(value, where),
    "hex": _ValueChecks.hex,
    "name": _ValueChecks.name,
    "address": _ValueChecks.address,
    "folder": _ValueChecks.folder,
    "file": _ValueChecks.file,
    "handed": _ValueChecks.check_handed_file,
    "device": _ValueChecks.device,
    "leftover": _ValueChecks.leftover,
}


def _is_below(path: str, folders: Tuple[str, ...]) -> bool:
    """Whether a path, with its links followed, is one of the folders or in one of them."""

    def look() -> bool:
        real = os.path.realpath(path)
        return any(os.path.commonpath((real, top)) == top for top in map(os.path.realpath, folders))

    try:
        return call_until(path, time.monotonic() + FOLDER_SECONDS, look)
    except (NoAnswer, OSError, ValueError):
        return False
