"""Without an agent a push tells of the server's disk: by its FLUSHes, or by each of its WRITEs."""

from __future__ import annotations

import pytest

from bottleneck.analysis.diagnosis import diagnose

MB = 1e6
DISK = "disk/server/write"
NOBODY, LINK = "unknown/inconclusive", "network/path/link-rate"


def describe(rate, arrived, last, all_of_them=None, flushes=2, waits=0.07, by="sender"):
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
    "flushes on the way count where the last one finds nothing": pytest.param(
        DISK, 18.1, (18.2, 0.001, 3.9), {"flushes": 5, "waits": 0.017}
    ),
    "a flush that waits behind a slow link is no disk's": pytest.param(
        LINK, 11.7, (11.8, 0.03, 2.2), {"flushes": 4, "waits": 0.7, "by": "network"}
    ),
    "a disk that is faster than the link is not reached": pytest.param(
        LINK, 11.7, (11.9, 0.3, 2.4), {"flushes": 3, **QUEUED}
    ),
    "a flush of a short file is small beside it": (NOBODY, 91, (118, 0.9, 0.9), {}),
    "a flush of no time says nothing": (NOBODY, 16.3, (118, 0.0, None), {}),
    "no flush says nothing": (NOBODY, 16.3, (118, None, None), {}),
}


@pytest.mark.parametrize(("cap", "rate", "times", "extra"), PUSHES.values(), ids=PUSHES)
def test_flushes_tell_of_the_servers_disk(no_agent, cap, rate, times, extra, expect):
    dialect = "smb1" if extra.get("flushes") == 5 else "3.1.1"
    memory = 11.8 if cap == LINK else None
    rates = (0.99 * rate, rate, 1.01 * rate)
    details = describe(rate, *times, **extra)
    no_agent.copy("push.cached", rates, memory=memory, dialect=dialect, details=details)
    expect(no_agent, cap)


def test_flushes_on_the_way_name_the_disk_that_another_push_wrote_faster(no_agent):
    """SMB1 flushes each 4 MiB: what that costs is the disk's, whose limit is what it wrote."""
    single = describe(47, 118, 3.3, 3.4)
    no_agent.copy("push.cached", (46, 47, 48), dialect="3.1.1", details=single)
    parts = describe(31.5, 32, 0.04, 3.8, flushes=9, waits=0.016)
    no_agent.copy("push.cached", (31, 31.5, 32), dialect="smb1", details=parts)
    copies = {each.dialect: each for each in diagnose(no_agent.report()).copies}
    assert "/".join(map(str, copies["smb1"].verdict.key)) == DISK
    assert copies["smb1"].verdict.ceiling_bytes_per_second == pytest.approx(47e6)


OVER_ANOTHER = {
    "near the disk that SMB 3.1.1 waits for": (NOBODY, 50, {}),
    "far below it": (NOBODY, 30, {}),
    "far below it, and mostly in its own flushes": (NOBODY, 37, {"own": 2.7, "flushes": 9}),
    "above it: that was no limit of the disk's": (NOBODY, 70, {}),
    "what comes back is no faster: the path may hold both": (NOBODY, 50, {"pull": 52}),
    "over SMB 3.1.1 it hardly waits either": (NOBODY, 50, {"last": 1.4}),
}


@pytest.mark.parametrize(("cap", "rate", "extra"), OVER_ANOTHER.values(), ids=OVER_ANOTHER)
def test_a_push_over_smb1_waits_for_the_disk_that_another_dialect_shows(
    no_agent, cap, rate, extra, expect
):
    """Its data come as slowly as the disk takes them, so that its own FLUSHes are short."""
    last, pull = extra.get("last", 3.3), extra.get("pull", 118)
    details = describe(47, 118, last, last + 0.1)
    no_agent.copy("push.cached", (46, 47, 48), dialect="3.1.1", details=details)
    flushing, flushes = extra.get("own", 0.8), extra.get("flushes", 5)
    parts = describe(rate, rate, 0.001, flushing, flushes=flushes, waits=0.05, by="network")
    no_agent.copy("push.cached", (rate - 1, rate, rate + 1), dialect="smb1", details=parts)
    no_agent.copy("pull.cached", pull, dialect="smb1", proven=False)
    expect(no_agent)
    copies = {(each.copy, each.dialect): each for each in diagnose(no_agent.report()).copies}
    verdict = copies["push.cached", "smb1"].verdict
    assert "/".join(filter(None, verdict.key)) == cap
    assert verdict.confidence < 0.7


def test_a_pull_is_not_judged_by_them(no_agent, expect):
    no_agent.copy("pull.cached", (16.0, 16.3, 16.5), details=describe(16.3, 118, 3.5, 3.6))
    expect(no_agent, NOBODY)


# -- beside an agent, which measured that disk ----------------------------------------------------

READ_TOO = {"device_read_bytes": 90_000_000, "device_written_bytes": 228_000_000}
STOPPED = {"throttled_ratio": 0.9, "quota_cores": 0.1}
SEEN = {
    "the disk idles until the first flush": (DISK, 73, 57, (118, 2.1, 3.19), {}),
    "so too from far below it": (DISK, 73, 52, (118, 2.1, 2.9), {}),
    "nobody measured it": (DISK, None, 20, (118, 3.7, 3.8), {}),
    "its own journal is no one else's": pytest.param(
        DISK, 73, 57, (118, 2.1, 3.19), {"device_written_bytes": 250_000_000}
    ),
    "flushes between its parts, each with its journal": pytest.param(
        DISK, 36.9, 24.3, (26.5, 0.08, 3.8, 6, 0.017), {}
    ),
    "flushes between its parts are slower than that disk": pytest.param(
        NOBODY, 57, 24.3, (26.5, 0.08, 3.8, 6, 0.017), {}
    ),
    "the flushes are short": (NOBODY, 150, 57, (118, 1.2, 1.5), {}),
    "the server honours no flush": (DISK, 73, 57, (58, 0.0, 0.0), {}),
    "the bytes had not arrived": (DISK, 73, 57, (60, 2.1, 3.19), {}),
    "the disk wrote faster within them": (DISK, 73, 57, (118, 1.5, 2.35), {}),
    "others use it during the copy": ("disk/server/contention", 73, 57, (118, 2.1, 3.19), READ_TOO),
    "the disk by itself was far faster": (NOBODY, 600, 20, (118, 3.7, 3.8), {}),
}


def flushing(two_hosts, disk, rate, times, server):
    """Makes a push of a host whose agent wrote its disk at a rate; None: it could not."""
    world = two_hosts(disk=disk or 400)
    if disk is None:
        world.entries = [each for each in world.entries if each[0].setting.get("verb") != "write"]
    world.copy("push.cached", rate, details=describe(rate, *times), server=server)
    return world


@pytest.mark.parametrize(("cap", "disk", "rate", "times", "server"), SEEN.values(), ids=SEEN)
def test_flushes_confirm_what_an_agent_measured(two_hosts, cap, disk, rate, times, server, expect):
    expect(flushing(two_hosts, disk, rate, times, server), cap)


def test_a_cpu_that_its_quota_stops_flushes_late_too(two_hosts, expect):
    world = flushing(two_hosts, 73, 57, (118, 2.1, 3.19), STOPPED)
    expect(world)
    assert world.verdict_key("push.cached") != ("disk", "server", "write")


def test_what_flushes_confirm_keeps_the_disks_own_rate(two_hosts):
    """A ceiling below what the disk wrote in the same run would contradict the report."""
    world = flushing(two_hosts, 73, 57, (118, 2.1, 3.19), {})
    verdict = diagnose(world.report()).copies[0].verdict
    assert (verdict.ceiling_bytes_per_second, verdict.confidence) == (73 * MB, 0.85)


# -- forced writes -------------------------------------------------------------------------------


def forced_push(
    no_agent, rate=25.0, pull=118.0, taxes=(20.0,), memory=None, dialect="3.1.1", **changes
):
    """Makes a push whose writes each wait for the disk, whether anybody flushes or not."""
    spread, loads = changes.pop("spread", 0.02), changes.pop("loads", {})
    details = describe(rate, rate * 1.01, 0.001, 0.002, flushes=1, waits=changes.pop("waits", 0.3))
    details["sockets"].update(changes)
    no_agent.copy("pull.cached", pull, memory=pull, proven=False)
    for tax in taxes:
        no_agent.tax("push", "plain", tax)
    if pull > 110:
        no_agent.tax("pull", "plain", 110)
    rates = (rate * (1 - spread), rate, rate * (1 + spread))
    no_agent.copy("push.cached", rates, memory=memory, dialect=dialect, details=details, **loads)


WAITING = {
    "each write": {},
    "a slow disk": {"rate": 10.0, "taxes": (10.5,)},
    "in an old dialect": {"rate": 7.4, "taxes": (10.4,), "dialect": "smb1"},
    "from memory alike": {"memory": 25},
}


@pytest.mark.parametrize("changes", WAITING.values(), ids=WAITING)
def test_writes_that_wait_from_the_first_one_on_are_forced(no_agent, changes, expect):
    forced_push(no_agent, **changes)
    expect(no_agent)
    assert no_agent.verdict_key("push.cached") == ("disk", "server", "sync")


@pytest.mark.parametrize(
    ("by", "memory", "cause"),
    [("sender", None, "sync"), ("network", None, "inconclusive"), ("sender", 40, "inconclusive")],
    ids=["it waits", "its packets queue", "without the client's disk it is faster"],
)
def test_forced_writes_that_smb_3_shows_are_why_smb1_waits_too(no_agent, by, memory, cause, expect):
    """Its requests are shorter, so that it waits more often."""
    forced_push(no_agent)
    details = describe(7.7, 7.8, 0.001, 0.002, flushes=1, waits=0.26, by=by)
    no_agent.copy("push.cached", (7.6, 7.7, 7.8), memory, "smb1", details=details)
    expect(no_agent)
    copies = {(each.copy, each.dialect): each for each in diagnose(no_agent.report()).copies}
    assert copies["push.cached", "smb1"].verdict.cause == cause


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
def test_other_reasons_to_wait_are_not_taken_for_forced_writes(no_agent, changes, expect):
    forced_push(no_agent, **changes)
    expect(no_agent)
    assert no_agent.verdict_key("push.cached")[2] != "sync"


def test_a_server_that_stops_and_goes_forces_nothing(no_agent, expect):
    beat = {"silent_ratio": 0.8, "bursts": 11, "burst_count_median": 5.0}
    beat.update(burst_seconds_median=0.1, burst_seconds_low=0.099, burst_seconds_high=0.101)
    forced_push(no_agent)
    no_agent.copy("pull.uncached", 40, details={"replies": beat, "sockets": {"by": "unknown"}})
    expect(no_agent)
    assert no_agent.verdict_key("push.cached")[2] != "sync"


# -- a source that was most likely cold ----------------------------------------------------------


def cold(no_agent, source="past-cache", rate=24.0, twin=118.0, **changes):
    """A pull whose source nobody proved to be uncached, beside its cached twin."""
    cache = {"side": "server", "requested": "uncached", "proven": False, "cold_source": source}
    cache.update({"cached_bytes_per_second": 117e6, **changes})
    no_agent.copy("pull.cached", twin, memory=twin, proven=False)
    no_agent.copy("pull.uncached", rate, details={"cache": cache})


# The others: as a report of an earlier release has them.
@pytest.mark.parametrize("source", ["past-cache", "idle-files", "dropped"])
def test_a_source_that_was_most_likely_cold_tells_of_the_servers_disk(no_agent, source):
    cold(no_agent, source)
    assert no_agent.verdict_key("pull.uncached") == ("disk", "server", "read")
    copy = no_agent.diagnosis_of("pull.uncached")
    assert copy.verdict.confidence <= 0.65
    assert "probably not in the server's cache runs at 24.0 MB/s" in copy.verdict.sentence
    evidence = " ".join(copy.evidence)
    past_cache = "The test file was read with FILE_NO_INTERMEDIATE_BUFFERING, twice."
    assert (past_cache in evidence) == (source == "past-cache")
    assert "A cached file was read at 117 MB/s or more, before and after this copy." in evidence
    assert "Not verified: that the source was not in the server's page cache." in evidence


@pytest.mark.parametrize("rate", [117.0, 130.0])
def test_without_a_difference_no_disk_is_named(no_agent, rate):
    cold(no_agent, "past-cache", rate)
    assert no_agent.verdict_key("pull.uncached") != ("disk", "server", "read")


def test_a_source_without_its_cached_rate_is_told_by_itself(no_agent):
    """Earlier reports have no cached rate."""
    cold(no_agent, cached_bytes_per_second=None)
    evidence = " ".join(no_agent.diagnosis_of("pull.uncached").evidence)
    assert "FILE_NO_INTERMEDIATE_BUFFERING" in evidence
    assert "A cached file was read" not in evidence
