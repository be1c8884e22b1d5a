"""Sends numbered datagrams at a limited rate; receives them until the last, and counts them."""

from __future__ import annotations

import secrets
import select
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Generator, List, Optional, Tuple

from probes.core.records import Details, Sample
from probes.core.stage import Last, Unavailable
from probes.files import payload
from probes.net import datagrams, port
from probes.net.datagrams import HEADER, Tally, account
from probes.net.port import Meeting
from probes.system.waiting import CLOCK

MOST_PAYLOAD_BYTES = 65_000
HELLOS = 3
"""Short datagrams before the first: where only they arrive, the path drops long ones."""
TICK_SECONDS = 0.001
"""Time between two bursts: what came due meanwhile goes out at once."""
MOST_BURST_SECONDS = 0.002
"""A sender that was delayed for longer does not catch up: that burst would fill a shallow queue
on the path."""
LOOK_SECONDS = 0.05
"""Time between two looks at the control connection."""
SENDER_KEYS = ("sent_bytes_per_second", "pace_ratio")
"""Keys that only the sender knows."""
_BUFFERS = 256
"""Different buffers, sent in turn: 370 kB repeat too rarely for a link's compression."""


@dataclass(frozen=True)
class Pace:
    """Rate, size and time of the datagrams to send, at most."""

    bytes_per_second: float
    """Payload rate."""
    payload_bytes: int
    seconds: float

    def planned_datagrams(self, payload_bytes: int) -> int:
        """Returns the count of datagrams of that size in the whole time."""
        return int(self.bytes_per_second * self.seconds / payload_bytes)


@dataclass
class Sender:
    """Sends the numbered datagrams, no sooner than each one's time."""

    meeting: Meeting
    pace: Pace
    udp: socket.socket
    token: bytes
    payload_bytes: int = 0

    def agree(self, extra: Optional[Details] = None) -> None:
        """Tells the receiver how many there will be at most, and waits until it is ready."""
        fits = datagrams.largest_payload_bytes(self.udp)
        self.payload_bytes = min(self.pace.payload_bytes, fits or MOST_PAYLOAD_BYTES)
        planned = self.pace.planned_datagrams(self.payload_bytes)
        self.meeting.tell(
            {**(extra or {}), "planned": planned, "payload_bytes": self.payload_bytes}
        )
        self.meeting.hear(port.CONNECT_SECONDS)

    def run(self) -> Details:
        """Sends; returns sent (datagrams), sent_bytes_per_second and pace_ratio.

        Raises EOFError where the control connection is closed meanwhile.
        """
        size, control = self.payload_bytes, self.meeting.control
        planned = self.pace.planned_datagrams(size)
        gap = size / self.pace.bytes_per_second
        buffers = _buffers(size)
        number = 0
        for _ in range(HELLOS):
            datagrams.send(self.udp, bytearray(datagrams.hello(self.token)))
        began = now = due = last = CLOCK.now()
        until, look = began + self.pace.seconds, began
        while number < planned and now < until:
            if now >= look:
                look = now + LOOK_SECONDS
                if select.select([control], [], [], 0)[0]:
                    raise EOFError("closed")
            if now < due:
                CLOCK.sleep(min(max(due - now, TICK_SECONDS), LOOK_SECONDS))
                now = CLOCK.now()
                continue
            due = max(due, now - MOST_BURST_SECONDS)
            buffer = buffers[number % _BUFFERS]
            HEADER.pack_into(buffer, 0, self.token, number, time.monotonic_ns())
            if datagrams.send(self.udp, buffer):
                number += 1
                last = now
                due += gap
            else:
                CLOCK.sleep(TICK_SECONDS)
            now = CLOCK.now()
        if number < 2:
            raise RuntimeError(f"no more than {number} datagrams were sent")
        rate = (number - 1) * size / max(last - began, 1e-9)
        return {
            "sent": number,
            "sent_bytes_per_second": rate,
            "pace_ratio": rate / self.pace.bytes_per_second,
        }


def _buffers(size: int) -> List[bytearray]:
    """Returns datagrams of incompressible content, their headers to be filled in."""
    ring = payload.make_ring(secrets.token_bytes(16))
    return [bytearray(payload.block(ring, index * size, size)) for index in range(_BUFFERS)]


INTERVAL_SECONDS = 0.1
"""Time between two samples."""
FIRST_SECONDS = 0.01
"""Time between two looks for the first arrival."""
SILENCE_SECONDS = 0.3
"""Silence after the sender's end, after which missing datagrams count as lost."""


@dataclass
class Receiver:
    """Receives in a thread of its own until the sender's last datagram, or silence after it."""

    meeting: Meeting
    pace: Pace
    udp: socket.socket
    token: bytes
    plan: Details
    tally: Tally = field(init=False)
    payload_bytes: int = field(init=False)
    first: float = 0.0
    latest: Tuple[float, int] = (0.0, 0)
    """Moment of the last new datagram, and payload of all new ones."""
    sent: Optional[int] = None
    """Count of datagrams sent, once the sender has reported it."""
    sender: Details = field(default_factory=dict)
    errors: List[str] = field(default_factory=list)
    closing: bool = False
    greeted: bool = False
    ended: threading.Event = field(default_factory=threading.Event)
    dropped_before: Optional[int] = None

    def __post_init__(self) -> None:
        self.payload_bytes = int(self.plan["payload_bytes"])
        if not HEADER.size <= self.payload_bytes <= self.pace.payload_bytes:
            raise ValueError("a plan of another run")
        self.tally = Tally(int(self.plan["planned"]))
        self.dropped_before = datagrams.count_drops(self.udp)
        threading.Thread(target=self._guard, daemon=True).start()

    def watch(self) -> Generator[Sample, None, None]:
        """Yields samples from the first arrival to a Last; the first datagram opens the window.

        Raises EOFError where the control connection is closed meanwhile.
        """
        opened = False
        deadline = time.monotonic() + self.pace.seconds + port.STALL_SECONDS
        try:
            while not self.ended.is_set():
                if time.monotonic() > deadline:
                    raise RuntimeError("the datagrams did not end in time")
                if self.sent is None and self._is_readable_within(
                    INTERVAL_SECONDS if opened else FIRST_SECONDS
                ):
                    self.sender = self.meeting.hear(port.CONNECT_SECONDS)
                    self.sent = int(self.sender["sent"])
                    if not 0 <= self.sent <= self.tally.planned:
                        raise RuntimeError("more datagrams were sent than agreed on")
                elif self.sent is not None:
                    self.ended.wait(INTERVAL_SECONDS)
                moment, received_bytes = self.latest
                if self.tally.unique and not opened:
                    opened = True
                    yield Sample(0.0, 0)
                elif opened and self.sent is None:
                    yield Sample(moment - self.first, received_bytes - self.payload_bytes)
        finally:
            self.closing = True
            self.ended.wait(10 * datagrams.WAIT_SECONDS)
        if self.errors:
            raise RuntimeError(f"the datagrams failed: {self.errors[0]}")
        if self.tally.unique < 2:
            arrived = f"{self.tally.unique} of {self.sent} datagrams arrived"
            if not self.greeted:
                raise Unavailable(f"{arrived}, though TCP connects: a firewall blocks UDP")
            raise RuntimeError(
                f"{arrived} with {self.payload_bytes} bytes, though those with {HEADER.size} "
                "bytes do: the path drops larger ones"
            )
        moment, received_bytes = self.latest
        yield Last(moment - self.first, received_bytes - self.payload_bytes)

    def _is_readable_within(self, seconds: float) -> bool:
        """Whether the control connection has something to read, or is closed."""
        return bool(select.select([self.meeting.control], [], [], seconds)[0])

    def describe(self) -> Details:
        """Returns datagrams.account's figures, the sender's, and the receive buffer's size."""
        drops = datagrams.count_drops(self.udp)
        if drops is not None and self.dropped_before is not None:
            drops = (drops - self.dropped_before) & 0xFFFFFFFF
        return {
            **account(self.tally, self.sent or 0, drops),
            **{name: self.sender[name] for name in SENDER_KEYS},
            "payload_bytes": self.payload_bytes,
            "receive_buffer_bytes": self.udp.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
        }

    def _guard(self) -> None:
        try:
            self._receive()
        except OSError as error:
            self.errors.append(str(error))
        finally:
            self.ended.set()

    def _receive(self) -> None:
        udp, tally, token, size = self.udp, self.tally, self.token, self.payload_bytes
        buffer = bytearray(size + 1)
        received_bytes, quiet_since = 0, time.monotonic()
        while not self.closing:
            length, arrived_ns = datagrams.receive(udp, buffer)
            if length < 0:
                quiet = time.monotonic() - quiet_since > SILENCE_SECONDS
                if self.sent is not None and (quiet or tally.unique >= self.sent):
                    return
                continue
            sent_by, number, sent_ns = HEADER.unpack_from(buffer)
            if length != size or sent_by != token:
                self.greeted = self.greeted or (sent_by == token and number == datagrams.HELLO)
                continue
            if tally.take(number, sent_ns, arrived_ns):
                quiet_since = arrived_ns / 1e9
                received_bytes += size
                if tally.unique == 1:
                    self.first = quiet_since
                self.latest = (quiet_since, received_bytes)
