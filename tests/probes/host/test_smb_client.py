"""Output of Windows and macOS on their SMB client; any other text is not known, and no error."""

from pathlib import Path

import pytest

from probes.host import smb_client
from probes.host.smb_client import costly, parse_cmdlets, parse_nsmb, parse_smbutil
from probes.programs.costly_settings import TCP_OF_WINDOWS, costly_host

RECORDED = Path(__file__).parents[1] / "recorded"
NAS = "192.0.2.11"


def text(name):
    return (RECORDED / name).read_text()


WINDOWS = text("smb_client_windows.txt")
SHARES, PATHS = text("smbutil_statshares.txt"), text("smbutil_multichannel.txt")


def costs(values):
    settings = list(costly(values))
    assert all(each.why and each.remedy and not each.tested for each in settings)
    return {each.option: each.remedy for each in settings}


def test_windows_tells_its_configuration_and_this_servers_connection():
    values = parse_cmdlets(WINDOWS.replace("\n", "\r\n"), NAS)
    assert values == {
        "ConnectionCountPerRssNetworkInterface": "4",
        "DirectoryCacheLifetime": "10",
        "EnableBandwidthThrottling": "True",
        "EnableLargeMtu": "True",
        "EnableMultiChannel": "True",
        "RequireSecuritySignature": "False",
        **{"Dialect": "3.1.1", "Signed": "True", "Encrypted": "False"},
        **{"ClientLinkSpeed": "1000000000", "ClientRSSCapable": "True"},
        **{
            "ClientRdmaCapable": "False",
            "CurrentChannels": "2",
            "ClientLinkSpeed unused": "10000000000",
        },
        "AutoTuningLevelLocal": "Normal",
    }
    assert costs(values).keys() == {"EnableBandwidthThrottling", "Signed", "ClientLinkSpeed unused"}


def test_of_another_server_no_connection_is_told():
    for toward in ("192.0.2.1", ""):
        values = parse_cmdlets(WINDOWS, toward)
        assert not {"Dialect", "ClientLinkSpeed", "ClientLinkSpeed unused"} & values.keys()
        assert values["EnableLargeMtu"] == "True"


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("EnableLargeMtu", "False", "-EnableLargeMtu $true`"),
        ("EnableMultiChannel", "False", "-EnableMultiChannel $true`"),
        ("ConnectionCountPerRssNetworkInterface", "1", "PerRssNetworkInterface 4`"),
        ("RequireSecuritySignature", "True", "run `Set-SmbClientConfiguration -RequireSecurity"),
        ("DirectoryCacheLifetime", "0", "run `Set-SmbClientConfiguration -DirectoryCache"),
        ("Dialect", "2.1", "server"),
        ("Encrypted", "True", "Set-SmbShare"),
        ("mc_on", "no", "set `mc_on=yes` in /etc/nsmb.conf"),
        ("signing_required", "yes", "trusted; set `signing_required=no` in"),
        ("dir_cache_off", "yes", "set `dir_cache_off=no` in"),
        ("SMB_VERSION", "SMB_2.1", "server"),
    ],
)
def test_each_setting_that_costs_is_told_with_its_command(name, value, remedy):
    assert remedy in costs({name: value})[name]
    assert costs({name: "unreadable"}) == {}


def test_an_interface_without_rss_costs_beyond_a_gigabit_alone():
    plain = WINDOWS.replace("ClientRSSCapable            : True", "ClientRSSCapable : False")
    assert "ClientLinkSpeed without RSS" not in costs(parse_cmdlets(plain, NAS))
    fast = plain.replace(": 1000000000 ", ": 25000000000")
    assert "Enable-NetAdapterRss" in costs(parse_cmdlets(fast, NAS))["ClientLinkSpeed without RSS"]
    rdma = fast.replace("ClientRdmaCapable           : False", "ClientRdmaCapable : True")
    assert "ClientLinkSpeed without RSS" not in costs(parse_cmdlets(rdma, NAS))


def test_a_small_window_of_windows_is_told_unless_a_policy_sets_it():
    off = WINDOWS.replace("Local            : Normal", "Local            : Disabled")
    values = {**parse_cmdlets(off, NAS), "NetworkThrottlingIndex": "10"}
    level, index = costly_host(TCP_OF_WINDOWS, values, tested=False)
    assert "autotuninglevel=normal" in level.remedy
    assert r'"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Mult' in index.remedy
    by_policy = off.replace("Effective        : Local", "Effective : GroupPolicy")
    assert "AutoTuningLevelLocal" not in parse_cmdlets(by_policy, NAS)
    assert costly_host(TCP_OF_WINDOWS, {"NetworkThrottlingIndex": "4294967295"}) == ()
    old = {"TcpWindowSize": "131400", "Tcp1323Opts": "3"}
    (size,) = costly_host(TCP_OF_WINDOWS, old, tested=False)
    assert "ignored it since Vista" in size.why and "no gain" in size.remedy
    (scaling,) = costly_host(TCP_OF_WINDOWS, {"Tcp1323Opts": "0"}, tested=False)
    assert "64 KiB" in scaling.why


def test_a_mac_tells_the_share_and_its_interfaces():
    values = parse_smbutil(SHARES, PATHS, NAS)
    assert values == {
        "SMB_VERSION": "SMB_3.1.1",
        "SMB_CURR_SIGN_ALGORITHM": "AES_128_CMAC",
        "SMB_CURR_ENCRYPT_ALGORITHM": "OFF",
    }
    assert costs(values).keys() == {"SMB_CURR_SIGN_ALGORITHM"}
    assert parse_smbutil(SHARES, PATHS, "203.0.113.1") == {"interfaces": "Ethernet"}


def test_wifi_in_use_beside_a_wired_interface_is_told():
    wifi = PATHS.replace(" active ", " gone   ").replace("[session inactive", "[session active  ")
    assert "mc_prefer_wired=yes" in costs(parse_smbutil("", wifi, NAS))["wifi_beside_wired"]
    wifi_only = wifi.replace("2.5 Gb, state connected", "2.5 Gb, state idle")
    assert parse_smbutil("", wifi_only, NAS) == {"interfaces": "wifi"}


def test_nsmb_conf_of_all_servers_and_of_this_one():
    files = ["[default]\nsigning_required=yes\nmc_on = no\nsoft=yes\n# mc_on=yes\n"]
    assert parse_nsmb(files, NAS) == {"signing_required": "yes", "mc_on": "no"}
    config = f"[default]\nmc_on=yes\n[{NAS}]\nsigning_required=yes\n[192.0.2.1]\ndir_cache_off=yes"
    assert parse_nsmb([*files, config], NAS) == {"signing_required": "yes"}


@pytest.mark.parametrize(
    "noise", ["", "\n\n:\n : \nDialect :", "Get-Smb: \x00\ud800 [", "[[=]]\n="]
)
def test_what_cannot_be_read_is_not_known(noise):
    assert parse_cmdlets(noise, NAS) == parse_smbutil(noise, f"Session: {noise}", NAS) == {}
    assert parse_nsmb([noise], NAS) == {}


def test_on_this_system_nothing_is_read():
    assert smb_client.read(NAS) is None
