"""Share on the client, and its files, for copies that the server starts."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from bottleneck.agents.hosts import Host, StageError
from bottleneck.login.target import parse
from bottleneck.run import plan
from bottleneck.run.steps.sources import cache_details, hold_source, prepare_cache
from bottleneck.run.world import RunState
from probes.core.records import Details, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import unnamed_file
from probes.files.served_file import new_name
from probes.programs.smbclient import REMEDY
from probes.smb import client_share

LABEL = "copies started by the server"
SMBCLIENT = "smbclient"
"""Engine of these copies."""
OPENING_SECONDS = 30.0
REACH_SECONDS = 4.0
RESIZE_GRACE_SECONDS = 12.0
LOOK_SECONDS = 20.0
WHOLE_RATIO = 0.8
"""Least requested size over a source's size at which the source is copied whole."""


@dataclass
class ClientShare(RunState):
    """Share and files of the server's copies."""

    stack: ExitStack
    seconds: float = 0.0
    """Intended time of one copy."""
    share: Endpoint = field(default_factory=Endpoint)
    """Run's folder on the client's share, once it is open."""
    name: str = ""
    """File on the share that pulls read; empty: there is none yet."""
    smaller: Endpoint | None = None
    """Server's file of the pushed size, if its source file is much larger."""
    good_bytes: int = 0
    """Bytes of the file on the share that are known to be payload."""

    @property
    def path(self) -> str:
        """Client's path of the run's folder; empty: not found."""
        return str(self.share.facts["local_path"])

    @property
    def dialect(self) -> str:
        return str(self.share.facts["dialect"])

    def open_share(self) -> None:
        """Opens the client's share for a run, and finds the server's program.

        Raises Unavailable, Refused or StageError, with the remedy, if the server cannot copy from
        and to here.
        """
        if self.files.server_path is None:
            raise Unavailable("the share's folder was not found there (use --server-folder DIR)")
        assert self.world.server is not None
        if self.world.server.ask("smbclient") is None:
            raise Unavailable(f"the server has no program to copy with ({REMEDY})")
        own_share = self.world.options.client_share
        there = Endpoint() if own_share is None else parse(own_share).endpoint(self.world.access)
        arguments = self._share_setting(), there, self.clock.lifetime, OPENING_SECONDS
        share = self.stack.enter_context(self.world.client.hold("client-share", *arguments))
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
                f"started used {unnamed_file.on_disk()} on this host"
            )

    def _compare_protection(self, share: Endpoint) -> None:
        """Notes if the client's share protects its copies differently than the server's."""
        words = (("encryption", "encrypted"), ("signing", "signed"))
        of_client, of_server = (
            next((word for name, word in words if facts.get(name)), "plain")
            for facts in (share.facts, self.files.share.facts)
        )
        if of_client != of_server:
            self.log.note(
                f"copies with the client's share are {of_client}, copies with the server's share "
                f"{of_server}: they differ in more than who starts them"
            )

    def _share_setting(self) -> client_share.Setting:
        dialect = self.files.dialect
        client, server = (self.world.facts[side].interface for side in ("client", "server"))
        if self.world.options.client_share is None:
            if client is None:
                unknown = "this host's address for the server is unknown"
                raise Unavailable(f"{unknown} (use --client-share)")
            if dialect == "smb1":
                only = "the server's share supports SMB1 only"
                raise Unavailable(f"{only}, and a share opened on this host does not")
        addresses = [self.world.address, *(each.address for each in (server, client) if each)]
        return client_share.Setting(
            run=secrets.token_hex(16),
            dialect=dialect,
            folder=self.world.options.folder,
            address=client.address if client else "",
            allow=tuple(dict.fromkeys(each for each in addresses if each)),
            signed=self.files.share.facts.get("signing") is not None,
            encrypted=self.files.share.facts.get("encryption") is not None,
        )

    def _reach(self, share: Endpoint) -> None:
        """Raises Unavailable, with the remedy, if the server cannot connect to the client."""
        assert self.world.server is not None
        why = self.world.server.ask(
            "reach", 2 * REACH_SECONDS, host=share.host, port=share.port, wait_seconds=REACH_SECONDS
        )
        if why:
            hint = ", or use --client-share" if self.world.options.client_share is None else ""
            raise Unavailable(
                f"the server cannot reach {share.host} port {share.port} ({why}): "
                f"allow it in the client's firewall{hint}"
            )

    def _watch(self, host: Host, side: plan.Side, file_server: bool) -> None:
        """Sets the counters that belong to a host's part of a copy."""
        toward = self.world.address_of("server" if side == "client" else "client")
        host.watch(self.world.facts[side], toward, file_server)

    def whole_source(self, size: int) -> tuple[int, str]:
        """Returns size and path of a file to push, because smbclient cannot send a part."""
        source = self.smaller or self.files.sources["server"]
        source_bytes = int(source.facts["size_bytes"])
        if size >= WHOLE_RATIO * source_bytes:
            return source_bytes, source.path
        assert self.world.server is not None
        folder = self.files.test_folder("server")
        grace = OPENING_SECONDS - self.world.times().fill_source
        holder = hold_source(self.world, self.clock, self.world.server, folder, size, grace)
        smaller = self.smaller = self.stack.enter_context(holder)()
        return int(smaller.facts["size_bytes"]), smaller.path

    def is_intact(self, name: str, size: int) -> bool | None:
        """Whether the file at the client is the payload; None: its agent cannot check."""
        if not self.path:
            return None
        query = {"path": self.path, "file_name": name, "size_bytes": size, "seed": self.world.seed}
        try:
            return bool(self.world.client.ask("served-intact", LOOK_SECONDS, **query))
        except (StageError, Refused, Unavailable) as error:
            self.log.note(f"the file that the server pushed could not be checked: {error}")
            return None

    def replace_source(self, name: str, size: int) -> None:
        """Makes the last pushed file the source of pulls, and removes the one before."""
        older, self.name, self.good_bytes = self.name, name, size
        if older and self.path:
            self.world.client.ask("served-remove", path=self.path, file_name=older)

    def resize_source(self, size: int) -> int:
        """Resizes the pulls' source if the client can; returns its size."""
        if not self.path:
            return self.good_bytes
        name = self.name or new_name(self.path)
        query: dict[str, Any] = {"path": self.path, "file_name": name, "seed": self.world.seed}
        query |= {"limit_seconds": self.world.times().fill_source, "create": not self.name}
        if not self.name and self.share.facts["engine_server"] == client_share.GIVEN:
            return self.good_bytes
        seconds = self.world.times().fill_source + RESIZE_GRACE_SECONDS
        try:
            actual = int(self.world.client.ask("served-resize", seconds, size_bytes=size, **query))
        except (StageError, Refused, Unavailable):
            # Another user's file is pulled unchanged.
            return self.good_bytes
        self.name, self.good_bytes = name, actual
        return actual

    def client_cache(self, copy: str, size: int) -> Details:
        """Has the client make a pull's source cold or warm; returns the proof for the details."""
        requested = copy.partition(".")[2]
        if not self.path and requested == "uncached":
            raise Unavailable(
                "the source could not be removed from the page cache: the client's agent cannot "
                "find the folder of its share"
            )
        proof = prepare_cache(self.world.client, self.path, copy, size, file_name=self.name)
        return {**(proof or cache_details("client", requested)), "side": "client"}
