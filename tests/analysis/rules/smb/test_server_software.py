"""Cause smb/server-software: named where requests wait in a server at rest, silent elsewhere."""

from dataclasses import replace
from typing import Any

import pytest

from bottleneck.analysis.diagnosis import diagnose

MIB = 1 << 20
SOFTWARE = "smb/server/server-software"
IDLE = {"throttled_ratio": 0.0}
AIO = {
    "option": "aio read size",
    "value": "0",
    "matters_for": "read",
    "why": "reads are made one after the other",
    "remedy": "aio read size = 1",
}
Made = tuple[str, float, dict[str, Any]]
"""Name, rate in MB/s, what is unusual about it."""
PULL: Made = ("pull.cached", 30, {})
PUSH: Made = ("push.cached", 38, {})


def waiting_copy(rate, depth=4):
    """Returns details of a copy over 0.1 ms with a depth of requests of 1 MiB in flight."""
    return {
        "in_flight_bytes": depth * MIB,
        "request_bytes": MIB,
        "depth": depth,
        "credit_stalls": 0,
        "requests": 200,
        "request_seconds_median": 0.9 * depth * MIB / (rate * 1e6),
        "rtt_seconds": 0.0001,
    }


@pytest.fixture
def make_world(two_hosts, sockets):
    """Makes copies of a world in which the server's host, its disk and the path have time."""

    def make(*copies, agent=True, link=117.6, disk=400):
        world = two_hosts(link, disk=disk)
        if not agent:
            world.server, world.agent = None, False
        for name, rate, changes in copies:
            fields = dict(changes)
            by = fields.pop("by", "sender" if "pull" in name else "receiver")
            full = fields.pop("full_ratio", 0.9 if by == "receiver" else 0.05)
            tcp = fields.pop("sockets", sockets(by=by, full_ratio=full, unsent_bytes_median=0))
            server = {**IDLE, "device_busy_ratio": 0.05, **fields.pop("server", {})}
            outside = {key: fields.pop(key) for key in ("memory", "client") if key in fields}
            outside["client"] = {"device_busy_ratio": 0.05, **outside.get("client", {})}
            details = {**waiting_copy(rate, 8 if "push" in name else 4), "sockets": tcp, **fields}
            rates = (0.98 * rate, rate, 1.02 * rate)
            world.copy(name, rates, details=details, server=server, **outside)
        return world

    return make


def both(changes: dict[str, Any]) -> tuple[Made, Made]:
    return ("pull.cached", 30, changes), ("push.cached", 38, changes)


BURSTS = {"request_seconds_median": 0.009, "replies": {"silent_ratio": 0.9, "bursts": 6}}
UNSEEN = {"server": {"throttled_ratio": None, "run_delay_seconds": 0.02}}
NAMED = {
    "a server at rest that lets both directions wait": (PULL, PUSH),
    "one that answers in bursts: a few requests wait for long": (("pull.cached", 30, BURSTS), PUSH),
    "a server whose quota cannot be seen, and that was let run": both(UNSEEN),
    "without the client's disk it waits as well": (("pull.cached", 30, {"memory": 31}), PUSH),
}


@pytest.mark.parametrize("copies", NAMED.values(), ids=NAMED)
def test_a_file_server_at_rest_that_lets_requests_wait_is_named(make_world, copies, expect):
    expect(make_world(*copies), SOFTWARE)


@pytest.mark.parametrize("name", ["pull.cached", "pull.uncached"])
def test_a_setting_that_explains_it_is_to_be_changed(make_world, name, expect):
    expect(make_world((name, 30, {})), SOFTWARE, smb_conf=[AIO])


# -- decoys ------------------------------------------------------------------------------------


def silent(expect, world, copy=0, **target):
    expect(world, **target)
    assert world.diagnosis_of(copy).verdict.cause != "server-software"


AT_WORK = {
    "a thread": {"core_busy_ratios": (0.98, 0.1), "busiest_process_ratio": 0.6},
    "cores": {"core_busy_ratios": (0.9, 0.6)},
    "stolen": {"steal_ratio": 0.2},
    "a disk": {"device_busy_ratio": 0.8},
    "a disk that nobody sees": {"device_busy_ratio": None},
    "a quota": {"throttled_ratio": 0.3},
    "a quota that nobody sees": {"throttled_ratio": None, "run_delay_seconds": 1.0},
    "not told whether": {"throttled_ratio": None, "run_delay_seconds": None},
    "no load": {"core_busy_ratios": ()},
}


@pytest.mark.parametrize("load", AT_WORK.values(), ids=AT_WORK)
def test_a_host_that_is_not_at_rest_is_not_its_software(make_world, load, expect):
    silent(expect, make_world(*both({"server": load})), smb_conf=[AIO])


HALF = {
    "the path takes all that the server gives": {"by": "network"},
    "this client does not read": {"by": "receiver"},
    "no sockets": {"sockets": None},
    "one end's": {"sockets": {"sender_seen": True, "receiver_seen": False, "by": "sender"}},
    "the client asked for little at a time": {"request_seconds_median": 0.0002},
    "bursts in a short silence": {**BURSTS, "replies": {"silent_ratio": 0.1, "bursts": 6}},
    "the way takes it": {"rtt_seconds": 0.05},
    "no time of a request": {"request_seconds_median": None},
    "not how much in flight": {"in_flight_bytes": None},
    "no round trip": {"rtt_seconds": None},
    "the client's CPU": {"client": {"core_busy_ratios": (0.9, 0.9)}},
    "the client's CPU is not told": {"client": {"core_busy_ratios": ()}},
    "this tool's own server": {"engine_server": "impacket"},
}


@pytest.mark.parametrize("change", HALF.values(), ids=HALF)
def test_half_the_evidence_names_nobody(make_world, change, expect):
    silent(expect, make_world(("pull.cached", 30, change), PUSH), smb_conf=[AIO])


def test_a_flush_that_takes_the_time_is_the_disks(make_world, expect):
    silent(expect, make_world(PULL, ("push.cached", 38, {"flush_seconds": 2.0})), 1)


WAYS = {
    "the link is full": ("network/path/link-rate", 29, {"link": 30}),
    "the server's CPU and disk are not known to rest": pytest.param(
        "unknown/inconclusive", 30, {"agent": False}
    ),
}


@pytest.mark.parametrize(("cap", "rate", "way"), WAYS.values(), ids=WAYS)
def test_what_the_way_explains_is_not_the_servers_software(make_world, cap, rate, way, expect):
    world = make_world(("pull.cached", rate, {}), ("push.cached", 1.2 * rate, {}), **way)
    silent(expect, world, smb_conf=[AIO])
    assert "/".join(filter(None, world.verdict_key())) == cap


OTHER_SETTINGS = {
    "another option": {"option": "server signing"},
    "of the other direction": {"matters_for": "write"},
    "no reason": {"why": None},
    "no remedy": {"remedy": None},
}


@pytest.mark.parametrize("change", OTHER_SETTINGS.values(), ids=OTHER_SETTINGS)
def test_other_settings_explain_nothing(make_world, change):
    report = make_world(PULL, PUSH).report()
    target = {**report.target, "smb_conf": [{**AIO, **change}]}
    assert diagnose(replace(report, target=target)).copies[0].verdict.detail == ""


def test_the_servers_settings_say_nothing_of_the_client_that_serves(make_world, sockets, expect):
    world = make_world()
    connection = sockets(by="sender", unsent_bytes_median=0, full_ratio=0.05)
    extra = {"details": {**waiting_copy(30), "sockets": connection}, "client": IDLE, "server": IDLE}
    world.copy("server.pull.cached", 30, initiator="server", **extra)
    silent(expect, world, smb_conf=[AIO])
