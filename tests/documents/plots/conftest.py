"""Fixtures that read the drawings: the parsed SVG and where its marks lie."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bottleneck.documents.plots.copies import drawings
from bottleneck.documents.plots.shapes import text_width
from bottleneck.documents.plots.zones import zones
from tests import stored_reports
from tests.stored_reports import diagnose

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_STEP = re.compile(r"([MLHV])([^MLHV]*)")


def every_plot(report):
    diagnosis = diagnose(report)
    return (*(plot for _, plot in drawings(report, diagnosis)), *zones(report, diagnosis))


@dataclass(frozen=True)
class Mark:
    kind: str
    name: str
    text: str
    """Words of a text, or those of a shape when pointed at."""
    left_x: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left_x

    @property
    def centre(self) -> float:
        return (self.left_x + self.right) / 2


class Drawing:
    def __init__(self, svg: str) -> None:
        self.root = ElementTree.fromstring(svg)
        _, _, self.width, self.height = map(float, self.root.attrib["viewBox"].split())
        self.marks = list(self._marks())

    def _marks(self) -> Iterator[Mark]:
        for each in self.root.iter():
            box = _box(each)
            if box is not None:
                tip = each.findtext("title") or each.text or ""
                yield Mark(each.tag, each.get("class", ""), tip, *box)

    def having(self, name: str, kind: str = "") -> list[Mark]:
        classes = set(name.split())
        marks = [each for each in self.marks if classes <= set(each.name.split())]
        return [each for each in marks if kind in ("", each.kind)]

    def saying(self, text: str) -> list[Mark]:
        return [each for each in self.marks if text in each.text]

    @property
    def words(self) -> list[str]:
        return [each.text for each in self.marks if each.kind == "text"]


def _box(each: ElementTree.Element) -> tuple[float, float, float, float] | None:
    box = {key: float(value) for key, value in each.attrib.items() if _NUMBER.fullmatch(value)}
    match each.tag:
        case "rect":
            x, y = box["x"], box["y"]
            return x, y, x + box["width"], y + box["height"]
        case "circle":
            x, y, r = box["cx"], box["cy"], box["r"]
            return x - r, y - r, x + r, y + r
        case "line":
            across, up = sorted((box["x1"], box["x2"])), sorted((box["y1"], box["y2"]))
            return across[0], up[0], across[1], up[1]
        case "polyline" | "polygon":
            points = [tuple(map(float, pair.split(","))) for pair in each.attrib["points"].split()]
        case "path":
            points = _corners(each.attrib["d"])
        case "text":
            wide = text_width(each.text or "")
            share = {"start": 0.0, "middle": 0.5, "end": 1.0}[each.get("text-anchor", "start")]
            start = box["x"] - share * wide
            return start, box["y"] - 9, start + wide, box["y"] + 3
        case _:
            return None
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _corners(commands: str) -> list[tuple[float, float]]:
    """The corners of a path of M, L, H and V."""
    points = [(0.0, 0.0)]
    for letter, rest in _STEP.findall(commands):
        numbers = [float(each) for each in _NUMBER.findall(rest)]
        x, y = points[-1]
        ends = {
            "M": (numbers[0], numbers[-1]),
            "L": (numbers[0], numbers[-1]),
            "H": (numbers[0], y),
            "V": (x, numbers[0]),
        }
        points.append(ends[letter])
    return points[1:]


@pytest.fixture(scope="session")
def parse_drawing():
    return lambda plot: Drawing(plot.svg)


@pytest.fixture
def report():
    return stored_reports.load(DATA / "report-v1-comparisons.json")


@pytest.fixture
def plot_of(parse_drawing):
    """The plot of a name that a report has, and its marks."""

    def of(report, name):
        (plot,) = (each for each in every_plot(report) if each.name == name)
        return plot, parse_drawing(plot)

    return of


@pytest.fixture
def example():
    return stored_reports.load(ROOT / "examples" / "server-disk-read.json")


@pytest.fixture
def timed_report():
    return stored_reports.load(DATA / "traces" / "server-read.json.gz")
