"""The records that all parts exchange: frozen, typed; bytes, seconds and ratios only.

Runs on Python 3.9 with the standard library alone: it travels to the other host.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from probes.core.field_types import ANY, Handed, Number, Port, Text

SIDES = ("client", "server")
"""The two hosts of a copy; initiator and responder are roles, these are places."""

DIALECTS = ("smb1", "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1")
"""Dialects of SMB, oldest first."""

DROPS = "full-size packets are dropped"
"""Beginning of the reason for which a step is skipped on a path that has a black hole."""

Details = Dict[str, Any]
"""Findings of one stage; plain JSON values, units in the names."""


@dataclass(frozen=True)
class Sample:
    """Payload that had arrived at one moment of a run."""

    elapsed_seconds: float
    """Time since the run began, by one monotonic clock."""
    moved_bytes: int
    """Cumulative payload; the last sample of a run is confirmed by the receiver."""


Run = Tuple[Sample, ...]
"""One pass over the same work; its first sample is (0.0, 0)."""


class Moved(NamedTuple):
    """Payload, and the time that it took."""

    moved_bytes: int
    seconds: float

    @property
    def bytes_per_second(self) -> float:
        """Rate over that time."""
        return self.moved_bytes / self.seconds


def run_rate(run: Run) -> float:
    """Returns the bytes per second of one run, from its first sample to its last."""
    first, last = run[0], run[-1]
    elapsed = last.elapsed_seconds - first.elapsed_seconds
    if elapsed <= 0:
        raise ValueError("a run without duration has no rate")
    return (last.moved_bytes - first.moved_bytes) / elapsed


@dataclass(frozen=True)
class Usage:
    """Use of a host's resources between two moments; None where the system does not report it."""

    wall_seconds: float
    core_busy_ratios: Tuple[float, ...]
    """Busy share of each core that the copy's processes may use (cpuset and affinity honoured)."""
    busiest_core_ratio: float
    """Highest of core_busy_ratios."""
    softirq_ratio: float
    """Interrupt time, as a share of those cores."""
    steal_ratio: float
    """Time that the hypervisor gave to somebody else, as a share of those cores."""
    copy_cpu_seconds: float
    """CPU time of the processes that carry the copy: the agent's children and the file server."""
    busiest_process_ratio: float
    """CPU time of the busiest single one of them over the wall time; 1.0 is a core of its own."""
    other_cpu_seconds: float
    """CPU time on those cores that belongs neither to the copy nor to interrupts."""
    quota_cores: Optional[float]
    """CPU limit of the cgroup of the copy's processes, in cores; None: no limit known."""
    throttled_ratio: Optional[float]
    """Share of the quota's periods in which the copy's processes were stopped by it; 0.0 where
    none is set; None: whether one is set cannot be seen."""
    run_delay_seconds: Optional[float]
    """Time that the copy's processes were ready to run and were not let (/proc/PID/schedstat)."""
    memory_total_bytes: Optional[int]
    """RAM, or the container's limit where that is lower."""
    memory_used_bytes: Optional[int]
    """In use without the page cache, at the end."""
    memory_dirty_bytes: Optional[int]
    """Dirty and under write-back, at the end."""
    interface_sent_bytes: Optional[int]
    """Sent in the window by the interface towards the peer, headers included."""
    interface_received_bytes: Optional[int]
    """Received in the window by the same interface."""
    device_read_bytes: Optional[int]
    """Read in the window from the device under the folder, by anybody."""
    device_written_bytes: Optional[int]
    """Written in the window to that device, by anybody."""
    device_busy_ratio: Optional[float]
    """Share of the window in which that device had I/O in flight (diskstats field 10)."""
    memory_dirty_limit_bytes: Optional[int] = None
    """Least unwritten data at the end at which a writer to the device waits for the disk."""
    swapped_in_bytes: Optional[int] = None
    """Read back from swap in the window, by anybody."""
    swapped_out_bytes: Optional[int] = None
    """Written to swap in the window, by anybody."""
    memory_waiting_ratio: Optional[float] = None
    """Share of the window in which at least one task of the host waited for memory."""
    io_waiting_ratio: Optional[float] = None
    """Share of the window in which a task waited for I/O, or was throttled at the dirty limit."""
    quota_file: Optional[str] = None
    """The file of the cgroup that sets quota_cores."""
    memory_cached_growth_bytes: Optional[int] = None
    """Growth of the page cache in the window; 0: it did not grow."""


@dataclass(frozen=True)
class Measured:
    """A stage that was measured, one or more times."""

    runs: Tuple[Run, ...]
    initiator: Usage
    """The initiator's host over the median run."""
    responder: Optional[Usage]
    """The other host over the same time; None: no agent there, or the stage has one end."""
    details: Details = field(default_factory=dict)


@dataclass(frozen=True)
class Skipped:
    """A stage that cannot be tried here."""

    reason: str


@dataclass(frozen=True)
class Failed:
    """A stage that was tried and broke, with its samples until then."""

    error: str
    samples: Run = ()


Outcome = Union[Measured, Skipped, Failed]


@dataclass(frozen=True)
class Spread:
    """Rates of a stage's runs, bytes per second."""

    median: float
    low: float
    high: float
    runs: int


LEAST_TO_TRIM = 4
"""Least number of runs whose spread leaves out those farthest from the median."""


def window_rates(samples: Sequence[Sample], windows: int = 3, last: int = -2) -> List[float]:
    """Returns bytes per second of consecutive parts of one transfer; none where it was too short.

    last: index of the sample that ends the last part; the final one is a Last and cuts its part
    short.
    """
    if len(samples) < 3 * windows:
        return []
    size = len(samples) // windows
    edges = [*(samples[i * size] for i in range(windows)), samples[last]]
    return [
        (b.moved_bytes - a.moved_bytes) / (b.elapsed_seconds - a.elapsed_seconds)
        for a, b in zip(edges, edges[1:])
        if b.elapsed_seconds > a.elapsed_seconds
    ]


def rates(outcome: Measured) -> Spread:
    """Returns the median, lowest and highest rate of the runs.

    `details["window_rates_bytes_per_second"]` holds the rates of consecutive windows of one run:
    they are the spread of a single run, without those in which nothing came: a slow device or a
    long path moves large blocks. Of four or more runs the quarter that is farthest from the
    median is left out of low and high: another load came and went.
    """
    per_run = [run_rate(run) for run in outcome.runs]
    value = outcome.details.get("window_rates_bytes_per_second")
    windows = [rate for rate in value if _is_rate(rate)] if isinstance(value, (list, tuple)) else []
    around = per_run if len(per_run) > 1 or not windows else [per_run[0], *windows]
    # Loaded where it is used: each start of the program would take 4 ms for it.
    from statistics import median as median_of

    median = median_of(per_run)
    if len(per_run) >= LEAST_TO_TRIM:
        around = sorted(per_run, key=lambda rate: abs(rate - median))[
            : len(per_run) - len(per_run) // 4
        ]
    return Spread(median, min(around), max(around), len(per_run))


def _is_rate(value: Any) -> bool:
    """Whether a value of details, which may come from anybody, is a rate."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 < value < float("inf")


@dataclass(frozen=True)
class FolderFacts:
    """A folder that copies are read from or written to, and what it lies on."""

    path: str
    filesystem: Optional[str]
    """Type as the kernel names it: ext4, xfs, tmpfs, fuse.sshfs ..."""
    mount_options: Optional[str]
    device: Optional[str]
    """Block device's kernel name; None: no block device below."""
    rotational: Optional[bool]
    total_bytes: Optional[int]
    free_bytes: Optional[int]
    """Free bytes that this user may use."""
    layers: Tuple[Details, ...] = ()
    """Layers below the folder, top first (probes/files/layers.py): file system, RAID, disk ..."""


@dataclass(frozen=True)
class InterfaceFacts:
    """The network interface that packets to the peer leave by."""

    name: str
    address: str
    rate_bits_per_second: Optional[int]
    """Rate that the driver claims; None for virtual interfaces that claim nothing."""
    duplex: Optional[str]
    mtu_bytes: Optional[int]
    driver: Optional[str]
    virtual: Optional[bool]
    kind: Optional[str] = None
    """ethernet, wifi, loopback, or as ip-link(8) names it: bond, vlan, bridge, veth, wireguard,
    tun, tap, macvlan ..."""
    lower: Tuple[InterfaceFacts, ...] = ()
    """Interfaces right below: a VLAN's real interface, the ports of a bond or a bridge."""
    vlan_id: Optional[int] = None
    bond_mode: Optional[str] = None
    """balance-rr, active-backup, 802.3ad ..."""
    autonegotiated: Optional[bool] = None
    able_bits_per_second: Optional[int] = None
    """Highest rate of the card."""
    partner_bits_per_second: Optional[int] = None
    """Highest rate that the other end of the cable offered in the negotiation."""
    pause: Dict[str, bool] = field(default_factory=dict)
    """Flow control (IEEE 802.3x): autonegotiated, receives, sends."""
    offloads: Dict[str, bool] = field(default_factory=dict)
    """tcp_segmentation, generic_segmentation, generic_receive, large_receive, checksums ..."""
    counts: Dict[str, int] = field(default_factory=dict)
    """Counters since the interface came up, by the kernel's and the driver's names: lost packets,
    errors of the cable, pause frames."""
    pcie: Dict[str, float] = field(default_factory=dict)
    """lanes, transfers_per_second of each, bytes_per_second in sum after coding; with able_ those
    that the card supports; empty: not on PCI Express."""
    usb_bits_per_second: Optional[int] = None
    """Rate of the USB link that the adapter is on; None: not on USB."""
    usb_version: Optional[str] = None
    """Version in the adapter's descriptor: 2.00, 2.10 (USB 3 device at a USB 2 port), 3.00 ..."""
    qdisc: Optional[str] = None
    qdisc_rate_bytes_per_second: Optional[int] = None
    """Rate to which this host shapes outgoing packets, headers included; None: no shaping."""
    wifi: Details = field(default_factory=dict)
    """bits_per_second to the access point, received_bits_per_second, signal_dbm (below zero)."""


@dataclass(frozen=True)
class HostSetting:
    """A setting of a host that costs throughput."""

    option: str
    value: str
    why: str
    remedy: str
    tested: bool = True
    """False: its parser was never tried on a host of that system."""


@dataclass(frozen=True)
class HostFacts:
    """State of a host before the first stage."""

    name: str
    system: str
    """Kernel name and release."""
    distribution: Optional[str]
    python: str
    cores: int
    """Cores that this process may use (cpuset and affinity honoured)."""
    quota_cores: Optional[float]
    memory_total_bytes: Optional[int]
    """RAM, or the container's limit where that is lower."""
    virtual: Optional[str]
    """Hypervisor or container technology; None: none seen."""
    privileged: bool
    """Whether the agent runs as root."""
    interface: Optional[InterfaceFacts]
    congestion_control: Optional[str]
    socket_buffers: Dict[str, str]
    """net.core.[rw]mem_max and net.ipv4.tcp_[rw]mem, as the kernel prints them."""
    folder: Optional[FolderFacts]
    tools: Dict[str, str]
    """Versions of the foreign programs found: fio, ssh, smbd ..."""
    tcp_settings: Tuple[HostSetting, ...] = ()
    """TCP settings that cost throughput."""
    disk_settings: Tuple[HostSetting, ...] = ()
    """States of the layers below the folder that cost throughput: forced writes, a slow bus ..."""
    smb_client: Dict[str, str] = field(default_factory=dict)
    """Settings of the system's own SMB client, by its names: dialect, signing ..."""
    smb_settings: Tuple[HostSetting, ...] = ()
    """Settings of the system's own SMB client that cost its copies throughput."""


@dataclass(frozen=True)
class Access:
    """Login at the share. Never in a report: no repr, no wire form but the agent's pipe."""

    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    domain: str = field(default="", repr=False)
    allow_guest: bool = False

    def __repr__(self) -> str:
        return "***"


SMB_PORT = 445
SMB_PORTS = (SMB_PORT, 139)
"""Ports of SMB over TCP itself, and over NetBIOS."""
OWN_COPIES = ("pull.cached", "pull.uncached", "push.cached", "push.uncached")
"""Copies of one file that a user at the client makes; cached or not: the state at the sender."""
FILE_COPY = "file"
"""Name of the copy of a user's file, for `--copy`."""


@dataclass(frozen=True)
class Endpoint:
    """Place at which a responder waits, for this session alone; never part of a report."""

    host: Text = ""
    port: Port = 0
    nonce: Text = field(default="", repr=False)
    share: Text = ""
    folder: Text = ""
    """Folder on the share, backslashes, no leading one; or a path on this host, by stage."""
    path: Handed = ""
    """A file on the initiator's own host (a nameless one through /proc/PID/fd/N)."""
    step_seconds: Number = 0.0
    """Limit of each step of a session there, whose disks may sleep; 0: the usual one."""
    access: Annotated[Optional[Access], ANY] = field(default=None, repr=False)
    facts: Annotated[Details, ANY] = field(default_factory=dict)
    """Findings made while it was opened."""
