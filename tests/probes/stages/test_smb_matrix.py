"""Request size x depth against real servers: what was granted, what was measured, how it ends."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import psutil
import pytest

from probes.core.records import Details, Endpoint, Sample
from probes.core.stage import Last
from probes.smb import transfer
from probes.smb.frames import SmbError
from probes.smb.pipe2 import Pipe2
from probes.stages import smb_matrix
from probes.stages.smb_matrix import KIB, MIB, Fit, choose, fit
from tests import living

SIZE = 16 * MIB
SEED = "00ff11"
NT1 = "server min protocol = NT1"


@pytest.fixture(autouse=True)
def fake_time(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the stage a clock that advances 1 ms at each reading, however slow this host is."""
    if not request.node.get_closest_marker("long"):
        clock = living.FakeClock(living.deadline_in(0.0), step=0.001)
        for module in (smb_matrix, transfer):
            monkeypatch.setattr(module, "time", clock)
        monkeypatch.setattr(smb_matrix, "GRACE_SECONDS", living.GENEROUS_SECONDS)


def setting(verb: str, dialect: str = "3.1.1", **changes: Any) -> smb_matrix.Setting:
    fields = {"size_bytes": SIZE, "seconds": 0.3, "seed": SEED, **changes}
    return smb_matrix.Setting(verb=verb, dialect=dialect, **fields)


def check_matrix(samples: list[Sample], details: Details) -> None:
    """Checks what holds for every matrix that was measured."""
    assert samples[-1].moved_bytes > 0 and samples[-1].moved_bytes % details["request_bytes"] == 0
    assert details["hash_ok"] is True
    assert 0 < details["rtt_low_seconds"] <= details["rtt_seconds"]
    shapes = [(cell["request_bytes"], cell["depth"]) for cell in details["cells"]]
    assert shapes == sorted(set(shapes)) and shapes
    assert (details["request_bytes"], details["depth"]) in shapes
    best = max(details["cells"], key=lambda cell: cell["bytes_per_second"])
    assert (best["request_bytes"], best["depth"]) == (details["request_bytes"], details["depth"])
    for cell in details["cells"]:
        assert cell["in_flight_bytes"] == cell["request_bytes"] * cell["depth"] <= SIZE
        assert cell["bytes_per_second"] > 0 and cell["request_seconds_median"] > 0
    assert set(details["fit"]) == {
        "ceiling_bytes_per_second",
        "rtt_seconds",
        "worst_residual_ratio",
    }


@pytest.mark.parametrize(
    ("dialect", "security"),
    [("smb1", ""), ("2.0.2", "signed"), ("3.1.1", ""), ("3.1.1", "encrypted")],
)
def test_every_dialect_and_security_is_measured_both_ways_and_leaves_nothing(
    run_folder: Any, run_stage: Any, dialect: str, security: str
) -> None:
    with run_folder(source_bytes=SIZE) as (peer, folder, _):
        for verb in ("pull", "push"):
            one = setting(verb, dialect, security=security)
            samples, details = run_stage(smb_matrix, one, peer)
            check_matrix(samples, details)
            assert details["dialect"] == dialect
            assert (details["signing"] is not None) == (security == "signed")
            assert (details["encryption"] is not None) == (security == "encrypted")
            longest = max(cell["request_bytes"] for cell in details["cells"])
            assert longest <= {"smb1": 127 * KIB, "2.0.2": 64 * KIB}.get(dialect, 8 * MIB)
        assert [path.name for path in folder.rglob("*")] == ["bottleneck-0abc", "source-0abc"]
    assert list(folder.iterdir()) == []


def test_the_corners_come_first_and_nothing_is_beyond_what_server_and_file_allow() -> None:
    shapes = choose(8 * MIB, 1 << 30)
    assert shapes[:3] == [(64 * KIB, 1), (MIB, 1), (MIB, 8)]
    assert {size for size, _ in shapes} == {64 * KIB, 256 * KIB, MIB, 4 * MIB, 8 * MIB}
    assert {depth for size, depth in shapes if size == MIB} == {1, 2, 4, 8, 16, 32}
    assert max(size * depth for size, depth in shapes) == 64 * MIB
    assert len(set(shapes)) == len(shapes)
    assert max(size * depth for size, depth in choose(8 * MIB, 4 * MIB)) == 4 * MIB
    assert {size for size, _ in choose(64 * KIB, MIB)} == {4 * KIB, 16 * KIB, 60 * KIB, 64 * KIB}
    assert (127 * KIB, 1) in choose(127 * KIB, MIB) and (60 * KIB, 1) in choose(127 * KIB, MIB)


def test_a_server_with_few_credits_has_cells_of_what_it_grants(
    run_folder: Any, run_stage: Any
) -> None:
    with run_folder("smb2 max credits = 8", source_bytes=SIZE) as (peer, _, _):
        for verb in ("pull", "push"):
            check_matrix(*run_stage(smb_matrix, setting(verb), peer))


def test_a_server_that_takes_two_requests_at_once_has_no_deeper_cell(
    run_folder: Any, run_stage: Any
) -> None:
    with run_folder(NT1, "max mux = 2", source_bytes=SIZE) as (peer, _, _):
        samples, details = run_stage(smb_matrix, setting("pull", "smb1"), peer)
        check_matrix(samples, details)
        assert max(cell["depth"] for cell in details["cells"]) <= 2


@pytest.mark.long
def test_a_round_trip_bounds_what_is_in_flight(
    run_folder: Any, run_stage: Any, relay_to: Any
) -> None:
    """A delay that nothing undercuts: the RTT is no shorter, no cell beats in flight / RTT."""
    with run_folder(source_bytes=SIZE) as (peer, _, server):
        far = replace(peer, port=relay_to(server.port, 0.01))
        for verb in ("pull", "push"):
            samples, details = run_stage(smb_matrix, setting(verb, seconds=0.6), far)
            check_matrix(samples, details)
            assert details["rtt_low_seconds"] >= 0.02
            assert (64 * KIB, 1) in {
                (cell["request_bytes"], cell["depth"]) for cell in details["cells"]
            }
            for cell in details["cells"]:
                if cell["depth"] == 1:
                    assert cell["bytes_per_second"] <= cell["request_bytes"] / 0.02


def test_wrong_content_is_told(run_folder: Any, run_stage: Any) -> None:
    with run_folder(source_bytes=SIZE) as (peer, folder, _):
        file = folder / "bottleneck-0abc" / "source-0abc"
        file.write_bytes(file.read_bytes()[:64].ljust(SIZE, b"\0"))
        assert run_stage(smb_matrix, setting("pull"), peer)[1]["hash_ok"] is False
        running = smb_matrix.initiate(setting("push"), peer)
        for sample in running:
            if isinstance(sample, Last):
                break
        [pushed] = folder.glob("*/pushed-*")
        pushed.write_bytes(bytes(SIZE))
        with pytest.raises(StopIteration) as ended:
            next(running)
        assert ended.value.value["hash_ok"] is False


def open_window(setting: smb_matrix.Setting, peer: Endpoint) -> Any:
    """Returns a running matrix whose window has just opened."""
    running = smb_matrix.initiate(setting, peer)
    assert next(running) == Sample(0.0, 0)
    return running


@pytest.mark.parametrize("verb", ["pull", "push"])
def test_a_server_killed_in_mid_window_is_one_line_that_names_it(
    run_folder: Any, verb: str
) -> None:
    with run_folder("", source_bytes=SIZE) as (peer, folder, server):
        running = open_window(setting(verb), peer)
        for child in psutil.Process(server.process_id).children(recursive=True):
            child.kill()
        with pytest.raises(
            SmbError, match=rf"^//127\.0\.0\.1/share: smb-matrix {verb} failed: the "
        ):
            list(running)
    assert list(folder.iterdir()) == []


def test_a_server_that_takes_its_credits_back_is_no_rate(run_folder: Any, monkeypatch: Any) -> None:
    with run_folder(source_bytes=SIZE) as (peer, _, _):
        running = open_window(setting("pull"), peer)
        monkeypatch.setattr(Pipe2, "affords", lambda pipe, size: size // 2)
        with pytest.raises(SmbError, match="without credits for its requests"):
            list(running)


def test_a_source_that_is_too_short_is_told(run_folder: Any) -> None:
    with (
        run_folder(source_bytes=MIB) as (peer, _, _),
        pytest.raises(ValueError, match=f"has {MIB} bytes, {SIZE} are to be read"),
    ):
        open_window(setting("pull"), peer)


FLIGHTS = [size * depth for size in (1 << 16, 1 << 20, 1 << 22) for depth in (1, 2, 4, 8, 16)]


def planted_points(ceiling: float, rtt: float, noise: float = 0.0) -> list[tuple[float, float]]:
    dice = random.Random(7)
    return [
        (flight, min(ceiling, flight / rtt) * (1 + dice.uniform(-noise, noise)))
        for flight in FLIGHTS
    ]


@pytest.mark.parametrize(
    ("ceiling", "rtt"),
    [(1.18e7, 0.01), (1.18e7, 0.04)]
    + [(rate, rtt) for rate in (1.18e8, 1.18e9) for rtt in (0.002, 0.01, 0.04)],
)
@pytest.mark.parametrize("noise", [0.0, 0.04])
def test_a_planted_ceiling_and_rtt_are_found_within_5_percent(
    ceiling: float, rtt: float, noise: float
) -> None:
    fitted = fit(planted_points(ceiling, rtt, noise))
    assert fitted.ceiling_bytes_per_second == pytest.approx(ceiling, rel=0.05)
    assert fitted.rtt_seconds == pytest.approx(rtt, rel=0.05)
    assert fitted.worst_residual_ratio is not None
    assert fitted.worst_residual_ratio <= 2.5 * noise + 1e-9


def test_without_a_ceiling_in_reach_none_is_claimed() -> None:
    fitted = fit(planted_points(1e12, 0.01, 0.03))
    assert fitted.ceiling_bytes_per_second is None
    assert fitted.rtt_seconds == pytest.approx(0.01, rel=0.05)
    assert fitted.rate(1 << 20) == pytest.approx((1 << 20) / 0.01, rel=0.05)


def test_where_nothing_waits_for_round_trips_no_rtt_is_claimed() -> None:
    fitted = fit(planted_points(1e7, 1e-6, 0.03))
    assert fitted.rtt_seconds is None
    assert fitted.ceiling_bytes_per_second == pytest.approx(1e7, rel=0.05)
    assert fitted.rate(1) == fitted.rate(1 << 30) == fitted.ceiling_bytes_per_second


def test_the_order_of_the_points_does_not_matter() -> None:
    points = planted_points(1e8, 0.01, 0.05)
    assert fit(points) == fit(points[::-1])


@pytest.mark.parametrize("points", [[], [(65536, 1e6)], [(65536, 1e6), (65536, 1.1e6)]], ids=len)
def test_one_number_of_bytes_in_flight_tells_nothing(points: list[tuple[float, float]]) -> None:
    assert fit(points) == Fit(None, None, None)
    with pytest.raises(ValueError, match="empty"):
        fit(points).rate(1)


def test_the_worst_point_is_told() -> None:
    points = planted_points(1e8, 0.01)
    points[3] = (points[3][0], points[3][1] * 0.5)
    ratio = fit(points).worst_residual_ratio
    assert ratio is not None and 0.4 < ratio < 0.6
