"""The server's path of the share, found by the run's folder; and the cache of the file in it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from probes.host import locate, page_cache
from probes.host.folders import folder_facts

NAME = "bottleneck-0123456789abcdef"


@pytest.fixture
def share(tmp_path):
    folder = tmp_path / "share" / NAME
    folder.mkdir(parents=True)
    (folder / "source").write_bytes(os.urandom(1 << 20))
    return tmp_path / "share"


@pytest.fixture
def nowhere(monkeypatch):
    """No smb.conf, no mounts: nothing but what a test opens."""
    monkeypatch.setattr(locate, "_share_paths", list)
    monkeypatch.setattr(locate, "_mount_points", list)


def test_the_hint_comes_first(share, nowhere):
    assert locate.locate(NAME, str(share)) == str(share / NAME)


def test_a_hint_that_is_wrong_is_not_believed(share, nowhere, tmp_path):
    assert locate.locate(NAME, str(tmp_path)) is None


def test_a_process_that_holds_the_folder_open_shows_it(share, nowhere):
    fd = os.open(share / NAME, os.O_RDONLY)
    assert locate.locate(NAME, None) == str(share / NAME)
    os.close(fd)


def test_a_process_that_holds_the_file_in_it_open_shows_it(share, nowhere):
    with (
        (share / NAME / "source").open("rb") as source,
        subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=source
        ) as holder,
    ):
        source.close()
        assert locate.locate(NAME, None) == str(share / NAME)
        holder.communicate(b"\n")


def test_the_paths_of_smb_conf_are_tried(share, nowhere, monkeypatch):
    monkeypatch.setattr(locate, "_held_open", lambda name: iter(()))
    monkeypatch.setattr(locate, "_share_paths", lambda: [str(share)])
    assert locate.locate(NAME, None) == str(share / NAME)


def test_a_folder_below_a_share_is_walked_to(share, nowhere, monkeypatch, tmp_path):
    monkeypatch.setattr(locate, "_held_open", lambda name: iter(()))
    monkeypatch.setattr(locate, "_mount_points", lambda: [str(tmp_path)])
    assert locate.locate(NAME, None) == str(share / NAME)


def test_the_walk_neither_follows_links_nor_goes_deeper_than_it_says(
    tmp_path, nowhere, monkeypatch
):
    monkeypatch.setattr(locate, "_held_open", lambda name: iter(()))
    monkeypatch.setattr(locate, "_mount_points", lambda: [str(tmp_path / "top")])
    (tmp_path / "other" / NAME).mkdir(parents=True)
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "other")
    deep = tmp_path / "top" / "1" / "2" / "3" / "4" / NAME
    deep.mkdir(parents=True)
    assert locate.locate(NAME, None) is None


def test_a_file_or_link_of_that_name_is_not_the_folder(tmp_path, nowhere):
    (tmp_path / NAME).symlink_to("/etc")
    assert locate.locate(NAME, str(tmp_path)) is None


@pytest.mark.parametrize("name", ["", "etc", "../bottleneck-0123456789abcdef", "bottleneck-XYZ"])
def test_another_name_is_refused(name):
    with pytest.raises(ValueError, match="not the name"):
        locate.locate(name, "/")


def test_paths_of_shares_are_read_from_testparm():
    text = "[global]\n\tworkgroup = W\n[a]\n\tpath = /srv/my files\n[homes]\n\tpath = /home/%U\n"
    assert locate.parse_testparm(text) == ["/srv/my files"]


def test_the_source_is_made_uncached_and_cached_with_proof(share):
    if folder_facts(str(share)).filesystem == "tmpfs":
        pytest.skip("needs a folder that is not on tmpfs")
    cold = locate.set_cache(str(share / NAME), "uncached")
    warm = locate.set_cache(str(share / NAME), "cached")
    if page_cache_tells(share):
        assert (cold["proven"], cold["cached_ratio_before"]) == (True, 0.0)
        assert (warm["proven"], warm["cached_ratio_before"]) == (True, 1.0)
    assert (cold["side"], cold["requested"], warm["requested"]) == ("server", "uncached", "cached")


def page_cache_tells(share):
    with (share / NAME / "source").open("rb") as file:
        return page_cache.state(file.fileno(), 1 << 20) is not None


def test_where_the_kernel_cannot_tell_nothing_is_proven(share, monkeypatch):
    monkeypatch.setattr(page_cache, "state", lambda fd, size: None)
    told = locate.set_cache(str(share / NAME), "uncached")
    assert (told["proven"], told["cached_ratio_before"]) == (False, None)


def test_only_a_regular_file_in_a_runs_folder_is_touched(share, tmp_path):
    source = share / NAME / "source"
    source.unlink()
    source.symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="symbolic links"):
        locate.set_cache(str(share / NAME), "cached")
    source.unlink()
    os.mkfifo(source)
    with pytest.raises(ValueError, match="not a regular file"):
        locate.set_cache(str(share / NAME), "cached")
    with pytest.raises(ValueError, match="not the name"):
        locate.set_cache("/etc", "cached")
    linked = tmp_path / "bottleneck-aaaaaaaaaaaaaaaa"
    linked.symlink_to(share / NAME)
    with pytest.raises(NotADirectoryError):
        locate.set_cache(str(linked), "cached")


def test_no_other_state_is_asked_for(share):
    with pytest.raises(ValueError, match="made hot"):
        locate.set_cache(str(share / NAME), "hot")
    assert Path(share / NAME / "source").stat().st_size == 1 << 20
