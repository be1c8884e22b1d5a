"""smbclient as an engine: real logins at a real smbd, no secret to be seen, one line of error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from probes.core.records import Access, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.programs import smbclient
from probes.programs.samba import private_samba
from probes.system import tools
from tests.living import entered

PASSWORD = "correct horse 47 %&'\"$"
FOLDER = "bottleneck-0123456789abcdef"


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A share with a folder, by a Samba of this module."""
    shared = tmp_path_factory.mktemp("shared")
    (shared / FOLDER).mkdir()
    (shared / FOLDER / "twelve").write_bytes(b"twelve bytes")
    with private_samba(shared, password=PASSWORD, options=["server min protocol = NT1"]) as server:
        yield replace(server.endpoint, folder=FOLDER)


@pytest.mark.parametrize("dialect", smbclient.PROTOCOLS)
def test_commands_are_told_apart_in_every_dialect(peer: Endpoint, dialect: str) -> None:
    """The output of one command is never taken for the answer to another."""
    with smbclient.connect(peer, dialect) as client:
        assert "twelve" in client.run(f"ls {smbclient.quoted_name(FOLDER)}\\*", 10)
        assert client.run("cd .", 10).strip() == ""
        assert "twelve" in client.run(f"ls {smbclient.quoted_name(FOLDER)}\\*", 10)


def test_the_size_of_a_file_is_told_and_a_missing_one_has_none(peer: Endpoint) -> None:
    with smbclient.connect(peer, "3.1.1") as client:
        assert client.size_bytes(f"{FOLDER}\\twelve", 10) == 12
        assert client.size_bytes(f"{FOLDER}\\thirteen", 10) is None


def test_an_error_of_a_command_is_its_own_line(peer: Endpoint) -> None:
    with smbclient.connect(peer, "3.1.1") as client:
        with pytest.raises(
            smbclient.StatusError, match=r"^NT_STATUS_OBJECT_NAME_NOT_FOUND opening"
        ):
            client.run('get "nothing" /dev/null', 10)
        assert client.run("cd .", 10).strip() == ""


def test_a_server_that_goes_ends_the_command_with_a_word(tmp_path: Path, peer: Endpoint) -> None:
    with private_samba(tmp_path, password="x") as server:
        there = replace(peer, port=server.port, access=Access(server.username, "x"))
        with smbclient.connect(there, "3.1.1") as client:
            os.killpg(server.process_id, 9)
            with pytest.raises((smbclient.StatusError, ConnectionError)):
                client.run("ls", 10)


def test_the_password_is_in_no_argument_and_in_no_variable(peer: Endpoint) -> None:
    with smbclient.connect(peer, "3.1.1") as client:
        proc = Path(f"/proc/{client.pid}")
        for name in ("cmdline", "environ"):
            assert PASSWORD.encode() not in (proc / name).read_bytes()
        opened = {str(link.readlink()) for link in (proc / "fd").iterdir()}
        assert not [each for each in opened if each.startswith("/tmp")]


def test_it_ends_with_the_block(peer: Endpoint) -> None:
    with pytest.raises(ZeroDivisionError), smbclient.connect(peer, "3.1.1") as client:
        raise ZeroDivisionError
    assert not Path(f"/proc/{client.pid}").exists()


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"access": Access("bottleneck", "wrong")}, "login", "LOGON_FAILURE; check user and pass"),
        ({"access": Access("nobody-at-all", "x")}, "login", "LOGON_FAILURE; check user and pass"),
        ({"share": "absent"}, "share", "BAD_NETWORK_NAME; check the name"),
        ({"port": 1}, "unreachable", "CONNECTION_REFUSED.*check that the port is open"),
    ],
)
def test_a_refusal_names_the_place_the_reason_and_the_remedy(
    peer: Endpoint, change: dict[str, object], kind: str, text: str
) -> None:
    there = replace(peer, **change)  # type: ignore[arg-type]
    with pytest.raises(Refused, match=text) as refused, smbclient.connect(there, "3.1.1"):
        pass
    assert refused.value.kind == kind
    assert refused.value.text.startswith(f"//127.0.0.1:{there.port}/{there.share}: login")
    assert "\n" not in refused.value.text and PASSWORD not in refused.value.text


def test_no_other_dialect_is_spoken_than_the_one_asked_for(tmp_path: Path) -> None:
    newer = ["server max protocol = SMB2_10"]
    with private_samba(tmp_path, password="x", options=newer) as server:
        peer = server.endpoint
        with pytest.raises(Unavailable, match="does not agree with smbclient on SMB3_11"):
            entered(smbclient.connect(peer, "3.1.1"))


def test_without_smbclient_the_reason_names_the_remedy(
    peer: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "find", lambda name: None)
    assert smbclient.version() is None
    with pytest.raises(Unavailable, match="install smbclient on the server"):
        entered(smbclient.connect(peer, "3.1.1"))


@pytest.mark.parametrize("name", ['a"b', "a\nb", "a\0b"])
def test_a_name_that_could_be_more_than_a_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="characters"):
        smbclient.quoted_name(name)


@pytest.mark.parametrize(
    ("access", "reason"),
    [
        (Access("me%you", "x"), "%"),
        (Access("me", "two\nlines"), "line break"),
        (Access(), "or --allow-guest"),
    ],
)
def test_a_login_that_smbclient_would_misread_is_not_tried(
    peer: Endpoint, access: Access, reason: str
) -> None:
    with pytest.raises(Unavailable, match=reason):
        entered(smbclient.connect(replace(peer, access=access), "3.1.1"))


def test_a_guest_logs_in_without_a_password(tmp_path: Path) -> None:
    options = ["map to guest = bad user"]
    with private_samba(
        tmp_path, password="x", options=options, share_options=["guest ok = yes"]
    ) as server:
        peer = replace(server.endpoint, access=Access(allow_guest=True))
        with smbclient.connect(peer, "3.1.1") as client:
            assert client.run("cd .", 10).strip() == ""


SIGNS = ["client smb3 signing algorithms=AES-128-GMAC"]
ENCRYPTS = ["client smb3 encryption algorithms=AES-256-GCM"]


@pytest.mark.parametrize(
    ("dialect", "signing", "encryption", "version", "options", "names"),
    [
        ("3.1.1", None, None, "4.17.12", [], (None, None)),
        ("2.1", "hmac-sha256", None, "4.17.12", [], ("hmac-sha256", None)),
        ("3.0", "aes-cmac", None, "4.9.5", [], ("aes-cmac", None)),
        ("3.0.2", None, "aes-128-ccm", "4.9.5", [], (None, "aes-128-ccm")),
        ("smb1", "md5", None, "4.17.12", [], ("md5", None)),
        ("3.1.1", "aes-gmac", None, "4.17.12", SIGNS, ("aes-gmac", None)),
        ("3.1.1", "aes-gmac", "aes-256-gcm", "4.17.12", ENCRYPTS, (None, "aes-256-gcm")),
        ("3.1.1", "aes-gmac", None, "4.14.2", [], ("aes-cmac", None)),
        ("3.1.1", None, "aes-128-gcm", "4.14.2", [], (None, "unnamed")),
        ("3.1.1", "aes-gmac", None, None, [], ("aes-cmac", None)),
    ],
)
def test_what_protects_the_copy_is_pinned_or_known(
    dialect: str,
    signing: str | None,
    encryption: str | None,
    version: str | None,
    options: list[str],
    names: tuple[str | None, str | None],
) -> None:
    assert smbclient.algorithms(dialect, signing, encryption, version) == (options, *names)


def test_the_pinned_algorithm_is_the_one_in_use(tmp_path: Path) -> None:
    """A server that has no other one answers."""
    options = ["server signing = mandatory", "server smb3 signing algorithms = AES-128-CMAC"]
    with private_samba(tmp_path, password="x", options=options) as server:
        peer = server.endpoint
        pinned, _, _ = smbclient.algorithms("3.1.1", "aes-cmac", None, "4.17.12")
        with smbclient.connect(peer, "3.1.1", pinned) as client:
            assert client.run("cd .", 10).strip() == ""
