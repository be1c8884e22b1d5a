"""Asks both hosts and the file server; logs in once where that was asked for; writes nothing."""

from __future__ import annotations

import platform
import socket
import sys
import time
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from bottleneck import __version__
from bottleneck.agents import hosts, protocol
from bottleneck.agents.hosts import AgentLost, Host, StageError
from bottleneck.target.target import Target, no_mount
from probes.core.records import Access, Details, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.host.facts import Place, Readiness
from probes.net import callers
from probes.smb.offered import Setting as Visit
from probes.stages import tcp
from probes.system import rtnetlink

PACKAGES = ("smbprotocol", "cryptography", "psutil", "impacket", "krb5")
READY_SECONDS = 30.0
OFFERED_SECONDS = 45.0
LOGIN_SECONDS = 45.0
REACH_SECONDS = 4.0
OK, COSTS, MISSING = "ok", "costs", "missing"
"""All is well; a run knows less without it; a stage cannot be measured without it."""
STATES = (OK, COSTS, MISSING)
CLIENT, SERVER, SHARE = "client", "server", "share"


@dataclass(frozen=True)
class Wanted:
    """What the run would be."""

    folder: str
    target: Target | None = None
    """None: this host alone."""
    access: Access | None = None
    """Who would log in; None: no login is tried."""
    agent: str = "none"
    server_folder: str | None = None


@dataclass(frozen=True)
class Trouble:
    """Why something was not reached."""

    kind: str
    """One of probes.core.stage.Refused's."""
    text: str
    remedy: str = ""


@dataclass(frozen=True)
class Program:
    """This program and what it runs on."""

    version: str
    python: str
    packages: dict[str, str]
    """Versions of smbprotocol, impacket ... where installed."""
    terminal: bool
    encoding: str
    """Of stdout."""


@dataclass(frozen=True)
class Looked:
    """All that was seen; None: not asked, or not reached."""

    wanted: Wanted
    program: Program
    client: Readiness
    mount: Place | None = None
    """TARGET where it is a folder."""
    mount_trouble: Trouble | None = None
    """That nothing is mounted there."""
    offered: Details | None = None
    """probes.smb.offered.offered() of the file server."""
    share_trouble: Trouble | None = None
    session: Details | None = None
    """What was agreed in the one login."""
    login_trouble: Trouble | None = None
    server: Readiness | None = None
    agent_trouble: Trouble | None = None
    ahead_seconds: float = 0.0
    """How far the server's clock is ahead of this host's, at least; below zero: behind."""
    there: str | None = None
    """Why a port that the server's agent opens is not reached from here; empty: it is; None: that
    was not found out."""
    here: str | None = None
    """The same of a port here, from the server."""


@dataclass(frozen=True)
class Check:
    """One line of the result."""

    where: str
    """CLIENT, SERVER or SHARE."""
    name: str
    state: str
    """One of STATES."""
    sentence: str
    remedy: str = ""
    stages: tuple[str, ...] = ()
    """What is not measured without it, or knows less."""
    kind: str = ""
    """Of a refusal, where that is what it was."""


def look(wanted: Wanted) -> Looked:
    """All that can be seen for this run. Raises AgentLost where this host's own agent is none."""
    with hosts.start_here() as client:
        target = wanted.target
        found: dict[str, Any] = {}
        address = ""
        if target is not None and target.host:
            address, found["share_trouble"] = _address(target.host, target.port)
        plain = client.ask("readiness", READY_SECONDS, toward=address, folder=wanted.folder)
        if target is not None and target.path:
            mount = client.ask("readiness", READY_SECONDS, folder=target.path)
            found["mount"] = _ready(mount).place
            shown = None
            if not found["mount"].trouble:
                shown = client.ask("mount", READY_SECONDS, folder=target.path)
            if shown is not None and not shown["remote"]:
                text = no_mount(target.path, str(shown["filesystem"]))
                found["mount_trouble"] = Trouble("usage", text)
        if target is not None and target.share and not found["share_trouble"]:
            found |= _share(client, wanted)
        if wanted.agent != "none":
            found |= _server(client, wanted, address)
        return Looked(wanted, program(), _ready(plain), **found)


def program() -> Program:
    """This program and what it runs on."""
    packages = {}
    for each in PACKAGES:
        try:
            packages[each] = metadata.version(each)
        except metadata.PackageNotFoundError:
            continue
    return Program(
        version=__version__,
        python=platform.python_version(),
        packages=packages,
        terminal=sys.stderr.isatty(),
        encoding=sys.stdout.encoding or "ascii",
    )


def _ready(plain: Any) -> Readiness:
    return protocol.from_plain(Readiness, plain)


def _address(host: str, port: int) -> tuple[str, Trouble | None]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return "", Trouble("unreachable", f"{host}: cannot resolve the name ({why.lower()})")
    return callers.with_zone(found[0][4]), None


def _trouble(error: Exception) -> Trouble:
    kind = error.kind if isinstance(error, Refused) else "unreachable"
    if isinstance(error, AgentLost):
        return Trouble(kind, error.text, error.remedy)
    return Trouble(kind, str(error))


def _share(client: Host, wanted: Wanted) -> dict[str, Any]:
    target = wanted.target
    assert target is not None
    try:
        offered = client.ask("offered", OFFERED_SECONDS, host=target.host, port=target.port)
    except (Refused, StageError, Unavailable) as error:
        return {"share_trouble": _trouble(error)}
    if wanted.access is None or not offered["dialects"]:
        return {"offered": offered}
    peer = target.endpoint(wanted.access)
    try:
        with client.hold("visit", Visit(), peer, LOGIN_SECONDS, LOGIN_SECONDS) as met:
            session: Details = met.facts
    except (Refused, StageError, Unavailable) as error:
        return {"offered": offered, "login_trouble": _trouble(error)}
    return {"offered": offered, "session": session}


def _server(client: Host, wanted: Wanted, address: str) -> dict[str, Any]:
    target = wanted.target
    own_address = _own_address(address)
    asked = {
        "toward": own_address,
        "folder": wanted.server_folder,
        "share": target.share if target is not None else "",
    }
    try:
        with hosts.start_there(wanted.agent) as server:
            began = time.time()
            ready = _ready(server.ask("readiness", READY_SECONDS, **asked))
            ended = time.time()
            ports = {
                "there": _reached(server, address, client, own_address),
                "here": _reached(client, own_address, server, address),
            }
    except (Refused, AgentLost, StageError, Unavailable, protocol.WireError) as error:
        return {"agent_trouble": _trouble(error)}
    ahead = max(0.0, ready.clock_seconds - ended) - max(0.0, began - ready.clock_seconds)
    found: dict[str, Any] = {"server": ready, "ahead_seconds": ahead, **ports}
    return found


def _reached(holder: Host, address: str, caller: Host, called_from: str) -> str | None:
    """Why a port that one host opens is not reached from the other; see Looked.there."""
    if not address:
        return None
    setting = tcp.Setting(seconds=REACH_SECONDS, address=address)
    try:
        with holder.hold("tcp", setting, Endpoint(host=called_from), 4 * REACH_SECONDS) as peer:
            place = {"host": address, "port": peer.port, "wait_seconds": REACH_SECONDS}
            return str(caller.ask("reach", 3 * REACH_SECONDS, **place))
    except (StageError, Unavailable, Refused):
        return None


def _own_address(address: str) -> str:
    """This host's address towards the server, empty where unknown; nothing is sent."""
    try:
        return rtnetlink.source_address(address) if address else ""
    except (OSError, ValueError):
        return ""
