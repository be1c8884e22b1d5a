"""--file and --device: what they name, and what they refuse."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bottleneck import named
from bottleneck.target import of_folder, parse
from probes.stage import Refused

SHARE = parse("//nas/media/films")


def test_a_plain_name_lies_below_the_share() -> None:
    assert named.parse_file("old/a b.mkv", SHARE) == named.NamedFile("server", "old\\a b.mkv")
    assert named.parse_file("old\\a.mkv", SHARE) == named.NamedFile("server", "old\\a.mkv")


def test_a_path_is_this_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    here = named.NamedFile("client", str(tmp_path / "f"))
    assert named.parse_file("./f", SHARE) == here
    assert named.parse_file(str(tmp_path / "f"), SHARE) == here
    assert named.parse_file("f", None) == here


@pytest.mark.parametrize("text", ["", "..", "a/../b", "a\x01", "a?", 'a"b', "a/./b", "C:\\x"])
def test_what_cannot_be_a_file_on_a_share_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="--file"):
        named.parse_file(text, SHARE)


@pytest.mark.parametrize("kind", ["folder", "fifo", "missing", "nul"])
def test_what_is_no_regular_file_here_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "it"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    text = f"{path}\0" if kind == "nul" else str(path)
    with pytest.raises(Refused, match="--file") as refused:
        named.parse_file(text, None)
    assert refused.value.kind == "usage"


def test_a_mounted_folder_as_target_wants_the_share_itself() -> None:
    with pytest.raises(Refused, match="//host/share"):
        named.parse_file("a", of_folder("/mnt/media"))


def test_a_device_is_a_block_device(tmp_path: Path) -> None:
    assert named.parse_device("server:/dev/sdb") == named.NamedDevice("server", "/dev/sdb")
    for text in ("/dev/null", str(tmp_path), "/dev/there-is-none", "server:sdb", "a\0b"):
        with pytest.raises(Refused, match="--device"):
            named.parse_device(text)


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: loop devices need root")
def test_a_block_device_is_no_file_and_the_other_way_round(tmp_path: Path) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(1 << 20)
    made = subprocess.run(
        ["losetup", "--find", "--show", "--read-only", str(image)],
        capture_output=True,
        text=True,
        check=True,
    )
    node = made.stdout.strip()
    try:
        assert named.parse_device(node) == named.NamedDevice("client", node)
        with pytest.raises(Refused, match="--device"):
            named.parse_file(node, None)
    finally:
        subprocess.run(["losetup", "--detach", node], check=True)
