"""Whether a copy's own time names its cap, in whose words, and when another limit decides."""

from __future__ import annotations

from typing import Any

import pytest

from bottleneck.analysis import cap as caps
from bottleneck.analysis import ceilings, steps
from bottleneck.analysis.attribution.attribution import Attribution
from bottleneck.analysis.attribution.shares import Time
from bottleneck.analysis.cap_by_time import cap_by_time, idle
from bottleneck.analysis.finding import TimeShare

LINK, SLOW_DISK = 117.6, {"link": 1100, "disk": 40}


def went(words: str, confidence: float = 0.9, ratio: float = 0.7) -> Attribution:
    component, side, cause = words.split("/")
    shares = (TimeShare(component, side, ratio), TimeShare("unknown", None, 1 - ratio))
    time = Time({}, {}, 0)
    return Attribution(shares, component, side, cause, confidence, "both hosts", time)


def decided(world: Any, time: Attribution) -> tuple[str, float, str] | None:
    """The words, the limit in MB/s and the reason that a copy's time names."""
    report = world.report()
    copy = next(each for each in steps.copies(report) if each.made is not None)
    ladder = ceilings.ladder(report, copy)
    cap = caps.find(copy, copy.made, ladder)
    found = cap_by_time(report, copy, ladder, time, cap)
    if found is None:
        return None
    claim, told = found[0].claim, found[1]
    levels = [each.ceiling.bytes_per_second for each in told.valid]
    assert claim in told.claims and min(levels) >= claim.ceiling.bytes_per_second - 1e-6
    return claim.ceiling.words, round(claim.ceiling.bytes_per_second / 1e6, 1), claim.words


def test_a_limit_that_the_copy_runs_at_is_told_by_its_rule(pulled: Any) -> None:
    words, level, why = decided(pulled(38, **SLOW_DISK), went("disk/client/write"))
    assert (words, level) == ("disk/client/write", 40.0)
    assert why.startswith("the client's disk writes at most")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("disk/server/read", "it was limited by the server's disk (read) for 70% of the time"),
        ("network/path/loss", "it was limited by the network (packet loss) for 70% of the time"),
        ("cpu/server/quota", "it was limited by the server's CPU (quota) for 70% of the time"),
    ],
)
def test_what_no_rule_has_seen_has_the_copys_own_rate_as_its_limit(
    pulled: Any, words: str, why: str
) -> None:
    assert decided(pulled(20, link=1100, disk=900), went(words)) == (words, 20.0, why)


def test_a_limit_far_above_the_copy_is_not_what_it_ran_at(pulled: Any) -> None:
    """The disk wrote 40 MB/s alone, and less beside whatever held it in the copy's time."""
    words, level, _ = decided(pulled(20, **SLOW_DISK), went("disk/client/write"))
    assert (words, level) == ("disk/client/write", 20.0)


def test_a_lower_limit_of_another_component_had_time_to_spare(pulled: Any) -> None:
    found = decided(pulled(113, link=LINK, disk=115), went("network/path/link-rate"))
    assert found is not None and found[:2] == ("network/path/link-rate", LINK)


@pytest.mark.parametrize(
    ("rate", "world", "time"),
    [
        (38, SLOW_DISK, went("unknown//inconclusive")),
        (38, SLOW_DISK, went("network/path/link-rate", 0.55)),
        (38, {"link": LINK, "disk": 40}, went("network/path/link-rate", 0.7)),
    ],
    ids=["nothing is named", "two had work at most times", "the link carried more"],
)
def test_the_limits_that_were_measured_alone_decide(
    pulled: Any, rate: float, world: dict[str, Any], time: Attribution
) -> None:
    assert decided(pulled(rate, **world), time) is None


def test_what_a_disk_took_at_another_time_is_its_limit(world: Any) -> None:
    """Others read from it while this copy was made."""
    world.copy("push.cached", 43)
    world.copy("push.uncached", 60)
    assert decided(world, went("disk/server/write"))[:2] == ("disk/server/write", 60.0)
    assert decided(world, went("disk/server/write", 0.7)) is None


def test_the_cause_behind_a_component_is_named_where_the_copy_reaches_it(
    pulled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = {("disk", "write"): (("network", "link-rate"),)}
    monkeypatch.setattr("bottleneck.analysis.cap_by_time.BEHIND", behind)
    found = decided(pulled(113, link=LINK, disk=900), went("disk/client/write"))
    assert found is not None and found[:2] == ("network/path/link-rate", LINK)


@pytest.mark.parametrize(
    ("busy", "unknown", "expected"),
    [(0.05, 0.3, True), (0.05, 0.4, False), (0.5, 0.0, False)],
    ids=["it rested", "nobody saw much", "it worked"],
)
def test_a_disk_that_rested_in_the_copys_time_is_not_what_held_it(
    pulled: Any, busy: float, unknown: float, expected: bool
) -> None:
    report = pulled(38, **SLOW_DISK).report()
    copy = next(each for each in steps.copies(report) if each.made is not None)
    cap = caps.find(copy, copy.made, ceilings.ladder(report, copy))
    assert cap is not None and cap.claim.ceiling.part == ("disk", "client")
    shares = (("cpu", "client", 1 - busy - unknown), ("disk", "client", busy))
    told = tuple(TimeShare(*each) for each in (*shares, ("unknown", None, unknown)))
    time = Time({}, {}, 0)
    unsure = Attribution(told, "unknown", None, "inconclusive", 0.0, "client alone", time)
    assert idle(unsure, cap) is expected


@pytest.mark.parametrize(
    ("rate", "more", "most"),
    [((20, 40, 60), {}, 0.75), (40, {"server": {"steal_ratio": 0.25}}, 0.75), (40, {}, 0.95)],
    ids=["scattered runs", "a guest robbed of its cores", "steady"],
)
def test_what_makes_a_verdict_less_sure_does_so_by_time_too(
    pulled: Any, rate: Any, more: dict[str, Any], most: float
) -> None:
    report = pulled(rate, link=1100, disk=900, **more).report()
    copy = next(each for each in steps.copies(report) if each.made is not None)
    ladder = ceilings.ladder(report, copy)
    found = cap_by_time(report, copy, ladder, went("disk/server/read", 0.95), None)
    assert found is not None and found[0].confidence == most


def test_what_is_near_a_tie_is_named_where_nothing_else_is(pulled: Any) -> None:
    found = decided(pulled(20, link=1100, disk=900), went("disk/server/read", 0.55))
    assert found is not None and found[0] == "disk/server/read"


def test_a_sure_time_stands_against_what_moved_before(pulled: Any) -> None:
    """A link that fell to a third in the middle of the run."""
    found = decided(pulled(38, link=LINK, disk=900), went("network/path/link-rate", 0.9))
    assert found is not None and found[:2] == ("network/path/link-rate", 38.0)
