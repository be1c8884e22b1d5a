"""The copies as a user makes them; the last push fills the pulls' source."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

from bottleneck.agents.hosts import AgentLost, PartlyRan, StageError
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.bench import WHOLE_COPY, Bench
from bottleneck.run.clock import USEFUL_SECONDS
from bottleneck.run.steps import copy_size, disks, files, past_cache, schedule, turns
from bottleneck.run.steps.copy_size import SMB1
from probes.core.records import DROPS, Endpoint, Skipped, run_rate
from probes.core.stage import LONG_BUDGET_SECONDS, Refused, Unavailable
from probes.smb import offered
from probes.smb.frames import first_to_answer
from probes.smb.session import NO_ANSWER

CALIBRATION_BYTES = 2 * plan.MIB
CALIBRATION_SHARE_OF_LEFT = 0.2
CALIBRATION = {"request_bytes": 64 << 10, "depth": 8, "most_seconds": 1.5}
"""So little is under way that its time ends it, on a path of 1 Mbit/s too."""
CALIBRATION_TIMES = 4.0
"""How much faster a long copy may be than one that was over in BRIEF_SECONDS: round trips, and the
start of TCP."""
BRIEF_SECONDS = 0.5
GRACE_SECONDS, OUT_OF_TIME = 8.0, "ran out of time"
SMB1_SECONDS = 2.5
"""In a clear case, of its two copies of a cached source, with the usual budget."""
CONNECTION_ENDS = ("closed the connection", "the connection failed", "_DELETED")
"""Words in the error of a copy whose server ended the connection, the share or the session."""
ATTEMPTS, PAUSE_SECONDS = 3, 0.25
"""Runs of one copy: the server goes, it is back without the run's folder, all is well."""
MOST_REPETITIONS = 6
ALL_ROUNDS_SECONDS = 300.0
"""Budget from which on all copies are repeated before the tests that explain them."""
WITHOUT_DISK = "the copy without the client's disk"


def measure_copies(
    bench: Bench,
    endpoint: Endpoint,
    stack: ExitStack,
    limits: Callable[[disks.Disks], tuple[str, ...]],
) -> None:
    """Every dialect's copies; `endpoint` is the share as the user named it.

    stack: holds the file that pushes read. limits: measures the network and the disks alone, after
    the first round of copies and before what explains them, and returns the names of skipped tests.
    Clear copies are not repeated.
    """
    opened = str(bench.world.share.facts["dialect"])
    made: dict[str, dict[str, Any]] = {}
    named = bench.world.options.file
    for dialect in plan.newest_first(bench.world.options.dialects) or (opened,):
        labels = _labels(bench, endpoint, dialect)
        if labels is None:
            continue
        if bench.world.options.copies:
            _make_source(bench, dialect, labels, stack)
        elif named is not None and named.side == "client" and not bench.calibrated:
            _calibrate(bench, dialect)  # it bounds how much of the file is pushed
        _round(bench, dialect, labels, 0, WHOLE_COPY)
        if turns.in_vain(bench, "pull"):
            bench.note(f"tests that explain copies: skipped: {DROPS} on the path")
            break
        if dialect == opened:
            files.copy_file(bench, dialect, labels)
            files.copy_tree(bench, dialect)
        made[dialect] = labels
    worth = schedule.disks_to_measure(bench)
    if worth is None and opened in made and not bench.world.options.copy:
        # Where a push from memory made the pulls' source, that push is known.
        for copy in ("push.cached", "pull.cached") if _filling(bench) else ("pull.cached",):
            _copy(bench, opened, made[opened], copy, "memory", WITHOUT_DISK)
    left_out = limits(worth)
    if opened in made and not (bench.world.options.runs or bench.world.options.copy):
        _explained(bench, endpoint, made[opened], left_out)


def _explained(
    bench: Bench, endpoint: Endpoint, labels: dict[str, Any], left_out: tuple[str, ...] = ()
) -> None:
    """After the first round of the share's own dialect: looks, SMB1 and repetitions.

    left_out: what was not measured because the copies are clear.
    """
    opened = str(bench.world.share.facts["dialect"])
    others = bench.world.options.dialects
    thorough = bench.world.options.budget_seconds >= LONG_BUDGET_SECONDS
    before = 1
    if thorough:
        # What the advice promises is made before all that only explains it, where there is time.
        whole = bench.world.options.budget_seconds >= ALL_ROUNDS_SECONDS
        before = plan.THOROUGH_ROUNDS if whole else plan.LEAST_ROUNDS
        _repeat(bench, opened, labels, 1, before)
        if not others:
            _smb1(bench, endpoint)
    explanations = schedule.Explanations.of(bench)
    explanations.refine()
    found = schedule.in_doubt(bench)
    clear = found is not None and not found
    seconds = SMB1_SECONDS + copy_size.warming_seconds(bench)
    in_time = schedule.in_time(bench, seconds)
    unmade = [SMB1] if clear and not others else []
    if unmade and in_time:
        unmade = [f"{SMB1} uncached"] if _smb1(bench, endpoint, "cached") else []
    explanations.make(*left_out, *unmade)
    rounds = plan.THOROUGH_ROUNDS if thorough else plan.MAX_ROUNDS
    _repeat(bench, opened, labels, before, rounds)
    _until_stable(bench, opened, labels)
    if not clear and not others and not thorough:
        _smb1(bench, endpoint)


def _repeat(bench: Bench, dialect: str, labels: dict[str, Any], made: int, rounds: int) -> None:
    """All copies again while one of them is in doubt: from the rounds made to so many."""
    for number in range(made, rounds):
        found = schedule.in_doubt(bench)
        if found is not None and not found:
            break
        why = found[0].reason if found else "how far one run varies"
        _round(bench, dialect, labels, number, why)


def _until_stable(bench: Bench, dialect: str, labels: dict[str, Any]) -> None:
    """Copies whose runs lie far apart, again while there is time: another load may have gone."""
    for _ in range(MOST_REPETITIONS):
        found = schedule.in_doubt(bench) or ()
        unsteady = [each.copy for each in found if each.unstable and each.dialect == dialect]
        fitting = [copy for copy in unsteady if copy_size.fits(bench, dialect, copy)]
        if not fitting:
            return
        for copy in plan.COPY_ORDER:
            if copy in fitting:
                _copy(bench, dialect, labels, copy, "folder", "its runs vary widely")


def _smb1(bench: Bench, endpoint: Endpoint, cache: str = "") -> bool:
    """One round over SMB1 where the server offers it: nobody asked, so that it may be left out.

    cache: the copies of such a source alone. Returns whether it is offered.
    """
    labels = _labels(bench, endpoint, SMB1)
    if labels is not None:
        why = "the oldest dialect that the server supports"
        _round(bench, SMB1, labels, 0, why, extra=True, cache=cache)
    return labels is not None


def _make_source(bench: Bench, dialect: str, labels: dict[str, Any], stack: ExitStack) -> None:
    """The files that the copies read: the client's own, and the share's where no push fills it."""
    if bench.source_bytes:
        return
    _calibrate(bench, dialect)
    disks.hold_sources(bench, stack, disks.first_sides(bench))
    if not _filling(bench):
        _fill(bench, dialect, labels)


def _filling(bench: Bench) -> str:
    """The push whose file the pulls read, the last one; empty: none, or no pull, is asked for."""
    pushes = [each for each in plan.COPY_ORDER if each in _asked(bench, "push")]
    # A file that a slow disk was short of time to hold is too small for pulls.
    pushed = bench.calibrated.get("push", 0.0) * bench.world.times().copy
    least = min(disks.LEAST_SOURCE_BYTES, pushed)
    short = bench.source_bytes_of("client") < least
    return pushes[-1] if pushes and _asked(bench, "pull") and not short else ""


def _asked(bench: Bench, verb: str) -> tuple[str, ...]:
    return tuple(each for each in bench.world.options.copies if each.startswith(verb))


def _fill(bench: Bench, dialect: str, labels: dict[str, Any], again: bool = False) -> None:
    """Makes the pulls' source by a push from memory, where there is none; again: once more."""
    tried = not again and _step(bench, dialect, "push.cached", "memory", labels) in bench.log.steps
    if not bench.source_bytes and _asked(bench, "pull") and not tried:
        _copy(bench, dialect, labels, "push.cached", "memory", WITHOUT_DISK)


def _calibrate(bench: Bench, dialect: str) -> None:
    """A small copy each way, not counted: it sizes the files of the others.

    What goes wrong here will go wrong in the copy itself, which says why.

    Raises:
        Refused: the login; it is not tried again.
        AgentLost: the client's agent is gone.
    """
    if turns.dropped(bench, "push") or turns.dropped(bench, "pull"):
        return
    for copy in ("push.cached", "pull.cached"):
        verb = copy.partition(".")[0]
        step = _step(bench, dialect, copy, "memory", {})
        setting = files.copy_setting(
            bench,
            copy,
            dialect,
            end="memory",
            size_bytes=CALIBRATION_BYTES,
            seconds=CALIBRATION_SHARE_OF_LEFT * max(USEFUL_SECONDS, bench.clock.left()),
            fill_source=verb == "push",
            **CALIBRATION,
        )
        if copy_size.room_bytes(bench, "push.cached", "memory") < CALIBRATION_BYTES:
            return
        bench.tell(f"a first {verb}")
        try:
            peer = replace(bench.world.share, path="")
            ran = bench.run(step, setting, peer, setting.seconds + GRACE_SECONDS)
        except (PartlyRan, StageError, Unavailable, Refused) as error:
            if isinstance(error, PartlyRan) and error.lost:
                raise AgentLost(str(error)) from None
            if isinstance(error, Refused) and error.ends_run:
                raise
            if OUT_OF_TIME in str(error):
                # No faster than that, so that the copies are made as small as they have to be.
                bench.calibrated[verb] = CALIBRATION_BYTES / setting.seconds
            turns.ask_path(bench, str(error))
            return
        rate, trip = (
            run_rate(ran.samples),
            float(bench.world.share.facts.get("connect_seconds") or 0.0),
        )
        brief = max(BRIEF_SECONDS, plan.ROUND_TRIPS_OF_COPY * trip) * rate > CALIBRATION_BYTES
        bench.calibrated[verb] = rate * (CALIBRATION_TIMES if brief else 1)


def _round(
    bench: Bench,
    dialect: str,
    labels: dict[str, Any],
    number: int,
    why: str,
    extra: bool = False,
    cache: str = "",
) -> None:
    """All four copies in turn, or those of a source in this cache: drift hits them alike.

    extra: nobody asked for this dialect, so that what does not fit is a note and not a failure.
    """
    for copy in (each for each in plan.COPY_ORDER if each.endswith(f".{cache}" if cache else "")):
        if copy not in bench.world.options.copies:
            continue
        if copy.startswith("pull") and not extra:
            _fill(bench, dialect, labels)
        if number == 0 and not extra or copy_size.fits(bench, dialect, copy):
            _copy(bench, dialect, labels, copy, "folder", why)
        elif number == 0:
            bench.note(f"{dialect} {copy}: skipped: out of time (use a larger --budget)")


def _labels(bench: Bench, endpoint: Endpoint, dialect: str) -> dict[str, Any] | None:
    """What a dialect's session signs and encrypts; None: it is not possible, which is noted.

    SMB1 is looked for unasked: a server where it is off is well kept, and that is no failure.
    """
    opened = dialect == str(bench.world.share.facts["dialect"])
    if opened and not bench.world.denied:
        return {name: bench.world.share.facts.get(name) for name in ("signing", "encryption")}
    asked = opened or bool(bench.world.options.dialects)
    if not asked and bench.clock.left() < 3 * USEFUL_SECONDS:
        bench.note("SMB1: skipped: out of time (use a larger --budget)")
        return None
    setting = offered.Setting(dialect, bench.world.options.security)
    try:
        if opened:
            raise Unavailable(bench.world.denied)
        with bench.world.client.hold("visit", setting, endpoint, 30) as held:
            return {name: held.facts.get(name) for name in ("signing", "encryption")}
    except (Unavailable, StageError, Refused) as error:
        bench.note(str(error))
        if asked:
            for copy in plan.COPY_ORDER:
                step = _step(bench, dialect, copy, "folder", {})
                bench.log.add(step, Skipped(str(error)), WHOLE_COPY)
        return None


def _step(bench: Bench, dialect: str, copy: str, end: str, labels: dict[str, Any]) -> Step:
    """The step of a copy, without what changes from run to run."""
    setting = files.copy_setting(bench, copy, dialect, end=end, **labels)
    return bench.step("smb-copy", setting, "client")


def _copy(
    bench: Bench, dialect: str, labels: dict[str, Any], copy: str, end: str, why: str
) -> None:
    """Makes one run of one copy; anew where what it failed of is mended."""
    step = _step(bench, dialect, copy, end, labels)
    unproven = copy == "pull.uncached" and bench.world.server_path is None
    if unproven and (bench.warming or step in bench.log.steps):
        return  # once it was read, its source is cached
    label = f"{copy} {'memory ' if end == 'memory' else ''}{dialect}"
    with bench.outcome(step, label, why) as take:
        for attempt in range(ATTEMPTS):
            try:
                _make(bench, step, labels, unproven, take)
                break
            except (PartlyRan, Refused, StageError) as error:
                lost = isinstance(error, PartlyRan) and error.lost
                if lost or attempt == ATTEMPTS - 1 or not _mend(bench, copy, error):
                    raise
                bench.tell(label, outcome=f"failed, and is made again: {error}")
                bench.note(f"{label} was made again: {error}")
            if copy.startswith("pull"):
                _fill(bench, dialect, labels, again=True)
    turns.ask_path(bench, bench.log.failed(step))


def _make(
    bench: Bench,
    step: Step,
    labels: dict[str, Any],
    unproven: bool,
    take: Callable[..., None],
) -> None:
    """Makes the run of a step; unproven: nobody can look into its source's cache."""
    copy, dialect, end = (step.setting[name] for name in ("copy", "dialect", "end"))
    verb, _, requested = copy.partition(".")
    if turns.in_vain(bench, verb):
        raise Unavailable(f"{DROPS} on the path; a copy would stall")
    bench.clock.need(max(USEFUL_SECONDS, copy_size.overhead_seconds(bench)))
    size, _ = copy_size.copy_bytes(bench, dialect, copy, end)
    if size < plan.LEAST_COPY_BYTES:
        raise Unavailable(files.too_small(bench, copy.startswith("pull")))
    proof = files.ready_cache(bench.world.server, bench.world.server_path, copy, size)
    proof = proof or files.cache_proof("server", requested)
    fills = (
        verb == "push" and not bench.source_bytes and (end == "memory" or copy == _filling(bench))
    )
    source = bench.sources.get("client")
    setting = files.copy_setting(
        bench,
        copy,
        dialect,
        end=end,
        size_bytes=size,
        seconds=max(USEFUL_SECONDS, bench.clock.left()),
        fill_source=fills,
        most_seconds=copy_size.copy_seconds(bench, dialect, copy, end),
        lasting=copy_size.is_lasting(bench, end),
        checked=not turns.dropped(bench, "pull"),
        **labels,
    )
    if unproven:
        past_cache.pull(bench, step, setting, take)
        return
    peer = replace(bench.world.share, path=source.path if source and end == "folder" else "")
    details = {"cache": proof} if verb == "pull" else {}
    take(bench.run(step, setting, peer, setting.seconds + GRACE_SECONDS), details)
    if fills and (made := bench.log.latest(step)):
        bench.source_bytes = made.run[-1].moved_bytes


def _mend(bench: Bench, copy: str, error: Exception) -> bool:
    """Removes the cause of a copy's failure, where it can; whether the copy may be made again."""
    kind = error.kind if isinstance(error, Refused) else ""
    if isinstance(error, Refused) and kind == "space" and copy.startswith("push"):
        half_bytes = error.samples[-1].moved_bytes // 2 if error.samples else 0
        bench.file_limit_bytes = half_bytes if bench.file_limit_bytes is None else 0
        return bench.file_limit_bytes > 0
    if kind == "share":
        return bench.reopen()
    ended = any(each in str(error) for each in CONNECTION_ENDS)
    return (ended or kind == "unreachable" and NO_ANSWER not in str(error)) and _answers(bench)


def _answers(bench: Bench) -> bool:
    """Waits for a server that went, as for a restart; whether it takes connections again."""
    bench.tell("waiting for the server to come back")
    wait_seconds = min(bench.return_seconds, bench.clock.left() - USEFUL_SECONDS)
    until = bench.clock.elapsed() + wait_seconds
    while bench.clock.elapsed() < until:
        with suppress(OSError):
            first_to_answer(bench.world.address, bench.world.options.target.port).close()
            return True
        bench.clock.host.sleep(PAUSE_SECONDS)
    bench.return_seconds = 0.0
    return False
