"""How long a copy of a run lasts, how large its file is, and whether it fits the time left."""

from __future__ import annotations

from bottleneck.agents.hosts import StageError
from bottleneck.run import plan
from bottleneck.run.bench import Bench
from bottleneck.run.clock import USEFUL_SECONDS
from bottleneck.run.steps import files

STEP_OVERHEAD_SECONDS, OVERHEAD_ROUND_TRIPS = 0.6, 12
"""Login, open, evict, prove: what a copy costs beside its transfer."""
MEMORY_RATIO = 0.4
"""How long a copy from or to memory lasts that no other needs, beside one of files."""
SPARE_TIMES = 1.5
"""How much larger a file is than what is expected of its time."""
UNASKED_RATIO = 0.5
"""How long a copy over SMB1 lasts beside one of the dialect that is used."""
SMB1 = "smb1"
SMB1_SHARE_OF_BUDGET = 0.15


def bounding_rates(bench: Bench) -> dict[str, float]:
    """What is known to bound the copies, by plan.Rates' names."""
    known = plan.known_rates(bench.log)
    for step, rate in plan.measured(bench.log):
        setting = step.setting
        if step.stage == "smb-copy" and setting["dialect"] != "smb1":
            verb = setting["copy"].partition(".")[0]
            known[setting["copy"] if setting["end"] == "folder" else f"{verb}.memory"] = rate
    for verb, rate in bench.calibrated.items():
        known.setdefault(f"{verb}.memory", rate)
    return known


def copy_seconds(bench: Bench, dialect: str, copy: str, end: str) -> float:
    """How long the next run of a copy lasts at a steady rate; 0: until its named size is moved."""
    if bench.world.options.size_bytes is not None:
        return 0.0
    if is_lasting(bench, end):
        return min(
            float(bench.world.options.settings["seconds"]), max(1e-3, bench.clock.left() - 1.0)
        )
    # Towards the end of the budget a shorter copy is better than none.
    usual = bench.world.times().copy
    if dialect == SMB1 and not bench.world.options.dialects:
        usual *= UNASKED_RATIO
    seconds = max(USEFUL_SECONDS / 2, min(usual, share_seconds(bench, dialect, end)))
    if end == "folder":
        return seconds
    if bench.world.options.copy:
        return min(seconds, files.FILL_SECONDS)
    fills = copy.startswith("push") and not bench.source_bytes
    return seconds if fills else seconds * MEMORY_RATIO


def warming_seconds(bench: Bench) -> float:
    """How long a server reads the source of a cached pull from its disk, once that is cold."""
    cold = bounding_rates(bench).get("pull.uncached", 0.0)
    return bench.source_bytes / cold if cold else 0.0


def share_seconds(bench: Bench, dialect: str, end: str) -> float:
    """Of the time that is left, a copy's part: those that come after it get theirs."""
    made = {
        step.setting["copy"]
        for step in bench.log.steps
        if step.stage == "smb-copy" and step.setting["end"] == "folder"
        if step.setting["dialect"] == dialect
    }
    waiting = (end == "memory") + len(set(bench.world.options.copies) - made)
    return bench.clock.left() / max(1, waiting) - overhead_seconds(bench)


def copy_bytes(bench: Bench, dialect: str, copy: str, end: str) -> tuple[int, float | None]:
    """Bytes of the next run of a copy at most, and the rate expected of it."""
    rate = plan.expected_rate(copy, bounding_rates(bench))
    room, asked = room_bytes(bench, copy, end), bench.world.options.size_bytes
    if bench.world.options.copy and asked is None:
        if is_lasting(bench, end):
            return min(room, plan.LARGEST_COPY_BYTES), rate
        room = min(room, files.MOST_BYTES)
    slow_seconds = min(plan.SLOW_COPY_SECONDS, share_seconds(bench, dialect, end))
    seconds = copy_seconds(bench, dialect, copy, end)
    # Its time ends it. A smaller file may be under way as a whole, and nothing would.
    seconds *= SPARE_TIMES if (rate or 0.0) * seconds > plan.SMALLEST_COPY_BYTES else 1.0
    return plan.copy_bytes(rate, seconds, room, asked, slow_seconds), rate


def is_lasting(bench: Bench, end: str) -> bool:
    """Whether a copy is made alone for a time that the user named, and not as long as its size."""
    named = "seconds" in bench.world.options.settings and bench.world.options.size_bytes is None
    return bool(bench.world.options.copy) and end == "folder" and named


def overhead_seconds(bench: Bench) -> float:
    """What a copy costs beside its transfer on this path."""
    trip = float(bench.world.share.facts.get("connect_seconds") or 0.0)
    return STEP_OVERHEAD_SECONDS + OVERHEAD_ROUND_TRIPS * trip


def room_bytes(bench: Bench, copy: str, end: str) -> int:
    """The most bytes that a copy may move: what its source holds and its destination takes."""
    if copy.startswith("pull"):
        room = bench.source_bytes
        if end == "folder" and room:
            room = min(room, files.usable_bytes(bench.world.client, bench.world.options.folder))
        return room
    room = files.room_bytes(bench, plan.LARGEST_COPY_BYTES)
    source = bench.source_bytes_of("client")
    # A named size that is too large for the time left is so for a copy from memory, too.
    bounded = end == "folder" or (source and bench.world.options.size_bytes is not None)
    return min(room, source) if bounded else room


def fits(bench: Bench, dialect: str, copy: str) -> bool:
    """Whether one more run of a copy fits the budget, with room for a look at SMB1 after it."""
    try:
        size, rate = copy_bytes(bench, dialect, copy, "folder")
    except StageError:
        # The copy itself will fail of it, and say why.
        return True
    if rate is None or not size:
        return False
    # A small file is under way as a whole: its time does not end it.
    seconds = copy_seconds(bench, dialect, copy, "folder") or size / rate
    seconds = max(seconds, min(size, plan.SMALLEST_COPY_BYTES) / rate)
    slack, reserve = 1.3, SMB1_SHARE_OF_BUDGET * bench.world.options.budget_seconds
    if dialect == SMB1:
        slack = 2.0
    if dialect == SMB1 or bench.world.options.dialects:
        reserve = 0.0
    return bench.clock.left() - reserve > slack * seconds + overhead_seconds(bench)
