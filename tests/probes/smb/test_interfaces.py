"""The server's list of interfaces: recorded from Samba, and spoilt in every way."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from probes.smb.facts import MOST_INTERFACES, Interface
from probes.smb.facts import interfaces as parse
from probes.smb.session import open_session

RECORDED = bytes.fromhex((Path(__file__).parent / "recorded" / "interfaces.hex").read_text())
"""Samba 4.17 with `interfaces = "127.0.0.1;speed=10000000000,capability=RSS"
"::1;speed=100000000000,capability=RDMA"`."""
ENTRY_BYTES = 152


def linked(*offsets: int) -> bytes:
    """Recorded entries whose offsets to the next are these."""
    first = RECORDED[4:ENTRY_BYTES]
    return b"".join(struct.pack("<I", offset) + first for offset in offsets)


def test_the_recorded_answer_has_both_addresses() -> None:
    assert parse(RECORDED) == (
        Interface(1, rate_bytes_per_second=12_500_000_000, rss=False, rdma=True, address="::1"),
        Interface(
            1, rate_bytes_per_second=1_250_000_000, rss=True, rdma=False, address="127.0.0.1"
        ),
    )


def test_an_address_of_another_family_is_not_named() -> None:
    strange = RECORDED[:24] + b"\x2a\x00" + RECORDED[26:ENTRY_BYTES]
    assert [each.address for each in parse(struct.pack("<I", 0) + strange[4:])] == [""]


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (b"", 0),
        (RECORDED[:151], 0),
        (RECORDED[:303], 1),
        (linked(0, 0), 1),
        (linked(8, 0), 1),
        (linked(0xFFFFFFFF, 0), 1),
        (linked(ENTRY_BYTES * 2, 0, 0), 2),
        (linked(*[ENTRY_BYTES] * 400), MOST_INTERFACES),
    ],
    ids=["empty", "short", "second cut", "end", "into itself", "far out", "gap", "too many"],
)
def test_a_spoilt_chain_ends_and_keeps_what_was_whole(answer: bytes, count: int) -> None:
    assert len(parse(answer)) == count


@pytest.mark.long
def test_a_real_server_tells_the_address_that_it_listens_on(share: Any) -> None:
    with share() as (peer, _, _):
        for dialect in ("3.0", "3.1.1"):
            with open_session(peer, dialect) as session:
                assert [each.address for each in session.interfaces()] == [peer.host]
        for dialect in ("2.0.2", "2.1"):
            with open_session(peer, dialect) as session:
                assert session.interfaces() == ()


def test_a_server_that_says_no_has_none(share: Any) -> None:
    with (
        share("server multi channel support = no") as (peer, _, _),
        open_session(peer) as session,
    ):
        assert session.interfaces() == ()
        assert "multi-channel" not in session.facts.capabilities
        session.close(session.create_folder("still-alive"))
