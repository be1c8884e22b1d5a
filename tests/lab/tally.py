"""Judgement of the diagnosis by all worlds: pure, from the judged verdicts of each run.

The confusion matrix, the reliability table and the Brier score (Brier, "Verification of forecasts
expressed in terms of probability", 1950), what was confident and wrong, and who ended early.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from experiment import Result
from judge import ABSTAINED, MISSED, RIGHT, WRONG, JudgedCopy

BIN_EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Lower ends of the bins of confidence; the last one ends with 1."""
CONFIDENT = 0.7
EARLY_RATIO = 0.5
"""Share of its budget in which a run with one clear cap should end."""


@dataclass(frozen=True)
class Bin:
    """Verdicts of about the same confidence."""

    from_confidence: float
    to_confidence: float
    count: int
    mean_confidence: float
    right_ratio: float


@dataclass(frozen=True)
class Tally:
    """All runs together; a ratio is None where there is nothing to count."""

    worlds: int
    grades: dict[str, int]
    matrix: dict[str, dict[str, int]]
    """Rows: what is true; columns: what was found; copies that count."""
    bins: tuple[Bin, ...]
    brier: float | None
    """Mean of (confidence - 1 or 0) squared, over the verdicts that name somebody."""
    calibration_error: float | None
    """Mean distance of a bin's confidence from its share that is right, by its count (ECE: Naeini,
    Cooper, Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian Binning", 2015)."""
    fitted_error: float | None
    """Error where each half of the worlds has the confidence that was right in the other."""
    f1: dict[str, float]
    """By component/side/cause: the harmonic mean of precision and recall."""
    confident_and_wrong: tuple[str, ...]
    right_ratio: float | None
    """Right ones of the verdicts that name somebody, or should have."""
    part_ratio: float | None
    """Ratio where the component and its side are right, whatever the cause."""
    headline_ratio: float | None
    """Ratio for the copy that each run's summary speaks of: its first dialect."""
    early_ratio: float | None
    """Share of the runs with one clear cap that ended in half of their budget."""
    late: tuple[str, ...]
    """Runs that did not, with their seconds."""
    broke: tuple[str, ...]


def tally(results: Sequence[Result]) -> Tally:
    rows = [(ran, row) for ran in results for row in ran.counted]
    naming = _naming_lines([row for _, row in rows])
    clear = [ran for ran in results if ran.clear and not ran.broke]
    late = [ran for ran in clear if ran.elapsed_seconds > EARLY_RATIO * ran.allowed_seconds]
    headlines = [
        next(row for row in ran.counted if row.copy == ran.headline)
        for ran in results
        if any(row.copy == ran.headline for row in ran.counted)
    ]
    return Tally(
        worlds=len(results),
        grades=dict(sorted(Counter(row.grade for _, row in rows).items())),
        matrix=confusion([row for _, row in rows]),
        bins=tuple(reliability(naming)),
        brier=brier(naming),
        calibration_error=calibration_error(naming),
        fitted_error=fitted_error({ran.world: _naming_lines(ran.counted) for ran in results}),
        f1=f1(confusion([row for _, row in rows])),
        confident_and_wrong=tuple(
            f"{ran.world} {row.copy} {row.dialect or ''}: {row.verdict} {row.confidence:.2f}, "
            f"true would be {' | '.join(row.right)}"
            for ran, row in rows
            if row.grade == WRONG and row.confidence is not None and row.confidence >= CONFIDENT
        ),
        right_ratio=share_right([row for _, row in rows]),
        part_ratio=share_right([row for _, row in rows], of_part=True),
        headline_ratio=share_right(headlines),
        early_ratio=1 - len(late) / len(clear) if clear else None,
        late=tuple(f"{ran.world} {ran.elapsed_seconds:.0f} s" for ran in late),
        broke=tuple(ran.world for ran in results if ran.broke),
    )


def _naming_lines(rows: Sequence[JudgedCopy]) -> list[JudgedCopy]:
    return [row for row in rows if row.grade in (RIGHT, WRONG) and row.confidence is not None]


def share_right(rows: Sequence[JudgedCopy], *, of_part: bool = False) -> float | None:
    """Right ones over those that name somebody or should have; of_part: whatever the cause."""
    counted = [row for row in rows if row.grade in (RIGHT, WRONG, MISSED)]
    right = [row for row in counted if row.grade == RIGHT or of_part and _part_is_right(row)]
    return len(right) / len(counted) if counted else None


def _part_is_right(row: JudgedCopy) -> bool:
    return _part(row.verdict) in {_part(each) for each in row.right}


def _part(verdict: str) -> str:
    return verdict.rpartition("/")[0]


def confusion(rows: Sequence[JudgedCopy]) -> dict[str, dict[str, int]]:
    """True against found, component/side/cause each; abstentions that are no fault are left out.

    Where several answers are true, the row of a right one is what was found.
    """
    matrix: dict[str, dict[str, int]] = {}
    for row in rows:
        if row.grade == ABSTAINED:
            continue
        truth = row.verdict if row.grade == RIGHT else " | ".join(row.right)
        counts = matrix.setdefault(truth, {})
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    return {truth: dict(sorted(matrix[truth].items())) for truth in sorted(matrix)}


def reliability(rows: Sequence[JudgedCopy]) -> list[Bin]:
    """Returns mean confidence and share of right ones of equally sure verdicts; no empty bin."""
    bins = []
    for low, high in zip(BIN_EDGES, (*BIN_EDGES[1:], 1.0), strict=True):
        inside = [row for row in rows if low <= _sure(row) < high or high == 1.0 == _sure(row)]
        if inside:
            mean = sum(_sure(row) for row in inside) / len(inside)
            right = sum(row.grade == RIGHT for row in inside) / len(inside)
            bins.append(Bin(low, high, len(inside), mean, right))
    return bins


def brier(rows: Sequence[JudgedCopy]) -> float | None:
    """0 is perfect; 0.25 is what a coin that says 0.5 of everything gets."""
    if not rows:
        return None
    return sum((_sure(row) - (row.grade == RIGHT)) ** 2 for row in rows) / len(rows)


def calibration_error(rows: Sequence[JudgedCopy]) -> float | None:
    """0: the share that is right is what the confidence says; None: nothing is named."""
    if not rows:
        return None
    off = [each.count * abs(each.mean_confidence - each.right_ratio) for each in reliability(rows)]
    return sum(off) / len(rows)


def fitted_error(worlds: Mapping[str, Sequence[JudgedCopy]]) -> float | None:
    """Confidences fitted on every other world by name, judged on those between, both ways round.

    A bin's confidence is the share of its verdicts that were right, with one more right and one
    more wrong (Laplace's rule of succession), so that few cases never make it certain.
    """
    names = sorted(worlds)
    halves = [[row for name in half for row in worlds[name]] for half in (names[::2], names[1::2])]
    judged = []
    for fit, other in (halves, halves[::-1]):
        learnt = {each.from_confidence: each for each in reliability(fit)}
        for row in other:
            fitted = learnt.get(max(edge for edge in BIN_EDGES if edge <= _sure(row)))
            if fitted is not None:
                right = (fitted.count * fitted.right_ratio + 1) / (fitted.count + 2)
                judged.append(replace(row, confidence=right))
    return calibration_error(judged)


def f1(matrix: dict[str, dict[str, int]]) -> dict[str, float]:
    """Returns a score of each verdict that is true or was found; of several true ones the first."""
    pairs: Counter[tuple[str, str]] = Counter()
    for truth, row in matrix.items():
        for verdict, count in row.items():
            pairs[truth.split(" | ")[0], verdict] += count
    names = sorted({name for pair in pairs for name in pair if not name.startswith("unknown/")})
    totals = {
        name: sum(n for pair, n in pairs.items() for each in pair if each == name) for name in names
    }
    return {name: 2 * pairs[name, name] / totals[name] for name in names}


def _sure(row: JudgedCopy) -> float:
    return row.confidence or 0.0


def lines(sums: Tally) -> list[str]:
    page = ["", f"== {sums.worlds} worlds", "", "true -> found (copies)"]
    for truth, row in sums.matrix.items():
        for verdict, count in row.items():
            mark = "  " if verdict == truth else "* "
            page.append(f"{mark}{count:4}  {truth}  ->  {verdict}")
    page += ["", "confidence    count   mean   right"]
    for each in sums.bins:
        span = f"{each.from_confidence:.1f}-{each.to_confidence:.1f}"
        page.append(
            f"{span:12}  {each.count:5}   {each.mean_confidence:.2f}  {each.right_ratio:6.1%}"
        )
    page.append(f"Brier score: {_figure(sums.brier)}")
    page.append(f"expected calibration error: {_figure(sums.calibration_error)}")
    page.append(f"the same, fitted on the other half: {_figure(sums.fitted_error)}")
    page += ["", "F1 by verdict"]
    page += [f"  {score:.3f}  {name}" for name, score in sums.f1.items()]
    page += ["", f"confident and wrong (>= {CONFIDENT}): {len(sums.confident_and_wrong)}"]
    page += [f"  {line}" for line in sums.confident_and_wrong]
    page.append(", ".join(f"{count} {grade}" for grade, count in sums.grades.items()))
    page.append(f"not named though planted: {_share(_missed_lines(sums))}")
    page.append(f"right: {_share(sums.right_ratio)} of the verdicts that name or should name")
    page.append(f"component and side right: {_share(sums.part_ratio)}")
    page.append(f"right headlines: {_share(sums.headline_ratio)}")
    page.append(f"one clear cap, ended in half of the budget: {_share(sums.early_ratio)}")
    page += [f"  not: {', '.join(sums.late)}"] if sums.late else []
    page += [f"no report: {', '.join(sums.broke)}"] if sums.broke else []
    return page


def _missed_lines(sums: Tally) -> float | None:
    counted = sum(sums.grades.get(each, 0) for each in (RIGHT, WRONG, MISSED))
    return sums.grades.get(MISSED, 0) / counted if counted else None


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    return "none" if value is None else f"{value:.1%}"
