"""Worlds that are drawn: the same by a seed, of every kind, and with a truth."""

from __future__ import annotations

from draw import KINDS, draw_worlds

from bottleneck.analysis.rules.registry import BY_WORDS


def test_a_seed_draws_the_same_worlds_and_another_draws_others() -> None:
    assert draw_worlds(24, "ab12") == draw_worlds(24, "ab12")
    assert draw_worlds(24, "ab12") != draw_worlds(24, "ab13")
    assert draw_worlds(8, "ab12") == draw_worlds(24, "ab12")[:8]


def test_each_kind_comes_before_one_comes_again_and_has_a_truth() -> None:
    worlds = draw_worlds(3 * len(KINDS), "cd")
    kinds = [each.name.split("-", 2)[2] for each in worlds]
    assert sorted(kinds[: len(KINDS)]) == sorted(KINDS)
    for each in worlds:
        assert all(copy.right for copy in each.expected)
        for component, _, cause in {right for copy in each.expected for right in copy.right}:
            assert (component, cause) in BY_WORDS
