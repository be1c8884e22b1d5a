"""Without an agent the client's socket shows a window or a buffer that is all that is in flight."""

from __future__ import annotations

import pytest

NOBODY = "unknown/inconclusive"
TRIP = {"rtt_seconds": 0.0171, "rtt_low_seconds": 0.0165}


def without(told):
    gone = ("unread_bytes_median", "full_ratio", "own_window_bytes_median", "process")
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


@pytest.mark.parametrize("rate", [3.3, 4.8, 5.1])
def test_a_pull_of_one_window_a_round_trip_is_held_by_it(alone, rate, says):
    alone.copy("pull.cached", (rate, rate, rate), details={"sockets": PULL, **TRIP})
    says(alone, "tcp/client/receive-window")


WITH_ROOM = {
    "the kernel's tuning left it room": ({"own_window_bytes_median": 706_560}, TRIP),
    "the client does not take what came": ({"unread_bytes_median": 60_000}, TRIP),
    "nor often": ({"full_ratio": 0.6}, TRIP),
    "not told what is unread": ({"unread_bytes_median": None}, TRIP),
    "not told how large": ({"own_window_bytes_median": None}, TRIP),
    "no round trip is known": ({}, {}),
    "a path too short": ({"own_window_bytes_median": 2400}, {"rtt_seconds": 0.0005}),
}


@pytest.mark.parametrize(("changes", "trip"), WITH_ROOM.values(), ids=WITH_ROOM)
def test_a_pull_with_room_in_its_window_is_not(alone, changes, trip, says):
    alone.copy("pull.cached", (4.7, 4.8, 4.9), details={"sockets": {**PULL, **changes}, **trip})
    says(alone, NOBODY)


def test_the_largest_window_is_the_paths_affair(alone, says):
    seen = {**PULL, "own_window_bytes_median": 20 << 20}
    alone.copy("pull.cached", 4.8, details={"sockets": seen, "rtt_seconds": 4.2})
    says(alone, "network/path/delay")


def test_a_busy_client_says_nothing_of_its_window_and_an_agent_has_the_word(alone, world, says):
    busy = {"core_busy_ratios": (1.0, 1.0), "busiest_process_ratio": 0.5, "other_cpu_seconds": 6.0}
    busy["run_delay_seconds"] = 3.0
    alone.copy("pull.cached", 4.8, details={"sockets": PULL, **TRIP}, client=busy)
    says(alone, "cpu/client/contention")
    world.copy("pull.cached", (4.7, 4.8, 4.9), details={"sockets": PULL, **TRIP})
    says(world, NOBODY)


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
FULL = {
    "full in half of the looks": {},
    "counted by the kernel": {"peer_window_full_ratio": 0.0, "receive_window_limited_ratio": 0.6},
    "never larger: surer": {"peer_window_bytes_high": 86e3},
}


@pytest.mark.parametrize("changes", FULL.values(), ids=FULL)
def test_a_push_of_one_window_a_round_trip_is_held_by_the_servers(alone, sockets, changes, says):
    told = without(sockets(**{**SERVERS, **changes}))
    alone.copy("push.cached", (4.7, 4.8, 4.9), details={"sockets": told})
    says(alone, "tcp/server/receive-window")


@pytest.mark.parametrize(
    ("rate", "named"), [(3.2, "tcp/server/receive-window"), (2.4, NOBODY)], ids=["less", "more"]
)
def test_a_flush_after_it_is_no_time_of_the_window_if_it_takes_less(
    alone, sockets, rate, named, says
):
    """The bytes arrived at 4.8 MB/s; a disk that nobody measured took the rest of the time."""
    told = {"sockets": without(sockets(**SERVERS)), "acknowledged_bytes_per_second": 4.8e6}
    alone.copy("push.cached", (0.98 * rate, rate, 1.02 * rate), details=told)
    says(alone, named)


HELD_BY_ELSE = {
    "seldom full": {"peer_window_full_ratio": 0.1},
    "a queue on the path: a link": {"rtt_seconds_median": 0.05},
    "a slow reader": {"peer_window_bytes_median": 300_000, "in_flight_bytes_median": 290_000},
    "it was larger: its reader is slow": {"peer_window_bytes_high": 200_000},
    "not filled": {"in_flight_bytes_median": 20_000},
    "not told whether": {"in_flight_bytes_median": None},
    "not told how large": {"peer_window_bytes_median": None},
    "no round trip": {"min_rtt_seconds": None},
    "its sender was not seen": {"sender_seen": False},
}


@pytest.mark.parametrize("changes", HELD_BY_ELSE.values(), ids=HELD_BY_ELSE)
def test_a_push_that_something_else_holds_is_not(alone, sockets, changes, says):
    told = without(sockets(**{**SERVERS, **changes}))
    alone.copy("push.cached", (4.7, 4.8, 4.9), details={"sockets": told})
    says(alone, NOBODY)


# -- pushes: the client's own congestion window --------------------------------------------------

STILL = {
    **{"by": "network", "segment_bytes": 1448, "retransmitted_bytes": 0},
    **{"unsent_bytes_median": 223_000, "send_queue_full_ratio": 0.94, "loss_ratio": 0.0},
    **{"in_flight_bytes_median": 144_799, "in_flight_bytes_high": 144_799},
    **{"rtt_seconds_median": 0.0507, "min_rtt_seconds": 0.0502},
    **{"peer_window_bytes_median": 737_280, "congestion_window_bytes_median": 144_800},
}
CLAMPED = {
    "never larger in 80 round trips": ("tcp/client/congestion-control", {}),
    "it grew": (NOBODY, {"in_flight_bytes_high": 269_000}),
    "not told whether": (NOBODY, {"in_flight_bytes_high": None}),
    "packets were lost": (NOBODY, {"retransmitted_bytes": 9000}),
    "a queue on the path": (NOBODY, {"rtt_seconds_median": 0.07}),
    "nothing more to send": (NOBODY, {"unsent_bytes_median": 0}),
    "a few round trips": (
        "network/path/delay",
        {"min_rtt_seconds": 0.39, "rtt_seconds_median": 0.4},
    ),
}


@pytest.mark.parametrize(("named", "changes"), CLAMPED.values(), ids=CLAMPED)
def test_a_congestion_window_that_never_grows_holds_a_push(alone, sockets, named, changes, says):
    """100 segments at 50 ms, by the route's own limit."""
    alone.copy("push.cached", 2.71, details={"sockets": sockets(**{**STILL, **changes})})
    says(alone, named)


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
BUFFERS = {
    "all of it is on its way": ("tcp/client/send-buffer", {}),
    "what the kernel counted itself is told once": (
        *("unknown/inconclusive", {"send_buffer_limited_ratio": 0.6}),
    ),
    "the packets queue behind a link": (NOBODY, {"by": "network"}),
    "a slow program": (NOBODY, {"by": "sender"}),
    "as large as the kernel makes it": (NOBODY, {"send_buffer_bytes": 1_400_000}),
    "not told how large": (NOBODY, {"send_buffer_bytes": None}),
    "not told how large it would be": (NOBODY, {"congestion_window_bytes_median": None}),
    "no round trip": (NOBODY, {"min_rtt_seconds": None}),
    "a short one": (NOBODY, {"min_rtt_seconds": 0.0002, "rtt_seconds_median": 0.0003}),
}


@pytest.mark.parametrize(("named", "changes"), BUFFERS.values(), ids=BUFFERS)
def test_a_push_whose_buffer_is_all_on_its_way_is_held_by_it(alone, sockets, named, changes, says):
    told = without(sockets(**{**BUFFER, **changes}))
    alone.copy("push.cached", (6.4, 6.5, 6.6), details={"sockets": told})
    says(alone, named)


@pytest.mark.parametrize("window", [85_632, 400_000])
def test_the_advice_names_a_size_where_the_interface_tells_what_is_needed(
    alone, sockets, window, says
):
    """A gigabit interface at 16 ms needs 2 MB; where its rate is not known, no size is named."""
    told = {**SERVERS, "peer_window_bytes_median": window, "in_flight_bytes_median": window}
    rate = 0.95 * window / 0.0161 / 1e6
    alone.copy("push.cached", (rate, rate, rate), details={"sockets": without(sockets(**told))})
    says(alone, "tcp/server/receive-window")


@pytest.mark.parametrize("figures", [SERVERS, BUFFER], ids=["window", "buffer"])
def test_no_size_is_named_where_nobody_knows_what_the_path_carries(alone, sockets, figures, says):
    alone.client = None
    alone.copy("push.cached", (4.8, 4.9, 5.0), details={"sockets": without(sockets(**figures))})
    says(alone)
    assert "the path needs" not in alone.diagnosed().advice[0]
    assert "aise the third value of" in alone.diagnosed().advice[0]
