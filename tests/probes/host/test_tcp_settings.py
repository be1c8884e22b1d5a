"""Settings that cost throughput are told with what they mean today, the usual ones are not."""

from pathlib import Path

import pytest

from probes.host import macos_settings, tcp_settings, windows_settings

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


def windows():
    return {
        each.option: each
        for each in windows_settings.costly(
            windows_settings.parse_global(text("netsh_tcp_global.txt")),
            windows_settings.parse_registry(text("reg_system_profile.txt")),
            windows_settings.parse_registry(text("reg_tcpip_parameters.txt")),
        )
    }


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


def test_a_windows_that_tunes_its_windows_is_not_blamed_for_that():
    assert "Receive Window Auto-Tuning Level" not in windows()
    assert "Receive-Side Scaling State" not in windows()


@pytest.mark.parametrize("level", ["disabled", "highlyrestricted", "restricted"])
def test_a_held_back_receive_window_is_told(level):
    tcp = {"receive window auto-tuning level": level}
    (told,) = windows_settings.costly(tcp, {}, {})
    assert "autotuninglevel=normal" in told.remedy
    assert not told.tested


def test_multimedia_throttling_is_told_with_the_rate_that_it_leaves():
    told = windows()["NetworkThrottlingIndex"]
    assert told.value == "10"
    assert "15 MB/s" in told.why
    assert not windows_settings.costly({}, {"NetworkThrottlingIndex": 0xFFFFFFFF}, {})


def test_raising_system_responsiveness_is_told_to_gain_nothing():
    assert "SystemResponsiveness" not in windows()
    (told,) = windows_settings.costly({}, {"SystemResponsiveness": 0x64}, {})
    assert "gains no throughput" in told.why


def test_entries_of_windows_xp_are_told_to_do_nothing_any_more():
    told = windows()
    assert told["TcpWindowSize"].value == "131400"
    assert "ignored" in told["TcpWindowSize"].why
    assert "time stamps alone" in told["Tcp1323Opts"].why


def test_garbage_is_nothing():
    assert windows_settings.parse_global("\0\n:::\n") == {}
    assert windows_settings.parse_registry("x REG_DWORD 0xzz\n  y REG_SZ 0x1") == {}
    assert macos_settings.parse("a: b\n:\nc") == {}


def test_a_mac_as_it_comes_is_told_of_its_delayed_acknowledgements_alone():
    (told,) = macos_settings.costly(macos_settings.parse(text("sysctl_macos.txt")))
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
    (told,) = macos_settings.costly({name: value})
    assert told.option == name
    assert told.remedy
