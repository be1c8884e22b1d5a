"""How a peer that is there already is named."""

import pytest

from bottleneck.tcp_peer import TcpPeer, parse
from probes.stage import Refused


@pytest.mark.parametrize(
    ("text", "peer"),
    [
        ("iperf3://nas", TcpPeer("iperf3", "nas", 5201)),
        ("iperf3://nas:5999", TcpPeer("iperf3", "nas", 5999)),
        ("iperf3://[fe80::1]:5202/", TcpPeer("iperf3", "fe80::1", 5202)),
        ("ttcp://10.0.0.7", TcpPeer("ttcp", "10.0.0.7", 5001)),
    ],
)
def test_a_peer_is_understood_and_named_again(text, peer):
    assert parse(text) == peer
    assert parse(peer.name) == peer


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nas",
        "iperf://nas",
        "iperf3:nas",
        "iperf3://",
        "iperf3://nas:0",
        "ttcp://a b",
        "ssh://x",
    ],
)
def test_anything_else_is_refused_with_a_sentence(text):
    with pytest.raises(Refused) as told:
        parse(text)
    assert told.value.kind == "usage"
    assert "--tcp-peer" in told.value.text
