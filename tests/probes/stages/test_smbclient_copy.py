"""A copy by smbclient is the copy that it says: whole, timed apart from the login, in its cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from probes.core.records import Details, Endpoint, Sample
from probes.core.stage import Refused
from probes.files import payload
from probes.programs import smbclient
from probes.programs.samba import private_samba
from probes.stages import smbclient_copy
from probes.stages.smbclient_copy import Setting

MIB = 1 << 20
SIZE = 24 * MIB
SEED = "5eed"
NAME = "pushed-0123456789abcdef-0123456789abcdef"
FOLDER = "bottleneck-0123456789abcdef"


@pytest.fixture
def share(tmp_path: Path) -> Callable[..., AbstractContextManager[tuple[Endpoint, Path]]]:
    """Serves a run's folder; the endpoint's path is a file of SIZE to be pushed."""
    shared = tmp_path / "shared"
    source = tmp_path / "to push"
    (shared / FOLDER).mkdir(parents=True)
    write_payload(source, SIZE)

    @contextmanager
    def serve(*options: str) -> Iterator[tuple[Endpoint, Path]]:
        with private_samba(shared, password="x %y", options=options) as server:
            yield replace(server.endpoint, folder=FOLDER, path=str(source)), shared / FOLDER

    return serve


def write_payload(path: Path, size: int) -> None:
    ring = payload.make_ring(bytes.fromhex(SEED))
    with path.open("wb") as file:
        for offset in range(0, size, MIB):
            file.write(payload.block(ring, offset, min(MIB, size - offset)))


@pytest.fixture
def run(run_stage: Any) -> Callable[[Setting, Endpoint], tuple[list[Sample], Details]]:
    return partial(run_stage, smbclient_copy)


def setting(copy: str, folder: Path, **changes: Any) -> Setting:
    plain = {"dialect": "3.1.1", "size_bytes": SIZE, "seconds": 60.0, "name": NAME, "seed": SEED}
    return Setting(copy=copy, folder=str(folder), **{**plain, **changes})


@pytest.mark.long
@pytest.mark.parametrize("cache", ["cached", "uncached"])
@pytest.mark.parametrize("dialect", ["2.1", "3.0.2", "3.1.1"])
def test_a_push_arrives_whole_and_tells_what_was_cached(
    run: Any, share: Any, tmp_path: Path, dialect: str, cache: str
) -> None:
    with share() as (peer, folder):
        samples, details = run(setting(f"push.{cache}", tmp_path, dialect=dialect), peer)
        assert (folder / NAME).read_bytes() == Path(peer.path).read_bytes()
    assert samples[-1].moved_bytes == SIZE
    assert details["flushed"] is False and details["flush_seconds"] is None
    assert details["cache"]["side"] == "server"
    assert details["cache"]["requested"] == cache
    assert details["dialect"] == dialect
    assert details["program"].startswith("smbclient 4.")


@pytest.mark.parametrize("cache", ["cached", "uncached"])
def test_a_pull_is_flushed_and_looked_at_whole(
    run: Any, share: Any, tmp_path: Path, cache: str
) -> None:
    with share() as (peer, folder):
        write_payload(folder / NAME, SIZE)
        samples, details = run(setting(f"pull.{cache}", tmp_path), peer)
    assert samples[-1].moved_bytes == SIZE
    assert details["hash_ok"] is True and details["flushed"] is True
    assert details["flush_seconds"] >= 0
    assert details["cache"] == {
        "side": "client",
        "requested": cache,
        "proven": False,
        "cached_ratio_before": None,
    }


def test_one_wrong_byte_is_found(run: Any, share: Any, tmp_path: Path) -> None:
    with share() as (peer, folder):
        write_payload(folder / NAME, SIZE)
        with (folder / NAME).open("r+b") as file:
            file.seek(SIZE // 2 + 4711)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        _, details = run(setting("pull.cached", tmp_path), peer)
    assert details["hash_ok"] is False


@pytest.mark.parametrize(
    ("options", "agreed", "key", "name"),
    [
        (["server signing = mandatory"], {"signing": "aes-gmac"}, "signing", "aes-gmac"),
        (["smb encrypt = required"], {"encryption": "aes-128-ccm"}, "encryption", "aes-128-ccm"),
    ],
)
def test_what_the_share_demands_is_named(
    run: Any,
    share: Any,
    tmp_path: Path,
    options: list[str],
    agreed: dict[str, str],
    key: str,
    name: str,
) -> None:
    with share(*options) as (peer, folder):
        _, details = run(setting("push.cached", tmp_path, **agreed), peer)
        assert (folder / NAME).stat().st_size == SIZE
    assert details[key] == name


def test_a_deadline_ends_it_with_the_bytes_until_then(
    run: Any, share: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smbclient_copy, "SAMPLE_SECONDS", 0.0)
    with (
        share() as (peer, _),
        pytest.raises(TimeoutError, match=rf"push.cached failed after \d+ of {SIZE} bytes"),
    ):
        run(setting("push.cached", tmp_path, seconds=0.0), peer)


def test_a_file_of_another_size_is_not_pushed(run: Any, share: Any, tmp_path: Path) -> None:
    """smbclient sends whole files: a rate of another size would be wrong."""
    with share() as (peer, folder), pytest.raises(ValueError, match="to go"):
        run(setting("push.cached", tmp_path, size_bytes=SIZE - 1), peer)
    assert list(folder.iterdir()) == []


def test_a_file_of_another_size_is_not_taken_for_ours(run: Any, share: Any, tmp_path: Path) -> None:
    with share() as (peer, folder):
        write_payload(folder / NAME, MIB)
        with pytest.raises(ConnectionError, match=f"{MIB} of {SIZE} bytes arrived here"):
            run(setting("pull.cached", tmp_path), peer)


def test_a_file_that_is_not_there_is_named(run: Any, share: Any, tmp_path: Path) -> None:
    with (
        share() as (peer, _),
        pytest.raises(ConnectionError, match=r"pull.cached failed after 0 .*NAME_NOT_FOUND"),
    ):
        run(setting("pull.cached", tmp_path), peer)


def test_a_share_that_takes_nothing_says_so(run: Any, share: Any, tmp_path: Path) -> None:
    with share("read only = yes") as (peer, folder):
        folder.chmod(0o500)
        nowhere = replace(peer, folder="nothing-here")
        with pytest.raises((ConnectionError, Refused), match="NT_STATUS_OBJECT_PATH_NOT_FOUND"):
            run(setting("push.cached", tmp_path), nowhere)


def test_samples_never_say_more_than_was_acknowledged(tmp_path: Path) -> None:
    """Bytes that smbclient has read but may still have under way do not count."""
    path = tmp_path / "file"
    write_payload(path, 20 * MIB)
    fd = os.open(path, os.O_RDONLY)
    try:
        os.lseek(fd, 20 * MIB, os.SEEK_SET)
        sent = smbclient_copy._sent_bytes(os.getpid(), fd)
        assert sent == 20 * MIB - smbclient.IN_FLIGHT_BYTES
        assert smbclient_copy._sent_bytes(0, fd) == 0
    finally:
        os.close(fd)
