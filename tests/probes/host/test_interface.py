"""The interface towards the peer: the kernel's own answer, and None for what is not told."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="operator,union-attr"

import socket

import pytest

from probes.host import interface

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
    assert interface.parse_route(TO_LOOPBACK) == 1
    assert interface.parse_route(TO_A_GATEWAY) == 4


def test_an_error_and_a_truncated_answer_name_none():
    error = interface.HEADER.pack(36, 2, 0, 1, 0) + bytes(20)
    assert interface.parse_route(error) is None
    for length in range(interface.HEADER.size + interface.ROUTE.size):
        assert interface.parse_route(TO_LOOPBACK[:length]) is None


def test_an_attribute_without_length_ends_the_search():
    at = interface.HEADER.size + interface.ROUTE.size
    assert interface.parse_route(TO_LOOPBACK[:at] + bytes(60)) is None


def test_a_request_carries_the_whole_address():
    assert socket.inet_aton("192.0.2.7") in interface.route_request("192.0.2.7")
    assert socket.inet_pton(socket.AF_INET6, "fe80::7") in interface.route_request("fe80::7%eth0")


@pytest.mark.parametrize(
    ("speed", "rate"),
    [
        ("1000", 10**9),
        ("100", 10**8),
        ("-1", None),
        ("0", None),
        ("4294967295", None),
        (None, None),
    ],
)
def test_a_rate_that_the_driver_does_not_know_is_none(speed, rate):
    assert interface.parse_rate(speed) == rate


def test_an_unknown_duplex_is_none():
    assert [interface.parse_duplex(word) for word in ("full", "half", "unknown", None)] == [
        "full",
        "half",
        None,
        None,
    ]


def test_loopback_is_named_lo():
    facts = interface.interface_facts("127.0.0.1")
    assert (facts.name, facts.address, facts.rate_bits_per_second) == ("lo", "127.0.0.1", None)
    assert facts.mtu_bytes >= 1500


def test_no_address_is_no_interface():
    assert interface.interface_facts("not an address") is None
