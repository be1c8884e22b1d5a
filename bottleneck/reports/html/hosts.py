"""The hosts and the share as far as it matters: what a helpdesk would ask for first."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.report import Report
from bottleneck.reports.document import Block, Fact, Facts, Text
from bottleneck.reports.safe import safe
from bottleneck.reports.units import count_text, seconds_text, size_text
from probes.records import FolderFacts, HostFacts

NAME_CHARACTERS = 120
MOST_LINES = 12
_TARGET_SIZES = {
    "max_read_bytes": "Largest read",
    "max_write_bytes": "Largest write",
    "free_bytes": "Free on the share",
}
_TARGET_WORDS = {
    "signing_required_by": "Signing required by",
    "encryption_required_by": "Encryption required by",
    "security_mode": "Security mode",
    "server_guid": "Server's GUID",
}


def host_facts(host: HostFacts | None) -> Block:
    """What is known of a host; a sentence where nobody looked."""
    if host is None:
        return Text("No agent ran there: nothing of it was looked at.", "quiet")
    return Facts(tuple(_facts(host)))


def share_facts(report: Report) -> Facts:
    """What the share's server said of itself."""
    return Facts(tuple(_share(report)))


def _facts(host: HostFacts) -> Iterator[Fact]:
    yield "Name", _name(host.name)
    distribution = f", {host.distribution}" if host.distribution else ""
    yield "System", _name(f"{host.system}{distribution}")
    if host.virtual:
        yield "Runs in", _name(host.virtual)
    quota = host.quota_cores
    limit = "" if quota is None else f", of which a quota allows {count_text(quota)}"
    yield "CPU", f"{host.cores} core{'' if host.cores == 1 else 's'}{limit}"
    total = host.memory_total_bytes
    yield "RAM", "not known" if total is None else size_text(total)
    if host.congestion_control:
        yield "Congestion control", _name(host.congestion_control)
    if host.folder is not None:
        yield "Folder", tuple(map(_name, _folder(host.folder)))
    tools = ", ".join(f"{name} {version}" for name, version in sorted(host.tools.items()))
    if tools:
        yield "Programs", _name(tools)
    buffers = [f"{name} {told}" for name, told in sorted(host.socket_buffers.items())]
    if buffers:
        yield "Socket buffers", tuple(map(_name, buffers[:MOST_LINES]))
    yield "Agent", f"Python {_name(host.python)}{', as root' if host.privileged else ''}"


def _folder(folder: FolderFacts) -> Iterator[str]:
    yield folder.path
    on = f" on {folder.device}" if folder.device else ""
    turns = {True: ", rotational", False: ", not rotational", None: ""}[folder.rotational]
    if folder.filesystem:
        yield f"{folder.filesystem}{on}{turns}"
    if folder.mount_options:
        yield folder.mount_options
    if folder.free_bytes is not None:
        whole = "" if folder.total_bytes is None else f" of {size_text(folder.total_bytes)}"
        yield f"{size_text(folder.free_bytes)}{whole} free"


def _share(report: Report) -> Iterator[Fact]:
    told = report.target
    for key, term in (("share", "Share"), ("dialect", "Dialect")):
        value = steps.word(told, key)
        if value:
            yield term, _name(value)
    for key in ("signing", "encryption"):
        if key in told:
            yield key.capitalize(), _name(str(told[key])) if told[key] else "off"
    for key, term in _TARGET_WORDS.items():
        value = steps.word(told, key)
        if value:
            yield term, _name(value)
    for key, term in _TARGET_SIZES.items():
        amount = steps.amount(told, key)
        if amount is not None:
            yield term, size_text(amount)
    credits = steps.amount(told, "credits")
    if credits is not None:
        yield "Credits", count_text(credits)
    able = ", ".join(steps.texts(told, "capabilities"))
    if able:
        yield "Capabilities", _name(able)
    connected = steps.amount(told, "connect_seconds")
    if connected is not None:
        yield "Connecting took", seconds_text(connected)


def _name(text: str) -> str:
    return safe(text, NAME_CHARACTERS)
