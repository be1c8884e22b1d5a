"""Every dialect with every signature and cipher of Samba, and odd servers: whole files arrive.

What was pushed is read from the server's disk, what is pulled from the session; both have the
payload's SHA-256. Which algorithm was used the server itself says, by smbstatus, to root.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from probes.core.records import Endpoint
from probes.core.stage import Unavailable
from probes.files import payload
from probes.programs.samba import Samba, private_samba
from probes.smb import transfer
from probes.smb.login import open_session
from probes.smb.pipe import Pipe
from probes.smb.session import Session

SIZE = 8 * 1024 * 1024 + 4321
SEED = "c0ffee"
RING = payload.make_ring(bytes.fromhex(SEED))
NT1 = "server min protocol = NT1"
PLAIN = ("plain", None, None)

CIPHERS = ("aes-128-gcm", "aes-128-ccm", "aes-256-gcm", "aes-256-ccm")
COMBINATIONS = [
    *(("smb1", *how) for how in (PLAIN, ("signed", "md5", None))),
    *((d, *how) for d in ("2.0.2", "2.1") for how in (PLAIN, ("signed", "hmac-sha256", None))),
    *(
        (dialect, *how)
        for dialect in ("3.0", "3.0.2")
        for how in (PLAIN, ("signed", "aes-cmac", None), ("encrypted", None, "aes-128-ccm"))
    ),
    ("3.1.1", *PLAIN),
    *(("3.1.1", "signed", name, None) for name in ("aes-gmac", "aes-cmac", "hmac-sha256")),
    *(("3.1.1", "encrypted", None, name) for name in CIPHERS),
]
SAMBA_CALLS = {
    "md5": "HMAC-MD5",
    "hmac-sha256": "HMAC-SHA256",
    "aes-cmac": "AES-128-CMAC",
    "aes-gmac": "AES-128-GMAC",
}
"""smbstatus's names of the signatures; those of the ciphers are ours in capitals."""


class SmbHost(NamedTuple):
    """A server, its peer to log in to, and the folder that it shares."""

    peer: Endpoint
    folder: Path
    server: Samba


@pytest.fixture(scope="module")
def any_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmbHost]:
    """A server that requires nothing and grants everything."""
    folder = tmp_path_factory.mktemp("willing")
    options = [NT1, "server signing = auto"]
    with private_samba(str(folder), password="right", options=options) as server:
        yield SmbHost(server.endpoint, folder, server)


def blocks() -> Iterator[memoryview]:
    for offset in range(0, SIZE, 1 << 20):
        yield payload.block(RING, offset, min(1 << 20, SIZE - offset))


def digest_of_payload() -> str:
    digest = hashlib.sha256()
    for block in blocks():
        digest.update(block)
    return digest.hexdigest()


def push_all(pipe: Pipe) -> None:
    shape = pipe.prepare("write", 0, 0)
    for _ in transfer.push(pipe, SIZE, *shape, lambda *place: payload.block(RING, *place)):
        pass
    transfer.finish(pipe)


def pull_all(pipe: Pipe) -> str:
    """Returns the SHA-256 of the pulled file."""
    arrived = bytearray(SIZE)

    def keep(offset: int, view: memoryview) -> None:
        arrived[offset : offset + len(view)] = view

    for _ in transfer.fetch(pipe, iter([(0, SIZE)]), *pipe.prepare("read", 0, 0), keep):
        pass
    return hashlib.sha256(arrived).hexdigest()


def there_and_back(session: Session, folder: Path) -> None:
    """Pushes the payload, looks at it on the server's disk, pulls it again; leaves nothing."""
    handle = session.create_file("file")
    with session.pipe(handle) as pipe:
        push_all(pipe)
        on_disk = hashlib.sha256((folder / "file").read_bytes()).hexdigest()
        assert on_disk == digest_of_payload()
        assert pull_all(pipe) == on_disk
    session.close(handle)
    assert not list(folder.iterdir())


def smbstatus_of(server: Samba) -> dict[str, Any]:
    """Returns the server's only session and share connection, from smbstatus."""
    command = ["smbstatus", "--configfile", server.configuration, "--json"]
    status = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    (session,) = status["sessions"].values()
    (tree,) = status["tcons"].values()
    return {"cipher": session["encryption"]["cipher"], "tree": tree}


@pytest.mark.long
@pytest.mark.parametrize(("dialect", "security", "signing", "encryption"), COMBINATIONS)
def test_every_combination_carries_whole_files_and_the_server_saw_it_so(
    any_host: SmbHost, dialect: str, security: str, signing: str | None, encryption: str | None
) -> None:
    preferred = tuple(filter(None, (signing, encryption)))
    with open_session(any_host.peer, dialect, security, preferred) as session:
        facts = session.facts
        assert (facts.dialect, facts.signing, facts.encryption) == (dialect, signing, encryption)
        there_and_back(session, any_host.folder)
        if os.geteuid() != 0:
            return  # smbstatus answers to root alone; the files have arrived all the same
        status = smbstatus_of(any_host.server)
    tree = status["tree"]
    assert tree["encryption"]["degree"] == ("full" if encryption else "none")
    if encryption:
        assert status["cipher"] == encryption.upper()
    elif signing:
        assert tree["signing"] == {"cipher": SAMBA_CALLS[signing], "degree": "full"}
    else:
        assert tree["signing"]["degree"] == "none"


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "share_options", "dialects", "required_by"),
    [
        (["server signing = mandatory"], [], ["smb1", "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"], {}),
        (
            ["server signing = mandatory", "server smb3 signing algorithms = HMAC-SHA256"],
            [],
            ["3.1.1"],
            {},
        ),
        (
            ["server smb encrypt = required"],
            [],
            ["3.0", "3.0.2", "3.1.1"],
            {"encryption": "server"},
        ),
        (["smb encrypt = required"], [], ["3.0", "3.1.1"], {"encryption": "server"}),
        (["server smb encrypt = desired"], [], ["3.0", "3.1.1"], {"encryption": "server"}),
        ([], ["smb encrypt = required"], ["3.0", "3.1.1"], {"encryption": "share"}),
        ([], ["server smb encrypt = required"], ["3.0.2"], {"encryption": "share"}),
        (
            ["server smb3 encryption algorithms = AES-256-GCM"],
            ["smb encrypt = required"],
            ["3.1.1"],
            {"encryption": "share"},
        ),
    ],
)
def test_what_a_server_forces_is_done_and_said(
    share: Any,
    options: list[str],
    share_options: list[str],
    dialects: list[str],
    required_by: dict[str, str],
) -> None:
    with share(NT1, *options, share_options=share_options) as (peer, folder, _):
        for dialect in dialects:
            with open_session(peer, dialect) as session:
                there_and_back(session, folder)
                facts = session.facts
            assert facts.encryption_required_by == required_by.get("encryption")
            signs = "server signing = mandatory" in options
            assert facts.signing_required_by == ("server" if signs else None)
            assert bool(facts.signing) is signs
            assert bool(facts.encryption) is ("encryption" in required_by)
            with pytest.raises(Unavailable, match="requires"), open_session(peer, dialect, "plain"):
                pass


def test_a_cipher_that_the_server_lacks_is_unavailable_before_any_login(share: Any) -> None:
    with share("server smb3 encryption algorithms = AES-128-GCM") as (peer, _, _):
        with (
            pytest.raises(Unavailable, match="no supported encryption"),
            open_session(peer, "3.1.1", "encrypted", ("aes-256-ccm",)),
        ):
            pass
        with open_session(peer, "3.1.1", "encrypted") as session:
            assert session.facts.encryption == "aes-128-gcm"


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "dialects"),
    [
        (["smb2 max credits = 8"], ["2.0.2", "2.1", "3.1.1"]),
        (["smb2 max read = 65536"], ["2.1", "3.1.1"]),
        (["smb2 max write = 65536"], ["2.1", "3.1.1"]),
        (["smb2 max read = 100000", "smb2 max write = 100000"], ["3.1.1"]),
        (["smb2 max read = 65536", "smb2 max write = 65536", "smb2 max credits = 1"], ["3.1.1"]),
        (["max mux = 1"], ["smb1"]),
        (["max mux = 2", "server signing = mandatory"], ["smb1"]),
        (["max xmit = 4096"], ["smb1"]),
        (["max xmit = 2048", "large readwrite = no"], ["smb1"]),
        (["max xmit = 65535", "server signing = mandatory"], ["smb1"]),
        (["smb2 leases = no"], ["3.1.1"]),
        (["aio read size = 0", "aio write size = 0"], ["smb1", "2.1", "3.1.1"]),
        (["use sendfile = yes", "min receivefile size = 16384"], ["smb1", "2.1", "3.1.1"]),
        (["server multi channel support = no", "smb2 max trans = 65536"], ["3.1.1"]),
    ],
    ids=", ".join,
)
def test_odd_servers_get_whole_files_too(
    share: Any, options: list[str], dialects: list[str]
) -> None:
    with share(NT1, *options) as (peer, folder, _):
        for dialect in dialects:
            with open_session(peer, dialect) as session:
                there_and_back(session, folder)


@pytest.mark.long
@pytest.mark.parametrize(
    "share_options",
    [
        ["oplocks = no"],
        ["level2 oplocks = no"],
        ["strict locking = yes", "strict sync = yes", "sync always = yes"],
        ["strict allocate = yes"],
        ["case sensitive = yes"],
    ],
    ids=", ".join,
)
def test_odd_shares_get_whole_files_too(share: Any, share_options: list[str]) -> None:
    with share(NT1, share_options=share_options) as (peer, folder, _):
        for dialect in ("smb1", "3.1.1"):
            with open_session(peer, dialect) as session:
                there_and_back(session, folder)
