"""A delay on a link: a process between its two halves that holds every frame for a while.

Packet sockets with virtio_net_hdr: long segments and unfinished checksums pass as they are.
Source: packet(7); include/uapi/linux/if_packet.h.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections import deque

ENDS = "near", "far"
_ALL, _SOL_PACKET, _VNET_HDR, _OUTGOING = 0x0003, 263, 15, 4
_LONGEST_BYTES = 10 + 14 + 65536


def carry(seconds: float, control: int) -> None:
    """Hands what arrives at either of ENDS to the other one, later, until control is closed."""
    near, far = (_opened(name) for name in ENDS)
    other = {near: far, far: near}
    waiting = deque[tuple[float, socket.socket, bytes]]()
    while True:
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ends: list[socket.socket | int] = [near, far, control]
        ready = select.select(ends, [], [], left)[0]
        if control in ready:
            return
        for each in (end for end in other if end in ready):
            with contextlib.suppress(BlockingIOError):
                while True:
                    frame, about = each.recvfrom(_LONGEST_BYTES)
                    if about[2] != _OUTGOING:
                        waiting.append((time.monotonic() + seconds, other[each], frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, to, frame = waiting.popleft()
            with contextlib.suppress(OSError):  # its queue is full: as a wire's would be
                to.send(frame)


def _opened(name: str) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
    made.setsockopt(_SOL_PACKET, _VNET_HDR, 1)
    made.bind((name, _ALL))
    made.setblocking(False)
    return made
