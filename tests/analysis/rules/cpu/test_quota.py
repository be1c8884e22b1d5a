"""Without an agent replies that come in bursts, one each 100 ms, show a quota at the server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck.analysis.diagnosis import diagnose

QUOTA = ("cpu", "server", "quota")


@pytest.fixture
def alone(empty_world):
    """A client with good disks, and no agent on the server."""
    made = empty_world(agent=False)
    made.disk("client", "read", 1500)
    made.disk("client", "write", 900)
    return made


def beat(by="unknown", requests=200, **changes):
    """Replies in bursts of five, a tenth of a second apart."""
    told = {
        "silent_ratio": 0.8,
        "bursts": 39,
        "burst_count_median": 5.0,
        "burst_seconds_median": 0.1002,
        "burst_seconds_low": 0.0992,
        "burst_seconds_high": 0.1008,
        **changes,
    }
    replies = {name: value for name, value in told.items() if value is not None}
    return {"replies": replies, "sockets": {"by": by}, "requests": requests}


def verdicts(world):
    return {each.copy: each.verdict for each in diagnose(world.report()).copies}


@pytest.mark.parametrize("name", ["pull.cached", "push.cached"])
def test_a_server_that_answers_at_the_beat_of_a_quota_has_one(alone, name):
    alone.copy(name, (46, 48, 50), details=beat("network" if "push" in name else "unknown"))
    assert alone.named(name) == QUOTA
    assert verdicts(alone)[name].confidence <= 0.8


def test_a_push_that_only_waits_for_replies_is_stopped_there(alone):
    """Its kernel has sent all; and the client's disk is fast enough not to be the reason."""
    alone.copy("push.uncached", (33, 34, 35), details=beat("sender"))
    assert alone.named("push.uncached") == QUOTA


def test_a_copy_whose_own_beat_is_blurred_is_explained_by_another(alone):
    blurred = beat(silent_ratio=0.2, burst_seconds_low=0.07, burst_seconds_high=0.3)
    few = beat(
        bursts=4,
        burst_count_median=None,
        burst_seconds_median=None,
        burst_seconds_low=None,
        burst_seconds_high=None,
    )
    alone.copy("push.cached", (50, 52, 54), details=beat("network"))
    alone.copy("pull.cached", (85, 87, 89), details=blurred)
    alone.copy("push.uncached", (60, 62, 64), details=few)
    found = verdicts(alone)
    assert alone.named("pull.cached") == alone.named("push.uncached") == QUOTA
    assert found["pull.cached"].confidence <= 0.7 < found["push.cached"].confidence


def test_a_radio_that_sleeps_between_two_beacons_is_no_quota(alone):
    link = replace(alone.client.interface, kind="wifi")
    alone.client = replace(alone.client, interface=link)
    alone.copy("pull.cached", (46, 48, 50), details=beat())
    assert alone.named("pull.cached") != QUOTA


@pytest.mark.parametrize(
    "details",
    [
        beat(burst_seconds_median=0.1024, burst_seconds_low=0.102, burst_seconds_high=0.103),
        beat(burst_count_median=1.0),  # a link of 100 Mbit/s: a reply each 88 ms, one by one
        beat(burst_seconds_median=0.088, burst_seconds_low=0.087, burst_seconds_high=0.089),
        beat(burst_seconds_low=0.06, burst_seconds_high=0.14),  # no clock keeps such time
        beat(silent_ratio=0.1),
        beat("receiver"),  # the client does not take what came
        beat(burst_seconds_low=None),
        beat(bursts=None, burst_count_median=None),
        {"requests": 200},
    ],
)
def test_other_ways_to_come_in_bursts_are_no_quota(alone, details):
    alone.copy("pull.cached", (46, 48, 50), details=details)
    assert alone.named("pull.cached") == ("unknown", None, "inconclusive")


def test_a_client_whose_own_disk_stops_is_not_taken_for_the_server(alone):
    alone.entries.clear()
    alone.disk("client", "read", 28)
    alone.copy("push.uncached", (26, 27, 28), details=beat("sender"))
    assert alone.named("push.uncached") == ("disk", "client", "read")


@pytest.mark.parametrize(
    "load",
    [
        {"throttled_ratio": 0.9, "quota_cores": 0.08, "copy_cpu_seconds": 0.32},
        {"throttled_ratio": 0.2, "quota_cores": 0.08, "copy_cpu_seconds": 0.1},
        {"run_delay_seconds": 2.4},  # kept waiting beside idle cores: a quota that is not shown
        {"core_busy_ratios": ()},
    ],
)
def test_a_client_that_stops_itself_says_nothing_of_the_server(alone, load):
    alone.copy("pull.cached", (46, 48, 50), details=beat(), client=load)
    assert alone.named("pull.cached") != QUOTA


def test_with_an_agent_the_quota_itself_is_read(world):
    world.copy("pull.cached", (46, 48, 50), details=beat())
    assert world.named("pull.cached") != QUOTA
