"""How long a copy of a run lasts, how large its file is, and whether it fits the time left."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.agents.hosts import StageError
from bottleneck.run import plan
from bottleneck.run.clock import USEFUL_SECONDS, Clock
from bottleneck.run.files import Files
from bottleneck.run.log import Log
from bottleneck.run.steps.sources import FILL_SECONDS, MOST_BYTES, Sources, usable_bytes
from bottleneck.run.world import World
from probes.files.payload import PERIOD_BYTES

STEP_OVERHEAD_SECONDS, OVERHEAD_ROUND_TRIPS = 0.6, 12
"""Login, open, evict, prove: what a copy costs beside its transfer."""
MEMORY_RATIO = 0.4
"""How long a copy from or to memory lasts that no other needs, beside one of files."""
SPARE_TIMES = 1.5
"""How much larger a file is than what is expected of its time."""
UNASKED_RATIO = 0.5
"""How long a copy over SMB1 lasts beside one of the dialect that is used."""
REPEATED_BYTES_PER_SECOND = 500e6
"""Rate that a source has to carry where all of it is in flight: else its size may cap a pull."""
SMB1 = "smb1"
SMB1_SHARE_OF_BUDGET = 0.15


@dataclass
class Sizes:
    """Of the copies, by what is known as each of them comes."""

    world: World
    clock: Clock
    log: Log
    files: Files
    sources: Sources

    def bounding_rates(self) -> dict[str, float]:
        """What is known to bound the copies, by plan.Rates' names."""
        known = plan.known_rates(self.log)
        for step, rate in plan.measured(self.log):
            setting = step.setting
            if step.stage == "smb-copy" and setting["dialect"] != "smb1":
                verb = setting["copy"].partition(".")[0]
                known[setting["copy"] if setting["end"] == "folder" else f"{verb}.memory"] = rate
        for verb, rate in self.log.first_rates.items():
            known.setdefault(f"{verb}.memory", rate)
        return known

    def copy_seconds(self, dialect: str, copy: str, end: str) -> float:
        """How long a copy's next run lasts at a steady rate; 0: until its named size is moved."""
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
        """How long a server reads the source of a cached pull from its disk, once that is cold."""
        cold = self.bounding_rates().get("pull.uncached", 0.0)
        return self.files.source_bytes / cold if cold else 0.0

    def share_seconds(self, dialect: str, end: str) -> float:
        """Of the time that is left, a copy's part: those that come after it get theirs."""
        made = {
            step.setting["copy"]
            for step in self.log.steps
            if step.stage == "smb-copy" and step.setting["end"] == "folder"
            if step.setting["dialect"] == dialect
        }
        waiting = (end == "memory") + len(set(self.world.options.copies) - made)
        return self.clock.remaining() / max(1, waiting) - self.overhead_seconds()

    def copy_bytes(self, dialect: str, copy: str, end: str) -> tuple[int, float | None]:
        """Bytes of the next run of a copy at most, and the rate expected of it."""
        rate = plan.expected_rate(copy, self.bounding_rates())
        room, asked = self.room_bytes(copy, end), self.world.options.size_bytes
        if self.world.options.copy and asked is None:
            if self.is_lasting(end):
                return min(room, plan.LARGEST_COPY_BYTES), rate
            room = min(room, MOST_BYTES)
        slow_seconds = min(plan.SLOW_COPY_SECONDS, self.share_seconds(dialect, end))
        seconds = self.copy_seconds(dialect, copy, end)
        # Its time ends it. A smaller file may be under way as a whole, and nothing would.
        seconds *= SPARE_TIMES if (rate or 0.0) * seconds > plan.SMALLEST_COPY_BYTES else 1.0
        return plan.copy_bytes(rate, seconds, room, asked, slow_seconds), rate

    def is_lasting(self, end: str) -> bool:
        """Whether a copy is made alone for a time that the user named, not as long as its size."""
        named = "seconds" in self.world.options.settings and self.world.options.size_bytes is None
        return bool(self.world.options.copy) and end == "folder" and named

    def overhead_seconds(self) -> float:
        """What a copy costs beside its transfer on this path."""
        return STEP_OVERHEAD_SECONDS + OVERHEAD_ROUND_TRIPS * self.world.connect_seconds

    def room_bytes(self, copy: str, end: str) -> int:
        """The most bytes that a copy may move: what its source holds and its destination takes."""
        again = self.is_repeated(copy)
        if copy.startswith("pull"):
            room = plan.LARGEST_COPY_BYTES if again else self.files.source_bytes
            if end == "folder" and room:
                room = min(room, usable_bytes(self.world.client, self.files.client_folder))
            return room
        room = self.sources.room_bytes(plan.LARGEST_COPY_BYTES)
        source = plan.LARGEST_COPY_BYTES if again else self.files.source_bytes_of("client")
        # A named size that is too large for the time left is so for a copy from memory, too.
        bounded = end == "folder" or (source and self.world.options.size_bytes is not None)
        return min(room, source) if bounded else room

    def is_repeated(self, copy: str) -> bool:
        """Whether a copy's source, which is cached, is copied over and over until its time is over.

        One read of it ends before the next one begins, which on a far path would cap the rate.
        """
        least, held = PERIOD_BYTES, self.files.source_bytes_of("client")
        if copy.startswith("pull"):
            least = max(1, int(REPEATED_BYTES_PER_SECOND * self.world.connect_seconds))
            held = self.files.source_bytes
        return copy.endswith(".cached") and not self.world.options.size_bytes and held >= least

    def fits(self, dialect: str, copy: str) -> bool:
        """Whether one more run of a copy fits the budget, with room for a look at SMB1 after it."""
        try:
            size, rate = self.copy_bytes(dialect, copy, "folder")
        except StageError:
            # The copy itself will fail of it, and say why.
            return True
        if rate is None or not size:
            return False
        # A small file is under way as a whole: its time does not end it.
        seconds = self.copy_seconds(dialect, copy, "folder") or size / rate
        seconds = max(seconds, min(size, plan.SMALLEST_COPY_BYTES) / rate)
        slack, reserve = 1.3, SMB1_SHARE_OF_BUDGET * self.world.options.budget_seconds
        if dialect == SMB1:
            slack = 2.0
        if dialect == SMB1 or self.world.options.dialects:
            reserve = 0.0
        return self.clock.remaining() - reserve > slack * seconds + self.overhead_seconds()
