"""What a disk's figures mean: each cause where it was planted, silent where it was not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bottleneck.analysis import diagnose

MB = 1e6
GIB = 1 << 30
TB_BYTES = 10**12


def law(x: float, outer: float = 60.0, inner: float = 30.0) -> float:
    """The rate of a spinning disc at a place, in the units of its edges."""
    return (outer**2 - x * (outer**2 - inner**2)) ** 0.5


def zones(
    world: Any,
    side: str = "server",
    outer: float = 60.0,
    inner: float = 30.0,
    seek_seconds: float | None = 0.008,
    device: str = "sda1",
    verb: str = "read",
    weak: dict[int, float] | None = None,
    count: int = 9,
) -> int:
    """A disk read zone by zone."""
    centres = [(at + 0.5) / count for at in range(count)]
    rates = [
        law(at, outer, inner) * (weak or {}).get(number, 1) for number, at in enumerate(centres)
    ]
    told = [
        {
            "from_ratio": number / count,
            "to_ratio": (number + 1) / count,
            "bytes_per_second": rate * MB,
            "low_bytes_per_second": 0.99 * rate * MB,
            "high_bytes_per_second": 1.01 * rate * MB,
        }
        for number, rate in enumerate(rates)
    ]
    details = {"zones": told, "seek_seconds": seek_seconds, "device": device, "located": True}
    setting = {
        "side": side,
        "verb": verb,
        "cache": "uncached",
        "folder": "/srv",
        "pattern": "zones",
    }
    return int(world.add("disk", side, setting, sum(rates) / count, details))


def place(
    begin: float, end: float, fragments: int = 1, size_bytes: int = GIB, **more: Any
) -> dict[str, Any]:
    """A file on sda1, in one span or in many that lie alike."""
    spans = [{"from_ratio": begin, "to_ratio": end, "bytes": size_bytes}]
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
        "spans": spans,
        **more,
    }


def disk(
    world: Any,
    side: str,
    verb: str,
    rate: Any,
    pattern: str = "sequential",
    details: dict[str, Any] | None = None,
    **loads: Any,
) -> int:
    """A disk step with more to tell."""
    setting = {"side": side, "verb": verb, "cache": "uncached", "folder": "/srv"}
    setting["pattern"] = pattern
    proof = {"side": side, "requested": "uncached", "proven": True, "cached_ratio_before": 0.0}
    told = {"device": "sda1", **({"cache": proof} if verb == "read" else {}), **(details or {})}
    return int(world.add("disk", side, setting, rate, told, **loads))


@pytest.fixture
def lan(empty_world):
    """A gigabit link and a client whose disk is fast; the server's disk is the test's."""
    world = empty_world()
    world.tcp("pull", 117.6)
    world.tcp("push", 117.6)
    for verb in ("read", "write"):
        world.disk("client", verb, 500)
    return world


def of(world: Any, at: int = 0, **changes: Any) -> Any:
    return diagnose(world.report(**changes)).copies[at]


def words(copy: Any) -> tuple[Any, ...]:
    return copy.verdict.named


def causes(copy: Any) -> list[str]:
    """Of the server's disk, lowest ceiling first."""
    return [
        each.cause for each in copy.ceilings if (each.component, each.side) == ("disk", "server")
    ]


# -- zone ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("begin", "end"), [(0.9, 0.97), (0.6, 0.65), (0.75, 1.0)])
def test_a_file_in_the_inner_zone_is_named_with_the_rate_at_the_edge(lan, begin, end):
    zones(lan)
    rate = law((begin + end) / 2)
    disk(
        lan,
        "server",
        "read",
        (0.99 * rate, rate, 1.01 * rate),
        details={"place": place(begin, end)},
    )
    lan.copy("pull.uncached", (0.96 * rate, 0.97 * rate, 0.98 * rate), memory=0.97 * rate)
    found = of(lan)
    assert words(found) == ("disk", "server", "zone")
    assert causes(found) == ["zone", "read"]
    assert found.verdict.ceiling_bytes_per_second == pytest.approx(rate * MB)
    assert f"from {begin:.0%}"[:-1] in found.verdict.sentence
    assert "60 MB/s at its outer edge" in found.verdict.sentence
    assert found.next.ceiling_bytes_per_second == pytest.approx(60e6, rel=0.01)
    assert found.predicted_bytes_per_second.median == pytest.approx(60e6, rel=0.1)
    assert "outer edge of the server's disk" in found.advice[0]


def test_a_push_into_the_inner_zone_is_held_against_the_zones_that_were_read(lan):
    zones(lan)
    told = {"place": place(0.9, 0.97)}
    rate = law(0.935)
    disk(lan, "server", "write", rate, details=told)
    lan.copy("push.cached", 0.97 * rate, memory=0.98 * rate)
    found = of(lan)
    assert words(found) == ("disk", "server", "zone")
    assert "was read at" in found.evidence[0]


def test_a_disk_that_writes_slower_than_it_reads_there_is_no_matter_of_zones(lan):
    zones(lan)
    rate = 0.7 * law(0.935)
    disk(lan, "server", "write", rate, details={"place": place(0.9, 0.97)})
    lan.copy("push.cached", 0.97 * rate, memory=0.98 * rate)
    assert words(of(lan)) == ("disk", "server", "write")


def test_a_zone_that_looked_weak_once_does_not_hide_where_the_file_lies(lan):
    """The file's own read is what the curve gives there: the zone is not weak."""
    zones(lan, weak={7: 0.75})
    rate = law(0.8)
    disk(lan, "server", "read", rate, details={"place": place(0.8, 0.81)})
    lan.copy("pull.uncached", 0.97 * rate)
    found = of(lan)
    assert words(found) == ("disk", "server", "zone")
    assert "weak" not in found.verdict.sentence


def test_a_partition_is_placed_on_its_whole_disk(lan):
    zones(lan, device="/dev/sda")
    whole = {"device": "sda", "device_bytes": 2 * TB_BYTES, "from_ratio": 0.95, "to_ratio": 0.96}
    told = place(0.9, 0.92, whole={**whole, "centre_ratio": 0.955})
    disk(lan, "server", "read", law(0.955), details={"place": told})
    lan.copy("pull.uncached", law(0.955) * 0.97)
    assert words(of(lan)) == ("disk", "server", "zone")
    assert "from 95 % to 96 %" in of(lan).verdict.sentence


def test_a_file_in_a_weak_zone_is_named(lan):
    zones(lan, weak={3: 0.5})
    rate = law(3.5 / 9) * 0.5
    disk(lan, "server", "read", rate, details={"place": place(0.35, 0.4)})
    lan.copy("pull.uncached", rate * 0.97)
    found = of(lan)
    assert words(found) == ("disk", "server", "zone")
    assert "weak zone" in found.verdict.sentence
    assert any("SMART" in line for line in found.evidence)


@pytest.mark.parametrize(
    ("planted", "told", "rate"),
    [
        ({"outer": 500.0, "inner": 495.0}, place(0.9, 0.97), 497.0),
        ({}, place(0.0, 0.1), law(0.05)),
        ({}, place(0.2, 0.3), law(0.25)),
        ({}, place(0.9, 0.97), 12.0),
        ({"device": "sdb"}, place(0.9, 0.97), law(0.935)),
        ({}, place(0.9, 0.97, located=False), law(0.935)),
        ({}, place(0.9, 0.97, device="dm-3"), law(0.935)),
        ({"count": 2}, place(0.9, 0.97), law(0.935)),
        ({"outer": 30.0, "inner": 60.0}, place(0.0, 0.05), law(0.025, 30.0, 60.0)),
        ({}, None, law(0.935)),
    ],
    ids=[
        *("an SSD", "at the edge", "not far inside", "slower than its place", "another device"),
        *("not located", "another volume", "two zones", "rising", "no place"),
    ],
)
def test_no_zone_is_blamed(lan, planted, told, rate):
    zones(lan, **planted)
    disk(lan, "server", "read", rate, details={"place": told})
    lan.copy("pull.uncached", min(rate, 115) * 0.97)
    assert causes(of(lan)) == ["read"]


def test_the_link_caps_it_though_the_file_lies_inside(lan):
    zones(lan, outer=280.0, inner=140.0)
    disk(lan, "server", "read", 145, details={"place": place(0.9, 0.99)})
    lan.copy("pull.uncached", 113, memory=116)
    assert words(of(lan)) == ("network", "path", "link-rate")


# -- a control group's limit -----------------------------------------------------------------------


def test_a_control_groups_limit_is_told_as_what_it_is(lan):
    limits = {"read_bytes_per_second": 25 * MB, "group": "/docker/nas"}
    disk(lan, "server", "read", 25.4, details={"limits": limits})
    lan.copy("pull.uncached", 24.6)
    found = of(lan)
    assert words(found) == ("disk", "server", "read")
    assert any("/docker/nas may read" in line for line in found.evidence)
    assert found.advice[0].startswith("A higher limit of the control group /docker/nas")


def test_a_limit_that_is_not_reached_is_not_told(lan):
    limits = {"read_bytes_per_second": 100 * MB, "group": "/docker/nas"}
    disk(lan, "server", "read", 25.4, details={"limits": limits})
    lan.copy("pull.uncached", 24.6)
    assert not any("/docker/nas" in line for line in (*of(lan).evidence, *of(lan).advice))


# -- seek ---------------------------------------------------------------------------------------


def fragmented(fragments: int, whole: float, seek_seconds: float, size_bytes: int) -> float:
    """MB/s of a file in pieces: the time of its bytes, and a seek for each further piece."""
    seconds = size_bytes / whole / MB + (fragments - 1) * seek_seconds
    return size_bytes / seconds / MB


@pytest.mark.parametrize(
    ("fragments", "size_bytes", "share"),
    [(500, 64 << 20, 1.0), (5000, GIB, 1.0), (500, 64 << 20, 0.6)],
)
def test_a_file_in_fragments_is_named_with_the_rate_of_one_piece(lan, fragments, size_bytes, share):
    """share: what a fragment really costs of a random access; near ones cost less."""
    zones(lan)
    disk(lan, "server", "read", law(0.05), details={"place": place(0.0, 0.1)})
    whole = law(0.25)
    rate = fragmented(fragments, whole, 0.008 * share, size_bytes)
    told = place(0.2, 0.3, fragments, size_bytes)
    disk(lan, "server", "read", rate, "file", {"place": told})
    lan.copy("file.pull.uncached", 0.96 * rate, memory=0.97 * rate)
    found = of(lan)
    assert words(found) == ("disk", "server", "seek")
    assert causes(found) == ["seek", "read"]
    assert f"{fragments:,} fragments".replace(",", "," if fragments > 999 else "") in (
        found.verdict.sentence
    )
    assert found.next.ceiling_bytes_per_second == pytest.approx(whole * MB, rel=0.02)
    assert "e4defrag" in found.advice[0]


def test_without_zones_the_runs_own_file_tells_the_rate_of_one_piece(lan):
    """The seek is a random access on the same device; its two zones make no curve."""
    zones(lan, count=2)
    lan.entries[-1][1].details["zones"] = []
    disk(lan, "server", "read", 55, details={"place": place(0.0, 0.1)})
    rate = fragmented(500, 55, 0.008, 64 << 20)
    told = place(0.0, 0.1, 500, 64 << 20)
    disk(lan, "server", "read", rate, "file", {"place": told})
    lan.copy("file.pull.uncached", 0.97 * rate)
    assert words(of(lan)) == ("disk", "server", "seek")
    assert of(lan).next.ceiling_bytes_per_second == 55e6


@pytest.mark.parametrize(
    ("fragments", "rate", "seek_seconds"),
    [
        (500, 15.0, None),
        (500, 15.0, 0.00008),
        (1, 15.0, 0.008),
        (8, 50.0, 0.008),
        (500, 2.0, 0.008),
        (500, law(0.25), 0.008),
    ],
    ids=["no seek known", "an SSD", "one piece", "a few", "far too slow", "as in one piece"],
)
def test_no_seek_is_blamed(lan, fragments, rate, seek_seconds):
    zones(lan, seek_seconds=seek_seconds)
    told = place(0.2, 0.3, fragments, 64 << 20)
    disk(lan, "server", "read", rate, "file", {"place": told})
    lan.copy("file.pull.uncached", 0.97 * rate)
    assert causes(of(lan)) == ["read"]


def test_gaps_that_pass_under_the_head_cost_their_passing_and_no_seek(lan):
    """500 pieces with 128 KiB between them: a disc of 52 MB/s waits 2.5 ms for each."""
    zones(lan)
    gaps = {"short_gaps": 499, "short_gaps_bytes": 499 * (128 << 10)}
    told = place(0.2, 0.3, 500, 64 << 20, **gaps)
    whole = law(0.25)
    rate = (64 << 20) / ((64 << 20) / whole + 499 * (128 << 10) / whole)
    disk(lan, "server", "read", rate, "file", {"place": told})
    lan.copy("file.pull.uncached", 0.97 * rate)
    assert words(of(lan)) == ("disk", "server", "seek")
    lan.entries[-2][1].details["place"]["short_gaps_bytes"] = 499 * 4096
    assert causes(of(lan)) == ["read"]


def test_the_link_caps_a_file_in_fragments_on_a_fast_disk(lan):
    zones(lan, outer=400.0, inner=300.0, seek_seconds=0.004)
    rate = fragmented(500, 380, 0.004, GIB)
    disk(lan, "server", "read", rate, "file", {"place": place(0.2, 0.3, 500)})
    lan.copy("file.pull.uncached", 113, memory=116)
    assert words(of(lan)) == ("network", "path", "link-rate")


def test_a_users_file_is_held_against_its_own_read_and_ours_against_ours(lan):
    disk(lan, "server", "read", 60)
    disk(lan, "server", "read", 20, "file")
    lan.copy("pull.uncached", 58)
    lan.copy("file.pull.uncached", 19.5)
    assert [of(lan, at).verdict.ceiling_bytes_per_second for at in (0, 1)] == [60e6, 20e6]
    assert "reads this file no faster than 20 MB/s" in of(lan, 1).verdict.sentence


def test_a_users_file_that_was_not_read_alone_has_no_ceiling_from_ours(lan):
    disk(lan, "server", "read", 60)
    lan.copy("file.pull.uncached", 58)
    assert causes(of(lan)) == []
    assert any("Not known: what the server's disk" in line for line in of(lan).evidence)


# -- sync ---------------------------------------------------------------------------------------

ALWAYS = {"smb_conf": [{"option": "sync always", "value": "yes", "why": "", "remedy": ""}]}
SYNCED = {"request_bytes": 1 << 20, "sync_seconds": {"median": 0.03, "p99": 0.06}}


def with_target(world: Any, target: dict[str, Any]) -> dict[str, Any]:
    return {"target": {**world.report().target, **target}}


@pytest.mark.parametrize(
    ("synced", "copied"),
    [(20, 19.5), (20, 17.1), (20, 23), (60, 40)],
    ids=["reached", "in turn with the link", "a little above", "half and half"],
)
@pytest.mark.parametrize("name", ["push.cached", "push.uncached"])
def test_forced_writes_are_named(lan, synced, copied, name):
    disk(lan, "server", "write", (105, 108, 110))
    disk(lan, "server", "write", synced, "synced", SYNCED)
    lan.copy(name, copied, memory=copied)
    found = of(lan, **with_target(lan, ALWAYS))
    assert words(found) == ("disk", "server", "sync")
    assert causes(found) == ["sync", "write"]
    assert "sync always = no" in found.advice[0]
    assert found.next.ceiling_bytes_per_second == 108e6


def test_a_file_system_mounted_with_sync_forces_them_too(lan):
    lan.server = replace(lan.server, folder=replace(lan.server.folder, mount_options="rw,sync"))
    disk(lan, "server", "write", 108)
    disk(lan, "server", "write", 20, "synced", SYNCED)
    lan.copy("push.cached", 19)
    assert words(of(lan)) == ("disk", "server", "sync")
    assert "mounted without sync" in of(lan).advice[0]


@pytest.mark.parametrize(
    ("target", "name", "write", "synced", "copied"),
    [
        ({}, "push.cached", 108, 20, 19),
        ({"smb_conf": "x"}, "push.cached", 108, 20, 19),
        (ALWAYS, "pull.cached", 108, 20, 19),
        (ALWAYS, "push.cached", 25, 20, 19),
        (ALWAYS, "push.cached", 108, 20, 104),
        (ALWAYS, "push.cached", 108, 60, 12),
        (ALWAYS, "push.cached", 108, None, 19),
    ],
    ids=[
        *("config not seen", "config forged", "a pull", "it costs little", "the copy is faster"),
        *("the copy is far slower", "not measured"),
    ],
)
def test_no_sync_is_blamed(lan, target, name, write, synced, copied):
    disk(lan, "server", "write", write)
    if synced is not None:
        disk(lan, "server", "write", synced, "synced", SYNCED)
    lan.copy(name, copied)
    assert "sync" not in causes(of(lan, **with_target(lan, target)))


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


@pytest.mark.parametrize(
    "details",
    [
        {"others": others(read=30), "before": BUSY},
        {"others": others(read=30), "before": QUIET},
        {"others": others(written=25)},
        {"others": others(read=0.3, access=4096), "before": BUSY},
        {"before": BUSY},
    ],
    ids=["always", "began later", "writes", "small ones", "seen before alone"],
)
def test_somebody_elses_io_is_named_on_a_disk_that_is_read(lan, details):
    zones(lan)
    at = place(0.9, 0.97)
    disk(lan, "server", "read", (24, 25, 26), details={**details, "place": at})
    lan.copy("pull.uncached", 24, memory=24.2)
    found = of(lan)
    assert words(found) == ("disk", "server", "contention")
    assert causes(found) == ["contention"]
    assert found.advice[0].startswith("Quiet on the server's disk")
    assert "somebody else" in found.verdict.sentence


def test_it_is_named_on_a_disk_that_is_written(lan):
    """The device was busy while bytes went from memory to memory: that was nobody of ours."""
    busy = {"device_busy_ratio": 0.9, "device_read_bytes": 150_000_000}
    lan.busy["server"] = busy
    lan.tcp("push", 117.6)
    disk(lan, "server", "write", 25, details={"others": others(read=30)})
    lan.copy("push.cached", 24)
    assert words(of(lan)) == ("disk", "server", "contention")


def test_a_shared_disk_that_was_always_at_work_is_reached_whatever_share_it_gave(lan):
    details = {"others": others(read=30), "before": BUSY}
    disk(lan, "server", "read", (22, 25, 28), details=details)
    load = {"device_busy_ratio": 0.99, "device_read_bytes": 220_000_000}
    lan.copy("pull.uncached", (10, 15, 22), memory=15, server=load)
    assert words(of(lan)) == ("disk", "server", "contention")
    assert "reads 30 MB/s from the server's disk" in of(lan).verdict.sentence


@pytest.mark.parametrize(
    ("verb", "details"),
    [
        ("read", {"others": others(read=2), "before": QUIET}),
        ("read", {"others": others(read=0.5), "before": BUSY}),
        ("read", {"before": QUIET}),
        ("read", {"others": {"reads": 5000, "writes": 900}, "before": QUIET}),
        ("read", {"others": {**others(), "reads": 90_000}, "before": QUIET}),
        ("read", {"others": "all", "before": [1]}),
        ("write", {"others": others(written=25), "before": QUIET}),
        ("write", {"others": others(written=25)}),
    ],
    ids=[
        *("little", "it was over", "quiet", "no bytes", "split requests of ours", "forged"),
        *("the journal", "the journal, nobody looked"),
    ],
)
def test_nobody_is_blamed_on_a_disk_of_ones_own(lan, verb, details):
    zones(lan)
    disk(lan, "server", verb, 55, details=details)
    lan.copy("pull.uncached" if verb == "read" else "push.cached", 53)
    assert causes(of(lan)) == [verb]


def test_a_busy_disk_that_is_not_on_the_way_is_nobodys_cap(lan):
    disk(lan, "server", "read", 25, details={"others": others(read=30), "before": BUSY})
    disk(lan, "server", "write", 300)
    lan.copy("pull.cached", 113, memory=116)
    assert words(of(lan)) == ("network", "path", "link-rate")


# -- all of them --------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["zones", "synced", "sustained", "file"])
def test_no_other_pattern_is_taken_for_the_sequential_rate(lan, pattern):
    for verb in ("read", "write"):
        disk(lan, "server", verb, 20, pattern)
    for name in ("pull.uncached", "push.cached"):
        lan.copy(name, 19)
    assert causes(of(lan, 0)) == causes(of(lan, 1)) == []


def test_a_report_without_patterns_reads_as_it_did(lan):
    lan.disk("server", "read", 25)
    lan.copy("pull.uncached", 24)
    assert words(of(lan)) == ("disk", "server", "read")


STRANGE = ["x", -1, 1e300, True, None, [], {}, [{}], [[1]], {"bytes": -5}, 2**64, 1e-320]


@pytest.mark.parametrize("strange", STRANGE, ids=repr)
def test_forged_details_break_nothing(empty_world, strange):
    whole = place(0.9, 0.97, whole={"device": "sda", "device_bytes": TB_BYTES})
    plain: dict[str, Any] = {"place": whole, "others": others(read=9), "before": BUSY}
    forged = [{**plain, name: strange} for name in (*plain, "device", "zones")]
    for name, told in plain.items():
        forged += [{**plain, name: {**told, key: strange}} for key in told]
    for details in forged:
        for pattern in ("sequential", "file"):
            world = empty_world()
            at = zones(world)
            told = world.entries[at][1].details
            rate = {"from_ratio": 0, "to_ratio": strange, "bytes_per_second": strange}
            told["zones"] = strange if "zones" in details else [rate, *told["zones"]]
            told["seek_seconds"] = strange if "zones" in details else 0.008
            disk(world, "server", "read", 25, pattern, details)
            world.copy("file.pull.uncached" if pattern == "file" else "pull.uncached", 24)
            assert of(world).verdict.sentence


@pytest.mark.parametrize("pattern", ["file", "sequential"])
def test_without_a_rate_in_one_piece_no_seek_is_blamed(lan, pattern):
    """The seek is known, but not what the disk reads where nothing has to be sought."""
    zones(lan, count=2)
    lan.entries[-1][1].details["zones"] = []
    if pattern == "file":
        disk(lan, "server", "read", 50, details={"place": place(0.0, 0.1, 900)})
    disk(lan, "server", "read", 15, pattern, {"place": place(0.2, 0.3, 500, 64 << 20)})
    lan.copy("file.pull.uncached" if pattern == "file" else "pull.uncached", 14.6)
    assert "seek" not in causes(of(lan))


@pytest.mark.parametrize("lost", ["from_ratio", "device_bytes"])
def test_a_partition_whose_place_on_its_disk_is_not_known_is_in_no_zone(lan, lost):
    zones(lan, device="sda")
    whole = {"device": "sda", "device_bytes": 2 * TB_BYTES, "from_ratio": 0.95, "to_ratio": 0.96}
    del whole[lost]
    rate = law(0.95)
    disk(lan, "server", "read", rate, details={"place": place(0.9, 0.92, whole=whole)})
    lan.copy("pull.uncached", 0.97 * rate)
    assert words(of(lan)) == ("disk", "server", "read")


def test_a_piece_without_bytes_is_no_part_of_a_files_place(lan):
    zones(lan)
    rate = law(0.925)
    told = place(0.9, 0.95)
    told["spans"].insert(0, {"from_ratio": 0.0, "to_ratio": 0.1, "bytes": 0})
    disk(lan, "server", "read", rate, details={"place": told})
    lan.copy("pull.uncached", 0.97 * rate)
    assert words(of(lan)) == ("disk", "server", "zone")
    assert "from 90 % to 95 %" in of(lan).verdict.sentence


def test_a_weak_zone_that_the_files_own_read_hardly_feels_is_not_blamed(lan):
    """Weak by a little: what is due there and what was read are one rate."""
    zones(lan, weak={4: 0.85})
    rate = law(0.5) * 0.9
    disk(lan, "server", "read", rate, details={"place": place(0.47, 0.53)})
    lan.copy("pull.uncached", 0.97 * rate)
    assert words(of(lan)) == ("disk", "server", "read")


def test_two_zones_make_no_curve_to_hold_a_place_against(lan):
    zones(lan, count=2)
    rate = law(0.95)
    disk(lan, "server", "read", rate, details={"place": place(0.9, 0.99)})
    lan.copy("pull.uncached", 0.97 * rate)
    assert words(of(lan)) == ("disk", "server", "read")
