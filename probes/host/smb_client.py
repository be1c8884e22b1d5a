"""Settings of the system's own SMB client, and its connections to a server.

Windows: cmdlets and the registry; macOS: smbutil(1) and nsmb.conf(5). Neither was at hand. Costs of
settings: Microsoft's "Performance tuning for file servers" and "Manage SMB Multichannel".
"""

from __future__ import annotations

import re
import socket
import sys
import time
from contextlib import suppress
from dataclasses import replace
from typing import Callable, Dict, Iterator, List, Optional

from probes.core.records import HostSetting
from probes.programs.costly_settings import costly_host, parse
from probes.system import tools
from probes.system.child import NoAnswer, call_until
from probes.system.platform import os
from probes.system.proc import text

Record = Dict[str, str]

READ_SECONDS, ANSWER_SECONDS = 6.0, 5.0
"""Limit of the whole reading, names of servers included; of one program."""
NSMB = ("/etc/nsmb.conf", "~/Library/Preferences/nsmb.conf")
OF_NSMB = re.compile(r"signing_required|protocol_vers_map|mc_\w+|dir_cache_\w+")
SHARE = ("SMB_VERSION", "SMB_CURR_SIGN_ALGORITHM", "SMB_CURR_ENCRYPT_ALGORITHM")
CHANNEL = ("ClientLinkSpeed", "ClientRSSCapable", "ClientRdmaCapable", "CurrentChannels")
ACTIVE = re.compile(r"\s\S+\s+\((\w+) *\).*\[session active *\]\s+(\S+)\s+\d+\s")
WIRED = re.compile(r"Client NIC:\s+name: \S+ idx: \d+, type: wired,.*state connected")
"""Lines of smbutil multichannel: interface's kind and server's address; a wired interface."""
WINDOWS = """
EnableBandwidthThrottling | yes | copies over a path with a long RTT are throttled | = $false
EnableLargeMtu | no | limits each read and write to 64 KiB | = $true
EnableMultiChannel | no | a copy uses only one connection, and therefore one core | = $true
ConnectionCountPerRssNetworkInterface | 1 | a copy uses only one connection per interface | = 4
RequireSecuritySignature | yes | every message is signed, which costs CPU on both hosts
    | keep it unless the network is trusted; = $false
DirectoryCacheLifetime | 0 | folders are listed anew each time, which costs small files | = 10
Dialect | 1.0 1.5 2.0.2 2.02 2.1 2.10 2.1.0 | without SMB 3 there is no AES and no multichannel
    | enable SMB 3 on the server
Signed | yes | every message is signed, which costs CPU on both hosts | keep it unless the network
    is trusted; the client or the server requires it
Encrypted | yes | every message is encrypted, which costs CPU on both hosts | keep it unless the
    network is trusted; a Windows server ends it by `Set-SmbShare -Name SHARE -EncryptData $false`
ClientLinkSpeed without RSS | 1000000001.. | at this rate in bit/s, one core receives all data,
    because the interface has no RSS | run `Enable-NetAdapterRss -Name *`, or use one with RSS
ClientLinkSpeed unused | 1.. | SMB prefers an interface with RSS to this faster one (bit/s) | run
    `Enable-NetAdapterRss -Name *`; `Get-SmbMultichannelConnection -IncludeNotSelected` lists them
"""
MACOS = """
signing_required | yes | every message is signed, which costs CPU on both hosts
    | keep it unless the network is trusted; = no
mc_on | no | a copy uses only one connection, and therefore one interface | = yes
dir_cache_off | yes | folders are listed anew each time, which costs small files | = no
SMB_VERSION | smb_1 smb_2.002 smb_2.1 | without SMB 3 there is no AES and no multichannel
    | enable SMB 3 on the server, and protocol_vers_map = 6 here
SMB_CURR_SIGN_ALGORITHM | aes_128_cmac aes_128_gmac | every message is signed, which costs CPU on
    both hosts | keep it unless the network is trusted
SMB_CURR_ENCRYPT_ALGORITHM | aes-128-ccm aes-128-gcm aes-256-ccm aes-256-gcm | every message is
    encrypted, which costs CPU on both hosts | keep it unless the network is trusted
wifi_beside_wired | yes | copies use Wi-Fi, although a wired interface is connected
    | set `mc_prefer_wired=yes` in /etc/nsmb.conf and mount the share again
"""
"""Tables like costly_settings.OPTIONS; `= X`: the command that sets it to X."""
CONFIGURATION = re.findall(r"(?m)^(\w+) .*= \S+$", WINDOWS) + ["RequireSecuritySignature"]


def costly(values: Record) -> Iterator[HostSetting]:
    """Yields the settings among read()'s values that cost the system's own client throughput."""
    for each in costly_host(WINDOWS + MACOS.lstrip(), values, tested=False):
        command = rf"run `Set-SmbClientConfiguration -{each.option} \1`"
        if each.option in MACOS:
            command = rf"set `{each.option}=\1` in /etc/nsmb.conf and mount the share again"
        yield replace(each, remedy=re.sub(r"= (\S+)$", command, each.remedy))


def read(toward: str) -> Optional[Record]:
    """Returns known values by the system's own names; None: neither Windows nor macOS.

    toward: IP address of the connections' server, or empty.
    """
    if sys.platform == "win32":
        from probes.system.windows.smb_client import cmdlets_output, registry

        values = _in_time(lambda: parse_cmdlets(cmdlets_output(ANSWER_SECONDS), toward))
        return {**registry(), **values}
    return _in_time(lambda: _macos_values(toward)) if sys.platform == "darwin" else None


def _in_time(work: Callable[[], Record]) -> Record:
    with suppress(NoAnswer):
        return call_until("SMB client", time.monotonic() + READ_SECONDS, work)
    return {}


def is_server(name: str, address: str) -> bool:
    """Whether a client's name of a server has that address."""
    with suppress(OSError, UnicodeError):
        addresses = socket.getaddrinfo(name.replace("._smb._tcp", ""), None) if name else []
        return address in [each[4][0] for each in addresses]
    return False


def parse_cmdlets(printed: str, toward: str) -> Record:
    """Returns values from several cmdlets' records, as Format-List prints them."""
    records = parse_records(printed)
    values: Record = {}
    for each in records:
        if "EnableLargeMtu" in each:
            values.update({name: each.get(name, "") for name in CONFIGURATION})
        if each.get("AutoTuningLevelEffective") == "Local":  # else a policy's applies
            values["AutoTuningLevelLocal"] = each.get("AutoTuningLevelLocal", "")
    connections = (each for each in records if "Dialect" in each)
    ours = next((each for each in connections if is_server(each.get("ServerName", ""), toward)), {})
    values.update({name: ours.get(name, "") for name in ("Dialect", "Signed", "Encrypted")})
    values.update(_channel(records, toward))
    return {name: value for name, value in values.items() if value}


def parse_records(printed: str) -> List[Record]:
    """Parses the `name : value` lines of Format-List; an empty line ends a record."""
    blocks = re.split(r"\n\s*\n", printed.replace("\r", ""))
    return [dict(re.findall(r"(?m)^(\w+) *: *(\S.*?)? *$", block)) for block in blocks]


def _channel(records: List[Record], toward: str) -> Record:
    """Returns values of the fastest interface in use to the server, and of a faster unused one."""
    pairs = [each for each in records if _speed(each)]
    names = [each.get("ServerName") for each in pairs if each.get("ServerIpAddress") == toward]
    ours = [each for each in pairs if each.get("ServerName") in names]
    best = max((each for each in ours if each.get("Selected") == "True"), key=_speed, default={})
    unused = (each for each in ours if each.get("Selected") == each.get("Failed") == "False")
    other = max(unused, key=_speed, default={})
    values = {name: best.get(name, "") for name in CHANNEL}
    if best.get("ClientRSSCapable") == best.get("ClientRdmaCapable") == "False":
        values["ClientLinkSpeed without RSS"] = best["ClientLinkSpeed"]
    if best and _speed(other) > _speed(best):
        values["ClientLinkSpeed unused"] = other["ClientLinkSpeed"]
    return values


def _speed(pair: Record) -> int:
    """Returns bits per second; 0: no record of a pair of interfaces."""
    return int(re.sub(r"\D.*", "", pair.get("ClientLinkSpeed", "")) or 0)


def _macos_values(toward: str) -> Record:
    shares = tools.program_output(("/usr/bin/smbutil", "statshares", "-a"), ANSWER_SECONDS)
    paths = tools.program_output(("/usr/bin/smbutil", "multichannel", "-a"), ANSWER_SECONDS)
    files = [text(os.path.expanduser(each)) for each in NSMB]  # noqa: PTH111
    return {**parse_nsmb(files, toward), **parse_smbutil(shares, paths, toward)}


def parse_nsmb(files: List[str], toward: str) -> Record:
    """Returns settings of all servers and of this one, without those that two files contradict."""
    settings: Record = {}
    for sections in map(parse, files):
        ours = (sections[each] for each in sections if each == "default" or is_server(each, toward))
        values = {key: value for section in ours for key, value in section.items()}
        settings.update({k: v if settings.get(k, v) == v else "" for k, v in values.items()})
    return {key: value for key, value in settings.items() if value and OF_NSMB.match(key)}


def parse_smbutil(shares: str, paths: str, toward: str) -> Record:
    """Parses the server's share in `statshares -a`, and its interfaces in `multichannel -a`."""
    # A share's name begins in the first column, its attributes do not.
    blocks = re.split(r"(?m)^(?=\S)", shares)
    records = (dict(re.findall(r"(?m)^ +(\w+) +(\S+) *$", each)) for each in blocks)
    share = next((e for e in records if is_server(e.get("SERVER_NAME", ""), toward)), {})
    values = {name: share[name] for name in SHARE if name in share}
    for session in paths.split("Session: ")[1:]:
        active = ACTIVE.findall(session)
        if toward in [address for _, address in active]:
            values["interfaces"] = " ".join(dict.fromkeys(kind for kind, _ in active))
            if values["interfaces"] == "wifi" and WIRED.search(session):
                values["wifi_beside_wired"] = "yes"
    return values
