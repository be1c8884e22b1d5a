"""What in a Windows host's network settings costs throughput, from what its own programs print.

Parsed from recorded text: no Windows host was at hand, and what is told is labelled untested.
Sources: `netsh interface tcp show global`; Microsoft KB 948066 (NetworkThrottlingIndex);
learn.microsoft.com "Performance Tuning Network Adapters" (auto-tuning levels, registry entries
that Windows Vista and later ignore).
"""

from __future__ import annotations

import re
from typing import Dict, Iterator, Tuple

from probes.host import tools
from probes.records import HostSetting

ANSWER_SECONDS = 10.0
THROTTLE_OFF = 0xFFFFFFFF
USUAL_RESERVED_RATIO = 0.2
_PROFILE = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Multimedia\SystemProfile"
_PARAMETERS = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters"
COMMANDS = {
    "netsh": ("netsh", "interface", "tcp", "show", "global"),
    "profile": ("reg", "query", _PROFILE),
    "parameters": ("reg", "query", _PARAMETERS),
}
_LEVELS = {
    "disabled": "the receive window stays at 64 KiB",
    "highlyrestricted": "the receive window hardly grows beyond 64 KiB",
    "restricted": "the receive window's growth is held back",
}
IGNORED = ("TcpWindowSize", "GlobalMaxTcpWindowSize", "ForwardBufferMemory", "NumForwardPackets")
"""Of Windows XP and Server 2003."""


def read() -> Tuple[HostSetting, ...]:
    """This host's costly settings."""
    texts = {name: tools.printed(command, ANSWER_SECONDS) for name, command in COMMANDS.items()}
    return costly(
        parse_global(texts["netsh"]),
        parse_registry(texts["profile"]),
        parse_registry(texts["parameters"]),
    )


def parse_global(text: str) -> Dict[str, str]:
    """The lines `name : value` of netsh, both in lower case, with single blanks."""
    found = {}
    for line in text.splitlines():
        name, colon, value = line.partition(" : ")
        if colon:
            found[" ".join(name.lower().split())] = value.strip().lower()
    return found


def parse_registry(text: str) -> Dict[str, int]:
    """The REG_DWORD values that `reg query` prints, by name."""
    pattern = r"^\s+(\S+)\s+REG_DWORD\s+0x([0-9a-fA-F]+)\s*$"
    return {name: int(value, 16) for name, value in re.findall(pattern, text, re.MULTILINE)}


def costly(
    tcp: Dict[str, str], profile: Dict[str, int], parameters: Dict[str, int]
) -> Tuple[HostSetting, ...]:
    """What costs throughput, and what somebody once set that does nothing any more."""
    return (*_of_netsh(tcp), *_of_profile(profile), *_of_parameters(parameters))


def _setting(option: str, value: str, why: str, remedy: str) -> HostSetting:
    return HostSetting(option, value, why, remedy, tested=False)


def _of_netsh(tcp: Dict[str, str]) -> Iterator[HostSetting]:
    level = tcp.get("receive window auto-tuning level", "")
    if level in _LEVELS:
        yield _setting(
            "Receive Window Auto-Tuning Level",
            level,
            f"{_LEVELS[level]}: a longer path than a LAN's cannot be filled by pulls",
            "netsh interface tcp set global autotuninglevel=normal",
        )
    if tcp.get("receive-side scaling state") == "disabled":
        yield _setting(
            "Receive-Side Scaling State",
            "disabled",
            "one core takes all packets: the cap from some gigabits a second on",
            "netsh interface tcp set global rss=enabled",
        )


def _of_profile(profile: Dict[str, int]) -> Iterator[HostSetting]:
    index = profile.get("NetworkThrottlingIndex")
    if index is not None and index != THROTTLE_OFF:
        packets = index * 1000
        yield _setting(
            "NetworkThrottlingIndex",
            str(index),
            f"while anything plays sound or video, {packets} packets a second are taken, "
            f"about {packets * 1460 / 1e6:.0f} MB/s at the usual MTU",
            "ffffffff (hex) lifts it; stop what plays, to see whether it matters",
        )
    reserved = profile.get("SystemResponsiveness")
    if reserved is not None and reserved / 100 > USUAL_RESERVED_RATIO:
        yield _setting(
            "SystemResponsiveness",
            str(reserved),
            "that share (%) of the CPU is kept from what plays, not given to the network: "
            "raising it gains no throughput",
            "20 is the default",
        )


def _of_parameters(parameters: Dict[str, int]) -> Iterator[HostSetting]:
    options = parameters.get("Tcp1323Opts")
    if options is not None:
        yield _setting(
            "Tcp1323Opts",
            str(options),
            "since Windows Vista it rules the time stamps alone (12 bytes of each packet), "
            "the window's scaling follows the auto-tuning level",
            "remove it",
        )
    for name in IGNORED:
        if name in parameters:
            yield _setting(
                name,
                str(parameters[name]),
                "ignored since Windows Vista, where windows tune themselves: it explains nothing",
                "remove it",
            )
