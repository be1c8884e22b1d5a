"""Figures in another tool's output, and the question if the output lacks something."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from bottleneck.estimate.observations import Copy, Disk, Path, Tcp
from bottleneck.report.report import ReportError
from bottleneck.text import units
from bottleneck.text.units import LEAST_RATE, MOST_RATE
from probes.core import bounded

Figure = Tcp | Disk | Path | Copy | str
"""One measurement; a text says why a measurement does not count."""
LONGEST_SECONDS = 600.0
_BINARY = {"": 1.0, "k": 2.0**10, "m": 2.0**20, "g": 2.0**30, "t": 2.0**40}
_NUMBER = re.compile(r"\d+(?:[.,\u00a0\u202f']\d{3})*(?:[.,]\d+)?", re.ASCII)


class NotTold(ReportError):
    """The output lacks something that the user knows; the message is the question."""


@dataclass(frozen=True)
class Output:
    """One output of another tool."""

    text: str
    """Lines end with a line feed."""
    side: str | None = None
    """Host on which the tool ran: client, server; None: not given."""

    def host(self) -> str:
        """Returns the host on which the tool ran. Errors: NotTold."""
        if self.side is None:
            raise NotTold("on which host was it made? Name it client:FILE or server:FILE")
        return self.side


def json_of(text: str, tool: str) -> Any:
    """Returns the JSON object of a tool, which may have lines before and after it.

    A key that comes twice (iperf3 3.12 has one) is the last one. Errors: ReportError.
    """
    content = text[text.find("{") : text.rfind("}") + 1]
    try:
        bounded.check(content.encode())
        return json.loads(content)
    except (bounded.NotBounded, ValueError, RecursionError) as error:
        why = str(error).partition("\n")[0]
        raise ReportError(f"{tool}'s JSON is not whole ({why[:80]}): paste it to its end") from None


def number(text: str) -> float:
    """Returns a figure with thousands separators, or a decimal comma, in any language's way.

    Errors: ReportError: it is none.
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        raise ReportError(f"{text[:40]!r} is not a number")
    integer, point, fraction = text, "", ""
    # Of two kinds of separators, or of one that stands once, the last is the decimal point.
    if marks := re.findall(r"[.,]", text):
        is_decimal = len(set(marks)) > 1 or (len(marks) == 1 and not re.search(r"[,]\d{3}$", text))
        if is_decimal:
            integer, point, fraction = text.rpartition(marks[-1])
    return float(re.sub(r"\D", "", integer) + (f".{fraction}" if point else ""))


def binary(text: str, prefix: str) -> float:
    """Returns bytes of a figure with k, m, g or t, which count 1024. Errors: ReportError."""
    return number(text) * _BINARY[prefix.lower()]


def positive(value: object, what: str) -> float:
    """Returns a measured figure. Errors: ReportError: it cannot have been measured."""
    if isinstance(value, int | float) and value is not True and LEAST_RATE <= value <= MOST_RATE:
        return float(value)
    raise ReportError(f"{what} is {str(value)[:20]}: nothing was measured")


def rate(text: str) -> float:
    """Returns bytes per second of a rate as tools print it. Errors: ReportError."""
    try:
        return units.parse_rate(text)
    except units.UnitError as error:
        raise ReportError(str(error)) from None


def path(seconds: float | None, loss: float | None = None) -> Path:
    """Returns a round trip and losses. Errors: ReportError: they cannot have been measured."""
    if seconds is not None and not 0 <= seconds <= LONGEST_SECONDS:
        raise ReportError(f"a round trip of {seconds:g} s cannot have been measured")
    return Path(seconds or None, None if loss is None else min(1.0, max(0.0, loss)))
