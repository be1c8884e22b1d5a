"""The world of a run: its hosts and its share as it finds them; constant once it is reached."""

from __future__ import annotations

import contextlib
import platform
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

from bottleneck import __version__
from bottleneck.agents import hosts, protocol
from bottleneck.agents.hosts import Host, StageError
from bottleneck.report.report import Report
from bottleneck.run import plan
from bottleneck.run.clock import Clock
from bottleneck.run.files import Files
from bottleneck.run.log import Log
from bottleneck.target.target import spelling_hint
from probes.core.records import FILE_COPY, SMB_PORT, Access, Endpoint, HostFacts
from probes.core.stage import Refused, Unavailable, described
from probes.net import callers
from probes.smb import run_folder
from probes.smb.frames import first_to_answer
from probes.smb.session import STEP_SECONDS
from probes.system import rtnetlink

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
SAMBA_CONFIG_SECONDS = 8.0
LOGIN_SECONDS = 45.0
LOCATE_SECONDS = 15.0
FACTS_SECONDS = 20.0
"""Name, several addresses, negotiation and login at a slow server, each with its own time-out."""
MOST_PATIENCE_SECONDS, AWAKE_SECONDS = 30.0, 5.0
"""Limit of one answer of a server whose disks may sleep; time of a login at one that is up."""


@dataclass(frozen=True)
class World:
    """Options as they hold there, and what was found."""

    options: plan.Options
    access: Access
    hosts: Mapping[plan.Side, Host] = field(default_factory=dict)
    """The agents that were reached."""
    address: str = ""
    """The server's IP address, looked up once."""
    facts: Mapping[plan.Side, HostFacts] = field(default_factory=dict)
    connect_seconds: float = 0.0
    """What the share's connection took to be made: about a round trip; 0: not known."""
    denied: str = ""
    """Why copies of the security that was asked for are not possible there."""
    samba_config: list[dict[str, Any]] | None = None
    """What in the server's smb.conf costs throughput; None: it was not seen."""
    seed: str = field(default_factory=lambda: secrets.token_hex(16))
    """Of the payload: both hosts make the same bytes from it."""

    @property
    def client(self) -> Host:
        """The client's agent."""
        return self.hosts["client"]

    @property
    def server(self) -> Host | None:
        """The server's agent, where there is one."""
        return self.hosts.get("server")

    def address_of(self, side: plan.Side) -> str:
        """A host's own address as the other one sees it; empty: not known."""
        if side == "server":
            return self.address
        facts = self.facts.get("client")
        return facts.interface.address if facts and facts.interface else ""

    @property
    def caller(self) -> Endpoint:
        """This host by its own address, as whoever calls what the server opens for a run."""
        return Endpoint(host=self.address_of("client"))

    def chosen(self, setting: T) -> T:
        """A stage's setting with what the user chose of it, but for its time."""
        known = {each.name for each in fields(setting)} - {"seconds"}
        given = dict(self.options.settings)
        if self.options.security:
            given["security"] = self.options.security
        return replace(setting, **{key: value for key, value in given.items() if key in known})

    def wants(self, stage: str) -> bool:
        """Whether the user asked for a stage."""
        return stage in self.options.stages

    @property
    def measures_server_disk(self) -> bool:
        """Whether the server's agent needs to find the folder of the copies."""
        return self.options.agent != "none" and self.wants("disk")

    @property
    def opens_share(self) -> bool:
        """Whether a session on the share is needed."""
        needs_share = any("share" in each.needs for each in described(self.options.stages))
        return needs_share or self.measures_server_disk and not self.options.target.path

    def alone(self, stage: str) -> bool:
        """Whether nothing but this stage was asked for."""
        return self.options.stages == (stage,)

    def times(self) -> plan.Times:
        """What each part of the run may take."""
        usual = plan.times(self.options.usual_seconds, self.connect_seconds)
        seconds = self.options.settings.get("seconds")
        if seconds is None or self.options.copy:
            return usual
        return plan.Times(**dict.fromkeys((each.name for each in fields(usual)), seconds))


# -- the way there ---------------------------------------------------------------------------------


def server_address(host: str, port: int) -> str:
    """The IP address that all of a run uses. Errors: Refused, the name has none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        wrong = "this host's DNS" if error.errno == socket.EAI_AGAIN else "its spelling"
        raise Refused(
            "unreachable",
            f"{host}: the name cannot be resolved ({error.strerror}); check {wrong}, or use an IP "
            "address",
        ) from None
    addresses = {callers.with_zone(each[4]) for each in found}
    if len(addresses) > 1:
        # all stages use one address: the one that the copies' connections find too
        with contextlib.suppress(OSError), first_to_answer(host, port or SMB_PORT) as connection:
            return callers.with_zone(connection.getpeername())
    return callers.with_zone(found[0][4])


def client_of(world: World, stack: ExitStack) -> World:
    """With the agent of this host."""
    return replace(world, hosts={"client": stack.enter_context(hosts.start_here())})


def server_of(world: World, stack: ExitStack, log: Log) -> World:
    """With the agent of the server, where one was asked for."""
    if world.options.agent == "none":
        return world
    server = stack.enter_context(hosts.start_there(world.options.agent))
    for line in server.banner:
        log.note(f"printed before the server's agent started: {line}")
    return replace(world, hosts={**world.hosts, "server": server})


def opened(world: World, files: Files, holding: ExitStack, clock: Clock, log: Log) -> World:
    """With a session, logged in once, that holds this run's folder and source file on the share.

    Where the server does not allow the security that was asked for, without it.
    """
    log.tell("logging in (longer where the server's disks sleep)")
    began, options, client = clock.elapsed(), world.options, world.client
    seconds = max(STEP_SECONDS, min(MOST_PATIENCE_SECONDS, clock.left() - AWAKE_SECONDS))
    share = replace(options.target.endpoint(world.access), step_seconds=seconds)
    dialects = plan.newest_first(options.dialects) or ("",)
    why, limit_seconds = "", LOGIN_SECONDS + seconds
    for security, dialect in product(dict.fromkeys((options.security, "")), dialects):
        if options.security and not security:
            world = replace(world, denied=world.denied or why)
        setting = run_folder.Setting(
            dialect=dialect,
            run=secrets.token_hex(16),
            outlived=options.outlived,
            security=security,
            seconds=clock.lifetime,
            seed=world.seed,
            pulls_file=options.file is not None and options.file.side == "server",
        )
        try:
            held = client.hold(run_folder.NAME, setting, share, clock.lifetime, limit_seconds)
            there = holding.enter_context(held)
            if (took_seconds := clock.elapsed() - began) > AWAKE_SECONDS:
                waited = f"{took_seconds:.0f} s for the server: its disks may have been asleep"
                log.tell("waited", outcome=waited)
                log.note(f"waited {waited}")
            facts = {**files.share.facts, **there.facts}
            if facts.get("read_only"):
                options = replace(options, copy=FILE_COPY)
                log.note("the share is read-only for this user: only --file is copied")
            files.share = replace(there, access=world.access, facts=facts, step_seconds=0.0)
            trip = float(facts.get("connect_seconds") or 0.0)
            return replace(world, options=options, connect_seconds=trip)
        except Refused as error:
            hint = spelling_hint(options.target) if error.kind == "share" else ""
            raise Refused(error.kind, "; ".join(filter(None, (error.text, hint)))) from None
        except (StageError, Unavailable) as error:
            why = str(error)
    raise Refused("unreachable", f"{options.target.name}: {why}")


def path_of(world: World, folder_name: str, what: str, log: Log) -> str | None:
    """Path of the run's folder at the server; None: no agent, or it does not find it (noted).

    what: the folder that is looked for, in words.
    """
    if world.server is None:
        return None
    path: str | None = None
    asked = {"folder_name": folder_name, "hint": world.options.server_folder}
    try:
        path = world.server.ask("locate", **asked, seconds=LOCATE_SECONDS)
    except StageError as error:
        log.note(f"server: looking for {what}: {error}")
    if path is None:
        log.note(f"the server's agent cannot find {what}; use --server-folder DIR")
    return path


def locate(world: World, files: Files, log: Log) -> None:
    """Finds this run's folder as the server's own path, if its agent can."""
    files.server_path, files.agent_folder = None, ""
    if files.share.facts.get("read_only"):
        return
    name = files.share.folder.rpartition("\\")[2]
    files.server_path = path_of(world, name, "the share's folder", log)
    if world.server is None or files.server_path is None:
        return
    try:
        beside = str(world.server.ask("writable-folder", folder=files.server_path))
    except (StageError, Unavailable, Refused) as error:
        log.note(f"server: {error}")
        files.no_source["server"] = str(error)
        return
    if beside != files.server_path:
        log.note(
            f"server: the agent may not write to the share; its files are in {beside}, on the "
            "same file system"
        )
        files.agent_folder = beside


def learned(world: World, files: Files) -> Iterator[World]:
    """With the facts of one host after the other, which learn what they have to watch."""
    asked = []
    for side, host in world.hosts.items():
        toward = _own_address(world.address) if side == "server" else world.address
        about = {"toward": toward, "folder": files.folder(side)}
        asked.append((side, host, toward, host.asking("facts", FACTS_SECONDS, **about)))
    for side, host, toward, answer in asked:
        facts = protocol.from_plain(HostFacts, answer())
        # The client's copies are made by its agent alone: a Samba there is another's.
        host.watch(facts, toward, file_server=side == "server")
        world = replace(world, facts={**world.facts, side: facts})
        yield world


def _own_address(address: str) -> str:
    """This host's address towards another, empty where that is unknown; nothing is sent."""
    try:
        return rtnetlink.source_address(address) if address else ""
    except OSError as error:
        raise Refused("unreachable", f"{address}: no route to it ({error.strerror})") from None


def configured(world: World, files: Files, log: Log) -> World:
    """With what in the file server's configuration costs throughput, where its agent can tell."""
    if world.server is None or "dialect" not in files.share.facts:
        return world
    target = world.options.target
    asked = {"share": target.share, "address": world.address, "port": target.port or SMB_PORT}
    try:
        told = world.server.ask("samba-config", **asked, seconds=SAMBA_CONFIG_SECONDS)
    except (StageError, Unavailable) as error:
        log.note(f"server: {error}")
        return world
    return replace(world, samba_config=told)


def so_far(world: World, clock: Clock, log: Log, files: Files) -> Report:
    """What is known by now."""
    client, opened = world.facts.get("client"), files.share.facts
    return Report(
        status="partial",
        tool={
            "version": __version__,
            "python": platform.python_version(),
            **(client.tools if client else {}),
        },
        started=clock.started,
        elapsed_seconds=clock.elapsed(),
        target={
            "share": world.options.target.name,
            **{name: opened.get(name) for name in ("dialect", "signing", "encryption")},
            **opened,
            "smb_conf": world.samba_config,
            **({"copy_alone": True} if world.options.copy else {}),
        },
        client=client,
        server=world.facts.get("server"),
        entries=log.entries(),
        notes=tuple(log.notes),
        target_rate_bytes_per_second=world.options.target_rate_bytes_per_second,
    )
