"""Who limits a transfer is told by where the bytes wait, with the figures behind it."""

import pytest

from probes.sockets import limits
from probes.sockets.limits import Glimpse

SEGMENT = 1448
STILL = {
    "segment_bytes": SEGMENT,
    "congestion_state": 0,
    "congestion_window_segments": 100,
    "rtt_seconds": 0.0105,
    "min_rtt_seconds": 0.010,
    "peer_window_bytes": 3_000_000,
    "path_mtu_bytes": 1500,
    "send_buffer_bytes": 400_000,
    "send_queue_bytes": 380_000,
}


def looks(count=50, flying=140_000, unsent=200_000, unread=0, apart=0.02, slopes=(), **figures):
    """Returns glimpses of a steady flow; slopes: growth of a figure in a second."""
    glimpses = []
    for index in range(count):
        elapsed = 5.0 + index * apart
        grown = {"sent_bytes": 12e6, "busy_seconds": 1.0, **dict(slopes)}
        info = {**STILL, "receive_window_limited_seconds": 0, "send_buffer_limited_seconds": 0}
        info.update({"retransmitted_bytes": 0, "retransmitted_segments": 0})
        info.update({name: slope * elapsed for name, slope in grown.items()})
        info["acknowledged_bytes"] = info["sent_bytes"] - info["retransmitted_bytes"] - flying
        info.update(figures)
        glimpses.append(Glimpse(elapsed, info, unread, unsent))
    return glimpses


def without(glimpses, *names):
    return [
        Glimpse(
            each.elapsed_seconds,
            {name: value for name, value in each.figures.items() if name not in names},
            each.unread_bytes,
            each.unsent_bytes,
        )
        for each in glimpses
    ]


def judge(sender, receiver=None):
    glimpses = looks() if receiver is None else receiver
    return limits.who_limits(limits.sender_details(sender), limits.receiver_details(glimpses))


def test_what_the_receiver_had_twice_was_not_lost():
    """A reordered path has TCP repeat what arrives all the same (RFC 2883)."""
    again = ("retransmitted_bytes", 100 * SEGMENT)
    lossy = limits.sender_details(looks(slopes=(again,)))
    reordered = limits.sender_details(looks(slopes=(again, ("duplicates_reported", 100))))
    assert lossy["loss_ratio"] > 0.01
    assert reordered["loss_ratio"] == pytest.approx(0)
    assert reordered["spurious_segments"] == pytest.approx(98)
    assert reordered["retransmitted_bytes"] == lossy["retransmitted_bytes"]


def test_unread_bytes_are_the_receivers():
    assert judge(looks(flying=2_999_000), looks(unread=1 << 20)) == "receiver"
    slow_reader = looks(slopes=(("receive_window_limited_seconds", 0.4),))
    assert judge(slow_reader, looks(unread=16 << 10)) == "receiver"


def test_few_unread_bytes_are_many_in_a_small_receive_buffer():
    reader = looks(unread=4096, receive_buffer_bytes=16_384)
    assert judge(looks(flying=3_000_000), reader) == "receiver"
    assert judge(looks(flying=3_000_000), looks(unread=4096)) == "receive-window"


def test_unread_bytes_are_not_blamed_where_the_sender_waits_for_something_else():
    """At a high rate a good deal is always unread; a receiver that holds its sender shuts the
    window. Of a sender that does not wait for its socket, the unread bytes are the cause."""
    assert judge(looks(), looks(unread=100_000)) == "network"
    assert judge(looks(unsent=0, send_queue_bytes=140_000), looks(unread=100_000)) == "receiver"


def test_a_queue_that_never_fills_its_buffer_is_a_slow_writers():
    assert judge(looks(unsent=0, send_queue_bytes=0)) == "sender"
    steady = looks(unsent=0, flying=270_000, send_queue_bytes=290_000)
    assert judge(steady) == "sender", "at 0.72 of the buffer for good: it never filled it"


def test_a_full_buffer_that_is_all_in_flight_is_too_small():
    """The kernel's own time for it stands still."""
    assert judge(looks(unsent=0, flying=380_000)) == "send-buffer"
    assert judge(looks(unsent=20_000, flying=360_000)) == "send-buffer"
    queues = (410_000, 270_000, 300_000, 260_000, 405_000)
    between = [looks(5, unsent=0, flying=280_000, send_queue_bytes=queue) for queue in queues]
    assert judge(sum(between, [])) == "send-buffer", "anywhere between two thirds and full"


def test_the_kernels_time_for_the_buffer_counts_where_the_writer_waits():
    limited = (("send_buffer_limited_seconds", 0.3),)
    assert judge(looks(unsent=100_000, slopes=limited)) == "send-buffer"
    assert judge(looks(unsent=0, send_queue_bytes=100_000, slopes=limited)) == "sender"


def test_a_window_that_is_in_flight_as_a_whole_is_too_small():
    """Also where the kernel's time for it, which runs at the moment of sending, says little."""
    assert judge(looks(flying=64_000, peer_window_bytes=65_000)) == "receive-window"
    limited = (("receive_window_limited_seconds", 0.25),)
    assert judge(looks(slopes=limited)) == "receive-window"


@pytest.mark.parametrize(
    ("options", "by"),
    [
        ({"flying": 700_000, "peer_window_bytes": 700_500, "rtt_seconds": 0.060}, "network"),
        ({"flying": 700_000, "peer_window_bytes": 700_500, "rtt_seconds": 0.011}, "receive-window"),
        ({"flying": 380_000, "unsent": 0, "rtt_seconds": 0.060}, "network"),
        ({"flying": 380_000, "unsent": 0, "rtt_seconds": 0.015}, "send-buffer"),
    ],
)
def test_no_window_is_too_small_where_a_queue_stands_on_the_path(options, by):
    assert judge(looks(**options)) == by


def test_a_small_window_behind_delayed_acknowledgements_is_not_a_queue():
    buffer = {"send_buffer_bytes": 8192, "send_queue_bytes": 9000}
    times = {"rtt_seconds": 0.019, "min_rtt_seconds": 0.00002}
    assert judge(looks(flying=4 * SEGMENT, unsent=0, **buffer, **times)) == "send-buffer"


def test_where_the_queue_is_not_known_its_payload_stands_for_it():
    for glimpses, by in (
        (looks(), "sender"),
        (looks(flying=140_000, unsent=240_000), "network"),
        (looks(flying=380_000, unsent=0), "send-buffer"),
        (looks(flying=100_000, unsent=0), "sender"),
    ):
        assert judge(without(glimpses, "send_queue_bytes")) == by


def test_where_the_buffer_is_not_known_little_unsent_tells_nothing():
    """A slow writer and a small buffer look alike then."""
    bare = ("send_queue_bytes", "send_buffer_bytes")
    assert judge(without(looks(unsent=0), *bare)) == "unknown"
    assert judge(without(looks(), *bare)) == "network"
    limited = looks(unsent=0, slopes=(("send_buffer_limited_seconds", 0.3),))
    assert judge(without(limited, *bare)) == "send-buffer"


def test_an_end_that_was_not_seen_is_not_blamed_and_does_not_hide_the_other():
    def with_sender_only(glimpses):
        return limits.who_limits(limits.sender_details(glimpses), {})

    assert with_sender_only(looks()) == "network"
    assert with_sender_only(looks(unsent=0, send_queue_bytes=0)) == "sender"
    assert with_sender_only(looks(unsent=0, flying=380_000)) == "send-buffer"
    assert with_sender_only(looks(flying=2_999_900)) == "unknown", "its application, or its window"
    assert limits.who_limits({}, limits.receiver_details(looks(unread=1 << 20))) == "receiver"
    assert limits.who_limits({}, limits.receiver_details(looks())) == "unknown"
    assert limits.who_limits({}, {}) == "unknown"


@pytest.mark.parametrize("count", range(limits.LEAST_GLIMPSES))
def test_too_few_looks_tell_nothing(count):
    assert judge(looks(count), looks(count, unread=1 << 20)) == "unknown"


def test_an_old_kernel_without_its_times_tells_nothing_of_the_sender():
    times = [
        f"{each}_seconds" for each in ("busy", "receive_window_limited", "send_buffer_limited")
    ]
    assert judge(without(looks(), *times)) == "unknown"


def test_the_figures_are_of_the_span_and_not_of_the_connections_life():
    slopes = {"busy_seconds": 0.9, "receive_window_limited_seconds": 0.5}
    slopes |= {"retransmitted_bytes": 144_800, "retransmitted_segments": 100}
    slopes |= {"rto_time_seconds": 0.25}
    figures = limits.sender_details(looks(51, slopes=slopes))
    assert figures["glimpses"] == 51
    assert figures["busy_ratio"] == pytest.approx(0.9)
    assert figures["receive_window_limited_ratio"] == pytest.approx(0.5)
    assert figures["send_buffer_limited_ratio"] == 0
    assert figures["retransmitted_segments"] == pytest.approx(100)
    assert figures["sent_bytes"] == pytest.approx(12e6)
    assert figures["loss_ratio"] == pytest.approx(144_800 / 12e6)
    assert figures["rto_seconds"] == pytest.approx(0.25)


def test_medians_highs_and_last_values_are_told():
    glimpses = [
        *looks(2, flying=100_000, rtt_seconds=0.02),
        *looks(3, flying=140_000),
        *looks(1, flying=200_000, rtt_seconds=0.5),
    ]
    info = limits.sender_details(glimpses)
    assert info["in_flight_bytes_median"] == pytest.approx(140_000)
    assert info["in_flight_bytes_high"] == pytest.approx(200_000)
    assert (info["rtt_seconds_median"], info["rtt_seconds_high"]) == (pytest.approx(0.01525), 0.5)
    assert info["min_rtt_seconds"] == 0.010 and info["path_mtu_bytes"] == 1500
    assert info["congestion_window_bytes_median"] == 100 * SEGMENT
    assert info["peer_window_bytes_median"] == 3_000_000
    assert info["unsent_bytes_median"] == 200_000
    assert info["send_buffer_bytes"] == 400_000


def test_what_is_not_known_is_absent_and_not_zero():
    nothing = [Glimpse(0.02 * index, {}, None, None) for index in range(10)]
    assert limits.sender_details(nothing) == {"glimpses": 10}
    assert limits.receiver_details(nothing) == {}
    assert limits.sender_details([]) == {"glimpses": 0}
    assert limits.receiver_details([]) == {}


def test_a_step_carries_the_verdict_with_the_figures_of_both_ends():
    sender, receiver = limits.sender_details(looks()), limits.receiver_details(looks())
    details = limits.step_details(sender, receiver, "cubic")
    assert (details["by"], details["congestion_control"]) == ("network", "cubic")
    assert sender.items() <= details.items() and receiver.items() <= details.items()


def test_what_a_quota_lets_go_comes_in_bursts_a_period_apart():
    """Five replies in 8 ms, then nothing until the next tenth of a second."""
    moments = [0.1 * period + 0.002 * reply for period in range(12) for reply in range(5)]
    figures = limits.moment_silence(moments)
    assert figures["burst_seconds_median"] == pytest.approx(0.1)
    assert figures["burst_count_median"] == 5
    assert figures["bursts"] == 11
    assert figures["silent_ratio"] > 0.9


def test_a_slow_link_lets_each_reply_come_alone():
    assert limits.moment_silence([0.09 * number for number in range(20)])["burst_count_median"] == 1


def test_few_bursts_tell_nothing_of_their_distance():
    figures = limits.moment_silence([0.0, 0.1, 0.2, 0.3])
    assert figures["bursts"] == 3
    assert "burst_seconds_median" not in figures


@pytest.mark.parametrize("moments", [(), (1.0,), (1.0, 1.0)])
def test_nothing_is_told_of_a_moment(moments):
    assert limits.moment_silence(moments) == {}


@pytest.mark.parametrize(
    "looks", [(), [(0.0, 5)], [(0.0, None), (0.1, None)], [(1.0, 1), (1.0, 2)]]
)
def test_a_counter_that_was_not_seen_twice_tells_nothing(looks):
    assert limits.counter_silence(looks) == {}
