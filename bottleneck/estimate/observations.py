"""Records of an observations file, TOML or JSON: figures with their units, as a person wrote them.

Every figure with a unit is text in the file: `11 MB/s`, `11 MiB/s`, `940 Mbit/s`, `149 ms`,
`64KiB`. A field's annotation says how it is parsed and which words it may hold. Files are checked
strictly; an error is one line.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from bottleneck.report import report
from bottleneck.report.report import ReportError
from bottleneck.text import units
from probes.core import bounded, typed
from probes.core.records import DIALECTS, OWN_COPIES, SIDES


def _is_ratio(value: Any) -> Any:
    if isinstance(value, str) and (percent := _PERCENT.fullmatch(value.strip())):
        value = float(percent[1]) / 100
    if isinstance(value, (int, float)) and value > 1:
        raise ValueError(f"{value:g} is not between 0 and 1")
    return value


def _is_size(value: str) -> str:
    units.parse_size(value)
    return value


def _one_of(*words: str) -> Callable[[str], str]:
    def read(word: str) -> str:
        if word not in words:
            raise ValueError(f"{word[:40]!r} must be one of {', '.join(words)}")
        return word

    return read


_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%", re.ASCII)
UNTITLED = "This case"
SECURITIES = ("plain", "signed", "encrypted")
SUPPLIED_COPIES = tuple(f"{by}{copy}" for by in ("", "server.") for copy in OWN_COPIES)
Rate = Annotated[float, str, units.parse_rate]
Seconds = Annotated[float, str, units.parse_seconds]
Size = Annotated[int, str, units.parse_size]
SizeText = Annotated[str, str, _is_size]
Ratio = Annotated[float, object, _is_ratio]
Side = Annotated[str, str, _one_of(*SIDES)]

_KIND = "copy-bottleneck/observations/"
SCHEMA = f"{_KIND}1"
CURLY = re.compile(r"=\s*[\u201c\u201d\u201e\u00ab\u2018\u2019]")
_MARK = re.compile(rf"""^[ \t]*["']?schema["']?\s*=\s*["']{_KIND}""".encode(), re.M)


@dataclass(frozen=True)
class Host:
    """One of the two hosts; None: not given."""

    name: str | None = None
    system: str | None = None
    link: Rate | None = None
    """Rate of its network card."""
    duplex: str | None = None
    mtu: int | None = None
    memory: Size | None = None
    cores: int | None = None
    tcp_rmem: str | None = None
    """Three sizes of net.ipv4.tcp_rmem; the last is the limit of the kernel's auto-tuning."""
    tcp_wmem: str | None = None
    congestion_control: str | None = None
    wifi: bool | None = None
    usb: Rate | None = None
    """Rate of the USB link that its network card is on."""


@dataclass(frozen=True)
class Path:
    """Network path between the hosts."""

    rtt: Seconds | None = None
    loss: Ratio | None = None
    """Loss events per packet."""


@dataclass(frozen=True)
class Tcp:
    """TCP alone, by iperf3, ttcp or the like."""

    sender: Side
    rate: Rate
    streams: int | None = None
    buffer: Size | None = None
    window: Size | None = None
    tool: str | None = None
    client: str | None = None
    """Name of the client, if several were tried."""


@dataclass(frozen=True)
class Zone:
    """Rate at a place of a disk."""

    at: Ratio
    """0: outer edge; 1: inner edge."""
    rate: Rate


@dataclass(frozen=True)
class Disk:
    """Sequential rate of a disk by itself."""

    side: Side
    verb: Annotated[str, str, _one_of("read", "write")]
    rate: Rate | None = None
    tool: str | None = None
    zones: tuple[Zone, ...] = ()


@dataclass(frozen=True)
class Copy:
    """A copy that was made, or that a person asks about."""

    copy: Annotated[str, str, _one_of(*SUPPLIED_COPIES)]
    rate: Rate | None = None
    """None: not given; its limits can be given all the same."""
    dialect: Annotated[str, str, _one_of(*DIALECTS)] | None = None
    size: Size | None = None
    request: SizeText | None = None
    depth: int | None = None
    streams: int | None = None
    from_place: Ratio | None = None
    """Place of the source on the sender's disk, as Zone.at."""
    to_place: Ratio | None = None
    tool: str | None = None
    client_cpu: Ratio | None = None
    """Share of the client's busiest core during the copy, as text `95%` or a ratio."""
    server_cpu: Ratio | None = None
    security: Annotated[str, str, _one_of(*SECURITIES)] | None = None
    synced: bool | None = None
    """Whether each write was forced to the disk."""


@dataclass(frozen=True)
class Exchange:
    """Messages of one size with small answers, one after the other on one connection."""

    message: Size
    round_trips: int
    time: Seconds
    """Time of all round trips together."""


@dataclass(frozen=True)
class Latency:
    """Times by message size."""

    connection: Annotated[str, str, _one_of("cold", "warm")]
    """cold: a new connection each time, whose opening is part of the time; warm: one connection."""
    table: tuple[Exchange, ...]
    tool: str | None


@dataclass(frozen=True)
class Start:
    """Side that should start a copy, if a person gave no figures."""

    sender: Side
    better: Annotated[str, str, _one_of("sender", "receiver")]
    words: str | None


@dataclass(frozen=True)
class Observations:
    """All figures of one case."""

    schema: str
    title: str
    date: str
    """Day of the measurements, YYYY-MM-DD."""
    source: str | None = None
    client: Host | None = None
    server: Host | None = None
    path: Path | None = None
    notes: tuple[str, ...] = ()
    """Remarks on the figures, and findings of their author."""
    tcp: tuple[Tcp, ...] = ()
    disk: tuple[Disk, ...] = ()
    copy: tuple[Copy, ...] = ()
    latency: tuple[Latency, ...] = ()
    start: tuple[Start, ...] = ()


def is_observations(document: dict[str, Any]) -> bool:
    """Whether a JSON document claims to be observations, of any version."""
    schema = document.get("schema")
    return isinstance(schema, str) and schema.startswith(_KIND)


def is_toml(content: bytes) -> bool:
    """Whether a file claims to be observations in TOML, of any version."""
    return not content.lstrip().startswith(b"{") and _MARK.search(content) is not None


def loads(
    content: bytes, document: dict[str, Any] | None = None, date: str | None = None
) -> Observations:
    """Loads the observations in a file.

    document: the parsed content, if there is one already; date: used if the file has none.
    Errors: ReportError, one line that says where and why.
    """
    if len(content) > bounded.LARGEST_TOML_BYTES:
        raise ReportError(f"larger than {bounded.LARGEST_TOML_BYTES} bytes")
    document = _document(content) if document is None else document
    usual = {"schema": SCHEMA, "title": UNTITLED, "date": date}
    document = {**{key: value for key, value in usual.items() if value}, **document}
    schema = document["schema"]
    if schema != SCHEMA:
        # Only the type of anything but text: a number may be too long to be printed.
        label = repr(schema[:80]) if isinstance(schema, str) else type(schema).__name__
        raise ReportError(f"schema is {label}, this program reads {SCHEMA!r}")
    try:
        return typed.record(Observations, _read(Observations, document), "observations", True)
    except typed.NotTyped as error:
        raise ReportError(str(error)) from None


def _document(content: bytes) -> dict[str, Any]:
    if content.lstrip().startswith(b"{"):
        return report.document(content)
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        if CURLY.search(line):
            raise ReportError(f'line {number}: curly quotes, as a mail makes them; write "..."')
    try:
        return bounded.loads_toml(content)
    except bounded.NotBounded as error:
        raise ReportError(f"{error}; `bottleneck explain --template` prints a form") from None


def _read(kind: Any, document: dict[str, Any], where: str = "") -> dict[str, Any]:
    """Parses an object's texts as the fields of its record demand."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        key: _figure(hints[key], value, f"{where}{key}") if key in hints else value
        for key, value in document.items()
    }


def _figure(hint: Any, value: Any, where: str) -> Any:
    """Parses a value as its field demands; a value of another type is left to the type check."""
    arguments = typing.get_args(hint)
    if type(None) in arguments:
        return None if value is None else _figure(arguments[0], value, where)
    if typing.get_origin(hint) is tuple and isinstance(value, list):
        return [_figure(arguments[0], each, f"{where}[{i}]") for i, each in enumerate(value)]
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return _read(hint, value, f"{where}.")
    if not hasattr(hint, "__metadata__"):
        return value
    accepted, read = hint.__metadata__
    if not isinstance(value, accepted):
        raise ReportError(f"observations.{where} must be text")
    try:
        return read(value)
    except ValueError as error:
        raise ReportError(f"{where}: {error}") from None
