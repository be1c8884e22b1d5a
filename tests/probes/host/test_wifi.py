"""Radio links: text in the form of iw 5.19's link.c and of net/wireless/wext-proc.c."""

import pytest

from probes.host import wifi

CONNECTED = """Connected to 02:00:5e:10:00:01 (on wlp2s0)
\tSSID: signal: -1 dBm
\tfreq: 5180
\tRX: 61247636 bytes (53462 packets)
\tTX: 2280327 bytes (16941 packets)
\tsignal: -61 dBm
\trx bitrate: 390.0 MBit/s VHT-MCS 4 80MHz VHT-NSS 2
\ttx bitrate: 433.3 MBit/s VHT-MCS 9 80MHz short GI VHT-NSS 1

\tbss flags:\tshort-slot-time
\tdtim period:\t2
\tbeacon int:\t100
"""
WIRELESS = """Inter-| sta-|   Quality        |   Discarded packets               | Missed | WE
 face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22
wlp2s0: 0000   49.  -61.  -256        0      0      0      0      0        0
  wlp3: 0000   40.   80.  -256        0      0      0      0      0        0
  wlp4: 0000    0     0     0         0      0      0      0      0        0
"""


def test_iw_tells_both_rates_and_the_signal():
    assert wifi.parse_iw(CONNECTED) == {
        "bits_per_second": 433_300_000,
        "received_bits_per_second": 390_000_000,
        "signal_dbm": -61,
    }


def test_a_signal_with_one_figure_an_antenna_is_read():
    assert wifi.parse_iw("\tsignal: -53 [-55, -57] dBm\n") == {"signal_dbm": -53}


@pytest.mark.parametrize("text", ["Not connected.\n", "", "command failed: No such device (-19)"])
def test_without_a_connection_there_is_nothing(text):
    assert wifi.parse_iw(text) == {}


def test_the_kernels_table_tells_the_signal_in_dbm():
    assert wifi.parse_wireless(WIRELESS, "wlp2s0") == -61


@pytest.mark.parametrize("name", ["wlp3", "wlp4", "eth0", "face"])
def test_a_drivers_own_scale_is_no_dbm(name):
    assert wifi.parse_wireless(WIRELESS, name) is None
