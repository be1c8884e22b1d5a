"""The disk's steps, as a run makes them on both hosts: what is read, written, and stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bottleneck.login.target import NamedDevice, NamedFile
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.execution import Session, carried_out
from bottleneck.run.steps import disks
from bottleneck.run.steps.disks import Disks
from probes.core.records import Measured, Skipped
from probes.files.folders import folder_facts
from probes.programs.samba import private_samba
from probes.stages import disk
from tests.run.steps.sessions import PASSWORD, begun, order_of, session_of, update_world

MIB = 1 << 20
FILM_BYTES = 5 * MIB
SHORT = replace(
    plan.times(60.0), disk=0.3, disk_cached=0.2, zones=0.5, synced=0.3, file=0.3, fill_source=0.3
)


@pytest.fixture(autouse=True)
def _in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "times", lambda budget, trip=0.0: SHORT)


@pytest.fixture
def share(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    shared = tmp_path / "shared"
    shared.mkdir()
    film = shared / "Film.mkv"
    film.write_bytes(os.urandom(FILM_BYTES))
    film.chmod(0o644)
    with private_samba(str(shared), password=PASSWORD) as server:
        yield f"//{server.host}:{server.port}/{server.share}", shared
    assert [each.name for each in shared.iterdir()] == ["Film.mkv"]


def disk_outcomes(session: Session) -> dict[tuple[str, str, str], Any]:
    """By side, verb and pattern, the outcome of each step; a cached read is left out."""
    return {
        (step.setting["side"], step.setting["verb"], step.setting["pattern"]): outcome
        for step, outcome in session.report().entries
        if step.stage == "disk" and step.setting["cache"] == "uncached"
    }


@pytest.mark.long
def test_with_an_agent_both_disks_are_measured_and_the_users_file_is_found_and_pulled(
    share: tuple[str, Path], tmp_path: Path
) -> None:
    target, shared = share
    mine = tmp_path / "mine"
    mine.mkdir()
    earlier = (shared / "Film.mkv").read_bytes(), (shared / "Film.mkv").stat().st_mtime_ns
    session = session_of(
        target, mine, size_bytes=8 * MIB, agent="exec:", file=NamedFile("server", "film.MKV")
    )
    with begun(session) as order:
        session.carry_out(order.disks.measure())
        protection: dict[str, object] = {"signing": None, "encryption": None}
        session.carry_out(order.sources.copy_file("3.1.1", protection))
        update_world(session, samba_config=[{"option": "sync always"}])
        session.carry_out(order_of(session).disks.explain(""))
    assert session.log.complete(), session.report().entries
    report = disk_outcomes(session)
    film = report["server", "read", "file"]
    assert isinstance(film, Measured) and film.runs[0][-1].moved_bytes == FILM_BYTES
    assert isinstance(report["server", "write", "synced"], Measured)
    assert ("client", "read", "file") not in report
    copies = [(s, o) for s, o in session.report().entries if s.stage == "smb-copy"]
    ((step, outcome),) = copies
    assert step.setting["copy"] in {"file.pull.cached", "file.pull.uncached"}
    assert isinstance(outcome, Measured) and outcome.details["file_bytes"] == FILM_BYTES
    assert outcome.details["cache"]["cached_ratio_before"] is not None
    now = (shared / "Film.mkv").read_bytes(), (shared / "Film.mkv").stat().st_mtime_ns
    assert now == earlier


@pytest.mark.long
def test_an_agent_that_may_write_nowhere_reads_the_copies_own_file(
    share: tuple[str, Path], tmp_path: Path
) -> None:
    session = session_of(share[0], tmp_path, size_bytes=8 * MIB, agent="exec:")
    session.files.no_source["server"] = "srv may not write there"
    with begun(session) as order:
        session.carry_out(order.disks.measure())
    report = disk_outcomes(session)
    read = report["server", "read", "sequential"]
    assert isinstance(read, Measured) and read.runs[0][-1].moved_bytes >= 2 * MIB
    assert report["server", "write", "sequential"] == Skipped("srv may not write there")


@pytest.mark.long
def test_a_file_that_the_server_does_not_have_is_a_skipped_step_with_its_name(
    share: tuple[str, Path], tmp_path: Path
) -> None:
    target, _ = share
    session = session_of(
        target, tmp_path, size_bytes=8 * MIB, agent="exec:", file=NamedFile("server", "x\\gone.mkv")
    )
    with begun(session) as order, pytest.raises(disks.Unavailable, match=r"gone\.mkv"):
        order.sources.file_facts()


@pytest.mark.long
def test_to_look_at_a_file_or_a_device_alone_writes_nothing(tmp_path: Path) -> None:
    film = tmp_path / "film"
    film.write_bytes(os.urandom(FILM_BYTES))
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o500)
    for options in (
        {"file": NamedFile("client", str(film))},
        {"device": NamedDevice("client", "/dev/there-is-none")},
    ):
        session = session_of(
            "//localhost/-", empty, size_bytes=8 * MIB, stages=("disk",), **options
        )
        with begun(session, share=False) as order:
            session.carry_out(order.disks.measure())
        report = disk_outcomes(session)
        assert {verb for _, verb, _ in report} == {"read"} and session.files.sources == {}
        if "file" in options:
            assert isinstance(report["client", "read", "file"], Measured)
        else:
            outcome = report["client", "read", "zones"]
            assert isinstance(outcome, Skipped) and "there-is-none" in outcome.reason


@pytest.mark.long
@pytest.mark.parametrize(
    ("pattern", "options"),
    [
        ("zones", {"device": NamedDevice("server", "/dev/sdb")}),
        ("file", {"file": NamedFile("server", "film")}),
    ],
)
def test_what_is_named_at_a_server_without_an_agent_is_a_skipped_step(
    tmp_path: Path, pattern: str, options: dict[str, Any]
) -> None:
    session = session_of("//nas/media", tmp_path, size_bytes=8 * MIB, stages=("disk",), **options)
    with begun(session, share=False) as order:
        session.carry_out(order.disks.measure())
    outcome = disk_outcomes(session)["server", "read", pattern]
    assert isinstance(outcome, Skipped) and "--agent" in outcome.reason


def test_a_host_that_does_not_say_whether_it_may_read_a_device_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_of("//nas/media", tmp_path, size_bytes=8 * MIB)

    class Silent:
        def ask(self, name: str, **arguments: Any) -> Any:
            raise disks.StageError("no answer within its time")

    update_world(session, hosts={"client": Silent()})
    assert not order_of(session).disks._readable("client", "/dev/sda")
    assert session.log.notes == ["client: /dev/sda: no answer within its time"]


@pytest.mark.parametrize(
    ("rotational", "settings", "nodes"),
    [(True, {}, [""]), (None, {}, [""]), (False, {}, []), (False, {"pattern": "zones"}, [""])],
)
def test_zones_are_written_where_a_disc_turns_or_may_or_that_was_chosen(
    tmp_path: Path, rotational: bool | None, settings: dict[str, Any], nodes: list[str]
) -> None:
    session = session_of("//nas/media", tmp_path, settings=settings)
    folder = replace(folder_facts(str(tmp_path)), rotational=rotational)
    facts: Any = SimpleNamespace(folder=folder)
    update_world(session, facts={"client": facts})
    written = plan.DiskStep("client", "write", "uncached", "zones")
    assert order_of(session).disks._devices(written) == nodes


@pytest.mark.parametrize(("requested_bytes", "size_bytes"), [(None, disks.ZONES_BYTES), (MIB, MIB)])
def test_all_zones_that_are_written_share_the_size_that_was_asked_for(
    requested_bytes: int | None, size_bytes: int
) -> None:
    order = order_of(session_of(size_bytes=requested_bytes))
    each = plan.DiskStep("client", "write", "uncached", "zones")
    setting = disk.Setting(**asdict(each), folder="/tmp", size_bytes=0, seconds=1.0)
    setting, _ = carried_out(
        order.disks._resolve(each, setting, Step("disk", {}, "client")), pytest.fail
    )
    assert setting.size_bytes == size_bytes


# -- where a disk is looked into, since that can explain a copy ------------------------------------

DISKS = {"client.read": 500e6, "client.write": 400e6, "server.read": 60e6, "server.write": 50e6}
ZONES = {side: plan.DiskStep(side, "read", "uncached", "zones") for side in plan.SIDES}
SYNCED = plan.DiskStep("server", "write", "uncached", "synced")


@pytest.fixture
def disks_after(monkeypatch: pytest.MonkeyPatch) -> Any:
    def disks_after(copies: dict[str, float], **options: Any) -> Disks:
        steps = [
            (Step("smb-copy", {"copy": name}, "client"), rate) for name, rate in copies.items()
        ]
        monkeypatch.setattr(plan, "measured_rates", lambda log: iter(steps))
        monkeypatch.setattr(plan, "known_rates", lambda log: DISKS)
        return order_of(session_of(**options)).disks

    return disks_after


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
    disks_after: Any, copy: str, rate: float, sides: list[str]
) -> None:
    on = disks_after({copy: rate})
    assert [side for side in ZONES if on.explains(ZONES[side])] == sides


def test_named_devices_and_what_there_is_time_for_are_always_explained(disks_after: Any) -> None:
    for options in (
        {"file": NamedFile("server", "film")},
        {"device": NamedDevice("server", "/dev/sdb")},
    ):
        on = disks_after({}, **options)
        assert on.explains(ZONES["server"])
        assert not on.explains(ZONES["client"])
    assert disks_after({}, budget_seconds=300.0).explains(SYNCED)


def test_forced_writes_are_measured_where_somebody_forces_them(disks_after: Any) -> None:
    on = disks_after({"push.cached": 20e6})
    assert not on.explains(SYNCED)
    on.world = replace(on.world, samba_config=[{"option": "sync always", "value": "yes"}])
    assert on.explains(SYNCED)
