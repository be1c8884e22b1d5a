"""What an observations file holds, TOML or JSON: figures with their units, as a person wrote them.

Every figure that has a unit is text in the file: `11 MB/s`, `11 MiB/s`, `940 Mbit/s`, `149 ms`,
`64KiB`. A field says how that is read, and which words it may hold. Checked strictly, one line of
complaint.
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
    """One of the two hosts, as far as it was told."""

    name: str | None = None
    system: str | None = None
    link: Rate | None = None
    """Rate of its network card."""
    duplex: str | None = None
    mtu: int | None = None
    memory: Size | None = None
    cores: int | None = None
    tcp_rmem: str | None = None
    """As net.ipv4.tcp_rmem: three sizes, the last ends the kernel's own tuning."""
    tcp_wmem: str | None = None
    congestion_control: str | None = None
    wifi: bool | None = None
    usb: Rate | None = None
    """Rate of the USB link that its network card is on."""


@dataclass(frozen=True)
class Path:
    """Between the hosts."""

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
    """Which client, where several were tried."""


@dataclass(frozen=True)
class Zone:
    """A place of a disk, 0 at its outer edge and 1 at its inner one."""

    at: Ratio
    rate: Rate


@dataclass(frozen=True)
class Disk:
    """A disk alone, in sequence."""

    side: Side
    verb: Annotated[str, str, _one_of("read", "write")]
    rate: Rate | None = None
    tool: str | None = None
    zones: tuple[Zone, ...] = ()


@dataclass(frozen=True)
class Copy:
    """A copy that was made, or is asked about."""

    copy: Annotated[str, str, _one_of(*SUPPLIED_COPIES)]
    rate: Rate | None = None
    """None: not told; what bounds it is told all the same."""
    dialect: Annotated[str, str, _one_of(*DIALECTS)] | None = None
    size: Size | None = None
    request: SizeText | None = None
    depth: int | None = None
    streams: int | None = None
    from_place: Ratio | None = None
    """Of the source on the sender's disk, as a zone's."""
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
    """Messages of one size and their small answers, one after the other on one connection."""

    message: Size
    round_trips: int
    time: Seconds
    """For all of them together."""


@dataclass(frozen=True)
class Latency:
    """Times by size of message."""

    connection: Annotated[str, str, _one_of("cold", "warm")]
    """cold: a connection of its own each time, whose opening is in the time; warm."""
    table: tuple[Exchange, ...]
    tool: str | None


@dataclass(frozen=True)
class Start:
    """Which side had better start a copy, where no figures were told."""

    sender: Side
    better: Annotated[str, str, _one_of("sender", "receiver")]
    words: str | None


@dataclass(frozen=True)
class Observations:
    """One set of figures."""

    schema: str
    title: str
    date: str
    """YYYY-MM-DD: when they were taken."""
    source: str | None = None
    client: Host | None = None
    server: Host | None = None
    path: Path | None = None
    notes: tuple[str, ...] = ()
    """What the figures stand for, and what their author found."""
    tcp: tuple[Tcp, ...] = ()
    disk: tuple[Disk, ...] = ()
    copy: tuple[Copy, ...] = ()
    latency: tuple[Latency, ...] = ()
    start: tuple[Start, ...] = ()


def is_one(document: dict[str, Any]) -> bool:
    """Whether a JSON document says that it is one, of any version."""
    schema = document.get("schema")
    return isinstance(schema, str) and schema.startswith(_KIND)


def is_toml(content: bytes) -> bool:
    """Whether a file that is no JSON object says that it is one, of any version."""
    return not content.lstrip().startswith(b"{") and _MARK.search(content) is not None


def loads(
    content: bytes, document: dict[str, Any] | None = None, date: str | None = None
) -> Observations:
    """The observations in a file.

    document: what the file holds, where it was parsed already; date: of figures without one.
    Errors: ReportError, one line that says where and what.
    """
    if len(content) > bounded.LARGEST_TOML_BYTES:
        raise ReportError(f"larger than {bounded.LARGEST_TOML_BYTES} bytes")
    document = _document(content) if document is None else document
    usual = {"schema": SCHEMA, "title": UNTITLED, "date": date}
    document = {**{key: value for key, value in usual.items() if value}, **document}
    schema = document["schema"]
    if schema != SCHEMA:
        # By its type alone: a number may be too long to be made text.
        told = repr(schema[:80]) if isinstance(schema, str) else type(schema).__name__
        raise ReportError(f"schema is {told}, this program reads {SCHEMA!r}")
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
    """An object whose texts are the figures and words that its record asks for."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        key: _figure(hints[key], value, f"{where}{key}") if key in hints else value
        for key, value in document.items()
    }


def _figure(hint: Any, value: Any, where: str) -> Any:
    """A value as a field asks for it; what is of another type is left to the check of types."""
    arguments = typing.get_args(hint)
    if type(None) in arguments:
        return None if value is None else _figure(arguments[0], value, where)
    if typing.get_origin(hint) is tuple and isinstance(value, list):
        return [_figure(arguments[0], each, f"{where}[{at}]") for at, each in enumerate(value)]
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
