"""tcp_info is decoded by the length that the kernel gave, never by its version."""

import socket
import struct

from probes.host import tcp_info


def raw(length):
    image = bytearray(280)
    struct.pack_into("=I", image, 68, 10_500)
    struct.pack_into("=I", image, 148, 10_000)
    struct.pack_into("=Q", image, 168, 2_000_000)
    struct.pack_into("=Q", image, 176, 1_500_000)
    struct.pack_into("=Q", image, 208, 4344)
    struct.pack_into("=I", image, 228, 65_535)
    return bytes(image[:length])


def test_a_long_answer_tells_everything_in_seconds_and_bytes():
    told = tcp_info.decode(raw(280))
    assert told["rtt_seconds"] == 0.0105
    assert told["min_rtt_seconds"] == 0.01
    assert told["busy_seconds"] == 2.0
    assert told["receive_window_limited_seconds"] == 1.5
    assert told["retransmitted_bytes"] == 4344
    assert told["peer_window_bytes"] == 65_535


def test_an_old_kernels_short_answer_leaves_out_what_it_does_not_know():
    told = tcp_info.decode(raw(104))
    assert told["rtt_seconds"] == 0.0105
    assert "busy_seconds" not in told and "peer_window_bytes" not in told


def test_a_field_cut_in_two_is_left_out():
    assert "peer_window_bytes" not in tcp_info.decode(raw(230))


def test_a_live_connection_is_read():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        with near, far:
            near.sendall(b"x" * 1000)
            far.settimeout(5)
            far.recv(1, socket.MSG_PEEK)
            assert tcp_info.unread_bytes(far) == 1000
            assert tcp_info.unsent_bytes(near) == 0
            assert tcp_info.read(near)["segment_bytes"] > 0
            assert tcp_info.congestion_control(near)
