"""Asks both hosts and the file server; logs in once if requested; writes nothing."""

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
from bottleneck.login.target import Target, no_mount
from probes.core.records import Access, Details, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.host.facts import Place, Readiness
from probes.net import peers
from probes.smb.server_query import Setting as Visit
from probes.stages import tcp
from probes.system import rtnetlink

PACKAGES = ("smbprotocol", "cryptography", "psutil", "impacket", "krb5")
READY_SECONDS = 30.0
OFFERED_SECONDS = 45.0
LOGIN_SECONDS = 45.0
REACH_SECONDS = 4.0
OK, COSTS, MISSING = "ok", "costs", "missing"
"""States of a check: well; a run knows less; a stage cannot be measured."""
STATES = (OK, COSTS, MISSING)
CLIENT, SERVER, SHARE = "client", "server", "share"


@dataclass(frozen=True)
class Request:
    """Target and options of the planned run."""

    folder: str
    target: Target | None = None
    """None: only this host."""
    access: Access | None = None
    """Credentials; None: no login is tried."""
    agent: str = "none"
    server_folder: str | None = None


@dataclass(frozen=True)
class Trouble:
    """Reason why something was not reached."""

    kind: str
    """A kind of probes.core.stage.Refused."""
    text: str
    remedy: str = ""


@dataclass(frozen=True)
class Program:
    version: str
    python: str
    packages: dict[str, str]
    """Versions of smbprotocol, impacket ... if installed."""
    terminal: bool
    encoding: str
    """Encoding of stdout."""


@dataclass(frozen=True)
class Findings:
    """Answers of hosts and file server; None: not asked, or not reached."""

    request: Request
    program: Program
    client: Readiness
    mount: Place | None = None
    """Folder of TARGET, if it is one."""
    mount_trouble: Trouble | None = None
    """Set if nothing is mounted there."""
    offered: Details | None = None
    """probes.smb.server_query.query_dialects() of the file server."""
    share_trouble: Trouble | None = None
    session: Details | None = None
    """Dialect, signing and encryption of the one login."""
    login_trouble: Trouble | None = None
    server: Readiness | None = None
    agent_trouble: Trouble | None = None
    ahead_seconds: float = 0.0
    """Least lead of the server's clock over this host's; below zero: behind."""
    there: str | None = None
    """Reason why a port of the server's agent is not reached from here; empty: it is reached; None:
    unknown."""
    here: str | None = None
    """Reason why a port here is not reached from the server, as `there`."""


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
    """Stages that are not measured without it, or know less."""
    kind: str = ""
    """Kind of the refusal, if it was one."""


def look(request: Request) -> Findings:
    """Asks hosts and file server. Raises AgentLost if this host's own agent fails."""
    with hosts.start_here() as client:
        target = request.target
        results: dict[str, Any] = {}
        address = ""
        if target is not None and target.host:
            address, results["share_trouble"] = _address(target.host, target.port)
        plain = client.ask("readiness", READY_SECONDS, toward=address, folder=request.folder)
        if target is not None and target.path:
            mount = client.ask("readiness", READY_SECONDS, folder=target.path)
            results["mount"] = _ready(mount).place
            mount_facts = None
            if not results["mount"].trouble:
                mount_facts = client.ask("mount", READY_SECONDS, folder=target.path)
            if mount_facts is not None and not mount_facts["remote"]:
                text = no_mount(target.path, str(mount_facts["filesystem"]))
                results["mount_trouble"] = Trouble("usage", text)
        if target is not None and target.share and not results["share_trouble"]:
            results |= _share(client, request)
        if request.agent != "none":
            results |= _server(client, request, address)
        return Findings(request, program(), _ready(plain), **results)


def program() -> Program:
    """Returns the versions of this program and its environment."""
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
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return "", Trouble("unreachable", f"{host}: cannot resolve the name ({why.lower()})")
    return peers.zoned_address(addresses[0][4]), None


def _trouble(error: Exception) -> Trouble:
    kind = error.kind if isinstance(error, Refused) else "unreachable"
    if isinstance(error, AgentLost):
        return Trouble(kind, error.text, error.remedy)
    return Trouble(kind, str(error))


def _share(client: Host, request: Request) -> dict[str, Any]:
    target = request.target
    assert target is not None
    try:
        offered = client.ask("offered", OFFERED_SECONDS, host=target.host, port=target.port)
    except (Refused, StageError, Unavailable) as error:
        return {"share_trouble": _trouble(error)}
    if request.access is None or not offered["dialects"]:
        return {"offered": offered}
    peer = target.endpoint(request.access)
    try:
        with client.hold("visit", Visit(), peer, LOGIN_SECONDS, LOGIN_SECONDS) as met:
            session: Details = met.facts
    except (Refused, StageError, Unavailable) as error:
        return {"offered": offered, "login_trouble": _trouble(error)}
    return {"offered": offered, "session": session}


def _server(client: Host, request: Request, address: str) -> dict[str, Any]:
    target = request.target
    own_address = rtnetlink.source_address_if_known(address)
    arguments = {
        "toward": own_address,
        "folder": request.server_folder,
        "share": target.share if target is not None else "",
    }
    try:
        with hosts.start_there(request.agent) as server:
            began = time.time()
            ready = _ready(server.ask("readiness", READY_SECONDS, **arguments))
            ended = time.time()
            ports = {
                "there": _closed_port_reason(server, address, client, own_address),
                "here": _closed_port_reason(client, own_address, server, address),
            }
    except (Refused, AgentLost, StageError, Unavailable, protocol.WireError) as error:
        return {"agent_trouble": _trouble(error)}
    ahead = max(0.0, ready.clock_seconds - ended) - max(0.0, began - ready.clock_seconds)
    results: dict[str, Any] = {"server": ready, "ahead_seconds": ahead, **ports}
    return results


def _closed_port_reason(holder: Host, address: str, caller: Host, called_from: str) -> str | None:
    """Returns why a port of one host is not reached from the other; see Findings.there."""
    if not address:
        return None
    setting = tcp.Setting(seconds=REACH_SECONDS, address=address)
    try:
        with holder.hold("tcp", setting, Endpoint(host=called_from), 4 * REACH_SECONDS) as peer:
            place = {"host": address, "port": peer.port, "wait_seconds": REACH_SECONDS}
            return str(caller.ask("reach", 3 * REACH_SECONDS, **place))
    except (StageError, Unavailable, Refused):
        return None
