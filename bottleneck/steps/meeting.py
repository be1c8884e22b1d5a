"""Where copies meet that the server starts: a share on the client, and what copies there."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import dataclass

from bottleneck import hosts, plan, wire
from bottleneck.bench import Bench
from bottleneck.hosts import AgentLost, Host, StageError
from bottleneck.steps import allowance
from bottleneck.target import parse
from probes import smb_copy
from probes.drivers.smbclient import REMEDY
from probes.host.counters import Watched
from probes.records import Endpoint
from probes.smb import client_share
from probes.stage import Refused, Unavailable

LABEL = "copies that the server starts"
OWN, SMBCLIENT = "own", "smbclient"
"""Engines: this product where it is installed there, and Samba's client."""
OPENING_SECONDS = 30.0
CLOSING_SECONDS = 60.0
REACH_SECONDS = 4.0


@dataclass
class Meeting:
    """Where the server's copies go to and come from, and how."""

    bench: Bench
    stack: ExitStack
    engine: str
    by: Host | None
    """The installed agent there; None: the travelling one runs smbclient."""
    share: Endpoint
    """The run's folder on the client's share."""
    seconds: float
    """Meant for one copy."""
    name: str = ""
    """The file on the share that pulls read, once there is one."""
    smaller: Endpoint | None = None
    """The server's file of the size that is pushed, where its own is much larger."""
    good_bytes: int = 0
    """How much of it is known to be the payload."""

    @property
    def path(self) -> str:
        """The run's folder as the client's own path; empty: not found."""
        return str(self.share.facts["local_path"])

    @property
    def private(self) -> bool:
        """Whether it is a share that this run opened."""
        return bool(self.share.facts["engine_server"] != client_share.GIVEN)

    @property
    def dialect(self) -> str:
        """Of the copies."""
        return str(self.share.facts["dialect"])


def meet(bench: Bench, stack: ExitStack, seconds: float) -> Meeting:
    """Opens the client's share for a run, and finds what the server copies with.

    seconds: meant for one copy. Raises Unavailable, Refused or StageError where the server cannot
    copy from and to here, with the remedy.
    """
    if bench.server_path is None:
        raise Unavailable("the share's folder was not found on the server: --server-folder DIR")
    engine, by = _engine(bench, stack)
    share = stack.enter_context(
        bench.client.hold(
            "client-share",
            _setting(bench),
            _given(bench),
            bench.options.budget_seconds + CLOSING_SECONDS,
            OPENING_SECONDS,
        )
    )
    server = share.facts["engine_server"]
    if engine == OWN and server == client_share.IMPACKET:
        # Its handles do not survive what ours ask of them.
        engine, by = _smbclient(bench), None
    _reach(bench, share)
    if server == client_share.GIVEN:
        _watch(bench, bench.client, "client", file_server=True)
        stack.callback(_watch, bench, bench.client, "client", file_server=False)
        _compare_protection(bench, share)
        if not share.facts["local_path"]:
            bench.note("the client's agent does not find the folder of --client-share here")
    return Meeting(bench, stack, engine, by, share, seconds)


def _compare_protection(bench: Bench, share: Endpoint) -> None:
    """The user's own share may protect its copies otherwise than the server's: that costs too."""
    own, there = (
        "encrypted" if facts.get("encryption") else "signed" if facts.get("signing") else "plain"
        for facts in (share.facts, bench.share.facts)
    )
    if own != there:
        bench.note(
            f"copies with the client's share are {own}, those with the server's {there}: "
            "who starts a copy is not all that differs between them"
        )


def _engine(bench: Bench, stack: ExitStack) -> tuple[str, Host | None]:
    """What makes the copies there."""
    try:
        host = stack.enter_context(hosts.start_installed(bench.options.agent))
        host.tell("preload", name=smb_copy.NAME)
    except (AgentLost, StageError, Refused) as error:
        if "version" in str(error):
            bench.note(f"{LABEL}: by smbclient: {error}")
        return _smbclient(bench), None
    _watch(bench, host, "server", file_server=True)
    return OWN, host


def _smbclient(bench: Bench) -> str:
    assert bench.server is not None
    if bench.server.ask("smbclient") is None:
        raise Unavailable(f"the server has nothing to copy with: {REMEDY}")
    return SMBCLIENT


def _given(bench: Bench) -> Endpoint:
    """The user's own share on the client, or nothing."""
    if bench.options.client_share is None:
        return Endpoint()
    target = parse(bench.options.client_share)
    return Endpoint(
        host=target.host,
        port=target.port,
        share=target.share,
        folder=target.folder,
        access=bench.access,
    )


def _setting(bench: Bench) -> client_share.Setting:
    dialect = allowance.dialect(bench)
    own, there = (bench.facts[side].interface for side in ("client", "server"))
    if bench.options.client_share is None:
        if own is None:
            raise Unavailable("this host's address towards the server is unknown: --client-share")
        if dialect == "smb1":
            raise Unavailable(
                "the server's share speaks SMB1 alone, which no share opened here does"
            )
    addresses = [bench.address, there.address if there else "", own.address if own else ""]
    return client_share.Setting(
        run=secrets.token_hex(8),
        dialect=dialect,
        folder=bench.options.folder,
        address=own.address if own else "",
        allow=tuple(dict.fromkeys(each for each in addresses if each)),
        signed=bench.share.facts.get("signing") is not None,
        encrypted=bench.share.facts.get("encryption") is not None,
    )


def _reach(bench: Bench, share: Endpoint) -> None:
    """Raises Unavailable with the remedy where the server gets no connection to the client."""
    assert bench.server is not None
    why = bench.server.ask(
        "reach",
        2 * REACH_SECONDS,
        host=share.host,
        port=share.port,
        patience_seconds=REACH_SECONDS,
    )
    if why:
        own = ", or give --client-share" if bench.options.client_share is None else ""
        raise Unavailable(
            f"the server cannot reach {share.host} port {share.port} ({why}): "
            f"allow it in the client's firewall{own}"
        )


def _watch(bench: Bench, host: Host, side: plan.Side, file_server: bool) -> None:
    """Which of a host's counters belong to its part of a copy."""
    facts = bench.facts[side]
    peer = bench.facts["client" if side == "server" else "server"].interface
    toward = bench.address if side == "client" else (peer.address if peer else "")
    watched = Watched(
        interface=facts.interface.name if facts.interface else None,
        folder_device=facts.folder.device if facts.folder else None,
        file_server=file_server,
        peer_address=toward,
    )
    host.tell("watch", watched=wire.to_plain(watched))
