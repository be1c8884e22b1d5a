"""ICMP messages as the kernel hands them over: what they say, and nothing from what they do not."""

from __future__ import annotations

import socket
import struct

import pytest

from probes.net.icmp import Saying, datagrams, parse
from probes.stage import Unavailable

ROUTER = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton("192.0.2.1"))
ROUTER_V6 = struct.pack(
    "=HHI16sI", socket.AF_INET6, 0, 0, socket.inet_pton(socket.AF_INET6, "2001:db8::1"), 0
)


def told(level, name, *error, offender=ROUTER):
    return [(level, name, struct.pack("=IBBBBII", *error) + offender)]


# errno, origin (2 ICMP, 3 ICMPv6), type, code, pad, info (an MTU), data
@pytest.mark.parametrize(
    ("control", "saying"),
    [
        (told(0, 11, 113, 2, 11, 0, 0, 0, 0), Saying(7, "time-exceeded", "192.0.2.1", None)),
        (told(0, 11, 111, 2, 3, 3, 0, 0, 0), Saying(7, "port-unreachable", "192.0.2.1", None)),
        (told(0, 11, 90, 2, 3, 4, 0, 1400, 0), Saying(7, "too-big", "192.0.2.1", 1400)),
        (told(0, 11, 113, 2, 3, 13, 0, 0, 0), Saying(7, "unreachable", "192.0.2.1", None)),
        (
            told(41, 25, 113, 3, 3, 0, 0, 0, 0, offender=ROUTER_V6),
            Saying(7, "time-exceeded", "2001:db8::1", None),
        ),
        (
            told(41, 25, 111, 3, 1, 4, 0, 0, 0, offender=ROUTER_V6),
            Saying(7, "port-unreachable", "2001:db8::1", None),
        ),
        (
            told(41, 25, 90, 3, 2, 0, 0, 1280, 0, offender=ROUTER_V6),
            Saying(7, "too-big", "2001:db8::1", 1280),
        ),
        # the kernel's own error: no ICMP message
        (told(0, 11, 90, 1, 0, 0, 0, 1500, 0), None),
        (told(0, 11, 113, 2, 11, 0, 0, 0, 0, offender=b""), Saying(7, "time-exceeded", None, None)),
        ([(0, 11, b"\0" * 7)], None),
        ([(0, 8, b"\0" * 40)], None),
        ([], None),
    ],
)
def test_each_message_is_told_by_its_kind_its_sender_and_its_mtu(control, saying):
    assert parse(control, 7) == saying


def test_a_system_without_an_error_queue_is_a_reason(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(Unavailable, match="root"):
        datagrams("127.0.0.1")
