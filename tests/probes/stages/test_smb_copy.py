"""Real copies to and from real servers: every dialect and protection, and every way to break."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import psutil
import pytest

from probes.core.records import Access, Details, Endpoint, Sample
from probes.core.stage import Last, Refused, Unavailable
from probes.files import payload
from probes.smb.copy_length import CopyLength
from probes.smb.frames import DeadlinePassed, SmbError
from probes.stages import smb_copy
from tests import living

MIB = 1024 * 1024
Run = Callable[[smb_copy.Setting, Endpoint], tuple[list[Sample], Details]]
SIZE = 3 * MIB + 12_345
SEED = "00ff11"


def setting(copy: str, dialect: str = "3.1.1", **changes: Any) -> smb_copy.Setting:
    fields = {"end": "memory", "size_bytes": SIZE, "seconds": 60.0, "seed": SEED, **changes}
    return smb_copy.Setting(copy=copy, dialect=dialect, **fields)


@pytest.fixture
def run(run_stage: Any) -> Run:
    return partial(run_stage, smb_copy)


@pytest.fixture
def run_and_check(run: Run) -> Callable[[smb_copy.Setting, Endpoint], Details]:
    """The details of one copy whose samples are as they should be."""

    def check(setting: smb_copy.Setting, peer: Endpoint) -> Details:
        samples, details = run(setting, peer)
        assert samples[-1].moved_bytes == setting.size_bytes
        assert details["hash_ok"] is True
        assert details["dialect"] == setting.dialect
        assert 0 < details["in_flight_bytes"] <= details["request_bytes"] * details["depth"]
        _check_trace(details["trace"])
        return details

    return check


def _check_trace(trace: Details) -> None:
    """Checks that no bin waits longer than it lasts and no reply ends before it begins."""
    kinds, bins = len(trace["kinds"]), trace["bins"]
    for earlier, later in zip(bins, bins[1:], strict=False):
        lasted = later[0] - earlier[0]
        assert 0 <= sum(later[1 : 1 + kinds]) <= lasted + 1e-5
        assert later[-2] >= earlier[-2] and later[-1] >= earlier[-1]
    verbs = {each[0] for each in trace["requests"]}
    assert verbs & {"read", "write"}
    for _, sent, first, last, _, _ in trace["requests"]:
        assert sent <= first <= last <= bins[-1][0]


def test_a_push_that_cannot_be_read_back_says_that_nobody_compared_it(
    run: Run, run_folder: Any
) -> None:
    with run_folder() as (peer, _, _):
        details = run(setting("push.cached", checked=False), peer)[1]
    assert (details["hash_ok"], details["checked_bytes"]) == (None, 0)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(payload.block(payload.make_ring(bytes.fromhex(SEED)), 0, SIZE))
    return path


@pytest.mark.long
@pytest.mark.parametrize("dialect", ["smb1", "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"])
def test_every_copy_arrives_intact_in_every_dialect(
    run_and_check: Any, run_folder: Any, dialect: str, tmp_path: Path, source: Path
) -> None:
    with run_folder() as (peer, folder, _):
        run_and_check(setting("push.cached", dialect, fill_source=True), peer)
        assert (folder / "bottleneck-0abc" / "source-0abc").read_bytes() == source.read_bytes()
        run_and_check(setting("pull.cached", dialect), peer)
        run_and_check(setting("pull.uncached", dialect, end="folder", folder=str(tmp_path)), peer)
        peer_with_source = replace(peer, path=str(source))
        pushed = run_and_check(setting("push.cached", dialect, end="folder"), peer_with_source)
        assert pushed["flushes"] >= 1
        assert sorted(path.name for path in folder.rglob("*")) == ["bottleneck-0abc", "source-0abc"]
    assert list(folder.iterdir()) == []
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("dialect", ["smb1", "3.1.1"])
def test_a_copy_for_a_time_starts_its_source_again_or_stops_within(
    run: Run, run_folder: Any, dialect: str, tmp_path: Path, source: Path, monkeypatch: Any
) -> None:
    common = {"end": "folder", "folder": str(tmp_path)}
    with run_folder() as (peer, folder, _):
        run(setting("push.cached", dialect, fill_source=True), peer)
        pulled = setting("pull.cached", dialect, most_seconds=0.5, lasting=True, **common)
        options = {"most_seconds": 0.3, "request_bytes": 4096, "depth": 2}
        pushed = setting("push.cached", dialect, **common, **options)
        peer_with_source = replace(peer, path=str(source))
        moved_bytes = []
        for copying, there in (pulled, peer), (pushed, peer_with_source):
            with monkeypatch.context() as slower:
                clock = living.FakeClock(living.deadline_in(0.0), step=0.001)
                slower.setattr(smb_copy, "time", clock)
                samples, details = run(copying, there)
            moved_bytes.append(samples[-1].moved_bytes)
            assert details["hash_ok"] is True
        assert 0 < moved_bytes[1] < SIZE < moved_bytes[0]
        source.write_bytes(payload.block(payload.make_ring(bytes.fromhex(SEED)), 0, 5 * MIB))
        for copy, there in ("push.cached", peer_with_source), ("pull.cached", peer):
            twice = {"size_bytes": 2 * SIZE, "source_bytes": SIZE, **common}
            samples, details = run(setting(copy, dialect, **twice), there)
            assert (samples[-1].moved_bytes, details["hash_ok"]) == (2 * SIZE, True)
        assert sorted(path.name for path in folder.rglob("*")) == ["bottleneck-0abc", "source-0abc"]
    assert list(tmp_path.iterdir()) == [source]


def test_a_repeated_file_is_read_whole_and_not_for_ever() -> None:
    endless = CopyLength(60.0)
    parts = list(smb_copy._until_over(repeat((0, 25), 3), 10, endless))
    assert parts == 3 * [(0, 10), (10, 20), (20, 25)]
    over = CopyLength(1.0)
    over.look(2.0, 25)
    assert list(smb_copy._until_over(repeat((0, 25), 3), 100, over)) == [(0, 25)]


@pytest.mark.parametrize("end", ["folder", "memory"])
def test_the_details_say_what_the_contract_asks(
    run_and_check: Any, run_folder: Any, source: Path, end: str
) -> None:
    with run_folder() as (peer, _, _):
        details = run_and_check(
            setting("push.cached", end=end, fill_source=True), replace(peer, path=str(source))
        )
        assert details["cache"] == {
            "side": "client",
            "requested": "cached",
            "proven": True,
            "cached_ratio_before": 1.0,
        }
        assert details["requests"] == 4 and details["request_bytes"] == MIB
        assert details["acknowledged_bytes_per_second"] > 0
        assert details["user_seconds"] >= 0 and details["system_seconds"] >= 0
        assert details["flush_seconds"] > 0 and details["request_seconds_median"] > 0
        for key in ("credit_stalls", "pending_replies", "short_replies"):
            assert details[key] >= 0
        pulled = run_and_check(setting("pull.uncached"), peer)
        assert pulled["cache"] == {
            "side": "server",
            "requested": "uncached",
            "proven": False,
            "cached_ratio_before": None,
        }


@pytest.mark.parametrize(
    ("options", "request_bytes", "depths"),
    [
        # what few credits pay for is shared out over many short requests
        (["smb2 max credits = 40"], 4 * 65536, (8, 4)),
        (["smb2 max credits = 3"], 65536, (8, 4)),
        (["smb2 max read = 65536", "smb2 max write = 65536"], 65536, (32, 32)),
    ],
)
def test_copies_work_with_few_credits_and_short_requests(
    run_and_check: Any,
    run_folder: Any,
    options: list[str],
    request_bytes: int,
    depths: tuple[int, int],
) -> None:
    with run_folder(*options) as (peer, _, _):
        for copy, depth in zip(("push.cached", "pull.cached"), depths, strict=True):
            changes: Any = {"fill_source": copy == "push.cached", "size_bytes": 24 * MIB}
            details = run_and_check(setting(copy, **changes), peer)
            assert details["request_bytes"] == request_bytes
            assert details["depth"] >= depth  # more where the machine answers its ECHOs late
            assert (details["credit_stalls"] > 0) == ("credits" in options[0])


def test_request_size_and_depth_can_be_chosen(run_and_check: Any, run_folder: Any) -> None:
    with run_folder() as (peer, _, _):
        for dialect in ("3.1.1", "smb1"):
            details = run_and_check(
                setting("push.cached", dialect, request_bytes=8192, depth=2), peer
            )
            assert (details["request_bytes"], details["depth"]) == (8192, 2)
            assert details["in_flight_bytes"] <= 16384


@pytest.mark.parametrize("size", [1, 4096, 65536, MIB + 1])
def test_files_of_any_size_are_copied_whole(
    run_and_check: Any, run_folder: Any, size: int, tmp_path: Path
) -> None:
    with run_folder() as (peer, _, _):
        options: Any = {"size_bytes": size, "end": "folder", "folder": str(tmp_path)}
        run_and_check(setting("push.cached", size_bytes=size, fill_source=True), peer)
        run_and_check(setting("pull.cached", **options), peer)


@pytest.mark.parametrize("end", ["folder", "memory"])
@pytest.mark.parametrize("dialect", ["3.1.1", "smb1"])
def test_wrong_content_is_told(
    run: Run, run_folder: Any, dialect: str, end: str, tmp_path: Path
) -> None:
    with run_folder() as (peer, folder, _):
        run(setting("push.cached", fill_source=True), peer)
        file = folder / "bottleneck-0abc" / "source-0abc"
        file.write_bytes(file.read_bytes()[:64].ljust(SIZE, b"\0"))
        details = run(setting("pull.cached", dialect, end=end, folder=str(tmp_path)), peer)[1]
        assert details["hash_ok"] is False
        lying = tmp_path / "lying"
        lying.write_bytes(bytes(SIZE))
        pushed = setting("push.cached", dialect, end="folder")
        assert run(pushed, replace(peer, path=str(lying)))[1]["hash_ok"] is False


@pytest.mark.long
@pytest.mark.parametrize("dialect", ["3.1.1", "smb1"])
@pytest.mark.parametrize("copy", ["push.cached", "pull.cached"])
def test_a_server_killed_in_mid_copy_is_one_line_with_how_far_it_came(
    run: Run, run_folder: Any, dialect: str, copy: str
) -> None:
    with run_folder("server min protocol = NT1") as (peer, folder, server):
        if copy == "pull.cached":
            run(setting("push.cached", size_bytes=64 * MIB, fill_source=True), peer)
            os.truncate(folder / "bottleneck-0abc" / "source-0abc", 64 << 30)
        running = smb_copy.initiate(setting(copy, dialect, size_bytes=32 << 30), peer)
        for _ in range(3):
            assert not isinstance(next(running), Last)
        for child in psutil.Process(server.process_id).children(recursive=True):
            child.kill()
        line = rf"^//127\.0\.0\.1/share: {copy} failed after \d+ of \d+ bytes: the "
        with pytest.raises(SmbError, match=line):
            list(running)
    assert list(folder.iterdir()) == []


@pytest.mark.long
def test_a_server_that_stalls_ends_at_the_deadline(run_folder: Any) -> None:
    with run_folder("server min protocol = NT1") as (peer, _, server):
        running = smb_copy.initiate(setting("push.cached", size_bytes=32 << 30, seconds=2), peer)
        for _ in range(3):
            next(running)
        children = psutil.Process(server.process_id).children(recursive=True)
        try:
            for child in children:
                child.send_signal(signal.SIGSTOP)
            with pytest.raises(DeadlinePassed, match=r"failed after \d+ of"):
                list(running)
        finally:
            for child in children:
                with suppress(psutil.NoSuchProcess):
                    child.send_signal(signal.SIGCONT)


def test_a_copy_ends_at_its_deadline_and_leaves_nothing(run: Run, run_folder: Any) -> None:
    with run_folder() as (peer, folder, _):
        with pytest.raises(DeadlinePassed, match=r"it ran out of time \(0\.3 s\)"):
            run(setting("push.cached", size_bytes=32 << 30, seconds=0.3), peer)
        assert peer.folder
    assert living.until(lambda: list(folder.iterdir()) == [])


def test_a_copy_that_is_given_up_leaves_nothing(run_folder: Any) -> None:
    threads = threading.active_count()
    with run_folder() as (peer, folder, _):
        running = smb_copy.initiate(setting("push.cached", size_bytes=32 << 30), peer)
        next(running), next(running)
        running.close()
    assert living.until(lambda: list(folder.iterdir()) == [])
    assert living.until(lambda: threading.active_count() <= threads)


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: mounting a small file system needs root")
@pytest.mark.parametrize("dialect", ["3.1.1", "smb1"])
def test_a_full_disk_on_either_side_is_the_users_to_mend(
    run: Run, run_folder: Any, dialect: str, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", small], check=True)
    try:
        with run_folder(folder=small) as (peer, _, _):
            with pytest.raises(Refused, match="disk is full") as caught:
                run(setting("push.cached", dialect, size_bytes=20 * MIB), peer)
            assert caught.value.kind == "space"
            run(setting("push.cached", size_bytes=9 * MIB, fill_source=True), peer)
            into: Any = {"end": "folder", "folder": str(small), "size_bytes": 9 * MIB}
            with pytest.raises(Refused, match="free space") as caught:
                run(setting("pull.cached", dialect, **into), peer)
            assert caught.value.kind == "space"
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_dialect_that_the_login_is_refused_in_does_not_end_the_run(
    run: Run, run_folder: Any
) -> None:
    with run_folder("server min protocol = NT1", "server smb encrypt = required") as (peer, _, _):
        for dialect in ("2.1", "smb1"):
            with pytest.raises(Unavailable, match=rf"^not over {dialect}, although over 3\.1\.1"):
                run(setting("push.cached", dialect), peer)
    with run_folder("server min protocol = SMB2_02") as (peer, _, _), pytest.raises(Unavailable):
        run(setting("push.cached", "smb1"), peer)


def test_settings_that_make_no_sense_are_refused(run: Run, run_folder: Any, source: Path) -> None:
    with run_folder() as (peer, _, _):
        with pytest.raises(ValueError, match="has 64 bytes"):
            run(setting("pull.cached"), peer)
        larger = setting("push.cached", end="folder", size_bytes=SIZE + 1)
        with pytest.raises(ValueError, match="are to be pushed"):
            run(larger, replace(peer, path=str(source)))
        with pytest.raises(Refused, match="not found"):
            run(setting("pull.cached", end="folder", folder="/no/such"), peer)


def test_a_pull_past_the_servers_cache_reads_the_runs_own_file(
    run_and_check: Any, run_folder: Any, tmp_path: Path
) -> None:
    with run_folder(source_bytes=2 * MIB) as (peer, _, _):
        options = {"folder": str(tmp_path), "past_cache": True, "size_bytes": 2 * MIB}
        details = run_and_check(setting("pull.uncached", end="folder", **options), peer)
    assert details["cache"]["proven"] is False


def test_the_stage_and_its_pipes_load_no_smb_library_until_they_are_used(run: Run) -> None:
    code = (
        "import sys, probes.stages.smb_copy, probes.smb.run_folder\n"
        "import probes.smb.pipe1, probes.smb.pipe2\n"
        "loaded = {'smbprotocol', 'impacket', 'cryptography', 'spnego'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "probes.stages.smb_copy.preload()\n"
        "assert 'smbprotocol' in sys.modules and 'impacket' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])


@pytest.mark.long
def test_a_copy_of_1_gib_takes_less_than_100_mib_of_memory(run: Run, run_folder: Any) -> None:
    with run_folder() as (peer, _, _):
        code = (
            "import json, re, sys\n"
            "from probes.stages import smb_copy\n"
            "from probes.core.records import Access, Endpoint\n"
            "host, port, share, user, password, folder = json.load(sys.stdin)\n"
            "peer = Endpoint(host=host, port=port, share=share, folder=folder,\n"
            "                access=Access(user, password))\n"
            "setting = smb_copy.Setting('push.cached', '3.1.1', 'memory', 1 << 30, 60.0)\n"
            "for sample in smb_copy.initiate(setting, peer): pass\n"
            "print(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1])\n"
        )
        access = peer.access or Access()
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(
                [peer.host, peer.port, peer.share, access.username, access.password, peer.folder]
            ),
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[3],
        )
    assert int(done.stdout) < 100 * 1024


def test_a_file_of_the_users_is_pulled_and_stays_as_it_was(
    run: Run, run_folder: Any, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    with run_folder("server min protocol = NT1") as (peer, folder, _):
        (folder / "films").mkdir()
        film = folder / "films" / "a film.mkv"
        film.write_bytes(os.urandom(SIZE))
        film.chmod(0o644)
        state = (film.read_bytes(), film.stat().st_mtime_ns)
        copying = setting(
            "file.pull.uncached",
            end="folder",
            size_bytes=2 * SIZE,
            folder=str(mine),
            file="films\\a film.mkv",
            most_seconds=60.0,
        )
        samples, details = run(copying, peer)
        assert samples[-1].moved_bytes == details["file_bytes"] == SIZE
        assert "hash_ok" not in details  # nobody here knows what it should hold
        assert (film.read_bytes(), film.stat().st_mtime_ns) == state
    assert list(mine.iterdir()) == [] and film.exists()


def test_no_more_of_the_users_file_is_asked_for_when_the_time_is_over(
    run: Run, run_folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 24 << 20
    with run_folder("server min protocol = NT1") as (peer, folder, _):
        (folder / "film").write_bytes(bytes(size))
        options = {"folder": str(tmp_path), "file": "film", "request_bytes": 4096, "depth": 2}
        copying = setting(
            "file.pull.cached", end="folder", size_bytes=1 << 30, most_seconds=0.3, **options
        )
        clock = living.FakeClock(living.deadline_in(0.0), step=0.001)
        monkeypatch.setattr(smb_copy, "time", clock)
        samples, _ = run(copying, peer)
        assert 0 < samples[-1].moved_bytes < size


@pytest.mark.parametrize(("size", "error"), [(None, Refused), (1000, Unavailable)])
def test_a_file_of_the_users_that_is_not_there_or_tiny_is_told(
    run: Run, run_folder: Any, tmp_path: Path, size: int | None, error: type[Exception]
) -> None:
    with run_folder("server min protocol = NT1") as (peer, folder, _):
        if size is not None:
            (folder / "film").write_bytes(bytes(size))
        copying = setting("file.pull.cached", end="folder", folder=str(tmp_path), file="film")
        with pytest.raises(error, match="film"):
            run(copying, peer)
