"""Cause smb/server-software: named where requests wait in a server at rest, silent elsewhere."""

from dataclasses import replace
from typing import Any

import pytest

from bottleneck.analysis import diagnose

MIB = 1 << 20
Made = tuple[str, float, dict[str, Any]]
"""Name, rate in MB/s, what is unusual about it."""
IDLE = {"throttled_ratio": 0.0}
AIO = {
    "option": "aio read size",
    "value": "0",
    "matters_for": "read",
    "why": "reads are made one after the other",
    "remedy": "aio read size = 1",
}


def waiting(rate, depth=4, **more):
    """A copy of requests of 1 MiB, so many of them in flight all the time, over 0.1 ms."""
    return {
        "in_flight_bytes": depth * MIB,
        "request_bytes": MIB,
        "depth": depth,
        "credit_stalls": 0,
        "requests": 200,
        "request_seconds_median": 0.9 * depth * MIB / (rate * 1e6),
        "rtt_seconds": 0.0001,
        **more,
    }


@pytest.fixture
def made(empty_world, sockets):
    """Makes copies of a world in which the server's host, its disk and the path have time."""

    def make(*copies, agent=True, link=117.6, disk=400):
        world = empty_world(agent=agent)
        for verb in ("pull", "push"):
            world.tcp(verb, link)
        for side in ("client", "server"):
            for verb in ("read", "write"):
                world.disk(side, verb, disk)
        for name, rate, changes in copies:
            told = dict(changes)
            by = told.pop("by", "sender" if "pull" in name else "receiver")
            full = told.pop("full_ratio", 0.9 if by == "receiver" else 0.05)
            seen = told.pop("sockets", sockets(by=by, full_ratio=full, unsent_bytes_median=0))
            server = {**IDLE, "device_busy_ratio": 0.05, **told.pop("server", {})}
            outside = {key: told.pop(key) for key in ("memory", "client") if key in told}
            outside["client"] = {"device_busy_ratio": 0.05, **outside.get("client", {})}
            details = {**waiting(rate, 8 if "push" in name else 4), "sockets": seen, **told}
            world.copy(
                name, (0.98 * rate, rate, 1.02 * rate), details=details, server=server, **outside
            )
        return world

    return make


PULL: Made = ("pull.cached", 30, {})
PUSH: Made = ("push.cached", 38, {})


def diagnosed(world, at=0, **target):
    report = world.report()
    return diagnose(replace(report, target={**report.target, **target})).copies[at]


def caused(found):
    return ("smb", "server", "server-software") in [each.named for each in found.ceilings]


def test_a_server_at_rest_that_lets_both_directions_wait_is_named(made):
    for at, line in enumerate(
        ("The server's send queue was mostly empty: ", "What was sent had arrived, and the ")
    ):
        found = diagnosed(made(PULL, PUSH), at)
        assert found.verdict.named == ("smb", "server", "server-software")
        assert found.verdict.confidence == 0.7
        assert any(each.startswith(line) for each in found.evidence)
    assert "for the server's file server software, while its cores are 10 % busy" in (
        found.verdict.sentence
    )
    assert (found.next.component, found.next.cause) == ("network", "link-rate")
    assert "A file server on the server that answers in " in found.advice[0]
    assert "(look at its modules, virus scanner, log and version)" in found.advice[0]


@pytest.mark.parametrize("name", ["pull.cached", "pull.uncached"])
def test_one_direction_is_named_where_a_setting_explains_it(made, name):
    found = diagnosed(made((name, 30, {})), smb_conf=[AIO])
    assert found.verdict.named == ("smb", "server", "server-software")
    assert found.verdict.confidence == 0.8
    assert "file server software (aio read size = 0), while" in found.verdict.sentence
    assert (
        "aio read size = 0 in its smb.conf: reads are made one after the other." in found.evidence
    )
    assert "(try: aio read size = 1)" in found.advice[0]


@pytest.mark.parametrize(("silent", "expected"), [(0.9, True), (0.1, False)])
def test_a_server_that_answers_in_bursts_lets_a_few_requests_wait_for_long(made, silent, expected):
    """The median request knows nothing of it: that the server was silent tells it."""
    bursts = {"request_seconds_median": 0.009, "replies": {"silent_ratio": silent, "bursts": 6}}
    found = diagnosed(made(("pull.cached", 30, bursts), PUSH))
    assert caused(found) == expected
    assert ("each request waits 140 ms for the server's" in found.verdict.sentence) == expected


def test_what_waits_unread_before_the_server_tells_it_whoever_else_is_named(made):
    push = ("push.cached", 38, {"by": "network", "full_ratio": 0.8})
    assert caused(diagnosed(made(PULL, push), 1))


def test_a_server_whose_quota_cannot_be_seen_must_have_been_let_run(made):
    unseen = {"server": {"throttled_ratio": None, "run_delay_seconds": 0.02}}
    both = (("pull.cached", 30, unseen), ("push.cached", 38, unseen))
    assert caused(diagnosed(made(*both)))


# -- decoys ------------------------------------------------------------------------------------


def test_one_direction_alone_without_a_setting_may_wait_for_anything(made):
    assert diagnosed(made(PULL)).verdict.component == "unknown"


@pytest.mark.parametrize(
    "push",
    [
        ("push.cached", 90, {}),  # it runs well
        ("push.cached", 38, {"by": "network", "full_ratio": 0.1}),  # it waits for the path
        ("push.cached", 38, {"server": {"core_busy_ratios": (0.9, 0.9)}}),  # its CPU is at work
        ("push.cached", 38, {"hash_ok": False}),
        ("pull.uncached", 38, {}),  # no other direction
    ],
    ids=["fast", "path", "cpu", "altered", "same"],
)
def test_another_direction_that_does_not_wait_for_the_server_is_no_witness(made, push):
    assert not caused(diagnosed(made(PULL, push)))


def test_a_copy_of_another_dialect_or_one_that_failed_is_no_witness(made):
    world = made(PULL, PUSH)
    step, outcome = world.entries.pop()
    step.setting["dialect"] = "2.1"
    world.put(step.stage, step.initiator, step.setting, outcome)
    world.fail("push.uncached", "the connection was reset")
    assert not caused(diagnosed(world))


@pytest.mark.parametrize(
    "load",
    [
        {"core_busy_ratios": (0.98, 0.1), "busiest_process_ratio": 0.6},
        {"core_busy_ratios": (0.9, 0.6)},
        {"steal_ratio": 0.2},
        {"device_busy_ratio": 0.8},
        {"device_busy_ratio": None},
        {"throttled_ratio": 0.3},
        {"throttled_ratio": None, "run_delay_seconds": 1.0},
        {"throttled_ratio": None, "run_delay_seconds": None},
        {"core_busy_ratios": ()},
    ],
    ids=[
        "thread",
        "cores",
        "stolen",
        "disk",
        "unseen disk",
        "quota",
        "unseen quota",
        "unknown",
        "untold",
    ],
)
def test_a_host_that_is_not_at_rest_is_not_its_software(made, load):
    both = (("pull.cached", 30, {"server": load}), ("push.cached", 38, {"server": load}))
    assert not caused(diagnosed(made(*both), smb_conf=[AIO]))


@pytest.mark.parametrize(
    "change",
    [
        {"by": "network"},  # the path takes all that the server gives
        {"by": "receiver"},  # this client does not read
        {"sockets": None},
        {"sockets": {"sender_seen": True, "receiver_seen": False, "by": "sender"}},
        {"request_seconds_median": 0.0002},  # the client asked for little at a time
        {"rtt_seconds": 0.05},  # the way takes it
        {"request_seconds_median": None},
        {"in_flight_bytes": None},
        {"rtt_seconds": None},
        {"memory": 110},  # without the client's disk it is fast
        {"client": {"core_busy_ratios": (0.9, 0.9)}},
        {"client": {"core_busy_ratios": ()}},
    ],
)
def test_half_the_evidence_names_nobody(made, change):
    assert not caused(diagnosed(made(("pull.cached", 30, change), PUSH), smb_conf=[AIO]))


def test_the_same_without_the_clients_disk_must_wait_as_well(made):
    assert caused(diagnosed(made(("pull.cached", 30, {"memory": 31}), PUSH)))


def test_a_flush_that_takes_the_time_is_the_disks(made):
    push = ("push.cached", 38, {"flush_seconds": 2.0})
    assert not caused(diagnosed(made(PULL, push), 1))


def test_what_the_known_parts_explain_in_turn_is_not_the_servers_software(made):
    """A path of 60 MB/s and a disk of 60, one after the other: 30."""
    assert not caused(diagnosed(made(PULL, PUSH, link=60, disk=60)))


def test_a_link_that_is_full_is_the_link(made):
    full = made(("pull.cached", 29, {}), ("push.cached", 29, {}), link=30)
    assert diagnosed(full).verdict.named == ("network", "path", "link-rate")


@pytest.mark.parametrize("gone", ["tcp", "disk"])
def test_a_part_of_the_way_that_is_not_known_may_be_the_reason(made, gone):
    world = made(PULL, PUSH)
    world.entries = [each for each in world.entries if each[0].stage != gone]
    assert not caused(diagnosed(world))


def test_an_unknown_senders_disk_may_be_the_reason_of_an_uncached_copy(made):
    world = made(("pull.uncached", 30, {}), PUSH)
    world.entries = [
        each
        for each in world.entries
        if (each[0].setting.get("side"), each[0].setting.get("verb")) != ("server", "read")
    ]
    assert not caused(diagnosed(world))


def test_without_an_agent_the_servers_cpu_and_disk_are_not_known_to_rest(made):
    assert not caused(diagnosed(made(PULL, PUSH, agent=False), smb_conf=[AIO]))


def test_this_tools_own_server_is_the_instrument(made):
    ours = {"engine_server": "impacket"}
    both = (("pull.cached", 30, ours), ("push.cached", 38, ours))
    assert not caused(diagnosed(made(*both)))


@pytest.mark.parametrize(
    "change",
    [
        {"option": "server signing"},
        {"matters_for": "write"},
        {"why": None},
        {"remedy": None},
    ],
)
def test_other_settings_explain_nothing(made, change):
    assert not caused(diagnosed(made(PULL), smb_conf=[{**AIO, **change}]))


def test_the_servers_settings_say_nothing_of_the_client_that_serves(made, sockets):
    world = made()
    seen = sockets(by="sender", unsent_bytes_median=0, full_ratio=0.05)
    world.copy(
        "server.pull.cached",
        30,
        initiator="server",
        details={**waiting(30), "sockets": seen},
        client=IDLE,
        server=IDLE,
    )
    assert not caused(diagnosed(world, smb_conf=[AIO]))
