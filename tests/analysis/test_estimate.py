"""The back of the envelope: each ceiling by its formula, and what is expected below all of them."""

from __future__ import annotations

import json

import pytest

from bottleneck.analysis.estimate import estimate, likely
from bottleneck.analysis.estimate.envelope import KINDS, Envelope, Window, disk_of
from bottleneck.documents.estimate import estimate_json

GIGABIT = {"link_bits_per_second": 1e9}
FAR = {**GIGABIT, "rtt_seconds": 0.149, "windows": (Window(65536),)}
OUTGROWN = {"cached": True, "read": disk_of(60e6), "ram_bytes": 4e9, "size_bytes": 8e9}
STAGES = {**GIGABIT, "read": disk_of(100e6), "write": disk_of(50e6), "size_bytes": 1e9}

ENVELOPES = {
    "a link carries what RFC 6349 counts": GIGABIT,
    "in jumbo frames": {**GIGABIT, "mtu_bytes": 9000},
    "with a VLAN tag": {**GIGABIT, "vlan_tags": 1},
    "over IPv6": {**GIGABIT, "ipv6": True},
    "over IPv6 with a VLAN tag": {**GIGABIT, "ipv6": True, "vlan_tags": 1},
    "a tenth of it": {"link_bits_per_second": 1e8},
    "a link of 2.5 Gbit/s": {"link_bits_per_second": 2.5e9},
    "a window carries itself in each round trip": FAR,
    "four windows carry four times that": {**FAR, "streams": 4},
    "a window of the product asks for no larger one": {
        **{**GIGABIT, "rtt_seconds": 0.01, "windows": (Window(64 << 20),)}
    },
    "a window without a link fills nothing known": {
        "rtt_seconds": 0.01,
        "windows": (Window(65536),),
    },
    **{
        f"{dialect} keeps its usual requests in flight": {"dialect": dialect, "rtt_seconds": 0.05}
        for dialect in ("smb1", "2.0.2", "2.1", "3.1.1")
    },
    "requests share no round trip with their time on the link": {
        **{**GIGABIT, "rtt_seconds": 0.01, "request_bytes": 65536, "depth": 1}
    },
    "losses leave the bracket of Mathis": {"rtt_seconds": 0.01, "loss_ratio": 0.001},
    "a path that loses nothing asks for no loss": {"rtt_seconds": 0.01, "loss_ratio": 0.0},
    "the server's disk reads for a pull": {"read": disk_of(60e6), "write": KINDS["ssd"]},
    "the client's disk reads for a push": {
        **{"verb": "push", "read": disk_of(60e6), "write": KINDS["ssd"]}
    },
    "a disk behind USB is the bus": {"read": KINDS["usb2"], "write": KINDS["nvme"]},
    "a cached source needs no disk": {**OUTGROWN, "size_bytes": 2e9},
    "nor where nobody told the RAM": {**OUTGROWN, "ram_bytes": None},
    "unless it outgrows the RAM": OUTGROWN,
    "which is the RAM's matter over USB too": {**OUTGROWN, "read": KINDS["usb2"]},
    "what is not given is asked for": {},
    "the round trip is asked for by each that needs it": {
        "windows": (Window(65536),),
        "loss_ratio": 0.1,
    },
    "stages work at once or one after the other": STAGES,
    "a window takes no turn": {
        **{
            "rtt_seconds": 0.1,
            "windows": (Window(65536),),
            "read": disk_of(1e8),
            "write": disk_of(1e8),
        }
    },
    "a path is one stage though two ceilings are its": {
        **{**GIGABIT, "rtt_seconds": 0.01, "loss_ratio": 1e-6, "cached": True}
    },
    "the next is far": {**GIGABIT, "cached": True, "write": disk_of(60e6)},
    "the next is not far": {**GIGABIT, "cached": True, "write": disk_of(95e6)},
    "the next is too close to tell": {**GIGABIT, "cached": True, "write": disk_of(114e6)},
    "not all of the way is known": {**GIGABIT, "cached": True},
    "a near start costs no slow start": {**GIGABIT, "rtt_seconds": 0.0001},
    "a far start costs round trips": {
        **{**GIGABIT, "rtt_seconds": 0.149, "request_bytes": 1 << 20, "depth": 64}
    },
}


@pytest.mark.parametrize("figures", ENVELOPES.values(), ids=ENVELOPES)
def test_an_estimate(figures, golden):
    forecast = estimate(Envelope(**figures))
    golden(json.dumps(json.loads(estimate_json(forecast))))
    for each in forecast.claims:
        golden(f"remedy: {each.remedy}")


@pytest.mark.parametrize(
    ("figures", "summary"),
    [
        (GIGABIT, "at most 118 MB/s, limited by the network (1 Gbit/s link)"),
        (FAR, "at most 440 kB/s, limited by the client's TCP (receive window of 64 KiB)"),
        (
            {**GIGABIT, "cached": True, "write": disk_of(114e6)},
            "57.9\u2013114 MB/s, limited by the client's disk (write) "
            "or the network (1 Gbit/s link)",
        ),
        (OUTGROWN, "at most 60.0 MB/s, limited by the server's memory (file larger than memory)"),
    ],
    ids=["a part is unknown", "with what it is", "two near ones", "a cache too small"],
)
def test_the_first_line_is_the_rate_and_its_limit(figures, summary):
    forecast = estimate(Envelope(**figures))
    assert forecast.summary == f"Expected: {summary}"
    assert forecast.verdict.sentence.startswith(f"{forecast.summary}.")


def test_of_nothing_nothing_is_expected():
    assert estimate(Envelope()).summary == "Expected: unknown, because no limit is known"


def test_every_kind_of_disk_lies_within_its_rule():
    for kind in KINDS.values():
        assert 0 < kind.low <= kind.usual <= kind.high and kind.why in kind.rule


def test_of_no_ceilings_none_is_the_lowest():
    assert likely(()) is None
