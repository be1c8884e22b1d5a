"""Formats and parses rates, sizes and times: MB/s, MiB/s, Mbit/s and back.

Pure, and free of the product's other modules, so that the analysis may put figures into sentences.
Rates are decimal (1 MB/s is 10^6 bytes per second) unless shown_as() says otherwise; RAM and file
sizes are binary (MiB, GiB).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

_BYTE_MULTIPLES = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
_NUMBER = r"(?P<number>\d+(?:\.\d+)?)\s*(?P<prefix>(?:[kKmMgGtT][iI]?)?)"
_SIZE = re.compile(_NUMBER + r"(?P<unit>B|bytes)?", re.ASCII)
_RATE = re.compile(_NUMBER + r"(?:(?P<unit>B|[bB]ytes|bit|bits)(?:/s|ps|/sec)|bits?)", re.ASCII)
_COMMA = re.compile(r"(\d+),(\d{1,2}(?!\d)|\d{4,})(.*)", re.ASCII)
_SECONDS = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>us|\u00b5s|ms|s|min)", re.ASCII)
_SECONDS_OF = {"us": 1e-6, "\u00b5s": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
Style = Literal["si", "iec", "bits"]
"""Units of rates: MB/s (10^6 bytes), MiB/s (2^20 bytes) or Mbit/s (10^6 bits)."""
STYLES: tuple[Style, ...] = ("si", "iec", "bits")
_UNITS: dict[Style, tuple[tuple[str, float], ...]] = {
    "si": (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)),
    "iec": (("GiB/s", 2.0**30), ("MiB/s", 2.0**20), ("KiB/s", 2.0**10)),
    "bits": (("Gbit/s", 1e9 / 8), ("Mbit/s", 1e6 / 8), ("kbit/s", 1e3 / 8)),
}
"""Units of each style with their bytes per second: the largest, the usual, the smallest."""
_style: ContextVar[Style] = ContextVar("style", default="si")
_GREAT, _USUAL = 999.5, 0.9995
"""Least figure that takes the largest unit; least one that takes the usual unit."""
RATE_EXAMPLE = "write for example 100MB/s or 1Gbit/s"
_MOST = 10**18
_LEAST_SECONDS = 1e-9
LEAST_RATE, MOST_RATE = 1e-3, 1e15
"""Bytes per second: a figure beyond them is a typing error, and would make results infinite."""
_LONGEST_SHOWN = 40
"""Characters of a text that an error message quotes."""


class UnitError(ValueError):
    """A quantity cannot be read without guessing; its message is one line."""


def _figure(value: float, digits: int = 3) -> str:
    """Formats with three significant digits, no exponent, no trailing zeros."""
    text = _digits(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _digits(value: float, digits: int = 3) -> str:
    """Formats with three significant digits and their zeros, as a measured figure: `25.0`."""
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{places}f}"
    # 9.999 has become 10.00.
    longer = places and len(text.replace(".", "").lstrip("0")) > digits
    return text[:-1].rstrip(".") if longer else text


@contextmanager
def shown_as(style: Style) -> Iterator[None]:
    """Formats rates in this style within the block; documents for programs are made outside."""
    token = _style.set(style)
    try:
        yield
    finally:
        _style.reset(token)


def rate_text(bytes_per_second: float, digits: int = 3) -> str:
    """Formats a rate for people in the current style: `23.6 MB/s`, `22.5 MiB/s`, `189 Mbit/s`."""
    unit, scale = _unit_of(bytes_per_second, _style.get())
    return f"{_digits(bytes_per_second / scale, digits)} {unit}"


def _unit_of(bytes_per_second: float, style: Style) -> tuple[str, float]:
    greatest, usual, smallest = _UNITS[style]
    figure = bytes_per_second / usual[1]
    return greatest if figure >= _GREAT else usual if figure >= _USUAL else smallest


def fine_rate_text(bytes_per_second: float) -> str:
    """Formats a rate that is computed, not measured, with one digit more: `117.7 MB/s`."""
    return rate_text(bytes_per_second, 4)


def megabytes_text(bytes_per_second: float) -> str:
    """Formats a rate in megabytes_unit() without the unit, for table cells: `23.6`, `1,170`."""
    figure = bytes_per_second / _UNITS[_style.get()][1][1]
    return f"{figure:,.0f}" if figure >= _GREAT else _digits(figure)


def megabytes_unit() -> str:
    """Returns the unit of megabytes_text(), for a column's title: `MB/s`, `MiB/s`, `Mbit/s`."""
    return _UNITS[_style.get()][1][0]


def small_megabytes_text(bytes_per_second: float) -> str:
    """Formats a rate as megabytes_text() does; `<0.001` for anything smaller."""
    threshold = _UNITS[_style.get()][1][1] / 1000
    return "<0.001" if bytes_per_second < threshold else megabytes_text(bytes_per_second)


def range_text(low: float, high: float) -> str:
    """Formats two rates in the higher's unit: `24.8\u201325.1 MB/s`; one if both look alike."""
    unit, scale = _unit_of(high, _style.get())
    lower, figure = _digits(low / scale), _digits(high / scale)
    return f"{figure} {unit}" if lower == figure else f"{lower}\u2013{figure} {unit}"


def scale_ends() -> tuple[float, float]:
    """Returns the rates at which the bars of all stages begin and end: round figures."""
    (_, great), (_, usual), _ = _UNITS[_style.get()]
    # Bits are eight times as many: one more zero.
    tens = 10 if _style.get() == "bits" else 1
    return tens * usual, tens * 10 * great


def log_share(bytes_per_second: float) -> float:
    """Returns a bar's length, 0 to 1, on the logarithmic scale of all stages; 0 below it."""
    low, high = scale_ends()
    return math.log(bytes_per_second / low, high / low) if bytes_per_second > low else 0.0


def scale_text(width: int) -> str:
    """Returns the heading of logarithmic bars of a width; empty where none fits."""
    ends = " to ".join(rate_text(each, 1) for each in scale_ends())
    texts = (f"{ends}, logarithmic", f"{ends}, log", "log scale", "log")
    return next((each for each in texts if len(each) <= width), "")


def rate_and_bits_text(bytes_per_second: float) -> str:
    """Formats a rate with its bits: `118 MB/s (940 Mbit/s)`; once, if rates are in bits."""
    beside = bits_beside(bytes_per_second)
    return rate_text(bytes_per_second) + (f" ({beside})" if beside else "")


def bits_beside(bytes_per_second: float) -> str:
    """Formats a network's rate in bits to stand beside another; empty if rates are in bits."""
    return "" if _style.get() == "bits" else bit_rate_text(bytes_per_second)


def binary_beside(bytes_per_second: float) -> str:
    """Formats a rate in MiB/s, as many tools show it, beside MB/s; empty in another style."""
    return f"{bytes_per_second / 2**20:.0f} MiB/s" if _style.get() == "si" else ""


def bit_rate_text(bytes_per_second: float) -> str:
    """Formats a rate in bits per second: `189 Mbit/s`, `9.4 Gbit/s`; decimal."""
    return link_text(bytes_per_second * 8)


def link_text(bits_per_second: float) -> str:
    """Formats a link's rate: `100 Mbit/s`, `2.5 Gbit/s`."""
    unit, scale = _unit_of(bits_per_second / 8, "bits")
    return f"{_figure(bits_per_second / 8 / scale)} {unit}"


def explorer_text(bytes_per_second: float) -> str:
    """Formats a rate as Windows Explorer shows it: in MiB, which it labels MB."""
    return f"{_digits(bytes_per_second / 2**20)} MB/s"


def explorer_note(bytes_per_second: float) -> str:
    """Returns the footnote that relates our unit to Windows Explorer's."""
    ours, theirs = rate_text(bytes_per_second), explorer_text(bytes_per_second)
    meaning = {
        "si": "MB/s is 10^6 bytes per second. Windows Explorer counts 2^20 bytes as 1 MB",
        "iec": "MiB/s is 2^20 bytes per second. Windows Explorer calls the same MB/s",
        "bits": "Mbit/s is 10^6 bits per second. Windows Explorer counts 2^20 bytes as 1 MB",
    }
    return f"{meaning[_style.get()]}: {ours} is {theirs} there."


def size_text(size_bytes: float) -> str:
    """Formats a file's size or an amount of RAM: `256 MiB`, `1.4 GiB`; binary."""
    for unit, scale in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= 0.9995 * scale:
            return f"{_figure(size_bytes / scale)} {unit}"
    return f"{_figure(size_bytes)} B"


def given_size_text(size_bytes: float) -> str:
    """Formats a size in decimal units if that is the rounder figure: `10 GB`."""
    for unit, scale in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if size_bytes >= scale and size_bytes % 10**6 == 0 and size_bytes % 2**20:
            return f"{size_bytes / scale:g} {unit}"
    return size_text(size_bytes)


def seconds_text(seconds: float) -> str:
    """Formats a span of time: `350 \u00b5s`, `12.4 ms`, `8.1 s`, `2 min 5 s`, `2 h 47 min`."""
    if seconds >= 59.95:
        minutes, rest = divmod(round(seconds), 60)
        hours = round(seconds / 60) // 60
        return f"{hours} h {round(seconds / 60) % 60} min" if hours else f"{minutes} min {rest} s"
    if seconds >= 0.9995 or seconds == 0:
        return f"{_figure(seconds)} s"
    if seconds >= 0.0009995:
        return f"{_figure(seconds * 1e3)} ms"
    return f"{_figure(seconds * 1e6)} \u00b5s"


def percent_text(ratio: float) -> str:
    """A share of something, whole percents: `31%`."""
    return f"{ratio * 100:.0f}%"


def share_text(ratio: float) -> str:
    """Formats a share that matters even if small, as of packets lost: `31%`, `2%`, `0.38%`."""
    return percent_text(ratio) if ratio >= 0.0995 else f"{_figure(ratio * 100, 2)}%"


def times_text(ratio: float) -> str:
    """Formats a factor: `1.4x`, `12x`."""
    return f"{ratio:.0f}x" if ratio >= 9.95 else f"{ratio:.1f}x"


def count_text(count: float) -> str:
    """Formats a count, or a count per second: `310`, `4.5`, `10,000`."""
    return f"{count:,.0f}" if count >= 999.5 else _figure(count)


def cost_text(seconds_per_byte: float) -> str:
    """Formats CPU time per byte: `1.9 s/GB`; decimal."""
    return f"{_figure(seconds_per_byte * 1e9)} s/GB"


def parse_size(text: str) -> int:
    """Parses bytes from `268435456`, `256MiB`, `1GB` (decimal), `1.5 GiB`.

    Errors: UnitError for anything else; `100M` is refused: it may mean 10^8 or 100 x 2^20.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        example = "write for example 256MiB or 1GB"
        raise UnitError(_comma(text) or f"{_quoted_text(text)} is not a size: {example}")
    prefix = match["prefix"]
    if prefix and match["unit"] is None:
        raise UnitError(_ambiguous(text, match["number"], prefix, ""))
    size = _scaled_number(match["number"], prefix)
    if size < 1:
        raise UnitError(f"{_quoted_text(text)} is less than a byte")
    return int(_within(text, size, 1, _MOST))


def parse_rate(text: str) -> float:
    """Parses bytes per second from `100MB/s`, `110 MiB/s`, `1Gbit/s`, `1Gbit`, and iperf3's
    `941 Mbits/sec`, `112 MBytes/sec`.

    Errors: UnitError for anything else; `100M`, `100Mb/s` and `100Mbps` do not say bits or bytes.
    """
    match = _RATE.fullmatch(text.strip())
    if match is not None:
        bits, prefix = match["unit"] not in ("B", "bytes", "Bytes"), match["prefix"]
        if match["unit"] == "Bytes" and len(prefix) == 1:
            prefix += "i"  # as iperf3 counts, and not its bits
        rate = _scaled_number(match["number"], prefix) / (8 if bits else 1)
        return _within(text, rate, LEAST_RATE, MOST_RATE)
    loose = re.fullmatch(_NUMBER + r"(?P<unit>b?)(?:/s|ps)?", text.strip(), re.ASCII)
    if loose is not None:
        # A bare number is most likely meant as the MB/s or Mbit/s that tools print.
        prefix = loose["prefix"] or ("" if loose["unit"] else "M")
        raise UnitError(_ambiguous(text, loose["number"], prefix, "/s"))
    raise UnitError(_comma(text) or f"{_quoted_text(text)} is not a rate: {RATE_EXAMPLE}")


def parse_seconds(text: str) -> float:
    """Parses seconds from `0.5ms`, `149 ms`, `250us`, `2s`, `10 min`. Errors: UnitError."""
    match = _SECONDS.fullmatch(text.strip())
    if match is None:
        example = "write for example 0.5ms or 2s"
        raise UnitError(_comma(text) or f"{_quoted_text(text)} is not a time: {example}")
    seconds = float(match["number"]) * _SECONDS_OF[match["unit"]]
    return _within(text, seconds, _LEAST_SECONDS, _MOST)


def _comma(text: str) -> str:
    """Returns the advice against a decimal comma; empty: there is none."""
    match = _COMMA.fullmatch(text.strip())
    return f"{_quoted_text(text)} has a decimal comma: write {match[1]}.{match[2]}" if match else ""


def _ambiguous(text: str, number: str, prefix: str, per: str) -> str:
    letter = prefix[:1].upper()
    letter = "k" if letter == "K" else letter
    figure = number[:_LONGEST_SHOWN]
    other = f"{figure}{letter}bit/s" if per else f"{figure}{letter.upper()}iB"
    return f"{_quoted_text(text)} can be read in two ways: write {figure}{letter}B{per} or {other}"


def _scaled_number(number: str, prefix: str) -> float:
    return float(number) * _BYTE_MULTIPLES[prefix.lower()]


def _within(text: str, value: float, low: float, high: float) -> float:
    if not low <= value <= high:
        raise UnitError(f"{_quoted_text(text)} is out of range")
    return value


def _quoted_text(text: str) -> str:
    return repr(text[:_LONGEST_SHOWN])
