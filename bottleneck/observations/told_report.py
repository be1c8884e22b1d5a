"""Observations as a Report: the same rules read what a person wrote down as what was measured.

Nothing is made up: what a record cannot leave out is empty, and every step says who told it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

from bottleneck import __version__
from bottleneck.observations.records import SCHEMA, Host, Observations
from bottleneck.observations.told_steps import (
    copy_entry,
    disk_entry,
    known,
    latency_entry,
    tcp_entry,
)
from bottleneck.report import Report, ReportError
from probes.records import HostFacts, InterfaceFacts


def told_report(told: Observations) -> Report:
    """The report of what was told. Errors: ReportError, one line that says where and what."""
    try:
        date.fromisoformat(told.date)
    except ValueError:
        raise ReportError(f"date {told.date!r} is not YYYY-MM-DD") from None
    rtt = None if told.path is None else told.path.rtt
    entries = [
        *(tcp_entry(each, rtt) for each in told.tcp),
        *(latency_entry(each, f"latency[{at}]") for at, each in enumerate(told.latency)),
        *(disk_entry(each, f"disk[{at}]") for at, each in enumerate(told.disk)),
        *(copy_entry(each) for each in told.copy),
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
    if told.path is not None and told.path.loss is not None:
        yield "loss_ratio", told.path.loss
    yield (
        "starts",
        [known(sender=each.sender, better=each.better, words=each.words) for each in told.start],
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
    interface = None
    if host.link is not None or host.mtu is not None:
        interface = InterfaceFacts(
            name="(as told)",
            address="",
            rate_bits_per_second=None if host.link is None else round(8 * host.link),
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
        memory_total_bytes=host.memory,
        virtual=None,
        privileged=False,
        interface=interface,
        congestion_control=host.congestion_control,
        socket_buffers={name: text for name, text in buffers.items() if text is not None},
        folder=None,
        tools={},
    )
