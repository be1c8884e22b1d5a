"""The ioctl itself, on this host's own interfaces."""

from probes.host import ethtool


def test_the_loopback_answers_what_it_can():
    card = ethtool.read_card("lo")
    assert card.negotiated is None
    assert card.pause == {}
    assert "tcp_segmentation" in card.offloads


def test_an_interface_that_is_not_there_tells_nothing():
    assert ethtool.read_card("nosuch0") == ethtool.Card()
    assert ethtool.read_counts("nosuch0") == {}
