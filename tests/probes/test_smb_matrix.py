"""Request size x depth against real servers: what was granted, what was measured, how it ends."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Any

import psutil
import pytest

from probes import smb_matrix
from probes.records import Details, Endpoint, Sample
from probes.smb.frames import Broken
from probes.smb.pipe2 import Pipe2
from probes.smb_matrix import KIB, MIB, wanted
from probes.stage import Last

SIZE = 16 * MIB
SEED = "00ff11"
NT1 = "server min protocol = NT1"


def setting(verb: str, dialect: str = "3.1.1", **more: Any) -> smb_matrix.Setting:
    told = {"size_bytes": SIZE, "seconds": 0.3, "seed": SEED, **more}
    return smb_matrix.Setting(verb=verb, dialect=dialect, **told)


def look(samples: list[Sample], details: Details) -> None:
    """What holds for every matrix that was measured."""
    assert samples[0] == Sample(0.0, 0) and isinstance(samples[-1], Last)
    assert samples[-1].moved_bytes > 0 and samples[-1].moved_bytes % details["request_bytes"] == 0
    assert [s.elapsed_seconds for s in samples] == sorted(s.elapsed_seconds for s in samples)
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
    [
        ("smb1", ""),
        ("2.0.2", "signed"),
        ("3.1.1", ""),
        ("3.1.1", "encrypted"),
    ],
)
def test_every_dialect_and_security_is_measured_both_ways_and_leaves_nothing(
    run_folder: Any, run_stage: Any, dialect: str, security: str
) -> None:
    with run_folder(source_bytes=SIZE) as (peer, folder, _):
        for verb in ("pull", "push"):
            asked = setting(verb, dialect, security=security)
            samples, details = run_stage(smb_matrix, asked, peer)
            look(samples, details)
            assert details["dialect"] == dialect
            assert (details["signing"] is not None) == (security == "signed")
            assert (details["encryption"] is not None) == (security == "encrypted")
            longest = max(cell["request_bytes"] for cell in details["cells"])
            assert longest <= {"smb1": 127 * KIB, "2.0.2": 64 * KIB}.get(dialect, 8 * MIB)
        assert [path.name for path in folder.rglob("*")] == ["bottleneck-0abc", "source"]
    assert list(folder.iterdir()) == []


def test_the_corners_come_first_and_nothing_is_beyond_what_server_and_file_allow() -> None:
    shapes = wanted(8 * MIB, 1 << 30)
    assert shapes[:3] == [(64 * KIB, 1), (MIB, 1), (MIB, 8)]
    assert {size for size, _ in shapes} == {64 * KIB, 256 * KIB, MIB, 4 * MIB, 8 * MIB}
    assert {depth for size, depth in shapes if size == MIB} == {1, 2, 4, 8, 16, 32}
    assert max(size * depth for size, depth in shapes) == 64 * MIB
    assert len(set(shapes)) == len(shapes)
    assert max(size * depth for size, depth in wanted(8 * MIB, 4 * MIB)) == 4 * MIB
    assert {size for size, _ in wanted(64 * KIB, MIB)} == {4 * KIB, 16 * KIB, 60 * KIB, 64 * KIB}
    assert (127 * KIB, 1) in wanted(127 * KIB, MIB) and (60 * KIB, 1) in wanted(127 * KIB, MIB)


def test_a_server_with_few_credits_has_cells_of_what_it_grants(
    run_folder: Any, run_stage: Any
) -> None:
    with run_folder("smb2 max credits = 8", source_bytes=SIZE) as (peer, _, _):
        for verb in ("pull", "push"):
            look(*run_stage(smb_matrix, setting(verb), peer))


def test_a_server_that_takes_two_requests_at_once_has_no_deeper_cell(
    run_folder: Any, run_stage: Any
) -> None:
    with run_folder(NT1, "max mux = 2", source_bytes=SIZE) as (peer, _, _):
        samples, details = run_stage(smb_matrix, setting("pull", "smb1"), peer)
        look(samples, details)
        assert max(cell["depth"] for cell in details["cells"]) <= 2


@pytest.mark.long
def test_a_round_trip_bounds_what_is_in_flight(
    run_folder: Any, run_stage: Any, delayed: Any
) -> None:
    """A delay that nothing undercuts: the RTT is no shorter, no cell beats in flight / RTT."""
    with run_folder(source_bytes=SIZE) as (peer, _, server):
        far = replace(peer, port=delayed(server.port, 0.01))
        for verb in ("pull", "push"):
            samples, details = run_stage(smb_matrix, setting(verb, seconds=0.6), far)
            look(samples, details)
            assert details["rtt_low_seconds"] >= 0.02
            assert (64 * KIB, 1) in {
                (cell["request_bytes"], cell["depth"]) for cell in details["cells"]
            }
            for cell in details["cells"]:
                if cell["depth"] == 1:
                    assert cell["bytes_per_second"] <= cell["request_bytes"] / 0.02


def test_wrong_content_is_told(run_folder: Any, run_stage: Any) -> None:
    with run_folder(source_bytes=SIZE) as (peer, folder, _):
        (folder / "bottleneck-0abc" / "source").write_bytes(bytes(SIZE))
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


def paused(wanted: smb_matrix.Setting, peer: Endpoint) -> Any:
    """A matrix whose window has just opened."""
    running = smb_matrix.initiate(wanted, peer)
    assert next(running) == Sample(0.0, 0)
    return running


@pytest.mark.parametrize("verb", ["pull", "push"])
def test_a_server_killed_in_mid_window_is_one_line_that_names_it(
    run_folder: Any, verb: str
) -> None:
    with run_folder("", source_bytes=SIZE) as (peer, folder, server):
        running = paused(setting(verb), peer)
        for child in psutil.Process(server.process_id).children(recursive=True):
            child.kill()
        with pytest.raises(Broken, match=rf"^//127\.0\.0\.1/share: smb-matrix {verb} broke: the "):
            list(running)
    assert list(folder.iterdir()) == []


def test_a_server_that_takes_its_credits_back_is_no_rate(run_folder: Any, monkeypatch: Any) -> None:
    with run_folder(source_bytes=SIZE) as (peer, _, _):
        running = paused(setting("pull"), peer)
        monkeypatch.setattr(Pipe2, "affords", lambda pipe, size: size // 2)
        with pytest.raises(Broken, match="without credits for its requests"):
            list(running)


def test_kill_9_in_mid_window_leaves_nothing(run_folder: Any, becomes: Any) -> None:
    with run_folder() as (peer, folder, _):
        child = os.fork()
        if child == 0:
            running = paused(setting("push", seconds=60.0, size_bytes=MIB), peer)
            while True:
                next(running)
        assert becomes(lambda: any(folder.glob("*/pushed-*")), 20)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert becomes(lambda: not any(folder.glob("*/pushed-*")), 10)


@pytest.mark.parametrize(
    "wrong", [{"verb": "sideways"}, {"size_bytes": 0}, {"seconds": 0.0}], ids=str
)
def test_a_setting_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no such matrix"):
        next(smb_matrix.initiate(replace(setting("pull"), **wrong), Endpoint()))


def test_a_source_that_is_too_short_is_told(run_folder: Any) -> None:
    with (
        run_folder(source_bytes=MIB) as (peer, _, _),
        pytest.raises(ValueError, match=f"has {MIB} bytes, {SIZE} are to be read"),
    ):
        paused(setting("pull"), peer)
