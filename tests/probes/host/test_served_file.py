"""What a host does with a run's file on its share: flush, resize, compare; and nothing else's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from probes.host import payload, served_file

SEED = "5eed"
NAME = "pushed-0123456789abcdef"
MIB = 1 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "bottleneck-0123456789abcdef"
    made.mkdir()
    return made


def content(size: int) -> bytes:
    return bytes(payload.block(payload.ring(bytes.fromhex(SEED)), 0, size))


def test_a_new_file_is_made_of_the_payload(folder: Path) -> None:
    made = served_file.resize(str(folder), NAME, 5 * MIB, SEED, 30.0, create=True)
    assert made == 5 * MIB
    assert (folder / NAME).read_bytes() == content(5 * MIB)
    assert served_file.intact(str(folder), NAME, 5 * MIB, SEED)


@pytest.mark.parametrize("size", [0, 1, 3 * MIB, 3 * MIB + 1, 7 * MIB + 5])
def test_what_is_there_stays_and_is_cut_or_continued(folder: Path, size: int) -> None:
    (folder / NAME).write_bytes(content(3 * MIB))
    assert served_file.resize(str(folder), NAME, size, SEED, 30.0) == size
    assert (folder / NAME).read_bytes() == content(size)


def test_continuing_ends_with_its_time(folder: Path) -> None:
    """Whole steps of 4 MiB: at least one, and what is told is there."""
    made = served_file.resize(str(folder), NAME, 64 * MIB, SEED, 0.0, create=True)
    assert made == (folder / NAME).stat().st_size == 4 * MIB


def test_a_file_that_is_not_there_is_only_made_where_that_is_wanted(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        served_file.resize(str(folder), NAME, MIB, SEED, 30.0)


@pytest.mark.parametrize("at", [0, MIB, 5 * MIB - 1])
def test_one_wrong_byte_is_found(folder: Path, at: int) -> None:
    wrong = bytearray(content(5 * MIB))
    wrong[at] ^= 0x80
    (folder / NAME).write_bytes(wrong)
    assert not served_file.intact(str(folder), NAME, 5 * MIB, SEED)


@pytest.mark.parametrize("size", [MIB - 1, MIB + 1])
def test_another_size_is_no_intact_file(folder: Path, size: int) -> None:
    (folder / NAME).write_bytes(content(MIB))
    assert not served_file.intact(str(folder), NAME, size, SEED)


def test_a_file_that_has_a_second_name_elsewhere_is_left_alone(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "precious").write_bytes(b"users own")
    (folder / NAME).hardlink_to(tmp_path / "precious")
    with pytest.raises(ValueError, match="not a regular file of its own"):
        served_file.resize(str(folder), NAME, 0, SEED, 30.0)
    assert (tmp_path / "precious").read_bytes() == b"users own"


def test_a_flush_takes_its_time(folder: Path) -> None:
    (folder / NAME).write_bytes(content(MIB))
    assert served_file.flush(str(folder), NAME) >= 0


def test_only_the_run_s_files_are_removed(folder: Path) -> None:
    for name in (NAME, "source", "users own", "pushed-short"):
        (folder / name).touch()
    served_file.remove(str(folder), "users own")
    served_file.remove(str(folder), NAME)
    assert sorted(path.name for path in folder.iterdir()) == ["pushed-short", "source", "users own"]
    served_file.remove(str(folder))
    assert sorted(path.name for path in folder.iterdir()) == ["pushed-short", "users own"]


@pytest.mark.parametrize("name", ["../etc", "users own", "", "pushed-0123"])
def test_another_file_s_name_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a run's file"):
        served_file.resize(str(folder), name, 0, SEED, 1.0, create=True)


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not the name of a run's folder"):
        served_file.flush(str(tmp_path), NAME)


def test_a_link_or_a_pipe_in_its_place_is_not_followed(folder: Path, tmp_path: Path) -> None:
    users = tmp_path / "users own"
    users.write_bytes(b"precious")
    (folder / NAME).symlink_to(users)
    with pytest.raises(OSError):
        served_file.resize(str(folder), NAME, 0, SEED, 1.0)
    (folder / NAME).unlink()
    os.mkfifo(folder / NAME)
    with pytest.raises((ValueError, OSError)):
        served_file.flush(str(folder), NAME)
    assert users.read_bytes() == b"precious"
