"""A run from the first contact to the last step; measures nothing itself, saves after each step."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from bottleneck.run import world
from bottleneck.run.bench import Bench
from bottleneck.run.steps import copies, disks, native, schedule, transfers, turns
from probes.core.stage import Refused, described
from probes.smb import run_folder
from probes.stages import loopback


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
        target = bench.world.options.target
        in_folder = bool(target.path)
        if not in_folder:
            address = world.server_address(target.host, target.port)
            bench.world = replace(bench.world, address=address)
        bench.world = world.client_of(bench.world, stack)
        bench.world = world.server_of(bench.world, stack, bench.log)
        mounted = native.read_mount(bench) if in_folder else None
        at_server = bench.world.options.agent != "none" and bench.world.wants("disk")
        needs_share = any("share" in each.needs for each in described(bench.world.options.stages))
        if needs_share or at_server and mounted is None:
            bench.world.client.tell("preload", name="smb-copy")
            holding = stack.enter_context(ExitStack())
            _open(bench, holding)
            bench.reopen = partial(_reopen, bench, holding)
        if mounted is not None and (bench.world.wants("native-copy") or at_server):
            native.hold_folder(bench, mounted, stack)
        for side in bench.world.hosts:
            bench.world = world.learned(bench.world, side)
        bench.world = world.configured(bench.world, bench.log)
        for _ in bench.rounds():
            _make(bench, mounted, stack)
    bench.status = "complete" if bench.log.complete() else "partial"
    bench.save(bench.report())


def _make(bench: Bench, mounted: native.Mounted | None, stack: ExitStack) -> None:
    """All stages that were asked for, once: the copies first, which tell what is worth a look."""

    def limits(worth: disks.Disks) -> tuple[str, ...]:
        is_native = mounted is not None and bench.world.wants("native-copy")
        left_out = _measure_limits(bench, stack, None if is_native else worth)
        if mounted is not None and is_native:
            native.measure_copies(bench, mounted, stack)
        return left_out

    if bench.world.wants("smb-copy"):
        copies.measure_copies(
            bench, bench.world.options.target.endpoint(bench.world.access), stack, limits
        )
    else:
        limits(None)
        schedule.Explanations.of(bench).make()


def _measure_limits(bench: Bench, stack: ExitStack, worth: disks.Disks) -> tuple[str, ...]:
    """Measures this tool, the network and the disks alone. Returns the names of skipped tests.

    worth: the disks to measure; if the copies are clear, this tool is not measured either.
    """
    left_out = ["loopback"] if worth is not None and bench.world.wants("loopback") else []
    if bench.world.wants("loopback") and not left_out:
        turns.measure(bench, loopback.STAGE, loopback.STAGE.measures)
    if bench.world.wants("tcp"):
        transfers.measure_transfers(bench, clear=worth is not None)
    if bench.world.wants("disk"):
        if disks.needs_server_file(bench, worth):
            disks.hold_sources(bench, stack)
        left_out += disks.measure_disks(bench, worth)
    return tuple(left_out)


def _note_unclosed(bench: Bench) -> None:
    """What could not be closed in order may be left: that is said, not hidden."""
    remedy = "may remain there; the next run or bottleneck cleanup removes it"
    folder = f"{bench.world.options.target.name}: the folder {bench.world.share.folder} {remedy}"
    for line in (line for host in bench.world.hosts.values() for line in host.unclosed):
        nameless = run_folder.NAME in line and "//" not in line
        bench.unclosed.append(folder if nameless else line)
        bench.note(bench.unclosed[-1])


def _reopen(bench: Bench, holding: ExitStack) -> bool:
    """Makes another folder on a share from which the run's is gone; whether that worked."""
    holding.close()
    try:
        _open(bench, holding)
    except Refused as error:
        if error.ends_run:
            raise
        return False
    bench.note("the run's folder was gone from the share, as after a restart: another was made")
    return True


def _open(bench: Bench, holding: ExitStack) -> None:
    bench.source_bytes = 0
    there = replace(bench.world, server_path=None, agent_folder="", unwritable="")
    bench.world = world.opened(there, holding, bench.seed, bench.clock, bench.log, bench.tell)
    bench.world = world.located(bench.world, bench.log)
    if bench.world.unwritable:
        bench.no_source["server"] = bench.world.unwritable
