"""The copies: from and to memory, which fills the pulls' source, then as a user makes them."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from bottleneck import plan
from bottleneck.bench import USEFUL_SECONDS, Bench
from bottleneck.hosts import AgentLost, PartlyRan, StageError
from bottleneck.report import Step
from bottleneck.steps import cold, disks, files, schedule, turns
from probes.records import DROPS, Endpoint, Skipped, run_rate
from probes.smb import run_folder
from probes.stage import LONG_BUDGET_SECONDS, Refused, Unavailable

STEP_OVERHEAD_SECONDS, OVERHEAD_ROUND_TRIPS = 0.6, 12
"""Login, open, evict, prove: what a copy costs beside its transfer."""
USUAL_COPIES = 8
"""With less time than for so many a run has none for what no user makes."""
CALIBRATION_BYTES, CALIBRATION_SECONDS = 2 * plan.MIB, 2.0
CALIBRATION_SHARE_OF_LEFT = 0.2
CALIBRATION_TIMES = 4.0
"""How much faster a long copy may be than one that was over in BRIEF_SECONDS: round trips, and the
start of TCP."""
BRIEF_SECONDS = 0.5
GRACE_SECONDS, OUT_OF_TIME = 8.0, "ran out of time"
SMB1 = "smb1"
SMB1_SHARE_OF_BUDGET = 0.15
SMB1_SECONDS = 2.5
"""In a clear case, of its two copies of a cached source, with the usual budget."""
MEMORY_RATIO = 0.4
"""How long a copy from or to memory lasts that no other needs, beside one of files."""
SPARE_TIMES = 1.5
"""How much larger a file is than what is expected of its time."""
UNASKED_RATIO = 0.5
"""How long a copy over SMB1 lasts beside one of the dialect that is used."""
MOST_REPETITIONS = 6
WHOLE = "the copy as a user makes it"


def measure_copies(
    bench: Bench, endpoint: Endpoint, stack: ExitStack, limits: Callable[[], None]
) -> None:
    """Every dialect's copies; `endpoint` is the share as the user named it.

    stack: holds the file that pushes read. limits: measures the network and the disks alone, after
    the first round of copies and before what explains them. Where all are clear, none is repeated.
    """
    opened = str(bench.share.facts["dialect"])
    if bench.options.cold_from and bench.server_path is not None:
        bench.note("--cold-from: not used: the agent clears the server's page cache")
    made: dict[str, dict[str, Any]] = {}
    for dialect in plan.newest_first(bench.options.dialects) or (opened,):
        labels = _labels(bench, endpoint, dialect)
        if labels is None:
            continue
        _to_memory(bench, dialect, labels, stack)
        bench.ledger.why = WHOLE
        _round(bench, dialect, labels, 0, extra=False)
        if turns.in_vain(bench, "pull"):
            bench.note(f"tests that explain copies: skipped: {DROPS} on the path")
            break
        if dialect == opened:
            files.copy_file(bench, dialect, labels)
            files.copy_tree(bench, dialect)
        made[dialect] = labels
    limits()
    if opened in made and not (bench.options.runs or bench.options.copy):
        _explained(bench, endpoint, made[opened])
    bench.ledger.why = ""


def _explained(bench: Bench, endpoint: Endpoint, labels: dict[str, Any]) -> None:
    """After the first round of the share's own dialect: looks, SMB1 and repetitions."""
    opened = str(bench.share.facts["dialect"])
    others = bench.options.dialects
    thorough = bench.options.budget_seconds >= LONG_BUDGET_SECONDS
    if thorough:
        # What the advice promises is made before all that only explains it.
        _repeat(bench, opened, labels, plan.THOROUGH_ROUNDS)
        if not others:
            _smb1(bench, endpoint)
    explanations = schedule.Explanations.of(bench)
    explanations.refine()
    found = schedule.in_doubt(bench)
    clear = found is not None and not found
    in_time = schedule.in_time(bench, SMB1_SECONDS, schedule.MOST_CLEAR_SHARE)
    left_out = [SMB1] if clear and not others else []
    if left_out and in_time:
        left_out = [f"{SMB1} uncached"] if _smb1(bench, endpoint, "cached") else []
    explanations.make(*left_out)
    if not thorough:
        _repeat(bench, opened, labels, plan.MAX_ROUNDS)
    _until_stable(bench, opened, labels)
    if not clear and not others and not thorough:
        _smb1(bench, endpoint)


def _repeat(bench: Bench, dialect: str, labels: dict[str, Any], rounds: int) -> None:
    """All copies again, up to so many rounds with the first, while one of them is in doubt."""
    for number in range(1, rounds):
        found = schedule.in_doubt(bench)
        if found is not None and not found:
            break
        bench.ledger.why = found[0].reason if found else "how far one run varies"
        _round(bench, dialect, labels, number, extra=False)


def _until_stable(bench: Bench, dialect: str, labels: dict[str, Any]) -> None:
    """Copies whose runs lie far apart, again while there is time: another load may have gone."""
    for _ in range(MOST_REPETITIONS):
        found = schedule.in_doubt(bench) or ()
        unsteady = [each.copy for each in found if each.unstable and each.dialect == dialect]
        fitting = [copy for copy in unsteady if _fits(bench, dialect, copy)]
        if not fitting:
            return
        bench.ledger.why = "its runs vary widely"
        for copy in plan.COPIES:
            if copy in fitting:
                _copy(bench, dialect, labels, copy, "folder")


def _smb1(bench: Bench, endpoint: Endpoint, cache: str = "") -> bool:
    """One round over SMB1 where the server offers it: nobody asked, so that it may be left out.

    cache: the copies of such a source alone. Returns whether it is offered.
    """
    labels = _labels(bench, endpoint, SMB1)
    if labels is not None:
        bench.ledger.why = "the oldest dialect that the server supports"
        _round(bench, SMB1, labels, 0, extra=True, cache=cache)
    return labels is not None


def _to_memory(bench: Bench, dialect: str, labels: dict[str, Any], stack: ExitStack) -> None:
    """The copies without the client's disk; the first push fills the source of the pulls.

    Of one copy that was chosen, only what makes that possible.
    """
    bench.ledger.why = "the copy without the client's disk"
    pulls = any(each.startswith("pull") for each in bench.options.copies)
    if not bench.source_bytes:
        if not (turns.dropped(bench, "push") or turns.dropped(bench, "pull")):
            _calibrate(bench, dialect)
        if not bench.sources:
            disks.hold_sources(bench, stack)
        if pulls:
            _copy(bench, dialect, labels, "push.cached", "memory")
    if bench.options.copy:
        return
    in_time = bench.left() >= USUAL_COPIES * _overhead_seconds(bench)
    if dialect == bench.share.facts["dialect"] and in_time:
        _copy(bench, dialect, labels, "pull.cached", "memory")


def _calibrate(bench: Bench, dialect: str) -> None:
    """A small copy each way, not counted: a file sized by the bare network may take for ever.

    What goes wrong here will go wrong in the copy itself, which says why.

    Raises:
        Refused: the login; it is not tried again.
        AgentLost: the client's agent is gone.
    """
    for copy in ("push.cached", "pull.cached"):
        verb = copy.partition(".")[0]
        rate = plan.known_rates(bench.ledger).get(f"tcp.{verb}", math.inf)
        size = int(min(CALIBRATION_BYTES, max(plan.LEAST_COPY_BYTES, rate * CALIBRATION_SECONDS)))
        step = _step(bench, dialect, copy, "memory", {})
        setting = files.copy_setting(
            bench,
            copy,
            dialect,
            end="memory",
            size_bytes=size,
            seconds=CALIBRATION_SHARE_OF_LEFT * max(USEFUL_SECONDS, bench.left()),
            fill_source=verb == "push",
        )
        if _room(bench, "push.cached", "memory") < size:
            return
        bench.tell(f"a first {verb}")
        try:
            peer = replace(bench.share, path="")
            ran = bench.run(step, setting, peer, setting.seconds + GRACE_SECONDS)
        except (PartlyRan, StageError, Unavailable, Refused) as error:
            if isinstance(error, PartlyRan) and error.lost:
                raise AgentLost(str(error)) from None
            if isinstance(error, Refused) and error.kind == "login":
                raise
            if OUT_OF_TIME in str(error):
                # No faster than that, so that the copies are made as small as they have to be.
                bench.calibrated[verb] = size / setting.seconds
            turns.ask_path(bench, str(error))
            return
        rate = run_rate(ran.samples)
        bench.calibrated[verb] = rate * (CALIBRATION_TIMES if size < BRIEF_SECONDS * rate else 1)


def _round(
    bench: Bench, dialect: str, labels: dict[str, Any], number: int, extra: bool, cache: str = ""
) -> None:
    """All four copies in turn, or those of a source in this cache: drift hits them alike.

    extra: nobody asked for this dialect, so that what does not fit is a note and not a failure.
    """
    for copy in (each for each in plan.COPIES if each.endswith(f".{cache}" if cache else "")):
        if copy not in bench.options.copies:
            continue
        if number == 0 and not extra or _fits(bench, dialect, copy):
            _copy(bench, dialect, labels, copy, "folder")
        elif number == 0:
            bench.note(f"{dialect} {copy}: skipped: out of time (use a larger --budget)")


def _labels(bench: Bench, endpoint: Endpoint, dialect: str) -> dict[str, Any] | None:
    """What a dialect's session signs and encrypts; None: it is not possible, which is noted.

    SMB1 is looked for unasked: a server where it is off is well kept, and that is no failure.
    """
    opened = dialect == str(bench.share.facts["dialect"])
    if opened and not bench.denied:
        return {name: bench.share.facts.get(name) for name in ("signing", "encryption")}
    asked = opened or bool(bench.options.dialects)
    if not asked and bench.left() < 3 * USEFUL_SECONDS:
        bench.note("SMB1: skipped: out of time (use a larger --budget)")
        return None
    setting = run_folder.Setting(
        dialect=dialect,
        run=secrets.token_hex(8),
        outlived=bench.options.outlived,
        security=bench.options.security,
    )
    try:
        if opened:
            raise Unavailable(bench.denied)
        with bench.client.hold(run_folder.NAME, setting, endpoint, 30) as held:
            return {name: held.facts.get(name) for name in ("signing", "encryption")}
    except (Unavailable, StageError, Refused) as error:
        bench.note(str(error))
        if asked:
            for copy in plan.COPIES:
                bench.ledger.end(_step(bench, dialect, copy, "folder", {}), Skipped(str(error)))
        return None


def _step(bench: Bench, dialect: str, copy: str, end: str, labels: dict[str, Any]) -> Step:
    """The step of a copy, without what changes from run to run."""
    setting = files.copy_setting(bench, copy, dialect, end=end, **labels)
    return bench.step("smb-copy", setting, "client")


def _rates(bench: Bench) -> dict[str, float]:
    """What is known to bound the copies, by plan.Rates' names."""
    known = plan.known_rates(bench.ledger)
    for step, rate in plan.measured(bench.ledger):
        setting = step.setting
        if step.stage == "smb-copy" and setting["dialect"] != "smb1":
            verb = setting["copy"].partition(".")[0]
            known[setting["copy"] if setting["end"] == "folder" else f"{verb}.memory"] = rate
    for verb, rate in bench.calibrated.items():
        known.setdefault(f"{verb}.memory", rate)
    return known


def _seconds(bench: Bench, dialect: str, copy: str, end: str) -> float:
    """How long the next run of a copy lasts at a steady rate; 0: until its named size is moved."""
    if bench.options.size_bytes is not None:
        return 0.0
    if _lasts(bench, end):
        return min(float(bench.options.settings["seconds"]), max(1e-3, bench.left() - 1.0))
    # Towards the end of the budget a shorter copy is better than none.
    usual = bench.times.copy
    if dialect == SMB1 and not bench.options.dialects:
        usual *= UNASKED_RATIO
    seconds = max(USEFUL_SECONDS / 2, min(usual, _share_seconds(bench, dialect, end)))
    if end == "folder":
        return seconds
    if bench.options.copy:
        return min(seconds, files.FILL_SECONDS)
    fills = copy.startswith("push") and not bench.source_bytes
    return seconds if fills else seconds * MEMORY_RATIO


def _share_seconds(bench: Bench, dialect: str, end: str) -> float:
    """Of the time that is left, a copy's part: those that come after it get theirs."""
    made = {
        step.setting["copy"]
        for step in bench.ledger.steps
        if step.stage == "smb-copy" and step.setting["end"] == "folder"
        if step.setting["dialect"] == dialect
    }
    waiting = (end == "memory") + len(set(bench.options.copies) - made)
    return bench.left() / max(1, waiting) - _overhead_seconds(bench)


def _size(bench: Bench, dialect: str, copy: str, end: str) -> tuple[int, float | None]:
    """Bytes of the next run of a copy at most, and the rate expected of it."""
    rate = plan.expected_rate(copy, _rates(bench))
    room, asked = _room(bench, copy, end), bench.options.size_bytes
    if bench.options.copy and asked is None:
        if _lasts(bench, end):
            return min(room, plan.LARGEST_COPY_BYTES), rate
        room = min(room, files.MOST_BYTES)
    slow_seconds = min(plan.SLOW_COPY_SECONDS, _share_seconds(bench, dialect, end))
    seconds = _seconds(bench, dialect, copy, end)
    # Its time ends it. A smaller file may be under way as a whole, and nothing would.
    seconds *= SPARE_TIMES if (rate or 0.0) * seconds > plan.SMALLEST_COPY_BYTES else 1.0
    return plan.copy_bytes(rate, seconds, room, asked, slow_seconds), rate


def _lasts(bench: Bench, end: str) -> bool:
    """Whether a copy is made alone for a time that the user named, and not as long as its size."""
    named = "seconds" in bench.options.settings and bench.options.size_bytes is None
    return bool(bench.options.copy) and end == "folder" and named


def _overhead_seconds(bench: Bench) -> float:
    """What a copy costs beside its transfer on this path."""
    trip = float(bench.share.facts.get("connect_seconds") or 0.0)
    return STEP_OVERHEAD_SECONDS + OVERHEAD_ROUND_TRIPS * trip


def _room(bench: Bench, copy: str, end: str) -> int:
    """The most bytes that a copy may move: what its source holds and its destination takes."""
    if copy.startswith("pull"):
        room = bench.source_bytes
        if end == "folder" and room:
            room = min(room, files.usable_bytes(bench.client, bench.options.folder))
        return room
    free = files.free_bytes(bench)
    room = plan.LARGEST_COPY_BYTES if free is None else free
    if end == "folder":
        room = min(room, bench.source_bytes_of("client"))
    return room


def _fits(bench: Bench, dialect: str, copy: str) -> bool:
    """Whether one more run of a copy fits the budget, with room for a look at SMB1 after it."""
    try:
        size, rate = _size(bench, dialect, copy, "folder")
    except StageError:
        # The copy itself will fail of it, and say why.
        return True
    if rate is None or not size:
        return False
    slack, reserve = 1.3, SMB1_SHARE_OF_BUDGET * bench.options.budget_seconds
    if dialect == SMB1:
        slack = 2.0
    if dialect == SMB1 or bench.options.dialects:
        reserve = 0.0
    return bench.left() - reserve > slack * size / rate + _overhead_seconds(bench)


def _copy(bench: Bench, dialect: str, labels: dict[str, Any], copy: str, end: str) -> None:
    """One run of one copy."""
    step = _step(bench, dialect, copy, end, labels)
    unproven = copy == "pull.uncached" and bench.server_path is None
    if unproven and (bench.warming or step in bench.ledger.steps):
        return  # once it was read, its source is cached
    with bench.outcome(step, f"{copy} {'memory ' if end == 'memory' else ''}{dialect}"):
        verb, _, requested = copy.partition(".")
        if turns.in_vain(bench, verb):
            raise Unavailable(f"{DROPS} on the path; a copy would stall")
        bench.need(max(USEFUL_SECONDS, _overhead_seconds(bench)))
        size, _ = _size(bench, dialect, copy, end)
        if size < plan.LEAST_COPY_BYTES:
            raise Unavailable(files.too_small(bench, copy.startswith("pull")))
        proof = files.ready_cache(bench.server, bench.server_path, copy, size)
        proof = proof or files.cache_proof("server", requested)
        fills = end == "memory" and verb == "push" and not bench.source_bytes
        source = bench.sources.get("client")
        setting = files.copy_setting(
            bench,
            copy,
            dialect,
            end=end,
            size_bytes=size,
            seconds=max(USEFUL_SECONDS, bench.left()),
            fill_source=fills,
            most_seconds=_seconds(bench, dialect, copy, end),
            lasting=_lasts(bench, end),
            checked=not turns.dropped(bench, "pull"),
            **labels,
        )
        if unproven:
            cold.pull(bench, step, setting)
            return
        peer = replace(bench.share, path=source.path if source and end == "folder" else "")
        known = {"cache": proof} if verb == "pull" else {}
        bench.initiate(step, setting, peer, setting.seconds + GRACE_SECONDS, details=known)
        if fills and (made := bench.ledger.latest(step)):
            bench.source_bytes = made.run[-1].moved_bytes
    turns.ask_path(bench, bench.ledger.failed(step))
