"""What held a copy for a part of the time, and what stands of a copy whose runs scatter."""

import pytest

LINK = 117.6


def quota(throttled_ratio, copy_cpu_seconds=1.2):
    """Half a core, 60 % of it used; the copy was stopped in a share of the periods."""
    return {
        "quota_cores": 0.5,
        "throttled_ratio": throttled_ratio,
        "copy_cpu_seconds": copy_cpu_seconds,
    }


def all_cores(busy_ratio):
    return {"core_busy_ratios": (busy_ratio,) * 2, "busiest_process_ratio": 0.5}


def one_core(busy_ratio):
    return {"core_busy_ratios": (busy_ratio, 0.2), "busiest_process_ratio": busy_ratio}


CROWDED = {"core_busy_ratios": (1.0,), "other_cpu_seconds": 2.0, "run_delay_seconds": 2.1}
FULL = {"core_busy_ratios": (0.98, 0.97), "busiest_process_ratio": 0.6, "copy_cpu_seconds": 7.0}


NOBODY = ("unknown", None, "inconclusive")
THE_LINK = ("network", "path", "link-rate")


# -- a quota for a part of the time ------------------------------------------------------------


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("throttled_ratio", [0.1, 0.3, 0.5])
def test_a_quota_that_stops_the_copy_now_and_then_is_named_with_doubt(
    pulled, side, throttled_ratio
):
    found = pulled(70, **{side: quota(throttled_ratio)})
    assert found.verdict.named == ("cpu", side, "quota")
    assert 0 < found.verdict.confidence <= 0.7
    assert f"{throttled_ratio:.0%} of" in found.verdict.sentence
    assert any(f"used up the {side}'s CPU quota (0.5 cores)" in line for line in found.evidence)


@pytest.mark.parametrize("throttled_ratio", [0.0, 0.05, 0.09])
def test_a_quota_that_hardly_ever_stops_it_is_not_named(pulled, throttled_ratio):
    assert pulled(70, server=quota(throttled_ratio)).verdict.named == NOBODY


def test_a_quota_that_stops_it_most_of_the_time_is_named_without_that_doubt(pulled):
    found = pulled(70, server=quota(0.93, copy_cpu_seconds=2.0))
    assert found.verdict.named == ("cpu", "server", "quota")
    assert found.verdict.confidence > 0.7


@pytest.mark.parametrize("share", [0.86, 0.9, 0.94])
def test_just_below_a_ceiling_the_quota_is_the_rival(pulled, share):
    """The part that is missing to the link may be the time that the quota took."""
    found = pulled(share * LINK, server=quota(0.3))
    assert found.verdict.named == THE_LINK
    assert found.verdict.confidence <= 0.6
    assert "Equally likely: the server's CPU quota" in found.verdict.sentence


@pytest.mark.parametrize("share", [0.96, 1.0])
def test_at_the_ceiling_the_quota_took_nothing(pulled, share):
    found = pulled(share * LINK, server=quota(0.3))
    assert found.verdict.named == THE_LINK
    assert found.verdict.confidence > 0.7
    assert "quota" not in found.verdict.sentence


def test_the_same_gap_without_a_quota_has_no_rival(pulled):
    found = pulled(0.9 * LINK)
    assert found.verdict.named == THE_LINK
    assert found.verdict.confidence > 0.6
    assert "too close" not in found.verdict.sentence


def test_quotas_on_both_hosts_leave_a_coin_to_toss(pulled):
    found = pulled(70, client=quota(0.3), server=quota(0.3))
    assert found.verdict.component == "cpu"
    assert found.verdict.confidence <= 0.5
    assert "client's CPU quota" in found.verdict.sentence
    assert "server's CPU quota" in found.verdict.sentence


# -- a CPU that is nearly full -----------------------------------------------------------------


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize(("load", "cause"), [(all_cores, "all-cores"), (one_core, "one-core")])
@pytest.mark.parametrize("busy_ratio", [0.82, 0.88])
def test_a_nearly_full_cpu_is_named_with_doubt(pulled, side, load, cause, busy_ratio):
    found = pulled(240, link=1100, disk=900, **{side: load(busy_ratio)})
    # At the client the busy thread is this tool's own.
    ours = side == "client" and cause == "one-core"
    assert found.verdict.named == (
        ("instrument", side, "ceiling") if ours else ("cpu", side, cause)
    )
    assert 0 < found.verdict.confidence <= 0.6


@pytest.mark.parametrize("load", [all_cores, one_core])
@pytest.mark.parametrize("busy_ratio", [0.5, 0.78])
def test_a_cpu_with_room_is_not_named(pulled, load, busy_ratio):
    assert pulled(240, link=1100, disk=900, client=load(busy_ratio)).verdict.named == NOBODY


@pytest.mark.parametrize("load", [all_cores, one_core])
def test_a_full_cpu_is_named_without_that_doubt(pulled, load):
    found = pulled(240, link=1100, disk=900, server=load(0.97))
    assert found.verdict.component == "cpu"
    assert found.verdict.confidence > 0.6


@pytest.mark.parametrize("load", [all_cores, one_core])
@pytest.mark.parametrize("share", [0.87, 0.97])
def test_a_nearly_full_cpu_is_silent_where_a_ceiling_is_reached(pulled, load, share):
    found = pulled(share * LINK, client=load(0.85), server=load(0.85))
    assert found.verdict.named == THE_LINK
    assert "busy" not in found.verdict.sentence


def test_what_other_processes_use_does_not_make_the_copy_nearly_full(pulled):
    load = {**all_cores(0.85), "other_cpu_seconds": 0.6 * 8}
    assert pulled(240, link=1100, disk=900, client=load).verdict.named == NOBODY


# -- runs that lie far apart -------------------------------------------------------------------

SCATTERED = (20, 40, 60)


@pytest.mark.parametrize(
    ("load", "cause"),
    [(CROWDED, "contention"), (quota(0.93, copy_cpu_seconds=2.0), "quota"), (FULL, "all-cores")],
    ids=["contention", "quota", "all cores"],
)
def test_what_the_load_shows_stands_despite_the_scatter(pulled, load, cause):
    found = pulled(SCATTERED, server=load)
    assert found.verdict.named == ("cpu", "server", cause)
    assert found.verdict.confidence <= 0.75


def test_the_same_load_under_steady_runs_is_surer_where_the_copy_hardly_slept(pulled):
    steady = pulled((39.5, 40, 40.5), server={**CROWDED, "run_delay_seconds": 4.0}).verdict
    assert (steady.component, steady.cause) == ("cpu", "contention")
    assert steady.confidence > 0.75


@pytest.mark.parametrize(
    ("changes", "loads"),
    [
        ({"disk": 41}, {}),
        ({"link": 41}, {}),
        ({}, {"server": quota(0.3)}),
        ({}, {"client": all_cores(0.85)}),
        ({}, {}),
    ],
    ids=["disk", "link", "quota now and then", "nearly full", "nothing"],
)
def test_nothing_else_stands_in_scattered_runs(pulled, changes, loads):
    found = pulled(SCATTERED, **changes, **loads)
    assert found.verdict.named == NOBODY
    assert "3 runs vary from 20.0 MB/s to 60.0 MB/s: too unstable" in found.verdict.sentence
    assert found.predicted_bytes_per_second is None


def test_the_tools_own_ceiling_does_not_stand_either(empty_world):
    world = empty_world()
    world.loopback("client", 55)
    world.tcp("pull", LINK)
    world.copy("pull.cached", SCATTERED)
    assert world.named() == NOBODY


# -- wrong bytes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "loads"),
    [
        (115, {}),
        (40, {"server": quota(0.93, copy_cpu_seconds=2.0)}),
        (70, {"server": quota(0.3)}),
        (40, {"client": FULL}),
        (SCATTERED, {}),
        (SCATTERED, {"server": CROWDED}),
        (30, {}),
    ],
    ids=["link", "quota", "now and then", "full", "scatter", "scatter and load", "nothing"],
)
def test_wrong_bytes_come_before_every_cap(pulled, rate, loads):
    found = pulled(rate, details={"hash_ok": False}, **loads)
    assert found.verdict.named == NOBODY
    assert found.verdict.sentence.startswith("DATA CORRUPTED: ")
    assert found.verdict.confidence == 0
    assert found.next is None
    assert found.predicted_bytes_per_second is None


def test_a_run_that_another_load_spoilt_is_told_and_left_aside(pulled):
    found = pulled((40, 39, 12, 41), disk=41)
    assert found.verdict.named == ("disk", "client", "write")
    assert "1 of its 4 runs was an outlier (12.0 MB/s), not" in " ".join(found.evidence)
    several = " ".join(pulled((40, 39, 12, 41, 40, 39, 41, 80), disk=41).evidence)
    assert "2 of its 8 runs were outliers" in several
