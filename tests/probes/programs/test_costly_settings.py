"""Settings that cost throughput are told with what they mean today, the usual ones are not."""

from pathlib import Path

import pytest

from probes.programs.costly_settings import TCP_OF_LINUX, TCP_OF_MACOS, costly_host, parse_sysctl

RECORDED = Path(__file__).parents[1] / "recorded"
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
    assert costly_host(TCP_OF_LINUX, USUAL) == ()


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
    (setting,) = costly_host(TCP_OF_LINUX, {**USUAL, name: value})
    assert (setting.option, setting.value, setting.tested) == (name, value, True)
    assert setting.why and setting.remedy


@pytest.mark.parametrize("value", ["", "many", "1 2", "a b c"])
def test_what_is_no_setting_costs_nothing(value):
    assert costly_host(TCP_OF_LINUX, {"net.ipv4.tcp_rmem": value}) == ()


def test_a_mac_as_it_comes_is_told_of_its_delayed_acknowledgements_alone():
    (setting,) = costly_host(TCP_OF_MACOS, parse_sysctl(text("sysctl_macos.txt")), tested=False)
    assert setting.option == "net.inet.tcp.delayed_ack"
    assert not setting.tested


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
    (setting,) = costly_host(TCP_OF_MACOS, {name: str(value)})
    assert setting.option == name
    assert setting.remedy
