"""Without an agent the client's socket shows a window or a buffer that is all that is in flight."""

from __future__ import annotations

import pytest

from bottleneck.analysis.diagnosis import diagnose

NOBODY = ("unknown", None, "inconclusive")
TRIP = {"rtt_seconds": 0.0171, "rtt_low_seconds": 0.0165}


@pytest.fixture
def alone(empty_world):
    """A client far from its server, without an agent there."""
    return empty_world(agent=False)


def named(world, name):
    found = next(each for each in diagnose(world.report()).copies if each.copy == name).verdict
    assert found.component != "tcp" or found.confidence <= 0.8
    return found.named


def without(told, *more):
    gone = ("unread_bytes_median", "full_ratio", "own_window_bytes_median", "process", *more)
    told = {name: value for name, value in told.items() if name not in gone}
    return {**told, "receiver_seen": False}


# -- pulls: the client's own window --------------------------------------------------------------

PULL = {
    "by": "unknown",
    "sender_seen": False,
    "receiver_seen": True,
    "unread_bytes_median": 0,
    "full_ratio": 0.0,
    "own_window_bytes_median": 85_632,
    "receive_buffer_bytes": 131_072,
}
OWN = ("tcp", "client", "receive-window")


@pytest.mark.parametrize("rate", [3.8, 4.8, 5.1])
def test_a_pull_of_one_window_a_round_trip_is_held_by_it(alone, rate):
    alone.copy("pull.cached", (rate, rate, rate), details={"sockets": PULL, **TRIP})
    assert named(alone, "pull.cached") == OWN
    copy = diagnose(alone.report()).copies[0]
    assert "net.ipv4.tcp_rmem" in copy.advice[0] or "SO_RCVBUF" in copy.advice[0]


@pytest.mark.parametrize(
    ("changes", "trip"),
    [
        ({"own_window_bytes_median": 706_560}, TRIP),  # the kernel's tuning left it room
        ({"unread_bytes_median": 60_000}, TRIP),  # the client does not take what came
        ({"full_ratio": 0.6}, TRIP),
        ({"unread_bytes_median": None}, TRIP),
        ({"own_window_bytes_median": None}, TRIP),
        ({}, {}),  # no round trip is known
        ({"own_window_bytes_median": 2400}, {"rtt_seconds": 0.0005}),  # a path too short
        ({"own_window_bytes_median": 20 << 20}, {"rtt_seconds": 4.2}),  # as large as can be
    ],
)
def test_a_pull_with_room_in_its_window_is_not(alone, changes, trip):
    alone.copy("pull.cached", (4.7, 4.8, 4.9), details={"sockets": {**PULL, **changes}, **trip})
    assert named(alone, "pull.cached") == NOBODY


def test_a_busy_client_says_nothing_of_its_window(alone):
    busy = {"core_busy_ratios": (1.0, 1.0), "busiest_process_ratio": 0.5, "other_cpu_seconds": 6.0}
    busy["run_delay_seconds"] = 3.0
    alone.copy("pull.cached", 4.8, details={"sockets": PULL, **TRIP}, client=busy)
    assert named(alone, "pull.cached")[0] != "tcp"


def test_with_an_agent_the_servers_own_word_counts(world):
    world.copy("pull.cached", (4.7, 4.8, 4.9), details={"sockets": PULL, **TRIP})
    assert named(world, "pull.cached")[0] != "tcp"


# -- pushes: the server's window -----------------------------------------------------------------

SERVERS = {
    "by": "unknown",
    "peer_window_bytes_median": 85_632,
    "in_flight_bytes_median": 85_600,
    "in_flight_bytes_high": 85_631,
    "peer_window_full_ratio": 0.55,
    "rtt_seconds_median": 0.0169,
    "min_rtt_seconds": 0.0161,
    "send_buffer_bytes": 552_960,
    "congestion_window_bytes_median": 173_760,
}


@pytest.mark.parametrize(
    "changes", [{}, {"peer_window_full_ratio": 0.0, "receive_window_limited_ratio": 0.6}]
)
def test_a_push_of_one_window_a_round_trip_is_held_by_the_servers(alone, sockets, changes):
    told = without(sockets(**{**SERVERS, **changes}))
    alone.copy("push.cached", (4.7, 4.8, 4.9), details={"sockets": told})
    assert named(alone, "push.cached") == ("tcp", "server", "receive-window")


def test_a_window_that_never_was_larger_is_surer_than_one_that_may_have_been(alone, sockets):
    told = [without(sockets(**SERVERS, **more)) for more in ({"peer_window_bytes_high": 86e3}, {})]
    for name, each in zip(("push.cached", "push.uncached"), told, strict=True):
        alone.copy(name, (4.7, 4.8, 4.9), details={"sockets": each})
    fixed, unseen = (each.verdict.confidence for each in diagnose(alone.report()).copies)
    assert unseen <= 0.6 < fixed <= 0.8


@pytest.mark.parametrize(
    "changes",
    [
        {"peer_window_full_ratio": 0.1},
        {"rtt_seconds_median": 0.05},  # a queue on the path: a link
        {"peer_window_bytes_median": 300_000, "in_flight_bytes_median": 290_000},  # a slow reader
        {"peer_window_bytes_high": 200_000},  # it was larger: its reader is slow
        {"in_flight_bytes_median": 20_000},
        {"in_flight_bytes_median": None},
        {"peer_window_bytes_median": None},
        {"min_rtt_seconds": None},
        {"sender_seen": False},
    ],
)
def test_a_push_that_something_else_holds_is_not(alone, sockets, changes):
    told = without(sockets(**{**SERVERS, **changes}))
    alone.copy("push.cached", (4.7, 4.8, 4.9), details={"sockets": told})
    assert named(alone, "push.cached") == NOBODY


# -- pushes: the client's own send buffer --------------------------------------------------------

BUFFER = {
    "by": "send-buffer",
    "unsent_bytes_median": 0,
    "in_flight_bytes_median": 186_000,
    "in_flight_bytes_high": 269_000,
    "rtt_seconds_median": 0.0231,
    "min_rtt_seconds": 0.016,
    "send_buffer_bytes": 65_536,
    "congestion_window_bytes_median": 207_064,
    "send_queue_full_ratio": 0.94,
}


def test_a_push_whose_buffer_is_all_on_its_way_is_held_by_it(alone, sockets):
    told = without(sockets(**BUFFER))
    alone.copy("push.cached", (6.4, 6.5, 6.6), details={"sockets": told})
    assert named(alone, "push.cached") == ("tcp", "client", "send-buffer")


@pytest.mark.parametrize(
    "changes",
    [
        {"by": "network"},  # the packets queue behind a link
        {"by": "sender"},
        {"send_buffer_bytes": 1_400_000},  # as large as the kernel makes it
        {"send_buffer_bytes": None},
        {"congestion_window_bytes_median": None},
        {"min_rtt_seconds": None},
        {"min_rtt_seconds": 0.0002, "rtt_seconds_median": 0.0003},
    ],
)
def test_a_push_that_its_buffer_does_not_hold_is_not(alone, sockets, changes):
    told = without(sockets(**{**BUFFER, **changes}))
    alone.copy("push.cached", (6.4, 6.5, 6.6), details={"sockets": told})
    assert named(alone, "push.cached") == NOBODY


def test_what_the_kernel_counted_itself_is_told_once(alone, sockets):
    told = without(sockets(**BUFFER, send_buffer_limited_ratio=0.6))
    alone.copy("push.cached", (7.9, 8.0, 8.1), details={"sockets": told})
    found = diagnose(alone.report()).copies[0].ceilings
    assert [each.cause for each in found].count("send-buffer") == 1


@pytest.mark.parametrize("window", [85_632, 400_000])
def test_the_advice_names_a_size_where_the_interface_tells_what_is_needed(alone, sockets, window):
    """A gigabit interface at 16 ms needs 2 MB; where its rate is not known, no size is named."""
    told = without(
        sockets(**{**SERVERS, "peer_window_bytes_median": window, "in_flight_bytes_median": window})
    )
    rate = 0.95 * window / 0.0161 / 1e6
    alone.copy("push.cached", (rate, rate, rate), details={"sockets": told})
    assert named(alone, "push.cached") == ("tcp", "server", "receive-window")
    assert "or more on the server" in diagnose(alone.report()).copies[0].advice[0]


@pytest.mark.parametrize("figures", [SERVERS, BUFFER])
def test_no_size_is_named_where_nobody_knows_what_the_path_carries(alone, sockets, figures):
    alone.client = None
    alone.copy("push.cached", (4.8, 4.9, 5.0), details={"sockets": without(sockets(**figures))})
    advice = diagnose(alone.report()).copies[0].advice[0]
    assert "A larger" in advice
