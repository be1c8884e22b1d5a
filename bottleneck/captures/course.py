"""Course of a connection by tenths of a second: whose turn it is, bytes, losses."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

from probes.core.records import SIDES

BINS_A_SECOND: Final = 10
TURNS = (*SIDES, "moving", "pause", "loss", "window", "trip")
"""Names of the shares of a time: of the hosts, and of the states that are none's."""
_COLUMNS = {name: i for i, name in enumerate((*TURNS, "up", "down", "up lost", "down lost"))}
_WIDTH, _BLOCK_BINS = len(_COLUMNS), 100
MOST_BLOCKS = 6000
"""Blocks of a file, of ten seconds of a connection: 16 hours of one, 26 MB."""


def blocks_of_a_file() -> Iterator[array[float]]:
    """Yields the blocks that the connections of a file share."""
    for _ in range(MOST_BLOCKS):
        yield array("f", bytes(4 * _WIDTH * _BLOCK_BINS))


class Course:
    """Seconds of each turn, and bytes and lost segments of both directions, by bin of time."""

    def __init__(self, blocks: Iterator[array[float]]) -> None:
        self._spare = blocks
        self._blocks: dict[int, array[float]] = {}

    def spend(self, turn: str, begin: float, end: float) -> None:
        """Adds the seconds between two moments to a turn."""
        while begin < end:
            number = int(begin * BINS_A_SECOND)
            until = max((number + 1) / BINS_A_SECOND, begin + 1e-3)
            until = until if until < end else end
            if not self.add(turn, number, until - begin):
                return
            begin = until

    def add(self, column: str, number: int, amount: float) -> bool:
        """Adds to a bin; returns whether the file has a block for it."""
        place, row = divmod(number, _BLOCK_BINS)
        block = self._blocks.get(place)
        if block is None:
            if (block := next(self._spare, None)) is None:
                return False
            self._blocks[place] = block
        block[row * _WIDTH + _COLUMNS[column]] += amount
        return True

    def values(self, column: str, bins: range) -> list[float]:
        """Returns a column's values in some bins."""
        index, empty = _COLUMNS[column], array("f", bytes(4 * _WIDTH * _BLOCK_BINS))
        values: list[float] = []
        for place in range(bins.start // _BLOCK_BINS, (bins.stop - 1) // _BLOCK_BINS + 1):
            values += self._blocks.get(place, empty)[index::_WIDTH]
        first = bins.start % _BLOCK_BINS
        return values[first : first + len(bins)]
