"""Who had better start a copy, where a person told it without figures."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons.initiators import DIRECTIONS
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.link_end import is_told
from bottleneck.report import Report
from probes.records import SIDES

LONGEST_WORDS = 120


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison for each direction that was told of."""
    if not is_told(report):
        return
    for each in steps.items(report.target, "starts"):
        sender, better = (steps.word(each, name) for name in ("sender", "better"))
        if sender not in SIDES or better not in ("sender", "receiver"):
            continue
        host = sender if better == "sender" else steps.other(sender)
        words = (steps.word(each, "words") or "faster")[:LONGEST_WORDS]
        yield Comparison(
            about="initiator",
            sentence=(
                f"Start it from the {better}: {DIRECTIONS[sender]} it was told to be {words} when "
                f"the {host} starts it (no figures were told)."
            ),
            significant=True,
        )
