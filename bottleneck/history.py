"""Past runs in one file: the figures of each copy, and how they went from run to run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from bottleneck import typed
from bottleneck.analysis import steps
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.history_file import HistoryError, opened, rows
from bottleneck.last_report import state_folder
from bottleneck.redaction.texts import UNNUMBERED
from bottleneck.report import Report
from bottleneck.trend import Kept, Point, Trend
from probes.records import Spread

__all__ = ["NONE", "USUAL", "History", "HistoryError", "keep", "path_of"]

USUAL, NONE = "default", "none"
"""What --history takes beside a file: the user's own one, and none at all."""
MOST_RUNS = 30
CLIENT_TOKEN = UNNUMBERED[0]
LONGEST_TEXT = 2000
"""Characters of a host's or a share's name that are kept."""

_RUN = """INSERT OR IGNORE INTO runs
    (started, started_unix_seconds, elapsed_seconds, share, client, server, status, version,
     headline) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_COPY = f"INSERT INTO copies VALUES ({', '.join('?' * 13)})"
_POINTS = """SELECT runs.id, copy, dialect, started, bytes_per_second, low_bytes_per_second,
        high_bytes_per_second, cap, confidence
    FROM copies JOIN runs ON runs.id = copies.run
    WHERE share = ? AND client = ? AND started_unix_seconds <= ?
        AND bytes_per_second > 0 AND low_bytes_per_second > 0 AND high_bytes_per_second > 0
    ORDER BY started_unix_seconds DESC, runs.id DESC, place LIMIT ?"""
_RUNS = """SELECT started, share, client, server, status, copy, dialect, bytes_per_second, cap,
        confidence
    FROM runs LEFT JOIN copies ON copies.run = runs.id AND copies.copy = runs.headline
        AND copies.place = (SELECT min(place) FROM copies
            WHERE copies.run = runs.id AND copies.copy = runs.headline)
    ORDER BY started_unix_seconds DESC, runs.id DESC LIMIT ?"""
_NO_RATE: tuple[float | None, ...] = (None, None, None, None)
_COPIES_OF_A_RUN = 40
"""More than a run has: so many rows are read for each that is wanted."""
T = TypeVar("T")


def path_of(named: str | None) -> Path | None:
    """The file that --history names; None: no history is kept.

    `default` is the user's own: history.sqlite in the folder for states (XDG_STATE_HOME).
    """
    if named in (None, NONE):
        return None
    if named != USUAL:
        return Path(named)
    folder = state_folder()
    if folder is None:
        raise HistoryError("--history default: this user has no home directory; use --history FILE")
    return folder / "history.sqlite"


def keep(named: str | None, report: Report, diagnosis: Diagnosis) -> tuple[Trend, ...]:
    """Adds a run to the history that --history names, and returns its trends.

    Errors: HistoryError: it cannot be written or read.
    """
    path = path_of(named)
    if path is None:
        return ()
    if named == USUAL:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise HistoryError(f"{path.parent}: {error.strerror}") from None
    history = History(path)
    history.add(report, diagnosis)
    return history.trends(report)


class History:
    """The runs in one file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def add(self, report: Report, diagnosis: Diagnosis) -> bool:
        """Adds a run, and makes the file with mode 0600 where there is none.

        A run that is there already (by its start, share and client) is left as it is, and False
        returned.

        Errors: HistoryError: the file is not ours, locked, damaged or not to be written.
        """
        run = (
            report.started,
            _unix_seconds(report.started),
            report.elapsed_seconds,
            *_ends(report),
            None if report.server is None else _text(report.server.name),
            report.status,
            _text(report.tool.get("version") or ""),
            _text(diagnosis.headline) if diagnosis.headline else None,
        )
        with opened(self.path, writing=True) as file:
            row = file.execute(_RUN, run)
            if not row.rowcount:
                return False
            for place, copy in enumerate(diagnosis.copies):
                file.execute(_COPY, (row.lastrowid, place, *_figures(report, copy)))
        return True

    def trends(self, report: Report, most: int = MOST_RUNS) -> tuple[Trend, ...]:
        """The copies of a report between its two ends, in its order: up to its own run.

        Of a redacted report none: its tokens stand for other hosts in another run.

        Args:
            most: runs of each copy, the latest ones.

        Errors: HistoryError: the file is not ours, locked or damaged.
        """
        share, client = _ends(report)
        if not share or client == CLIENT_TOKEN:
            return ()
        until = _unix_seconds(report.started)
        with opened(self.path, writing=False) as file:
            told = rows(file, _POINTS, (share, client, until, most * _COPIES_OF_A_RUN))
        found: dict[tuple[str, str], dict[int, Point]] = {}
        for row in told:
            points = found.setdefault((row["copy"], row["dialect"]), {})
            # The first of several by that name, as a diagnosis speaks of them.
            if row["id"] not in points and len(points) < most:
                points[row["id"]] = self._record(Point, row)
        named = dict.fromkeys(
            (_text(each.name), _text(each.dialect)) for each in steps.copies(report)
        )
        return tuple(
            Trend(*key, tuple(reversed(found[key].values()))) for key in named if key in found
        )

    def runs(self, most: int = MOST_RUNS) -> tuple[Kept, ...]:
        """The latest runs, the last one first.

        Errors: HistoryError: there is no such file, or it is not ours, locked or damaged.
        """
        with opened(self.path, writing=False) as file:
            found = rows(file, _RUNS, (most,))
        return tuple(self._record(Kept, row) for row in found)

    def _record(self, kind: type[T], row: dict[str, Any]) -> T:
        """A row as a record, in types that nothing but this program would have written."""
        try:
            datetime.fromisoformat(row["started"])
            return typed.record(kind, row, "a run")
        except (typed.NotTyped, TypeError, ValueError) as error:
            raise HistoryError(f"{self.path}: damaged ({error}); use another file") from None


def _ends(report: Report) -> tuple[str, str]:
    """The share and the client: what is the same two ends; empty where nothing is known of one."""
    return (
        _text(report.target.get("share") or ""),
        "" if report.client is None else _text(report.client.name),
    )


def _text(value: object) -> str:
    """A foreign text as SQLite can keep it: what is no Unicode as its escapes."""
    return str(value)[:LONGEST_TEXT].encode("utf-8", "backslashreplace").decode("utf-8")


def _unix_seconds(started: str) -> float:
    when = datetime.fromisoformat(started)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _figures(report: Report, copy: CopyDiagnosis) -> tuple[object, ...]:
    predicted, rate, rates = copy.predicted_bytes_per_second, copy.bytes_per_second, _NO_RATE
    if rate is not None:
        made = steps.made_copies(report).get((copy.copy, copy.dialect, copy.initiator, rate))
        # Its rate alone where no step tells its runs.
        told = Spread(rate, rate, rate, 1) if made is None else made.rate
        rates = (told.median, told.low, told.high, told.runs)
    return (
        _text(copy.copy),
        _text(copy.dialect),
        copy.initiator,
        *rates,
        copy.verdict.words,
        copy.verdict.confidence,
        copy.verdict.ceiling_bytes_per_second,
        None if predicted is None else predicted.median,
    )
