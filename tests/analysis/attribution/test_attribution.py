"""Planted traces: each component is named where it has work, in each view that can tell it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bottleneck.analysis.attribution import causes
from bottleneck.analysis.attribution.attribution import attribution_of
from bottleneck.analysis.attribution.shares import ALONE, BOTH, HIDDEN
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from tests.analysis.attribution.planted import (
    LOOKS,
    MIB,
    SECONDS,
    SENDING,
    bins,
    columns,
    copy,
    looks,
    socket,
    threads,
)
from tests.analysis.conftest import usage
from tests.traces import alone, hidden, whole

RATE = 25e6
WAITS = bins(0.05, reply=0.94)
HEARS = bins(0.05, reply=0.02)
SENDS = bins(0.05, send=0.94)
FAR = {"rtt_seconds": 0.02, "min_rtt_seconds": 0.02}
DISK = threads(disk=1)
ONE_DEVICE = usage(
    device_read_bytes=int(RATE * SECONDS), device_written_bytes=int(RATE * SECONDS) + MIB
)
FULL = threads(running=1, busiest_ratio=0.98, all_ratio=1.0)
BUSY = threads(running=1, busiest_ratio=0.6, all_ratio=0.6)
CLOSED = {"peer_window_bytes": 64 << 10, **SENDING}
READ = [["read", at / 10, at / 10 + 0.03, at / 10 + 0.04, MIB, 512 << 10] for at in range(40)]
WRITE = [["write", *rest] for _, *rest in READ]


def sends(**told: Any) -> dict[str, Any]:
    return socket("acknowledged_bytes", **told)


def gets(**told: Any) -> dict[str, Any]:
    return socket("received_bytes", **told)


def pull(
    bins: Any = HEARS, near: Any = None, far: Any = None, threads: Any = None, **more: Any
) -> TimedCopy:
    server = looks(sends(**(far or {})), threads=threads or globals()["threads"]())
    return copy(True, bins, READ, looks(gets(**(near or {}))), server, **more)


def push(
    bins: Any = SENDS, near: Any = None, far: Any = None, threads: Any = None, **more: Any
) -> TimedCopy:
    counts = more.pop("counts", {})
    server = looks(gets(**(far or {})), threads=threads or globals()["threads"](), counts=counts)
    return copy(False, bins, WRITE, looks(sends(**(near or {}))), server, **more)


PLANTED: dict[str, tuple[TimedCopy, str, str]] = {
    # name: the copy, whom both hosts name, whom the client names alone
    "the server's disk is read": (
        pull(WAITS, threads=DISK, uncached=True, cached_rate=1e8),
        *("disk/server/read", "disk/server/read"),
    ),
    "the server's CPU, pulled": (
        pull(WAITS, threads=FULL),
        *("cpu/server/one-core", "cpu/server/one-core"),
    ),
    "the path, pulled": (pull(far=SENDING), "network/path/link-rate", "network/path/link-rate"),
    "the client's disk, pulled": (
        pull(bins(0.05, write=0.94)),
        *("disk/client/write", "disk/client/write"),
    ),
    "the client's CPU, pulled": (
        pull(bins(0.98), near={"unread_bytes": 400 << 10}),
        *("cpu/client/one-core", "cpu/client/one-core"),
    ),
    "a thread that is busy with trickles": (
        pull(bins(0.85), near={"unread_bytes": 1448}, far=SENDING),
        *("network/path/link-rate", "network/path/link-rate"),
    ),
    "the client's receive window": (
        pull(
            near={"own_window_bytes": 512 << 10, **FAR},
            far={**SENDING, **FAR, "in_flight_bytes": 512 << 10, "peer_window_bytes": 512 << 10},
        ),
        *("tcp/client/receive-window", "tcp/client/receive-window"),
    ),
    "the server's send buffer": (
        pull(far={"queued_bytes": 4 * MIB, "in_flight_bytes": 3 * MIB}),
        *("tcp/server/send-buffer", "network/path/link-rate"),
    ),
    "too few requests for the round trip": (
        pull(bins(0.02, reply=0.7), near=FAR, far=FAR),
        *("smb/server/round-trips", "smb/server/round-trips"),
    ),
    "the server's disk, pushed": (
        push(WAITS, threads=DISK),
        "disk/server/write",
        "unknown/None/inconclusive",
    ),
    "the server's disk at the last flush": (
        push(WAITS, flush_seconds=3.0),
        *("disk/server/write", "disk/server/write"),
    ),
    "a server that makes each write durable": (
        push(WAITS, threads=DISK, counts=columns(9, device_flushes=lambda at: 20 * at)),
        *("disk/server/sync", "unknown/None/inconclusive"),
    ),
    "the server's CPU, pushed": (
        push(SENDS, near=CLOSED, far={"unread_bytes": 5 * MIB}, threads=BUSY),
        *("cpu/server/one-core", "unknown/None/inconclusive"),
    ),
    "a server that leaves bytes unread, and whose CPU idles": (
        push(SENDS, near=CLOSED, far={"unread_bytes": 5 * MIB}),
        *("unknown/None/inconclusive", "unknown/None/inconclusive"),
    ),
    "the path, pushed": (push(near=SENDING), "network/path/link-rate", "network/path/link-rate"),
    "the client's disk, pushed": (
        push(bins(0.05, read=0.94)),
        "disk/client/read",
        "disk/client/read",
    ),
    "the client's CPU, pushed": (push(bins(0.98)), "cpu/client/one-core", "cpu/client/one-core"),
    "the server's receive window": (
        push(near={**SENDING, **FAR, "in_flight_bytes": 512 << 10, "peer_window_bytes": 512 << 10}),
        *("tcp/server/receive-window", "tcp/server/receive-window"),
    ),
    "the client's send buffer": (
        push(near={"queued_bytes": 4 * MIB, "in_flight_bytes": 3 * MIB}),
        *("tcp/client/send-buffer", "tcp/client/send-buffer"),
    ),
    "packets that vanish": (
        push(near={**SENDING, "acknowledged_bytes": 0, "backoffs": 4}, moved_bytes=0.0),
        *("network/path/mtu", "network/path/mtu"),
    ),
    "packets that vanish until smaller ones are tried": (
        push(
            near={
                **SENDING,
                "acknowledged_bytes": lambda at: max(0, at - 25) * MIB,
                "backoffs": lambda at: 3 if 2 < at < 25 else 0,
            }
        ),
        *("network/path/mtu", "network/path/mtu"),
    ),
}


def named(made: TimedCopy) -> str:
    found = attribution_of(made)
    assert found is not None
    assert sum(each.ratio for each in found.shares) == pytest.approx(1.0)
    return f"{found.component}/{found.side}/{found.cause}"


@pytest.mark.parametrize("name", PLANTED)
def test_what_was_planted_is_named(name: str) -> None:
    made, both, client = PLANTED[name]
    assert named(made) == both
    found = attribution_of(replace(made, trace=alone(made.trace)))
    assert found is not None and found.view == "client alone"
    assert f"{found.component}/{found.side}/{found.cause}" == client


def test_where_the_servers_threads_are_hidden_its_cores_tell() -> None:
    waits = columns(9, io_waiting_cores=1.0, busiest_core_ratio=0.1)
    disk = copy(True, WAITS, READ, looks(gets()), looks(sends(), counts=waits))
    busy = columns(9, io_waiting_cores=0.0, busiest_core_ratio=0.97)
    full = copy(True, WAITS, READ, looks(gets()), looks(sends(), counts=busy))
    assert (named(disk), named(full)) == ("disk/server/read", "cpu/server/one-core")
    found = attribution_of(disk)
    assert found is not None and found.view == HIDDEN
    made = pull(WAITS, threads=DISK)
    assert hidden(made.trace).serving is not None and whole(made.trace) is made.trace
    found = attribution_of(made)
    assert found is not None and found.view == BOTH


def test_a_tie_is_named_by_nobody_and_its_shares_are_told_all_the_same() -> None:
    made = pull(bins(0.5, reply=0.45), threads=threads(disk=lambda at: at % 2))
    found = attribution_of(made)
    assert found is not None and found.component == "unknown"
    assert {(each.component, each.side) for each in found.shares} >= {
        ("disk", "server"),
        ("cpu", "client"),
    }


def test_a_host_that_starves_is_told_by_its_moving_thread() -> None:
    """Its quota stops the watch as well."""
    made = copy(True, bins(0.1, 0.88), READ, looks({}), {})
    assert named(made) == "cpu/client/one-core"
    assert named(copy(True, WAITS, READ, looks({}), {})) == "unknown/None/inconclusive"


def test_a_server_that_starves_is_looked_at_when_the_client_was() -> None:
    seldom = {
        name: each[::30] if isinstance(each, list) else each for name, each in sends().items()
    }
    server = looks(seldom, threads=FULL)
    found = attribution_of(copy(True, WAITS, READ, looks(gets()), server))
    assert found is not None and found.view == BOTH and found.component == "cpu"


def test_a_copy_that_the_server_starts_is_told_by_the_server() -> None:
    made, *_ = PLANTED["the client's disk, pushed"]
    turned = replace(made, asking="server", serving="client", trace=alone(made.trace))
    found = attribution_of(turned)
    assert found is not None and found.view == "server alone"
    assert (found.component, found.side) == ("disk", "server")


def test_near_hosts_of_which_none_is_seen_to_work_do_not_wait_for_round_trips() -> None:
    assert named(pull(WAITS)) == "unknown/None/inconclusive"
    far = named(pull(bins(0.02, reply=0.7), near=FAR, far=FAR))
    assert far == "smb/server/round-trips"


@pytest.mark.parametrize("missing", ["unsent_bytes", "in_flight_bytes", "peer_window_bytes"])
def test_what_an_old_kernel_does_not_tell_blames_nobody(missing: str) -> None:
    made = pull(far={**SENDING, missing: None})
    assert named(made) == "unknown/None/inconclusive"


def test_threads_that_were_seen_for_a_moment_alone_prove_nothing() -> None:
    once = {name: each[:1] for name, each in DISK.items()}
    found = attribution_of(pull(WAITS, threads=once))
    assert found is not None and found.view == "client alone" and found.confidence <= 0.6
    # three looks of one span say nothing of the rest of the copy
    early = {name: each[:3] for name, each in DISK.items()}
    assert named(pull(WAITS, threads=early)) == "unknown/None/inconclusive"


def test_without_looks_nothing_is_said() -> None:
    made = copy(True, bins(0.98), READ, looks(gets()), {})
    assert attribution_of(replace(made, trace=replace(made.trace, asking=None))) is None


def test_a_server_that_stops_in_the_middle_of_replies_is_no_slow_path() -> None:
    stops = {"since_received_seconds": lambda at: 0.05 * (at % 2)}
    made = pull(near=stops)
    assert named(replace(made, trace=alone(made.trace))) != "network/path/link-rate"


LINK = {"client": 1.25e8}
CAUSES: dict[str, tuple[TimedCopy, str]] = {
    "others at the sender's interface": (
        push(near=SENDING, usages={"client": usage(interface_sent_bytes=int(2 * RATE * SECONDS))}),
        "network/path/contention",
    ),
    "others at the receiver's interface": (
        push(
            near=SENDING, usages={"server": usage(interface_received_bytes=int(2 * RATE * SECONDS))}
        ),
        "network/path/contention",
    ),
    "others at an interface that has room": (
        push(
            near=SENDING,
            usages={"client": usage(interface_sent_bytes=int(2 * RATE * SECONDS))},
            link_rates=LINK,
        ),
        "network/path/link-rate",
    ),
    "segments that are lost all along": (
        push(near={**SENDING, "retransmitted_bytes": lambda at: at * 20000}),
        "network/path/loss",
    ),
    "segments that TCP's start lost": (
        push(near={**SENDING, "retransmitted_bytes": lambda at: min(at, 6) * 200000}),
        "network/path/link-rate",
    ),
    "a queue that overflows": (
        push(
            near={
                **{**SENDING, "retransmitted_bytes": lambda at: at * 20000},
                **{"rtt_seconds": 0.05, "min_rtt_seconds": 0.005},
            }
        ),
        "network/path/link-rate",
    ),
    "TCP's start on a far path": (
        push(near={**SENDING, **FAR, "acknowledged_bytes": lambda at: at**3}),
        "network/path/delay",
    ),
    "a quota": (
        push(bins(0.1, 0.88), usages={"client": usage(throttled_ratio=0.6)}),
        "cpu/client/quota",
    ),
    "another process": (
        push(bins(0.45, 0.53), usages={"client": usage(other_cpu_seconds=2.0)}),
        "cpu/client/contention",
    ),
    "all cores": (
        push(bins(0.98), usages={"client": usage(core_busy_ratios=(0.99, 0.97))}),
        "cpu/client/all-cores",
    ),
    "others on the disk": (
        pull(
            WAITS, threads=DISK, usages={"server": usage(device_read_bytes=int(3 * RATE * SECONDS))}
        ),
        "disk/server/contention",
    ),
    "read-ahead": (
        pull(
            WAITS,
            threads=DISK,
            usages={"server": usage(device_read_bytes=int(RATE * SECONDS) + 20 * MIB)},
        ),
        "disk/server/read",
    ),
    "two hosts with one device": (
        pull(WAITS, threads=DISK, usages=dict.fromkeys(("client", "server"), ONE_DEVICE)),
        "disk/server/read",
    ),
}


@pytest.mark.parametrize("name", CAUSES)
def test_the_cause_within_a_component_is_told(name: str) -> None:
    made, expected = CAUSES[name]
    assert named(made) == expected


def test_a_receiver_alone_tells_loss_and_the_start_of_tcp() -> None:
    """A burst of losses now and then is the overflow of a queue, and so are those of a full one."""
    all_along = {"out_of_order_segments": lambda at: 20 * at}
    lost = pull(near={**FAR, **all_along, "receive_rtt_seconds": 0.02})
    full = pull(near={**FAR, **all_along, "receive_rtt_seconds": 0.03})
    seldom = pull(near={**FAR, "out_of_order_segments": lambda at: at // 30 * 900})
    start = pull(near={**FAR, "received_bytes": lambda at: (at / LOOKS) ** 3 * 1e8})
    made = (lost, full, seldom, start)
    told = [named(replace(each, trace=alone(each.trace), moved_bytes=9e9)) for each in made]
    assert told == [f"network/path/{each}" for each in ("loss", "link-rate", "link-rate", "delay")]


def seen_seldom(made: TimedCopy, looks: int, counts: int = LOOKS) -> TimedCopy:
    """The same copy, of which its hosts saw little."""

    def fewer(host: Any) -> Any:
        connection = replace(host.connection, looks=host.connection.looks[:looks])
        return replace(host, connection=connection, threads=host.threads[:counts])

    trace = made.trace
    assert trace.asking and trace.serving
    return replace(
        made, trace=replace(trace, asking=fewer(trace.asking), serving=fewer(trace.serving))
    )


@pytest.mark.parametrize(
    ("made", "view"),
    [
        (seen_seldom(pull(WAITS, threads=DISK), 4), ALONE.format("client")),
        (seen_seldom(push(threads=DISK), LOOKS, 2), ALONE.format("client")),
    ],
    ids=["few looks at the connections", "few looks at the server"],
)
def test_what_was_seen_seldom_is_judged_by_the_host_that_makes_the_copy(
    made: TimedCopy, view: str
) -> None:
    found = attribution_of(made)
    assert found is not None and found.view == view


def test_counters_that_are_not_known_name_the_plain_cause() -> None:
    """No agent told what its cores did; the sender's socket was not seen."""
    assert named(push(bins(0.98), usages={})) == "cpu/client/one-core"
    made = pull(near={**FAR, "unread_bytes": 0})
    asking = made.trace.asking
    assert asking is not None
    unseen = replace(asking, connection=None)
    found = attribution_of(replace(made, trace=replace(made.trace, asking=unseen, serving=None)))
    assert found is None or found.component in ("network", "unknown")


@pytest.mark.parametrize("count", range(7))
def test_a_copy_that_was_hardly_looked_at_has_a_cause_too(count: int) -> None:
    """Beside load an agent may look once or twice at a copy that loses packets."""
    lost = socket("acknowledged_bytes", **SENDING, retransmitted_bytes=lambda at: at * MIB)
    few = {name: told[:count] if isinstance(told, list) else told for name, told in lost.items()}
    made = copy(False, SENDS, client=looks(few), moved_bytes=9e9)
    assert causes.cause(made, ("network", "path")) in ("link-rate", "delay")
