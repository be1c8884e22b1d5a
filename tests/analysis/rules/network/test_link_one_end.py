"""Without an agent the link is read off copies that touch no disk, or off the client's queue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.evidence.copies import best_alike, steady_rate
from probes.records import Sample

LINK = ("network", "path", "link-rate")
NOBODY = ("unknown", None, "inconclusive")
MB = 1e6


@pytest.fixture
def alone(empty_world):
    """A client without an agent on the server."""
    return empty_world(agent=False)


def ceiling(world, name):
    copy = next(each for each in diagnose(world.report()).copies if each.copy == name)
    return next((each for each in copy.ceilings if each.component == "network"), None)


def timed(world, *samples):
    """Gives the last step these samples: seconds and bytes."""
    step, outcome = world.entries[-1]
    run = tuple(Sample(seconds, int(moved)) for seconds, moved in samples)
    world.entries[-1] = step, replace(outcome, runs=(run,))


# -- standard links ------------------------------------------------------------------------------


def test_requests_alone_show_the_link_where_the_copy_to_memory_fell_short(alone):
    """A short copy loses some of its time to its start; requests on their own do not."""
    alone.matrix("pull", {(1 << 20, 8): 118.0}, 0.0002)
    alone.copy("pull.cached", (113, 114, 115), memory=112)
    assert alone.named("pull.cached") == LINK
    assert ceiling(alone, "pull.cached").bytes_per_second == pytest.approx(118 * MB)


def test_a_copy_without_security_shows_it_too(alone):
    alone.tax("push", "plain", 11.75)
    alone.copy("push.cached", (11.3, 11.4, 11.5))
    assert alone.named("push.cached") == LINK


def test_a_disk_that_happens_to_write_what_a_link_carries_is_no_sure_link(alone, sockets):
    """The client had nothing left to send, or the same path carried far more the other way."""
    idle = sockets(by="sender", receiver_seen=False)
    alone.copy("push.cached", (11.3, 11.4, 11.5), memory=11.7, details={"sockets": idle})
    assert diagnose(alone.report()).copies[0].verdict.confidence <= 0.6
    alone.copy("pull.cached", (11.3, 11.4, 11.5), memory=11.7)
    alone.copy("push.uncached", (96, 97, 98), memory=97)
    (pull,) = [each for each in diagnose(alone.report()).copies if each.copy == "pull.cached"]
    assert pull.verdict.component == "network" and pull.verdict.confidence <= 0.6


def test_the_start_of_a_pull_on_a_long_path_is_not_the_link(alone):
    """10.8 MB/s on the whole, and 11.8 from its third reply on: 100 Mbit/s."""
    alone.copy("pull.cached", 10.8, memory=10.8)
    steps = [(0.0, 0), (0.16, 1e6), (0.34, 3e6), (0.54, 5.3e6), (0.69, 7.1e6), (0.77, 8.05e6)]
    alone.entries[-2], alone.entries[-1] = alone.entries[-1], alone.entries[-2]
    timed(alone, *steps, (0.775, 8.05e6))
    assert ceiling(alone, "pull.cached").bytes_per_second == pytest.approx(11.75 * MB, rel=0.02)


def test_the_round_trip_of_a_push_is_not_the_link(alone):
    alone.copy("push.cached", (11.2, 11.3, 11.4), memory=11.3)
    step, outcome = alone.entries[-2]
    told = {"acknowledged_bytes_per_second": 11.35 * MB, "rtt_seconds": 0.15}
    alone.entries[-2] = step, replace(outcome, details=told)
    assert alone.named("push.cached") == LINK


def test_a_copy_from_a_folder_alone_may_show_a_disk(alone):
    """11.7 MB/s is what 100 Mbit/s carries, and what many a disk writes."""
    alone.copy("push.cached", (11.6, 11.7, 11.8))
    assert alone.named("push.cached") == NOBODY


def test_what_another_copy_exceeds_is_no_link(alone):
    alone.copy("push.cached", (14.0, 14.5, 15.0), memory=11.7)
    assert ceiling(alone, "push.cached") is None


def test_what_goes_the_other_way_says_nothing(alone):
    alone.tax("pull", "plain", 117.5)
    alone.copy("push.cached", (110, 111, 112))
    assert ceiling(alone, "push.cached") is None


def test_bytes_that_were_altered_say_nothing(alone):
    alone.tax("push", "plain", 117.5, hash_ok=False)
    alone.copy("push.cached", (110, 111, 112))
    assert ceiling(alone, "push.cached") is None


def test_a_busy_client_says_nothing_of_the_link(alone):
    full = {"client": {"core_busy_ratios": (1.0, 1.0), "busiest_process_ratio": 0.99}}
    alone.copy("push.cached", (116, 117, 118), memory=117.5, **full)
    assert ceiling(alone, "push.cached") is None


# -- links of no standard rate -------------------------------------------------------------------


QUEUED = {
    "by": "network",
    "send_queue_full_ratio": 0.94,
    "unread_bytes_median": None,
    "full_ratio": None,
    "own_window_bytes_median": None,
    "receiver_seen": False,
}


def pushes(alone, sockets, rates=(6.6, 6.7, 6.8), **changes):
    """Three copies of one rate, whose packets queue on the path."""
    more = {name: changes.pop(name) for name in ("replies", "requests") if name in changes}
    told = {"sockets": sockets(**{**QUEUED, **changes}), **more}
    low, middle, high = rates
    alone.copy("push.cached", middle, memory=high, details=told)
    alone.copy("push.uncached", low, details=told)


def test_a_queue_with_more_behind_it_is_a_link_of_any_rate(alone, sockets):
    pushes(alone, sockets)
    found = next(each for each in diagnose(alone.report()).copies if each.copy == "push.cached")
    assert alone.named("push.cached") == LINK
    assert found.verdict.confidence <= 0.7
    assert any("--agent" in line for line in found.evidence)


@pytest.mark.parametrize(
    "changes",
    [
        {"by": "sender"},
        {"rtt_seconds_median": 0.0165},  # nothing queues
        {"rtt_seconds_median": None},
        {"rtt_seconds_median": 0.0005, "min_rtt_seconds": 0.0001},
        {"unsent_bytes_median": 0},
        {"send_queue_full_ratio": 0.2},
        {"sender_seen": False},
        {"rates": (4.5, 6.7, 6.8)},  # the copies do not agree: a CPU, a disk, somebody else
        {"replies": {"silent_ratio": 0.6, "bursts": 9, "burst_count_median": 6}},  # a quota
    ],
)
def test_a_queue_alone_is_not_enough(alone, sockets, changes):
    pushes(alone, sockets, **changes)
    assert alone.named("push.cached") == NOBODY


def test_two_copies_are_too_few_to_agree(alone, sockets):
    told = {"sockets": sockets(**QUEUED)}
    alone.copy("push.cached", 6.7, memory=6.8, details=told)
    assert alone.named("push.cached") == NOBODY


# -- the steady part -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["push.cached", "pull.cached"])
def test_a_steady_rate_is_never_far_above_the_steps_own(alone, name):
    """A burst that ends late would be taken for the rate."""
    told = {"acknowledged_bytes_per_second": 900 * MB, "rtt_seconds": 0.0}
    alone.copy(name, 100, details=told)
    timed(alone, (0.0, 0), (1.0, 1e6), (1.9, 2e6), (2.0, 200e6))
    found = best_alike(alone.report(), "client" if "push" in name else "server")
    assert steady_rate(found) == pytest.approx(1.15 * found.rate.median)


@pytest.mark.parametrize(
    "told", [{}, {"acknowledged_bytes_per_second": 120 * MB, "rtt_seconds": 3.0}]
)
def test_without_an_acknowledged_rate_the_whole_is_the_rate(alone, told):
    alone.copy("push.cached", 100, details=told)
    found = best_alike(alone.report(), "client")
    assert steady_rate(found) == found.rate.median


def test_a_pull_that_arrived_at_once_has_no_steady_part(alone):
    alone.copy("pull.cached", 100)
    timed(alone, (0.0, 0), (1.0, 100e6))
    found = best_alike(alone.report(), "server")
    assert steady_rate(found) == found.rate.median


# -- what an agent would add ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("push.cached", ("TCP alone", "disk writes", "its WRITEs", "CPU")),
        ("pull.cached", ("TCP alone", "disk reads", "server's RAM", "CPU")),
    ],
)
def test_an_inconclusive_copy_says_what_an_agent_would_tell_of_it(alone, name, words):
    alone.copy(name, (50, 51, 52))
    advice = diagnose(alone.report()).copies[0].advice[0]
    assert "--agent" in advice
    assert all(each in advice for each in words)


def test_what_is_known_already_is_not_asked_for(alone):
    alone.copy("push.cached", (50, 51, 52), memory=117.5)
    assert "TCP alone" not in diagnose(alone.report()).copies[0].advice[0]
