"""testparm is run on nothing that others can change, or can have it open."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from probes.host.samba_config import changeable_by_others, parse_named, run_testparm
from probes.stage import Unavailable


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A configuration that includes another one in a folder of its own, and names a folder."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "shares.conf").write_text("[a]\n")
    path = tmp_path / "smb.conf"
    path.write_text(f"include = {tmp_path}/more/shares.conf\nlock directory = {tmp_path}/lock\n")
    for each in (tmp_path, tmp_path / "more", path, tmp_path / "more" / "shares.conf"):
        each.chmod(each.stat().st_mode & ~0o022)
    return path


def test_what_nobody_else_can_change_is_read(ours: Path) -> None:
    assert changeable_by_others(str(ours)) == ""
    told = run_testparm(["-s"], str(ours), 10)
    assert b"[a]" in told.stdout


@pytest.mark.parametrize("opened", ["smb.conf", "more/shares.conf", "more", "lock", "."])
def test_one_file_or_folder_that_others_can_change_is_enough(ours: Path, opened: str) -> None:
    path = ours.parent / opened
    if opened == "lock":
        path.mkdir()
    path.chmod(0o1777 if path.is_dir() else 0o666)
    assert changeable_by_others(str(ours)) != ""
    with pytest.raises(Unavailable, match="can change .*: give it to root"):
        run_testparm(["-s"], str(ours), 10)


@pytest.mark.parametrize(
    "line",
    [
        "include = {}/%m.conf",
        "in clude = {}/no-such-file",
        "INCLUDE={}/x/%$(NAME)/y",
        "config file = {}/link",
        "inc\\\nlude = {}/link",
        "state directory = {}",
        "include = relative",
    ],
)
def test_no_spelling_of_a_name_leads_to_what_others_can_change(ours: Path, line: str) -> None:
    everybodys = ours.parent / "everybodys"
    everybodys.mkdir()
    everybodys.chmod(0o777)
    (everybodys / "link").symlink_to(ours.parent / "more" / "shares.conf")
    ours.write_text("[global]\n" + line.format(everybodys) + "\n")
    assert changeable_by_others(str(ours)) != ""


def test_the_registry_is_no_file_and_a_variable_any_text() -> None:
    text = "include = registry\ninclude = /etc/samba/%m-%$(A).conf\n# include = /a\nlock dir=/b\n"
    assert parse_named(text) == (["/etc/samba/*-*.conf"] * 2, ["/b"] * 2)


def test_a_configuration_that_is_no_plain_file_is_not_waited_for(ours: Path) -> None:
    ours.unlink()
    os.mkfifo(ours)
    assert changeable_by_others(str(ours)) == str(ours)
