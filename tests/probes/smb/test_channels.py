"""Further channels of a session, on a real smbd: they carry the files that the first opened."""

from __future__ import annotations

import secrets
from dataclasses import replace

import pytest

from probes.core.records import Access, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.smb.login import open_session
from probes.smb.smbprotocol_session import open_channel

BYTES = 64 << 10


@pytest.fixture
def peer(smbd):
    """The share of a server that speaks every dialect."""
    server = smbd[1]
    access = Access(server.username, server.password)
    return Endpoint(host=server.host, port=server.port, share=server.share, access=access)


@pytest.mark.parametrize("security", ["plain", "signed", "encrypted"])
@pytest.mark.parametrize("dialect", ["3.0", "3.0.2", "3.1.1"])
def test_what_one_channel_writes_another_reads(peer, dialect, security):
    sent, got = memoryview(secrets.token_bytes(BYTES)), memoryview(bytearray(BYTES))
    with open_session(peer, dialect, security) as first:
        handle = first.create_file(f"channels-{secrets.token_hex(4)}")
        second, third = open_channel(first, peer), open_channel(first, peer)
        assert second.facts.signing == first.facts.signing
        assert second.facts.encryption == first.facts.encryption
        with second.pipe(handle) as pipe:
            pipe.write(0, sent)
            assert pipe.wait().moved_bytes == BYTES
        for reading in (third, first):
            with reading.pipe(handle) as pipe:
                pipe.read(0, got)
                assert pipe.wait().view == sent
        second.disconnect()
        third.disconnect()
        first.close(handle)


def test_the_session_outlives_its_further_channels(peer):
    with open_session(peer, "3.1.1") as first:
        open_channel(first, peer).disconnect()
        first.close(first.create_file(f"channels-{secrets.token_hex(4)}"))


@pytest.mark.parametrize("dialect", ["2.0.2", "2.1"])
def test_an_old_dialect_has_one_connection(peer, dialect):
    with open_session(peer, dialect) as first, pytest.raises(Unavailable, match="one connection"):
        open_channel(first, peer)


def test_a_server_without_channels_has_one_connection(share):
    with (
        share("server multi channel support = no") as (peer, _, _),
        open_session(peer, "3.1.1") as first,
        pytest.raises(Unavailable, match="one connection"),
    ):
        open_channel(first, peer)


def test_nobody_else_joins_a_session(peer):
    wrong = replace(peer, access=Access(peer.access.username, "wrong"))
    with open_session(peer, "3.1.1") as first:
        with pytest.raises((Refused, Unavailable)):
            open_channel(first, wrong)
        first.close(first.create_file(f"channels-{secrets.token_hex(4)}"))
