"""The folder of a share on its own host: found by open files, by smb.conf, by a walk."""

import os
import secrets

import pytest

from probes.programs import served_folder

LOCATE_NAME = f"bottleneck-{secrets.token_hex(8)}"
"""Name that only these tests use: every process of this host is looked at."""


@pytest.fixture
def share(tmp_path):
    (tmp_path / "share" / LOCATE_NAME).mkdir(parents=True)
    return tmp_path / "share"


@pytest.fixture
def nowhere(monkeypatch):
    """No smb.conf, no mounts: nothing but what a test opens."""
    monkeypatch.setattr(served_folder, "_share_paths", list)
    monkeypatch.setattr(served_folder, "_mount_points", list)


def test_a_process_that_holds_the_folder_open_shows_it(share, nowhere):
    fd = os.open(share / LOCATE_NAME, os.O_RDONLY)
    assert served_folder.locate(LOCATE_NAME, None) == str(share / LOCATE_NAME)
    os.close(fd)


def test_the_paths_of_smb_conf_are_tried(share, nowhere, monkeypatch):
    monkeypatch.setattr(served_folder, "_opened_folders", lambda name: iter(()))
    monkeypatch.setattr(served_folder, "_share_paths", lambda: [str(share)])
    assert served_folder.locate(LOCATE_NAME, None) == str(share / LOCATE_NAME)


def test_a_folder_below_a_share_is_walked_to(share, nowhere, monkeypatch, tmp_path):
    monkeypatch.setattr(served_folder, "_opened_folders", lambda name: iter(()))
    monkeypatch.setattr(served_folder, "_mount_points", lambda: [str(tmp_path)])
    assert served_folder.locate(LOCATE_NAME, None) == str(share / LOCATE_NAME)


def test_the_walk_neither_follows_links_nor_goes_deeper_than_it_says(
    tmp_path, nowhere, monkeypatch
):
    monkeypatch.setattr(served_folder, "_opened_folders", lambda name: iter(()))
    monkeypatch.setattr(served_folder, "_mount_points", lambda: [str(tmp_path / "top")])
    (tmp_path / "other" / LOCATE_NAME).mkdir(parents=True)
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "other")
    deep = tmp_path / "top" / "1/2/3/4/5/6" / LOCATE_NAME
    deep.mkdir(parents=True)
    assert served_folder.locate(LOCATE_NAME, None) is None


def test_a_file_or_link_of_that_name_is_not_the_folder(tmp_path, nowhere):
    (tmp_path / LOCATE_NAME).symlink_to("/etc")
    assert served_folder.locate(LOCATE_NAME, str(tmp_path)) is None


@pytest.mark.parametrize("name", ["", "etc", "../bottleneck-0123456789abcdef", "bottleneck-XYZ"])
def test_another_name_is_refused(name):
    with pytest.raises(ValueError, match="not the name"):
        served_folder.locate(name, "/")


def test_paths_of_shares_are_read_from_testparm():
    text = "[global]\n\tworkgroup = W\n[a]\n\tpath = /srv/my files\n[homes]\n\tpath = /home/%U\n"
    assert served_folder.parse_testparm(text) == ["/srv/my files"]


def test_a_hint_that_is_wrong_is_not_believed(share, nowhere, tmp_path):
    assert served_folder.locate(LOCATE_NAME, str(tmp_path)) is None
