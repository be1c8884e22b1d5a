"""A host flushes, resizes and compares a run's file on its share, and touches no other file."""

import os
from pathlib import Path

import pytest

from probes.files import page_cache, payload, served_file
from probes.files.folders import folder_facts

SEED = "5eed"
NAME, SOURCE = "pushed-0123456789abcdef-0123456789abcdef", "source-0123456789abcdef"
MIB = 1 << 20


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "bottleneck-0123456789abcdef"
    path.mkdir()
    return path


def content(size: int) -> bytes:
    return bytes(payload.block(payload.make_ring(bytes.fromhex(SEED)), 0, size))


def test_a_new_file_is_made_of_the_payload(folder):
    size_bytes = served_file.resize(str(folder), NAME, 5 * MIB, SEED, 30.0, create=True)
    assert size_bytes == 5 * MIB
    assert (folder / NAME).read_bytes() == content(5 * MIB)
    assert served_file.intact(str(folder), NAME, 5 * MIB, SEED)


@pytest.mark.parametrize("size", [0, 1, 3 * MIB, 3 * MIB + 1, 7 * MIB + 5])
def test_what_is_there_stays_and_is_cut_or_continued(folder, size):
    (folder / NAME).write_bytes(content(3 * MIB))
    assert served_file.resize(str(folder), NAME, size, SEED, 30.0) == size
    assert (folder / NAME).read_bytes() == content(size)


@pytest.mark.parametrize("offset", [0, MIB, 5 * MIB - 1])
def test_one_wrong_byte_is_found(folder, offset):
    wrong = bytearray(content(5 * MIB))
    wrong[offset] ^= 0x80
    (folder / NAME).write_bytes(wrong)
    assert not served_file.intact(str(folder), NAME, 5 * MIB, SEED)


@pytest.mark.parametrize("size", [MIB - 1, MIB + 1])
def test_another_size_is_no_intact_file(folder, size):
    (folder / NAME).write_bytes(content(MIB))
    assert not served_file.intact(str(folder), NAME, size, SEED)


def test_a_file_that_has_a_second_name_elsewhere_is_left_alone(folder, tmp_path):
    (tmp_path / "precious").write_bytes(b"users own")
    (folder / NAME).hardlink_to(tmp_path / "precious")
    with pytest.raises(ValueError, match="not a regular file of its own"):
        served_file.resize(str(folder), NAME, 0, SEED, 30.0)
    assert (tmp_path / "precious").read_bytes() == b"users own"


def test_a_flush_takes_its_time(folder):
    (folder / NAME).write_bytes(content(MIB))
    assert served_file.flush(str(folder), NAME) >= 0


def test_only_the_run_s_files_are_removed(folder):
    for name in (NAME, SOURCE, "users own", "pushed-short"):
        (folder / name).touch()
    served_file.remove(str(folder), "users own")
    served_file.remove(str(folder), NAME)
    assert sorted(path.name for path in folder.iterdir()) == ["pushed-short", SOURCE, "users own"]
    (folder / NAME).touch()
    served_file.remove(str(folder))  # the source is left to the session that holds it
    assert sorted(path.name for path in folder.iterdir()) == ["pushed-short", SOURCE, "users own"]


@pytest.mark.parametrize(
    "name", ["../etc", "users own", "", "pushed-0123", "source", NAME.replace("0", "1")]
)
def test_another_file_s_name_is_refused(folder, name):
    with pytest.raises(ValueError, match="not the name of a run's file"):
        served_file.resize(str(folder), name, 0, SEED, 1.0, create=True)


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not the name of a run's folder"):
        served_file.flush(str(tmp_path), NAME)


def test_a_link_or_a_pipe_in_its_place_is_not_followed(folder, tmp_path):
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


RUN_FOLDER = "bottleneck-0123456789abcdef"


@pytest.fixture
def share(tmp_path):
    folder = tmp_path / "share" / RUN_FOLDER
    folder.mkdir(parents=True)
    (folder / SOURCE).write_bytes(os.urandom(1 << 20))
    return tmp_path / "share"


def test_the_source_is_made_uncached_and_cached_with_proof(share):
    if folder_facts(str(share)).filesystem == "tmpfs":
        pytest.skip("needs a folder that is not on tmpfs")
    cold = served_file.set_cache(str(share / RUN_FOLDER), "uncached")
    warm = served_file.set_cache(str(share / RUN_FOLDER), "cached")
    if page_cache_tells(share):
        assert (cold["proven"], cold["cached_ratio_before"]) == (True, 0.0)
        assert (warm["proven"], warm["cached_ratio_before"]) == (True, 1.0)
    assert (cold["side"], cold["requested"], warm["requested"]) == ("server", "uncached", "cached")


def page_cache_tells(share):
    with (share / RUN_FOLDER / SOURCE).open("rb") as file:
        return page_cache.state(file.fileno(), 1 << 20) is not None


def test_where_the_kernel_cannot_tell_nothing_is_proven(share, monkeypatch):
    monkeypatch.setattr(page_cache, "state", lambda fd, size: None)
    cache = served_file.set_cache(str(share / RUN_FOLDER), "uncached")
    assert (cache["proven"], cache["cached_ratio_before"]) == (False, None)


def test_only_a_regular_file_in_a_runs_folder_is_touched(share, tmp_path):
    source = share / RUN_FOLDER / SOURCE
    source.unlink()
    source.symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="symbolic links"):
        served_file.set_cache(str(share / RUN_FOLDER), "cached")
    source.unlink()
    os.mkfifo(source)
    with pytest.raises(ValueError, match="not a regular file"):
        served_file.set_cache(str(share / RUN_FOLDER), "cached")
    with pytest.raises(ValueError, match="not the name"):
        served_file.set_cache("/etc", "cached")
    linked = tmp_path / "bottleneck-aaaaaaaaaaaaaaaa"
    linked.symlink_to(share / RUN_FOLDER)
    with pytest.raises(NotADirectoryError):
        served_file.set_cache(str(linked), "cached")


def test_no_other_state_is_asked_for(share):
    with pytest.raises(ValueError, match="made hot"):
        served_file.set_cache(str(share / RUN_FOLDER), "hot")
    assert Path(share / RUN_FOLDER / SOURCE).stat().st_size == 1 << 20
