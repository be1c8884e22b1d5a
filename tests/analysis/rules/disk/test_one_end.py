"""Without an agent a push tells of the server's disk: by its FLUSHes, or by each of its WRITEs."""

from __future__ import annotations

import pytest

MB = 1e6
DISK = "disk/server/write"
NOBODY, LINK = "unknown/inconclusive", "network/path/link-rate"


def told(rate, arrived, last, all_of_them=None, flushes=2, waits=0.07, by="sender"):
    """Details of a push of 4 s."""
    return {
        "flush_seconds": last,
        "flushing_seconds": all_of_them,
        "flushes": flushes,
        "requests": 4 * rate,
        "request_seconds_median": waits,
        "acknowledged_bytes_per_second": arrived * MB,
        "rtt_seconds": 0.0002,
        "in_flight_bytes": 8 << 20,
        "sockets": {"by": by, "sender_seen": True, "unsent_bytes_median": 0},
    }


QUEUED = {"by": "network", "waits": 0.01}
PUSHES = {
    "bytes that had arrived long before wait for the disk": (DISK, 16.3, (118, 3.5, 3.6), {}),
    "what came before the first flush is no time of the disk": (DISK, 47, (117, 2.4, 3.2), {}),
    "flushes on the way count where the last one finds nothing": (
        *(DISK, 18.1, (18.2, 0.001, 3.9), {"flushes": 5, "waits": 0.017}),
    ),
    "a flush that waits behind a slow link is no disk's": (
        *(LINK, 11.7, (11.8, 0.03, 2.2), {"flushes": 4, "waits": 0.7, "by": "network"}),
    ),
    "a disk that is faster than the link is not reached": (
        *(LINK, 11.7, (11.9, 0.3, 2.4), {"flushes": 3, **QUEUED}),
    ),
    "a flush of a short file is small beside it": (NOBODY, 91, (118, 0.9, 0.9), {}),
    "a flush of no time says nothing": (NOBODY, 16.3, (118, 0.0, None), {}),
    "no flush says nothing": (NOBODY, 16.3, (118, None, None), {}),
}


@pytest.mark.parametrize(("named", "rate", "times", "more"), PUSHES.values(), ids=PUSHES)
def test_flushes_tell_of_the_servers_disk(alone, named, rate, times, more, says):
    dialect = "smb1" if more.get("flushes") == 5 else "3.1.1"
    memory = 11.8 if named == LINK else None
    rates = (0.99 * rate, rate, 1.01 * rate)
    details = told(rate, *times, **more)
    alone.copy("push.cached", rates, memory=memory, dialect=dialect, details=details)
    says(alone, named)


def test_neither_a_pull_nor_a_server_with_an_agent_is_judged_by_them(alone, world, says):
    for at, name in ((alone, "pull.cached"), (world, "push.cached")):
        at.copy(name, (16.0, 16.3, 16.5), details=told(16.3, 118, 3.5, 3.6))
        says(at, NOBODY)


# -- forced writes -------------------------------------------------------------------------------


def forced(alone, rate=25.0, pull=118.0, taxes=(20.0,), memory=None, dialect="3.1.1", **changes):
    """Each write waits, from the first one on, whether anybody flushes or not."""
    spread, loads = changes.pop("spread", 0.02), changes.pop("loads", {})
    details = told(rate, rate * 1.01, 0.001, 0.002, flushes=1, waits=changes.pop("waits", 0.3))
    details["sockets"].update(changes)
    alone.copy("pull.cached", pull, memory=pull, proven=False)
    for tax in taxes:
        alone.tax("push", "plain", tax)
    if pull > 110:
        alone.tax("pull", "plain", 110)
    rates = (rate * (1 - spread), rate, rate * (1 + spread))
    alone.copy("push.cached", rates, memory=memory, dialect=dialect, details=details, **loads)


WAITING = {
    "each write": {},
    "a slow disk": {"rate": 10.0, "taxes": (10.5,)},
    "in an old dialect": {"rate": 7.4, "taxes": (10.4,), "dialect": "smb1"},
    "from memory alike": {"memory": 25},
}


@pytest.mark.parametrize("changes", WAITING.values(), ids=WAITING)
def test_writes_that_wait_from_the_first_one_on_are_forced(alone, changes, says):
    forced(alone, **changes)
    says(alone)
    assert alone.named("push.cached") == ("disk", "server", "sync")


OTHERWISE = {
    "fast without a flush: the disk writes it later": {"taxes": (110,)},
    "nobody pushed without a flush": {"taxes": ()},
    "reads are hardly faster: a slow server": {"pull": 60.0},
    "packets queue on the path": {"by": "network"},
    "more to send": {"unsent_bytes_median": 900_000},
    "not told whether there was": {"unsent_bytes_median": None},
    "short waits": {"waits": 0.004},
    "scattered": {"spread": 0.2},
    "the client's own disk": {"memory": 60},
    "the client's own quota": {"loads": {"client": {"throttled_ratio": 0.9, "quota_cores": 0.1}}},
}


@pytest.mark.parametrize("changes", OTHERWISE.values(), ids=OTHERWISE)
def test_other_reasons_to_wait_are_not_taken_for_forced_writes(alone, changes, says):
    forced(alone, **changes)
    says(alone)
    assert alone.named("push.cached")[2] != "sync"


def test_a_server_that_stops_and_goes_forces_nothing(alone, says):
    beat = {"silent_ratio": 0.8, "bursts": 11, "burst_count_median": 5.0}
    beat.update(burst_seconds_median=0.1, burst_seconds_low=0.099, burst_seconds_high=0.101)
    forced(alone)
    alone.copy("pull.uncached", 40, details={"replies": beat, "sockets": {"by": "unknown"}})
    says(alone)
    assert alone.named("push.cached")[2] != "sync"
