"""A copy that was watched while it ran: right where something was planted, silent where not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bottleneck.analysis import diagnose
from bottleneck.analysis.rules.running import ONE_SIDED_TRUST

LINK_100 = 11.76
"""MB/s of payload on 100 Mbit/s."""
PATH = {
    "by": "network",
    "unsent_bytes_median": 3 << 20,
    "in_flight_bytes_median": 240_000,
    "in_flight_bytes_high": 280_000,
    "min_rtt_seconds": 0.0003,
    "rtt_seconds_median": 0.021,
    "segment_bytes": 1448,
    "peer_window_bytes_median": 3 << 20,
    "retransmitted_segments": 0,
    "loss_ratio": 0.0,
    "congestion_control": "cubic",
    "send_queue_full_ratio": 1.0,
}
"""A sender that always has more than the path takes, as its own host saw it."""
WAITS = {**PATH, "by": "sender", "unsent_bytes_median": 0, "rtt_seconds_median": 0.0004}
"""A sender that waits for something to send."""
READ_AT_ONCE = {"unread_bytes_median": 0, "full_ratio": 0.0}
SECONDS, RUN_BYTES = 4.0, 47_040_000
"""Of a made report's run at LINK_100."""


def end(reads=None, writes=None, waits=0.0, busy=0.05, moved=RUN_BYTES, dirty=None, **more):
    """What one host saw: a disk that its file is read from, or written to, with so much of it."""
    name = "read" if reads else "written"
    told: dict[str, Any]
    told = {"processes": {"looks": 80, "disk_wait_ratio": waits}, "kernel": False, "alone": False}
    told["processes"][f"disk_{name}_bytes"] = moved if reads or writes else 0
    row = {"name": reads or writes, "read_bytes": 0, "written_bytes": 0, "busy_ratio": busy}
    row[f"{name}_bytes"] = moved
    told["disks"] = [row, {"name": "other", "read_bytes": 5, "written_bytes": 5, "busy_ratio": 1}]
    if reads or writes:
        told["reads" if reads else "writes"] = {"device": reads or writes, "remote": False}
    if dirty is not None:
        told["dirty"] = {"high_bytes": dirty, "free_run_bytes": 1 << 30}
    return {**told, **more}


def running(
    empty_world, verb="push", rate=LINK_100, sockets=None, ends=None, over="smb", agent=True, **more
):
    """A report of `watch` at the client, with the other end's agent or without."""
    world = empty_world(agent=agent)
    loads = {side: more.pop(side) for side in ("client", "server") if side in more}
    ends = {"client": end(), "server": end()} if ends is None else ends
    details = {"sockets": {"sender_seen": True, **(sockets or {})}, "ends": ends, **more}
    setting = {"copy": f"{verb}.cached", "dialect": "unknown", "engine": "running", "over": over}
    world.add("running-copy", "client", setting, rate, details, **loads)
    return world.report()


def of(report):
    (copy,) = diagnose(report).copies
    return copy


def named(report):
    verdict = of(report).verdict
    return verdict.named


LINK = ("network", "path", "link-rate")
NOTHING = ("unknown", None, "inconclusive")


# -- the network ---------------------------------------------------------------------------------


def test_a_sender_that_always_has_more_is_held_by_the_link(empty_world) -> None:
    copy = of(running(empty_world, sockets={**PATH, **READ_AT_ONCE, "receiver_seen": True}))
    assert (copy.verdict.component, copy.verdict.cause) == ("network", "link-rate")
    assert copy.verdict.confidence == 0.9
    assert (
        "100 Mbit/s" in copy.verdict.sentence and "push that was watched" in copy.verdict.sentence
    )
    assert any("always had more to send" in line for line in copy.evidence)
    assert copy.advice and "1 Gbit/s" in copy.advice[0]


def test_a_path_of_no_standard_rate_is_named_with_less_confidence(empty_world) -> None:
    copy = of(running(empty_world, rate=30.0, sockets=PATH))
    assert copy.verdict.cause == "link-rate" and copy.verdict.confidence == 0.75


def test_a_round_trip_that_is_not_known_is_left_out(empty_world) -> None:
    trips = {name: value for name, value in PATH.items() if "rtt" not in name}
    (queue, *_) = of(running(empty_world, sockets=trips)).evidence
    assert "waited in its socket" in queue and "round trip" not in queue


def test_one_end_alone_is_never_sure_and_says_what_the_other_would_add(empty_world) -> None:
    alone = running(empty_world, sockets=PATH, ends={"client": end()}, agent=False)
    copy = of(alone)
    assert named(alone) == LINK and copy.verdict.confidence <= ONE_SIDED_TRUST
    assert any("one end alone" in line and "server's queues" in line for line in copy.evidence)


def test_a_full_interface_is_the_link_though_no_queue_was_seen(empty_world) -> None:
    """Of a pull the client sees no send queue, but what its interface takes."""
    full = {"interface_received_bytes": int(123.0e6 * SECONDS)}
    seen = running(empty_world, "pull", 117.0, {"by": "unknown"}, client=full)
    assert named(seen) == LINK and of(seen).verdict.confidence == 0.9
    assert any("interface of desk" in line for line in of(seen).evidence)


def test_an_interface_that_is_full_of_unread_bytes_is_not_blamed(empty_world) -> None:
    full = {"interface_received_bytes": int(123.0e6 * SECONDS)}
    assert named(running(empty_world, "pull", 117.0, {"by": "receiver"}, client=full)) == NOTHING


def test_a_steady_rate_that_is_a_links_is_likely_that_link(empty_world) -> None:
    seen = running(
        empty_world,
        "pull",
        sockets={"by": "unknown"},
        ends={"client": end()},
        agent=False,
        window_spread_ratio=0.03,
    )
    assert named(seen) == LINK and of(seen).verdict.confidence == 0.7


@pytest.mark.parametrize(
    ("rate", "spread"), [(LINK_100, 0.4), (LINK_100, None), (15.0, 0.03)], ids=str
)
def test_a_rate_that_only_may_be_a_links_names_nothing(empty_world, rate, spread) -> None:
    more = {} if spread is None else {"window_spread_ratio": spread}
    seen = running(empty_world, "pull", rate, {"by": "unknown"}, **more)
    assert named(seen) == NOTHING


def test_others_on_the_link_are_told_apart_from_it(empty_world) -> None:
    """The interface moved more than twice what the copy did: together a 100 Mbit/s link's."""
    sent = {"interface_sent_bytes": int(12.3e6 * SECONDS)}
    seen = running(empty_world, rate=5.0, sockets=PATH, client=sent)
    assert named(seen) == ("network", "path", "contention")
    odd = {"interface_sent_bytes": int(30.0e6 * SECONDS)}
    seen = running(empty_world, rate=8.0, sockets=PATH, client=odd)
    assert named(seen) == ("network", "path", "contention")
    assert of(seen).verdict.confidence <= 0.75


LOSSY = {
    **PATH,
    "min_rtt_seconds": 0.02,
    "rtt_seconds_median": 0.0205,
    "in_flight_bytes_median": 20_000,
    "in_flight_bytes_high": 40_000,
    "retransmitted_segments": 90,
    "loss_ratio": 0.01,
}


def test_a_path_that_loses_packets_is_named_for_that(empty_world) -> None:
    seen = running(empty_world, rate=0.9, sockets=LOSSY)
    assert named(seen) == ("network", "path", "loss")
    assert any("90 segments" in line for line in of(seen).evidence)


def test_losses_on_a_full_link_are_the_links_own(empty_world) -> None:
    full = {**LOSSY, "rtt_seconds_median": 0.08}
    assert named(running(empty_world, sockets=full)) == LINK


def test_a_strange_report_without_its_sender_names_no_path(empty_world) -> None:
    seen = running(empty_world, sockets={"by": "network", "sender_seen": False})
    assert named(seen) == NOTHING
    assert "waited at the network" in of(seen).verdict.sentence


# -- disks ---------------------------------------------------------------------------------------


def test_a_receiver_whose_processes_wait_for_their_disk_is_held_by_it(empty_world) -> None:
    ends = {"client": end(reads="sda"), "server": end(writes="sdb", waits=0.95, busy=0.97)}
    copy = of(running(empty_world, sockets=WAITS, ends=ends, cache={"proven": True}))
    assert copy.verdict.named == (
        "disk",
        "server",
        "write",
    )
    assert copy.verdict.confidence == 0.9
    assert any("95 %" in line and "97 %" in line for line in copy.evidence)


def test_a_sender_whose_processes_wait_for_their_disk_is_held_by_it(empty_world) -> None:
    ends = {"client": end(writes="sdb"), "server": end(reads="sda", waits=0.8)}
    seen = running(empty_world, "pull", sockets=WAITS, ends=ends)
    assert named(seen) == ("disk", "server", "read")


def test_a_busy_device_is_evidence_where_no_process_was_seen(empty_world) -> None:
    """Of another user's server, or of a mount, whose processes wait for the network alike."""
    ends = {"client": end(), "server": end(reads="sda", busy=0.99, processes={})}
    seen = running(empty_world, "pull", sockets=WAITS, ends=ends)
    assert named(seen) == ("disk", "server", "read") and of(seen).verdict.confidence == 0.75
    ends = {"client": end(reads="sda", waits=0.9, kernel=True), "server": end()}
    assert named(running(empty_world, sockets=WAITS, ends=ends)) == NOTHING


def test_a_device_is_found_by_what_it_moved_where_the_file_is_not_known(empty_world) -> None:
    unknown = end(reads="sda", busy=0.99, processes={})
    del unknown["reads"]
    seen = running(empty_world, "pull", sockets=WAITS, ends={"client": end(), "server": unknown})
    assert named(seen) == ("disk", "server", "read")


def test_memory_full_of_unwritten_bytes_holds_the_writer(empty_world) -> None:
    full = end(writes="sdb", busy=0.95, dirty=1 << 30, processes={})
    seen = running(empty_world, sockets=WAITS, ends={"client": end(), "server": full})
    assert named(seen) == ("disk", "server", "write")
    assert any("held writers back" in line for line in of(seen).evidence)


@pytest.mark.parametrize(
    "server",
    [
        end(writes="sdb", waits=0.0, busy=1.0),
        end(writes="sdb", busy=1.0, processes={}, dirty=1 << 20),
        end(writes="sdb", waits=0.9, moved=RUN_BYTES // 4),
        end(
            writes="sdb", waits=0.9, writes_={}, **{"processes": {"disk_wait_ratio": 0.9}}, disks=[]
        ),
    ],
    ids=["nobody-waits", "at-leisure", "little-of-it", "nothing-counted"],
)
def test_a_disk_that_works_and_holds_nobody_is_not_blamed(empty_world, server) -> None:
    ends = {"client": end(), "server": server}
    assert named(running(empty_world, sockets=WAITS, ends=ends)) == NOTHING


def test_a_disk_that_waits_does_not_matter_on_a_path_that_is_full(empty_world) -> None:
    ends = {"client": end(reads="sda", waits=0.9, busy=1.0), "server": end(writes="b", waits=0.9)}
    assert named(running(empty_world, sockets=PATH, ends=ends)) == LINK


def test_unread_bytes_speak_against_the_senders_disk(empty_world) -> None:
    ends = {"client": end(reads="sda", waits=0.9), "server": end()}
    seen = running(empty_world, sockets={"by": "receiver"}, ends=ends)
    assert named(seen) == NOTHING
    assert "unread at the server" in of(seen).verdict.sentence


def test_a_folder_on_another_host_is_no_disk_of_this_one(empty_world) -> None:
    far = end(writes="sdb", waits=0.9)
    far["writes"] = {"remote": True}
    ends = {"client": end(), "server": far}
    assert named(running(empty_world, sockets=WAITS, ends=ends)) == NOTHING


def test_a_disk_that_others_use_is_shared(empty_world) -> None:
    server = end(writes="sdb", waits=0.9, busy=1.0)
    server["disks"][0]["read_bytes"] = 2 * RUN_BYTES
    seen = running(empty_world, sockets=WAITS, ends={"client": end(), "server": server})
    assert named(seen) == ("disk", "server", "contention")


def test_what_is_not_on_the_disk_yet_is_told(empty_world) -> None:
    server = end(writes="sdb")
    server["disks"][0]["written_bytes"] = RUN_BYTES // 2
    ends = {"client": end(), "server": server}
    lines = of(running(empty_world, sockets=PATH, ends=ends)).evidence
    assert any("waits in the server's memory" in line for line in lines)
    lines = of(running(empty_world, sockets=PATH)).evidence
    assert not any("waits in the server's memory" in line for line in lines)


# -- one host ------------------------------------------------------------------------------------


def local(reads, writes, waits, read_busy=0.1, write_busy=0.1, dirty=None):
    """A copy between two folders: one set of processes, two devices or one."""
    told = end(reads=reads, waits=waits, busy=read_busy, dirty=dirty)
    told["processes"]["disk_written_bytes"] = RUN_BYTES
    told["writes"] = {"device": writes, "remote": False}
    row = {"name": writes, "read_bytes": 0, "written_bytes": RUN_BYTES, "busy_ratio": write_busy}
    if reads == writes:
        told["disks"][0]["written_bytes"] = RUN_BYTES
    else:
        told["disks"].append(row)
    return {"client": told}


@pytest.mark.parametrize(
    ("ends", "cause"),
    [
        (local("sda", "sdb", 0.9), "read"),
        (local("sda", "sdb", 0.9, read_busy=0.95, write_busy=0.99), "read"),
        (local("sda", "sdb", 0.9, write_busy=0.99), "write"),
        (local("sda", "sdb", 0.9, dirty=1 << 30), "write"),
        (local("sda", "sda", 0.9), "read"),
    ],
    ids=["waits", "both-busy", "target-busy", "memory-full", "one-disk"],
)
def test_a_copy_on_one_host_is_held_by_the_disk_at_its_end(empty_world, ends, cause) -> None:
    seen = running(empty_world, ends=ends, over="disk", agent=False)
    assert named(seen) == ("disk", "client", cause)
    assert not any("one end alone" in line for line in of(seen).evidence)


def test_a_source_in_memory_leaves_the_target(empty_world) -> None:
    ends = local("sda", "sdb", 0.9, write_busy=0.99)
    ends["client"]["processes"]["disk_read_bytes"] = ends["client"]["disks"][0]["read_bytes"] = 0
    assert named(running(empty_world, ends=ends, over="disk")) == ("disk", "client", "write")


def test_a_copy_on_one_host_that_waits_for_nothing_names_nothing(empty_world) -> None:
    seen = running(empty_world, ends=local("sda", "sdb", 0.0), over="disk")
    assert named(seen) == NOTHING and "neither of its disks" in of(seen).verdict.sentence


# -- requests ------------------------------------------------------------------------------------

FAR = {**WAITS, "min_rtt_seconds": 0.04, "rtt_seconds_median": 0.0401}


def test_a_full_window_on_a_long_path_is_round_trips(empty_world) -> None:
    window = {**FAR, "in_flight_bytes_high": 524_288}
    seen = running(empty_world, rate=12.5, sockets=window)
    assert named(seen) == ("smb", "path", "round-trips")
    assert "512 KiB" in of(seen).verdict.sentence


@pytest.mark.parametrize(
    ("sockets", "over"),
    [
        ({**FAR, "in_flight_bytes_high": 524_288}, "tcp"),
        ({**FAR, "in_flight_bytes_high": 4 << 20}, "smb"),
        ({**FAR, "in_flight_bytes_high": 4000}, "smb"),
        ({**WAITS, "in_flight_bytes_high": 524_288}, "smb"),
        ({**FAR, "in_flight_bytes_high": None}, "smb"),
        ({**FAR, "sender_seen": False}, "smb"),
    ],
    ids=["not-smb", "half-empty", "tiny", "near", "unknown", "unseen"],
)
def test_requests_are_not_blamed_without_a_full_window_on_a_long_path(
    empty_world, sockets, over
) -> None:
    seen = running(empty_world, rate=12.5, sockets=sockets, over=over)
    assert named(seen) == NOTHING and "nothing to send" in of(seen).verdict.sentence


# -- nothing to name -----------------------------------------------------------------------------


def test_a_full_window_without_its_receiver_is_told_and_not_named(empty_world) -> None:
    shut = {"by": "unknown", "peer_window_full_ratio": 0.8}
    copy = of(running(empty_world, rate=15.0, sockets=shut, ends={"client": end()}, agent=False))
    assert "server took no more" in copy.verdict.sentence
    assert "--agent ssh://USER@SERVER" in copy.advice[0]


def test_both_ends_and_no_cause_ask_for_a_longer_watch(empty_world) -> None:
    copy = of(running(empty_world, rate=15.0, sockets={"by": "unknown"}))
    assert "cannot be told" in copy.verdict.sentence and "--seconds 60" in copy.advice[0]


def test_from_the_server_it_is_the_client_that_is_missing(empty_world) -> None:
    report = running(empty_world, rate=15.0, sockets={"by": "unknown"}, ends={"server": end()})
    copy = of(report)
    assert "ssh://USER@CLIENT" in copy.advice[0]
    assert any("client's queues" in line for line in copy.evidence)
    assert copy.initiator == "client"


def test_a_cpu_that_is_full_is_named_by_the_rule_for_every_copy(empty_world) -> None:
    load = {"throttled_ratio": 0.9, "quota_cores": 0.2, "core_busy_ratios": (0.2, 0.0)}
    seen = running(empty_world, sockets=WAITS, server=load)
    assert named(seen) == ("cpu", "server", "quota")


def test_strange_details_raise_nothing(empty_world) -> None:
    strange: tuple[dict[str, Any], ...]
    strange = ({"ends": []}, {"ends": {"client": 7}}, {"sockets": []}, {"ends": {"server": {}}})
    for odd in strange:
        report = running(empty_world, ends={})
        ((step, outcome),) = report.entries
        changed = replace(outcome, details={**outcome.details, **odd})
        assert named(replace(report, entries=((step, changed),))) == NOTHING


def test_an_interface_that_claims_nothing_or_counts_nothing_is_never_full(empty_world) -> None:
    full = {"interface_received_bytes": int(104.0e6 * SECONDS)}
    report = running(empty_world, "pull", 99.0, {"by": "unknown"}, client=full)
    odd = replace(report.client.interface, rate_bits_per_second=850_000_000)
    assert named(replace(report, client=replace(report.client, interface=odd))) == LINK
    for changes in ({"virtual": True}, {"rate_bits_per_second": None}):
        card = replace(odd, **changes)
        assert named(replace(report, client=replace(report.client, interface=card))) == NOTHING
    assert named(replace(report, client=replace(report.client, interface=None))) == NOTHING
    assert named(replace(report, client=None)) == NOTHING


def test_a_copy_that_moved_nothing_has_no_verdict(empty_world) -> None:
    report = running(empty_world, rate=0.0)
    assert named(report) == ("unknown", None, "not-measured")
