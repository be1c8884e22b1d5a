"""Planted traces: each component has the largest share where it has work, in views that tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bottleneck.analysis.attribution.attribution import attribution_of
from bottleneck.analysis.attribution.shares import ALONE, BOTH, THREADS_UNSEEN
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from tests.analysis.attribution.planted import (
    LOOKS,
    MIB,
    SENDING,
    bins,
    columns,
    copy,
    looks,
    socket,
    threads,
)
from tests.traces import hidden, unchanged_trace, without_agent

RATE = 25e6
WAITS = bins(0.05, reply=0.94)
HEARS = bins(0.05, reply=0.02)
SENDS = bins(0.05, send=0.94)
FAR = {"rtt_seconds": 0.02, "min_rtt_seconds": 0.02}
DISK = threads(disk=1)
FULL = threads(running=1, busiest_ratio=0.98, all_ratio=1.0)
BUSY = threads(running=1, busiest_ratio=0.6, all_ratio=0.6)
CLOSED = {"peer_window_bytes": 64 << 10, **SENDING}
READ = [["read", n / 10, n / 10 + 0.03, n / 10 + 0.04, MIB, 512 << 10] for n in range(40)]
WRITE = [["write", *rest] for _, *rest in READ]


def sends(**figures: Any) -> dict[str, Any]:
    return socket("acknowledged_bytes", **figures)


def gets(**figures: Any) -> dict[str, Any]:
    return socket("received_bytes", **figures)


def pull(
    bins: Any = HEARS, near: Any = None, far: Any = None, threads: Any = None, **extra: Any
) -> TimedCopy:
    server = looks(sends(**(far or {})), threads=threads or globals()["threads"]())
    return copy(True, bins, READ, looks(gets(**(near or {}))), server, **extra)


def push(
    bins: Any = SENDS, near: Any = None, far: Any = None, threads: Any = None, **extra: Any
) -> TimedCopy:
    counts = extra.pop("counts", {})
    server = looks(gets(**(far or {})), threads=threads or globals()["threads"](), counts=counts)
    return copy(False, bins, WRITE, looks(sends(**(near or {}))), server, **extra)


PLANTED: dict[str, tuple[TimedCopy, tuple[str, str]]] = {
    # name: the copy, what has the largest share as both hosts see it, and as the client does alone
    "the server's disk is read": (
        pull(WAITS, threads=DISK, uncached=True),
        ("disk/server", "unknown/None"),
    ),
    "the server's CPU, pulled": (pull(WAITS, threads=FULL), ("cpu/server", "unknown/None")),
    "the path, pulled": (pull(far=SENDING), ("network/path", "network/path")),
    "the client's disk, pulled": (pull(bins(0.05, write=0.94)), ("disk/client", "disk/client")),
    "the client's CPU, pulled": (
        pull(bins(0.98), near={"unread_bytes": 400 << 10}),
        ("cpu/client", "cpu/client"),
    ),
    "a thread that is busy with trickles": (
        pull(bins(0.85), near={"unread_bytes": 1448}, far=SENDING),
        ("network/path", "cpu/client"),
    ),
    "the client's receive window": (
        pull(
            near={"own_window_bytes": 512 << 10, **FAR},
            far={**SENDING, **FAR, "in_flight_bytes": 512 << 10, "peer_window_bytes": 512 << 10},
        ),
        ("tcp/client", "network/path"),
    ),
    "the server's send buffer": (
        pull(far={"queued_bytes": 4 * MIB, "in_flight_bytes": 3 * MIB}),
        ("tcp/server", "network/path"),
    ),
    "too few requests for the round trip": (
        pull(bins(0.02, reply=0.7), near=FAR, far=FAR),
        ("smb/server", "unknown/None"),
    ),
    "the server's disk, pushed": (push(WAITS, threads=DISK), ("disk/server", "unknown/None")),
    "the server's disk at the last flush": (
        push(WAITS, flush_seconds=3.0),
        ("disk/server", "disk/server"),
    ),
    "a server that makes each write durable": (
        push(WAITS, threads=DISK, counts=columns(9, device_flushes=lambda n: 20 * n)),
        ("disk/server", "unknown/None"),
    ),
    "the server's CPU, pushed": (
        push(SENDS, near=CLOSED, far={"unread_bytes": 5 * MIB}, threads=BUSY),
        ("cpu/server", "tcp/server"),
    ),
    "a server that leaves bytes unread, and whose CPU idles": (
        push(SENDS, near=CLOSED, far={"unread_bytes": 5 * MIB}),
        ("unknown/None", "tcp/server"),
    ),
    "the path, pushed": (push(near=SENDING), ("network/path", "network/path")),
    "the client's disk, pushed": (push(bins(0.05, read=0.94)), ("disk/client", "disk/client")),
    "the client's CPU, pushed": (push(bins(0.98)), ("cpu/client", "cpu/client")),
    "the server's receive window": (
        push(near={**SENDING, **FAR, "in_flight_bytes": 512 << 10, "peer_window_bytes": 512 << 10}),
        ("tcp/server", "tcp/server"),
    ),
    "the client's send buffer": (
        push(near={"queued_bytes": 4 * MIB, "in_flight_bytes": 3 * MIB}),
        ("tcp/client", "tcp/client"),
    ),
    "packets that vanish": (
        push(near={**SENDING, "acknowledged_bytes": 0, "backoffs": 4}, moved_bytes=0.0),
        ("network/path", "network/path"),
    ),
    "packets that vanish until smaller ones are tried": (
        push(
            near={
                **SENDING,
                "acknowledged_bytes": lambda n: max(0, n - 25) * MIB,
                "backoffs": lambda n: 3 if 2 < n < 25 else 0,
            }
        ),
        ("network/path", "network/path"),
    ),
}


def name_cap(run: TimedCopy) -> str:
    """The component and side with the largest share of the time."""
    attribution = attribution_of(run)
    assert attribution is not None
    assert sum(each.ratio for each in attribution.shares) == pytest.approx(1.0)
    return f"{attribution.shares[0].component}/{attribution.shares[0].side}"


@pytest.mark.parametrize("name", PLANTED)
def test_what_was_planted_has_the_largest_share(name: str) -> None:
    run, (both, client) = PLANTED[name]
    assert name_cap(run) == both
    attribution = attribution_of(replace(run, trace=without_agent(run.trace)))
    assert attribution is not None and attribution.view == "client alone"
    assert f"{attribution.shares[0].component}/{attribution.shares[0].side}" == client


def test_where_the_servers_threads_are_hidden_its_cores_tell() -> None:
    waits = columns(9, io_waiting_cores=1.0, busiest_core_ratio=0.1)
    disk = copy(True, WAITS, READ, looks(gets()), looks(sends(), counts=waits))
    busy = columns(9, io_waiting_cores=0.0, busiest_core_ratio=0.97)
    full = copy(True, WAITS, READ, looks(gets()), looks(sends(), counts=busy))
    assert (name_cap(disk), name_cap(full)) == ("disk/server", "cpu/server")
    attribution = attribution_of(disk)
    assert attribution is not None and attribution.view == THREADS_UNSEEN
    run = pull(WAITS, threads=DISK)
    assert hidden(run.trace).serving is not None and unchanged_trace(run.trace) is run.trace
    attribution = attribution_of(run)
    assert attribution is not None and attribution.view == BOTH


def test_the_shares_of_a_tie_are_told() -> None:
    run = pull(bins(0.5, reply=0.45), threads=threads(disk=lambda n: n % 2))
    attribution = attribution_of(run)
    assert attribution is not None
    assert {(each.component, each.side) for each in attribution.shares} >= {
        ("disk", "server"),
        ("cpu", "client"),
    }


def test_a_host_that_starves_is_told_by_its_moving_thread() -> None:
    """Its quota stops the watch as well."""
    run = copy(True, bins(0.1, 0.88), READ, looks({}), {})
    assert name_cap(run) == "cpu/client"
    assert name_cap(copy(True, WAITS, READ, looks({}), {})) == "unknown/None"


def test_a_server_that_starves_is_looked_at_when_the_client_was() -> None:
    seldom = {
        name: each[::30] if isinstance(each, list) else each for name, each in sends().items()
    }
    server = looks(seldom, threads=FULL)
    times = attribution_of(copy(True, WAITS, READ, looks(gets()), server))
    assert times is not None and times.view == BOTH and times.shares[0].component == "cpu"


def test_a_copy_that_the_server_starts_is_told_by_the_server() -> None:
    run, *_ = PLANTED["the client's disk, pushed"]
    turned = replace(run, asking="server", serving="client", trace=without_agent(run.trace))
    attribution = attribution_of(turned)
    assert attribution is not None and attribution.view == "server alone"
    assert (attribution.shares[0].component, attribution.shares[0].side) == ("disk", "server")


def test_near_hosts_of_which_none_is_seen_to_work_do_not_wait_for_round_trips() -> None:
    assert name_cap(pull(WAITS)) == "unknown/None"
    far = name_cap(pull(bins(0.02, reply=0.7), near=FAR, far=FAR))
    assert far == "smb/server"


@pytest.mark.parametrize("missing", ["unsent_bytes", "in_flight_bytes", "peer_window_bytes"])
def test_what_an_old_kernel_does_not_tell_blames_nobody(missing: str) -> None:
    run = pull(far={**SENDING, missing: None})
    assert name_cap(run) == "unknown/None"


def test_threads_that_were_seen_for_a_moment_alone_prove_nothing() -> None:
    once = {name: each[:1] for name, each in DISK.items()}
    attribution = attribution_of(pull(WAITS, threads=once))
    assert attribution is not None and attribution.view == "client alone"
    # three looks of one span say nothing of the rest of the copy
    early = {name: each[:3] for name, each in DISK.items()}
    assert name_cap(pull(WAITS, threads=early)) == "unknown/None"


def test_without_looks_nothing_is_said() -> None:
    run = copy(True, bins(0.98), READ, looks(gets()), {})
    assert attribution_of(replace(run, trace=replace(run.trace, asking=None))) is None


def test_a_server_that_stops_in_the_middle_of_replies_is_no_slow_path() -> None:
    stops = {"since_received_seconds": lambda n: 0.05 * (n % 2)}
    run = pull(near=stops)
    assert name_cap(replace(run, trace=without_agent(run.trace))) != "network/path"


def seen_seldom(run: TimedCopy, looks: int, counts: int = LOOKS) -> TimedCopy:

    def fewer(host: Any) -> Any:
        connection = replace(host.connection, looks=host.connection.looks[:looks])
        return replace(host, connection=connection, threads=host.threads[:counts])

    trace = run.trace
    assert trace.asking and trace.serving
    return replace(
        run, trace=replace(trace, asking=fewer(trace.asking), serving=fewer(trace.serving))
    )


@pytest.mark.parametrize(
    ("run", "view"),
    [
        (seen_seldom(pull(WAITS, threads=DISK), 4), ALONE.format("client")),
        (seen_seldom(push(threads=DISK), LOOKS, 2), ALONE.format("client")),
    ],
    ids=["few looks at the connections", "few looks at the server"],
)
def test_what_was_seen_seldom_is_judged_by_the_host_that_makes_the_copy(
    run: TimedCopy, view: str
) -> None:
    attribution = attribution_of(run)
    assert attribution is not None and attribution.view == view
