"""Observations as a Report: the same rules read what a person wrote down as what was measured.

Nothing is made up: what a record cannot leave out is empty, and every step says who told it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

from bottleneck import __version__
from bottleneck.observations.figures import known, one_of, ratio, read
from bottleneck.observations.records import SCHEMA, Host, Observations, Start
from bottleneck.observations.told_steps import copy_entry, disk_entry, latency_entry, tcp_entry
from bottleneck.report import Report, ReportError
from bottleneck.reports import units
from probes.records import SIDES, HostFacts, InterfaceFacts


def told_report(told: Observations) -> Report:
    """The report of what was told. Errors: ReportError, one line that says where and what."""
    try:
        date.fromisoformat(told.date)
    except ValueError:
        raise ReportError(f"date {told.date!r} is not YYYY-MM-DD") from None
    rtt = None if told.path is None else read("path.rtt", told.path.rtt, units.parse_seconds)
    entries = [
        *(tcp_entry(each, f"tcp[{at}]", rtt) for at, each in enumerate(told.tcp)),
        *(latency_entry(each, f"latency[{at}]") for at, each in enumerate(told.latency)),
        *(disk_entry(each, f"disk[{at}]") for at, each in enumerate(told.disk)),
        *(copy_entry(each, f"copy[{at}]") for at, each in enumerate(told.copy)),
    ]
    if not entries:
        raise ReportError("observations tell of no tcp, latency, disk or copy")
    return Report(
        status="complete",
        tool={"version": __version__, "observations": SCHEMA},
        started=f"{told.date}T00:00:00+00:00",
        elapsed_seconds=0.0,
        target=dict(_target(told, rtt)),
        client=_host(told.client, "client"),
        server=_host(told.server, "server"),
        entries=tuple(entries),
        notes=tuple(_notes(told)),
    )


def _target(told: Observations, rtt: float | None) -> Iterator[tuple[str, Any]]:
    yield "share", f"//{_name(told.server, 'server')}/-"
    if rtt is not None:
        yield "connect_seconds", rtt
    loss = None if told.path is None else ratio("path.loss", told.path.loss)
    if loss is not None:
        yield "loss_ratio", loss
    yield "starts", [_start(each, f"start[{at}]") for at, each in enumerate(told.start)]


def _start(start: Start, where: str) -> dict[str, Any]:
    return known(
        sender=one_of(f"{where}.sender", start.sender, SIDES),
        better=one_of(f"{where}.better", start.better, ("sender", "receiver")),
        words=start.words,
    )


def _notes(told: Observations) -> Iterator[str]:
    source = f" Source: {told.source}." if told.source else ""
    yield f"{told.title}: figures that a person told; nothing was measured here.{source}"
    yield from told.notes


def _name(host: Host | None, side: str) -> str:
    return side if host is None or host.name is None else host.name


def _host(host: Host | None, side: str) -> HostFacts | None:
    if host is None:
        return None
    link = read(f"{side}.link", host.link, units.parse_rate)
    interface = None
    if link is not None or host.mtu is not None:
        interface = InterfaceFacts(
            name="(as told)",
            address="",
            rate_bits_per_second=None if link is None else round(8 * link),
            duplex=host.duplex,
            mtu_bytes=host.mtu,
            driver=None,
            virtual=False,
        )
    buffers = {"net.ipv4.tcp_rmem": host.tcp_rmem, "net.ipv4.tcp_wmem": host.tcp_wmem}
    return HostFacts(
        name=_name(host, side),
        system=host.system or "",
        distribution=None,
        python="",
        cores=host.cores or 0,
        quota_cores=None,
        memory_total_bytes=read(f"{side}.memory", host.memory, units.parse_size),
        virtual=None,
        privileged=False,
        interface=interface,
        congestion_control=host.congestion_control,
        socket_buffers={name: text for name, text in buffers.items() if text is not None},
        folder=None,
        tools={},
    )
