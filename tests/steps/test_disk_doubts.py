"""A disk is looked into where that can explain a copy, and nowhere else in a usual run."""

from __future__ import annotations

from typing import Any

import pytest

from bottleneck import plan
from bottleneck.bench import Bench
from bottleneck.report import Step
from bottleneck.steps import disks
from bottleneck.target import NamedDevice, NamedFile, parse
from probes.records import Access

DISKS = {
    "client.read": 500e6,
    "client.write": 400e6,
    "server.read": 60e6,
    "server.write": 50e6,
}
ZONES = {side: plan.DiskStep(side, "read", "uncached", "zones") for side in plan.SIDES}
SYNCED = plan.DiskStep("server", "write", "uncached", "synced")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    def made(copies: dict[str, float], **options: Any) -> Bench:
        steps = [(Step("smb-copy", {"copy": name}, "client"), at) for name, at in copies.items()]
        monkeypatch.setattr(plan, "measured", lambda ledger: iter(steps))
        monkeypatch.setattr(plan, "known_rates", lambda ledger: DISKS)
        asked = plan.Options(target=parse("//nas/x"), folder="/tmp", **options)
        return Bench(asked, Access(), lambda event: None, lambda report: None)

    return made


@pytest.mark.parametrize(
    ("copy", "rate", "sides"),
    [
        ("pull.uncached", 57e6, ["server"]),
        ("file.pull.uncached", 57e6, ["server"]),
        ("pull.cached", 57e6, []),
        ("pull.cached", 390e6, ["client"]),
        ("push.cached", 45e6, ["server"]),
        ("push.uncached", 11e6, []),
        ("push.uncached", 450e6, ["client", "server"]),
        ("server.pull.uncached", 450e6, []),
    ],
)
def test_the_zones_of_a_disk_that_a_copy_comes_near_to(
    run: Any, copy: str, rate: float, sides: list[str]
) -> None:
    bench = run({copy: rate})
    assert [side for side in ZONES if disks.explains(bench, ZONES[side])] == sides


def test_what_the_user_named_and_what_there_is_time_for_is_always_looked_into(run: Any) -> None:
    for more in (
        {"file": NamedFile("server", "film")},
        {"device": NamedDevice("server", "/dev/sdb")},
    ):
        bench = run({}, **more)
        assert disks.explains(bench, ZONES["server"])
        assert not disks.explains(bench, ZONES["client"])
    assert disks.explains(run({}, budget_seconds=300.0), SYNCED)


def test_forced_writes_are_measured_where_somebody_forces_them(run: Any) -> None:
    bench = run({"push.cached": 20e6})
    assert not disks.explains(bench, SYNCED)
    bench.samba_config = [{"option": "sync always", "value": "yes"}]
    assert disks.explains(bench, SYNCED)
