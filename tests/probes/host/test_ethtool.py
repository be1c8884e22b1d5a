"""The ioctl itself, on this host's own interfaces."""

import struct

import pytest

from probes.host import ethtool


def test_the_loopback_answers_what_it_can():
    card = ethtool.read_card("lo")
    assert card.negotiated == ethtool.Negotiation()
    assert card.facts["pause"] == {}
    assert "tcp_segmentation" in card.facts["offloads"]


def settings(rate: int, duplex: int, negotiated: int, *masks: int) -> bytes:
    """ethtool_link_settings with masks of two words: supported, advertised, the partner's."""
    words = 2 if masks else 0
    head = ethtool.LINK.pack(0x4C, rate, duplex, 0, 0, negotiated, 0, 0, 0, words, 0, 0, 0, 0)
    return head.ljust(ethtool.LINK_BYTES, b"\0") + b"".join(struct.pack("=Q", m) for m in masks)


def modes(*bits: int) -> int:
    return sum(1 << bit for bit in bits)


GIGABIT = modes(0, 1, 2, 3, 5, 6, 7, 13)
FAST = modes(0, 1, 2, 3, 6, 7)


def test_a_gigabit_card_at_a_port_that_offers_100():
    link = ethtool.parse_negotiation(settings(100, 1, 1, GIGABIT, GIGABIT, FAST))
    assert link == ethtool.Negotiation(100_000_000, "full", True, 10**9, 10**8)


@pytest.mark.parametrize("rate", [0, 0xFFFF, 0xFFFFFFFF])
def test_without_a_link_no_rate_is_told(rate):
    link = ethtool.parse_negotiation(settings(rate, 0xFF, 1))
    assert link == ethtool.Negotiation(None, None, True, None, None)


def test_masks_that_are_not_whole_tell_no_modes():
    answer = settings(1000, 1, 1, GIGABIT, GIGABIT, GIGABIT)
    assert ethtool.parse_negotiation(answer[:-1]).able_bits_per_second is None
    assert ethtool.parse_negotiation(answer[:40]) is None
    assert ethtool.parse_negotiation(None) is None


def test_words_are_read_in_their_places_and_none_of_what_is_cut_off():
    answer = struct.pack("=4I", 0x12, 1, 1, 0)
    assert ethtool.parse_words(answer, ethtool.PAUSE) == {
        "autonegotiated": 1,
        "receives": 1,
        "sends": 0,
    }
    assert ethtool.parse_words(answer[:-4], ethtool.PAUSE) == {}


def test_a_driver_without_an_answer_leaves_the_fact_out():
    assert ethtool.parse_words(None, ethtool.PAUSE) == {}
    assert ethtool.parse_names(None) == []
    assert ethtool.parse_counts([], None) == {}
    assert ethtool.parse_driver(b"\0" * 20) == (None, None)


def strings(*names: str) -> bytes:
    return struct.pack("=III", 0x1B, 1, len(names)) + b"".join(
        name.encode().ljust(32, b"\0") for name in names
    )


def test_counters_are_matched_with_their_names():
    names = ethtool.parse_names(strings("rx_packets", "rx_flow_control_xoff", "rx_missed_errors"))
    answer = struct.pack("=II3Q", 0x1D, 3, 912398, 293, 7)
    assert ethtool.parse_counts(names, answer) == {
        "rx_flow_control_xoff": 293,
        "rx_missed_errors": 7,
    }


@pytest.mark.parametrize(
    "name",
    [
        *"tx_flow_control_xon rx_pause_ctrl_phy link_xoff_rx.nic rx_xon_pause_rcvd".split(),
        *"rx_no_buffer_count rx_no_dma_resources rx_out_of_buffer rx_discards_phy".split(),
        *"alloc_rx_buff_failed rx_fifo_errors rx_drops".split(),
    ],
)
def test_pause_frames_and_lost_packets_are_kept(name):
    assert ethtool.parse_counts([name], struct.pack("=IIQ", 0x1D, 1, 1)) == {name: 1}


@pytest.mark.parametrize(
    "name",
    [
        *"rx_packets rx_bytes rx_long_byte_count tx_queue_0_restart rx_queue_0_drops".split(),
        *"rx_global_pause_duration rx_prio3_pause tx_pause_storm_warning_events".split(),
        *"rx_steer_missed_packets rx_csum_offload_good tx_priority_0_xon.nic multicast".split(),
        "[0]: rx_discards",
    ],
)
def test_what_is_no_loss_or_a_part_of_another_counter_is_not(name):
    assert ethtool.parse_counts([name], struct.pack("=IIQ", 0x1D, 1, 1)) == {}


def test_a_driver_tells_its_name_and_its_place():
    raw = struct.pack("=I32s32s32s32s", 3, b"e1000e", b"6.18", b"0.13-4", b"0000:00:1f.6")
    assert ethtool.parse_driver(raw.ljust(196, b"\0")) == ("e1000e", "0000:00:1f.6")
