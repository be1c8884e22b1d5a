"""Settings that cost throughput are told with what they mean today, the usual ones are not."""

from pathlib import Path

import pytest

from probes.host import tcp_settings

RECORDED = Path(__file__).with_name("recorded")
USUAL = {
    "net.ipv4.tcp_window_scaling": "1",
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_moderate_rcvbuf": "1",
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
}


def text(name):
    return (RECORDED / name).read_text()


def test_linux_as_it_comes_costs_nothing():
    assert tcp_settings.costly(USUAL) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("net.ipv4.tcp_window_scaling", "0"),
        ("net.ipv4.tcp_sack", "0"),
        ("net.ipv4.tcp_moderate_rcvbuf", "0"),
        ("net.ipv4.tcp_rmem", "4096 16384 65536"),
        ("net.ipv4.tcp_wmem", "4096 16384 65536"),
    ],
)
def test_each_setting_of_linux_that_costs_is_told_with_a_remedy(name, value):
    (told,) = tcp_settings.costly({**USUAL, name: value})
    assert (told.option, told.value, told.tested) == (name, value, True)
    assert told.why and told.remedy


@pytest.mark.parametrize("value", ["", "many", "1 2", "a b c"])
def test_what_is_no_setting_costs_nothing(value):
    assert tcp_settings.costly({"net.ipv4.tcp_rmem": value}) == ()


def test_this_host_is_read():
    for each in tcp_settings.tcp_settings():
        assert each.option.startswith("net.")


def test_garbage_is_nothing():
    assert tcp_settings.parse_sysctl("a: b\n:\nc") == {}


def test_a_mac_as_it_comes_is_told_of_its_delayed_acknowledgements_alone():
    (told,) = tcp_settings.costly_on_macos(tcp_settings.parse_sysctl(text("sysctl_macos.txt")))
    assert told.option == "net.inet.tcp.delayed_ack"
    assert not told.tested


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("net.inet.tcp.doautorcvbuf", 0),
        ("net.inet.tcp.autosndbufmax", 131072),
        ("net.inet.tcp.rfc1323", 0),
        ("net.inet.tcp.sack", 0),
    ],
)
def test_each_setting_of_a_mac_that_costs_is_told(name, value):
    (told,) = tcp_settings.costly_on_macos({name: value})
    assert told.option == name
    assert told.remedy
