"""Wrong tokens by the address that they came from, and how long each address is then not heard.

A token cannot be guessed (seals.TOKEN_BYTES): all that is kept down is the noise, and nobody can
keep another address out. Pure but for its lock.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

FREE = 5
"""A person may mistype so often; from then on the address is not heard for a while."""
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 60.0
"""Of that while, which doubles with each wrong token more."""
MOST_ADDRESSES = 1024


@dataclass
class _Count:
    wrong: int = 0
    until: float = 0.0


@dataclass
class Guesses:
    """The wrong tokens so far; times are those of time.monotonic()."""

    counts: dict[str, _Count] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def heard(self, address: str, now: float) -> bool:
        """Whether a caller at this address may try."""
        with self.lock:
            count = self.counts.get(address)
            return count is None or now >= count.until

    def wrong(self, address: str, now: float) -> int:
        """Notes one more; how many they are now."""
        with self.lock:
            # The last one in the order is the one that came last: the first one goes.
            count = self.counts.pop(address, None) or _Count()
            self.counts[address] = count
            if len(self.counts) > MOST_ADDRESSES:
                del self.counts[next(iter(self.counts))]
            count.wrong += 1
            if count.wrong >= FREE:
                doubled = FIRST_SECONDS * 2.0 ** min(count.wrong - FREE, 30)
                count.until = now + min(LONGEST_SECONDS, doubled)
            return count.wrong

    def right(self, address: str) -> None:
        """Forgets what came from there: it knows the token."""
        with self.lock:
            self.counts.pop(address, None)
