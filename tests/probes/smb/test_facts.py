"""Bits and times of a server's replies in plain words; what real servers say is what they said."""

from __future__ import annotations

import struct
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from probes.core.stage import Refused
from probes.smb.facts import (
    CAPABILITIES,
    MOST_INTERFACES,
    Interface,
    names,
    read_clock,
    referral,
    security_mode,
    to_iso,
)
from probes.smb.facts import interfaces as parse_interfaces
from probes.smb.login import open_session

NT1 = "server min protocol = NT1"
RECORDED = bytes.fromhex((Path(__file__).parent / "recorded" / "negotiate_reply.hex").read_text())
"""Body of a NEGOTIATE reply of Samba 4.17, 3.1.1."""


def test_the_recorded_reply_tells_its_clock_and_one_that_is_cut_short_none() -> None:
    clock = read_clock(RECORDED)
    assert clock is not None and clock.startswith("2026-11-21T04:3")
    assert datetime.fromisoformat(clock).tzinfo == UTC
    for cut in (0, 1, 47):
        with pytest.raises(struct.error):
            read_clock(RECORDED[:cut])


@pytest.mark.parametrize(
    ("filetime", "text"),
    [
        (0, None),
        (116444736000000000, "1970-01-01T00:00:00.000+00:00"),
        (133500000001234567, "2024-01-17T21:20:00.123+00:00"),
        (0xFFFFFFFFFFFFFFFF, None),
    ],
)
def test_a_file_time_is_a_date_or_none(filetime: int, text: str | None) -> None:
    assert to_iso(filetime) == text


def test_the_bits_of_a_session_have_names() -> None:
    assert names(0x44, CAPABILITIES) == ("large-mtu", "encryption")
    said = [security_mode(*bits) for bits in ((False, False), (True, False), (True, True))]
    assert said == ["signing off", "signing enabled", "signing required"]


@pytest.mark.parametrize("dialect", ["smb1", "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"])
def test_a_real_server_tells_its_facts_in_every_dialect(share: Any, dialect: str) -> None:
    options, sealed = (NT1, "server signing = auto"), ["smb encrypt = desired"]
    with (
        share(*options, share_options=sealed) as (peer, _, _),
        open_session(peer, dialect) as session,
    ):
        facts = session.facts.details()
        again = session.facts.details()
    assert facts["dialect"] == dialect
    clock = datetime.fromisoformat(facts["server_time"])
    assert abs(datetime.now(UTC) - clock) < timedelta(minutes=1)
    assert facts["security_mode"] == "signing enabled"
    assert facts["signing_required_by"] is None
    modern = dialect.startswith("3.")
    assert ("leasing" in facts["capabilities"]) is (dialect not in ("smb1", "2.0.2"))
    assert ("multi-channel" in facts["capabilities"]) is modern
    assert ("encryption" in facts["capabilities"]) is modern
    assert facts["encryption_required_by"] == ("share" if modern else None)
    assert {**facts, "credits": 0} == {**again, "credits": 0}


INTERFACES = bytes.fromhex((Path(__file__).parent / "recorded" / "interfaces.hex").read_text())
"""Samba 4.17 with `interfaces = "127.0.0.1;speed=10000000000,capability=RSS"
"::1;speed=100000000000,capability=RDMA"`."""
ENTRY_BYTES = 152


def entries_at(*offsets: int) -> bytes:
    """Returns recorded entries with these offsets to the next."""
    first = INTERFACES[4:ENTRY_BYTES]
    return b"".join(struct.pack("<I", offset) + first for offset in offsets)


def test_the_recorded_answer_has_both_addresses() -> None:
    assert parse_interfaces(INTERFACES) == (
        Interface(1, rate_bytes_per_second=12_500_000_000, rss=False, rdma=True, address="::1"),
        Interface(
            1, rate_bytes_per_second=1_250_000_000, rss=True, rdma=False, address="127.0.0.1"
        ),
    )


def test_an_address_of_another_family_is_not_named() -> None:
    strange = INTERFACES[:24] + b"\x2a\x00" + INTERFACES[26:ENTRY_BYTES]
    assert [each.address for each in parse_interfaces(struct.pack("<I", 0) + strange[4:])] == [""]


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (b"", 0),
        (INTERFACES[:151], 0),
        (INTERFACES[:303], 1),
        (entries_at(0, 0), 1),
        (entries_at(8, 0), 1),
        (entries_at(0xFFFFFFFF, 0), 1),
        (entries_at(ENTRY_BYTES * 2, 0, 0), 2),
        (entries_at(*[ENTRY_BYTES] * 400), MOST_INTERFACES),
    ],
    ids=["empty", "short", "second cut", "end", "into itself", "far out", "gap", "too many"],
)
def test_a_spoilt_chain_ends_and_keeps_what_was_whole(answer: bytes, count: int) -> None:
    assert len(parse_interfaces(answer)) == count


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
    with share("server multi channel support = no") as (peer, _, _), open_session(peer) as session:
        assert session.interfaces() == ()
        assert "multi-channel" not in session.facts.capabilities
        session.close(session.create_folder("still-alive"))


ASKED = r"\nas\share\link\below"
LINK_BYTES = 2 * len(r"\nas\share\link")


def refer(target: str, consumed: int = LINK_BYTES, offset: int = 34, **changes: int) -> bytes:
    """A RESP_GET_DFS_REFERRAL whose first entry has this NetworkAddress."""
    head = {"entries": 1, "version": 3, "flags": 0, **changes}
    entry = struct.pack("<HHHHIHHH16x", head["version"], 34, 0, head["flags"], 600, 34, 34, offset)
    return struct.pack("<HHI", consumed, head["entries"], 2) + entry + target.encode("utf-16-le")


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("\\nas2.lan\\media\0", "//nas2.lan/media"),
        ("\\\\10.0.0.2\\media$\\Films 2\\\0", "//10.0.0.2/media$/Films 2"),
    ],
)
def test_a_referral_names_the_link_and_its_target(target: str, path: str) -> None:
    assert referral(refer(target), ASKED) == ("//nas/share/link", path)
    assert referral(refer(target, version=4), ASKED) == ("//nas/share/link", path)


GOOD = "\\nas2\\media\0"


@pytest.mark.parametrize(
    "answer",
    [
        *(refer(GOOD)[:cut] for cut in (0, 1, 29, 30, 42, -1, -2)),
        refer(GOOD, entries=0),
        refer(GOOD, version=1),
        refer(GOOD, flags=2),
        refer(GOOD, offset=0xFFFF),
        *(refer(GOOD, consumed) for consumed in (0, 4, LINK_BYTES - 2, LINK_BYTES + 4, 0xFFFF)),
        *map(refer, ("\0", "nas2\\media\0", "\\nas2\0", "\\-o\\media\0", "\\nas2\\..\\x\0")),
        *(refer(f"\\nas2\\me{hostile}dia\0") for hostile in "\n\x1b\u202e;`'/\ud7ff"),
        refer("\\" + 254 * "a" + "\\media\0"),
        refer("\\nas2" + 17 * "\\deep" + "\0"),
    ],
)
def test_a_referral_that_is_cut_short_or_hostile_names_nothing(answer: bytes) -> None:
    assert referral(answer, ASKED) == ("", "")


IS = " is a DFS link to //nas2/media: use bottleneck diagnose //nas2/media/below"
UNKNOWN = r": create self\new: the path is a DFS link to another server, which is not followed"
PROXY = ("msdfs proxy = \\nas2\\media",)


@pytest.mark.parametrize(
    ("proxy", "folder", "says"),
    [((), r"link\below", f"/link{IS}"), ((), "self", UNKNOWN), (PROXY, "below", IS)],
)
def test_a_dfs_link_is_refused_with_the_command_for_its_target(
    share: Any, proxy: tuple[str, ...], folder: str, says: str
) -> None:
    with share(share_options=("msdfs root = yes", *proxy)) as (served, shared, _):
        peer = replace(served, folder=folder)
        (shared / "link").symlink_to(r"msdfs:nas2\media")
        (shared / "self").symlink_to(rf"msdfs:{peer.host}\{peer.share}\self")
        with pytest.raises(Refused) as caught, open_session(peer) as session:
            session.create_folder(rf"{folder}\new")
    assert caught.value.text.partition(" (STATUS")[0] == f"//{peer.host}/{peer.share}{says}"
