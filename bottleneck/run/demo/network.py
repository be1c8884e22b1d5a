"""Network namespaces and the link between them, which end with their processes.

An ordinary user creates them in a user namespace that maps only the user's own ids: processes there
have no rights beyond the user's. Source: unshare(2), user_namespaces(7),
rtnetlink(7), veth(4), tc-tbf(8), packet(7); include/uapi/linux/if_link.h, veth.h, pkt_sched.h,
if_packet.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import socket
import struct
import time
from collections import deque
from pathlib import Path

from probes.system.forked import PR_SET_DUMPABLE
from probes.system.rtnetlink import ATTRIBUTE, HEADER, NLM_F_REQUEST, NLMSG_ERROR

NEWUSER, NEWNET = 0x10000000, 0x40000000
"""CLONE_NEWUSER, CLONE_NEWNET (sched.h)."""
LINK = "eth0"
QUEUE_SECONDS, BURST_SECONDS, LEAST_BURST_BYTES = 0.02, 0.001, 16384
_libc = ctypes.CDLL(None, use_errno=True)

_NLM_F_ACK, _CREATE = 0x004, 0x600  # NLM_F_CREATE | NLM_F_EXCL
_NEWLINK, _NEWADDR, _NEWQDISC = 16, 20, 36
_IFINFO, _IFADDR, _TC = map(struct.Struct, ("=BxHiII", "=BBBBi", "=BxxxiIII"))
_IFNAME, _LINKINFO, _NETNS_PID, _INFO_KIND, _INFO_DATA, _VETH_PEER = 3, 18, 19, 1, 2, 1
_IFF_UP, _IFA_LOCAL, _IFA_ADDRESS = 1, 2, 1
_TC_KIND, _TC_OPTIONS, _TBF_PARMS, _TBF_BURST, _TC_ROOT = 1, 2, 1, 6, 0xFFFFFFFF
_RATE, _ETHERNET = struct.Struct("=BBHhHI"), 1
ENDS = "near", "far"
_ALL, _SOL_PACKET, _VNET_HDR, _OUTGOING = 0x0003, 263, 15, 4
_LONGEST_BYTES = 10 + 14 + 65536


def isolate() -> None:
    """Moves this process into an empty network namespace.

    Errors: OSError, also for the user nobody, whose id is that of unmapped users.
    """
    user, group = os.geteuid(), os.getegid()
    if user and user == int(Path("/proc/sys/kernel/overflowuid").read_text()):
        raise PermissionError(errno.EPERM, "user namespaces do not suit the user nobody")
    _call(_libc.unshare(NEWNET | (NEWUSER if user else 0)))
    if user:
        # /proc/self of a process that is not dumpable belongs to root (proc(5)).
        _libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        _libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    set_up("lo")


def send_without_pacing() -> None:
    """Selects Reno, so that the windows limit this namespace; BBR would stay below them."""
    with contextlib.suppress(OSError):  # a kernel without a choice
        Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text("reno")


def join(one: tuple[str, int], other: tuple[str, int]) -> None:
    """Creates a link; each end is its name and a process in its namespace."""
    data = _attribute(_VETH_PEER, _end(*other))
    veth = _attribute(_INFO_KIND, b"veth") + _attribute(_INFO_DATA, data)
    _request(_NEWLINK, _end(*one) + _attribute(_LINKINFO, veth), _CREATE)


def set_up(name: str, address: str = "", bits_per_second: int | None = None) -> None:
    """Brings an interface of this namespace up, with an address of a /24 and a shaped rate."""
    index = socket.if_nametoindex(name)
    if address:
        packed = socket.inet_aton(address)
        body = _IFADDR.pack(socket.AF_INET, 24, 0, 0, index)
        body += _attribute(_IFA_LOCAL, packed) + _attribute(_IFA_ADDRESS, packed)
        _request(_NEWADDR, body, _CREATE)
    if bits_per_second is not None:
        _shape(index, bits_per_second)
    _request(_NEWLINK, _IFINFO.pack(0, 0, index, _IFF_UP, _IFF_UP))


def _shape(index: int, bits_per_second: int) -> None:
    """Limits the rate at which an interface sends, by a token bucket (tbf)."""
    rate = bits_per_second // 8
    burst = max(LEAST_BURST_BYTES, round(rate * BURST_SECONDS))
    limit = burst + round(rate * QUEUE_SECONDS)
    parameters = _RATE.pack(0, _ETHERNET, 0, 0, 0, rate) + _RATE.pack(0, 0, 0, 0, 0, 0)
    parameters += struct.pack("=III", limit, 0, 0)
    options = _attribute(_TBF_PARMS, parameters) + _attribute(_TBF_BURST, struct.pack("=I", burst))
    body = _TC.pack(0, index, 0, _TC_ROOT, 0)
    body += _attribute(_TC_KIND, b"tbf\0") + _attribute(_TC_OPTIONS, options)
    _request(_NEWQDISC, body, _CREATE)


def _end(name: str, pid: int) -> bytes:
    head = _IFINFO.pack(0, 0, 0, 0, 0) + _attribute(_IFNAME, name.encode() + b"\0")
    return head + _attribute(_NETNS_PID, struct.pack("=I", pid))


def _attribute(kind: int, value: bytes) -> bytes:
    length = ATTRIBUTE.size + len(value)
    return ATTRIBUTE.pack(length, kind) + value + bytes(-length % 4)


def _request(kind: int, body: bytes, flags: int = 0) -> None:
    """Sends a request to the kernel. Errors: OSError: the kernel's refusal."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        head = (HEADER.size + len(body), kind, NLM_F_REQUEST | _NLM_F_ACK | flags, 1, 0)
        kernel.send(HEADER.pack(*head) + body)
        answer = kernel.recv(1 << 16)
    code = struct.unpack_from("=i", answer, HEADER.size)[0]
    if HEADER.unpack_from(answer)[1] == NLMSG_ERROR and code:
        raise OSError(-code, os.strerror(-code))


def _call(result: int) -> None:
    if result:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def carry(seconds: float, control: int) -> None:
    """Forwards frames between ENDS after a delay, until control is closed.

    Packet sockets with virtio_net_hdr pass long segments and unfinished checksums unchanged.
    """
    near, far = (_open_packet_socket(name) for name in ENDS)
    other = {near: far, far: near}
    waiting = deque[tuple[float, socket.socket, bytes]]()
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ends: list[socket.socket | int] = [near, far, control]
        ready = select.select(ends, [], [], timeout)[0]
        if control in ready:
            return
        for each in (end for end in other if end in ready):
            with contextlib.suppress(BlockingIOError):
                while True:
                    frame, address = each.recvfrom(_LONGEST_BYTES)
                    if address[2] != _OUTGOING:
                        waiting.append((time.monotonic() + seconds, other[each], frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, to, frame = waiting.popleft()
            with contextlib.suppress(OSError):  # its queue is full: the frame is lost
                to.send(frame)


def _open_packet_socket(name: str) -> socket.socket:
    packet_socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
    packet_socket.setsockopt(_SOL_PACKET, _VNET_HDR, 1)
    packet_socket.bind((name, _ALL))
    packet_socket.setblocking(False)
    return packet_socket
