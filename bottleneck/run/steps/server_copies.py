"""Copies that the server starts: their share on the client, its files, and what copies there."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from bottleneck.agents.hosts import Host, StageError
from bottleneck.run import plan
from bottleneck.run.bench import Bench
from bottleneck.run.steps import files
from bottleneck.target.target import parse
from probes.core.records import Details, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import nameless
from probes.files.served_file import new_name
from probes.programs.smbclient import REMEDY
from probes.smb import client_share

LABEL = "copies started by the server"
SMBCLIENT = "smbclient"
"""Who makes them there."""
OPENING_SECONDS = 30.0
REACH_SECONDS = 4.0
RESIZE_GRACE_SECONDS = 12.0
LOOK_SECONDS = 20.0
WHOLE_RATIO = 0.8
"""A source that is not much larger than wanted is copied whole."""


@dataclass
class ServerCopies:
    """Where the server's copies go to and come from, and how."""

    bench: Bench
    stack: ExitStack
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
    def dialect(self) -> str:
        """Of the copies."""
        return str(self.share.facts["dialect"])


def open_copies(bench: Bench, stack: ExitStack, seconds: float) -> ServerCopies:
    """Opens the client's share for a run, and finds what the server copies with.

    seconds: meant for one copy. Raises Unavailable, Refused or StageError where the server cannot
    copy from and to here, with the remedy.
    """
    if bench.world.server_path is None:
        raise Unavailable("the share's folder was not found there (use --server-folder DIR)")
    assert bench.world.server is not None
    if bench.world.server.ask("smbclient") is None:
        raise Unavailable(f"the server has no program to copy with ({REMEDY})")
    own_share = bench.world.options.client_share
    share = stack.enter_context(
        bench.world.client.hold(
            "client-share",
            _setting(bench),
            Endpoint() if own_share is None else parse(own_share).endpoint(bench.world.access),
            bench.clock.lifetime,
            OPENING_SECONDS,
        )
    )
    _reach(bench, share)
    if share.facts["engine_server"] == client_share.GIVEN:
        _watch(bench, bench.world.client, "client", file_server=True)
        stack.callback(_watch, bench, bench.world.client, "client", file_server=False)
        _compare_protection(bench, share)
        if not share.facts["local_path"]:
            bench.note("the client's agent cannot find the folder of --client-share here")
    elif not share.facts["on_folder_disk"]:
        bench.note(
            f"others may change {bench.world.options.folder}: the copies that the server started "
            f"used {nameless.on_disk()} on this host"
        )
    return ServerCopies(bench, stack, share, seconds)


def _compare_protection(bench: Bench, share: Endpoint) -> None:
    """The user's own share may protect its copies otherwise than the server's: that costs too."""
    own, there = (
        "encrypted" if facts.get("encryption") else "signed" if facts.get("signing") else "plain"
        for facts in (share.facts, bench.world.share.facts)
    )
    if own != there:
        bench.note(
            f"copies with the client's share are {own}, copies with the server's share "
            f"{there}: they differ in more than who starts them"
        )


def _setting(bench: Bench) -> client_share.Setting:
    dialect = str(bench.world.share.facts["dialect"])
    own, there = (bench.world.facts[side].interface for side in ("client", "server"))
    if bench.world.options.client_share is None:
        if own is None:
            raise Unavailable("this host's address for the server is unknown (use --client-share)")
        if dialect == "smb1":
            raise Unavailable(
                "the server's share supports SMB1 only, and a share opened on this host does not"
            )
    addresses = [bench.world.address, there.address if there else "", own.address if own else ""]
    return client_share.Setting(
        run=secrets.token_hex(16),
        dialect=dialect,
        folder=bench.world.options.folder,
        address=own.address if own else "",
        allow=tuple(dict.fromkeys(each for each in addresses if each)),
        signed=bench.world.share.facts.get("signing") is not None,
        encrypted=bench.world.share.facts.get("encryption") is not None,
    )


def _reach(bench: Bench, share: Endpoint) -> None:
    """Raises Unavailable with the remedy where the server gets no connection to the client."""
    assert bench.world.server is not None
    why = bench.world.server.ask(
        "reach",
        2 * REACH_SECONDS,
        host=share.host,
        port=share.port,
        wait_seconds=REACH_SECONDS,
    )
    if why:
        own = ", or use --client-share" if bench.world.options.client_share is None else ""
        raise Unavailable(
            f"the server cannot reach {share.host} port {share.port} ({why}): "
            f"allow it in the client's firewall{own}"
        )


def _watch(bench: Bench, host: Host, side: plan.Side, file_server: bool) -> None:
    """Which of a host's counters belong to its part of a copy."""
    toward = bench.world.address_of("server" if side == "client" else "client")
    host.watch(bench.world.facts[side], toward, file_server)


def whole_source(served: ServerCopies, size: int) -> tuple[int, str]:
    """The server's file of exactly that size, which is all that smbclient can send; its path."""
    bench = served.bench
    source = served.smaller or bench.sources["server"]
    whole = int(source.facts["size_bytes"])
    if size >= WHOLE_RATIO * whole:
        return whole, source.path
    assert bench.world.server is not None
    grace_seconds = OPENING_SECONDS - bench.world.times().fill
    held = files.hold_source(
        bench, bench.world.server, bench.world.test_file_folder("server"), size, grace_seconds
    )
    smaller = served.stack.enter_context(held)
    served.smaller = smaller
    return int(smaller.facts["size_bytes"]), smaller.path


def looked_at(served: ServerCopies, name: str, size: int) -> bool | None:
    """Whether what arrived at the client is the payload; None: its agent cannot look."""
    if not served.path:
        return None
    bench = served.bench
    asked = {"path": served.path, "file_name": name, "size_bytes": size, "seed": bench.seed}
    try:
        return bool(bench.world.client.ask("served-intact", LOOK_SECONDS, **asked))
    except (StageError, Refused, Unavailable) as error:
        bench.note(f"the file that the server pushed could not be checked: {error}")
        return None


def replace_source(served: ServerCopies, name: str, size: int) -> None:
    """What was pushed last is what pulls read."""
    older, served.name, served.good_bytes = served.name, name, size
    if older and served.path:
        served.bench.world.client.ask("served-remove", path=served.path, file_name=older)


def source_of(served: ServerCopies, size: int) -> int:
    """Brings the file that a pull reads to that size, where the client's agent can; its size."""
    if not served.path:
        return served.good_bytes
    bench = served.bench
    name = served.name or new_name(served.path)
    asked: dict[str, Any] = {"path": served.path, "file_name": name, "seed": bench.seed}
    asked |= {"limit_seconds": bench.world.times().fill, "create": not served.name}
    if not served.name and served.share.facts["engine_server"] == client_share.GIVEN:
        return served.good_bytes
    seconds = bench.world.times().fill + RESIZE_GRACE_SECONDS
    try:
        made = int(bench.world.client.ask("served-resize", seconds, size_bytes=size, **asked))
    except (StageError, Refused, Unavailable):
        # Another user's file: it is pulled as it is.
        return served.good_bytes
    served.name, served.good_bytes = name, made
    return made


def client_cache(served: ServerCopies, copy: str, size: int) -> Details:
    """Has the client make a pull's source cold or warm, and prove it; goes into the details."""
    requested = copy.partition(".")[2]
    if not served.path and requested == "uncached":
        raise Unavailable(
            "the source could not be removed from the page cache: the client's agent cannot "
            "find the folder of its share"
        )
    client = served.bench.world.client
    proof = files.ready_cache(client, served.path, copy, size, file_name=served.name)
    return {**(proof or files.cache_proof("client", requested)), "side": "client"}
