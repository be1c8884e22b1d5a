"""Without an agent replies that come in bursts, one each 100 ms, show a quota at the server."""

from __future__ import annotations

from dataclasses import replace

import pytest

QUOTA, NOBODY = "cpu/server/quota", "unknown/inconclusive"


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


BEATS = {
    "a pull": (QUOTA, "pull.cached", beat()),
    "a push": (QUOTA, "push.cached", beat("network")),
    "a push that waits for replies: its kernel has sent all": (
        *(NOBODY, "push.uncached", beat("sender")),
    ),
    "a radio's beacon": (
        NOBODY,
        "pull.cached",
        beat(burst_seconds_median=0.1024, burst_seconds_low=0.102, burst_seconds_high=0.103),
    ),
    "replies one by one: a link of 100 Mbit/s": (
        *(NOBODY, "pull.cached", beat(burst_count_median=1.0)),
    ),
    "each 88 ms": (
        NOBODY,
        "pull.cached",
        beat(burst_seconds_median=0.088, burst_seconds_low=0.087, burst_seconds_high=0.089),
    ),
    "no clock keeps such time": (
        *(NOBODY, "pull.cached", beat(burst_seconds_low=0.06, burst_seconds_high=0.14)),
    ),
    "hardly silent": (NOBODY, "pull.cached", beat(silent_ratio=0.1)),
    "the client does not take what came": (NOBODY, "pull.cached", beat("receiver")),
    "not told how evenly": (NOBODY, "pull.cached", beat(burst_seconds_low=None)),
    "not told how many": (NOBODY, "pull.cached", beat(bursts=None, burst_count_median=None)),
    "nothing told": (NOBODY, "pull.cached", {"requests": 200}),
}


@pytest.mark.parametrize(("named", "name", "details"), BEATS.values(), ids=BEATS)
def test_a_server_that_answers_at_the_beat_of_a_quota_has_one(alone, named, name, details, says):
    alone.copy(name, (46, 48, 50), details=details)
    says(alone, named)


def test_a_copy_whose_own_beat_is_blurred_is_explained_by_another(alone, says):
    gone = ("burst_count_median", "burst_seconds_median", "burst_seconds_low", "burst_seconds_high")
    blurred = beat(silent_ratio=0.2, burst_seconds_low=0.07, burst_seconds_high=0.3)
    alone.copy("push.cached", (50, 52, 54), details=beat("network"))
    alone.copy("pull.cached", (85, 87, 89), details=blurred)
    alone.copy("push.uncached", (60, 62, 64), details=beat(bursts=4, **dict.fromkeys(gone)))
    says(alone, QUOTA, NOBODY, NOBODY)


def test_a_radio_that_sleeps_between_two_beacons_is_no_quota(alone, says):
    link = replace(alone.client.interface, kind="wifi")
    alone.client = replace(alone.client, interface=link)
    alone.copy("pull.cached", (46, 48, 50), details=beat())
    says(alone, NOBODY)


def test_a_client_whose_own_disk_stops_is_not_taken_for_the_server(alone, says):
    alone.entries.clear()
    alone.disk("client", "read", 28)
    alone.copy("push.uncached", (26, 27, 28), details=beat("sender"))
    says(alone, "disk/client/read")


LOADS = {
    "a quota": {"throttled_ratio": 0.9, "quota_cores": 0.08, "copy_cpu_seconds": 0.32},
    "at times": {"throttled_ratio": 0.2, "quota_cores": 0.08, "copy_cpu_seconds": 0.1},
    "one that is not shown": {"run_delay_seconds": 2.4},
    "not told": {"core_busy_ratios": ()},
}


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_a_client_that_stops_itself_says_nothing_of_the_server(alone, load, says):
    alone.copy("pull.cached", (46, 48, 50), details=beat(), client=load)
    says(alone)
    assert alone.named()[:2] != ("cpu", "server")


def test_with_an_agent_the_quota_itself_is_read(world, says):
    """There is none: it is the file server that stands still."""
    world.copy("pull.cached", (46, 48, 50), details=beat())
    says(world, "smb/server/server-software")
