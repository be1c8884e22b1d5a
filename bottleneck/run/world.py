"""World of a run: options, hosts and share; constant once they are connected."""

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
from bottleneck.agents.metrics import MetricsEndpoint
from bottleneck.login.target import spelling_hint
from bottleneck.report.report import Report
from bottleneck.run import plan
from bottleneck.run.clock import Clock
from bottleneck.run.files import Files
from bottleneck.run.log import Log
from probes.core.records import FILE_COPY, SMB_PORT, Access, Endpoint, HostFacts
from probes.core.stage import Refused, Unavailable, stages_of
from probes.net import peers
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
"""Time limit of an agent's facts."""
MOST_PATIENCE_SECONDS, AWAKE_SECONDS = 30.0, 5.0
"""Longest answer of a server whose disks may sleep; time of a login if they are awake."""


@dataclass(frozen=True)
class World:
    """Options, connected hosts and their facts."""

    options: plan.Options
    access: Access
    hosts: Mapping[plan.Side, Host] = field(default_factory=dict)
    """Connected agents."""
    metrics: MetricsEndpoint | None = None
    """Endpoint of the server's counters; None: its agent reads them, or nobody."""
    address: str = ""
    """IP address of the server, resolved once."""
    facts: Mapping[plan.Side, HostFacts] = field(default_factory=dict)
    connect_seconds: float = 0.0
    """Time to connect to the share, about a round trip; 0: unknown."""
    denied: str = ""
    """Reason why copies with the requested security are not possible."""
    samba_config: list[dict[str, Any]] | None = None
    """Settings in the server's smb.conf that cost throughput; None: unknown."""
    seed: str = field(default_factory=lambda: secrets.token_hex(16))
    """Seed of the payload: both hosts generate the same bytes from it."""

    @property
    def client(self) -> Host:
        return self.hosts["client"]

    @property
    def server(self) -> Host | None:
        """Agent of the server; None: there is none."""
        return self.hosts.get("server")

    def address_of(self, side: plan.Side) -> str:
        """Returns a host's address as the other one sees it; empty: unknown."""
        if side == "server":
            return self.address
        facts = self.facts.get("client")
        return facts.interface.address if facts and facts.interface else ""

    @property
    def caller(self) -> Endpoint:
        """This host's address, from which the server's ports are called."""
        return Endpoint(host=self.address_of("client"))

    def apply_choices(self, setting: T) -> T:
        """Returns a stage's setting with the user's choices, except its time."""
        names = {each.name for each in fields(setting)} - {"seconds"}
        choices = dict(self.options.settings)
        if self.options.security:
            choices["security"] = self.options.security
        return replace(setting, **{key: value for key, value in choices.items() if key in names})

    def wants(self, stage: str) -> bool:
        """Whether a stage is requested."""
        return stage in self.options.stages

    @property
    def measures_server_disk(self) -> bool:
        """Whether the server's agent must find the folder of the copies."""
        return self.options.agent != "none" and self.wants("disk")

    @property
    def opens_share(self) -> bool:
        """Whether a session on the share is needed."""
        needs_share = any("share" in each.needs for each in stages_of(self.options.stages))
        return needs_share or self.measures_server_disk and not self.options.target.path

    def is_only(self, stage: str) -> bool:
        return self.options.stages == (stage,)

    def times(self) -> plan.Times:
        """Returns the time of each part of the run."""
        usual = plan.times(self.options.usual_seconds, self.connect_seconds)
        seconds = self.options.settings.get("seconds")
        if seconds is None or self.options.copy:
            return usual
        return plan.Times(**dict.fromkeys((each.name for each in fields(usual)), seconds))


# -- connecting ------------------------------------------------------------------------------------


def server_address(host: str, port: int) -> str:
    """Resolves the IP address that the whole run uses. Errors: Refused: it has none."""
    try:
        addresses_found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        wrong = "this host's DNS" if error.errno == socket.EAI_AGAIN else "its spelling"
        raise Refused(
            "unreachable",
            f"{host}: the name cannot be resolved ({error.strerror}); check {wrong}, or use an IP "
            "address",
        ) from None
    addresses = {peers.zoned_address(each[4]) for each in addresses_found}
    if len(addresses) > 1:
        # All stages use one address: the one that the copies' connections find.
        with contextlib.suppress(OSError), first_to_answer(host, port or SMB_PORT) as connection:
            return peers.zoned_address(connection.getpeername())
    return peers.zoned_address(addresses_found[0][4])


def client_of(world: World, stack: ExitStack) -> World:
    """Returns the world with the agent of this host."""
    return replace(world, hosts={"client": stack.enter_context(hosts.start_here())})


def server_of(world: World, stack: ExitStack, log: Log) -> World:
    """Returns the world with the server's agent or its metrics, if one of them is requested."""
    url = world.options.metrics
    if world.options.agent == "none":
        endpoint = None if url is None else MetricsEndpoint(url, log.note)
        return world if endpoint is None else replace(world, metrics=endpoint.connect())
    if url is not None:
        log.note(f"--metrics {url.name}: not read, as the server has an agent")
    server = stack.enter_context(hosts.start_there(world.options.agent))
    for line in server.banner:
        log.note(f"printed before the server's agent started: {line}")
    return replace(world, hosts={**world.hosts, "server": server})


def open_share(world: World, files: Files, holding: ExitStack, clock: Clock, log: Log) -> World:
    """Logs in once, and opens this run's folder and source file on the share.

    If the server does not allow the requested security, without it.
    """
    log.tell("logging in (longer where the server's disks sleep)")
    began, options, client = clock.elapsed(), world.options, world.client
    seconds = max(STEP_SECONDS, min(MOST_PATIENCE_SECONDS, clock.remaining() - AWAKE_SECONDS))
    share = replace(options.target.endpoint(world.access), step_seconds=seconds)
    dialects = plan.newest_first(options.dialects) or ("",)
    why, limit_seconds = "", LOGIN_SECONDS + seconds
    for security, dialect in product(dict.fromkeys((options.security, "")), dialects):
        if options.security and not security:
            world = replace(world, denied=world.denied or why)
        setting = run_folder.Setting(
            dialect=dialect,
            run=secrets.token_hex(16),
            outlived=options.server_outlives_run,
            security=security,
            seconds=clock.lifetime,
            seed=world.seed,
            pulls_file=options.file is not None and options.file.side == "server",
        )
        try:
            holder = client.hold(run_folder.NAME, setting, share, clock.lifetime, limit_seconds)
            folder = holding.enter_context(holder)
            if (took_seconds := clock.elapsed() - began) > AWAKE_SECONDS:
                waited = f"{took_seconds:.0f} s for the server: its disks may have been asleep"
                log.tell("waited", outcome=waited)
                log.note(f"waited {waited}")
            facts = {**files.share.facts, **folder.facts}
            if facts.get("read_only"):
                options = replace(options, copy=FILE_COPY)
                log.note("the share is read-only for this user: only --file is copied")
            files.share = replace(folder, access=world.access, facts=facts, step_seconds=0.0)
            trip = float(facts.get("connect_seconds") or 0.0)
            return replace(world, options=options, connect_seconds=trip)
        except Refused as error:
            hint = spelling_hint(options.target) if error.kind == "share" else ""
            raise Refused(error.kind, "; ".join(filter(None, (error.text, hint)))) from None
        except (StageError, Unavailable) as error:
            why = str(error)
    raise Refused("unreachable", f"{options.target.name}: {why}")


def path_of(world: World, folder_name: str, what: str, log: Log) -> str | None:
    """Returns the path of the run's folder at the server; None: no agent, or not found (noted).

    what: the folder in words.
    """
    if world.server is None:
        return None
    path: str | None = None
    arguments = {"folder_name": folder_name, "hint": world.options.server_folder}
    try:
        path = world.server.ask("locate", **arguments, seconds=LOCATE_SECONDS)
    except StageError as error:
        log.note(f"server: looking for {what}: {error}")
    if path is None:
        log.note(f"the server's agent cannot find {what}; use --server-folder DIR")
    return path


def locate(world: World, files: Files, log: Log) -> None:
    """Finds the server's own path of this run's folder, if its agent can."""
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


def learn_facts(world: World, files: Files) -> Iterator[World]:
    """Yields the world with the facts of one host more, and sets what its counters watch."""
    pending = []
    for side, host in world.hosts.items():
        toward = _own_address(world.address) if side == "server" else world.address
        arguments = {"toward": toward, "folder": files.folder(side)}
        pending.append((side, host, toward, host.start_ask("facts", FACTS_SECONDS, **arguments)))
    for side, host, toward, answer in pending:
        facts = protocol.from_plain(HostFacts, answer())
        # Only its agent copies on the client: a Samba there is not part of it.
        host.watch(facts, toward, file_server=side == "server")
        world = replace(world, facts={**world.facts, side: facts})
        yield world


def _own_address(address: str) -> str:
    """Returns this host's address towards another; empty: unknown. Sends nothing."""
    try:
        return rtnetlink.source_address(address) if address else ""
    except OSError as error:
        raise Refused("unreachable", f"{address}: no route to it ({error.strerror})") from None


def add_samba_config(world: World, files: Files, log: Log) -> World:
    """Returns the world with costly settings of the file server, if its agent can read them."""
    if world.server is None or "dialect" not in files.share.facts:
        return world
    target = world.options.target
    arguments = {"share": target.share, "address": world.address, "port": target.port or SMB_PORT}
    try:
        settings = world.server.ask("samba-config", **arguments, seconds=SAMBA_CONFIG_SECONDS)
    except (StageError, Unavailable) as error:
        log.note(f"server: {error}")
        return world
    return replace(world, samba_config=settings)


@dataclass
class RunState:
    """World, clock, log and files of a run, which its steps share."""

    world: World
    clock: Clock
    log: Log
    files: Files


def so_far(world: World, clock: Clock, log: Log, files: Files) -> Report:
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
