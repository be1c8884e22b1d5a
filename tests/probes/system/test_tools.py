"""Foreign programs: their versions, as they say them."""

import os
import stat
from functools import partial
from types import SimpleNamespace

import pytest

from probes.system import accounts, tools
from probes.system.tools import others_can_change, safe_folders


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("fio-3.33\n", "3.33"),
        ("fio-3.41-12-gabc\n", "3.41"),
        ("OpenSSH_9.2p1 Debian-2+deb12u7, OpenSSL 3.0.17 1 Jul 2025\n", "9.2p1"),
        ("OpenSSH_for_Windows_9.5p1, LibreSSL 3.8.2\n", "9.5p1"),
        ("Version 4.17.12-Debian\n", "4.17.12"),
        ("command not found", None),
        ("", None),
    ],
)
def test_a_version_is_found_in_what_a_program_says(said, version):
    assert tools.parse_version(said) == version


def test_the_systems_folders_are_looked_at_whatever_path_says(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert tools.find("sh") is not None


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program that nobody has but this test, in a folder of its own in PATH."""
    path = tmp_path / "bin" / "program-of-a-test"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\necho 'it ran 1.0'\n")
    path.chmod(0o755)
    path.parent.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin")
    # What lies below /tmp is below a folder that everybody can write to.
    monkeypatch.setattr(tools, "others_can_change", partial(others_can_change, sticky=True))
    return path


def test_a_program_of_ones_own_is_found_by_its_whole_path(program):
    assert tools.find(program.name) == tools.find_named(program.name) == str(program)
    assert tools.version(program.name) == "1.0"


@pytest.mark.parametrize(("name", "mode"), [("", 0o777), ("", 0o1777), ("", 0o775), ("x", 0o757)])
def test_a_program_that_others_can_change_is_not_found(program, name, mode):
    (program if name else program.parent).chmod(mode)
    assert tools.find(program.name) is tools.find_named(program.name) is None
    assert tools.version(program.name) is None
    assert tools.program_output((program.name,), 5) == ""


def test_a_link_is_as_safe_as_where_it_leads(program):
    everybodys = program.parent.parent / "everybodys"
    everybodys.mkdir()
    target = program.rename(everybodys / program.name)
    program.symlink_to(f"../everybodys/{target.name}")
    assert tools.find(program.name) == str(program)
    everybodys.chmod(0o777)
    assert tools.find(program.name) is None
    assert others_can_change(str(program), sticky=True) == str(everybodys)


def test_a_loop_of_links_ends(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert others_can_change(str(tmp_path / "a"), sticky=True) != ""


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: giving files away needs root")
def test_what_another_user_owns_is_his_to_change(program):
    os.chown(program, 61234, 61234)
    assert tools.find(program.name) is None
    link = program.parent / "link"
    link.symlink_to("/usr/bin/true")
    os.lchown(link, 61234, 61234)
    assert others_can_change(str(link), sticky=True) == str(link)


def test_a_folder_for_everybodys_files_is_passed_through_only_where_that_is_said():
    assert others_can_change("/tmp/no-such-file-of-anybody") == "/tmp"
    assert others_can_change("/tmp/no-such-file-of-anybody", sticky=True) != ""
    assert others_can_change("/tmp", sticky=True) == "/tmp"
    assert others_can_change("/tmp/.", sticky=True) == ""
    assert others_can_change("/usr/no-such-file-of-anybody") == ""


@pytest.mark.parametrize(
    ("mode", "sticky", "culprit"),
    [
        (0o1775, False, ""),
        (0o775, False, "/nix/store"),
        (0o1777, False, "/nix/store"),
        (0o1777, True, ""),
        (0o777, True, "/nix/store"),
    ],
)
def test_a_folder_for_others_files_is_passed_through_where_they_keep_their_hands_off_ours(
    monkeypatch, mode, sticky, culprit
):
    """/nix/store is such a folder: its builders make files there, and change none of root's."""
    modes = {"/": 0o755, "/nix": 0o755, "/nix/store": mode, "/nix/store/bin": 0o555}

    def lstat(path: str) -> os.stat_result:
        return os.stat_result((stat.S_IFDIR | modes[path], 0, 0, 2, 0, 30000, 0, 0, 0, 0))

    monkeypatch.setattr(tools.os, "lstat", lstat)
    assert others_can_change("/nix/store/bin", sticky) == culprit
    # Itself it is no folder to look for programs in.
    assert others_can_change("/nix/store", sticky) == "/nix/store"


@pytest.mark.parametrize(
    ("name", "members", "culprit"),
    [("anna", [], ""), ("anna", ["anna"], ""), ("anna", ["bob"], "/a"), ("staff", [], "/a")],
)
def test_a_group_of_the_users_own_is_nobody_else(monkeypatch, name, members, culprit):
    """Some systems' useradd makes a group for each user, and all his folders are open to it."""
    modes = {"/": 0o755, "/a": 0o775}

    def lstat(path: str) -> os.stat_result:
        return os.stat_result((stat.S_IFDIR | modes[path], 0, 0, 2, 1000, 1000, 0, 0, 0, 0))

    monkeypatch.setattr(tools.os, "lstat", lstat)
    monkeypatch.setattr(tools.os, "geteuid", lambda: 1000)
    user, group = SimpleNamespace(pw_name="anna"), SimpleNamespace(gr_name=name, gr_gid=1000)
    group.gr_mem = members
    monkeypatch.setattr(accounts.pwd, "getpwuid", lambda number: user)
    monkeypatch.setattr(accounts.grp, "getgrgid", lambda number: group)
    assert others_can_change("/a") == culprit


def test_relative_folders_of_path_are_none(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f":.:bin:{tmp_path}/../..:/usr/bin")
    assert safe_folders() == ["/usr/bin"]


def test_the_systems_own_program_comes_first(program):
    """Whatever lies in front of it in PATH, and however safe that is."""
    program.rename(program.parent / "true")
    assert tools.find("true") in {"/usr/bin/true", "/bin/true"}
    assert tools.find_named("true") == str(program.parent / "true")


@pytest.fixture
def userns(monkeypatch):
    """A user namespace that maps this user alone: every other owner looks like nobody."""
    real, me, owners = os.lstat, 4711, {"owner": 65534}

    def lstat(path, **options):
        fields = list(real(path, **options))
        fields[stat.ST_UID] = me if "mine" in os.fspath(path) else owners["owner"]
        return os.stat_result(fields)

    monkeypatch.setattr(tools.os, "lstat", lstat)
    monkeypatch.setattr(tools.os, "geteuid", lambda: me)
    texts = {"/proc/self/uid_map": f"{me} {me} 1\n", tools.OVERFLOW: "65534\n"}
    monkeypatch.setattr(tools, "_text", texts.__getitem__)
    return SimpleNamespace(shown=owners, texts=texts)


def test_without_root_in_a_user_namespace_its_usual_folders_are_known_by_name(userns):
    assert others_can_change("/var/tmp/.", sticky=True) == ""
    assert others_can_change("/var/tmp/.") == "/var/tmp"  # everybody may make files there


@pytest.mark.parametrize("path", ["/usr/share/.", "/etc/.", "/var/lib/."])
def test_there_any_other_folder_may_be_another_users(userns, path):
    assert others_can_change(path, sticky=True) in (path.removesuffix("/."), "/usr")


def test_root_that_is_mapped_or_shown_otherwise_makes_no_exception(userns):
    userns.texts["/proc/self/uid_map"] = "0 0 4294967295\n"  # the owner of / is the real nobody
    assert others_can_change("/var/tmp/.", sticky=True) == "/"
    userns.texts["/proc/self/uid_map"] = "4711 4711 1\n"
    userns.shown["owner"] = 1000
    assert others_can_change("/var/tmp/.", sticky=True) == "/"
