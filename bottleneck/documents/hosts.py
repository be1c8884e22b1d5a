"""Both hosts, their interfaces, the share, and the path between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bottleneck.analysis import steps
from bottleneck.analysis.hardware_limits import interfaces
from bottleneck.analysis.interface_facts import wifi_text
from bottleneck.analysis.phrases import cell_text
from bottleneck.analysis.rules.bus import slot_text
from bottleneck.analysis.rules.network import wrong_path
from bottleneck.documents.document import Block, Fact, Facts, Points, Text, points
from bottleneck.documents.stages import join_names
from bottleneck.report.report import Report, Step
from bottleneck.text import units
from bottleneck.text.safe import safe
from probes.core.records import SIDES, Details, FolderFacts, HostFacts, InterfaceFacts, Measured

NAME_CHARACTERS = 120
MOST_LINES = 12
LEAST_DELAY_SECONDS, PACE_RATIO = 5e-3, 0.8
"""Delay under load that others notice; share of the path's rate at which its queue is short:
iperf3 with such a limit had a tenth of the delay behind a shaper of 100 Mbit/s."""


def host_facts(host: HostFacts | None) -> Block:
    """Returns the facts of a host; a sentence where no agent ran."""
    if host is None:
        return Text("No agent ran on this host, so its facts are unknown.", "quiet")
    return Facts(tuple(_facts(host)))


def _facts(host: HostFacts) -> Iterator[Fact]:
    yield "Name", _name(host.name)
    distribution = f", {host.distribution}" if host.distribution else ""
    yield "System", _name(f"{host.system}{distribution}")
    if host.virtual:
        yield "Runs in", _name(host.virtual)
    quota = host.quota_cores
    limit = "" if quota is None else f", limited to {units.count_text(quota)} by a quota"
    yield "CPU", f"{host.cores} core{'' if host.cores == 1 else 's'}{limit}"
    total = host.memory_total_bytes
    yield "Memory", "unknown" if total is None else units.size_text(total)
    if host.congestion_control:
        yield "Congestion control", _name(host.congestion_control)
    if host.folder is not None:
        yield "Folder", tuple(map(_name, _folder(host.folder)))
    tools = ", ".join(f"{name} {version}" for name, version in sorted(host.tools.items()))
    if tools:
        yield "Programs", _name(tools)
    buffers = [f"{name} {value}" for name, value in sorted(host.socket_buffers.items())]
    if buffers:
        yield "Socket buffers", tuple(map(_name, buffers[:MOST_LINES]))
    client = [f"{name} {value}" for name, value in sorted(host.smb_client.items())]
    if client:
        yield "SMB client of the system", tuple(map(_name, client[:MOST_LINES]))
    yield "Agent", f"Python {_name(host.python)}{', as root' if host.privileged else ''}"


def _folder(folder: FolderFacts) -> Iterator[str]:
    yield folder.path
    device = f" on {folder.device}" if folder.device else ""
    turns = {True: ", rotational", False: ", not rotational", None: ""}[folder.rotational]
    if folder.filesystem:
        yield f"{folder.filesystem}{device}{turns}"
    if folder.mount_options:
        yield folder.mount_options
    if folder.free_bytes is not None:
        total = "" if folder.total_bytes is None else f" of {units.size_text(folder.total_bytes)}"
        yield f"{units.size_text(folder.free_bytes)}{total} free"


def _word(target: dict[str, Any], key: str) -> str | None:
    return cell_text(_name, steps.word(target, key) or None)


def _security(target: dict[str, Any], key: str) -> str | None:
    return None if key not in target else _name(str(target[key])) if target[key] else "off"


def _amount(write: Callable[[float], str]) -> Callable[[dict[str, Any], str], str | None]:
    return lambda target, key: cell_text(write, steps.amount(target, key))


def _names(target: dict[str, Any], key: str) -> str | None:
    return cell_text(_name, ", ".join(steps.texts(target, key)) or None)


def _interfaces(target: dict[str, Any], key: str) -> str | None:
    """Returns address, link rate, RSS and RDMA of each, as a server reports (MS-SMB2 2.2.32.5)."""
    lines = []
    for each in steps.items(target, key)[:MOST_LINES]:
        rate = steps.positive(each, "rate_bytes_per_second")
        able = [name.upper() for name in ("rss", "rdma") if steps.flag(each, name)]
        link = [] if rate is None else [units.link_text(8 * rate)]
        lines.append(" ".join((steps.word(each, "address") or "?", *link, *able)))
    return _name(", ".join(lines)) if lines else None


SHARE: tuple[tuple[str, str, Callable[[dict[str, Any], str], str | None]], ...] = (
    ("share", "Share", _word),
    ("dialect", "Dialect", _word),
    ("signing", "Signing", _security),
    ("encryption", "Encryption", _security),
    ("signing_required_by", "Signing required by", _word),
    ("encryption_required_by", "Encryption required by", _word),
    ("security_mode", "Security mode", _word),
    ("server_guid", "Server GUID", _word),
    ("max_read_bytes", "Largest read", _amount(units.size_text)),
    ("max_write_bytes", "Largest write", _amount(units.size_text)),
    ("free_bytes", "Free on the share", _amount(units.size_text)),
    ("interfaces", "Network interfaces", _interfaces),
    ("credits", "Credits", _amount(units.count_text)),
    ("capabilities", "Capabilities", _names),
    ("connect_seconds", "Connect time", _amount(units.seconds_text)),
)
"""Keys of a report's target, their terms, and how each is written."""


def share_facts(report: Report) -> Facts:
    """Returns what the share's server reported."""
    entries = ((term, write(report.target, key)) for key, term, write in SHARE)
    return Facts(tuple((term, text) for term, text in entries if text is not None))


def _name(text: str) -> str:
    return safe(text, NAME_CHARACTERS)


MOST_BELOW = 4
ORDINARY_QDISCS = ("noqueue", "noop", "pfifo_fast", "fq_codel", "fq", "mq")


def interface_points(report: Report) -> Iterator[Points]:
    """Yields both hosts' interfaces with those below them; nothing where none is known."""
    lines = (f"{side}: {each}" for side, link in interfaces(report) for each in _link_lines(link))
    yield from points("Interfaces", lines)


def _link_lines(link: InterfaceFacts) -> Iterator[str]:
    yield interface_text(link)
    for each in link.lower[:MOST_BELOW]:
        yield f"below {safe(link.name, 24)}: {interface_text(each)}"
        if each.lower:
            names = ", ".join(safe(one.name, 24) for one in each.lower[:MOST_BELOW])
            yield f"below {safe(each.name, 24)}: {names}"
    if len(link.lower) > MOST_BELOW:
        yield f"below {safe(link.name, 24)}: {len(link.lower) - MOST_BELOW} more"


def interface_text(link: InterfaceFacts) -> str:
    """Returns an interface in one line: name, kind, link, MTU, and what is unusual about it."""
    kind = _kind_text(link)
    name = safe(link.name, 24)
    return ", ".join((f"{name} ({kind})" if kind else name, *_link_facts(link)))


def _kind_text(link: InterfaceFacts) -> str:
    words = [link.driver if link.kind in (None, "ethernet") else link.kind, link.bond_mode]
    if link.kind == "wifi":
        words = ["Wi-Fi", link.driver]
    if link.vlan_id is not None:
        words.append(str(link.vlan_id))
    return safe(" ".join(each for each in words if each), 40)


def _link_facts(link: InterfaceFacts) -> Iterator[str]:
    # The rate of a virtual interface with nothing below is a constant in its driver.
    if link.rate_bits_per_second and (link.virtual is False or link.lower):
        duplex = f" {safe(link.duplex, 8)} duplex" if link.duplex else ""
        by_hand = link.autonegotiated is False and link.virtual is False
        manually = " (set manually)" if by_hand else ""
        yield f"{units.link_text(link.rate_bits_per_second)}{duplex}{manually}"
    if link.kind == "wifi":
        yield wifi_text(link).removeprefix(" at ") or "rate unknown"
    if link.mtu_bytes:
        yield f"MTU {link.mtu_bytes}"
    if link.pcie:
        rate = link.pcie.get("bytes_per_second", 0.0)
        yield f"slot of {slot_text(link.pcie)} ({units.rate_text(rate)})"
    if link.usb_bits_per_second:
        yield f"USB at {units.link_text(link.usb_bits_per_second)}"
    if link.pause:
        uses = [word for word in ("receives", "sends") if link.pause.get(word)]
        yield f"flow control {' and '.join(uses)}" if uses else "no flow control"
    offloads = ("tcp_segmentation", "generic_receive")
    off = [name for name in offloads if link.offloads.get(name) is False]
    if off and link.virtual is False:
        yield f"{' and '.join(off).replace('_', ' ')} offload off"
    qdisc = safe(link.qdisc or "its qdisc", 16)
    if link.qdisc_rate_bytes_per_second:
        yield f"shaped to {units.bit_rate_text(link.qdisc_rate_bytes_per_second)} by {qdisc}"
    elif link.qdisc and link.qdisc not in ORDINARY_QDISCS:
        yield f"qdisc {qdisc}"


MOST_HOPS = 12
MOST_REASONS = 6
LONGEST_LINE = 2000


def path(report: Report) -> Iterator[Points]:
    """Yields a point each for the RTT, the routers and both directions; nothing if not measured."""
    yield from points("Path between the hosts", _path_lines(report), longest=LONGEST_LINE)


def _path_lines(report: Report) -> Iterator[str]:
    for step, outcome in report.entries:
        if step.stage == "path" and isinstance(outcome, Measured):
            yield from _lines(step, outcome.details, steps.on_one_host(report))
        if step.stage == "paths" and isinstance(outcome, Measured):
            yield from _other_paths(outcome.details)


def _other_paths(details: Details) -> Iterator[str]:
    """Yields the rates over each address of the server; or that there is no other."""
    ways = steps.items(details, "ways")
    for way in ways if len(ways) > 1 else ():
        rates = [(verb, steps.positive(way, f"{verb}_bytes_per_second")) for verb in steps.VERBS]
        figures = ", ".join(f"{verb} {units.rate_text(rate)}" for verb, rate in rates if rate)
        figures = figures or safe(steps.word(way, "missing") or "not measured", 120)
        use = ", in use" if steps.flag(way, "in_use") else ""
        card = safe(steps.word(way, "interface") or "an unknown interface", 24)
        yield f"{safe(steps.word(way, 'address') or '', 60)} by {card}{use}: {figures}"
    for sender in SIDES:
        pair = wrong_path.faster_way(details, sender)
        if pair is not None:
            used, better = (units.rate_text(e.rate_from(sender)) for e in pair)
            yield (
                f"faster than the path in use: {safe(pair[1].address, 60)} carries {better} of "
                f"what the {sender} sends, and not {used}"
            )
    if len(ways) == 1:
        yield "no other path: no further address of the server is in a network of this host"


def _lines(step: Step, details: Details, one_host: bool) -> Iterator[str]:
    yield from _round_trip(details)
    yield from _routers(details)
    for verb in ("push", "pull"):
        sender = steps.sender(verb, step.initiator)
        facts = "; ".join(part for part in _way(details, verb, one_host) if part)
        if facts:
            yield f"{sender} to {steps.other(sender)}: {facts}"
    yield from _unmeasured_lines(details)


def _round_trip(details: Details) -> Iterator[str]:
    low, median, high, count, lost = (
        steps.amount(details, "rtt", "handshake", name)
        for name in ("low_seconds", "median_seconds", "high_seconds", "count", "lost")
    )
    if median is None:
        return
    text = f"RTT {units.seconds_text(median)}"
    if low is not None and high is not None and count:
        span = f"{units.seconds_text(low)} to {units.seconds_text(high)}"
        text += f" ({span}, {units.count_text(count)} handshakes)"
    yield f"{text}, and {units.count_text(lost)} with a lost packet" if lost else text


def _routers(details: Details) -> Iterator[str]:
    hops = steps.items(details, "hops")
    complete = steps.flag(details, "hops_complete")
    between = hops[:-1] if complete else hops
    if not between:
        if complete:
            yield "no router in between"
        return
    names = ", ".join(_router(hop) for hop in between[:MOST_HOPS])
    if len(between) > MOST_HOPS:
        names += f" and {len(between) - MOST_HOPS} more"
    yield f"through {names}" + ("" if complete else "; later routers do not reply")


def _router(hop: dict[str, Any]) -> str:
    address, seconds = steps.word(hop, "address"), steps.amount(hop, "rtt_seconds")
    if address is None:
        return "one without a reply"
    return f"{safe(address, 48)} ({units.seconds_text(seconds)})" if seconds else safe(address, 48)


def _way(details: Details, verb: str, one_host: bool) -> Iterator[str]:
    way = details.get(verb)
    passes, stalls = (
        steps.positive(way, "black_hole", f"{name}_bytes") for name in ("passes", "stalls")
    )
    believed = steps.positive(way, "path_mtu_bytes")
    if passes is not None and stalls is not None:
        yield f"packets of {passes:.0f} bytes pass, those of {stalls:.0f} are dropped silently"
    elif believed is not None:
        # Full segments that came through, or the host's own answer to such a packet.
        full = steps.positive(way, "full_packet_bytes")
        proven = steps.flag(way, "path_mtu_confirmed") or full == believed
        yield f"packets of {believed:.0f} bytes {'pass' if proven else 'should pass'}"
        # Within one host segments are cut by what a window holds, not by what a link takes.
        if full is not None and full < believed and not one_host:
            yield f"TCP sends at most {full:.0f}"
    yield _loaded_rtt(way)


def _loaded_rtt(way: Any) -> str:
    median = steps.amount(way, "loaded", "rtt_seconds_median")
    delay = steps.amount(way, "loaded", "buffer_delay_seconds")
    rate = steps.amount(way, "loaded", "bytes_per_second")
    if median is None or rate is None:
        return ""
    text = f"RTT {units.seconds_text(median)} under a load of {units.rate_text(rate)}"
    if delay:
        text += f", {units.seconds_text(delay)} longer than idle"
        minute = (60 / each for each in (median, median - delay) if each > 0)
        text += f" ({' instead of '.join(map(units.count_text, minute))} round trips a minute)"
    if delay and delay >= LEAST_DELAY_SECONDS:
        pace = units.rate_text(PACE_RATIO * rate)
        text += f"; where others must not wait, try a limit of {pace}"
    return text


def _unmeasured_lines(details: Details) -> Iterator[str]:
    """Yields what could not be measured, each reason once."""
    gaps = details.get("not_measured")
    entries = gaps.items() if isinstance(gaps, dict) else ()
    reasons = join_names((safe(str(reason), 200), safe(str(name), 40)) for name, reason in entries)
    for reason, names in list(reasons.items())[:MOST_REASONS]:
        yield f"not measured: {names}: {reason}"
