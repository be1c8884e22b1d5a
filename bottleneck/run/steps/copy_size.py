"""Duration and file size of a run's copies, and whether they fit the remaining time."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.agents.hosts import StageError
from bottleneck.run import plan
from bottleneck.run.clock import USEFUL_SECONDS
from bottleneck.run.steps.sources import FILL_SECONDS, MOST_BYTES, Sources, usable_bytes
from bottleneck.run.world import RunState
from probes.files.payload import PERIOD_BYTES

STEP_OVERHEAD_SECONDS, OVERHEAD_ROUND_TRIPS = 0.6, 12
"""Time of a copy beside its transfer: login, open, evict, prove."""
MEMORY_RATIO = 0.4
"""Duration of a copy from or to memory that no other copy needs, over one of files."""
SPARE_TIMES = 1.5
"""File size over the bytes that are expected in the copy's time."""
UNASKED_RATIO = 0.5
"""Duration of a copy over SMB1 that was not requested, over that of a usual copy."""
REPEATED_BYTES_PER_SECOND = 500e6
"""Rate up to which a source's size must not cap a pull that has all of it in flight."""
SMB1 = "smb1"
SMB1_SHARE_OF_BUDGET = 0.15


@dataclass
class Sizes(RunState):
    """Durations and sizes of the copies, by the results so far."""

    sources: Sources

    def bounding_rates(self) -> dict[str, float]:
        """Returns rates that bound the copies, by the names of plan.Rates."""
        rates = plan.known_rates(self.log)
        for step, rate in plan.measured_rates(self.log):
            setting = step.setting
            if step.stage == "smb-copy" and setting["dialect"] != "smb1":
                verb = setting["copy"].partition(".")[0]
                rates[setting["copy"] if setting["end"] == "folder" else f"{verb}.memory"] = rate
        for verb, rate in self.log.first_rates.items():
            rates.setdefault(f"{verb}.memory", rate)
        return rates

    def copy_seconds(self, dialect: str, copy: str, end: str) -> float:
        """Returns the seconds of a copy's next run; 0: until its requested size is moved."""
        if self.world.options.size_bytes is not None:
            return 0.0
        if self.is_lasting(end):
            named_seconds = float(self.world.options.settings["seconds"])
            return min(named_seconds, max(1e-3, self.clock.remaining() - 1.0))
        # Towards the end of the budget a shorter copy is better than none.
        usual = self.world.times().copy
        if dialect == SMB1 and not self.world.options.dialects:
            usual *= UNASKED_RATIO
        seconds = max(USEFUL_SECONDS / 2, min(usual, self.share_seconds(dialect, end)))
        if end == "folder":
            return seconds
        if self.world.options.copy:
            return min(seconds, FILL_SECONDS)
        fills = copy.startswith("push") and not self.files.source_bytes
        return seconds if fills else seconds * MEMORY_RATIO

    def warming_seconds(self) -> float:
        """Returns the seconds in which the server reads a cold source from its disk."""
        cold = self.bounding_rates().get("pull.uncached", 0.0)
        return self.files.source_bytes / cold if cold else 0.0

    def share_seconds(self, dialect: str, end: str) -> float:
        """Returns a copy's share of the remaining time, beside the copies after it."""
        finished = {
            step.setting["copy"]
            for step in self.log.steps
            if step.stage == "smb-copy" and step.setting["end"] == "folder"
            if step.setting["dialect"] == dialect
        }
        waiting = (end == "memory") + len(set(self.world.options.copies) - finished)
        return self.clock.remaining() / max(1, waiting) - self.overhead_seconds()

    def copy_bytes(self, dialect: str, copy: str, end: str) -> tuple[int, float | None]:
        """Returns the largest size of a copy's next run, and its expected rate."""
        rate = plan.expected_rate(copy, self.bounding_rates())
        room, size_bytes = self.room_bytes(copy, end), self.world.options.size_bytes
        if self.world.options.copy and size_bytes is None:
            if self.is_lasting(end):
                return min(room, plan.LARGEST_COPY_BYTES), rate
            room = min(room, MOST_BYTES)
        slow_seconds = min(plan.SLOW_COPY_SECONDS, self.share_seconds(dialect, end))
        seconds = self.copy_seconds(dialect, copy, end)
        # The time limit ends it; a smaller file may be in flight as a whole, and ignore the limit.
        seconds *= SPARE_TIMES if (rate or 0.0) * seconds > plan.SMALLEST_COPY_BYTES else 1.0
        return plan.copy_bytes(rate, seconds, room, size_bytes, slow_seconds), rate

    def is_lasting(self, end: str) -> bool:
        """Whether the only copy lasts for the time that the user gave, whatever its size."""
        options = self.world.options
        is_timed = "seconds" in options.settings and options.size_bytes is None
        return bool(options.copy) and end == "folder" and is_timed

    def overhead_seconds(self) -> float:
        """Returns the seconds of a copy beside its transfer on this path."""
        return STEP_OVERHEAD_SECONDS + OVERHEAD_ROUND_TRIPS * self.world.connect_seconds

    def room_bytes(self, copy: str, end: str) -> int:
        """Returns the most bytes of a copy, by its source's size and its destination's room."""
        again = self.is_repeated(copy)
        if copy.startswith("pull"):
            room = plan.LARGEST_COPY_BYTES if again else self.files.source_bytes
            if end == "folder" and room:
                room = min(room, usable_bytes(self.world.client, self.files.client_folder))
            return room
        room = self.sources.room_bytes(plan.LARGEST_COPY_BYTES)
        source = plan.LARGEST_COPY_BYTES if again else self.files.source_bytes_of("client")
        # A requested size that is too large for the remaining time also bounds copies from memory.
        bounded = end == "folder" or (source and self.world.options.size_bytes is not None)
        return min(room, source) if bounded else room

    def is_repeated(self, copy: str) -> bool:
        """Whether a copy reads its cached source repeatedly until its time is over.

        One read ends before the next begins, which would cap the rate of a small source on a far
        path.
        """
        threshold, size = PERIOD_BYTES, self.files.source_bytes_of("client")
        if copy.startswith("pull"):
            threshold = max(1, int(REPEATED_BYTES_PER_SECOND * self.world.connect_seconds))
            size = self.files.source_bytes
        return copy.endswith(".cached") and not self.world.options.size_bytes and size >= threshold

    def fits(self, dialect: str, copy: str) -> bool:
        """Whether one more run of a copy fits the budget, with time for SMB1 after it."""
        try:
            size, rate = self.copy_bytes(dialect, copy, "folder")
        except StageError:
            # The copy itself will report the error.
            return True
        if rate is None or not size:
            return False
        # A small file is in flight as a whole: its time limit does not end it.
        seconds = self.copy_seconds(dialect, copy, "folder") or size / rate
        seconds = max(seconds, min(size, plan.SMALLEST_COPY_BYTES) / rate)
        slack, reserve = 1.3, SMB1_SHARE_OF_BUDGET * self.world.options.budget_seconds
        if dialect == SMB1:
            slack = 2.0
        if dialect == SMB1 or self.world.options.dialects:
            reserve = 0.0
        return self.clock.remaining() - reserve > slack * seconds + self.overhead_seconds()
