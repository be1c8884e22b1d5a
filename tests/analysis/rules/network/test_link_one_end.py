"""Without an agent the link is read off copies that touch no disk, or off the client's queue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.evidence.copies import best_alike, steady_rate
from probes.records import Sample

LINK, NOBODY = "network/path/link-rate", "unknown/inconclusive"
MB = 1e6


@pytest.fixture
def alone(empty_world):
    """A client of which nothing else is known, without an agent on the server."""
    return empty_world(agent=False)


def timed(world, at, *samples):
    """Gives a step these samples: seconds and bytes."""
    step, outcome = world.entries[at]
    run = tuple(Sample(seconds, int(moved)) for seconds, moved in samples)
    world.entries[at] = step, replace(outcome, runs=(run,))


# -- standard links ------------------------------------------------------------------------------


def test_requests_alone_show_the_link_where_the_copy_to_memory_fell_short(alone, says):
    """A short copy loses some of its time to its start; requests on their own do not."""
    alone.matrix("pull", {(1 << 20, 8): 118.0}, 0.0002)
    alone.copy("pull.cached", (113, 114, 115), memory=112)
    says(alone, LINK)


def test_a_copy_without_security_shows_it_too(alone, says):
    alone.tax("push", "plain", 11.75)
    alone.copy("push.cached", (11.3, 11.4, 11.5))
    says(alone, LINK)


def test_a_disk_that_happens_to_write_what_a_link_carries_is_no_sure_link(alone, sockets, says):
    """The client had nothing left to send, or the same path carried far more the other way."""
    idle = sockets(by="sender", receiver_seen=False)
    alone.copy("push.cached", (11.3, 11.4, 11.5), memory=11.7, details={"sockets": idle})
    says(alone, LINK)
    alone.copy("pull.cached", (11.3, 11.4, 11.5), memory=11.7)
    alone.copy("push.uncached", (96, 97, 98), memory=97)
    says(alone)
    pull = alone.diagnosed("pull.cached").verdict
    assert pull.component == "network" and pull.confidence <= 0.6


HERE = {"address": "10.0.0.2", "reached_from": "10.0.0.1"}
THERE = {"address": "10.1.0.2", "reached_from": "10.1.0.1"}
BRIDGE = {"address": "172.17.0.1", "reached_from": "172.17.0.1"}
WAYS = {
    "a tunnel": ("through vpn0, a tunnel (tun)", {"kind": "tun"}, ()),
    "another one": ("through vpn0, a tunnel (wireguard)", {"kind": "wireguard"}, ()),
    "a virtual machine's own card is none": (None, {"kind": "tap"}, ()),
    "by another card of the client": ("10.1.0.2 of the server by 10.1.0.1", {}, (HERE, THERE)),
    "the client's own card is that slow": (
        *(None, {"rate_bits_per_second": 100_000_000}, (HERE, THERE)),
    ),
    "by the same card": (None, {}, (HERE, {**THERE, "reached_from": "10.0.0.1"})),
    "both hosts have such a bridge": (None, {}, (HERE, BRIDGE)),
    "no route": (None, {}, (HERE, {**THERE, "reached_from": None})),
    "its own interface is not known": (None, None, (HERE, THERE)),
}


@pytest.mark.parametrize(("told", "card", "offered"), WAYS.values(), ids=WAYS)
def test_a_client_alone_cannot_see_whether_another_path_is_faster(alone, told, card, offered):
    rate = {"rate_bits_per_second": 10**10}
    link = replace(alone.client.interface, name="vpn0", address="10.0.0.1", **rate)
    link = None if card is None else replace(link, **card)
    alone.client = replace(alone.client, interface=link)
    alone.copy("push.cached", (11.3, 11.4, 11.5), memory=11.7)
    report = alone.report()
    report.target["interfaces"] = list(offered)
    found = next(each for each in diagnose(report).copies if each.copy == "push.cached")
    assert found.verdict.words == LINK
    doubts = [line for line in found.evidence if "another path is faster" in line]
    assert (found.verdict.confidence < 0.7, len(doubts)) == (told is not None, told is not None)
    assert told is None or told in doubts[0]


def test_the_start_of_a_pull_on_a_long_path_is_not_the_link(alone, says):
    """10.8 MB/s on the whole, and 11.8 from its third reply on: 100 Mbit/s."""
    alone.copy("pull.cached", 10.8, memory=10.8)
    steps = [(0.0, 0), (0.16, 1e6), (0.34, 3e6), (0.54, 5.3e6), (0.69, 7.1e6), (0.77, 8.05e6)]
    timed(alone, -2, *steps, (0.775, 8.05e6))
    says(alone, LINK)


def test_the_round_trip_of_a_push_is_not_the_link(alone, says):
    alone.copy("push.cached", (11.2, 11.3, 11.4), memory=11.3)
    told = {"acknowledged_bytes_per_second": 11.35 * MB, "rtt_seconds": 0.15}
    alone.entries[-2][1].details.update(told)
    says(alone, LINK)


FULL = {"client": {"core_busy_ratios": (1.0, 1.0), "busiest_process_ratio": 0.99}}
UNSHOWN = {
    "a folder alone may show a disk": ((11.6, 11.7, 11.8), {}, ()),
    "another copy exceeds it": ((14.0, 14.5, 15.0), {"memory": 11.7}, ()),
    "it goes the other way": ((110, 111, 112), {}, ("pull", True)),
    "bytes that were altered": ((110, 111, 112), {}, ("push", False)),
    "a busy client": ((116, 117, 118), {"memory": 117.5, **FULL}, ()),
}


@pytest.mark.parametrize(("rates", "more", "tax"), UNSHOWN.values(), ids=UNSHOWN)
def test_what_shows_no_link_claims_none(alone, rates, more, tax, says):
    if tax:
        alone.tax(tax[0], "plain", 117.5, hash_ok=tax[1])
    alone.copy("push.cached", rates, **more)
    says(alone)
    assert ("network", "path", "link-rate") not in alone.ceilings()


# -- links of no standard rate -------------------------------------------------------------------


QUEUED = {
    "by": "network",
    "send_queue_full_ratio": 0.94,
    "unread_bytes_median": None,
    "full_ratio": None,
    "own_window_bytes_median": None,
    "receiver_seen": False,
}
BURSTS = {"silent_ratio": 0.6, "bursts": 9, "burst_count_median": 6}
QUEUES = {
    "with more behind it": (LINK, {}),
    "the sender is slow": (NOBODY, {"by": "sender"}),
    "nothing queues": (NOBODY, {"rtt_seconds_median": 0.0165}),
    "not told whether": (NOBODY, {"rtt_seconds_median": None}),
    "a moment": (NOBODY, {"rtt_seconds_median": 0.0005, "min_rtt_seconds": 0.0001}),
    "nothing behind it": (NOBODY, {"unsent_bytes_median": 0}),
    "seldom full": (NOBODY, {"send_queue_full_ratio": 0.2}),
    "not seen": (NOBODY, {"sender_seen": False}),
    "the copies do not agree: a CPU, a disk, somebody else": (NOBODY, {"rate": 4.5}),
    "a quota": (NOBODY, {"rate": 5.5, "replies": BURSTS}),
    "replies that come late because the link is slow": (LINK, {"replies": BURSTS}),
    "two copies are too few to agree": (NOBODY, {"rate": None}),
}


@pytest.mark.parametrize(("named", "changes"), QUEUES.values(), ids=QUEUES)
def test_a_queue_is_a_link_of_any_rate(alone, sockets, named, changes, says):
    """Three copies of one rate, whose packets queue on the path."""
    seen = {name: changes[name] for name in changes if name not in ("rate", "replies")}
    told = {"sockets": sockets(**{**QUEUED, **seen}), "replies": changes.get("replies")}
    alone.copy("push.cached", 6.7, memory=6.8, details=told)
    if changes.get("rate", 6.6) is not None:
        alone.copy("push.uncached", changes.get("rate", 6.6), details=told)
    says(alone, named)


@pytest.mark.parametrize("of", [7_100_000, 25_000_000], ids=["this rate", "another"])
def test_the_clients_own_shaper_is_named_where_its_rate_is_the_links(alone, sockets, of, says):
    link = replace(alone.client.interface, qdisc="tbf", qdisc_rate_bytes_per_second=of)
    alone.client = replace(alone.client, interface=link)
    told = {"sockets": sockets(**QUEUED)}
    alone.copy("push.cached", 6.7, memory=6.8, details=told)
    alone.copy("push.uncached", 6.6, details=told)
    says(alone, LINK)
    found = alone.diagnosed("push.cached")
    shaped = "tbf" in found.verdict.detail and "Raise or remove" in found.advice[0]
    assert shaped == (of == 7_100_000) != ("before you change hardware" in found.advice[0])


@pytest.mark.parametrize(
    ("pull", "said"),
    [(6.7, "Pulls are as slow: the server probably has another."), (80.0, "sends, not pulls.")],
)
def test_what_came_from_the_server_tells_whether_it_is_shaped_too(alone, sockets, pull, said):
    link = replace(alone.client.interface, qdisc="tbf", qdisc_rate_bytes_per_second=7_100_000)
    alone.client = replace(alone.client, interface=link)
    told = {"sockets": sockets(**QUEUED)}
    alone.copy("push.cached", 6.7, memory=6.8, details=told)
    alone.copy("push.uncached", 6.6, details=told)
    alone.copy("pull.cached", pull)
    assert alone.diagnosed("push.cached").advice[0].endswith(said)


def test_a_shaper_that_is_known_outranks_a_slower_copy_of_which_nothing_is(alone, sockets):
    link = replace(alone.client.interface, qdisc="tbf", qdisc_rate_bytes_per_second=7_100_000)
    alone.client = replace(alone.client, interface=link)
    told = {"sockets": sockets(**QUEUED)}
    alone.copy("push.cached", 6.7, memory=6.8, details=told)
    alone.copy("push.uncached", 6.6, details=told)
    alone.copy("pull.cached", 4.0)
    found = diagnose(alone.report())
    assert found.headline in ("push.cached", "push.uncached")


# -- the steady part -----------------------------------------------------------------------------

LATE = ((0.0, 0), (1.0, 1e6), (1.9, 2e6), (2.0, 200e6))
STEADY = {
    "a push's burst that ends late would be taken for the rate": (
        *(1.15, "push.cached", (900 * MB, 0.0), LATE),
    ),
    "a pull's too": (1.15, "pull.cached", (900 * MB, 0.0), LATE),
    "no acknowledged rate": (1.0, "push.cached", (None, None), None),
    "a round trip as long as the copy": (1.0, "push.cached", (120 * MB, 3.0), None),
    "a pull that arrived at once": (1.0, "pull.cached", (None, None), ((0.0, 0), (1.0, 100e6))),
}


@pytest.mark.parametrize(("gain", "name", "told", "samples"), STEADY.values(), ids=STEADY)
def test_a_steady_rate_is_never_far_above_the_steps_own(alone, gain, name, told, samples):
    details = {"acknowledged_bytes_per_second": told[0], "rtt_seconds": told[1]}
    alone.copy(name, 100, details=details)
    if samples:
        timed(alone, -1, *samples)
    found = best_alike(alone.report(), "client" if "push" in name else "server")
    assert steady_rate(found) == pytest.approx(gain * found.rate.median)


EVEN = {"by": "unknown", "receiver_seen": True, "silent_ratio": 0.0}
PACED = {
    "a shaper of no standard rate": (LINK, {}),
    "pauses are a server's": (NOBODY, {"silent_ratio": 0.05}),
    "but what comes behind a lost packet waits": (
        *(LINK, {"silent_ratio": 0.05, "out_of_order_segments": 240}),
    ),
    "nobody looked": (NOBODY, {"receiver_seen": False}),
    "the client does not take what comes": (NOBODY, {"by": "receiver"}),
    "a window may set the rate of a longer path": (NOBODY, {"rtt": 0.002}),
    "the other dialect is slower: so is what serves it": (NOBODY, {"rate": 22.9}),
    "one dialect alone": (NOBODY, {"rate": None}),
    "requests alone are faster: a disk stands behind the copies": (NOBODY, {"requests": 90.0}),
}


@pytest.mark.parametrize(("named", "changes"), PACED.values(), ids=PACED)
def test_pulls_that_come_evenly_at_one_rate_show_the_path(alone, named, changes):
    """200 Mbit/s, which are no card's: memory, folder and the other dialect agree."""
    known = (*EVEN, "out_of_order_segments")
    seen = {**EVEN, **{key: changes[key] for key in changes if key in known}}
    told = {"rtt_seconds": changes.get("rtt", 0.0001), "sockets": seen}
    alone.copy("pull.cached", 23.73, details=told)
    step, outcome = alone.entries[-1]
    alone.entries[-1] = replace(step, setting={**step.setting, "end": "memory"}), outcome
    alone.copy("pull.cached", 23.75, details=told)
    if changes.get("rate", 23.77) is not None:
        alone.copy("pull.cached", changes.get("rate", 23.77), dialect="smb1", details=told)
    if "requests" in changes:
        alone.matrix("pull", {(1 << 20, 8): changes["requests"]}, 0.0001)
    named_first = alone.diagnosed(0).verdict.named
    assert "/".join(filter(None, named_first)) == named


FAR = {"rtt_seconds": 0.081, "sockets": {"by": "unknown", "receiver_seen": True}}
RECORDED = (
    *((0.0, 0), (0.586, 1048576), (0.764, 3145728), (0.940, 5242880), (1.115, 7340032)),
    *((1.290, 9437184), (1.466, 11534336), (1.725, 13631488), (1.804, 14680064)),
)
"""A pull of 100 Mbit/s at 80 ms: a slow start, 2 MB each 0.18 s, and replies that come late."""


BOTH_WAYS = {
    "500 Mbit/s, both dialects": (LINK, {}),
    "the start blurs what is seen of a push": (LINK, {"in_flight_bytes_median": 3_150_000}),
    "another rate the other way": (NOBODY, {"pull": 40.0}),
    "one copy that way is no rate to rely on": (NOBODY, {"dialects": ("3.1.1",)}),
    "both windows end early: nothing queues": (NOBODY, {"rtt_seconds_median": 0.0405}),
    "a near path has no start that explains 52 beside 59": (NOBODY, {"min_rtt_seconds": 0.002}),
    "the client is slow": (NOBODY, {"by": "sender"}),
    "its shortest round trip is not known": (NOBODY, {"min_rtt_seconds": None}),
    "losses alone may hold what is in flight": (
        *(NOBODY, {"loss_ratio": 0.015, "in_flight_bytes_median": 14_480}),
    ),
    "so too where nobody told what is": (
        *(NOBODY, {"loss_ratio": 0.015, "in_flight_bytes_median": None}),
    ),
    "the losses are a queue's that overflows": (LINK, {"loss_ratio": 0.005}),
    "another test moved more": (NOBODY, {"requests": 80.0}),
}


@pytest.mark.parametrize(("named", "changes"), BOTH_WAYS.values(), ids=BOTH_WAYS)
def test_a_path_that_holds_both_ways_alike_is_named(alone, sockets, named, changes, says):
    """Pushes of 51 and pulls of 59 MB/s that came to 60 once they had started, at 40 ms."""
    rtt = changes.get("min_rtt_seconds", 0.04)
    seen = sockets(
        by=changes.get("by", "network"),
        min_rtt_seconds=rtt,
        rtt_seconds_median=changes.get("rtt_seconds_median", 0.056),
        in_flight_bytes_median=changes.get("in_flight_bytes_median", 3_360_000),
        segment_bytes=1448,
        loss_ratio=changes.get("loss_ratio", 0.0),
    )
    told = {"rtt_seconds": rtt, "sockets": seen, "acknowledged_bytes_per_second": 55e6}
    for dialect in changes.get("dialects", ("3.1.1", "smb1")):
        alone.copy("push.cached", 52, dialect=dialect, details=told)
        alone.copy("pull.cached", changes.get("pull", 59.4), dialect=dialect, details=FAR)
    if "requests" in changes:
        alone.matrix("push", {(1 << 20, 8): changes["requests"]}, 0.04)
    says(alone, named)


SHARED = {
    "the sum is what comes back": ("network/path/contention", {}),
    "it is less": (NOBODY, {"pull": 80.0}),
    "nothing queues": (NOBODY, {"rtt": 0.002}),
}


@pytest.mark.parametrize(("named", "changes"), SHARED.values(), ids=SHARED)
def test_pushes_that_queue_beside_others_fill_a_path_of_no_standard_rate(
    alone, sockets, named, changes, says
):
    """40 MB/s and 19 of others: 500 Mbit/s, as the pulls have them."""
    seen = sockets(min_rtt_seconds=0.002, rtt_seconds_median=changes.get("rtt", 0.018))
    told = {"rtt_seconds": 0.002, "sockets": seen}
    for dialect in ("3.1.1", "smb1"):
        sent = {"interface_sent_bytes": int(4 * 59.4 * MB / (1448 / 1514))}
        alone.copy("push.cached", 40.0, dialect=dialect, details=told, client=sent)
        alone.copy("pull.cached", changes.get("pull", 59.4), dialect=dialect)
    says(alone, named)


def test_a_dialect_that_keeps_nothing_waiting_beside_others_is_not_held_by_them(
    alone, sockets, says
):
    """SMB1 at 44 MB/s and 12 of others, where 59 pass: its own requests hold it."""
    full = sockets(min_rtt_seconds=0.002, rtt_seconds_median=0.018)
    idle = sockets(by="sender", min_rtt_seconds=0.002, rtt_seconds_median=0.0022)
    for rate, dialect, seen in ((59.4, "3.1.1", full), (44.0, "smb1", idle)):
        told = {"rtt_seconds": 0.002, "sockets": seen}
        others = 0.0 if rate > 50 else 12.0
        sent = {"interface_sent_bytes": int(4 * (rate + others) * MB / (1448 / 1514))}
        memory = rate if rate > 50 else None
        alone.copy("push.cached", rate, memory, dialect, details=told, client=sent)
        alone.copy("pull.cached", 59.4, dialect=dialect)
    says(alone)
    found = {(each.copy, each.dialect): each for each in diagnose(alone.report()).copies}
    assert found["push.cached", "smb1"].verdict.cause != "contention"


def test_a_far_pull_shows_the_link_between_its_start_and_its_end(alone, says):
    """8.1 MB/s in all, 11.9 once started: the delay is what held this short one."""
    for end in ("memory", "folder"):
        alone.copy("pull.cached", 8.14, details=FAR)
        step, outcome = alone.entries[-1]
        alone.entries[-1] = replace(step, setting={**step.setting, "end": end}), outcome
        timed(alone, -1, *RECORDED)
    says(alone, "network/path/delay")
    assert alone.named("pull.cached") == ("network", "path", "delay")


def test_a_far_push_shows_the_link_by_what_was_under_way(alone, sockets, says):
    """1.5 MB in flight, 126 ms round: 12 MB/s, though the whole copy took a start as well."""
    seen = sockets(
        by="network",
        min_rtt_seconds=0.08,
        rtt_seconds_median=0.126,
        in_flight_bytes_median=1_512_000,
        segment_bytes=1448,
    )
    told = {"rtt_seconds": 0.081, "sockets": seen, "acknowledged_bytes_per_second": 10.1e6}
    alone.copy("push.cached", 9.97, memory=9.95, details=told)
    alone.entries[-2] = (
        alone.entries[-2][0],
        replace(alone.entries[-2][1], details={**alone.entries[-2][1].details, **told}),
    )
    says(alone, LINK)


# -- what an agent would add ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "memory"), [("push.cached", None), ("pull.cached", None), ("push.cached", 117.5)]
)
def test_an_inconclusive_copy_says_what_an_agent_would_tell_of_it(alone, name, memory, says):
    """What is known already is not asked for."""
    alone.copy(name, (50, 51, 52), memory=memory)
    says(alone, NOBODY)
    assert ("TCP by itself" in alone.diagnosed().advice[0]) == (memory is None)
