"""The meaning of a disk's figures: each cause where it was planted, silent where it was not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bottleneck.analysis.diagnosis import diagnose

MB = 1e6
GIB = 1 << 30
TB_BYTES = 10**12


def law(x: float, outer: float = 60.0, inner: float = 30.0) -> float:
    """The rate of a spinning disc at a place, in the units of its edges."""
    return (outer**2 - x * (outer**2 - inner**2)) ** 0.5


def zones(
    world: Any,
    outer: float = 60.0,
    inner: float = 30.0,
    seek_seconds: float | None = 0.008,
    device: str = "sda1",
    weak: dict[int, float] | None = None,
    count: int = 9,
) -> int:
    dips = weak or {}
    rates = [law((n + 0.5) / count, outer, inner) * dips.get(n, 1) for n in range(count)]
    rows = [
        {
            "from_ratio": number / count,
            "to_ratio": (number + 1) / count,
            "bytes_per_second": rate * MB,
            "low_bytes_per_second": 0.99 * rate * MB,
            "high_bytes_per_second": 1.01 * rate * MB,
        }
        for number, rate in enumerate(rates)
    ]
    details = {"zones": rows, "seek_seconds": seek_seconds, "device": device, "located": True}
    setting = {"side": "server", "verb": "read", "cache": "uncached", "pattern": "zones"}
    return int(world.add("disk", "server", setting, sum(rates) / count, details))


def place(
    begin: float, end: float, fragments: int = 1, size_bytes: int = GIB, **extra: Any
) -> dict[str, Any]:
    """A file on sda1, in one span or in many that lie alike."""
    return {
        "device": "sda1",
        "device_bytes": TB_BYTES,
        "located": True,
        "bytes": size_bytes,
        "unwritten_bytes": 0,
        "fragments": fragments,
        "from_ratio": begin,
        "to_ratio": end,
        "centre_ratio": (begin + end) / 2,
        "spans": [{"from_ratio": begin, "to_ratio": end, "bytes": size_bytes}],
        **extra,
    }


def disk(world: Any, verb: str, rate: Any, pattern: str = "sequential", **details: Any) -> int:
    setting = {"side": "server", "verb": verb, "cache": "uncached", "pattern": pattern}
    proof = {"cache": {"proven": True}} if verb == "read" else {}
    fields = {"device": "sda1", **proof, **details}
    return int(world.add("disk", "server", setting, rate, fields))


@pytest.fixture
def lan(empty_world):
    """A gigabit link and a client whose disk is fast; the server's disk is the test's."""
    world = empty_world()
    world.tcp("pull", 117.6)
    world.tcp("push", 117.6)
    for verb in ("read", "write"):
        world.disk("client", verb, 500)
    return world


def lies(world: Any, rate: float, where: Any, **planted: Any) -> None:
    """An uncached pull of a file that lies there, from a disk that reads it at a rate."""
    zones(world, **planted)
    disk(world, "read", (0.99 * rate, rate, 1.01 * rate), place=where)
    world.copy("pull.uncached", min(rate, 115) * 0.97, memory=min(rate, 115) * 0.97)


# -- zone ---------------------------------------------------------------------------------------

WHOLE = {"device": "sda", "device_bytes": 2 * TB_BYTES, "from_ratio": 0.95, "to_ratio": 0.96}
WITH_A_HOLE = place(0.9, 0.95)
WITH_A_HOLE["spans"].insert(0, {"from_ratio": 0.0, "to_ratio": 0.1, "bytes": 0})
SLOW_PLACES = {
    "in the inner zone": (law(0.935), place(0.9, 0.97), {}),
    "in the middle": (law(0.625), place(0.6, 0.65), {}),
    "in the last quarter": (law(0.875), place(0.75, 1.0), {}),
    "where a zone looked weak once": (law(0.8), place(0.8, 0.81), {"weak": {7: 0.75}}),
    "on a partition": (law(0.955), place(0.9, 0.92, whole=WHOLE), {"device": "/dev/sda"}),
    "in a weak zone": (law(3.5 / 9) * 0.5, place(0.35, 0.4), {"weak": {3: 0.5}}),
    "with a piece of no bytes elsewhere": (law(0.925), WITH_A_HOLE, {}),
}


@pytest.mark.parametrize(("rate", "where", "planted"), SLOW_PLACES.values(), ids=SLOW_PLACES)
def test_a_file_that_lies_where_the_disc_is_slow_is_named(lan, rate, where, planted, expect):
    lies(lan, rate, where, **planted)
    expect(lan, "disk/server/zone")


IN_NONE = {
    "an SSD": (497.0, place(0.9, 0.97), {"outer": 500.0, "inner": 495.0}),
    "at the edge": (law(0.05), place(0.0, 0.1), {}),
    "not far inside": (law(0.25), place(0.2, 0.3), {}),
    "slower than its place": (12.0, place(0.9, 0.97), {}),
    "another device": (law(0.935), place(0.9, 0.97), {"device": "sdb"}),
    "not located": (law(0.935), place(0.9, 0.97, located=False), {}),
    "another volume": (law(0.935), place(0.9, 0.97, device="dm-3"), {}),
    "two zones": (law(0.95), place(0.9, 0.99), {"count": 2}),
    "rising": (law(0.025, 30.0, 60.0), place(0.0, 0.05), {"outer": 30.0, "inner": 60.0}),
    "no place": (law(0.935), None, {}),
    "a zone that is hardly weak": (law(0.5) * 0.9, place(0.47, 0.53), {"weak": {4: 0.85}}),
    "a partition of no known place": pytest.param(
        law(0.95), place(0.9, 0.92, whole={**WHOLE, "from_ratio": None}), {"device": "sda"}
    ),
    "a partition of a disk of no known size": pytest.param(
        law(0.95), place(0.9, 0.92, whole={**WHOLE, "device_bytes": None}), {"device": "sda"}
    ),
}


@pytest.mark.parametrize(("rate", "where", "planted"), IN_NONE.values(), ids=IN_NONE)
def test_no_zone_is_blamed(lan, rate, where, planted, expect):
    lies(lan, rate, where, **planted)
    expect(lan, "network/path/link-rate" if rate > 117 else "disk/server/read")


@pytest.mark.parametrize(("of_its_place", "cause"), [(1.0, "zone"), (0.7, "write")])
def test_a_push_is_held_against_the_zones_that_were_read(lan, of_its_place, cause, expect):
    zones(lan)
    rate = of_its_place * law(0.935)
    disk(lan, "write", rate, place=place(0.9, 0.97))
    lan.copy("push.cached", 0.97 * rate, memory=0.98 * rate)
    expect(lan, f"disk/server/{cause}")


@pytest.mark.parametrize("places", [(0.9, 0.92, 0.94), (0.1, 0.3, 0.5)], ids=["at0", "at1"])
def test_a_push_is_held_against_the_zones_that_were_written(lan, places, expect):
    """Written zones too near each other leave it to the zones that were read."""
    if places[0] > 0.5:
        zones(lan)
    written = lan.entries[zones(lan, count=len(places))]
    written[0].setting["verb"] = "write"
    for zone, begin in zip(written[1].details["zones"], places, strict=True):
        zone.update(from_ratio=begin, to_ratio=begin + 0.01)
        for bound in ("", "low_", "high_"):
            zone[f"{bound}bytes_per_second"] = law(begin) * MB
    rate = law(0.935)
    disk(lan, "write", rate, place=place(0.9, 0.97))
    lan.copy("push.cached", 0.97 * rate, memory=0.98 * rate)
    expect(lan, "disk/server/zone")


# -- a control group's limit -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "limit"),
    [("read", 25), ("write", 25), ("read", 100)],
    ids=["reached", "reached by writes", "not reached"],
)
def test_a_control_groups_limit_is_told_where_it_is_reached(lan, verb, limit, expect):
    limits = {f"{verb}_bytes_per_second": limit * MB, "group": "/docker/nas"}
    disk(lan, verb, 25.4, limits=limits)
    others = {"device_read_bytes": 4 << 30, "device_written_bytes": 0} if limit == 25 else {}
    lan.copy("pull.uncached" if verb == "read" else "push.cached", 24.6, server=others)
    expect(lan, f"disk/server/{verb}")


# -- seek ---------------------------------------------------------------------------------------


def fragmented_rate(fragments: int, pace: float, seek_seconds: float, size_bytes: int) -> float:
    """Returns MB/s of a file in pieces: time of its bytes, and a seek for each further piece."""
    seconds = size_bytes / pace / MB + (fragments - 1) * seek_seconds
    return size_bytes / seconds / MB


@pytest.mark.parametrize(
    ("fragments", "size_bytes", "share"),
    [(500, 64 << 20, 1.0), (5000, GIB, 1.0), (500, 64 << 20, 0.6)],
)
def test_a_file_in_fragments_is_named_with_the_rate_of_one_piece(
    lan, fragments, size_bytes, share, expect
):
    """share: what a fragment really costs of a random access; near ones cost less."""
    zones(lan)
    disk(lan, "read", law(0.05), place=place(0.0, 0.1))
    rate = fragmented_rate(fragments, law(0.25), 0.008 * share, size_bytes)
    disk(lan, "read", rate, "file", place=place(0.2, 0.3, fragments, size_bytes))
    lan.copy("file.pull.uncached", 0.96 * rate, memory=0.97 * rate)
    expect(lan, "disk/server/seek")


def test_without_zones_the_runs_own_file_tells_the_rate_of_one_piece(lan, expect):
    """The seek is a random access on the same device; its two zones make no curve."""
    lan.entries[zones(lan, count=2)][1].details["zones"] = []
    disk(lan, "read", 55, place=place(0.0, 0.1))
    rate = fragmented_rate(500, 55, 0.008, 64 << 20)
    disk(lan, "read", rate, "file", place=place(0.0, 0.1, 500, 64 << 20))
    lan.copy("file.pull.uncached", 0.97 * rate)
    expect(lan, "disk/server/seek")


@pytest.mark.parametrize("pattern", ["file", "sequential"])
def test_without_a_rate_in_one_piece_no_seek_is_blamed(lan, pattern, expect):
    """The seek is known, but not what the disk reads where nothing has to be sought."""
    lan.entries[zones(lan, count=2)][1].details["zones"] = []
    if pattern == "file":
        disk(lan, "read", 50, place=place(0.0, 0.1, 900))
    disk(lan, "read", 15, pattern, place=place(0.2, 0.3, 500, 64 << 20))
    lan.copy("file.pull.uncached" if pattern == "file" else "pull.uncached", 14.6)
    expect(lan, "disk/server/read")


NO_SEEKS = {
    "no seek known": (500, 15.0, None),
    "an SSD": (500, 15.0, 0.00008),
    "one piece": (1, 15.0, 0.008),
    "a few": (8, 50.0, 0.008),
    "far too slow": (500, 2.0, 0.008),
    "as in one piece": (500, law(0.25), 0.008),
}


@pytest.mark.parametrize(("fragments", "rate", "seek_seconds"), NO_SEEKS.values(), ids=NO_SEEKS)
def test_no_seek_is_blamed(lan, fragments, rate, seek_seconds, expect):
    zones(lan, seek_seconds=seek_seconds)
    disk(lan, "read", rate, "file", place=place(0.2, 0.3, fragments, 64 << 20))
    lan.copy("file.pull.uncached", 0.97 * rate)
    expect(lan, "disk/server/read")


@pytest.mark.parametrize(("gap_bytes", "cause"), [(128 << 10, "seek"), (4096, "read")])
def test_gaps_that_pass_under_the_head_cost_their_passing_and_no_seek(
    lan, gap_bytes, cause, expect
):
    """500 pieces with 128 KiB between them: a disc of 52 MB/s waits 2.5 ms for each."""
    zones(lan)
    gaps = {"short_gaps": 499, "short_gaps_bytes": 499 * gap_bytes}
    pace = law(0.25)
    rate = (64 << 20) / ((64 << 20) / pace + 499 * (128 << 10) / pace)
    disk(lan, "read", rate, "file", place=place(0.2, 0.3, 500, 64 << 20, **gaps))
    lan.copy("file.pull.uncached", 0.97 * rate)
    expect(lan, f"disk/server/{cause}")


@pytest.mark.parametrize("pieces", [1, 500])
def test_the_link_caps_a_file_that_lies_badly_on_a_fast_disk(lan, pieces, expect):
    zones(lan, outer=400.0, inner=130.0, seek_seconds=0.004)
    rate = fragmented_rate(pieces, 145, 0.0004, GIB)
    disk(lan, "read", rate, "file", place=place(0.9, 0.99, pieces))
    lan.copy("file.pull.uncached", 113, memory=116)
    expect(lan, "network/path/link-rate")


def test_a_users_file_is_held_against_its_own_read_and_ours_against_ours(lan, expect):
    disk(lan, "read", 60)
    lan.copy("file.pull.uncached", 58)
    expect(lan, "unknown/inconclusive")
    disk(lan, "read", 20, "file")
    lan.entries.pop(-2)
    lan.copy("pull.uncached", 58)
    lan.copy("file.pull.uncached", 19.5)
    expect(lan, "disk/server/read", "disk/server/read")


# -- sync ---------------------------------------------------------------------------------------

ALWAYS = [{"option": "sync always", "value": "yes", "why": "", "remedy": ""}]
SYNCED = {"request_bytes": 1 << 20, "sync_seconds": {"median": 0.03, "p99": 0.06}}
SYNC, NOBODY = "disk/server/sync", "unknown/inconclusive"
FORCED = {
    "reached": (SYNC, ALWAYS, "push.cached", (108, 20, 19.5)),
    "in turn with the link": (SYNC, ALWAYS, "push.uncached", (108, 20, 17.1)),
    "a little above": (SYNC, ALWAYS, "push.cached", (108, 20, 23)),
    "half and half": (SYNC, ALWAYS, "push.cached", (108, 60, 40)),
    "config not seen": (NOBODY, [], "push.cached", (108, 20, 19)),
    "config forged": (NOBODY, "x", "push.cached", (108, 20, 19)),
    "a pull": (NOBODY, ALWAYS, "pull.cached", (108, 20, 19)),
    "it costs little": ("disk/server/write", ALWAYS, "push.cached", (25, 20, 19)),
    "the copy is faster": ("network/path/link-rate", ALWAYS, "push.cached", (108, 20, 104)),
    "the copy is far slower": (NOBODY, ALWAYS, "push.cached", (108, 60, 12)),
    "not measured": (NOBODY, ALWAYS, "push.cached", (108, None, 19)),
}


@pytest.mark.parametrize(("cap", "smb_conf", "name", "rates"), FORCED.values(), ids=FORCED)
def test_forced_writes_are_named_where_they_explain_the_copy(
    lan, cap, smb_conf, name, rates, expect
):
    write, synced, copied = rates
    disk(lan, "write", write)
    if synced is not None:
        disk(lan, "write", synced, "synced", **SYNCED)
    lan.copy(name, copied)
    expect(lan, cap, smb_conf=smb_conf)


@pytest.mark.parametrize(
    ("write", "synced", "cap"),
    [(108, 20, SYNC), (24, 23, "disk/server/write")],
    ids=["it costs much", "the disk's own measurement was made through it"],
)
def test_a_file_system_mounted_with_sync_forces_them_too(lan, write, synced, cap, expect):
    lan.server = replace(lan.server, folder=replace(lan.server.folder, mount_options="rw,sync"))
    disk(lan, "write", write)
    disk(lan, "write", synced, "synced", **SYNCED)
    lan.copy("push.cached", 0.97 * synced)
    expect(lan, cap)


# -- contention ---------------------------------------------------------------------------------


def others(read: float = 0.0, written: float = 0.0, seconds: float = 4.0, access: int = 1 << 20):
    """Rates in MB/s of what somebody else does, as the step tells them."""
    read_bytes, written_bytes = (int(each * MB * seconds) for each in (read, written))
    return {
        "read_bytes": read_bytes,
        "written_bytes": written_bytes,
        "reads": read_bytes // access,
        "writes": written_bytes // access,
        "busy_ratio": 1.0,
    }


BUSY = {"seconds": 0.3, "busy_ratio": 0.98, "reads": 20, "writes": 0}
QUIET = {"seconds": 0.3, "busy_ratio": 0.01, "reads": 0, "writes": 0}
SHARED = {
    "always": {"others": others(read=30), "before": BUSY},
    "began later": {"others": others(read=30), "before": QUIET},
    "writes": {"others": others(written=25)},
    "seen before alone": {"before": BUSY},
}


@pytest.mark.parametrize(("limit", "cause"), [(25, "read"), (100, "contention")])
def test_at_a_control_groups_limit_others_io_is_not_what_slows_the_disk(lan, expect, limit, cause):
    limits = {"read_bytes_per_second": limit * MB, "group": "/docker/nas"}
    disk(lan, "read", 25.4, limits=limits, others=others(read=30), before=BUSY)
    lan.copy("pull.uncached", 24.6)
    expect(lan, f"disk/server/{cause}")


@pytest.mark.parametrize("details", SHARED.values(), ids=SHARED)
def test_somebody_elses_io_is_named_on_a_disk_that_is_read(lan, details, expect):
    zones(lan)
    disk(lan, "read", (24, 25, 26), **details, place=place(0.9, 0.97))
    lan.copy("pull.uncached", 24, memory=24.2)
    expect(lan, "disk/server/contention")


def count_device(mb_per_second: float) -> dict[str, Any]:
    """Counts what a device moved for all in a copy; throttled before its queue it seems idle."""
    return {"device_busy_ratio": 0.05, "device_read_bytes": int(mb_per_second * 4 * MB)}


@pytest.mark.parametrize(
    ("link", "rate", "device", "cap"),
    [
        (117.6, 53, count_device(53), "unknown/inconclusive"),
        (11.77, 11.5, count_device(79), "network/path/link-rate"),
    ],
    ids=["gone by then", "the link holds it, whoever reads"],
)
def test_others_who_do_not_hold_the_copy_are_not_named(
    empty_world, link, rate, device, cap, expect
):
    world = empty_world()
    world.tcp("pull", link)
    world.disk("client", "write", 500)
    disk(world, "read", 15.8, others=others(read=64), before=BUSY)
    world.copy("pull.uncached", rate, server=device)
    expect(world, cap)


@pytest.mark.parametrize(
    ("stopped", "cap"), [(0.3, "cpu/server/quota"), (0.03, "disk/server/read")]
)
def test_a_disk_whose_program_a_quota_stopped_moves_that_much_at_least(lan, stopped, cap, expect):
    """In a part of its periods is enough; one that hardly ever stopped it says what the disk is."""
    quota = {"quota_cores": 0.08, "core_busy_ratios": (0.08,), "busiest_process_ratio": 0.08}
    proof = {"requested": "uncached", "proven": True, "cached_ratio_before": 0.0}
    setting = {"side": "server", "verb": "read", "cache": "uncached", "folder": "/srv"}
    load = {**quota, "throttled_ratio": stopped}
    lan.add("disk", "server", setting, 32, {"cache": {**proof, "side": "server"}}, server=load)
    copied = {**quota, "throttled_ratio": 0.9 if stopped > 0.1 else 0.03}
    lan.copy("pull.uncached", 31, server=copied)
    expect(lan, cap)


ITS_OWN = {
    "little": ("read", {"others": others(read=2), "before": QUIET}),
    "it was over": ("read", {"others": others(read=0.5), "before": BUSY}),
    "quiet": ("read", {"before": QUIET}),
    "no bytes": ("read", {"others": {"reads": 5000, "writes": 900}, "before": QUIET}),
    "split requests of ours": ("read", {"others": {**others(), "reads": 90_000}, "before": QUIET}),
    "forged": ("read", {"others": "all", "before": [1]}),
    "the journal": ("write", {"others": others(written=25), "before": QUIET}),
    "the journal, nobody looked": ("write", {"others": others(written=25)}),
}


@pytest.mark.parametrize(("verb", "details"), ITS_OWN.values(), ids=ITS_OWN)
def test_nobody_is_blamed_on_a_disk_of_ones_own(lan, verb, details, expect):
    zones(lan)
    disk(lan, verb, 55, **details)
    lan.copy("pull.uncached" if verb == "read" else "push.cached", 53)
    expect(lan, f"disk/server/{verb}")


# -- all of them --------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["zones", "synced", "sustained", "file"])
def test_no_other_pattern_is_taken_for_the_sequential_rate(lan, pattern, expect):
    for verb in ("read", "write"):
        disk(lan, verb, 20, pattern)
    for name in ("pull.uncached", "push.cached"):
        lan.copy(name, 19)
    expect(lan, "unknown/inconclusive", "unknown/inconclusive")


STRANGE = ["x", -1, 1e300, True, None, [], {}, [{}], [[1]], {"bytes": -5}, 2**64, 1e-320]


@pytest.mark.parametrize("strange", STRANGE, ids=repr)
def test_forged_details_break_nothing(empty_world, strange):
    spot = place(0.9, 0.97, whole={"device": "sda", "device_bytes": TB_BYTES})
    plain: dict[str, Any] = {"place": spot, "others": others(read=9), "before": BUSY}
    forged = [{**plain, name: strange} for name in (*plain, "device", "zones")]
    for name, facts in plain.items():
        forged += [{**plain, name: {**facts, key: strange}} for key in facts]
    for details in forged:
        for pattern in ("sequential", "file"):
            world = empty_world()
            facts = world.entries[zones(world)][1].details
            rate = {"from_ratio": 0, "to_ratio": strange, "bytes_per_second": strange}
            facts["zones"] = strange if "zones" in details else [rate, *facts["zones"]]
            facts["seek_seconds"] = strange if "zones" in details else 0.008
            disk(world, "read", 25, pattern, **details)
            world.copy("file.pull.uncached" if pattern == "file" else "pull.uncached", 24)
            assert diagnose(world.report()).copies[0].verdict.sentence


def test_where_nobody_saw_the_host_during_the_copy_what_others_left_before_stands(lan):
    disk(lan, "read", 25, others=others(read=30), before=BUSY)
    lan.agent = False
    lan.copy("pull.uncached", 24, memory=24.2)
    lan.agent = True
    ceilings = {each.key: each for each in lan.diagnosis_of("pull.uncached").ceilings}
    ceiling = ceilings["disk", "server", "contention"]
    assert ceiling.bytes_per_second == 25 * MB
