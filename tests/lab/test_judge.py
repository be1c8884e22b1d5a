"""The lab's own judgement, on small reports."""

from __future__ import annotations

from typing import Any

import pytest
from judge import ABSTAINED, MISSED, NOT_COUNTED, RIGHT, WRONG, rates, verdicts
from plant import PAYLOAD_RATIO, payload_ratio
from truth import COPIES, WORLDS

GIGABIT = 125e6 * PAYLOAD_RATIO


def _copy(copy: str, rate: float | None, component: str, side: str | None, cause: str) -> Any:
    verdict = {"component": component, "side": side, "cause": cause, "confidence": 0.9}
    return {"copy": copy, "dialect": "3.1.1", "bytes_per_second": rate, "verdict": verdict}


def _grades(world: str, *copies: Any, steps: Any = (), agent: bool = True) -> dict[str, Any]:
    """Returns each copy's grade in a report of these, the first dialect's if there are two."""
    report = {"diagnosis": {"copies": list(copies)}, "steps": list(steps)}
    rows = verdicts(WORLDS[world], report, agent=agent)
    return {row.copy: row.grade for row in reversed(rows)}


def _grade(world: str, *arguments: Any) -> Any:
    return _grades(world, _copy(*arguments))[arguments[0]]


def test_the_planted_cap_is_right_and_another_is_wrong() -> None:
    """Side and cause count as much as the component."""
    copy = "pull.uncached"
    assert _grade("server-read", copy, 25e6, "disk", "server", "read") == RIGHT
    assert _grade("server-read", copy, 25e6, "disk", "client", "read") == WRONG
    assert _grade("server-read", copy, 25e6, "disk", "server", "write") == WRONG
    assert _grade("server-read", copy, 25e6, "network", "path", "link-rate") == WRONG


def test_blaming_nobody_is_a_miss_only_where_the_plant_caps_the_copy() -> None:
    """An abstention elsewhere is no fault, nor is the instrument's own ceiling."""
    unknown = ("unknown", None, "inconclusive")
    assert _grade("server-read", "pull.uncached", 25e6, *unknown) == MISSED
    assert _grade("server-read", "push.cached", 70e6, *unknown) == ABSTAINED
    assert _grade("nothing", "push.cached", 500e6, "instrument", "client", "ceiling") == ABSTAINED


def _copy_step(flush_seconds: float) -> Any:
    """The step of a push of 14 MB in 0.17 s."""
    setting = {"copy": "push.cached", "dialect": "3.1.1", "end": "folder"}
    outcome = {
        "kind": "measured",
        "samples": [[0.0, 0], [0.17, 14_000_000]],
        "details": {"flush_seconds": flush_seconds},
    }
    return {"stage": "smb-copy", "setting": setting, "outcome": outcome}


def test_the_flush_of_a_disk_without_a_plant_is_not_held_against_the_link() -> None:
    """A short file's end takes long; what it waits for there is nobody's planted cap."""
    copy = _copy("push.cached", 0.82 * GIGABIT, "network", "path", "link-rate")
    for world, flush_seconds, grade in (
        ("client-write", 0.03, RIGHT),
        ("client-write", 0.001, WRONG),
        ("server-write", 0.03, WRONG),
    ):
        grades = _grades(world, copy, steps=[_copy_step(flush_seconds)])
        assert grades["push.cached"] == grade, (world, flush_seconds)


def test_a_copy_on_a_far_path_spends_round_trips_on_its_start_and_its_end() -> None:
    """Too little for a LAN is the link there, and no blame is no fault."""
    link, full = ("network", "path", "link-rate"), 25e6 * payload_ratio(9000)
    assert _grade("wan-40", "pull.cached", 0.75 * full, *link) == RIGHT
    assert _grade("wan-40", "pull.cached", 0.60 * full, *link) == WRONG
    assert _grade("wan-40", "pull.cached", 0.75 * full, "unknown", None, "inconclusive") == (
        ABSTAINED
    )
    window = ("tcp", "client", "receive-window")
    assert _grade("wan-40", "pull.cached", 0.75 * full, *window) == WRONG
    assert _grade("rwnd-client", "pull.cached", 5e6, *window) == RIGHT
    assert _grade("rwnd-client", "push.cached", 11e6, *window) == WRONG


def test_a_short_copy_spends_more_of_its_time_on_round_trips() -> None:
    """At 16 ms a second of copying has room for 80 % of the link; ten seconds have not."""
    full = 12.5e6 * PAYLOAD_RATIO
    copy = _copy("pull.cached", 0.8 * full, "network", "path", "link-rate")
    for seconds, grade in ((1.0, RIGHT), (10.0, WRONG)):
        step = _copy_step(0.0)
        step["setting"]["copy"] = "pull.cached"
        step["outcome"]["samples"] = [[0.0, 0], [seconds, 10_000_000]]
        assert _grades("sndbuf-client", copy, steps=[step])["pull.cached"] == grade, seconds


def test_a_step_without_a_rate_is_compared_with_nothing() -> None:
    """A look at the path moves no payload."""
    step = {"stage": "path", "setting": {}, "outcome": {"kind": "measured", "details": {}}}
    assert list(rates(WORLDS["wan-40"], {"steps": [step]}, {})) == []


@pytest.mark.parametrize(
    ("filled", "quota", "link", "unknown"),
    [
        (0.60, RIGHT, WRONG, MISSED),
        (0.90, RIGHT, RIGHT, ABSTAINED),
        (0.99, WRONG, RIGHT, ABSTAINED),
    ],
)
def test_a_quota_caps_only_a_copy_that_does_not_fill_the_link(
    filled: float, quota: str, link: str, unknown: str
) -> None:
    """Two caps can stand close together: which of them holds is told by the rate."""
    rated = ("pull.cached", filled * GIGABIT)
    assert _grade("server-quota", *rated, "cpu", "server", "quota") == quota
    assert _grade("server-quota", *rated, "network", "path", "link-rate") == link
    assert _grade("server-quota", *rated, "unknown", None, "inconclusive") == unknown


def test_a_shared_link_stays_shared() -> None:
    """The rate that others leave free is reached, and still the link is not simply slow."""
    free = WORLDS["busy-link"].plant.payload_bytes_per_second("pull")
    rated = ("pull.cached", free)
    assert _grade("busy-link", *rated, "network", "path", "contention") == RIGHT
    assert _grade("busy-link", *rated, "network", "path", "link-rate") == WRONG


def test_a_second_dialect_that_the_budget_left_out_is_no_miss() -> None:
    """The copy was made and its cap named; a copy made in no dialect is missed."""
    skipped = _copy("pull.cached", None, "unknown", None, "not-measured")
    capped = _copy("pull.cached", 12e6, "network", "path", "link-rate")
    report = {"diagnosis": {"copies": [capped, skipped]}, "steps": []}
    assert [row.grade for row in verdicts(WORLDS["link-100"], report)[:2]] == [RIGHT, ABSTAINED]


def test_without_an_agent_a_copy_that_nobody_can_make_is_not_counted() -> None:
    """One that was made all the same is judged, and so is any other copy that was not."""
    skipped = _copy("pull.uncached", None, "unknown", None, "not-measured")
    missed = _copy("push.cached", None, "unknown", None, "not-measured")
    capped = _copy("pull.uncached", 25e6, "network", "path", "link-rate")
    for judged, agent, grade in (
        (skipped, False, NOT_COUNTED),
        (skipped, True, MISSED),
        (capped, False, WRONG),
        (missed, False, ABSTAINED),
    ):
        assert _grades("server-read", judged, agent=agent)[judged["copy"]] == grade
    missed_all = dict.fromkeys(COPIES, MISSED)
    assert _grades("link-100", agent=False) == {**missed_all, "pull.uncached": NOT_COUNTED}


def test_what_the_server_pushes_goes_the_way_of_what_the_client_pulls() -> None:
    """The truth is that of the mirrored copy; settings of the server's smbd are not true of it."""
    right = _copy("server.push.uncached", 25e6, "disk", "server", "read")
    wrong = _copy("server.pull.cached", 100e6, "disk", "server", "write")
    skipped = _copy("server.pull.uncached", None, "unknown", None, "not-measured")
    rows = _grades("server-read", right, wrong, skipped)
    assert (rows["server.push.uncached"], rows["server.pull.cached"]) == (RIGHT, WRONG)
    assert "server.pull.uncached" not in rows
    assert len(_grades("disc-sync", right, wrong, skipped)) == len(COPIES)


def test_rates_are_compared_where_the_truth_is_planted() -> None:
    """tcp with iperf3, a disk with its throttle, copies with the link in a link's own world."""

    def step(stage: str, rate: float, **setting: Any) -> Any:
        outcome = {"kind": "measured", "bytes_per_second": {"median": rate}}
        return {"stage": stage, "setting": setting, "outcome": outcome}

    steps = [
        step("tcp", 100e6, verb="push", streams=1),
        step("tcp", 110e6, verb="push", streams=4),
        step("disk", 24e6, side="server", verb="read", cache="uncached"),
        step("disk", 9e9, side="server", verb="read", cache="cached"),
        step("smb-copy", 0.96 * GIGABIT, copy="push.cached", dialect="3.1.1", end="memory"),
        {"stage": "udp", "setting": {}, "outcome": {"kind": "skipped", "reason": "no"}},
    ]
    report = {"diagnosis": {"copies": []}, "steps": steps}
    disk = [(r.what, round(r.ratio, 3)) for r in rates(WORLDS["server-read"], report, {})]
    assert disk == [("disk server read / planted", 0.96)]
    tcp, copy = rates(WORLDS["link-1000"], report, {"push": 99e6})
    assert tcp.within and tcp.ratio == pytest.approx(100 / 99)
    assert not copy.within
