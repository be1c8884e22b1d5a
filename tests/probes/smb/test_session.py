"""Logging in to real servers: once, signed and encrypted where they require it, in plain words."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from probes.core.records import Access, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.smb import frames, session
from probes.smb.login import open_session
from probes.smb.session import UNENCRYPTED, security_of
from tests.living import entered

NT1 = "server min protocol = NT1"
PINNED = ["2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"]
DIALECTS = pytest.mark.parametrize("dialect", ["", "smb1"])


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A server that requires nothing and speaks everything."""
    from probes.programs.samba import private_samba

    folder = tmp_path_factory.mktemp("plain")
    with private_samba(str(folder), password="right", options=[NT1]) as server:
        yield server.endpoint


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ["server signing = mandatory"],
            ["hmac-sha256", "hmac-sha256", "aes-cmac", "aes-cmac", "aes-gmac", "md5"],
        ),
        (
            ["server smb encrypt = required"],
            [None, None, "aes-128-ccm", "aes-128-ccm", "aes-128-gcm", None],
        ),
    ],
)
def test_what_the_server_requires_is_used(
    share: Any, options: list[str], expected: list[str | None]
) -> None:
    with share(NT1, *options) as (peer, _, _):
        for dialect, name in zip([*PINNED, "smb1"], expected, strict=True):
            try:
                with open_session(peer, dialect) as session:
                    session.close(session.create_folder("x"))
                    assert name in (session.facts.signing, session.facts.encryption)
            except Refused as refused:
                assert name is None, refused
                assert refused.kind == "permission"


@pytest.mark.parametrize(
    ("dialect", "security", "words"),
    [
        ("smb1", "encrypted", "SMB1 has no encryption"),
        ("smb1", "signed", "does not sign in SMB1"),
        ("2.0.2", "encrypted", r"no supported encryption in SMB 2\.0\.2"),
        ("2.1", "encrypted", r"no supported encryption in SMB 2\.1"),
    ],
)
def test_a_security_that_a_dialect_lacks_is_skipped_without_a_login(
    plain: Endpoint, dialect: str, security: str, words: str
) -> None:
    # with this password any login would be Refused
    wrong = replace(plain, access=Access("bottleneck", "wrong"))
    with pytest.raises(Unavailable, match=words):
        entered(open_session(wrong, dialect, security))


@pytest.mark.long
def test_plain_is_refused_before_the_login_where_signing_is_required(share: Any) -> None:
    with share(NT1, "server signing = mandatory") as (peer, _, _):
        wrong = replace(peer, access=Access("bottleneck", "wrong"))
        for dialect in (*PINNED, "smb1"):
            with pytest.raises(Unavailable, match="requires signing"):
                entered(open_session(wrong, dialect, "plain"))


def test_an_encrypted_share_is_neither_plain_nor_signed(share: Any) -> None:
    with share(share_options=["smb encrypt = required"]) as (peer, _, _):
        for dialect in ("3.0", "3.1.1"):
            for security in ("plain", "signed", UNENCRYPTED):
                with pytest.raises(Unavailable, match="requires encryption"):
                    entered(open_session(peer, dialect, security))


def test_what_must_not_be_encrypted_is_signed_where_the_server_says_so(share: Any) -> None:
    with share("server signing = mandatory") as (peer, _, _):
        for dialect in ("2.1", "3.1.1"):
            with open_session(peer, dialect, UNENCRYPTED) as session:
                assert session.facts.signing and session.facts.encryption is None


@pytest.mark.parametrize(
    ("signing", "encryption", "security"),
    [
        ("", "", ""),
        ("on", "", "signed"),
        ("on", "off", "signed"),
        ("off", "", "plain"),
        ("off", "off", "plain"),
        ("", "off", UNENCRYPTED),
        *((signing, "on", "encrypted") for signing in ("", "on", "off")),
    ],
)
def test_what_signing_and_encryption_come_to(signing: str, encryption: str, security: str) -> None:
    assert security_of(signing, encryption) == security


def test_guests_have_no_key_to_sign_or_encrypt_with(share: Any) -> None:
    options = (NT1, "map to guest = bad user", "server signing = auto")
    with share(*options, share_options=["guest ok = yes"]) as (peer, _, _):
        guest = replace(peer, access=Access(allow_guest=True))
        for dialect, security in [
            *((dialect, "signed") for dialect in (*PINNED, "smb1")),
            ("3.0", "encrypted"),
            ("3.1.1", "encrypted"),
        ]:
            with pytest.raises(Unavailable, match="have no key"):
                entered(open_session(guest, dialect, security))
        with open_session(guest, "3.1.1", "plain") as session:
            assert session.facts.signing is None
        stranger = replace(peer, access=Access("stranger", "x"))
        with pytest.raises(Refused, match="treated stranger as a guest"):
            entered(open_session(stranger, "3.1.1", "signed"))


def test_guests_of_a_server_that_requires_signing_are_told_to_name_a_user(share: Any) -> None:
    options = ("map to guest = bad user", "server signing = mandatory")
    with share(*options, share_options=["guest ok = yes"]) as (peer, _, _):
        guest = replace(peer, access=Access(allow_guest=True))
        with pytest.raises(Refused, match="guests cannot sign"):
            entered(open_session(guest, "3.1.1"))


def test_a_security_that_does_not_exist_is_a_mistake_of_ours(plain: Endpoint) -> None:
    with pytest.raises(ValueError, match="security .* unknown"), open_session(plain, "", "secret"):
        pass


@DIALECTS
@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"access": Access("bottleneck", "wrong-secret")}, "login", "wrong user or password"),
        ({"access": Access("nobody-here", "x")}, "login", "wrong user or password"),
        ({"access": None}, "login", "no user given"),
        ({"share": "missing"}, "share", "share not found"),
        ({"host": "no.such.host.invalid"}, "unreachable", "does not resolve"),
    ],
)
def test_what_the_user_can_mend_is_one_line(
    plain: Endpoint, dialect: str, change: dict[str, Any], kind: str, words: str
) -> None:
    with pytest.raises(Refused, match=words) as caught:
        entered(open_session(replace(plain, **change), dialect))
    assert caught.value.kind == kind
    assert caught.value.text.startswith(change.get("host", plain.host))
    assert "\n" not in caught.value.text and "wrong-secret" not in caught.value.text


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EINVAL, "the route to it is a blackhole; see `ip route get 192.0.2.1`"),
        (errno.EACCES, "the route to it is prohibited; see `ip route get 192.0.2.1`"),
        (errno.EMFILE, "too many open files; check the network"),
    ],
)
def test_a_route_that_leads_nowhere_is_named(
    monkeypatch: pytest.MonkeyPatch, plain: Endpoint, number: int, reason: str
) -> None:
    def fails(host: str, port: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(frames, "first_to_answer", fails)
    with pytest.raises(Refused) as caught:
        frames.connect(replace(plain, host="192.0.2.1"))
    assert caught.value.text.endswith(f"connect: {reason}")


@DIALECTS
def test_a_missing_folder_is_named(plain: Endpoint, dialect: str) -> None:
    with (
        pytest.raises(Refused, match=r"no\\such\\folder") as caught,
        open_session(plain, dialect) as s,
    ):
        s.create_folder(r"no\such\folder")
    assert caught.value.kind == "share"


@DIALECTS
def test_a_wrong_password_is_tried_once(share: Any, dialect: str) -> None:
    with share(NT1) as (peer, _, server):
        policy = ["pdbedit", "-s", server.configuration, "-P", "bad lockout attempt", "-C", "2"]
        subprocess.run(policy, check=True, capture_output=True)
        wrong = replace(peer, access=Access(server.username, "wrong"))
        with pytest.raises(Refused, match="wrong user or password"), open_session(wrong, dialect):
            pass
        with open_session(peer, dialect):
            pass  # a second attempt would have locked the account
        for words in ("wrong user or password", "locked|wrong user or password"):
            with pytest.raises(Refused, match=words), open_session(wrong, dialect):
                pass
        with pytest.raises(Refused, match="locked") as caught, open_session(peer, dialect):
            pass
        assert caught.value.kind == "login"


def test_a_guest_is_taken_only_where_that_was_allowed(share: Any) -> None:
    options = (NT1, "map to guest = bad user")
    with share(*options, share_options=["guest ok = yes"]) as (peer, _, _):
        for dialect in ("", "smb1"):
            for allowed in (False, True):  # one failed login ends the run, whatever is allowed
                stranger = replace(peer, access=Access("stranger", "x", allow_guest=allowed))
                with pytest.raises(Refused, match="guest"):
                    entered(open_session(stranger, dialect))
            guest = replace(peer, access=Access(allow_guest=True))
            with open_session(guest, dialect) as session:
                session.close(session.create_folder("x"))


def test_a_read_only_share_is_a_matter_of_rights(share: Any) -> None:
    with share(NT1, share_options=["read only = yes"]) as (peer, _, _):
        for dialect in ("", "smb1"):
            with pytest.raises(Refused) as caught, open_session(peer, dialect) as session:
                session.create_folder("x")
            assert caught.value.kind == "permission"


def test_a_dialect_that_is_not_offered_is_unavailable(share: Any) -> None:
    options = ("server min protocol = SMB2_02", "server max protocol = SMB3_00")
    with share(*options) as (peer, _, _):
        for dialect, why in (
            ("smb1", r"SMB1 is off on the server \(good\)"),
            ("3.1.1", r"does not offer SMB 3\.1\.1"),
            ("4.0", "must be one of"),
        ):
            with pytest.raises(Unavailable, match=why):
                entered(open_session(peer, dialect))
        with open_session(peer) as session:
            assert session.facts.dialect == "3.0"


def test_a_server_of_smb1_alone_is_reached_without_a_second_login(share: Any) -> None:
    with share(NT1, "server max protocol = NT1") as (peer, _, _), open_session(peer) as session:
        assert session.facts.dialect == "smb1"


def test_a_closed_port_is_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        peer = Endpoint(host="127.0.0.1", port=taken.getsockname()[1], access=Access("a", "b"))
        with pytest.raises(Refused, match="refused") as caught, open_session(peer):
            pass
    assert caught.value.kind == "unreachable"


@contextmanager
def impostor(work: Callable[[socket.socket], None]) -> Iterator[Endpoint]:
    """Listens and answers as no SMB server does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=work, args=[sock], daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        access = Access("a", "b")
        yield Endpoint(host="127.0.0.1", port=listener.getsockname()[1], share="s", access=access)
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "greeting",
    [b"SSH-2.0-OpenSSH_9.2\r\n", b"\0\xff\xff\xff", b"\0\0\0\x04junk", b"\0\0\x10\0\xfeSMB", b""],
)
def test_what_is_no_file_server_is_unreachable(
    greeting: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "STEP_SECONDS", 1.0)

    def greet(sock: socket.socket) -> None:
        with sock:
            sock.sendall(greeting)
            sock.settimeout(5)
            with contextlib.suppress(OSError):
                while greeting and sock.recv(4096):
                    pass

    with impostor(greet) as peer, pytest.raises(Refused) as caught, open_session(peer):
        pass
    assert caught.value.kind == "unreachable" and "check the port" in caught.value.text


def test_a_server_that_says_nothing_costs_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "STEP_SECONDS", 0.5)

    def listen(sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while sock.recv(4096):
                pass

    with impostor(listen) as peer, pytest.raises(Refused, match="no answer"), open_session(peer):
        pass


@pytest.mark.parametrize(("status", "opens"), [(0xC0000017, True), (0xC0000022, False)])
def test_a_server_short_of_memory_for_a_moment_is_asked_for_the_share_once_more(
    plain: Endpoint, monkeypatch: pytest.MonkeyPatch, status: int, opens: bool
) -> None:
    """And for nothing else: what is denied stays denied."""
    from smbprotocol.exceptions import SMB2ErrorResponse, SMBResponseException
    from smbprotocol.header import SMB2HeaderResponse
    from smbprotocol.tree import TreeConnect

    said = SMB2HeaderResponse()
    said["status"] = status
    said["data"] = SMB2ErrorResponse()
    real, trees = TreeConnect.connect, []

    def connect(tree: Any, **options: Any) -> None:
        trees.append(tree)
        if len(trees) == 1:
            raise SMBResponseException(said)
        real(tree, **options)

    monkeypatch.setattr(TreeConnect, "connect", connect)
    if opens:
        with open_session(plain) as session:
            assert session.facts.dialect == "3.1.1"
    else:
        with pytest.raises(Refused), open_session(plain):
            pass
    assert len(trees) == 1 + opens


def test_a_dead_address_in_front_of_a_good_one_costs_no_time_out(monkeypatch):
    """The dead one takes no more connections; its time-out would outlast this test."""
    with (
        socket.create_server(("127.0.0.1", 0)) as good,
        socket.socket() as dead,
        contextlib.ExitStack() as stack,
    ):
        port = good.getsockname()[1]
        dead.bind(("127.0.0.2", port))
        dead.listen(0)
        for _ in range(3):
            full = stack.enter_context(socket.socket())
            full.setblocking(False)
            full.connect_ex(("127.0.0.2", port))
        addresses = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{n}", port)) for n in (2, 1)
        ]
        real = socket.getaddrinfo

        def look_up(host, *arguments, **options):
            return addresses if host == "nas.example" else real(host, *arguments, **options)

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        monkeypatch.setattr(frames, "CONNECT_SECONDS", 3600.0)
        with frames.connect(Endpoint(host="nas.example", port=port)) as connection:
            assert connection.getpeername()[0] == "127.0.0.1"
