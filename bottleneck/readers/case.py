"""Joins outputs of tools, observations and figures in words into one case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from bottleneck.estimate import observations
from bottleneck.readers.figure import Figure
from bottleneck.report.report import ReportError
from bottleneck.text import units
from probes.core.records import DIALECTS

DIALECT_WORDS = {"smb2": "2.1", "smb3": "3.1.1", **{each: each for each in DIALECTS}}
LISTS = ("notes", "tcp", "disk", "copy", "latency", "start")
RECORDS = ("client", "server", "path")
EXAMPLE = "write for example 'pull 38MB/s' or 'push 12MB/s cached smb1 robocopy'"


def case_of_figures(figures: Iterable[Figure], date: str) -> observations.Observations:
    """Returns figures as observations; they contain no file name."""
    figures = tuple(figures)
    paths = [each for each in figures if isinstance(each, observations.Path)]
    trips = [each.rtt for each in paths if each.rtt is not None]
    losses = [each.loss for each in paths if each.loss is not None]
    return observations.Observations(
        schema=observations.SCHEMA,
        title=observations.UNTITLED,
        date=date,
        path=observations.Path(min(trips, default=None), max(losses, default=None))
        if paths
        else None,
        notes=tuple(each for each in figures if isinstance(each, str)),
        tcp=tuple(each for each in figures if isinstance(each, observations.Tcp)),
        disk=tuple(each for each in figures if isinstance(each, observations.Disk)),
        copy=tuple(each for each in figures if isinstance(each, observations.Copy)),
    )


def joined_case(parts: Sequence[observations.Observations]) -> observations.Observations:
    """Returns the observations of one case; the first wins if several have a figure."""
    values: dict[str, Any] = {
        name: tuple(each for part in parts for each in getattr(part, name)) for name in LISTS
    }
    values |= {name: _merged_record([getattr(part, name) for part in parts]) for name in RECORDS}
    return replace(parts[0], **values)


def _merged_record(records: Sequence[Any]) -> Any:
    """Returns a record with the first known value of each field; None: there is no record."""
    present = [each for each in records if each is not None]
    if not present:
        return None
    values = {
        field.name: next((v for e in present if (v := getattr(e, field.name)) is not None), None)
        for field in fields(present[0])
    }
    return replace(present[0], **values)


def copy_of(text: str) -> observations.Copy:
    """Parses a copy in words: `push 12 MB/s uncached smb1 robocopy`.

    Without a word for it, the source counts as uncached. Errors: ReportError.
    """
    words = text.split()
    name, cache = (words or [""])[0].lower(), "uncached"
    copy = observations.Copy(copy=f"{name}.{cache}", rate=None)
    if copy.copy not in observations.SUPPLIED_COPIES:
        raise ReportError(f"{text[:40]!r} has no direction: {EXAMPLE}")
    rest, tools = words[1:], []
    while rest:
        word = rest.pop(0)
        if rest and word[-1].isdigit() and rest[0][0].isalpha() and "/" in rest[0]:
            word += rest.pop(0)
        lower, (key, _, value) = word.lower(), word.lower().partition("=")
        if lower in ("cached", "uncached"):
            copy = replace(copy, copy=f"{name}.{lower}")
        elif lower in observations.SECURITIES:
            copy = replace(copy, security=lower)
        elif key == "client-cpu":
            copy = replace(copy, client_cpu=_share(value))
        elif key == "server-cpu":
            copy = replace(copy, server_cpu=_share(value))
        elif lower in DIALECT_WORDS:
            copy = replace(copy, dialect=DIALECT_WORDS[lower])
        elif word[0].isdigit():
            copy = _copy_with_size(copy, word)
        elif "=" in word and not word.startswith("-"):
            raise ReportError(f"{word[:40]!r} is not known: {EXAMPLE}, or server-cpu=95%")
        else:
            tools.append(word)
    return replace(copy, tool=" ".join(tools) or None)


def _share(text: str) -> float:
    """Returns a share of a core, of `95%`. Errors: ReportError."""
    percent = text.removesuffix("%")
    if not (percent.isdecimal() and len(percent) <= 3 and int(percent) <= 100):
        raise ReportError(f"{text[:20]!r} is not a share of a core: write for example 95%")
    return int(percent) / 100


def _copy_with_size(copy: observations.Copy, word: str) -> observations.Copy:
    """Returns a copy with a rate or a size. Errors: ReportError."""
    is_size = word[-1] in "Bb" and "/" not in word and not word.lower().endswith("ps")
    try:
        if is_size:
            return replace(copy, size=units.parse_size(word))
        return replace(copy, rate=units.parse_rate(word))
    except units.UnitError as error:
        raise ReportError(str(error)) from None
