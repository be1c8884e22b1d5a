"""The kernel's own answer to where packets leave."""

import socket

import pytest

from probes.host import rtnetlink
from probes.host.rtnetlink import HEADER, reach

TO_LOOPBACK = bytes.fromhex(
    "6800000018000000010000003512000002200000fe0000020002008008000f00fe000000080001007f000001"
    "0800040001000000080007007f000001080019000000000024000c0002000000f23f03000000000000000000"
    "00000000000000000000000000000000"
)
TO_A_GATEWAY = bytes.fromhex(
    "7000000018000000010000003512000002200000fe0000010002000008000f00fe0000000800010008080808"
    "080004000400000008000700c000020208000500c0000201080019000000000024000c0002000000fe3e0300"
    "000000000000000000000000000000000000000000000000"
)


def test_an_error_and_a_truncated_answer_name_none():
    error = HEADER.pack(36, 2, 0, 1, 0) + bytes(20)
    assert rtnetlink.parse_route(error) is None
    for length in range(HEADER.size + rtnetlink.ROUTE.size):
        assert rtnetlink.parse_route(TO_LOOPBACK[:length]) is None


def test_a_request_carries_the_whole_address():
    assert socket.inet_aton("192.0.2.7") in rtnetlink.route_request("192.0.2.7")
    assert socket.inet_pton(socket.AF_INET6, "fe80::7") in rtnetlink.route_request("fe80::7%eth0")


def test_an_open_port_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert reach("127.0.0.1", server.getsockname()[1], 5.0) == ""


def test_a_closed_port_refuses() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert reach("127.0.0.1", bound.getsockname()[1], 5.0) == "refused"


def test_a_host_that_does_not_answer_is_waited_for_so_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def silent(address: object, timeout: float) -> None:
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", silent)
    assert reach("192.0.2.1", 445, 4.0) == "no answer within 4 s"


def test_a_name_that_does_not_resolve_is_told() -> None:
    assert reach("no-such-host.invalid", 445, 5.0) == "the name does not resolve"


def message(kind: int, body: bytes) -> bytes:
    whole = rtnetlink.HEADER.pack(rtnetlink.HEADER.size + len(body), kind, 0, 1, 0) + body
    return whole + bytes(-len(whole) % 4)


def attribute(kind: int, value: bytes) -> bytes:
    whole = rtnetlink.ATTRIBUTE.pack(rtnetlink.ATTRIBUTE.size + len(value), kind) + value
    return whole + bytes(-len(whole) % 4)


def test_messages_and_attributes_are_told_apart_by_their_padded_lengths():
    body = attribute(3, b"eth0\0") + attribute(4, b"\xdc\x05\0\0")
    found = list(rtnetlink.messages(message(16, body) + message(3, b"")))
    assert [kind for kind, _ in found] == [16, 3]
    told = rtnetlink.attributes(found[0][1])
    assert rtnetlink.text(told, 3) == "eth0"
    assert rtnetlink.number(told, 4) == 1500


def test_what_is_cut_off_is_left_out():
    whole = message(16, attribute(3, b"eth0\0")) + message(16, attribute(3, b"eth1\0"))
    for length in range(len(whole)):
        found = [rtnetlink.attributes(body) for _, body in rtnetlink.messages(whole[:length])]
        assert found == [{3: b"eth0\0"}] * (length >= len(whole) // 2)
