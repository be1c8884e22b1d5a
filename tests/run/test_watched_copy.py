"""Observations of a running copy become one step; what cannot be is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bottleneck.run.watched_copy import End, moves, side_of, step_of, window_rates
from probes.core.copy_trace import SocketLook
from probes.core.records import Measured, Sample, Skipped, Usage
from probes.files.open_files import Place
from probes.watch.running_copies import Link, Running, place_of, sends_more, watch_setting

LINK = Link("10.0.0.1", 40000, "10.0.0.2", 445, serving=False, kernel=False)
MIB = 1 << 20


def copy_on(link: Link | None = LINK, **changes: Any) -> Running:
    fields: dict[str, Any] = {"pids": (7,), "program": "smbclient", "reads": None, "writes": None}
    fields["moved_bytes"] = {"sent_bytes": 5 * MIB, "received_bytes": 900}
    return Running(link=link, **{**fields, **changes})


def place(device: str | None = "sda1", **changes: Any) -> Place:
    fields: dict[str, Any] = {"folder": "/srv", "here": True, "filesystem": "ext4"}
    fields.update(remote=False, remote_address=None, remote_port=0, dialect=None)
    return Place(device=device, **{**fields, **changes})


def view(**options: Any) -> dict[str, Any]:
    """Returns the message of a watch that saw nothing but these options."""
    nothing: dict[str, Any] = {"connections": [], "threads": [], "counts": [], "cpu_ratio": 0.01}
    return {**nothing, "bins": [], "io_looks": [], **options}


def link(name: str, *values: int | None, step: float = 0.5) -> dict[str, Any]:
    """Returns the message of a watch about a connection, one of whose counters grows."""
    rows = []
    for index, value in enumerate(values):
        rows.append([*SocketLook(0.2 + step * index, **{name: value})])
    plain = {"local": "10.0.0.1 40000", "peer": "10.0.0.2 445"}
    plain |= dict.fromkeys(("sent_bytes", "received_bytes"), 0)
    fields: dict[str, Any] = {"looks": len(rows), "rows": rows, "sender": None, "receiver": None}
    fields |= {"congestion_control": None, "send_buffer_bytes": None}
    return view(connections=[{**plain, **fields, "receive_buffer_bytes": None, "process": None}])


def sent_counts(*values: int | None) -> dict[str, Any]:
    return link("acknowledged_bytes", *values)


def received_counts(*values: int | None) -> dict[str, Any]:
    return link("received_bytes", *values)


def io_of(*rows: tuple[float, ...]) -> list[list[float]]:
    """Seconds, and bytes read, written, fetched from a disk and made dirty."""
    return [[*row, 0.0][:5] for row in rows]


def usage() -> Usage:
    nothing = dict.fromkeys(("quota_cores", "throttled_ratio", "run_delay_seconds"))
    memory = ("total", "used", "dirty")
    absent_fields = {f"memory_{name}_bytes": None for name in memory}
    for name in ("interface_sent", "interface_received", "device_read", "device_written"):
        absent_fields[f"{name}_bytes"] = None
    fields: dict[str, Any] = {
        "wall_seconds": 2.0,
        "core_busy_ratios": (0.1,),
        **nothing,
        **absent_fields,
    }
    for name in ("busiest_core", "softirq", "steal", "busiest_process", "device_busy"):
        fields[f"{name}_ratio"] = None if name == "device_busy" else 0.0
    return Usage(copy_cpu_seconds=0.1, other_cpu_seconds=0.0, **fields)


def step(saw: Any, copier: Running | None = None, here: Any = "client", **others: End) -> Any:
    ends: Any = {here: End(copier or copy_on(), saw), **others}
    return step_of(here, ends, dict.fromkeys(ends, usage()), 2.0)


def test_more_sent_than_received_is_a_push_of_the_client_and_less_a_pull() -> None:
    copy, outcome = step(sent_counts(0, MIB, 2 * MIB, 3 * MIB))
    assert copy.setting["copy"] == "push" and copy.setting["over"] == "smb"
    assert isinstance(outcome, Measured)
    assert outcome.runs[0][-1] == Sample(1.5, 3 * MIB)
    assert step(received_counts(0, MIB, 2 * MIB))[0].setting["verb"] == "pull"
    ssh = Link("10.0.0.1", 40000, "10.0.0.2", 22, serving=False, kernel=False)
    assert step(sent_counts(0, MIB), copy_on(ssh))[0].setting["over"] == "tcp"


SERVED = Link("10.0.0.2", 445, "10.0.0.1", 40000, serving=True, kernel=False)


def test_at_the_server_what_arrives_was_pushed_by_the_client() -> None:
    copy, _ = step(received_counts(0, MIB), copy_on(SERVED), here="server")
    assert copy.setting["verb"] == "push" and copy.initiator == "server"
    assert side_of(copy_on(SERVED)) == "server" and side_of(copy_on(None)) == "client"


@pytest.mark.parametrize("saw", [sent_counts(0, 0, 0), view(), sent_counts(None, None)])
def test_nothing_that_moved_is_no_measurement(saw: Any) -> None:
    _, outcome = step(saw)
    assert isinstance(outcome, Skipped)


def test_the_time_after_the_copys_end_does_not_count() -> None:
    _, outcome = step(sent_counts(0, MIB, 2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB))
    assert outcome.runs[0][-1] == Sample(1.0, 2 * MIB)
    _, outcome = step(sent_counts(0, MIB, 2 * MIB, 2 * MIB))
    assert outcome.runs[0][-1].elapsed_seconds == 1.5


def test_a_copy_between_folders_is_what_its_process_wrote_or_read() -> None:
    writer = copy_on(None, moved_bytes={"written_bytes": MIB})
    rows = io_of((0.1, 0, 0, 0), (1.1, 9, 2 * MIB, 0))
    copy, outcome = step(view(io_looks=rows), writer)
    assert copy.setting["over"] == "disk" and outcome.runs[0][-1].moved_bytes == 2 * MIB
    copy, outcome = step(view(io_looks=io_of((0.1, 0, 0, 0), (1.1, MIB, 0, 0))), writer)
    assert outcome.runs[0][-1].moved_bytes == MIB
    # rsync's processes hand it to each other: written twice, stored once
    copy, outcome = step(view(io_looks=io_of((0.1, 0, 0, 0, 0), (1.1, 9, 2 * MIB, 0, MIB))), writer)
    assert outcome.runs[0][-1].moved_bytes == MIB


def test_of_several_connections_the_rate_is_that_of_all() -> None:
    """For example rclone, which copies a large file by four."""
    several = replace(copy_on(), connections=3, share_ratio=0.4)
    _, outcome = step(sent_counts(0, MIB, 2 * MIB), several)
    assert outcome.runs[0][-1].moved_bytes == 5 * MIB


@pytest.mark.parametrize(
    ("read", "from_disk", "name", "sure"),
    [
        (2 * MIB, 2 * MIB, "push.uncached", True),
        (2 * MIB, 0, "push.cached", True),
        (2 * MIB, MIB // 2, "push", None),
        (100, 0, "push", None),
    ],
    ids=["from-disk", "from-memory", "from-both", "reads-no-file"],
)
def test_where_the_source_was_is_named_only_where_it_was_seen(
    read: int, from_disk: int, name: str, sure: bool | None
) -> None:
    rows = io_of((0.1, 0, 0, 0), (1.1, read, 0, from_disk))
    copy, outcome = step({**sent_counts(0, MIB, 2 * MIB), "io_looks": rows})
    assert copy.setting["copy"] == name
    assert outcome.details.get("cache", {}).get("proven") is sure
    assert "cache" not in step(sent_counts(0, MIB, 2 * MIB))[1].details


def test_a_server_whose_threads_wait_for_its_disk_has_the_source_on_it() -> None:
    """Its user's process tells no bytes to others, but its state."""
    rows = [[0.1 * index, 0, int(index > 2), 0.1, 0.1, 0.0, 0.0] for index in range(10)]
    saw = {**sent_counts(0, MIB, 2 * MIB), "threads": rows}
    copy, outcome = step(saw, copy_on(SERVED), here="server")
    assert copy.setting["copy"] == "pull.uncached"
    assert outcome.details["cache"] == {"side": "server", "proven": True, "from_disk": True}


def test_the_mounts_dialect_is_kept_and_a_wait_for_its_file_is_one_for_the_other_host() -> None:
    copier = copy_on(reads=place(), writes=place(None, remote=True, dialect="3.1.1"))
    copy, _ = step(sent_counts(0, MIB), copier)
    assert copy.setting["dialect"] == "3.1.1"
    looked = watch_setting(copier, 5.0)
    assert (looked.disk_verb, looked.device, looked.ends) == ("other", "sda1", (40000, 445))
    assert (looked.ports, looked.serving, looked.peer_address) == ((445,), False, "10.0.0.2")
    assert watch_setting(copy_on(reads=place()), 5.0).disk_verb == "read"
    pulled = {"sent_bytes": 900, "received_bytes": MIB}
    assert watch_setting(copy_on(writes=place(), moved_bytes=pulled), 5.0).disk_verb == "write"
    served = watch_setting(copy_on(SERVED), 5.0)
    assert (served.ports, served.serving, served.ends) == ((445,), True, (445, 40000))
    local = watch_setting(copy_on(None, reads=place("sda"), writes=place("sdb")), 5.0)
    assert (local.disk_verb, local.device, local.ports) == ("", "sdb", ())


def test_the_programs_time_is_that_of_the_bytes_and_the_clients_where_it_was_seen() -> None:
    """The rows of a watch begin with it; a copy begins with the first count, and may end before."""
    bins = [[0.1 + 0.25 * index, 0.0, 0.0, 0.2, 0.0, 0.0, 0.05 * index, 0.0] for index in range(12)]
    here = {**sent_counts(0, MIB, 2 * MIB, 3 * MIB), "bins": bins}
    there = End(copy_on(), {**received_counts(0, MIB, 2 * MIB, 3 * MIB), "bins": bins[:2]})
    _, outcome = step(here, server=there)
    trace, looks = outcome.details["trace"], outcome.details["looks"]
    assert set(looks) == {"client", "server"} and looks["client"]["cpu_ratio"] == 0.01
    ends = [row[0] for row in trace["bins"]]
    assert ends[0] == pytest.approx(0.15) and 1.25 < ends[-1] <= 1.5 and not trace["requests"]
    _, outcome = step(here, copy_on(SERVED), here="server")
    assert outcome.details["trace"]["bins"] == trace["bins"]


def rows_of(*rows: list[Any]) -> dict[str, Any]:
    """A connection with these times and counts of acknowledged bytes."""
    saw = sent_counts(*range(len(rows)))
    index = SocketLook._fields.index("acknowledged_bytes")
    for row, (seconds, count) in zip(saw["connections"][0]["rows"], rows, strict=True):
        row[0], row[index] = seconds, count
    return saw


@pytest.mark.parametrize(
    "saw",
    [
        [],
        {"connections": 5},
        view(connections=[{"local": 5}]),
        {**sent_counts(0, MIB), "bins": [["soon", 2]]},
        {**sent_counts(0, MIB), "bins": 5},
        {**sent_counts(0, MIB), "io_looks": 7},
        rows_of([1.0, "many"], [2.0, 3]),
        rows_of([2.0, 5], [1.0, 6]),
        rows_of([1.0, 5], [2.0, 4], [3.0, 6]),
        rows_of([0, 0], [1e-300, 9]),
        rows_of([0, 0], [5e-324, 9], [2.0, 9]),
        rows_of([0, 0], [0, 9], [2.0, 9]),
    ],
)
def test_what_cannot_be_is_refused(saw: Any) -> None:
    with pytest.raises(ValueError):
        step(saw)


def test_a_program_that_was_not_to_be_seen_leaves_the_sockets() -> None:
    _, outcome = step(sent_counts(0, MIB, 2 * MIB))
    trace = outcome.details["trace"]
    assert trace["unseen"] is True and [row[0] for row in trace["bins"]] == [0.0, 1.0]


def test_the_file_that_matters_is_the_one_at_the_bytes_end() -> None:
    copier = copy_on(reads=place("sda"), writes=place("sdb"))
    assert sends_more(copier) is True and place_of(copier, True) == place("sda")
    assert place_of(copier, False) == place("sdb")
    assert sends_more(copy_on(None)) is None and place_of(copier, None) == place("sdb")


def test_a_process_that_hardly_moves_anything_copies_nothing() -> None:
    assert moves(copy_on()) and not moves(copy_on(moved_bytes={"sent_bytes": 0}))
    assert moves(copy_on(None, moved_bytes={"written_bytes": MIB}))
    assert not moves(copy_on(None, moved_bytes={"written_bytes": 900})) and not moves(
        copy_on(None, moved_bytes={})
    )


def test_rates_are_those_of_whole_seconds() -> None:
    run = [Sample(index / 4, index * 250) for index in range(11)]
    assert window_rates(run) == [1000.0, 1000.0]
