"""Options of smb.conf that cost throughput: recorded testparm, single options, a real smbd."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from probes.core.stage import Unavailable
from probes.programs import samba_config
from probes.programs.costly_settings import Costly, costly, parse
from probes.programs.samba import private_samba
from probes.programs.samba_config import (
    changeable_by_others,
    parse_command,
    parse_loaded,
    parse_log_level,
    parse_named,
    run_testparm,
    settings,
)
from tests.living import until

RECORDED = (Path(__file__).parents[1] / "recorded" / "testparm.txt").read_text()
"""`testparm -s -v` of Samba 4.17 on a configuration that is wrong in many ways."""
STRANGER = 61234
"""A user id that no account of this system has."""


def options_of(sections: dict[str, dict[str, str]], share: str = "") -> set[tuple[str, str | None]]:
    return {(each.option, each.share) for each in costly(sections, share)}


def costs_of(option: str, value: str, **others_named: str) -> list[Costly]:
    """Returns the costs of one option, beside others that are named with _ for blanks."""
    others = {name.replace("_", " "): text for name, text in others_named.items()}
    return [c for c in costly({"global": {option: value, **others}}) if c.option == option]


def test_the_recorded_configuration_costs_what_was_planted_in_it():
    first = "socket options, aio read size, use sendfile, min receivefile size, smb2 max read"
    other_options = (
        "smb2 max credits, max mux, server max protocol, server signing, case sensitive, deadtime"
    )
    everywhere = set(f"{first}, {other_options}".split(", "))
    costs = options_of(parse(RECORDED))
    assert {option for option, share in costs if share is None} == everywhere
    assert {each for each in costs if each[1] is not None} == {
        ("sync always", "Media Files"),
        ("vfs objects", "Media Files"),
        ("strict locking", "homes"),
        ("server smb encrypt", "archive"),
        ("strict sync", "archive"),
    }


def test_a_share_is_judged_by_its_own_lines_and_not_by_what_it_overrides():
    sections = parse(RECORDED)
    media = options_of(sections, "media files")
    assert not {"aio read size", "use sendfile", "case sensitive"} & {option for option, _ in media}
    assert ("sync always", "Media Files") in media and ("max mux", None) in media
    assert ("strict locking", "homes") in options_of(sections, "somebody")
    assert not any(share for _, share in options_of({"global": {"oplocks": "No"}}, "unknown"))


def test_a_defect_that_two_options_make_together_belongs_to_the_share_that_has_both():
    sections = {
        "global": {"use sendfile": "Yes", "aio read size": "1"},
        "s": {"aio read size": "0"},
    }
    assert options_of(sections) == {("use sendfile", "s"), ("aio read size", "s")}


def test_each_module_says_what_it_does_and_unknown_ones_are_not_judged():
    modules = {c.value: c for c in costly(parse(RECORDED), "Media Files") if "vfs" in c.option}
    assert set(modules) == {"full_audit:first", "/usr/lib/samba/vfs/recycle", "catia"}
    assert "syslog" in modules["full_audit:first"].why


def test_nothing_but_costly_options_is_told():
    text = json.dumps([vars(each) for each in costly(parse(RECORDED))])
    assert not re.search(r"secret|passw|/srv|ldap|HOME|NAS", text)


@pytest.mark.parametrize(
    ("option", "bad", "good"),
    [
        ("socket options", "TCP_NODELAY SO_SNDBUF=65536", "TCP_NODELAY"),
        ("socket options", "tcp_nodelay so_rcvbuf=8192", "IPTOS_LOWDELAY TCP_NODELAY=1"),
        ("socket options", "IPTOS_LOWDELAY", "TCP_NODELAY SO_KEEPALIVE"),
        ("socket options", "TCP_NODELAY=0", "TCP_NODELAY = 1"),
        ("aio read size", "0", "1"),
        ("aio write size", "0", "16384"),
        ("aio max threads", "4", "100"),
        ("strict sync", "No", "Yes"),
        ("sync always", "Yes", "No"),
        ("strict allocate", "Yes", "No"),
        ("strict locking", "Yes", "Auto"),
        ("smb2 max read", "65536", "1048576"),
        ("smb2 max write", "65536", "8388608"),
        ("smb2 max trans", "65536", "8388608"),
        ("smb2 max credits", "128", "8192"),
        ("max mux", "2", "50"),
        ("max xmit", "4096", "65535"),
        ("large readwrite", "No", "Yes"),
        ("min receivefile size", "16384", "0"),
        ("server max protocol", "NT1", "SMB3"),
        ("server max protocol", "SMB2", "SMB3_00"),
        ("server max protocol", "SMB2_02", "default"),
        ("server multi channel support", "No", "Yes"),
        ("server signing", "required", "default"),
        ("server smb encrypt", "desired", "if_required"),
        ("server smb encrypt", "required", "off"),
        ("server smb3 signing algorithms", "HMAC-SHA256", "AES-128-GMAC, HMAC-SHA256"),
        ("server smb3 encryption algorithms", "AES-256-CCM, AES-128-GCM", "AES-128-GCM"),
        ("oplocks", "No", "Yes"),
        ("level2 oplocks", "No", "Yes"),
        ("kernel oplocks", "Yes", "No"),
        ("smb2 leases", "No", "Yes"),
        ("case sensitive", "Auto", "Yes"),
        ("hide unreadable", "Yes", "No"),
        ("hide unwriteable files", "Yes", "No"),
        ("stat cache", "No", "Yes"),
        ("getwd cache", "No", "Yes"),
        ("log level", "3", "2"),
        ("log level", "1 auth:5", "1 auth:2"),
        ("log level", "10@/var/log/all", "0"),
        ("deadtime", "5", "10080"),
        ("deadtime", "15", "0"),
        ("vfs objects", "fruit", "btrfs"),
    ],
)
def test_each_option_is_told_where_it_costs_and_silent_where_not(option, bad, good):
    (cost,) = costs_of(option, bad)
    assert cost.value == bad and cost.share is None and cost.why and cost.remedy
    assert cost.matters_for in ("all", "read", "write", "small-files", "smb1", "durability")
    assert costs_of(option, good) == []


def test_the_defaults_of_the_installed_samba_cost_nothing_but_the_search_for_names():
    command = ["testparm", "-s", "-v", "/dev/null"]
    output = subprocess.run(command, capture_output=True, text=True).stdout
    sections = parse(output)
    sections["global"].pop("log level")  # testparm tells its own
    assert options_of(sections) == {("case sensitive", None)}


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("[global]\n log level = 3 smb2:10\n[x]\nlog level = 9", "3 smb2:10"),
        ("[Global]\nLogLevel=1\n  debug level = 4\n", "4"),
        ("[global]\n# log level = 5\n; log level = 6\n", None),
        ("log level = 2\n", "2"),
        ("", None),
    ],
)
def test_the_log_level_is_the_one_of_the_file(text, level):
    assert parse_log_level(text) == level


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("smbd -D", None),
        ("smbd -F -s /a b", "/a"),
        ("smbd -s/a", "/a"),
        ("smbd --configfile=/a/b.conf --foreground", "/a/b.conf"),
        ("smbd --configfile /a/b.conf", "/a/b.conf"),
        ("smbd -s", None),
        ("", None),
    ],
)
def test_the_file_is_the_one_that_the_command_line_names(command, file):
    assert parse_command(command.split()) == file


def test_what_testparm_loads_is_read_from_its_messages():
    output = "Load smb config files from /etc/samba/smb.conf\nLoaded services file OK.\n"
    assert parse_loaded(output) == "/etc/samba/smb.conf"
    assert parse_loaded("Can't load\n") is None


@pytest.mark.long
def test_a_real_smbd_tells_what_its_own_file_costs(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    included = tmp_path / "more.conf"
    included.write_text("smb2 max write = 65536\n")
    planted = ["socket options = TCP_NODELAY SO_SNDBUF=16384", "log level = 1 smb2:5"]
    with (
        private_samba(tmp_path / "one", password="x") as other,
        private_samba(
            tmp_path / "two",
            password="x",
            options=[*planted, f"include = {included}"],
            share_options=["sync always = yes"],
        ) as server,
    ):
        costs = {each["option"]: each for each in settings("share", server.host, server.port)}
        assert set(costs) == {
            "socket options",
            "log level",
            "smb2 max write",
            "sync always",
            "case sensitive",
        }
        assert costs["sync always"]["share"] == "share"
        assert costs["socket options"]["share"] is None
        assert json.loads(json.dumps(costs)) == costs
        fine = [each["option"] for each in settings("share", other.host, other.port)]
        assert fine == ["case sensitive"]
        with pytest.raises(Unavailable, match="several Samba servers"):
            settings("share", server.host, 1)


def test_the_host_s_own_file_is_not_taken_for_that_of_a_container(monkeypatch):
    spaces = {os.getpid(): "mnt:[1]", 7: "mnt:[2]", 8: "mnt:[1]", 9: None, 10: "mnt:[3]"}
    monkeypatch.setattr(samba_config, "_namespace", spaces.get)
    monkeypatch.setattr(samba_config, "_has_our_root", lambda pid: pid == 10)
    monkeypatch.setattr(samba_config, "_command", lambda pid: ["smbd", "-F"])
    with pytest.raises(Unavailable, match="runs in a container"):
        samba_config._file_of(7)
    assert samba_config._file_of(8) is samba_config._file_of(9) is None
    monkeypatch.setattr(samba_config, "_command", lambda pid: ["smbd", "-s", "/own.conf"])
    with pytest.raises(Unavailable, match="run the agent in it"):
        samba_config._file_of(7)
    assert samba_config._file_of(8) == samba_config._file_of(10) == "/own.conf"
    with pytest.raises(Unavailable, match="run the agent as root there"):
        samba_config._file_of(9)


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: another root needs root")
def test_a_process_with_another_root_sees_other_files(tmp_path):
    """Not every mount namespace is a container: a unit with a /tmp of its own has this root."""
    stays, ends = os.pipe()
    child = os.fork()
    if not child:
        os.close(ends)
        os.chroot(tmp_path)
        os.read(stays, 1)
        os._exit(0)
    try:
        assert samba_config._has_our_root(os.getpid())
        assert until(lambda: not samba_config._has_our_root(child))
    finally:
        os.close(ends)
        os.waitpid(child, 0)


def test_a_host_that_cannot_tell_says_why(monkeypatch, tmp_path):
    monkeypatch.setattr(samba_config.reader(), "processes", dict)
    with pytest.raises(Unavailable, match="no smbd runs"):
        settings()
    monkeypatch.setattr(samba_config, "_configuration", lambda *_: str(tmp_path / "missing"))
    with pytest.raises(Unavailable, match="no permission to read"):
        settings()
    slow = tmp_path / "testparm"
    slow.write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    slow.chmod(0o755)
    monkeypatch.setattr(samba_config.tools, "find", lambda name: str(slow))
    monkeypatch.setattr(samba_config, "ANSWER_SECONDS", 0.2)
    with pytest.raises(Unavailable, match="did not answer within"):
        settings()
    monkeypatch.setattr(samba_config.tools, "find", lambda name: None)
    with pytest.raises(Unavailable, match="testparm is not installed"):
        settings()


@pytest.fixture
def strangers():
    """A folder of another user's, in which he can do as he likes."""
    if os.geteuid() != 0:
        pytest.skip("NOT RUN: a process of another user needs root")
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, STRANGER, STRANGER)
        yield Path(folder)


@pytest.mark.parametrize("whose", ["a stranger's", "root's"])
def test_testparm_opens_nothing_for_a_stranger(strangers, tmp_path, whose):
    """A process that anybody called smbd, or a configuration that anybody can write."""
    victim = tmp_path / "victim"
    victim.touch(0o600)
    victim.write_bytes(b"precious")
    (strangers / "registry.tdb").symlink_to(victim)
    configuration = strangers / "smb.conf"
    configuration.write_text(f"[global]\nregistry shares = yes\nstate directory = {strangers}\n")
    os.chown(configuration, STRANGER, STRANGER)
    shutil.copy("/bin/sh", strangers / "smbd")
    command = [strangers / "smbd", "-c", "read end", "smbd", "-s", configuration]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        started = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
            user=STRANGER if whose == "a stranger's" else None,
        )
        try:
            with pytest.raises(Unavailable, match=r"was not read: .*run the agent|chmod go-w"):
                settings("", "127.0.0.1", listening.getsockname()[1])
        finally:
            started.communicate(timeout=20)
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("status", "users"),
    [
        ("Name:\tsmbd\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n", {0}),
        ("Uid:\t1000\t0\t0\t0\n", {0, 1000}),
        ("Name:\tUid:\t0\n", set()),
    ],
)
def test_a_process_with_a_set_uid_bit_has_two_users(status, users):
    assert samba_config.parse_users(status) == users


@pytest.fixture
def ours(tmp_path):
    """A configuration that includes another one in a folder of its own, and names a folder."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "shares.conf").write_text("[a]\n")
    path = tmp_path / "smb.conf"
    path.write_text(f"include = {tmp_path}/more/shares.conf\nlock directory = {tmp_path}/lock\n")
    for each in (tmp_path, tmp_path / "more", path, tmp_path / "more" / "shares.conf"):
        each.chmod(each.stat().st_mode & ~0o022)
    return path


def test_what_nobody_else_can_change_is_read(ours):
    assert changeable_by_others(str(ours)) == ""
    done = run_testparm(["-s"], str(ours), 10)
    assert b"[a]" in done.stdout


@pytest.mark.parametrize("opened", ["smb.conf", "more/shares.conf", "more", "lock", "."])
def test_one_file_or_folder_that_others_can_change_is_enough(ours, opened):
    path = ours.parent / opened
    if opened == "lock":
        path.mkdir()
    path.chmod(0o1777 if path.is_dir() else 0o666)
    assert changeable_by_others(str(ours)) != ""
    with pytest.raises(Unavailable, match="can change .*; chown it to root"):
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
def test_no_spelling_of_a_name_leads_to_what_others_can_change(ours, line):
    everybodys = ours.parent / "everybodys"
    everybodys.mkdir()
    everybodys.chmod(0o777)
    (everybodys / "link").symlink_to(ours.parent / "more" / "shares.conf")
    ours.write_text("[global]\n" + line.format(everybodys) + "\n")
    assert changeable_by_others(str(ours)) != ""


def test_the_registry_is_no_file_and_a_variable_any_text():
    text = "include = registry\ninclude = /etc/samba/%m-%$(A).conf\n# include = /a\nlock dir=/b\n"
    assert parse_named(text) == (["/etc/samba/*-*.conf"] * 2, ["/b"] * 2)


def test_a_configuration_that_is_no_plain_file_is_not_waited_for(ours):
    ours.unlink()
    os.mkfifo(ours)
    assert changeable_by_others(str(ours)) == str(ours)
