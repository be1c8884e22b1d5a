"""The copies: from and to memory, which fills the pulls' source, then as a user makes them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from bottleneck import plan
from bottleneck.bench import Bench
from bottleneck.hosts import AgentLost, PartlyRan, StageError
from bottleneck.report import Step
from bottleneck.steps import bounds, user_file
from bottleneck.steps.allowance import LEAST_BUDGET_SECONDS
from bottleneck.steps.server_folder import NEEDS_SERVER_CACHE, ready_cache
from bottleneck.steps.source import free_bytes
from probes import smb_copy
from probes.records import Endpoint, Skipped, run_rate
from probes.smb import run_folder
from probes.stage import Refused, Unavailable

STEP_OVERHEAD_SECONDS = 0.6
"""Login, open, evict, prove: what a copy costs beside its transfer."""
LEAST_SECONDS = 1.5
TASTE_BYTES = 2 * plan.MIB
TASTE_SHARE_OF_LEFT = 0.2
TASTE_TIMES = 4.0
"""How much faster a long copy may be than a taste of it: round trips and the start of TCP."""
GRACE_SECONDS = 8.0
SMB1 = "smb1"
SMB1_SHARE_OF_BUDGET = 0.15


def measure_copies(
    bench: Bench, endpoint: Endpoint, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Every dialect's copies; `endpoint` is the share as the user named it.

    meanwhile is called once, after the first round of the share's own dialect: what explains the
    copies comes before their repetitions, but after each of them has been seen.
    """
    opened = str(bench.share.facts["dialect"])
    asked = plan.newest_first(bench.options.dialects)
    for dialect in asked or (opened, SMB1):
        labels = {name: bench.share.facts.get(name) for name in ("signing", "encryption")}
        if dialect != opened:
            found = _labels_of(bench, endpoint, dialect)
            if found is None:
                continue
            labels = found
        if not bench.source_bytes:
            # A short run has no time to be careful where the bare network's rate is known.
            by_tcp = any(name.startswith("tcp.") for name in _rates(bench))
            if bench.options.budget_seconds >= LEAST_BUDGET_SECONDS or not by_tcp:
                _taste(bench, dialect)
            _copy(bench, dialect, labels, "push.cached", "memory")
        if dialect == opened:
            _copy(bench, dialect, labels, "pull.cached", "memory")
        extra = not asked and dialect != opened
        _round(bench, dialect, labels, 0, extra)
        if dialect == opened:
            user_file.pull_file(bench, dialect, labels)
            meanwhile()
            for number in range(1, plan.MAX_ROUNDS):
                _round(bench, dialect, labels, number, extra)


def _taste(bench: Bench, dialect: str) -> None:
    """A small copy each way, not counted: a file sized by the bare network may take for ever.

    What goes wrong here will go wrong in the copy itself, which says why.

    Raises:
        Refused: the login; it is not tried again.
        AgentLost: the client's agent is gone.
    """
    for copy in ("push.cached", "pull.cached"):
        verb = copy.partition(".")[0]
        step = _step(bench, dialect, copy, "memory", {})
        setting = smb_copy.Setting(
            copy=copy,
            dialect=dialect,
            end="memory",
            size_bytes=TASTE_BYTES,
            seconds=TASTE_SHARE_OF_LEFT * max(LEAST_SECONDS, bench.left()),
            folder=bench.options.folder,
            seed=bench.seed,
            fill_source=verb == "push",
        )
        if _room(bench, "push.cached", "memory") < TASTE_BYTES:
            return
        bench.tell(f"a first {verb}")
        try:
            peer = replace(bench.share, path="")
            ran = bench.run(step, setting, peer, setting.seconds + GRACE_SECONDS)
        except PartlyRan as error:
            if error.lost:
                raise AgentLost(str(error)) from None
            return
        except (StageError, Unavailable):
            return
        except Refused as error:
            if error.kind == "login":
                raise
            return
        bench.tasted[verb] = run_rate(ran.samples)


def _round(bench: Bench, dialect: str, labels: dict[str, Any], number: int, extra: bool) -> None:
    """All four copies in turn: drift hits them alike.

    extra: nobody asked for this dialect, so that what does not fit is a note and not a failure.
    """
    for copy in plan.COPIES:
        if number == 0 and not extra or _fits(bench, dialect, copy):
            _copy(bench, dialect, labels, copy, "folder")
        elif number == 0:
            bench.note(f"{dialect} {copy}: no time left; give a larger --budget")


def _labels_of(bench: Bench, endpoint: Endpoint, dialect: str) -> dict[str, Any] | None:
    """What a session of another dialect uses; None: not offered, which is noted.

    SMB1 is looked for unasked: a server where it is off is well kept, and that is no failure.
    """
    asked = bool(bench.options.dialects)
    if not asked and bench.left() < 3 * LEAST_SECONDS:
        bench.note("smb1: no time left to try it; give a larger --budget")
        return None
    setting = run_folder.Setting(dialect=dialect, run=secrets.token_hex(8))
    try:
        with bench.client.hold("run-folder", setting, endpoint, 30) as held:
            return {name: held.facts.get(name) for name in ("signing", "encryption")}
    except (Unavailable, StageError, Refused) as error:
        bench.note(str(error))
        if asked:
            for copy in plan.COPIES:
                bench.ledger.end(_step(bench, dialect, copy, "folder", {}), Skipped(str(error)))
        return None


def _step(bench: Bench, dialect: str, copy: str, end: str, labels: dict[str, Any]) -> Step:
    """The step of a copy, without what changes from run to run."""
    setting = smb_copy.Setting(
        copy=copy,
        dialect=dialect,
        end=end,
        size_bytes=0,
        seconds=0.0,
        folder=bench.options.folder,
        **labels,
    )
    plain = asdict(setting)
    for varying in ("seed", "size_bytes", "seconds", "fill_source", "file", "file_seconds"):
        plain.pop(varying)
    return Step("smb-copy", plain, "client")


def _rates(bench: Bench) -> dict[str, float]:
    """What is known to bound the copies, by plan.Rates' names."""
    known = bounds.of_stages(bench)
    for step, rate in bounds.measured(bench):
        setting = step.setting
        if step.stage == "smb-copy" and setting["dialect"] != "smb1":
            verb = setting["copy"].partition(".")[0]
            known[setting["copy"] if setting["end"] == "folder" else f"{verb}.memory"] = rate
    for verb, rate in bench.tasted.items():
        # beside the bare network's rate it is there to tell a path that is far below that
        times = TASTE_TIMES if f"tcp.{verb}" in known else 1.0
        known.setdefault(f"{verb}.memory", times * rate)
    return known


def _size(bench: Bench, copy: str, end: str) -> tuple[int, float | None]:
    """Bytes of the next run of a copy, and the rate expected of it."""
    rate = plan.expected_rate(copy, _rates(bench))
    # Towards the end of the budget a smaller file is better than none.
    seconds = max(LEAST_SECONDS / 2, min(bench.times.copy, bench.left() - STEP_OVERHEAD_SECONDS))
    if copy.startswith("push") and end == "memory" and not bench.source_bytes:
        # Pulls read this file: it may take longer to write than a copy that counts.
        seconds *= 1.5
    return plan.copy_bytes(rate, seconds, _room(bench, copy, end), bench.options.size_bytes), rate


def _room(bench: Bench, copy: str, end: str) -> int:
    """The most bytes that a copy may move: what its source holds and its destination takes."""
    if copy.startswith("pull"):
        room = bench.source_bytes
        if end == "folder" and room:
            room = min(room, int(bench.client.ask("usable-bytes", folder=bench.options.folder)))
        return room
    free = free_bytes(bench)
    room = plan.LARGEST_COPY_BYTES if free is None else free
    if end == "folder":
        source = bench.sources.get("client")
        room = min(room, int(source.facts["size_bytes"]) if source else 0)
    return room


def _fits(bench: Bench, dialect: str, copy: str) -> bool:
    """Whether one more run of a copy fits the budget, with room for a look at SMB1 after it."""
    try:
        size, rate = _size(bench, copy, "folder")
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
    return bench.left() - reserve > slack * size / rate + STEP_OVERHEAD_SECONDS


def _copy(bench: Bench, dialect: str, labels: dict[str, Any], copy: str, end: str) -> None:
    """One run of one copy."""
    step = _step(bench, dialect, copy, end, labels)
    with bench.outcome(step, f"{copy} {'memory ' if end == 'memory' else ''}{dialect}"):
        if copy == "pull.uncached" and bench.server_path is None:
            raise Unavailable(NEEDS_SERVER_CACHE)
        if bench.left() < LEAST_SECONDS:
            raise Unavailable("no time left in the budget: give a larger --budget")
        size, _ = _size(bench, copy, end)
        if size < plan.MIB:
            raise Unavailable("no source file, or no room for a copy of 1 MiB")
        proof = _server_cache(bench, copy, size)
        fills = end == "memory" and copy.startswith("push") and not bench.source_bytes
        source = bench.sources.get("client")
        setting = smb_copy.Setting(
            copy=copy,
            dialect=dialect,
            end=end,
            size_bytes=size,
            seconds=max(LEAST_SECONDS, bench.left()),
            folder=bench.options.folder,
            seed=bench.seed,
            fill_source=fills,
            **labels,
        )
        peer = replace(bench.share, path=source.path if source and end == "folder" else "")
        bench.initiate(step, setting, peer, setting.seconds + GRACE_SECONDS, details=proof)
        if fills:
            bench.source_bytes = size


def _server_cache(bench: Bench, copy: str, size_bytes: int) -> dict[str, Any]:
    """Has the server make a pull's source cold or warm, and prove it; goes into the details."""
    verb, _, requested = copy.partition(".")
    if verb == "push":
        return {}
    proof = ready_cache(bench, bench.server_path, copy, size_bytes)
    if proof is None:
        proof = {
            "side": "server",
            "requested": requested,
            "proven": False,
            "cached_ratio_before": None,
        }
    return {"cache": proof}
