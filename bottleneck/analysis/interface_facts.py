"""Sentences about a rate over the network, from the facts of both interfaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import hardware_limits, model, steps
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.model import LinkMatch
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import bit_rate_text, count_text, link_text, rate_text
from probes.core.records import SIDES, InterfaceFacts

TUNNELS = frozenset(
    ("tun", "wireguard", "ovpn", "ppp", "xfrm", "vti", "vti6", "ipip", "ip6tnl", "sit")
    + ("gre", "gretap", "ip6gre", "vxlan", "geneve", "l2tp")
)
SAME_RATIO = 0.1
"""Greatest relative distance of a rate from a link's setting that explains it."""
ALIKE_RATIO = 1.1
"""Most rate of the other direction / the shaper's at which that direction is as slow."""
SLOW_HOP_RATIO = 2.0
"""Least payload of both cards / path's rate at which a hop between them is slow."""
FULL_RATIOS = 0.88, 1.06
"""Rate over a full link of a standard rate, over its payload at the usual MTU."""
ONE_PORT_A_CONNECTION = ("802.3ad", "balance-xor", "balance-tlb", "balance-alb", "active-backup")
_PAUSE = re.compile(r"pause|xon|xoff|flow_control|(^|_)fc_", re.IGNORECASE)
_OVERRUN = re.compile(
    r"missed|fifo|over_errors|overrun|no_?buf|no_?desc|no_?dma|out_of_buf|ring_full|rx_discards"
)
_DAMAGED = re.compile(r"crc|frame_errors")
_RECEIVED = re.compile(r"(^|[^a-z])rx|_rx|received|rcvd|InPause")
_SENT = re.compile(r"(^|[^a-z])tx|_tx|sent|OutPause")


def unseen_way(report: Report, bytes_per_second: float) -> str | None:
    """Returns a hint of the client at a faster path, as a sentence without its full stop.

    None: there is none, or its own interface carries no more than that rate.
    """
    link = dict(hardware_limits.interfaces(report)).get("client")
    if link is None:
        return None
    if link.kind in TUNNELS:
        return f"The copy goes through {link.name}, a tunnel ({link.kind})"
    share = model.payload_efficiency(steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES)
    rate = link.rate_bits_per_second
    if rate and rate / 8 * share <= (1 + SAME_RATIO) * bytes_per_second:
        return None
    for each in steps.target_of(report).interfaces:
        # An address that both hosts have is a container's or a virtual machine's bridge.
        if each.reached_from not in ("", link.address, each.address):
            return f"This client reaches {each.address} of the server by {each.reached_from}"
    return None


@dataclass(frozen=True)
class Behind:
    """Setting or kind of an interface that explains the rate of a link."""

    words: str
    detail: str
    """Part of a line: "limited by a shaper on the server"."""
    remedy: str


NOTHING = Behind("", "", "")


def behind(evidence: Evidence, bytes_per_second: float, match: LinkMatch | None) -> Behind:
    """Returns the explanation of a link's payload rate; NOTHING: the facts show none.

    A rate that is shaped, set by hand or negotiated has to match the link's; a radio explains any
    rate that is no standard link's.
    """
    share = model.payload_efficiency(steps.mtu_bytes(evidence.report) or model.ETHERNET_MTU_BYTES)

    def matches(bits_per_second: float | None) -> bool:
        payload = (bits_per_second or 0.0) / 8 * share
        return abs(bytes_per_second - payload) <= SAME_RATIO * payload if payload else False

    links = [
        (side, each)
        for side, link in hardware_limits.interfaces(evidence.report)
        for each in hardware_limits.tree(link)
    ]
    back = next((e for e in links if e[0] != evidence.sender and _shaper_bits(e[1])), None)
    copies = (each for each in steps.copies(evidence.report) if each.sender != evidence.sender)
    others = (each.step.rate.median for each in copies if each.step is not None)
    other = max(others, default=0.0) if evidence.sees_client_only else None
    shaped = (
        _explain_shaper(*each, back, other)
        for each in links
        if each[0] == evidence.sender and matches(_shaper_bits(each[1]))
    )
    slowed = (_explain_slow_card(*each) for each in links if matches(each[1].rate_bits_per_second))
    radios = (_radio(*each) for each in links if match is None and each[1].kind == "wifi")
    setting = next((each for each in (*shaped, *slowed, *radios) if each is not None), None)
    hint = ""
    if back is not None and matches(_shaper_bits(back[1])):
        same = f"{back[1].name} on the {back[0]} is shaped to {link_text(_shaper_bits(back[1]))}"
        hint = f"{same} for what it sends: the {evidence.sender} may have the same shaper. "
    return setting or _hop(evidence.report, bytes_per_second, hint)


def _hop(report: Report, bytes_per_second: float, hint: str) -> Behind:
    """Returns advice for a path that is far slower than both cards, or than any standard link."""
    cards = [link for _, link in hardware_limits.interfaces(report) if not link.virtual]
    rates = [link.rate_bits_per_second or 0 for link in cards if link.kind != "wifi"]
    offered = " and ".join(link_text(each) for each in sorted({*rates}) if each)
    slowest = min(rates, default=0) if len(rates) == 2 else 0
    ratio = model.link_payload(slowest) / bytes_per_second
    if ratio >= SLOW_HOP_RATIO:
        why = f"both hosts' cards offer {offered}"
    elif not _is_of_link(bytes_per_second):
        why = f"{rate_text(bytes_per_second)} is not the rate of a standard link"
    else:
        return NOTHING
    looks = (
        "Look for a shaper, Wi-Fi, a VPN, a leased line or a slow port before you buy a faster link"
    )
    return Behind("", "", f"Find the slowest hop, because {why}. {hint}{looks}")


def _is_of_link(bytes_per_second: float) -> bool:
    bits = model.faster_link(bytes_per_second / FULL_RATIOS[1])
    return bytes_per_second >= FULL_RATIOS[0] * model.link_payload(bits)


def shapers(report: Report) -> Iterator[str]:
    """Yields advice about each shaper on a host, for a copy without a cap."""
    for side, link in hardware_limits.interfaces(report):
        for each in hardware_limits.tree(link):
            if each.qdisc_rate_bytes_per_second:
                yield (
                    f"{each.name} on the {side} is shaped to {link_text(_shaper_bits(each))} "
                    f"({each.qdisc}): check whether that is meant, and the other end too."
                )


ALSO_BACK = "The other direction is limited as well"
"""Words in advice that concerns the copies of both directions."""


def _shaper_bits(link: InterfaceFacts) -> float:
    return 8.0 * (link.qdisc_rate_bytes_per_second or 0)


def _explain_shaper(
    side: str, link: InterfaceFacts, back: tuple[str, InterfaceFacts] | None, other: float | None
) -> Behind:
    """Returns the explanation by a shaper of the sender's.

    back: the other host's shaper. other: if that host was not observed, the rate from it, bytes per
    second; 0: not measured.
    """
    rate, note = link_text(_shaper_bits(link)), ""
    if back is not None:
        back_rate = link_text(_shaper_bits(back[1]))
        note = f". {ALSO_BACK}: {back[1].name} on the {back[0]}, to {back_rate}"
    elif other is not None:
        slow = 8 * other <= ALIKE_RATIO * _shaper_bits(link)
        note = ": if pulls are as slow, the server has another"
        if other:
            note = ". Pulls are as slow: the server probably has another" if slow else ", not pulls"
        note = f". It limits what the {side} sends{note}"
    return Behind(
        f"a {link.qdisc} qdisc on the {side} shapes {link.name} to {rate}",
        f"limited by a shaper on the {side}",
        f"Raise or remove the {rate} limit of {link.name} on the {side} (see `tc qdisc show dev "
        f"{link.name}`){note}",
    )


def _explain_slow_card(side: str, link: InterfaceFacts) -> Behind | None:
    """Returns the explanation by a card below its best rate; None: it is not, or unknown why."""
    rate, able, partner = (
        link.rate_bits_per_second or 0,
        link.able_bits_per_second or 0,
        link.partner_bits_per_second,
    )
    where, now = f"{link.name} on the {side}", link_text(rate)
    if rate >= able or link.autonegotiated is None:
        return None
    if not link.autonegotiated:
        text = f"is set to {now} by hand"
        remedy = f"Turn on autonegotiation for {where} (`ethtool -s {link.name} autoneg on`)"
    elif partner and partner > rate:
        text = f"negotiated {now}"
        both = link_text(min(able, partner))
        remedy = f"Replace the cable of {where}: both of its ends support {both}"
    elif partner:
        text = f"negotiated {now}"
        remedy = f"Connect {where} to a port of {link_text(able)}: its port offers at most {now}"
    else:
        return None
    return Behind(f"{where} {text}", f"{link.name} {text}", remedy)


def _radio(side: str, link: InterfaceFacts) -> Behind:
    return Behind(
        f"{link.name} on the {side} is Wi-Fi",
        f"Wi-Fi on the {side}",
        f"Connect the {side} by cable, or move it closer to its access point",
    )


def remarks(evidence: Evidence, best: MeasuredStep, match: LinkMatch | None) -> Iterator[str]:
    """Yields remarks on a link's rate: interfaces that offer more, and kinds of links."""
    yield from _claims(evidence, best, match)
    for side, link in hardware_limits.interfaces(evidence.report):
        for each in hardware_limits.tree(link):
            yield from _link_remarks(side, each, sends=side == evidence.sender)


def interface_events(step: MeasuredStep) -> Iterator[str]:
    """Yields pause frames, overruns and damaged frames that were counted during a step."""
    for side in SIDES:
        growths: dict[tuple[str, str], float] = {}
        grown = step.outcome.details.get("interface_counts")
        by_name = grown.get(side) if isinstance(grown, dict) else None
        for key in by_name if isinstance(by_name, dict) else ():
            name, _, counter = str(key).partition(" ")
            text = _event_text(counter)
            growth = steps.positive(by_name, key)
            if text and growth is not None:
                # One event may be in several counters, so that these are not added up.
                growths[name, text] = max(growth, growths.get((name, text), 0))
        for (name, text), growth in growths.items():
            yield f"{name} on the {side} {text.format(count_text(growth))} during the copy."


def _event_text(counter: str) -> str | None:
    if _PAUSE.search(counter):
        if _RECEIVED.search(counter):
            return "received {} pause frames (flow control) from its switch port"
        if _SENT.search(counter):
            return "sent {} pause frames (flow control), because its queues were full,"
        return "counted {} pause frames (flow control)"
    if _SENT.search(counter):
        return None
    if _OVERRUN.search(counter):
        return "dropped {} received packets, because its ring was full,"
    if _DAMAGED.search(counter):
        return "received {} damaged frames (check cable, plugs and duplex setting)"
    return None


def _claims(evidence: Evidence, best: MeasuredStep, match: LinkMatch | None) -> Iterator[str]:
    """Yields interfaces that offer far more than the path carries: the slow part is elsewhere."""
    if match is None:
        return
    ends = hardware_limits.interfaces(evidence.report)
    real = [(side, link) for side, link in ends if not link.virtual]
    claiming = {
        side: link.rate_bits_per_second
        for side, link in real
        if (link.rate_bits_per_second or 0) >= 2 * match.bits_per_second
    }
    hop = link_text(match.bits_per_second)
    if len(claiming) == 2:
        rates = " and ".join(dict.fromkeys(link_text(each or 0) for each in claiming.values()))
        ways = "both ways" if _is_same_back(evidence, match) else "in this direction"
        yield (
            f"TCP moved {rate_text(best.rate.median)} {ways}, although each interface offered "
            f"{rates}. A cable, a switch port or a device on the path runs at {hop}."
        )
        return
    for side, link in real:
        if side in claiming:
            yield (
                f"The {side}'s interface offered {link_text(link.rate_bits_per_second or 0)}. A "
                f"cable, a switch port or the other end runs at {hop}."
            )


def _is_same_back(evidence: Evidence, match: LinkMatch) -> bool:
    back = hardware_limits.believed_steps(evidence.report, evidence.receiver)
    rate = max((each.rate.median for each in back), default=0.0)
    back_match = model.looks_like(rate, match.mtu_bytes)
    return back_match is not None and back_match.bits_per_second == match.bits_per_second


def _link_remarks(side: str, link: InterfaceFacts, sends: bool) -> Iterator[str]:
    whose = f"{link.name} on the {side}"
    rate, able, partner = (
        link.rate_bits_per_second,
        link.able_bits_per_second,
        link.partner_bits_per_second,
    )
    if rate and able and rate < able and link.autonegotiated is not None:
        if partner and partner > rate:
            yield (
                f"{whose} ran at {link_text(rate)}, although it supports {link_text(able)} and its "
                f"switch port {link_text(partner)}. Check the cable."
            )
        elif partner:
            yield (
                f"{whose} supports {link_text(able)}; its switch port offered at most "
                f"{link_text(partner)}."
            )
        elif not link.autonegotiated:
            yield f"{whose} was set to {link_text(rate)} by hand; it supports {link_text(able)}."
    if link.kind == "wifi":
        yield f"{whose} was Wi-Fi{wifi_text(link)} (half duplex, shared)."
    if link.kind in TUNNELS:
        yield f"{whose} was a tunnel ({link.kind}), which adds its own cost and the path below it."
    if link.kind in ("bond", "team") and len(link.lower) > 1:
        ports = " and ".join(each.name for each in link.lower)
        one = link.bond_mode in ONE_PORT_A_CONNECTION
        note = "; one connection uses only one of them" if one else ""
        yield f"{whose} was a {link.kind} ({link.bond_mode or 'mode unknown'}) of {ports}{note}."
    if sends and link.qdisc_rate_bytes_per_second:
        shaped = link.qdisc_rate_bytes_per_second
        yield f"{whose} was shaped to {bit_rate_text(shaped)} by a {link.qdisc} qdisc on that host."


def wifi_text(link: InterfaceFacts) -> str:
    """Returns a radio link's rate and signal: ` at 433 Mbit/s, -61 dBm`; empty: not known."""
    rate, signal = steps.positive(link.wifi, "bits_per_second"), link.wifi.get("signal_dbm")
    parts = [link_text(rate)] if rate else []
    if isinstance(signal, int) and not isinstance(signal, bool) and -200 < signal < 100:
        parts.append(f"{signal} dBm")
    return f" at {', '.join(parts)}" if parts else ""
