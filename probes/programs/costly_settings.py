"""Values of smb.conf and of a host's own TCP that cost throughput, with reasons and remedies.

Sources: smb.conf(5) and the vfs_*(8) pages of Samba 4.17; for aio, sendfile and recvfile its
source3/smbd/smb2_read.c, smb2_write.c and aio.c. Documentation/networking/ip-sysctl.rst and
admin-guide/pm/cpufreq.rst; drivers/pci/pcie/aspm.c; IEEE 802.3az. xnu's bsd/netinet/tcp_sysctls.c
and tcp_subr.c, the defaults of macOS 13. Microsoft's article 948066 and "Performance tuning network
adapters" (Windows ignores TcpWindowSize). No Mac and no Windows was at hand: settings of those are
labelled untested.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from probes.core.records import HostSetting
from probes.system import tools
from probes.system.proc import text, word

Section = Dict[str, str]
Values = Mapping[str, str]

# if_required, the default, encrypts nothing by itself (smb.conf(5), server smb encrypt)
OPTIONS = """
socket options | fixed-buffers | all | a fixed socket buffer turns off the kernel's tuning and
    limits the data in flight per RTT | remove SO_SNDBUF and SO_RCVBUF from it
socket options | nagle | small-files | without TCP_NODELAY, a short reply waits until the client
    has acknowledged the previous one | = TCP_NODELAY
aio read size | 0 | read | smbd makes reads one after the other and answers nothing else on that
    connection while it waits for the disk | = 1
aio write size | 0 | write | smbd makes writes one after the other and answers nothing else on
    that connection while it waits for the disk | = 1
aio max threads | ..7 | all | at most this many reads and writes reach the disk at the same time
    | = 100
use sendfile | yes-and-no-aio | read | reads without signature and encryption use sendfile, and
    smbd answers nothing else on that connection while it waits for the disk | set `aio read size =
    1` or `use sendfile = no`, and measure both
min receivefile size | 1.. | write | longer writes without signature use recvfile, which cannot be
    asynchronous: smbd answers nothing else on that connection while it waits for the disk | set
    `min receivefile size = 0` (the default), and measure both
sync always | yes-and-strict-sync | write | smbd calls fsync after every write, so that the disk's
    synchronous writes set the rate | set `sync always = no` (the default; unflushed data is lost in
    a power cut)
strict sync | no | durability | smbd ignores the client's flush: data may be in the server's memory
    only, and a push can seem faster than the disk | = yes
strict allocate | yes | write | smbd allocates each file's blocks before it writes them, which is
    slow on file systems without unwritten extents (ZFS, ext3) | set `strict allocate = no` (the
    default) on such file systems
strict locking | yes | all | smbd checks for locks before each read and write | = auto
smb2 max read | ..1048575 | read | limits the size of a read, which needs more requests and more CPU
    per byte | = 8388608
smb2 max write | ..1048575 | write | limits the size of a write, which needs more requests and more
    CPU per byte | = 8388608
smb2 max trans | ..1048575 | small-files | limits the size of a directory listing, which needs more
    requests | = 8388608
smb2 max credits | ..511 | all | at most this many blocks of 64 KiB are in flight per connection,
    too few for a long RTT | = 8192
max mux | ..49 | smb1 | limits the SMB1 requests in flight | = 50
max xmit | ..16643 | smb1 | limits the size of SMB1 requests that are signed, and of all where large
    readwrite is off | = 16644
large readwrite | no | smb1 | limits SMB1 reads and writes to max xmit instead of 64 KiB and more
    | = yes
server max protocol | core coreplus lanman1 lanman2 nt1 smb1 smb2_02 | all | this dialect limits
    requests to 64 KiB and lacks what SMB 3 adds | = SMB3
server max protocol | smb2 smb2_10 | all | without SMB 3 there is no AES: signing with HMAC-SHA256
    costs more CPU, and encryption and multichannel are missing | = SMB3
server multi channel support | no | all | a client uses only one connection, and therefore one core
    of the server | set `server multi channel support = yes` (the default since 4.15)
server signing | required mandatory force forced enforced | all | every message is signed, which
    costs CPU on both hosts, most of all with SMB1 and SMB 2 | keep it unless the network is
    trusted; AES-GMAC of SMB 3.1.1 costs least
server smb encrypt | required mandatory force forced enforced desired | all | every message is
    encrypted, which costs CPU on both hosts | keep it unless the network is trusted; AES-128-GCM of
    SMB 3.1.1 costs least
server smb3 signing algorithms | first AES-128-GMAC | all | AES-128-GMAC is not the first choice for
    signing, and the others cost more CPU | put AES-128-GMAC first (the default)
server smb3 encryption algorithms | first AES-128-GCM | all | AES-128-GCM is not the first choice
    for encryption, and the others cost more CPU | put AES-128-GCM first (the default)
oplocks | no | small-files | clients cannot cache, so that each open, read and write costs an RTT
    | = yes
level2 oplocks | no | small-files | two clients that read the same file cannot cache it | = yes
kernel oplocks | yes | small-files | turns off leases and level 2 oplocks: clients cache less
    | set `kernel oplocks = no` (the default), unless local programs use the files too
smb2 leases | no | small-files | clients cache less: their cache of a file ends when they close it
    | = yes
case sensitive | no auto | small-files | creating a file in a large folder is slow, because smbd
    searches the folder for the name in other spellings | keep fewer files in one folder
hide unreadable | yes | small-files | smbd checks each file's permissions before it lists it | = no
hide unwriteable files | yes | small-files | smbd checks each file's permissions before it lists it
    | = no
stat cache | no | small-files | smbd looks up the spelling of each path again | = yes
getwd cache | no | small-files | smbd looks up the path of the current folder again | = yes
log level | level-3 | all | from level 3 on, smbd writes log lines for each request | set `log level
    = 1`
deadtime | 1..15 | small-files | a client that is idle for so few minutes without an open file has
    to log in again | = 10080
"""
"""Option, costly values, the copies it matters for, why, remedy (`= X`: that is its default).

Costly values: one of several words, a span of numbers, all but a first word of a list, or one of
CONDITIONS. A line that begins with blanks continues the previous one, in all tables."""
MODULES = """
aio_ratelimit | all | holds requests and bytes a second to a limit on purpose
acl_tdb | small-files | keeps ACLs in a database, and reads and checks them at each open
acl_xattr | small-files | keeps ACLs in extended attributes, and reads and checks them at each open
aio_fork | all | reads and writes in helper processes, which copies the data once more
audit | small-files | writes a line to syslog for each open, close, rename and deletion
cap | small-files | translates each name
catia | small-files | translates the characters of each name
ceph | all | stores the files in a Ceph cluster: each read and write crosses its network
commit | write | syncs to the disk repeatedly while a file is written
crossrename | small-files | makes a rename across file systems a copy, during which smbd answers
    nothing else
delay_inject | all | delays requests on purpose, for tests
dirsort | small-files | reads and sorts a whole folder before it lists it
expand_msdfs | small-files | looks up DFS links per client
extd_audit | small-files | writes lines to syslog and log for each open and close
fruit | small-files | keeps Apple's metadata and resource forks: more lookups at each open and in
    each listing
full_audit | all | writes a line to syslog for each operation that it is set to log
gluster_fuse | all | stores the files in a GlusterFS volume: requests cross its network
glusterfs | all | stores the files in a GlusterFS volume: requests cross its network
gpfs | all | stores the files, leases and ACLs in a GPFS cluster
media_harmony | small-files | gives each client its own copy of media index files
nfs4acl_xattr | small-files | keeps NFSv4 ACLs in extended attributes, and checks them at each open
posix_eadb | small-files | keeps extended attributes in a database beside the files
prealloc | write | allocates the blocks of files with certain endings before writing
readahead | read | asks the kernel to read ahead, beside the kernel's own read-ahead
recycle | small-files | makes a deletion a move into the recycle folder, so that space stays used
scannedonly | all | blocks files until a virus scanner has checked them
shadow_copy2 | small-files | searches each path for a snapshot's time stamp
snapper | small-files | searches each path for a snapshot's time stamp
streams_depot | small-files | keeps alternate streams in other files, which needs more lookups
streams_xattr | small-files | keeps alternate streams in extended attributes, which each open and
    listing reads
syncops | small-files | syncs the folder after each creation, rename and deletion
time_audit | all | measures the time of each operation
unityed_media | small-files | gives each client its own view of media folders
virusfilter | small-files | lets a virus scanner read each file at open or close
worm | small-files | checks the age of each file before a write
xattr_tdb | small-files | keeps extended attributes in a database
zfsacl | small-files | reads and checks ZFS's ACLs at each open
"""
"""VFS modules, the copies they matter for and their work for each request; others are ignored."""
TCP_OF_LINUX = """
net.ipv4.tcp_window_scaling | 0 | limits the TCP window of each connection to 64 KiB
    | set it to 1
net.ipv4.tcp_sack | 0 | after packet loss, TCP retransmits data that had arrived | set it to 1
net.ipv4.tcp_moderate_rcvbuf | 0 | the receive window does not grow with the path | set it to 1
net.ipv4.tcp_rmem | third-small | its third value limits the receive window
    | raise that to 6291456 (the default) or to the bandwidth times the RTT
net.ipv4.tcp_wmem | third-small | its third value limits the send buffer
    | raise that to 4194304 (the default) or to the bandwidth times the RTT
"""
TCP_OF_MACOS = """
net.inet.tcp.doautorcvbuf | 0 | the receive window does not grow with the path | set it to 1
net.inet.tcp.doautosndbuf | 0 | the send buffer does not grow with the path | set it to 1
net.inet.tcp.autorcvbufmax | ..1048575 | limits the receive window
    | set it to 4194304 (the default)
net.inet.tcp.autosndbufmax | ..1048575 | limits the send buffer
    | set it to 4194304 (the default)
kern.ipc.maxsockbuf | ..1048575 | limits the buffer of every socket
    | set it to 4194304 (the default)
net.inet.tcp.rfc1323 | 0 | limits the TCP window of each connection to 64 KiB | set it to 1
net.inet.tcp.sack | 0 | after packet loss, TCP retransmits data that had arrived | set it to 1
net.inet.tcp.delayed_ack | 3 | acknowledgements wait up to 0.1 s for a sender with Nagle's
    algorithm | set it to 0
"""
TCP_OF_WINDOWS = r"""
AutoTuningLevelLocal | disabled restricted highlyrestricted | the receive window does not grow with
    the path | run `netsh int tcp set global autotuninglevel=normal`
NetworkThrottlingIndex | 1..70 | while a program plays sound or video, Windows handles only so many
    packets per millisecond (10 are about 15 MB/s) | run `reg add "HKLM\SOFTWARE\Microsoft\Windows
    NT\CurrentVersion\Multimedia\SystemProfile" /v NetworkThrottlingIndex /t REG_DWORD /d 0xffffffff
    /f` and restart Windows
TcpWindowSize | 1.. | Windows has ignored it since Vista: the receive window grows with the path by
    itself | remove it, and expect no gain from it
Tcp1323Opts | 0 2 | turns window scaling off, which limits the TCP window of each connection to 64
    KiB | remove it and restart Windows
"""
POWER_OF_LINUX = """
CPU frequency governor | powersave userspace | the clock does not rise with the load of
    a copy | run cpupower frequency-set -g performance (or schedutil)
PCI Express power policy | powersave powersupersave | links of cards sleep between transfers (ASPM),
    and each wake-up delays packets | echo performance > /sys/module/pcie_aspm/parameters/policy,
    and measure both
Energy-Efficient Ethernet | yes | the link sleeps between packets, and some switches lose the first
    ones | run ethtool --set-eee on the interface with `eee off`, and measure both
"""
OWN_CLOCKS = ("intel_pstate", "amd-pstate-epp")
"""Drivers whose `powersave` lets the clock rise under load."""
SMALL_BYTES = 1 << 20
"""Window that limits a copy at 1 Gbit/s from a round trip of 8 ms on."""
ANSWER_SECONDS = 10.0
SYSCTL = ("sysctl", "net.inet.tcp", "kern.ipc.maxsockbuf")


def tcp_settings(client: Values) -> Tuple[HostSetting, ...]:
    """Returns this host's TCP settings that cost throughput; client: values of smb_client.read."""
    if sys.platform == "win32":
        return costly_host(TCP_OF_WINDOWS, client, tested=False)
    if sys.platform == "darwin":
        values = parse_sysctl(tools.program_output(SYSCTL, ANSWER_SECONDS))
        return costly_host(TCP_OF_MACOS, values, tested=False)
    return costly_host(TCP_OF_LINUX, {name: sysctl(name) for name, *_ in _rows(TCP_OF_LINUX)})


def power_settings(link_sleeps: bool, sys_folder: Path = Path("/sys")) -> Tuple[HostSetting, ...]:
    """Returns this host's settings that save power and cost throughput.

    link_sleeps: whether Energy-Efficient Ethernet is active on the copy's interface.
    """
    policy = sys_folder / "devices/system/cpu/cpufreq/policy0"
    has_own_clock = word(policy / "scaling_driver") in OWN_CLOCKS
    governor = "" if has_own_clock else word(policy / "scaling_governor") or ""
    states = word(sys_folder / "module/pcie_aspm/parameters/policy") or ""
    aspm = re.search(r"\[(\w+)\]", states)
    values = (governor, aspm[1] if aspm else "", "yes" if link_sleeps else "")
    names = (name for name, *_ in _rows(POWER_OF_LINUX))
    return costly_host(POWER_OF_LINUX, dict(zip(names, values)))


def costly_host(table: str, values: Values, tested: bool = True) -> Tuple[HostSetting, ...]:
    """Returns a table's settings that cost throughput; values by name, empty: unknown."""
    return tuple(
        HostSetting(name, values[name], why, remedy, tested)
        for name, when, why, remedy in _rows(table)
        if values.get(name) and _costs(when, values[name], values)
    )


def sysctl(name: str) -> str:
    """Reads a sysctl of Linux by its name; empty: there is none."""
    return " ".join(text("/proc/sys/" + name.replace(".", "/")).split())


def parse_sysctl(printed: str) -> Dict[str, str]:
    """Parses the `name: value` lines of macOS's sysctl."""
    pairs = (line.partition(":") for line in printed.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


@dataclass(frozen=True)
class Costly:
    """One setting that costs something."""

    option: str
    value: str
    share: Optional[str]
    """Share whose section sets it; None: it holds for all shares."""
    matters_for: str
    """Copies that it matters for: all, read, write, small-files, smb1, durability."""
    why: str
    remedy: str


def parse(printed: str) -> Dict[str, Section]:
    """Returns the sections in the output of `testparm -s`, by name; [global] is "global"."""
    sections: Dict[str, Section] = {}
    current: Section = {}
    for line in map(str.strip, printed.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            current = sections.setdefault(line[1:-1], {})
        elif "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            current[name.strip().lower()] = value.strip()
    return sections


def costly(sections: Mapping[str, Section], share: str = "") -> List[Costly]:
    """Returns the settings in [global] and in the share's section that cost throughput.

    share: a share's name in any case; without a section of its own it may be [homes]'s. "": all
    shares.
    """
    everywhere = sections.get("global", {})
    shares = {name: section for name, section in sections.items() if name != "global"}
    if share:
        spellings = {name.lower(): name for name in shares}
        name = spellings.get(share.lower(), spellings.get("homes"))
        shares = {name: shares[name]} if name else {}
    in_all = list(_find_costly(everywhere))
    settings = [] if share and shares else list(in_all)
    for name, section in shares.items():
        for each in _find_costly({**everywhere, **section}):
            setting = each if each in in_all else replace(each, share=name)
            if setting not in settings:
                settings.append(setting)
    return settings


def _find_costly(values: Values) -> Iterator[Costly]:
    for option, when, matters_for, why, remedy in _rows(OPTIONS):
        value = values.get(option)
        if value is not None and _costs(when, value, values):
            usual = f"set `{option} {remedy}` (the default)" if remedy.startswith("= ") else remedy
            yield Costly(option, value, None, matters_for, why, usual)
    modules = {name: row for name, *row in _rows(MODULES)}
    for module in values.get("vfs objects", "").replace(",", " ").split():
        row = modules.get(module.partition(":")[0].rpartition("/")[2])
        if row is not None:
            remedy = "remove it from `vfs objects` if it is not needed, and measure again"
            yield Costly("vfs objects", module, None, row[0], row[1], remedy)


def _rows(table: str) -> Iterator[List[str]]:
    return (row.split(" | ") for row in re.sub(r"\n +", " ", table).strip().split("\n"))


def _costs(when: str, value: str, values: Values) -> bool:
    if when in CONDITIONS:
        return CONDITIONS[when](value, values)
    span = re.fullmatch(r"(\d*)\.\.(\d*)", when)
    if span:
        number = _number(value)
        low, high = float(span[1] or "-inf"), float(span[2] or "inf")
        return number is not None and low <= number <= high
    if when.startswith("first "):
        return value.replace(",", " ").split()[:1] not in ([when.partition(" ")[2]], [])
    return any(value.lower() in SPELLINGS.get(each, each).split() for each in when.split())


SPELLINGS = {"yes": "yes true 1 on", "no": "no false 0 off"}


def _nagle(value: str, _: Values) -> bool:
    match = re.search(r"\bTCP_NODELAY\b(\s*=\s*(\d+))?", value, re.IGNORECASE)
    return match is None or match[2] == "0"


def _third_is_small(value: str, _: Values) -> bool:
    numbers = value.split()
    return len(numbers) == 3 and numbers[2].isdigit() and int(numbers[2]) < SMALL_BYTES


CONDITIONS: Dict[str, Callable[[str, Values], bool]] = {
    "fixed-buffers": lambda value, _: bool(re.search(r"(?i)\bSO_(SND|RCV)BUF\b", value)),
    "nagle": _nagle,
    "level-3": lambda value, _: any(
        int(level) >= 3 for level in re.findall(r"(?:^|[\s:])(\d+)(?=\s|@|$)", value)
    ),
    "third-small": _third_is_small,
    "yes-and-strict-sync": lambda value, values: (
        _costs("yes", value, values) and not _costs("no", values.get("strict sync", ""), values)
    ),
    # with asynchronous reads smbd never uses it
    "yes-and-no-aio": lambda value, values: (
        _costs("yes", value, values) and values.get("aio read size") == "0"
    ),
}


def _number(value: str) -> Optional[int]:
    try:
        return int(value, 0)
    except ValueError:
        return None
