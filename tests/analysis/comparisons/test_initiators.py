"""The four combinations of direction and initiator, as the file's holder and its receiver start."""

import pytest

from tests.analysis.comparisons.conftest import plan

ABOUT = ("initiator",)


def pair(sender, pushed, pulled, cache="cached", engine="own", client=None, server=None):
    """One direction: started by its sender, by its receiver."""
    by_client, by_server = (pushed, pulled) if sender == "client" else (pulled, pushed)
    mine, theirs = ("push", "pull") if sender == "client" else ("pull", "push")
    other = {"initiator": "server", "engine": engine, "details": server}
    return (
        ("copy", f"{mine}.{cache}", by_client, {"details": client}),
        ("copy", f"server.{theirs}.{cache}", by_server, other),
    )


CLIENTS = pair("client", [112], [80])
SERVERS = pair("server", [110], [85])
AS_FAST = pair("client", [100], [101], "uncached")
PLAIN = {"signing": None, "encryption": None}
ENCRYPTS = {"client": PLAIN, "server": {**PLAIN, "encryption": "aes-128-gcm"}}
TOLD = {"acknowledged_bytes_per_second": 112e6, "flush_seconds": 2.0}
UNFLUSHED = {"flushed": False, "acknowledged_bytes_per_second": 113e6}
FULL = {"core_busy_ratios": (0.99, 0.3), "busiest_process_ratio": 0.98}
ALONE = ("copy", "push.cached", 112)
PLANTED = {
    "the sender should start it, both directions say": (*CLIENTS, *SERVERS),
    "the receiver helps": pair("client", [80], [112]),
    "a host helps": (*pair("client", [80], [112]), *pair("server", [110], [70])),
    "it depends, where the directions disagree": plan(
        *CLIENTS,
        *pair("client", [70], [100], "uncached"),
        *SERVERS,
        *pair("server", [100], [101], "uncached"),
    ),
    "differences within the noise, and of one run each, are none": (
        *pair("client", (100, 105, 112), (99, 108, 111)),
        *pair("server", 110, 95),
    ),
    "others that differ not are counted": (*CLIENTS, *AS_FAST, *pair("server", [100], [101])),
    "another program's copies are named as such": pair("client", [112], [80], engine="smbclient"),
    "a push that nothing flushed is compared as acknowledged": (
        pair("server", [113], [70], engine="smbclient", client=TOLD, server=UNFLUSHED)
    ),
    "an acknowledged difference says so": (
        pair("server", [113], [70], engine="smbclient", server={"flushed": False})
    ),
    "what this tool itself served tells nothing": (
        pair("client", [112], [30], engine="smbclient", server={"engine_server": "impacket"})
    ),
    "a source that one of both may have had in the cache compares nothing": (
        ("copy", "pull.uncached", [60]),
        ("copy", "server.push.uncached", [112], {"initiator": "server", "proven": False}),
    ),
    "the server's share encrypts, the client's not": pair("client", [112], [80], **ENCRYPTS),
    "the client's share encrypts, the server's not": pair("server", [112], [80], **ENCRYPTS),
    "half a pair compares nothing": (ALONE,),
    "altered bytes, another dialect and the mount's copy compare nothing": (
        ALONE,
        *(
            ("copy", "server.pull.cached", 80, {"initiator": "server", **changes})
            for changes in ({"details": {"hash_ok": False}}, {"dialect": "2.1"})
        ),
        ("copy", "server.pull.uncached", 80, {"initiator": "server"}),
        ("native", "push.uncached", 50),
    ),
    "what holds the slower start: the client's core is full while it serves its share": (
        ("copy", "push.cached", [112]),
        ("copy", "server.pull.cached", [70], {"initiator": "server", "client": FULL}),
    ),
}


@pytest.mark.parametrize("steps", PLANTED.values(), ids=PLANTED)
def test_who_should_start_a_copy(world, plant, steps, store):
    store(plant(world, *steps))
