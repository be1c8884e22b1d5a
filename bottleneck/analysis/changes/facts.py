"""What is another fact now: of both hosts, of the share, of this tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import steps
from bottleneck.analysis.changes.found import FactChange
from bottleneck.report import Report
from probes.records import SIDES, FolderFacts, HostFacts, InterfaceFacts

_HOST = ("name", "system", "distribution", "cores", "quota_cores", "memory_total_bytes", "virtual")
_INTERFACE = ("name", "rate_bits_per_second", "duplex", "mtu_bytes", "driver")
_FOLDER = ("filesystem", "mount_options", "device", "rotational")
_TARGET = ("share", "dialect", "signing", "encryption")
_TOOL = ("version", "fio")


def changed_facts(before: Report, after: Report) -> Iterator[FactChange]:
    """Facts that both or one of two reports tell, and that are not the same.

    Of a host that one report alone has seen its name stands for all of them.
    """
    both = {side for side in SIDES if _host(before, side) and _host(after, side)}
    first, second = dict(_facts(before, both)), dict(_facts(after, both))
    for fact in dict.fromkeys((*first, *second)):
        old, new = first.get(fact), second.get(fact)
        if old != new:
            yield FactChange(fact, old, new)


def _host(report: Report, side: str) -> HostFacts | None:
    return report.client if side == "client" else report.server


def _facts(report: Report, sides: set[str]) -> Iterator[tuple[str, Any]]:
    for name in _TARGET:
        yield f"target.{name}", steps.word(report.target, name)
    for side in SIDES:
        host = _host(report, side)
        if host is not None:
            told = _of_host(side, host)
            yield from told if side in sides else [next(told)]
    for name in _TOOL:
        yield f"tool.{name}", steps.word(report.tool, name)


def _of_host(side: str, host: HostFacts) -> Iterator[tuple[str, Any]]:
    for name in _HOST:
        yield f"{side}.{name}", getattr(host, name)
    yield f"{side}.congestion_control", host.congestion_control
    yield from _of_part(f"{side}.interface", host.interface, _INTERFACE)
    yield from _of_part(f"{side}.folder", host.folder, _FOLDER)
    for name, value in sorted(host.socket_buffers.items()):
        yield f"{side}.socket_buffers.{name}", value


def _of_part(
    where: str, part: InterfaceFacts | FolderFacts | None, names: tuple[str, ...]
) -> Iterator[tuple[str, Any]]:
    if part is not None:
        for name in names:
            yield f"{where}.{name}", getattr(part, name)
