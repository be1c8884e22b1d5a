"""Without an agent a push tells of the server's disk: by its FLUSHes, or by each of its WRITEs."""

from __future__ import annotations

import pytest

from bottleneck.analysis.diagnosis import diagnose

MB = 1e6


@pytest.fixture
def alone(empty_world):
    """A client on a gigabit link, and no agent on the server."""
    made = empty_world(agent=False)
    made.loopback("client", 2100)
    made.disk("client", "read", (1480, 1500, 1510))
    made.disk("client", "write", (890, 900, 915))
    return made


def told(rate, arrived, last, all_of_them=None, flushes=2, waits=0.07, by="sender", **sockets):
    """Details of a push of 4 s."""
    details = {
        "flush_seconds": last,
        "flushes": flushes,
        "requests": 4 * rate,
        "request_seconds_median": waits,
        "acknowledged_bytes_per_second": arrived * MB,
        "rtt_seconds": 0.0002,
        "in_flight_bytes": 8 << 20,
        "sockets": {"by": by, "sender_seen": True, "unsent_bytes_median": 0, **sockets},
    }
    if all_of_them is not None:
        details["flushing_seconds"] = all_of_them
    return details


def verdict(world, name="push.cached"):
    return next(each for each in diagnose(world.report()).copies if each.copy == name).verdict


def named(world, name="push.cached"):
    found = verdict(world, name)
    return found.named


DISK = ("disk", "server", "write")
FORCED = ("disk", "server", "sync")
NOBODY = ("unknown", None, "inconclusive")


def test_bytes_that_had_arrived_long_before_wait_for_the_servers_disk(alone):
    alone.copy("push.cached", (16.0, 16.3, 16.5), details=told(16.3, 118, 3.5, 3.6))
    found = verdict(alone)
    assert named(alone) == DISK
    assert found.confidence <= 0.75
    assert found.ceiling_bytes_per_second == pytest.approx(18.4 * MB, rel=0.05)


def test_what_was_sent_before_the_first_flush_is_no_time_of_the_disk(alone):
    """A disk of 60 MB/s behind a gigabit link: the copy comes to 47, the flushes to 60."""
    alone.copy("push.uncached", (46.0, 47.0, 48.0), details=told(47, 117, 2.4, 3.2))
    assert named(alone, "push.uncached") == DISK


def test_flushes_on_the_way_count_where_the_last_one_finds_nothing(alone):
    """As of Samba over SMB1, which does nothing else while it flushes."""
    details = told(18.1, 18.2, 0.001, 3.9, flushes=5, waits=0.017)
    alone.copy("push.cached", (18.0, 18.1, 18.2), dialect="smb1", details=details)
    assert named(alone) == DISK


def test_the_advice_says_what_an_agent_would_add(alone):
    alone.copy("push.cached", (16.0, 16.3, 16.5), details=told(16.3, 118, 3.5, 3.6))
    copy = diagnose(alone.report()).copies[0]
    assert any("--agent" in line for line in copy.evidence)
    assert any("waited 8" in line or "waited 9" in line for line in copy.evidence)


def test_a_flush_that_waits_behind_a_slow_link_is_no_disks(alone):
    """8 MiB in flight at 100 Mbit/s: a FLUSH takes 0.7 s, as each WRITE does."""
    details = told(11.7, 11.8, 0.03, 2.2, flushes=4, waits=0.7, by="network")
    alone.copy("push.cached", (11.6, 11.7, 11.8), memory=11.8, details=details)
    assert named(alone) == ("network", "path", "link-rate")


def test_a_disk_that_is_faster_than_the_link_is_not_reached(alone):
    """The flushes take 60 % of the time of a link that is never idle: the disk has room."""
    details = told(11.7, 11.9, 0.3, 2.4, flushes=3, waits=0.01, by="network")
    alone.copy("push.cached", (11.6, 11.7, 11.8), memory=11.8, details=details)
    assert named(alone) == ("network", "path", "link-rate")


def test_a_flush_of_a_short_file_is_small_beside_it(alone):
    alone.copy("push.cached", (90.0, 91.0, 92.0), details=told(91, 118, 0.9, 0.9))
    assert named(alone) == NOBODY


def test_with_an_agent_the_disk_itself_was_measured(world):
    world.copy("push.cached", (16.0, 16.3, 16.5), details=told(16.3, 118, 3.5, 3.6))
    assert named(world) == NOBODY


def test_a_pull_has_no_flush_on_the_server(alone):
    alone.copy("pull.cached", (16.0, 16.3, 16.5), details=told(16.3, 118, 3.5, 3.6))
    assert named(alone, "pull.cached") == NOBODY


def test_nothing_is_said_where_nothing_flushed(alone):
    details = told(16.3, 118, 0.0)
    alone.copy("push.cached", (16.0, 16.3, 16.5), details=details)
    assert named(alone) == NOBODY
    del details["flush_seconds"]
    alone.copy("push.uncached", (16.0, 16.3, 16.5), details=details)
    assert named(alone, "push.uncached") == NOBODY


# -- forced writes -------------------------------------------------------------------------------


def forced(alone, rate=25.0, pull=118.0, tax=20.0, memory=None, dialect="3.1.1", **changes):
    """Each write waits, from the first one on, whether anybody flushes or not."""
    spread = changes.pop("spread", 0.02)
    loads = changes.pop("loads", {})
    details = told(rate, rate * 1.01, 0.001, 0.002, flushes=1, waits=changes.pop("waits", 0.3))
    details["sockets"].update(changes)
    rates = (rate * (1 - spread), rate, rate * (1 + spread))
    if pull is not None:
        alone.copy("pull.cached", pull, memory=pull, proven=False)
    if tax is not None:
        alone.tax("push", "plain", tax)
    alone.tax("pull", "plain", 110)
    alone.copy("push.cached", rates, memory=memory, dialect=dialect, details=details, **loads)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"rate": 10.0, "tax": 10.5},
        {"rate": 7.4, "tax": 10.4, "dialect": "smb1"},
        {"memory": 25},
    ],
)
def test_writes_that_wait_from_the_first_one_on_are_forced(alone, changes):
    forced(alone, **changes)
    assert named(alone) == FORCED
    assert verdict(alone).confidence <= 0.65


@pytest.mark.parametrize(
    "changes",
    [
        {"tax": 110},  # without a flush it is fast: the disk writes it later
        {"tax": None},
        {"pull": 60.0, "tax": 25.0, "rate": 25.0},  # reads are hardly faster: a slow server
        {"by": "network"},  # packets queue on the path
        {"unsent_bytes_median": 900_000},
        {"unsent_bytes_median": None},
        {"waits": 0.004},
        {"spread": 0.2},
        {"memory": 60},  # the client's own disk
        {"loads": {"client": {"throttled_ratio": 0.9, "quota_cores": 0.1}}},
    ],
)
def test_other_reasons_to_wait_are_not_taken_for_forced_writes(alone, changes):
    if changes.get("pull") == 60.0:
        alone.entries.clear()
        forced(alone, **changes)
        alone.entries = [each for each in alone.entries if each[0].stage != "smb-tax"]
        alone.tax("push", "plain", 20)
    else:
        forced(alone, **changes)
    assert named(alone) != FORCED


def test_a_server_that_stops_and_goes_forces_nothing(alone):
    beat = {"silent_ratio": 0.8, "bursts": 11, "burst_count_median": 5.0}
    beat.update(burst_seconds_median=0.1, burst_seconds_low=0.099, burst_seconds_high=0.101)
    forced(alone)
    alone.copy("pull.uncached", 40, details={"replies": beat, "sockets": {"by": "unknown"}})
    assert named(alone) != FORCED
