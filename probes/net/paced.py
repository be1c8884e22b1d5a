"""Sends numbered datagrams at a pace that is never exceeded, and tells what it really sent."""

from __future__ import annotations

import secrets
import select
import socket
import time
from dataclasses import dataclass
from typing import List, Optional

from probes.host import payload
from probes.net import port, udp_socket
from probes.net.datagrams import HEADER
from probes.net.port import Meeting
from probes.records import Details

MOST_PAYLOAD_BYTES = 65_000
HELLOS = 3
"""Short ones before the first: where they alone arrive, the path drops long ones."""
TICK_SECONDS = 0.001
"""Between two bursts: what came due meanwhile goes out at once."""
MOST_BURST_SECONDS = 0.002
"""A sender that was kept from sending for longer does not make up for it: a shallow queue on the
path would be filled by our own haste."""
LOOK_SECONDS = 0.05
"""Between two looks at the control connection."""
TELLS = ("sent_bytes_per_second", "pace_ratio", "refused_datagrams")
"""What the sender knows alone."""
_BUFFERS = 256
"""Of different content, one after the other: 370 kB repeat too rarely for a link's compression."""


@dataclass(frozen=True)
class Pace:
    """What is to be sent, at most."""

    bytes_per_second: float
    """Of payload."""
    payload_bytes: int
    """Of a datagram."""
    seconds: float

    def planned(self, payload_bytes: int) -> int:
        """Datagrams of that size in the whole time."""
        return int(self.bytes_per_second * self.seconds / payload_bytes)


@dataclass
class Sender:
    """Sends the numbered datagrams, no sooner than each one's time."""

    meeting: Meeting
    pace: Pace
    made: socket.socket
    token: bytes
    payload_bytes: int = 0

    def agree(self, more: Optional[Details] = None) -> None:
        """Tells the receiver how many there will be at most, and waits until it is ready."""
        fits = udp_socket.largest_payload_bytes(self.made)
        self.payload_bytes = min(self.pace.payload_bytes, fits or MOST_PAYLOAD_BYTES)
        planned = self.pace.planned(self.payload_bytes)
        self.meeting.tell({**(more or {}), "planned": planned, "payload_bytes": self.payload_bytes})
        self.meeting.hear(port.CONNECT_SECONDS)

    def run(self) -> Details:
        """Sends; what was sent, and how well it kept the pace.

        Raises EOFError where the control connection is closed meanwhile.
        """
        size, control = self.payload_bytes, self.meeting.control
        planned = self.pace.planned(size)
        gap = size / self.pace.bytes_per_second
        buffers = _buffers(size)
        number = refused = 0
        for _ in range(HELLOS):
            udp_socket.send(self.made, bytearray(udp_socket.hello(self.token)))
        began = now = due = last = time.monotonic()
        until, look = began + self.pace.seconds, began
        while number < planned and now < until:
            if now >= look:
                look = now + LOOK_SECONDS
                if select.select([control], [], [], 0)[0]:
                    raise EOFError("closed")
            if now < due:
                time.sleep(min(max(due - now, TICK_SECONDS), LOOK_SECONDS))
                now = time.monotonic()
                continue
            due = max(due, now - MOST_BURST_SECONDS)
            buffer = buffers[number % _BUFFERS]
            HEADER.pack_into(buffer, 0, self.token, number, time.monotonic_ns())
            if udp_socket.send(self.made, buffer):
                number += 1
                last = now
                due += gap
            else:
                refused += 1
                time.sleep(TICK_SECONDS)
            now = time.monotonic()
        if number < 2:
            raise RuntimeError(f"no more than {number} datagrams were sent")
        rate = (number - 1) * size / max(last - began, 1e-9)
        return {
            "sent": number,
            "sent_bytes_per_second": rate,
            "pace_ratio": rate / self.pace.bytes_per_second,
            "refused_datagrams": refused,
        }


def _buffers(size: int) -> List[bytearray]:
    """Datagrams of incompressible content, their headers to be filled in."""
    ring = payload.ring(secrets.token_bytes(16))
    return [bytearray(payload.block(ring, index * size, size)) for index in range(_BUFFERS)]
