"""Among all connections of two hosts the copy's own is told, its two ends put together."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from bottleneck.run import watched_sockets
from probes.core.copy_trace import CountLook, SocketLook, ThreadLook
from probes.watch.connection_track import Connection
from probes.watch.socket_watch import Observations

MIB = 1 << 20
CLIENT, SERVER = "10.0.0.1 50000", "10.0.0.2 445"
SENDER = {"busy_ratio": 1.0, "unsent_bytes_median": 1 << 20, "glimpses": 50}
RECEIVER = {"unread_bytes_median": 0, "full_ratio": 0.0}

AT_CLIENT = Connection(
    local=CLIENT,
    peer=SERVER,
    sent_bytes=3000,
    received_bytes=100 * MIB,
    looks=50,
    sender=SENDER,
    receiver=RECEIVER,
    congestion_control="cubic",
    send_buffer_bytes=1 * MIB,
    receive_buffer_bytes=6 * MIB,
    process=None,
)
AT_SERVER = Connection(
    local=SERVER,
    peer=CLIENT,
    sent_bytes=100 * MIB,
    received_bytes=3000,
    looks=50,
    sender=SENDER,
    receiver=RECEIVER,
    congestion_control="reno",
    send_buffer_bytes=16384,
    receive_buffer_bytes=2 * MIB,
    process="smbd",
)


def pull(connections: dict[Any, list[Connection]], moved_bytes: int = 100 * MIB) -> dict[str, Any]:
    return watched_sockets.connection_details(
        *watched_sockets.ends(connections, "server", "client", moved_bytes)
    )


def test_the_buffer_and_congestion_control_are_the_senders_and_the_window_the_receivers() -> None:
    details = pull({"client": [AT_CLIENT], "server": [AT_SERVER]})
    assert details["sender_seen"] and details["receiver_seen"]
    assert (details["send_buffer_bytes"], details["receive_buffer_bytes"]) == (16384, 6 * MIB)
    assert (details["congestion_control"], details["process"]) == ("reno", "smbd")
    assert details["by"] != "unknown"


def test_a_push_is_told_the_other_way_round() -> None:
    client = replace(AT_CLIENT, sent_bytes=100 * MIB, received_bytes=3000)
    server = replace(AT_SERVER, sent_bytes=3000, received_bytes=100 * MIB)
    connections = {"client": [client], "server": [server]}
    details = watched_sockets.connection_details(
        *watched_sockets.ends(connections, "client", "client", 100 * MIB)
    )
    assert (details["send_buffer_bytes"], details["receive_buffer_bytes"]) == (1 * MIB, 2 * MIB)
    assert (details["congestion_control"], details["process"]) == ("cubic", "smbd")


def test_where_one_host_has_no_agent_its_end_is_absent() -> None:
    details = pull({"client": [AT_CLIENT]})
    assert (details["sender_seen"], details["receiver_seen"], details["by"]) == (
        False,
        True,
        "unknown",
    )
    assert details["receive_buffer_bytes"] == 6 * MIB
    assert not {"send_buffer_bytes", "busy_ratio", "congestion_control", "process"} & set(details)


def test_a_connection_that_did_not_carry_the_copy_is_not_told() -> None:
    assert pull({"client": [AT_CLIENT], "server": [AT_SERVER]}, 10_000 * MIB) == {}
    assert pull({"client": [], "server": []}) == {}
    assert pull({}) == {}


def test_the_two_ends_are_of_one_connection() -> None:
    """Another copy, of the same host, may move more in the same time."""
    busier = replace(AT_SERVER, peer="10.0.0.1 50001", sent_bytes=300 * MIB, congestion_control="x")
    details = pull({"client": [AT_CLIENT], "server": [busier, AT_SERVER]})
    assert details["congestion_control"] == "reno"


def test_ends_that_do_not_fit_are_not_put_together() -> None:
    stranger = replace(AT_SERVER, peer="10.0.0.9 50000", sent_bytes=300 * MIB)
    details = pull({"client": [AT_CLIENT], "server": [stranger]})
    assert (details["sender_seen"], details["receiver_seen"]) == (False, True)


def test_ends_whose_addresses_are_translated_are_told_by_their_bytes() -> None:
    """Addresses are so behind a container's published port."""
    behind = replace(AT_SERVER, local="172.17.0.2 445", peer="172.17.0.1 41000")
    details = pull({"client": [AT_CLIENT], "server": [behind]})
    assert details["sender_seen"] and details["receiver_seen"]
    two = pull({"client": [AT_CLIENT], "server": [behind, replace(behind, peer="172.17.0.1 9")]})
    assert not two["sender_seen"]


def test_too_few_looks_tell_the_buffers_and_blame_nobody() -> None:
    client, server = (replace(each, sender=None, receiver=None) for each in (AT_CLIENT, AT_SERVER))
    details = pull({"client": [client], "server": [server]})
    assert (details["by"], details["send_buffer_bytes"]) == ("unknown", 16384)


def test_each_host_watches_its_own_side_of_the_servers_port() -> None:
    addresses: Any = {"client": "10.0.0.1", "server": "10.0.0.2"}
    settings = watched_sockets.settings("server", addresses, 4450, 60.0)
    assert (settings["server"].serving, settings["server"].peer_address) == (True, "10.0.0.1")
    assert (settings["client"].serving, settings["client"].peer_address) == (False, "10.0.0.2")
    assert settings["client"].ports == (4450, 445, 139)
    other_way = watched_sockets.settings("client", addresses, 445, 60.0)
    assert (other_way["client"].serving, other_way["client"].peer_address) == (True, "10.0.0.2")
    assert (other_way["server"].serving, other_way["server"].ports) == (False, (445, 139))


def test_a_host_that_connects_to_an_unknown_address_watches_all_of_that_port() -> None:
    """A FUSE mount does not show its server's address."""
    settings = watched_sockets.settings("server", {"server": "", "client": "10.0.0.1"}, 0, 1.0)
    assert (settings["client"].peer_address, settings["client"].ports) == ("", (445, 139))


@pytest.mark.parametrize(
    ("options", "port"),
    [("rw,vers=3.1.1,port=4450,cache=strict", 4450), ("port=445", 445), ("rw,sport=7", 0), ("", 0)],
)
def test_a_mount_may_name_its_servers_port(options: str, port: int) -> None:
    assert watched_sockets.port_of(options) == port


def test_what_a_watch_tells_is_checked() -> None:
    plain = {**asdict(AT_SERVER), "rows": []}
    host = {
        "connections": [plain],
        "threads": [[0.5, *[None] * 6]],
        "counts": [],
        "cpu_ratio": 0.01,
    }
    assert watched_sockets.parse_observations(host) == Observations(
        (AT_SERVER,), (ThreadLook(0.5),), (), 0.01
    )
    for bad in (
        None,
        [None],
        [{**plain, "more": 1}],
        [{**plain, "sent_bytes": -1}],
        [{**plain, "sender": {"busy_ratio": "all"}}],
        [{**plain, "receiver": {"full_ratio": [1]}}],
        [{**plain, "sender": {"busy_ratio": float("inf")}}],
    ):
        with pytest.raises(ValueError):
            watched_sockets.parse_observations({**host, "connections": bad})
    with pytest.raises(ValueError):
        watched_sockets.parse_observations({**host, "threads": [["R"]]})
    with pytest.raises(ValueError, match=r"threads\[0\] has 1 values instead of 7"):
        watched_sockets.parse_observations({**host, "threads": [[0.5]]})


def test_looks_are_told_by_columns_in_the_copys_own_time() -> None:
    rows = tuple(SocketLook(tick / 10, *range(17)) for tick in range(50))
    counts = tuple(CountLook(tick, 5, 6, 7, 8) for tick in (0.2, 0.9, 2.5))
    observed = Observations((), (), counts, 0.01)
    connection = replace(AT_CLIENT, rows=rows)
    columns = watched_sockets.look_columns(observed, connection, began=0.25, lasted=2.0)
    connection = columns["connection"]
    first, *_, last = connection[SocketLook._fields[0]]
    assert (first, last) == pytest.approx((0.05, 1.95))
    assert set(connection["unread_bytes"]) == {0}
    assert connection["receive_buffer_bytes"] == 6 * MIB
    assert columns["threads"]["running"] == []
    # the counts around a copy stand for its beginning and its end
    assert columns["counts"][CountLook._fields[0]] == pytest.approx([0.0, 0.65, 2.0])
    assert watched_sockets.look_columns(observed, None, 0.0, 1.0)["connection"] == {}
