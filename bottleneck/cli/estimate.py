"""`bottleneck estimate`: the back of the envelope; nothing is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bottleneck import units
from bottleneck.cli import exits, interrupts
from bottleneck.cli.completion import checked
from bottleneck.cli.options import flag, value
from probes.stage import Refused

if TYPE_CHECKING:
    from bottleneck.analysis.estimate.envelope import DiskKind

T = TypeVar("T")
LEAST_SHARE = 1e-12
"""Of packets: less of them than any link loses is a slip, if it is not none."""
DISK = "RATE, or hdd, hdd-outer, hdd-inner, hdd-laptop, ssd, nvme, sd, usb2 or usb3."
Verb = Annotated[str, typer.Argument(metavar="[pull|push]", help="Which way the bytes go.")]
Format = Annotated[str, typer.Option(metavar="F", help="text or json.")]


@dataclass(frozen=True)
class Figures:
    """What is known of a path and its hosts."""

    link: str | None = value("RATE", "The slowest link, as 1Gbit/s.")
    mtu: int = value("BYTES", "Longest IP packet; 9000 for jumbo frames.", 1500)
    vlan: bool = flag("Frames carry a VLAN tag.")
    ip: str = value("4|6", "Version of IP.", "4")
    rtt: str | None = value("TIME", "Round trip, as 0.5ms.")
    window: str | None = value("BYTES", "TCP's receive window, as 64KiB.")
    streams: int = value("N", "TCP connections at once.", 1)
    request: str | None = value("BYTES", "Bytes of an SMB request; default: as the dialect has it.")
    depth: int | None = value("N", "Requests at a time; default: as the dialect has it.")
    dialect: str = value("D", "smb1, 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1.", "3.1.1")
    disk_read: str | None = value("DISK", f"The sender's: {DISK}")
    disk_write: str | None = value("DISK", "The receiver's, likewise.")
    ram: str | None = value("BYTES", "The sender's RAM, where --cached.")
    size: str | None = value("BYTES", "The file's size, as 10GB.")
    loss: str | None = value("SHARE", "Lost packets, as 0.1% or 0.001.")
    cached: bool = flag("The source lies in the sender's RAM.")


def estimate(verb: Verb = "pull", *, figures: Figures, format: Format = "text") -> int:
    """Ceilings and the rate to expect, from figures alone; nothing is measured."""
    with interrupts.held():
        from bottleneck.analysis.estimate import estimate as estimated
        from bottleneck.analysis.estimate.envelope import Envelope
        from bottleneck.cli import documents
        from bottleneck.reports import terminal
        from bottleneck.reports.estimate import estimate_json, print_estimate
        from probes.records import DIALECTS

    checked("--format", format, ("text", "json"))
    link_rate = _read("--link", figures.link, units.parse_rate)
    given = Envelope(
        verb=checked("estimate", verb, ("pull", "push")),
        cached=figures.cached,
        dialect=checked("--dialect", figures.dialect.lower(), DIALECTS),
        link_bits_per_second=None if link_rate is None else 8 * link_rate,
        mtu_bytes=_within("--mtu", figures.mtu, 576, 65_535),
        ipv6=checked("--ip", figures.ip, ("4", "6")) == "6",
        vlan_tags=int(figures.vlan),
        rtt_seconds=_read("--rtt", figures.rtt, units.parse_seconds),
        window_bytes=_read("--window", figures.window, units.parse_size),
        streams=_within("--streams", figures.streams, 1, 10_000),
        request_bytes=_read("--request", figures.request, units.parse_size),
        depth=None if figures.depth is None else _within("--depth", figures.depth, 1, 65_535),
        loss_ratio=_read("--loss", figures.loss, _share),
        read=_read("--disk-read", figures.disk_read, _disk),
        write=_read("--disk-write", figures.disk_write, _disk),
        ram_bytes=_read("--ram", figures.ram, units.parse_size),
        size_bytes=_read("--size", figures.size, units.parse_size),
    )
    found = estimated(given)
    if not found.claims:
        raise Refused(
            "usage", "estimate: nothing to start from; give --link, --rtt, --disk-read ..."
        )
    if format == "json":
        done = documents.shown(lambda: print(estimate_json(found)))
    else:
        done = documents.shown(lambda: print_estimate(found, terminal.console()))
    return exits.DONE if done else exits.INCOMPLETE


def _within(name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise Refused("usage", f"{name} {value}: from {least} to {most}")
    return value


def _read(name: str, text: str | None, parse: Callable[[str], T]) -> T | None:
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise Refused("usage", f"{name}: {error}") from None


def _disk(text: str) -> DiskKind:
    from bottleneck.analysis.estimate.envelope import KINDS, disk_of

    if text in KINDS:
        return KINDS[text]
    try:
        return disk_of(units.parse_rate(text))
    except ValueError as error:
        raise ValueError(f"{error}; or one of {', '.join(KINDS)}") from None


def _share(text: str) -> float:
    """A share of packets: `0.1%` or `0.001`; none, or from LEAST_SHARE to less than all."""
    percent = text.strip().endswith("%")
    try:
        value = float(text.strip().removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if value != 0 and not LEAST_SHARE <= value < 1:
        raise ValueError(f"{text[:40]!r} is not a share: write for example 0.1% or 0.001")
    return value
