"""The zone curves of a report as one SVG document: self-contained, no script, no address outside.

Source: Scalable Vector Graphics 1.1, sections 5.4 (title and desc) and 9 (shapes).
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from bottleneck.analysis.comparisons.zones import all_zones, compare
from bottleneck.analysis.disk_zones import Zones
from bottleneck.report import Report
from bottleneck.reports.safe import safe
from bottleneck.reports.units import megabytes_text, megabytes_unit, percent_text, rate_text
from bottleneck.reports.zone_curve import Mark, marks, title

WIDTH, PANEL_HEIGHT = 800, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 44, 96
"""Room around the plot of a panel, in pixels."""
MOST_PANELS = 16
CURVE_POINTS = 60
RATE_LINES = 4
SENTENCE_CHARACTERS = 1000
COLOURS = ("#1b6ca8", "#c0392b", "#555555", "#2e7d32")
"""Zones, weak zones, the fitted curve, files."""


def zone_curves_svg(report: Report) -> str | None:
    """One drawing with a panel for each disk that was measured zone by zone; None: there is none.

    Rates over the address, MB/s over per cent; zones as bars with their range, weak ones hatched
    by their colour and named, the fitted disc as a line, the files' places as bars below. Foreign
    strings are made safe and escaped.
    """
    found = list(all_zones(report))[:MOST_PANELS]
    if not found:
        return None
    told = [safe(each.sentence, SENTENCE_CHARACTERS) for each in compare(report)][:MOST_PANELS]
    height = PANEL_HEIGHT * len(found)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title desc" '
        f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        '<title id="title">Disk throughput by zone</title>',
        f'<desc id="desc">{escape(" ".join(told))}</desc>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, each in enumerate(found):
        lines.append(f'<g transform="translate(0 {number * PANEL_HEIGHT})">')
        lines.extend(_panel(each, marks(report, each)))
        lines.append("</g>")
    lines.append("</svg>")
    text = "\n".join(lines) + "\n"
    # ASCII alone, so that every terminal and file takes it.
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _panel(zones: Zones, files: tuple[Mark, ...]) -> Iterator[str]:
    most = 1.1 * max(zone.high_bytes_per_second for zone in zones.zones)
    yield _text(LEFT, 24, title(zones), size=15)
    yield from _axes(zones, most)
    weak = zones.curve.weak if zones.curve is not None else ()
    for at, zone in enumerate(zones.zones):
        x, right = _x(zone.from_ratio), _x(zone.to_ratio)
        top, bottom = _y(zone.bytes_per_second, most), _y(0.0, most)
        name = "weak zone" if at in weak else "zone"
        yield (
            f'<rect x="{x:.1f}" y="{top:.1f}" width="{max(1.0, right - x - 1):.1f}" '
            f'height="{bottom - top:.1f}" fill="{COLOURS[at in weak]}" fill-opacity="0.55">'
            f"<title>{name} {at + 1}, {percent_text(zone.from_ratio)} to "
            f"{percent_text(zone.to_ratio)}: {rate_text(zone.bytes_per_second)}</title></rect>"
        )
        centre = (x + right) / 2
        low, high = (
            _y(rate, most) for rate in (zone.low_bytes_per_second, zone.high_bytes_per_second)
        )
        yield _line(centre, low, centre, high, "#222222")
        if at in weak:
            yield _text(centre, top - 6, "weak", anchor="middle")
    yield from _fit(zones, most)
    yield from _files(files)


def _axes(zones: Zones, most: float) -> Iterator[str]:
    bottom, right = _y(0.0, most), WIDTH - RIGHT
    for each in range(RATE_LINES + 1):
        rate = most * each / RATE_LINES
        at = _y(rate, most)
        yield _line(LEFT, at, right, at, "#222222" if each == 0 else "#dddddd")
        yield _text(LEFT - 6, at + 4, megabytes_text(rate), anchor="end")
    yield _line(LEFT, TOP, LEFT, bottom, "#222222")
    for ratio in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield _text(_x(ratio), bottom + 16, percent_text(ratio), anchor="middle")
    falls = zones.curve is not None and zones.curve.falls
    ends = " (outer edge of the disc to its inner)" if falls else ""
    middle = (LEFT + right) / 2
    yield _text(middle, bottom + 34, f"address, per cent of the device{ends}", anchor="middle")
    yield (
        f'<text transform="translate(16 {(TOP + bottom) / 2:.1f}) rotate(-90)" '
        f'text-anchor="middle">throughput, {megabytes_unit()}</text>'
    )


def _fit(zones: Zones, most: float) -> Iterator[str]:
    curve = zones.curve
    if curve is None:
        return
    places = [at / CURVE_POINTS for at in range(CURVE_POINTS + 1)]
    points = " ".join(f"{_x(at):.1f},{_y(min(most, curve.rate_at(at)), most):.1f}" for at in places)
    yield (
        f'<polyline points="{points}" fill="none" stroke="{COLOURS[2]}" stroke-width="2" '
        'stroke-dasharray="6 4"><title>the disc fitted to the zones</title></polyline>'
    )


def _files(files: tuple[Mark, ...]) -> Iterator[str]:
    for number, mark in enumerate(files[:2]):
        top = PANEL_HEIGHT - BOTTOM + 46 + 22 * number
        for begin, end in mark.spans:
            x, right = _x(begin), _x(end)
            yield (
                f'<rect x="{x:.1f}" y="{top}" width="{max(2.0, right - x):.1f}" height="10" '
                f'fill="{COLOURS[3]}"><title>{escape(mark.text)}, {percent_text(begin)} to '
                f"{percent_text(end)}</title></rect>"
            )
        last = max(_x(end) for _, end in mark.spans)
        first = min(_x(begin) for begin, _ in mark.spans)
        if last < WIDTH - RIGHT - 140:
            yield _text(last + 6, top + 9, mark.text)
        else:
            yield _text(first - 6, top + 9, mark.text, anchor="end")


def _x(ratio: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * ratio


def _y(rate: float, most: float) -> float:
    return PANEL_HEIGHT - BOTTOM - (PANEL_HEIGHT - TOP - BOTTOM) * rate / most


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(text)}</text>"
    )
