"""`bottleneck estimate`: the back of the envelope; nothing is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bottleneck.cli import exits, interrupts
from bottleneck.cli.completion import checked_word
from bottleneck.cli.options import TextOrJson, flag, group, value
from bottleneck.text import units
from probes.core.stage import Refused

if TYPE_CHECKING:
    from bottleneck.analysis.estimate.envelope import DiskKind

T = TypeVar("T")
LEAST_SHARE = 1e-12
"""Share of lost packets: less than any link loses is a slip, if it is not none."""
DISK = "a RATE, or hdd, hdd-outer, hdd-inner, hdd-laptop, ssd, nvme, sd, usb2 or usb3."
Verb = Annotated[str, typer.Argument(metavar="[pull|push]", help="Direction [default: pull].")]


@group("Figures")
class Figures:
    """Known figures of a path and its hosts."""

    link: str | None = value("RATE", "Rate of the slowest link, such as 1Gbit/s.")
    mtu: int = value("BYTES", "MTU; 9000 for jumbo frames.", 1500)
    vlan: bool = flag("Count a VLAN tag in each frame.")
    ip: str = value("4|6", "IP version.", "4")
    rtt: str | None = value("TIME", "RTT, such as 0.5ms.")
    window: str | None = value("BYTES", "TCP receive window, such as 64KiB.")
    streams: int = value("N", "Number of TCP connections.", 1)
    request: str | None = value("BYTES", "Size of an SMB request.", usual="by dialect")
    depth: int | None = value("N", "SMB requests in flight.", usual="by dialect")
    dialect: str = value("NAME", "SMB dialect: smb1, 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1.", "3.1.1")
    disk_read: str | None = value("DISK", f"Read rate of the sender's disk: {DISK}")
    disk_write: str | None = value("DISK", "Write rate of the receiver's disk: as for --disk-read.")
    ram: str | None = value("BYTES", "Memory of the sender, with --cached.")
    size: str | None = value("BYTES", "Size of the file, such as 10GB.")
    loss: str | None = value("SHARE", "Packet loss, as 0.1% or 0.001.")
    cached: bool = flag("Assume that the file is in the sender's page cache.")


def estimate(verb: Verb = "pull", *, figures: Figures, format: TextOrJson = "text") -> int:
    """Estimate limits and rate from given figures, without measuring.

    Use at least one figure, such as --link; what is not given does not limit the copy.
    """
    with interrupts.defer():
        from bottleneck.analysis.estimate import estimate as estimated
        from bottleneck.analysis.estimate.envelope import Envelope, Window
        from bottleneck.cli import documents
        from bottleneck.documents import terminal
        from bottleneck.documents.estimate import blocks, estimate_json
        from probes.core.records import DIALECTS

    link_rate = _read("--link", figures.link, units.parse_rate)
    window = _read("--window", figures.window, units.parse_size)
    envelope = Envelope(
        verb=checked_word("estimate", verb, ("pull", "push")),
        cached=figures.cached,
        dialect=checked_word("--dialect", figures.dialect.lower(), DIALECTS),
        link_bits_per_second=None if link_rate is None else 8 * link_rate,
        mtu_bytes=_within("--mtu", figures.mtu, 576, 65_535),
        ipv6=checked_word("--ip", figures.ip, ("4", "6")) == "6",
        vlan_tags=int(figures.vlan),
        rtt_seconds=_read("--rtt", figures.rtt, units.parse_seconds),
        windows=() if window is None else (Window(window),),
        streams=_within("--streams", figures.streams, 1, 10_000),
        request_bytes=_read("--request", figures.request, units.parse_size),
        depth=None if figures.depth is None else _within("--depth", figures.depth, 1, 65_535),
        loss_ratio=_read("--loss", figures.loss, _share),
        read=_read("--disk-read", figures.disk_read, _disk),
        write=_read("--disk-write", figures.disk_write, _disk),
        ram_bytes=_read("--ram", figures.ram, units.parse_size),
        size_bytes=_read("--size", figures.size, units.parse_size),
    )
    estimation = estimated(envelope)
    if not estimation.claims:
        raise Refused("usage", "estimate: no figures; use --link, --rtt, --disk-read or others")
    if format == "json":
        done = documents.show(lambda: print(estimate_json(estimation)))
    else:
        done = documents.show(lambda: terminal.show(terminal.console(), blocks(estimation)))
    return exits.DONE if done else exits.INCOMPLETE


def _within(name: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise Refused("usage", f"{name} {value}: must be from {low} to {high}")
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
        raise ValueError(f"{error}, or one of {', '.join(KINDS)}") from None


def _share(text: str) -> float:
    """Returns a share of packets: `0.1%` or `0.001`; none, or from LEAST_SHARE to less than all."""
    percent = text.strip().endswith("%")
    try:
        value = float(text.strip().removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if value != 0 and not LEAST_SHARE <= value < 1:
        raise ValueError(f"{text[:40]!r} is not a share; use for example 0.1% or 0.001")
    return value
