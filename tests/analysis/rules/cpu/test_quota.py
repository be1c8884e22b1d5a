"""Without an agent, replies in bursts, one burst each 100 ms, show a CPU quota at the server."""

from __future__ import annotations

from dataclasses import replace

import pytest

QUOTA, INCONCLUSIVE = "cpu/server/quota", "unknown/inconclusive"


def beat(by="unknown", requests=200, **changes):
    """Replies in bursts of five, a tenth of a second apart."""
    figures = {
        "silent_ratio": 0.8,
        "bursts": 39,
        "burst_count_median": 5.0,
        "burst_seconds_median": 0.1002,
        "burst_seconds_low": 0.0992,
        "burst_seconds_high": 0.1008,
        **changes,
    }
    replies = {name: value for name, value in figures.items() if value is not None}
    return {"replies": replies, "sockets": {"by": by}, "requests": requests}


BEATS = {
    "a pull": (QUOTA, "pull.cached", beat()),
    "a push": (QUOTA, "push.cached", beat("network")),
    "a push that waits for replies: its kernel has sent all": pytest.param(
        INCONCLUSIVE, "push.uncached", beat("sender")
    ),
    "a radio's beacon": (
        INCONCLUSIVE,
        "pull.cached",
        beat(burst_seconds_median=0.1024, burst_seconds_low=0.102, burst_seconds_high=0.103),
    ),
    "replies one by one: a link of 100 Mbit/s": pytest.param(
        INCONCLUSIVE, "pull.cached", beat(burst_count_median=1.0)
    ),
    "each 88 ms": (
        INCONCLUSIVE,
        "pull.cached",
        beat(burst_seconds_median=0.088, burst_seconds_low=0.087, burst_seconds_high=0.089),
    ),
    "no clock keeps such time": pytest.param(
        INCONCLUSIVE, "pull.cached", beat(burst_seconds_low=0.06, burst_seconds_high=0.14)
    ),
    "hardly silent": (INCONCLUSIVE, "pull.cached", beat(silent_ratio=0.1)),
    "the client does not take what came": (INCONCLUSIVE, "pull.cached", beat("receiver")),
    "not told how evenly": (INCONCLUSIVE, "pull.cached", beat(burst_seconds_low=None)),
    "not told how many": (INCONCLUSIVE, "pull.cached", beat(bursts=None, burst_count_median=None)),
    "nothing told": (INCONCLUSIVE, "pull.cached", {"requests": 200}),
}


@pytest.mark.parametrize(("cap", "name", "details"), BEATS.values(), ids=BEATS)
def test_a_server_that_answers_at_the_beat_of_a_quota_has_one(no_agent, cap, name, details, expect):
    no_agent.copy(name, (46, 48, 50), details=details)
    expect(no_agent, cap)


def test_a_copy_whose_own_beat_is_blurred_is_explained_by_another(no_agent, expect):
    keys = ("burst_count_median", "burst_seconds_median", "burst_seconds_low", "burst_seconds_high")
    blurred = beat(silent_ratio=0.2, burst_seconds_low=0.07, burst_seconds_high=0.3)
    no_agent.copy("push.cached", (50, 52, 54), details=beat("network"))
    no_agent.copy("pull.cached", (85, 87, 89), details=blurred)
    no_agent.copy("push.uncached", (60, 62, 64), details=beat(bursts=4, **dict.fromkeys(keys)))
    expect(no_agent, QUOTA, INCONCLUSIVE, INCONCLUSIVE)


def test_a_radio_that_sleeps_between_two_beacons_is_no_quota(no_agent, expect):
    link = replace(no_agent.client.interface, kind="wifi")
    no_agent.client = replace(no_agent.client, interface=link)
    no_agent.copy("pull.cached", (46, 48, 50), details=beat())
    expect(no_agent, INCONCLUSIVE)


def test_a_client_whose_own_disk_stops_is_not_taken_for_the_server(no_agent, expect):
    no_agent.entries.clear()
    no_agent.disk("client", "read", 28)
    no_agent.copy("push.uncached", (26, 27, 28), details=beat("sender"))
    expect(no_agent, "disk/client/read")


LOADS = {
    "a quota": {"throttled_ratio": 0.9, "quota_cores": 0.08, "copy_cpu_seconds": 0.32},
    "at times": {"throttled_ratio": 0.2, "quota_cores": 0.08, "copy_cpu_seconds": 0.1},
    "one that is not shown": {"run_delay_seconds": 2.4},
    "not told": {"core_busy_ratios": ()},
}


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_a_client_that_stops_itself_says_nothing_of_the_server(no_agent, load, expect):
    no_agent.copy("pull.cached", (46, 48, 50), details=beat(), client=load)
    expect(no_agent)
    assert no_agent.verdict_key()[:2] != ("cpu", "server")


def test_with_an_agent_the_quota_itself_is_read(world, expect):
    """There is none: it is the file server that stands still."""
    world.copy("pull.cached", (46, 48, 50), details=beat())
    expect(world, "smb/server/server-software")
