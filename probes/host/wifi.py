"""A radio link: the rate that it runs at and the signal, from `iw` and /proc/net/wireless.

Source: iw's link.c and station.c; net/wireless/wext-proc.c. A level below 0 is dBm; one from 0 on
is a driver's own scale.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict

from probes.host import tools

WIRELESS = Path("/proc/net/wireless")
IW_SECONDS = 1.0
_RATE = r"^\s*%s bitrate:\s*(\d+(?:\.\d+)?)\s*MBit/s"
_SIGNAL = re.compile(r"^\s*signal:\s*(-\d+)(?:\s*\[.*\])?\s*dBm", re.MULTILINE)

Radio = Dict[str, Any]
"""bits_per_second (to the access point), received_bits_per_second, signal_dbm; each if told."""


def read_radio(name: str) -> Radio:
    """The radio link of an interface now; empty: nothing told it. Takes a second at the most."""
    try:
        signal = parse_wireless(WIRELESS.read_text(encoding="ascii", errors="replace"), name)
    except OSError:
        signal = None
    found: Radio = {} if signal is None else {"signal_dbm": signal}
    return {**found, **parse_iw(_iw(name))}


def parse_iw(text: str) -> Radio:
    """What `iw dev NAME link` prints; empty: it is not connected."""
    found: Radio = {}
    for name, word in (("bits_per_second", "tx"), ("received_bits_per_second", "rx")):
        match = re.search(_RATE % word, text, re.MULTILINE)
        if match:
            found[name] = round(float(match[1]) * 1e6)
    match = _SIGNAL.search(text)
    if match:
        found["signal_dbm"] = int(match[1])
    return found


def parse_wireless(text: str, name: str) -> int | None:
    """Signal in dBm of an interface in /proc/net/wireless; None: not in it, or no dBm."""
    for line in text.splitlines():
        interface, colon, numbers = line.partition(":")
        fields = numbers.split()
        if colon and interface.strip() == name and len(fields) >= 3:
            try:
                level = round(float(fields[2].rstrip(".")))
            except ValueError:
                return None
            return level if -127 <= level < 0 else None
    return None


def _iw(name: str) -> str:
    """What iw tells; empty: it is not installed, fails or takes too long."""
    program = tools.find("iw")
    return tools.printed([program, "dev", name, "link"], IW_SECONDS) if program else ""
