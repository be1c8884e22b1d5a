"""The copies that the server starts: the same bytes the same way, begun by the other host.

The server's smbclient pushes to and pulls from a share of the client's.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from bottleneck.agents.hosts import Ran, StageError
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.bench import NEEDS_AGENT, Bench
from bottleneck.run.clock import USEFUL_SECONDS
from bottleneck.run.steps import disks, files, server_copies
from bottleneck.run.steps.server_copies import LABEL, SMBCLIENT, ServerCopies, open_copies
from probes.core.records import Details, Endpoint, Failed, Skipped
from probes.core.stage import LEAST_BUDGET_SECONDS, Refused, Unavailable
from probes.files.free_space import beyond_reserve_bytes
from probes.files.served_file import new_name
from probes.stages import smbclient_copy

SET_UP_SECONDS = 1.2
"""To open the client's share and to find out what the server copies with."""
SHARE_OF_LEFT = 0.45
LEAST_COPY_SECONDS = 0.4
GRACE_SECONDS = 12.0
FLUSH_SECONDS = 30.0
WORST_RATIO = 2.0
"""How much longer than meant the slower of two copies of one size may take."""


def measure_initiators(bench: Bench, why: str) -> None:
    """All four copies once, as the server makes them; left out with a note in a short run."""
    if "dialect" not in bench.world.share.facts:
        return  # a mounted folder: there are no copies of ours to be compared with
    if bench.world.server is None:
        bench.note(f"{LABEL}: skipped: {NEEDS_AGENT}")
        return
    left = list(plan.COPY_ORDER)
    each = _seconds_each(bench, len(left))
    if each is None:
        bench.note(f"{LABEL}: skipped: out of time (use a larger --budget)")
        return
    with ExitStack() as stack:
        bench.tell("opening a share on the client")
        try:
            if "server" not in bench.sources:
                disks.hold_sources(bench, stack, ("server",))
                stack.callback(bench.sources.pop, "server", None)
            served = open_copies(bench, stack, each)
            while left:
                _copy(served, left.pop(0), why)
        except Unavailable as error:
            _end(bench, left, Skipped(str(error)), why)
        except (StageError, Refused) as error:
            # A login that was refused is not tried again for the copies that are left.
            _end(bench, left, Failed(str(error)), why)


def _seconds_each(bench: Bench, copies: int) -> float | None:
    """Seconds for each of so many copies; None: too few in this run."""
    seconds = (SHARE_OF_LEFT * bench.clock.left() - SET_UP_SECONDS) / copies
    if bench.world.options.budget_seconds < LEAST_BUDGET_SECONDS:
        return None
    return min(seconds, bench.world.times().copy) if seconds >= LEAST_COPY_SECONDS else None


def _end(bench: Bench, copies: list[str], outcome: Skipped | Failed, why: str) -> None:
    for copy in copies:
        step = _step(
            bench, copy, str(bench.world.share.facts["dialect"]), SMBCLIENT, bench.world.share.facts
        )
        bench.log.add(step, outcome, why)
    bench.save(bench.report())


def _step(bench: Bench, copy: str, dialect: str, engine: str, agreed: Details) -> Step:
    """The step of a copy, without what changes from run to run; agreed: facts of its session."""
    kept = {name: agreed.get(name) for name in ("signing", "encryption")}
    folder = bench.world.test_file_folder("server")
    setting = files.copy_setting(bench, f"server.{copy}", dialect, folder=folder, **kept)
    step = bench.step("smb-copy", setting, "server")
    step.setting["engine"] = engine
    return step


def _copy(served: ServerCopies, copy: str, why: str) -> None:
    bench = served.bench
    step = _step(bench, copy, served.dialect, SMBCLIENT, served.share.facts)
    with bench.outcome(step, f"server.{copy} {served.dialect}", why) as take:
        bench.clock.need()
        verb = copy.partition(".")[0]
        size = _size(served, verb)
        if size < plan.LEAST_COPY_BYTES:
            raise Unavailable(files.too_small(bench, verb == "push"))
        if verb == "push":
            _push(served, step, copy, size, take)
        else:
            _pull(served, step, copy, size, take)


def _size(served: ServerCopies, verb: str) -> int:
    """Bytes of both copies of a verb, by what others the same way have shown, whoever began."""
    bench = served.bench
    same_way = ("pull." if verb == "push" else "push.", f"server.{verb}.")
    known = [
        rate
        for step in bench.log.steps
        if step.stage == "smb-copy"
        and step.setting["end"] == "folder"
        and step.setting["copy"].startswith(same_way)
        and step.setting["dialect"] == served.dialect
        and (rate := bench.log.rate(step)) is not None
    ]
    rate = min(max(known), WORST_RATIO * min(known)) if known else None
    seconds = min(served.seconds, max(USEFUL_SECONDS / 2, bench.clock.left() / WORST_RATIO))
    return plan.copy_bytes(rate, seconds, _room(served, verb), bench.world.options.size_bytes)


def _room(served: ServerCopies, verb: str) -> int:
    bench, facts = served.bench, served.share.facts
    # One file that was pushed or is to be pulled, and one more while it is replaced.
    free = plan.LARGEST_COPY_BYTES
    if facts["free_bytes"] is not None:
        free = beyond_reserve_bytes(int(facts["free_bytes"]), int(facts["total_bytes"])) // 2
    if verb == "push":
        return min(free, bench.source_bytes_of("server"))
    assert bench.world.server is not None
    there = files.usable_bytes(bench.world.server, bench.world.server_path)
    return min(there, max(free, served.good_bytes), plan.LARGEST_COPY_BYTES)


def _push(
    served: ServerCopies, step: Step, copy: str, size: int, take: Callable[..., None]
) -> None:
    bench = served.bench
    size, path = server_copies.whole_source(served, size)
    name = new_name(served.share.folder)
    known: dict[str, Any] = {}

    def finish() -> float:
        """smbclient flushes nothing; the client's agent does, where it sees the file."""
        if not served.path:
            return 0.0
        place = {"path": served.path, "file_name": name}
        try:
            seconds = float(bench.world.client.ask("served-flush", FLUSH_SECONDS, **place))
        except (StageError, Refused, Unavailable) as error:
            bench.note(f"{step.setting['copy']}: not flushed: {error}")
            return 0.0
        known.update(flushed=True, flush_seconds=seconds)
        return seconds

    peer = replace(served.share, path=path)
    ran = _run_smbclient(served, step, copy, size, peer, name, finish)
    intact = known["hash_ok"] = server_copies.looked_at(served, name, size)
    take(ran, {**known, **_about(served)})
    if intact is not False:
        server_copies.replace_source(served, name, size)


def _pull(
    served: ServerCopies, step: Step, copy: str, size: int, take: Callable[..., None]
) -> None:
    size = server_copies.source_of(served, size)
    if size < plan.MIB:
        raise Unavailable("no source file on the client's share")
    about = {"cache": server_copies.client_cache(served, copy, size), **_about(served)}
    ran = _run_smbclient(served, step, copy, size, served.share, served.name)
    take(ran, about)


def _run_smbclient(
    served: ServerCopies,
    step: Step,
    copy: str,
    size: int,
    peer: Endpoint,
    name: str,
    finish: Callable[[], float] | None = None,
) -> Ran:
    bench, facts = served.bench, served.share.facts
    setting = smbclient_copy.Setting(
        copy=copy,
        dialect=served.dialect,
        size_bytes=size,
        seconds=max(USEFUL_SECONDS, bench.clock.left()),
        name=name,
        folder=bench.world.test_file_folder("server"),
        seed=bench.seed,
        signing=facts.get("signing"),
        encryption=facts.get("encryption"),
    )
    most = setting.seconds + GRACE_SECONDS
    return bench.run(step, setting, peer, most, engine="smbclient-copy", finish=finish)


def _about(served: ServerCopies) -> dict[str, Any]:
    facts = served.share.facts
    return {
        "engine": SMBCLIENT,
        "engine_server": facts["engine_server"],
        "on_folder_disk": facts["on_folder_disk"],
    }
