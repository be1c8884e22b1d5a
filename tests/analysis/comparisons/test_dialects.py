"""Dialects side by side: what differs, why, and when nothing can be told."""

import pytest

from tests.analysis.comparisons.conftest import plan

ABOUT = ("dialect",)

MIB = 1 << 20


def flight(request_bytes, depth, **extra):
    in_flight = request_bytes * depth
    details = {"request_bytes": request_bytes, "depth": depth, "in_flight_bytes": in_flight}
    return {"details": {**details, **extra}}


def smb1(rates=(28, 29, 29.5), **extra):
    return "copy", "pull.cached", rates, {"dialect": "smb1", **extra}


def session(signing=None, encryption=None):
    return {"details": {"signing": signing, "encryption": encryption}}


OLD = smb1(**flight(60 << 10, 16))
NEW = ("copy", "pull.cached", (110, 112, 113), flight(MIB, 8))
PLAIN = (smb1(**session()), ("copy", "pull.cached", (110, 112, 113), session("aes-gmac")))
FULL = {"core_busy_ratios": (0.99, 0.3), "busiest_process_ratio": 0.98}
PLANTED = {
    "what each kept in flight, and what that allows": plan(
        OLD, NEW, ("matrix", "pull", {(65536, 1): 6, (MIB, 8): 112}, 0.010)
    ),
    "a round trip that holds neither is not offered as the reason": plan(
        OLD, NEW, ("matrix", "pull", {(65536, 1): 60, (MIB, 8): 112}, 0.0003)
    ),
    "the cap of the slower one, where no round trip holds it": plan(
        smb1(**flight(60 << 10, 16), server=FULL), NEW
    ),
    "within the noise": (
        ("copy", "pull.cached", (105, 110, 114), {"dialect": "2.1"}),
        ("copy", "pull.cached", (107, 112, 116)),
    ),
    "the copy that differs most leads and all are in the rows": tuple(
        ("copy", name, (rate - 1, rate, rate + 1), {"dialect": dialect})
        for name, old in (("push.cached", 100), ("pull.uncached", 50), ("pull.cached", 90))
        for rate, dialect in ((old, "smb1"), (110, "3.1.1"))
    ),
    "one that was signed and one that was not": PLAIN,
    "one that was encrypted beside them": (
        *PLAIN,
        ("copy", "pull.cached", (9, 10, 11), {"dialect": "3.0", **session(None, "aes-128-ccm")}),
    ),
    "a single request in flight reads so": (smb1(**flight(61440, 1)), NEW),
}


@pytest.mark.parametrize("steps", PLANTED.values(), ids=PLANTED)
def test_dialects_side_by_side(world, plant, steps, store):
    store(plant(world, *steps))


@pytest.mark.parametrize("seconds", [0.02, 1.02], ids=["about", "repeated: the copy refutes it"])
def test_a_round_trip_by_one_connect_is_told_as_about(world, plant, seconds, store):
    store(plant(world, OLD, NEW), target={"connect_seconds": seconds})


OTHERS = {
    "altered": smb1(29, details={"hash_ok": False}),
    "failed": ("fail", "pull.cached", "reset"),
    "the server's": plan(
        "copy", "server.push.cached", 29, {"dialect": "smb1", "initiator": "server"}
    ),
    "the mount's": ("native", "pull.cached", 29),
    "another copy": ("copy", "push.cached", 29, {"dialect": "smb1"}),
}


@pytest.mark.parametrize("step", OTHERS.values(), ids=OTHERS)
def test_what_is_not_the_same_copy_is_not_compared(world, plant, step, store):
    store(plant(world, ("copy", "pull.cached", 112), step))
