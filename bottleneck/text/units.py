"""The only place where bytes and seconds become MB, MiB, Mbit and back.

Pure and free of the product's other modules, so that the analysis may put figures into sentences.
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
"""How rates read: MB/s (10^6 bytes), MiB/s (2^20 bytes) or Mbit/s (10^6 bits)."""
STYLES: tuple[Style, ...] = ("si", "iec", "bits")
_UNITS: dict[Style, tuple[tuple[str, float], ...]] = {
    "si": (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)),
    "iec": (("GiB/s", 2.0**30), ("MiB/s", 2.0**20), ("KiB/s", 2.0**10)),
    "bits": (("Gbit/s", 1e9 / 8), ("Mbit/s", 1e6 / 8), ("kbit/s", 1e3 / 8)),
}
"""Of each style the units with their bytes per second: the greatest, the usual, the least."""
_style: ContextVar[Style] = ContextVar("style", default="si")
_GREAT, _USUAL = 999.5, 0.9995
"""Figures of the usual unit from which on the greatest, and below which the least, is taken."""
RATE_EXAMPLE = "write for example 100MB/s or 1Gbit/s"
_MOST = 10**18
_LEAST_SECONDS = 1e-9
LEAST_RATE, MOST_RATE = 1e-3, 1e15
"""Bytes per second: a figure beyond them is a slip, and what is computed of it has no bounds."""
_LONGEST_SHOWN = 40
"""Characters of a text that an error repeats."""


class UnitError(ValueError):
    """A quantity that cannot be read without guessing; the text is one plain line."""


def _figure(value: float, digits: int = 3) -> str:
    """Three significant digits, no exponent, no trailing zeros."""
    text = _digits(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _digits(value: float, digits: int = 3) -> str:
    """Three significant digits with their zeros, as of what was measured: `25.0`."""
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{places}f}"
    # 9.999 has become 10.00.
    longer = places and len(text.replace(".", "").lstrip("0")) > digits
    return text[:-1].rstrip(".") if longer else text


@contextmanager
def shown_as(style: Style) -> Iterator[None]:
    """A block in which rates read in this style; documents for programs are made outside of it."""
    before = _style.set(style)
    try:
        yield
    finally:
        _style.reset(before)


def rate_text(bytes_per_second: float, digits: int = 3) -> str:
    """A rate for people in the style that is on: `23.6 MB/s`, `22.5 MiB/s`, `189 Mbit/s`."""
    unit, scale = _unit_of(bytes_per_second, _style.get())
    return f"{_digits(bytes_per_second / scale, digits)} {unit}"


def _unit_of(bytes_per_second: float, style: Style) -> tuple[str, float]:
    greatest, usual, least = _UNITS[style]
    figure = bytes_per_second / usual[1]
    return greatest if figure >= _GREAT else usual if figure >= _USUAL else least


def fine_rate_text(bytes_per_second: float) -> str:
    """A rate that is computed and not measured, one digit more: `117.7 MB/s`."""
    return rate_text(bytes_per_second, 4)


def megabytes_text(bytes_per_second: float) -> str:
    """A rate's figure in megabytes_unit() alone, for tables that name it: `23.6`, `1,170`."""
    figure = bytes_per_second / _UNITS[_style.get()][1][1]
    return f"{figure:,.0f}" if figure >= _GREAT else _digits(figure)


def megabytes_unit() -> str:
    """What a table's title says above figures of megabytes_text(): `MB/s`, `MiB/s`, `Mbit/s`."""
    return _UNITS[_style.get()][1][0]


def small_megabytes_text(bytes_per_second: float) -> str:
    """The same of rates that may be next to nothing: `<0.001` is the least."""
    least = _UNITS[_style.get()][1][1] / 1000
    return "<0.001" if bytes_per_second < least else megabytes_text(bytes_per_second)


def range_text(low: float, high: float) -> str:
    """Two rates in the unit of the higher: `24.8\u201325.1 MB/s`; one where they read the same."""
    unit, scale = _unit_of(high, _style.get())
    lower, figure = _digits(low / scale), _digits(high / scale)
    return f"{figure} {unit}" if lower == figure else f"{lower}\u2013{figure} {unit}"


def scale_ends() -> tuple[float, float]:
    """Bytes per second that a bar of any stage begins and ends at: round figures of the style."""
    (_, great), (_, usual), _ = _UNITS[_style.get()]
    # Bits are eight times as many: one more zero.
    tens = 10 if _style.get() == "bits" else 1
    return tens * usual, tens * 10 * great


def log_share(bytes_per_second: float) -> float:
    """Of a bar on the one logarithmic scale of all stages, so that they compare; 0 below it."""
    low, high = scale_ends()
    return math.log(bytes_per_second / low, high / low) if bytes_per_second > low else 0.0


def scale_text(width: int) -> str:
    """What stands above logarithmic bars of a width; empty where nothing fits."""
    ends = " to ".join(rate_text(each, 1) for each in scale_ends())
    texts = (f"{ends}, logarithmic", f"{ends}, log", "log scale", "log")
    return next((each for each in texts if len(each) <= width), "")


def rate_and_bits_text(bytes_per_second: float) -> str:
    """A rate with its bits beside it: `118 MB/s (940 Mbit/s)`; once, where rates are bits."""
    beside = bits_beside(bytes_per_second)
    return rate_text(bytes_per_second) + (f" ({beside})" if beside else "")


def bits_beside(bytes_per_second: float) -> str:
    """The bits that stand beside a rate of a network; empty where rates are bits already."""
    return "" if _style.get() == "bits" else bit_rate_text(bytes_per_second)


def binary_beside(bytes_per_second: float) -> str:
    """The MiB/s that many tools show, beside a rate in MB/s; empty in another style."""
    return f"{bytes_per_second / 2**20:.0f} MiB/s" if _style.get() == "si" else ""


def bit_rate_text(bytes_per_second: float) -> str:
    """A rate as network people read it: `189 Mbit/s`, `9.4 Gbit/s`; decimal."""
    return link_text(bytes_per_second * 8)


def link_text(bits_per_second: float) -> str:
    """A link's rate: `100 Mbit/s`, `2.5 Gbit/s`."""
    unit, scale = _unit_of(bits_per_second / 8, "bits")
    return f"{_figure(bits_per_second / 8 / scale)} {unit}"


def explorer_text(bytes_per_second: float) -> str:
    """The figure that Windows Explorer shows for this rate: MiB, which it labels MB."""
    return f"{_digits(bytes_per_second / 2**20)} MB/s"


def explorer_note(bytes_per_second: float) -> str:
    """The footnote for those who hold our figure against Windows Explorer's, in one paragraph."""
    ours, theirs = rate_text(bytes_per_second), explorer_text(bytes_per_second)
    meaning = {
        "si": "MB/s is 10^6 bytes per second. Windows Explorer counts 2^20 bytes as 1 MB",
        "iec": "MiB/s is 2^20 bytes per second. Windows Explorer calls the same MB/s",
        "bits": "Mbit/s is 10^6 bits per second. Windows Explorer counts 2^20 bytes as 1 MB",
    }
    return f"{meaning[_style.get()]}: {ours} is {theirs} there."


def size_text(size_bytes: float) -> str:
    """A file's size or an amount of RAM: `256 MiB`, `1.4 GiB`; binary."""
    for unit, scale in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= 0.9995 * scale:
            return f"{_figure(size_bytes / scale)} {unit}"
    return f"{_figure(size_bytes)} B"


def given_size_text(size_bytes: float) -> str:
    """A size in the units that a person gave it in: `10 GB` where that is the rounder figure."""
    for unit, scale in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if size_bytes >= scale and size_bytes % 10**6 == 0 and size_bytes % 2**20:
            return f"{size_bytes / scale:g} {unit}"
    return size_text(size_bytes)


def seconds_text(seconds: float) -> str:
    """A span of time: `350 \u00b5s`, `12.4 ms`, `8.1 s`, `2 min 5 s`, `2 h 47 min`."""
    if seconds >= 59.95:
        minutes, rest = divmod(round(seconds), 60)
        hours = round(seconds / 60) // 60
        if hours:
            return f"{hours} h {round(seconds / 60) % 60} min"
        return f"{minutes} min {rest} s"
    if seconds >= 0.9995 or seconds == 0:
        return f"{_figure(seconds)} s"
    if seconds >= 0.0009995:
        return f"{_figure(seconds * 1e3)} ms"
    return f"{_figure(seconds * 1e6)} \u00b5s"


def percent_text(ratio: float) -> str:
    """A share of something, whole percents: `31%`."""
    return f"{ratio * 100:.0f}%"


def share_text(ratio: float) -> str:
    """A share that may be small and matter, as of packets lost: `31%`, `2%`, `0.38%`."""
    return percent_text(ratio) if ratio >= 0.0995 else f"{_figure(ratio * 100, 2)}%"


def times_text(ratio: float) -> str:
    """How many times as much: `1.4x`, `12x`."""
    return f"{ratio:.0f}x" if ratio >= 9.95 else f"{ratio:.1f}x"


def count_text(count: float) -> str:
    """A number of things, or of things per second: `310`, `4.5`, `10,000`."""
    return f"{count:,.0f}" if count >= 999.5 else _figure(count)


def cost_text(seconds_per_byte: float) -> str:
    """CPU time that bytes cost: `1.9 s/GB`; decimal."""
    return f"{_figure(seconds_per_byte * 1e9)} s/GB"


def parse_size(text: str) -> int:
    """Bytes from `268435456`, `256MiB`, `1GB` (decimal), `1.5 GiB`.

    Errors: UnitError for anything else; `100M` is refused, it means 10^8 to one and 2^20 x 100 to
    another.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        example = "write for example 256MiB or 1GB"
        raise UnitError(_comma(text) or f"{_shown(text)} is not a size: {example}")
    prefix = match["prefix"]
    if prefix and match["unit"] is None:
        raise UnitError(_ambiguous(text, match["number"], prefix, ""))
    size = _scaled(match["number"], prefix)
    if size < 1:
        raise UnitError(f"{_shown(text)} is less than a byte")
    return int(_within(text, size, 1, _MOST))


def parse_rate(text: str) -> float:
    """Bytes per second from `100MB/s`, `110 MiB/s`, `1Gbit/s`, `1Gbit`; as iperf3 prints them too:
    `941 Mbits/sec`, `112 MBytes/sec`.

    Errors: UnitError for anything else; `100M`, `100Mb/s` and `100Mbps` do not say bits or bytes.
    """
    match = _RATE.fullmatch(text.strip())
    if match is not None:
        bits, prefix = match["unit"] not in ("B", "bytes", "Bytes"), match["prefix"]
        if match["unit"] == "Bytes" and len(prefix) == 1:
            prefix += "i"  # as iperf3 counts, and not its bits
        rate = _scaled(match["number"], prefix) / (8 if bits else 1)
        return _within(text, rate, LEAST_RATE, MOST_RATE)
    loose = re.fullmatch(_NUMBER + r"(?P<unit>b?)(?:/s|ps)?", text.strip(), re.ASCII)
    if loose is not None:
        # A bare number is most likely meant as the MB/s or Mbit/s that tools print.
        prefix = loose["prefix"] or ("" if loose["unit"] else "M")
        raise UnitError(_ambiguous(text, loose["number"], prefix, "/s"))
    raise UnitError(_comma(text) or f"{_shown(text)} is not a rate: {RATE_EXAMPLE}")


def parse_seconds(text: str) -> float:
    """Seconds from `0.5ms`, `149 ms`, `250us`, `2s`, `10 min`. Errors: UnitError for the rest."""
    match = _SECONDS.fullmatch(text.strip())
    if match is None:
        example = "write for example 0.5ms or 2s"
        raise UnitError(_comma(text) or f"{_shown(text)} is not a time: {example}")
    seconds = float(match["number"]) * _SECONDS_OF[match["unit"]]
    return _within(text, seconds, _LEAST_SECONDS, _MOST)


def _comma(text: str) -> str:
    """Returns what to write for a decimal comma; empty: there is none."""
    match = _COMMA.fullmatch(text.strip())
    return f"{_shown(text)} has a decimal comma: write {match[1]}.{match[2]}" if match else ""


def _ambiguous(text: str, number: str, prefix: str, per: str) -> str:
    letter = prefix[:1].upper()
    letter = "k" if letter == "K" else letter
    figure = number[:_LONGEST_SHOWN]
    other = f"{figure}{letter}bit/s" if per else f"{figure}{letter.upper()}iB"
    return f"{_shown(text)} can be read in two ways: write {figure}{letter}B{per} or {other}"


def _scaled(number: str, prefix: str) -> float:
    return float(number) * _BYTE_MULTIPLES[prefix.lower()]


def _within(text: str, value: float, least: float, most: float) -> float:
    if not least <= value <= most:
        raise UnitError(f"{_shown(text)} is out of range")
    return value


def _shown(text: str) -> str:
    return repr(text[:_LONGEST_SHOWN])
