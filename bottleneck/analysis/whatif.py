"""What if: the ladder of a copy, its ceilings lifted one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bottleneck.analysis import prediction, references
from bottleneck.analysis.cap import Cap
from bottleneck.analysis.ceilings import Ladder
from bottleneck.analysis.finding import Ceiling, Claim, Next, Predicted, Rung
from bottleneck.analysis.prediction import Held
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report


@dataclass(frozen=True)
class Outlook:
    """What comes after the cap of a copy; empty where none was named."""

    ladder: Ladder | None = None
    """Its ceilings, with those read off the load as they will likely be."""
    next: Next | None = None
    predicted: Predicted | None = None
    link_bits: int | None = None
    """The standard link that the prediction exchanges a link for."""
    rungs: tuple[Rung, ...] = ()


def outlook(report: Report, copy: Copy, made: Found, cap: Cap, ladder: Ladder) -> Outlook:
    """The next ceiling, the rate without the cap, and all rungs: cap, next, next ...

    They end where nothing more is known, or at this tool itself.
    """
    held = Held(report, copy, made, cap, ladder)
    held = replace(held, ladder=prediction.rescaled(held))
    gone = [cap.claim.ceiling]
    after = prediction.following(held, gone)
    bits = prediction.link_after(gone, after, surely=True)
    rate = made.rate
    measured = Predicted(rate.low, rate.median, rate.high)
    return Outlook(
        held.ladder,
        prediction.as_next(after),
        prediction.without(held, gone, bits),
        bits,
        (_rung(cap.claim, measured, None), *_after(held, measured)),
    )


def _after(held: Held, measured: Predicted) -> Iterator[Rung]:
    gone: list[Ceiling] = [held.cap.claim.ceiling]
    known: Predicted | None = measured
    while (claim := prediction.following(held, gone)) is not None:
        # What comes next may be guessed from little load; what comes later takes it as lifted.
        bits = prediction.link_after(gone, claim, surely=len(gone) == 1)
        rate = prediction.without(held, gone, bits)
        # Lifting more slows nothing down.
        known = None if rate is None or known is None else _at_least(rate, known)
        yield _rung(claim, known, bits)
        gone.append(claim.ceiling)


def _at_least(rate: Predicted, before: Predicted) -> Predicted:
    return Predicted(
        max(rate.low, before.low), max(rate.median, before.median), max(rate.high, before.high)
    )


def _rung(claim: Claim, rate: Predicted | None, link_bits: int | None) -> Rung:
    ceiling = claim.ceiling
    return Rung(
        ceiling.component,
        ceiling.side,
        ceiling.cause,
        ceiling.bytes_per_second,
        rate,
        None if link_bits is None else references.link_payload(link_bits),
    )
