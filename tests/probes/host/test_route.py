"""The kernel's own answer to where packets leave."""

import socket

from probes.host import route
from probes.host.rtnetlink import HEADER

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


def test_the_kernels_answer_names_the_interface():
    assert route.parse_route(TO_LOOPBACK) == 1
    assert route.parse_route(TO_A_GATEWAY) == 4


def test_an_error_and_a_truncated_answer_name_none():
    error = HEADER.pack(36, 2, 0, 1, 0) + bytes(20)
    assert route.parse_route(error) is None
    for length in range(HEADER.size + route.ROUTE.size):
        assert route.parse_route(TO_LOOPBACK[:length]) is None


def test_an_attribute_without_length_ends_the_search():
    at = HEADER.size + route.ROUTE.size
    assert route.parse_route(TO_LOOPBACK[:at] + bytes(60)) is None


def test_a_request_carries_the_whole_address():
    assert socket.inet_aton("192.0.2.7") in route.route_request("192.0.2.7")
    assert socket.inet_pton(socket.AF_INET6, "fe80::7") in route.route_request("fe80::7%eth0")
