"""Wrong tokens cost their own address a while, and nobody else anything."""

from __future__ import annotations

from bottleneck import guesses
from bottleneck.guesses import FREE, LONGEST_SECONDS, Guesses


def test_the_first_ones_are_free_and_each_one_more_costs_twice_as_much() -> None:
    made = Guesses()
    for count in range(1, FREE):
        assert made.wrong("a", 0.0) == count
        assert made.heard("a", 0.0)
    waits = []
    for _ in range(60):
        made.wrong("a", 0.0)
        waits.append(next(at for at in range(1000) if made.heard("a", float(at))))
    assert waits[:4] == [1, 2, 4, 8]
    assert set(waits[10:]) == {LONGEST_SECONDS}
    assert made.heard("b", 0.0)


def test_a_right_one_makes_them_forgotten() -> None:
    made = Guesses()
    for _ in range(FREE):
        made.wrong("a", 0.0)
    made.right("a")
    assert made.heard("a", 0.0)
    assert made.wrong("a", 0.0) == 1


def test_their_memory_is_bounded_and_keeps_the_latest() -> None:
    made = Guesses()
    for number in range(guesses.MOST_ADDRESSES + 10):
        made.wrong(str(number), 0.0)
    assert len(made.counts) == guesses.MOST_ADDRESSES
    assert "0" not in made.counts
    assert str(guesses.MOST_ADDRESSES + 9) in made.counts
