"""What the facts of both interfaces say of a rate over the network, as sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bottleneck.analysis import hardware_limits, model, steps
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.model import LinkMatch
from bottleneck.analysis.steps import Found
from bottleneck.report import Report
from bottleneck.units import bit_rate_text, count_text, link_text, rate_text
from probes.records import SIDES, InterfaceFacts

TUNNELS = frozenset(
    ("tun", "wireguard", "ovpn", "ppp", "xfrm", "vti", "vti6", "ipip", "ip6tnl", "sit")
    + ("gre", "gretap", "ip6gre", "vxlan", "geneve", "l2tp")
)
ONE_PORT_A_CONNECTION = ("802.3ad", "balance-xor", "balance-tlb", "balance-alb", "active-backup")
_PAUSE = re.compile(r"pause|xon|xoff|flow_control|(^|_)fc_", re.IGNORECASE)
_OVERRUN = re.compile(
    r"missed|fifo|over_errors|overrun|no_?buf|no_?desc|no_?dma|out_of_buf|ring_full|rx_discards"
)
_DAMAGED = re.compile(r"crc|frame_errors")
_RECEIVED = re.compile(r"(^|[^a-z])rx|_rx|received|rcvd|InPause")
_SENT = re.compile(r"(^|[^a-z])tx|_tx|sent|OutPause")


def interfaces(report: Report) -> Iterator[tuple[str, InterfaceFacts]]:
    """Both sides' interfaces, as far as they are known."""
    for side, host in zip(SIDES, (report.client, report.server), strict=True):
        if host is not None and host.interface is not None:
            yield side, host.interface


def told(given: Evidence, best: Found, match: LinkMatch | None) -> Iterator[str]:
    """What stands behind a link's rate: who claims more, and over what the bytes went."""
    yield from _claims(given, best, match)
    for side, link in interfaces(given.report):
        for each in hardware_limits.tree(link):
            yield from _of_link(side, each, sends=side == given.sender)


def counted(found: Found) -> Iterator[str]:
    """Pause frames, overruns and damaged frames that were counted while a step ran."""
    for side in SIDES:
        seen: dict[tuple[str, str], float] = {}
        grown = found.outcome.details.get("interface_counts")
        by_name = grown.get(side) if isinstance(grown, dict) else None
        for key in by_name if isinstance(by_name, dict) else ():
            name, _, counter = str(key).partition(" ")
            about = _about(counter)
            growth = steps.positive(by_name, key)
            if about and growth is not None:
                # One event may be in several counters: they are not added up.
                seen[name, about] = max(growth, seen.get((name, about), 0))
        for (name, about), growth in seen.items():
            yield f"Meanwhile the {side}'s interface {name} {about.format(count_text(growth))}."


def _about(counter: str) -> str | None:
    if _PAUSE.search(counter):
        if _RECEIVED.search(counter):
            return (
                "received {} pause frames (flow control): what it is plugged into told it to stop "
                "sending"
            )
        if _SENT.search(counter):
            return "sent {} pause frames (flow control): it could not take what arrived"
        return "counted {} pause frames (flow control)"
    if _SENT.search(counter):
        return None
    if _OVERRUN.search(counter):
        return "lost {} packets on arrival: its ring was full before this host took them out"
    if _DAMAGED.search(counter):
        return "received {} damaged frames: look at the cable, its plugs and the duplex setting"
    return None


def _claims(given: Evidence, best: Found, match: LinkMatch | None) -> Iterator[str]:
    """Interfaces that claim far more than the path carries: the slow part lies elsewhere."""
    if match is None:
        return
    real = [(side, link) for side, link in interfaces(given.report) if not link.virtual]
    claiming = {
        side: link.rate_bits_per_second
        for side, link in real
        if (link.rate_bits_per_second or 0) >= 2 * match.bits_per_second
    }
    hop = link_text(match.bits_per_second)
    if len(claiming) == 2:
        rates = " and ".join(dict.fromkeys(link_text(each or 0) for each in claiming.values()))
        ways = "both ways" if _same_back(given, match) else "in this direction"
        yield (
            f"{rate_text(best.rate.median)} {ways}: a {hop} hop between the hosts, though each "
            f"interface claims {rates}: a cable, a switch port or a device on the way."
        )
        return
    for side, link in real:
        if side in claiming:
            yield (
                f"The {side}'s interface {link.name} claims "
                f"{link_text(link.rate_bits_per_second or 0)}: the {hop} part is a cable, a switch "
                "port or the other end."
            )


def _same_back(given: Evidence, match: LinkMatch) -> bool:
    """Whether TCP looks like the same link in the other direction too."""
    back = hardware_limits.believed(given.report, given.receiver)
    rate = max((each.rate.median for each in back), default=0.0)
    found = model.looks_like(rate, match.mtu_bytes)
    return found is not None and found.bits_per_second == match.bits_per_second


def _of_link(side: str, link: InterfaceFacts, sends: bool) -> Iterator[str]:
    whose = f"The {side}'s interface {link.name}"
    rate, able, partner = (
        link.rate_bits_per_second,
        link.able_bits_per_second,
        link.partner_bits_per_second,
    )
    if rate and able and rate < able and link.autonegotiated is not None:
        if partner and partner > rate:
            yield (
                f"{whose} runs at {link_text(rate)} though it can {link_text(able)} and what it is "
                f"plugged into offers {link_text(partner)}: look at the cable."
            )
        elif partner:
            yield (
                f"{whose} can {link_text(able)}; what it is plugged into offers no more than "
                f"{link_text(partner)}."
            )
        elif not link.autonegotiated:
            yield f"{whose} is set to {link_text(rate)} by hand; it can {link_text(able)}."
    if link.kind == "wifi":
        yield f"{whose} is Wi-Fi{wifi_text(link)}: half duplex, and shared with all in the air."
    if link.kind in TUNNELS:
        yield f"{whose} is a tunnel ({link.kind}): what it costs, and the path under it, count too."
    if link.kind in ("bond", "team") and len(link.lower) > 1:
        ports = " and ".join(each.name for each in link.lower)
        one = link.bond_mode in ONE_PORT_A_CONNECTION
        alone = ": one connection has one of them" if one else ""
        yield f"{whose} is a {link.kind} ({link.bond_mode or 'mode unknown'}) of {ports}{alone}."
    if sends and link.qdisc_rate_bytes_per_second:
        shaped = link.qdisc_rate_bytes_per_second
        yield f"{whose} is shaped to {bit_rate_text(shaped)} by this host's own {link.qdisc}."


def wifi_text(link: InterfaceFacts) -> str:
    """A radio link's rate and signal: ` at 433 Mbit/s, -61 dBm`; empty: not told."""
    rate, signal = steps.positive(link.wifi, "bits_per_second"), link.wifi.get("signal_dbm")
    known = [link_text(rate)] if rate else []
    if isinstance(signal, int) and not isinstance(signal, bool) and -200 < signal < 100:
        known.append(f"{signal} dBm")
    return f" at {', '.join(known)}" if known else ""
