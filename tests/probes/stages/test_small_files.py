"""Small files on real servers: each with its own content, none left, whatever happens."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probes.core.stage import Last
from probes.files import payload
from probes.smb.frames import SmbError
from probes.stages import small_files
from tests import living

KIB = 1024
SEED = "00ff11"
RING = payload.make_ring(bytes.fromhex(SEED))


def setting(verb: str, dialect: str = "3.1.1", **changes: Any) -> small_files.Setting:
    fields = {"files": 40, "file_bytes": 16 * KIB, "seconds": 20.0, "seed": SEED, **changes}
    return small_files.Setting(verb=verb, dialect=dialect, **fields)


def small(folder: Path) -> list[Path]:
    """Returns the small files on the share, in their order."""
    paths = folder.glob("bottleneck-*/small-*")
    return sorted(paths, key=lambda path: int(path.name.split("-")[1]))


@pytest.mark.parametrize(
    ("dialect", "security"),
    [("smb1", ""), ("2.0.2", ""), ("2.1", "signed"), ("3.1.1", ""), ("3.1.1", "encrypted")],
)
def test_every_dialect_and_security_is_measured_both_ways_and_leaves_nothing(
    run_folder: Any, run_stage: Any, dialect: str, security: str
) -> None:
    with run_folder() as (peer, folder, _):
        for verb in small_files.VERBS:
            one = setting(verb, dialect, security=security)
            samples, details = run_stage(small_files, one, peer)
            assert samples[-1].moved_bytes == 40 * 16 * KIB
            assert details["files"] == 40 and details["round_trips_per_file"] == 3
            assert details["hash_ok"] is True
            assert details["dialect"] == dialect
            assert (details["signing"] is not None) == (security == "signed")
            assert (details["encryption"] is not None) == (security == "encrypted")
            low, median, high = (details[f"seconds_per_file{end}"] for end in ("_low", "", "_high"))
            assert 0 < low <= median <= high
            assert details["rtt_seconds"] > 0
            assert small(folder) == []
        assert [path.name for path in folder.rglob("*")] == ["bottleneck-0abc", "source-0abc"]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("verb", small_files.VERBS)
@pytest.mark.parametrize("dialect", ["smb1", "3.1.1"])
def test_each_file_has_its_own_content_on_the_servers_disk(
    run_folder: Any, verb: str, dialect: str
) -> None:
    size = 5000
    with run_folder() as (peer, folder, _):
        for sample in small_files.initiate(setting(verb, dialect, file_bytes=size), peer):
            if isinstance(sample, Last):
                there = small(folder)
                assert len(there) == 40
                for number, path in enumerate(there):
                    assert path.read_bytes() == payload.block(RING, number * size, size)
                assert len({path.read_bytes() for path in there}) == 40
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("size", [1, 100 * KIB, 3 * 1024 * KIB + 1])
def test_files_of_any_size_are_copied_whole(run_folder: Any, run_stage: Any, size: int) -> None:
    with run_folder() as (peer, _, _):
        for verb in small_files.VERBS:
            for dialect in ("smb1", "3.1.1"):
                one = setting(verb, dialect, file_bytes=size, files=4)
                details = run_stage(small_files, one, peer)[1]
                assert details["hash_ok"] is True and details["files"] == 4


@pytest.mark.long
@pytest.mark.parametrize("verb", small_files.VERBS)
def test_each_round_trip_of_a_file_costs_the_paths_delay(
    run_folder: Any, run_stage: Any, relay_to: Any, verb: str
) -> None:
    """A delay that nothing undercuts: three round trips a file are three times the RTT at least."""
    with run_folder() as (peer, _, server):
        far = replace(peer, port=relay_to(server.port, 0.005))
        details = run_stage(small_files, setting(verb, files=8), far)[1]
        assert details["rtt_seconds"] >= 0.01
        assert details["seconds_per_file_low"] >= 0.03


def test_the_time_bounds_the_number_of_files(
    run_folder: Any, run_stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = living.FakeClock(living.deadline_in(0.0), step=0.005)
    monkeypatch.setattr(small_files, "time", clock)
    with run_folder() as (peer, _, _):
        for verb in small_files.VERBS:
            one = setting(verb, files=100_000, seconds=0.3)
            samples, details = run_stage(small_files, one, peer)
            assert 3 <= details["files"] < 100_000
            assert samples[-1].moved_bytes == details["files"] * 16 * KIB


@pytest.mark.parametrize("dialect", ["smb1", "3.1.1"])
def test_wrong_content_is_told(run_folder: Any, dialect: str) -> None:
    with run_folder() as (peer, folder, _):
        for verb, moment in (("push", 1), ("pull", 0)):
            running = small_files.initiate(setting(verb, dialect, seconds=60.0), peer)
            samples = [next(running)]
            while moment and not isinstance(samples[-1], Last):
                samples.append(next(running))
            with small(folder)[17].open("r+b") as file:
                file.write(b"not what was sent")
            with pytest.raises(StopIteration) as ended:
                while True:
                    next(running)
            assert ended.value.value["hash_ok"] is False


def test_a_file_that_changed_its_size_is_told(run_folder: Any) -> None:
    with run_folder() as (peer, folder, _):
        running = small_files.initiate(setting("pull"), peer)
        next(running)
        os.truncate(small(folder)[3], 99)
        line = r"^//127\.0\.0\.1/share: small-files pull failed: a file of 16384 bytes has 99"
        with pytest.raises(SmbError, match=line):
            list(running)


@pytest.mark.parametrize("dialect", ["smb1", "3.1.1"])
@pytest.mark.parametrize("verb", small_files.VERBS)
def test_kill_9_leaves_nothing(run_folder: Any, verb: str, dialect: str) -> None:
    with run_folder() as (peer, folder, _):
        child = os.fork()
        if child == 0:
            one = setting(verb, dialect, files=100_000, seconds=60.0)
            for _ in small_files.initiate(one, peer):
                pass
        assert living.until(lambda: len(small(folder)) >= 10)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert living.until(lambda: small(folder) == [])
