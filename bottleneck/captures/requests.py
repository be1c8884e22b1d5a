"""Requests and replies of a connection: which are open, how long each waits, what they move."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass

from bottleneck.captures.direction import Direction, Sample
from bottleneck.captures.framing import (
    CANCEL,
    CHANGE_NOTIFY,
    COMMANDS,
    NEGOTIATE,
    PENDING,
    READ,
    READ_HEADER_BYTES,
    WRITE,
    WRITE_HEADER_BYTES,
    Message,
    Moment,
)

DATA_BYTES = 4096
"""Least size of a message without a header that counts as data."""
BULK_BYTES = 100_000
"""Bytes of a direction, from which on it is a transfer."""
MOST_OPEN = 1024
CREDIT_BYTES = 65536
"""Most bytes of a READ or WRITE for a credit (MS-SMB2 3.1.5.2)."""
ENCRYPTED_READ_BYTES, ENCRYPTED_PENDING_BYTES = 200, 129
"""Size of encrypted messages: at most, of a READ; of an interim reply."""


@dataclass(slots=True)
class Request:
    """A request without a reply."""

    command: int | None
    begun: float
    replies_before: int
    """Replies of the connection when it began."""
    payload_bytes: int
    """Bytes that it asks for, or carries; 0: unknown."""
    charged_bytes: int
    """Payload bytes, or the most that the CreditCharge of a READ allows (MS-SMB2 2.2.1.2)."""
    complete: float | None = None
    """Time of its last byte; None: it is still on its way."""


class Requests:
    """Requests of a client and the replies to them."""

    def __init__(self) -> None:
        self.upward = Direction()
        """From client to server."""
        self.downward = Direction(self.next_reply_bytes)
        self.open: OrderedDict[object, Request] = OrderedDict()
        """Requests without a reply, by number."""
        self.depth, self.sizes, self.asked_bytes = Sample(), Sample(), Sample()
        """Requests in flight, the bytes that each moves, and those of all that are yet to move."""
        self.early_pauses = Sample()
        """The client's pauses between replies and requests before the first data."""
        self.service: dict[str, Sample] = {}
        """Times from each complete request to the first byte of its reply, by command."""
        self.commands: Counter[str] = Counter()
        self.protocols: Counter[str] = Counter()
        self.signed = self.reads = self.writes = 0
        """Counts of messages."""
        self.dialect = 0
        """DialectRevision in the reply to NEGOTIATE; 0: not seen."""
        self.replied = 0.0
        """Time of the last byte of the last reply."""
        self._requests = self._replies = self._open_bytes = 0
        self._current: object = None

    def next_reply_bytes(self) -> int:
        """Returns the size of the next reply: by its request, else as the last large one."""
        request = next(iter(self.open.values()), None)
        if request is None:
            return 0
        if request.command == WRITE:
            return READ_HEADER_BYTES
        if request.command == READ and request.payload_bytes:
            return READ_HEADER_BYTES + request.payload_bytes
        return self.downward.framer.large_bytes

    def take_request(self, now: float, moment: Moment, message: Message) -> None:
        if moment == "end":
            if (request := self.open.get(self._current)) is not None:
                request.complete = now
            return
        self.protocols[message.protocol] += 1
        self._requests += 1
        if message.command in (CANCEL, CHANGE_NOTIFY):
            self._current = None
            return
        command, is_encrypted = message.command, message.protocol == "encrypted"
        if command is None and message.size > DATA_BYTES:
            command = WRITE
        if is_encrypted and message.size <= ENCRYPTED_READ_BYTES and self.reads > self.writes:
            command = READ
        carried = message.size - WRITE_HEADER_BYTES if command == WRITE else 0
        payload = message.payload_bytes or carried
        if not self.open and self.replied and not (self.reads or self.writes):
            self.early_pauses.add(now - self.replied)
        self._current = message.number if message.number is not None else ("", self._requests)
        charged = int.from_bytes(message.head[10:12], "little") * CREDIT_BYTES
        charged = payload or (charged if message.protocol == "smb2" and command == READ else 0)
        self._close(self._current)
        self.open[self._current] = Request(command, now, self._replies, payload, charged)
        self._open_bytes += charged
        replying = self.downward.framer.message is not None
        arriving = (self.downward.framer.boundary or 0) - self.downward.next_offset
        self.depth.add(len(self.open) + replying)
        self.asked_bytes.add(self._open_bytes + (max(0, arriving) if replying else 0))
        if len(self.open) > MOST_OPEN:
            self._close(next(iter(self.open)))
        self.commands["encrypted" if is_encrypted else _name(command)] += 1
        self.signed += message.is_signed
        if command == WRITE and payload > DATA_BYTES:
            self.writes += 1
            self.sizes.add(payload)
        elif command == READ and payload:
            self.sizes.add(payload)
        if command == READ and self.downward.bytes > BULK_BYTES:
            self.downward.framer.adopt(self.downward.next_offset)

    def take_reply(self, now: float, moment: Moment, message: Message) -> None:
        if moment == "begin":
            self.protocols[message.protocol] += 1
        is_encrypted = message.protocol == "encrypted"
        is_pending = is_encrypted and message.size == ENCRYPTED_PENDING_BYTES
        if message.status == PENDING or (is_pending and (self.reads or self.writes)):
            return
        if moment == "end":
            self.replied = now
            return
        key: object = message.number
        if key not in self.open:
            is_guessed = key is None or message.command in (READ, WRITE)
            key = next(iter(self.open), None) if is_guessed else None
        request = None if key is None else self._close(key)
        self._replies += 1
        if message.command == WRITE and self.upward.bytes > BULK_BYTES and len(message.head) >= 76:
            written = int.from_bytes(message.head[72:76], "little") + WRITE_HEADER_BYTES
            self.upward.framer.adopt(self.upward.next_offset, written)
        self._drop_overlooked()
        if request is not None:
            waited = now - (request.complete or request.begun)
            self.service.setdefault(_name(request.command), Sample()).add(waited)
            if request.command == READ or message.size > DATA_BYTES:
                self.reads += 1
                if not request.payload_bytes and message.size > DATA_BYTES:
                    self.sizes.add(message.size - READ_HEADER_BYTES)
        head = message.head
        if message.protocol == "smb2" and message.command == NEGOTIATE and len(head) >= 74:
            self.dialect = head[72] | head[73] << 8

    def _drop_overlooked(self) -> None:
        """Drops the oldest request if its reply was overlooked, or never comes."""
        first = next(iter(self.open.items()), None)
        if first is not None and self._replies - first[1].replies_before > 64 + 4 * len(self.open):
            self._close(first[0])

    def _close(self, key: object) -> Request | None:
        request = self.open.pop(key, None)
        self._open_bytes -= request.charged_bytes if request is not None else 0
        return request


def _name(command: int | None) -> str:
    return "?" if command is None else COMMANDS.get(command, "?")
