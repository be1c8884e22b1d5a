"""A run from the first contact to the last step; measures nothing itself, saves after each step."""

from __future__ import annotations

import contextlib
import secrets
import socket
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import product

from bottleneck.agents import hosts, protocol
from bottleneck.agents.hosts import StageError
from bottleneck.run import plan
from bottleneck.run.bench import Bench
from bottleneck.run.steps import copies, disks, native, schedule, transfers, turns
from bottleneck.run.steps.files import locate
from bottleneck.target.target import spelling_hint
from probes.core.records import FILE_COPY, SMB_PORT, HostFacts
from probes.core.stage import Refused, Unavailable, described
from probes.net import callers
from probes.smb import run_folder
from probes.smb.frames import first_to_answer
from probes.smb.session import STEP_SECONDS
from probes.stages import loopback
from probes.system import rtnetlink

SAMBA_CONFIG_SECONDS = 8.0
LOGIN_SECONDS = 45.0
FACTS_SECONDS = 20.0
"""Name, several addresses, negotiation and login at a slow server, each with its own time-out."""
MOST_PATIENCE_SECONDS, AWAKE_SECONDS = 30.0, 5.0
"""Limit of one answer of a server whose disks may sleep; time of a login at one that is up."""


def measure(bench: Bench) -> None:
    """Every step that the options and the budget allow.

    Raises:
        Refused: a host, the login or the share said no; nothing could be measured.
        AgentLost: an agent is gone.
        KeyboardInterrupt: after the hosts were closed.
    """
    with ExitStack() as stack:
        stack.callback(_note_unclosed, bench)
        bench.tell("reaching the hosts")
        in_folder = bool(bench.options.target.path)
        if not in_folder:
            bench.address = _look_up(bench.options.target.host, bench.options.target.port)
        _reach(bench, stack)
        mounted = native.read_mount(bench) if in_folder else None
        at_server = bench.options.agent != "none" and bench.wants("disk")
        needs_share = any("share" in each.needs for each in described(bench.options.stages))
        if needs_share or at_server and mounted is None:
            bench.client.tell("preload", name="smb-copy")
            holding = stack.enter_context(ExitStack())
            _open_share(bench, holding)
            _locate(bench)
            bench.reopen = partial(_reopen, bench, holding)
        if mounted is not None and (bench.wants("native-copy") or at_server):
            native.hold_folder(bench, mounted, stack)
        _learn(bench)
        _read_samba_config(bench)
        for _ in bench.rounds():
            _make(bench, mounted, stack)
    bench.status = "complete" if bench.log.complete() else "partial"
    bench.save(bench.report())


def _make(bench: Bench, mounted: native.Mounted | None, stack: ExitStack) -> None:
    """All stages that were asked for, once: the copies first, which tell what is worth a look."""

    def limits(worth: disks.Disks) -> tuple[str, ...]:
        is_native = mounted is not None and bench.wants("native-copy")
        left_out = _measure_limits(bench, stack, None if is_native else worth)
        if mounted is not None and is_native:
            native.measure_copies(bench, mounted, stack)
        return left_out

    if bench.wants("smb-copy"):
        copies.measure_copies(bench, bench.options.target.endpoint(bench.access), stack, limits)
    else:
        limits(None)
        schedule.Explanations.of(bench).make()


def _measure_limits(bench: Bench, stack: ExitStack, worth: disks.Disks) -> tuple[str, ...]:
    """Measures this tool, the network and the disks alone. Returns the names of skipped tests.

    worth: the disks to measure; if the copies are clear, this tool is not measured either.
    """
    left_out = ["loopback"] if worth is not None and bench.wants("loopback") else []
    if bench.wants("loopback") and not left_out:
        turns.measure(bench, loopback.STAGE, loopback.STAGE.measures)
    if bench.wants("tcp"):
        transfers.measure_transfers(bench, clear=worth is not None)
    if bench.wants("disk"):
        if disks.needs_server_file(bench, worth):
            disks.hold_sources(bench, stack)
        left_out += disks.measure_disks(bench, worth)
    return tuple(left_out)


def _note_unclosed(bench: Bench) -> None:
    """What could not be closed in order may be left: that is said, not hidden."""
    remedy = "may remain there; the next run or bottleneck cleanup removes it"
    folder = f"{bench.options.target.name}: the folder {bench.share.folder} {remedy}"
    for line in (line for host in bench.reached.values() for line in host.unclosed):
        nameless = run_folder.NAME in line and "//" not in line
        bench.unclosed.append(folder if nameless else line)
        bench.note(bench.unclosed[-1])


def _look_up(host: str, port: int) -> str:
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


def _reach(bench: Bench, stack: ExitStack) -> None:
    bench.reached["client"] = stack.enter_context(hosts.start_here())
    if bench.options.agent == "none":
        return
    server = stack.enter_context(hosts.start_there(bench.options.agent))
    bench.reached["server"] = server
    for line in server.banner:
        bench.note(f"printed before the server's agent started: {line}")


def _learn(bench: Bench) -> None:
    """Facts of both hosts, and which interface and device their counters watch."""
    toward = {"client": bench.address, "server": _own_address(bench.address)}
    for side, host in bench.reached.items():
        plain = host.ask("facts", FACTS_SECONDS, toward=toward[side], folder=bench.folder(side))
        facts = bench.facts[side] = protocol.from_plain(HostFacts, plain)
        # The client's copies are made by its agent alone: a Samba there is another's.
        host.watch(facts, toward[side], file_server=side == "server")


def _read_samba_config(bench: Bench) -> None:
    """What in the file server's own configuration costs throughput, where its agent can tell."""
    if bench.server is None or "dialect" not in bench.share.facts:
        return
    target = bench.options.target
    try:
        bench.samba_config = bench.server.ask(
            "samba-config",
            share=target.share,
            address=bench.address,
            port=target.port or SMB_PORT,
            seconds=SAMBA_CONFIG_SECONDS,
        )
    except (StageError, Unavailable) as error:
        bench.note(f"server: {error}")


def _own_address(address: str) -> str:
    """This host's address towards another, empty where that is unknown; nothing is sent."""
    try:
        return rtnetlink.source_address(address) if address else ""
    except OSError as error:
        raise Refused("unreachable", f"{address}: no route to it ({error.strerror})") from None


def _open_share(bench: Bench, holding: ExitStack) -> None:
    """Logs in, once, and holds this run's folder and source file on the share.

    Where the server does not allow the security that was asked for, without it.
    """
    bench.tell("logging in (longer where the server's disks sleep)")
    began = bench.elapsed()
    seconds = max(STEP_SECONDS, min(MOST_PATIENCE_SECONDS, bench.left() - AWAKE_SECONDS))
    share = replace(bench.options.target.endpoint(bench.access), step_seconds=seconds)
    dialects = plan.newest_first(bench.options.dialects) or ("",)
    why, limit_seconds = "", LOGIN_SECONDS + seconds
    for security, dialect in product(dict.fromkeys((bench.options.security, "")), dialects):
        if bench.options.security and not security:
            bench.denied = bench.denied or why
        setting = run_folder.Setting(
            dialect=dialect,
            run=secrets.token_hex(16),
            outlived=bench.options.outlived,
            security=security,
            seconds=bench.lifetime,
            seed=bench.seed,
            pulls_file=bench.options.file is not None and bench.options.file.side == "server",
        )
        try:
            held = bench.client.hold(run_folder.NAME, setting, share, bench.lifetime, limit_seconds)
            opened = holding.enter_context(held)
            if (took_seconds := bench.elapsed() - began) > AWAKE_SECONDS:
                waited = f"{took_seconds:.0f} s for the server: its disks may have been asleep"
                bench.tell("waited", outcome=waited)
                bench.note(f"waited {waited}")
            facts = {**bench.share.facts, **opened.facts}
            if facts.get("read_only"):
                bench.options = replace(bench.options, copy=FILE_COPY)
                bench.note("the share is read-only for this user: only --file is copied")
            bench.share = replace(opened, access=bench.access, facts=facts, step_seconds=0.0)
            return
        except Refused as error:
            hint = spelling_hint(bench.options.target) if error.kind == "share" else ""
            raise Refused(error.kind, "; ".join(filter(None, (error.text, hint)))) from None
        except (StageError, Unavailable) as error:
            why = str(error)
    raise Refused("unreachable", f"{bench.options.target.name}: {why}")


def _reopen(bench: Bench, holding: ExitStack) -> bool:
    """Makes another folder on a share from which the run's is gone; whether that worked."""
    holding.close()
    try:
        _open_share(bench, holding)
    except Refused as error:
        if error.ends_run:
            raise
        return False
    bench.note("the run's folder was gone from the share, as after a restart: another was made")
    bench.source_bytes = 0
    _locate(bench)
    return True


def _locate(bench: Bench) -> None:
    """This run's folder as the server's own path, if its agent can find it."""
    if bench.share.facts.get("read_only"):
        return
    name = bench.share.folder.rpartition("\\")[2]
    bench.server_path = locate(bench, name, "the share's folder")
    if bench.server is None or bench.server_path is None:
        return
    try:
        beside = str(bench.server.ask("writable-folder", folder=bench.server_path))
    except (StageError, Unavailable, Refused) as error:
        bench.no_source["server"] = str(error)
        bench.note(f"server: {error}")
        return
    if beside != bench.server_path:
        bench.agent_folder = beside
        bench.note(
            f"server: the agent may not write to the share; its files are in {beside}, on the same "
            "file system"
        )
