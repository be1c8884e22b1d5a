"""Spellings that name a share, and those that are refused with a sentence."""

import os
import subprocess
from pathlib import Path

import pytest

from bottleneck.login.target import (
    MetricsUrl,
    NamedDevice,
    NamedFile,
    Target,
    TcpPeer,
    make_local,
    parse,
    parse_device,
    parse_file,
    parse_metrics,
    parse_peer,
    spelling_hint,
)
from probes.core.stage import Refused


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("//nas/media", Target("nas", 445, "media", "")),
        ("//nas:1445/media/", Target("nas", 1445, "media", "")),
        ("//nas/media/films/old", Target("nas", 445, "media", "films\\old")),
        (r"\\nas\media", Target("nas", 445, "media", "")),
        (r"\\nas.example.org\media\films", Target("nas.example.org", 445, "media", "films")),
        ("//10.0.0.7/c$", Target("10.0.0.7", 445, "c$", "")),
        ("//[fe80::1]:445/x", Target("fe80::1", 445, "x", "")),
        ("smb://nas/media", Target("nas", 445, "media", "")),
        ("smb://nas/mine%40home", Target("nas", 445, "mine@home", "")),
        ("smb://nas/mine@home", Target("nas", 445, "mine@home", "")),
        ("//nas:446/mine@home", Target("nas", 446, "mine@home", "")),
        ("SMB://anna%40lab.org@nas/media", Target("nas", 445, "media", "", "anna@lab.org")),
        ("cifs://nas:446/media", Target("nas", 446, "media", "")),
        ("smb://LAB;anna@nas/media", Target("nas", 445, "media", "", "LAB;anna")),
        ("smb://[fe80::1%25eth0]/x", Target("fe80::1%eth0", 445, "x", "")),
        ("smb://anna@[fe80::1%25eth0]:446/a%2525", Target("fe80::1%eth0", 446, "a%25", "", "anna")),
        ("//nas.example.:446/media", Target("nas.example", 446, "media", "")),
        ("//b\u00fcro/media", Target("xn--bro-hoa", 445, "media", "")),
        ("smb://nas.B\u00dcRO.example./x", Target("nas.xn--bro-hoa.example", 445, "x", "")),
        ("smb://anna@nas:446/my%20films/a", Target("nas", 446, "my films", "a", "anna")),
    ],
)
def test_a_share_is_understood_in_every_usual_spelling(text, target):
    assert parse(text) == target


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("smb://anna:secret@nas/media", "password"),
        ("smb://anna%3Asecret@nas/media", "password"),
        ("smb://anna:se/cret@nas/media", "password"),
        ("smb://anna:secret/@nas/media", "password"),
        ("smb://anna:12/secret@nas/media", "password"),
        ("smb://anna:secret@x@nas/media", "password"),
        ("smb://anna:x@secret:y@nas/media", "password"),
        ("smb://anna:secret%2F@nas/media", "password"),
        ("smb://anna@secret@nas/media", "smb://user@host"),
        ("//anna:secret@nas/media", "smb://user@host"),
        ("//anna:secret/x@nas/media", "last @"),
        ("SMB://anna:secret@nas/media", "password"),
        ("smb://anna@lab.org@nas/media", "%40 for an @ of the user"),
        ("smb://anna%3Asecret%40nas/media", "'...@nas': not a valid host name"),
        ("//./media", "host name"),
        ("//a\uff0fb/media", "host name"),
        ("//nas:/media", "the port is missing; use nas:445, or no colon"),
        ("file:///srv/media", "is not a share"),
        ("anna:secret@nas/media", "is not a share"),
        ("//nas/secret:x@y:z", "name of a share"),
        ("//anna@nas/media", "smb://user@host"),
        ("//nas", "no share given"),
        ("//nas/", "no share given"),
        ("nas/media", "is not a share"),
        ("//-oProxyCommand=x/media", "host"),
        ("//na;s/media", "host"),
        ("//nas:0/media", "must be from 1 to 65535"),
        ("//nas:99999/media", "must be from 1 to 65535"),
        ("//nas:x/media", "host"),
        ("//[zz]/media", "IPv6"),
        ("//nas/../etc", "name of a share"),
        ("//nas/a/../b", "name of a share"),
        ("//nas/a|b", "name of a share"),
        ("//nas/a\x1bb", "name of a share"),
        ("//nas/" + "x" * 256, "name of a share"),
        ("", "is not a share"),
    ],
)
def test_what_is_no_share_is_refused_with_the_reason(text, says):
    with pytest.raises(Refused, match=says) as refused:
        parse(text)
    assert refused.value.kind == "usage"
    assert "secret" not in refused.value.text and "se'" not in refused.value.text


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("//nas:446/User%20Homes/a", "did you mean //nas:446/User Homes/a? (%20 is decoded in"),
        ("//nas/a/b%C3%BC", "did you mean //nas/a/b\u00fc? (%C3 is decoded in smb:// only)"),
        ("//nas/bu\u0308ro", "(NFD); try the composed form: //nas/b\u00fcro"),
        ("smb://nas/User%20Homes", ""),
        ("//nas/50%", ""),
        ("//nas/a%00b", ""),
        ("//nas/a%ff", ""),
        ("//[fe80::1%eb0]/x", ""),
    ],
)
def test_a_hint_says_how_a_name_may_be_spelled(text, hint):
    sentence = spelling_hint(parse(text))
    assert hint in sentence and bool(hint) == bool(sentence)


@pytest.mark.parametrize("text", ["//nas/media", "//nas:1445/media/films", "//[fe80::1]/x"])
def test_a_target_is_written_as_it_was_read(text):
    assert parse(text).name == text


@pytest.mark.parametrize("text", ["/mnt/media", "/", "./x", "../x/y", ".", "..", "/mnt/a:b@c"])
def test_what_only_a_path_can_be_is_a_folder_of_this_host(text):
    target = parse(text)
    assert target == make_local(text)
    assert (target.path, target.name, target.host, target.share) == (text, text, "", "")


@pytest.mark.parametrize("text", ["media", "nas/media", "mine@home", "a:b@c"])
def test_a_bare_name_is_a_folder_where_one_is_there(text):
    assert parse(text, lambda path: True).path == text
    with pytest.raises(Refused, match="is not a share or a folder"):
        parse(text, lambda path: False)


@pytest.mark.parametrize("text", ["//nas/media", "\\\\nas\\media", "smb://nas/media", "//nas"])
def test_a_share_is_never_taken_for_a_folder(text):
    """Whatever lies there: //nas/media is a path too."""
    if text == "//nas":
        with pytest.raises(Refused, match="no share given"):
            parse(text, lambda path: True)
    else:
        assert parse(text, lambda path: True) == Target("nas", 445, "media", "")


@pytest.mark.parametrize("text", ["/mnt/a\0b", "a\0b", ".../x", ".hidden", "~/x", ""])
def test_what_is_neither_is_refused(text):
    with pytest.raises(Refused, match="not a share or a folder"):
        parse(text)


def test_a_folder_whose_mount_is_known_is_named_as_its_share():
    assert Target("nas", 445, "media", "films", path="/mnt/films").name == "//nas/media/films"


SHARE = parse("//nas/media/films")


def test_a_plain_name_lies_below_the_share() -> None:
    assert parse_file("old/a b.mkv", SHARE) == NamedFile("server", "old\\a b.mkv")
    assert parse_file("old\\a.mkv", SHARE) == NamedFile("server", "old\\a.mkv")


def test_a_path_is_this_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    here = NamedFile("client", str(tmp_path / "f"))
    assert parse_file("./f", SHARE) == here
    assert parse_file(str(tmp_path / "f"), SHARE) == here
    assert parse_file("f", None) == here


@pytest.mark.parametrize("text", ["", "..", "a/../b", "a\x01", "a?", 'a"b', "a/./b", "C:\\x"])
def test_what_cannot_be_a_file_on_a_share_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="--file"):
        parse_file(text, SHARE)


@pytest.mark.parametrize("kind", ["folder", "fifo", "missing", "nul"])
def test_what_is_no_regular_file_here_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "it"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    text = f"{path}\0" if kind == "nul" else str(path)
    with pytest.raises(Refused, match="--file") as refused:
        parse_file(text, None)
    assert refused.value.kind == "usage"


def test_a_mounted_folder_as_target_wants_the_share_itself() -> None:
    with pytest.raises(Refused, match="//host/share"):
        parse_file("a", make_local("/mnt/media"))


def test_a_device_is_a_block_device(tmp_path: Path) -> None:
    assert parse_device("server:/dev/sdb") == NamedDevice("server", "/dev/sdb")
    for text in ("/dev/null", str(tmp_path), "/dev/there-is-none", "server:sdb", "a\0b"):
        with pytest.raises(Refused, match="--device"):
            parse_device(text)


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: loop devices need root")
def test_a_block_device_is_no_file_and_the_other_way_round(tmp_path: Path) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(1 << 20)
    outcome = subprocess.run(
        ["losetup", "--find", "--show", "--read-only", str(image)],
        capture_output=True,
        text=True,
        check=True,
    )
    node = outcome.stdout.strip()
    try:
        assert parse_device(node) == NamedDevice("client", node)
        with pytest.raises(Refused, match="--device"):
            parse_file(node, None)
    finally:
        subprocess.run(["losetup", "--detach", node], check=True)


@pytest.mark.parametrize(
    ("text", "url", "name"),
    [
        ("http://nas:9100/metrics", MetricsUrl("nas", 9100, "/metrics", False), None),
        ("https://nas", MetricsUrl("nas", 443, "/metrics", True), "https://nas:443/metrics"),
        ("http://[fd00::1]:9922/m", MetricsUrl("fd00::1", 9922, "/m", False), None),
    ],
)
def test_an_address_of_metrics_is_understood_and_named_again(text, url, name):
    assert parse_metrics(text) == url and url.name == (name or text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nas:9100",
        "ftp://nas/m",
        "http://",
        "http://me:pw@nas/",
        "http://nas/a b",
        "http://nas/m?token=pw",
    ],
)
def test_any_other_address_of_metrics_is_refused_without_its_secret(text):
    with pytest.raises(Refused, match="--metrics: ") as refused:
        parse_metrics(text)
    assert refused.value.kind == "usage" and "pw" not in refused.value.text


@pytest.mark.parametrize(
    ("text", "peer"),
    [
        ("iperf3://nas", TcpPeer("nas", 5201)),
        ("iperf3://nas:5999", TcpPeer("nas", 5999)),
        ("iperf3://b\u00fcro.", TcpPeer("xn--bro-hoa", 5201)),
        ("iperf3://[fe80::1]:5202/", TcpPeer("fe80::1", 5202)),
    ],
)
def test_a_peer_is_understood_and_named_again(text, peer):
    assert parse_peer(text) == peer
    assert parse_peer(peer.name) == peer


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nas",
        "iperf://nas",
        "iperf3:nas",
        "iperf3://",
        "iperf3://nas:0",
        "iperf3://a b",
        "ssh://x",
    ],
)
def test_any_other_peer_is_refused_with_a_sentence(text):
    with pytest.raises(Refused) as refused:
        parse_peer(text)
    assert refused.value.kind == "usage"
    assert "--tcp-peer" in refused.value.text
