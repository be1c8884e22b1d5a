"""Copies that the server starts: their share on the client, its files, and what copies there."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from bottleneck.agents.hosts import Host, StageError
from bottleneck.run import plan
from bottleneck.run.clock import Clock
from bottleneck.run.files import Files
from bottleneck.run.log import Log
from bottleneck.run.steps.sources import cache_proof, hold_source, ready_cache
from bottleneck.run.world import World
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

    world: World
    clock: Clock
    log: Log
    files: Files
    stack: ExitStack
    seconds: float = 0.0
    """Meant for one copy."""
    share: Endpoint = field(default_factory=Endpoint)
    """The run's folder on the client's share, once it is open."""
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

    def open(self) -> None:
        """Opens the client's share for a run, and finds what the server copies with.

        Raises Unavailable, Refused or StageError where the server cannot copy from and to here,
        with the remedy.
        """
        if self.files.server_path is None:
            raise Unavailable("the share's folder was not found there (use --server-folder DIR)")
        assert self.world.server is not None
        if self.world.server.ask("smbclient") is None:
            raise Unavailable(f"the server has no program to copy with ({REMEDY})")
        own_share = self.world.options.client_share
        there = Endpoint() if own_share is None else parse(own_share).endpoint(self.world.access)
        given = self._setting(), there, self.clock.lifetime, OPENING_SECONDS
        share = self.stack.enter_context(self.world.client.hold("client-share", *given))
        self.share = share
        self._reach(share)
        if share.facts["engine_server"] == client_share.GIVEN:
            self._watch(self.world.client, "client", file_server=True)
            self.stack.callback(self._watch, self.world.client, "client", file_server=False)
            self._compare_protection(share)
            if not share.facts["local_path"]:
                self.log.note("the client's agent cannot find the folder of --client-share here")
        elif not share.facts["on_folder_disk"]:
            self.log.note(
                f"others may change {self.world.options.folder}: the copies that the server "
                f"started used {nameless.on_disk()} on this host"
            )

    def _compare_protection(self, share: Endpoint) -> None:
        """The user's own share may protect its copies otherwise than the server's does."""
        words = (("encryption", "encrypted"), ("signing", "signed"))
        own, there = (
            next((word for name, word in words if facts.get(name)), "plain")
            for facts in (share.facts, self.files.share.facts)
        )
        if own != there:
            self.log.note(
                f"copies with the client's share are {own}, copies with the server's share "
                f"{there}: they differ in more than who starts them"
            )

    def _setting(self) -> client_share.Setting:
        dialect = self.files.dialect
        own, there = (self.world.facts[side].interface for side in ("client", "server"))
        if self.world.options.client_share is None:
            if own is None:
                unknown = "this host's address for the server is unknown"
                raise Unavailable(f"{unknown} (use --client-share)")
            if dialect == "smb1":
                only = "the server's share supports SMB1 only"
                raise Unavailable(f"{only}, and a share opened on this host does not")
        addresses = [self.world.address, there.address if there else "", own.address if own else ""]
        return client_share.Setting(
            run=secrets.token_hex(16),
            dialect=dialect,
            folder=self.world.options.folder,
            address=own.address if own else "",
            allow=tuple(dict.fromkeys(each for each in addresses if each)),
            signed=self.files.share.facts.get("signing") is not None,
            encrypted=self.files.share.facts.get("encryption") is not None,
        )

    def _reach(self, share: Endpoint) -> None:
        """Raises Unavailable with the remedy where the server gets no connection to the client."""
        assert self.world.server is not None
        why = self.world.server.ask(
            "reach", 2 * REACH_SECONDS, host=share.host, port=share.port, wait_seconds=REACH_SECONDS
        )
        if why:
            own = ", or use --client-share" if self.world.options.client_share is None else ""
            raise Unavailable(
                f"the server cannot reach {share.host} port {share.port} ({why}): "
                f"allow it in the client's firewall{own}"
            )

    def _watch(self, host: Host, side: plan.Side, file_server: bool) -> None:
        """Which of a host's counters belong to its part of a copy."""
        toward = self.world.address_of("server" if side == "client" else "client")
        host.watch(self.world.facts[side], toward, file_server)

    def whole_source(self, size: int) -> tuple[int, str]:
        """The server's file of exactly that size, as smbclient can send no part; its path."""
        source = self.smaller or self.files.sources["server"]
        whole = int(source.facts["size_bytes"])
        if size >= WHOLE_RATIO * whole:
            return whole, source.path
        assert self.world.server is not None
        folder, grace = self.files.test_folder("server"), OPENING_SECONDS - self.world.times().fill
        held = hold_source(self.world, self.clock, self.world.server, folder, size, grace)
        smaller = self.smaller = self.stack.enter_context(held)()
        return int(smaller.facts["size_bytes"]), smaller.path

    def looked_at(self, name: str, size: int) -> bool | None:
        """Whether what arrived at the client is the payload; None: its agent cannot look."""
        if not self.path:
            return None
        asked = {"path": self.path, "file_name": name, "size_bytes": size, "seed": self.world.seed}
        try:
            return bool(self.world.client.ask("served-intact", LOOK_SECONDS, **asked))
        except (StageError, Refused, Unavailable) as error:
            self.log.note(f"the file that the server pushed could not be checked: {error}")
            return None

    def replace_source(self, name: str, size: int) -> None:
        """What was pushed last is what pulls read."""
        older, self.name, self.good_bytes = self.name, name, size
        if older and self.path:
            self.world.client.ask("served-remove", path=self.path, file_name=older)

    def source_of(self, size: int) -> int:
        """Brings the file that a pull reads to that size, where the client can; its size."""
        if not self.path:
            return self.good_bytes
        name = self.name or new_name(self.path)
        asked: dict[str, Any] = {"path": self.path, "file_name": name, "seed": self.world.seed}
        asked |= {"limit_seconds": self.world.times().fill, "create": not self.name}
        if not self.name and self.share.facts["engine_server"] == client_share.GIVEN:
            return self.good_bytes
        seconds = self.world.times().fill + RESIZE_GRACE_SECONDS
        try:
            made = int(self.world.client.ask("served-resize", seconds, size_bytes=size, **asked))
        except (StageError, Refused, Unavailable):
            # Another user's file: it is pulled as it is.
            return self.good_bytes
        self.name, self.good_bytes = name, made
        return made

    def client_cache(self, copy: str, size: int) -> Details:
        """Has the client make a pull's source cold or warm, and prove it; goes into the details."""
        requested = copy.partition(".")[2]
        if not self.path and requested == "uncached":
            raise Unavailable(
                "the source could not be removed from the page cache: the client's agent cannot "
                "find the folder of its share"
            )
        client = self.world.client
        proof = ready_cache(client, self.path, copy, size, file_name=self.name)
        return {**(proof or cache_proof("client", requested)), "side": "client"}
