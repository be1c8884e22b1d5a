"""The network interface by which packets to an address leave, and its facts.

Route and interfaces are the kernel's (rtnetlink), so that policy routing, this host's own addresses
and network namespaces come out right; the rest is from the driver (ethtool) and /sys. An unreadable
fact is None or absent: none is worth a run.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Dict

from probes.core.records import InterfaceFacts
from probes.host import ethtool
from probes.system import bus, rtnetlink, tools
from probes.system.proc import is_visible, text, word
from probes.system.rtnetlink import Link

CLASS = Path("/sys/class/net")
KNOWN_DUPLEX = {"full": "full", "half": "half"}
MOST_LEVELS = 4
MOST_PORTS = 16
"""Ports of a bond or a bridge that are looked at; real cards first."""


def interface_facts(toward: str) -> InterfaceFacts | None:
    """Returns the interface towards an IP address with all interfaces below it.

    None: no route, or a system with neither rtnetlink nor psutil.
    """
    try:
        toward = rtnetlink.in_own_zone(toward)
        address = rtnetlink.source_address(toward)
        if rtnetlink.FAMILY is None:
            return _psutil_facts(address)
        index = rtnetlink.outgoing_index(toward)
        links = rtnetlink.read_links()
    except (OSError, ValueError):
        return None
    link = next((each for each in links if each.index == index), None)
    return None if link is None else _facts(link, links, address, MOST_LEVELS)


def _psutil_facts(address: str) -> InterfaceFacts | None:
    try:
        from probes.system import psutil_counters
    except Exception:  # whatever a broken installation raises
        return None
    return psutil_counters.interface(address)


def counts(name: str) -> dict[str, int]:
    """Returns the lost packets, cable errors and pause frames of an interface and its ports.

    By the kernel's and the driver's names, each with its interface's in front: `eth0 rx_dropped`.
    Cheap enough for both ends of a measured window; empty where nothing is reported.
    """
    try:
        links = rtnetlink.read_links()
    except OSError:
        return {}
    totals: dict[str, int] = {}
    level = [each for each in links if each.name == name]
    for _ in range(MOST_LEVELS):
        for link in level:
            card_counts = {**link.counts, **ethtool.read_counts(link.name)}
            totals.update({f"{link.name} {key}": value for key, value in card_counts.items()})
        level = [port for link in level for port in _ports(link, links)]
    return totals


def growth(start: dict[str, int], end: dict[str, int]) -> dict[str, int]:
    """Returns the growth between two readings of counts(), without counters that ran backwards."""
    return {
        name: value - start[name] for name, value in end.items() if value > start.get(name, value)
    }


def _ports(link: Link, links: list[Link]) -> list[Link]:
    below = rtnetlink.lower(link, links)
    below.sort(key=lambda each: each.kind is not None)
    return below[:MOST_PORTS]


def _facts(link: Link, links: list[Link], address: str, levels: int) -> InterfaceFacts:
    folder = _folder(link)
    card = ethtool.read_card(link.name)
    agreed = card.negotiated
    rate, duplex = agreed.rate_bits_per_second, agreed.duplex
    if folder is not None:
        rate = rate or parse_rate(word(folder / "speed"))
        duplex = duplex or KNOWN_DUPLEX.get(word(folder / "duplex") or "")
    radio = folder is not None and is_visible(folder / "phy80211")
    on_usb = bus.read_usb(link.parent or str(folder / "device" if folder else ""))
    shape, shape_rate = _read_shaping(link)
    return InterfaceFacts(
        name=link.name,
        address=address,
        rate_bits_per_second=rate,
        duplex=duplex,
        mtu_bytes=link.mtu_bytes,
        driver=(_driver(folder) if folder is not None else None) or card.driver,
        virtual=_virtual(link, folder),
        kind="wifi" if radio else _kind(link, folder),
        lower=tuple(_facts(each, links, "", levels - 1) for each in _ports(link, links))
        if levels
        else (),
        vlan_id=link.vlan_id,
        bond_mode=link.bond_mode,
        autonegotiated=agreed.autonegotiated,
        able_bits_per_second=agreed.able_bits_per_second,
        partner_bits_per_second=agreed.partner_bits_per_second,
        **card.facts,
        counts={**link.counts, **card.counts},
        pcie=bus.read_pci(card.bus or ""),
        **(on_usb._asdict() if on_usb else {}),
        qdisc=shape,
        qdisc_rate_bytes_per_second=shape_rate,
        wifi=read_radio(link.name) if radio else {},
    )


def _folder(link: Link) -> Path | None:
    """Returns the interface's folder in /sys; None: /sys is another namespace's."""
    folder = CLASS / link.name
    return folder if word(folder / "ifindex") == str(link.index) else None


def _virtual(link: Link, folder: Path | None) -> bool | None:
    """Whether no device carries it; None: not visible."""
    if link.parent is not None:
        return False
    if folder is None:
        return True if link.kind is not None else None
    return not is_visible(folder / "device")


def _kind(link: Link, folder: Path | None) -> str | None:
    if link.kind is not None:
        return link.kind
    return "ethernet" if _virtual(link, folder) is False else None


def _read_shaping(link: Link) -> tuple[str | None, int | None]:
    try:
        kind, rate = rtnetlink.read_shaping(link.index)
    except OSError:
        return link.qdisc, None
    return kind or link.qdisc, rate


def parse_rate(speed: str | None) -> int | None:
    """Returns bits per second of sysfs's speed (Mbit/s); None: absent, or -1, or no link."""
    if speed is None or not speed.isdigit() or int(speed) in (0, 0xFFFFFFFF):
        return None
    return int(speed) * 1_000_000


def _driver(folder: Path) -> str | None:
    try:
        return os.readlink(folder / "device" / "driver").rpartition("/")[2]  # noqa: PTH115
    except OSError:
        return None


WIRELESS = Path("/proc/net/wireless")
IW_SECONDS = 1.0
_BITRATE = r"^\s*%s bitrate:\s*(\d+(?:\.\d+)?)\s*MBit/s"
_SIGNAL = re.compile(r"^\s*signal:\s*(-\d+)(?:\s*\[.*\])?\s*dBm", re.MULTILINE)

Radio = Dict[str, Any]
"""bits_per_second (to the access point), received_bits_per_second, signal_dbm; each if known."""


def read_radio(name: str) -> Radio:
    """Reads the radio link of an interface; empty: not reported. Takes a second at the most."""
    signal = parse_wireless(text(WIRELESS), name)
    radio: Radio = {} if signal is None else {"signal_dbm": signal}
    return {**radio, **parse_iw(tools.program_output(("iw", "dev", name, "link"), IW_SECONDS))}


def parse_iw(printed: str) -> Radio:
    """Parses the output of `iw dev NAME link`; empty: it is not connected."""
    radio: Radio = {}
    for name, way in (("bits_per_second", "tx"), ("received_bits_per_second", "rx")):
        match = re.search(_BITRATE % way, printed, re.MULTILINE)
        if match:
            radio[name] = round(float(match[1]) * 1e6)
    match = _SIGNAL.search(printed)
    if match:
        radio["signal_dbm"] = int(match[1])
    return radio


def parse_wireless(table: str, name: str) -> int | None:
    """Returns the signal in dBm of an interface in /proc/net/wireless; None: absent, or no dBm."""
    for line in table.splitlines():
        interface, colon, numbers = line.partition(":")
        fields = numbers.split()
        if colon and interface.strip() == name and len(fields) >= 3:
            try:
                level = round(float(fields[2].rstrip(".")))
            except ValueError:
                return None
            return level if -127 <= level < 0 else None
    return None
