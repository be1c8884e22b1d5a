"""SMB messages in a stream that is cut, shifted or not SMB: ends and beginnings alternate."""

from __future__ import annotations

from bottleneck.captures.framing import Framer, message_of


def one_input(data: bytes) -> None:
    """Feeds segments: two bytes of size, one of what was kept, then the kept bytes."""
    framer = Framer(lambda: data[0] * 256 if data else 0)
    framer.boundary, offset, is_open = 1 << 32, 1 << 32, False
    while len(data) >= 3:
        size, kept_bytes = int.from_bytes(data[:2], "big"), data[2]
        payload, data = data[3 : 3 + min(kept_bytes, size)], data[3 + kept_bytes :]
        for moment, message in framer.feed(offset, size, payload):
            assert (moment == "end") == is_open
            assert message.size > 0
            is_open = moment == "begin"
        offset += size
        if framer.boundary is None:
            framer.adopt(offset, 1 << 16)
    message_of(data, len(data))
