"""The most specific cause wins: a verdict names what is set behind a limit, and advises that first.

In each world something configured is behind what was measured; the verdict's words stay those of
the component, its detail and its advice are the setting's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bottleneck.analysis.diagnosis import diagnose

MB = 1e6
G1 = 10**9
ABLE = {"rate_bits_per_second": 10**8, "autonegotiated": True, "able_bits_per_second": G1}
SHAPED = {"qdisc": "tbf", "qdisc_rate_bytes_per_second": 12_500_000}
BOUGHT = ("Use a disk", "Use a 1 Gbit/s link", "Use a CPU")


def changed(world: Any, side: str, **facts: Any) -> None:
    host = getattr(world, side)
    setattr(world, side, replace(host, interface=replace(host.interface, **facts)))


def disk(world: Any, verb: str, rate: float, pattern: str = "sequential", **details: Any) -> None:
    """The server's disk, with details of its step."""
    setting = {"side": "server", "verb": verb, "cache": "uncached", "pattern": pattern}
    proof = {"side": "server", "requested": "uncached", "proven": True, "cached_ratio_before": 0.0}
    world.add("disk", "server", setting, rate, {"cache": proof, "device": "sda1", **details})


def said(world: Any, named: str, **target: Any) -> tuple[str, str, str]:
    """Detail, sentence and advice of the first copy, whose verdict is the one that is named."""
    report = world.report()
    report.target.update(target)
    found = diagnose(report).copies[0]
    assert found.verdict.words == named
    assert not found.advice[0].startswith(BOUGHT)
    return found.verdict.detail, found.verdict.sentence, found.advice[0]


@pytest.fixture
def lan(empty_world: Any) -> Any:
    """A gigabit link and a client whose disk is fast; the server's disk is the test's."""
    world = empty_world()
    for verb, way in (("read", "pull"), ("write", "push")):
        world.tcp(way, 117.6)
        world.disk("client", verb, 500)
    return world


@pytest.mark.parametrize("verb", ["read", "write"])
def test_a_cgroups_limit_on_a_disk_is_raised_before_a_disk_is_bought(lan: Any, verb: str) -> None:
    limits = {f"{verb}_bytes_per_second": 25 * MB, "group": "/docker/nas"}
    disk(lan, verb, 25.4, limits=limits)
    lan.copy("pull.uncached" if verb == "read" else "push.cached", 24.6)
    detail, sentence, advice = said(lan, f"disk/server/{verb}")
    assert detail == "limited by a cgroup"
    assert "the limit belongs to the cgroup /docker/nas, not to the disk" in sentence
    assert advice.startswith(
        "Raise or remove the I/O limit of the cgroup /docker/nas on the server"
    )


def test_a_limit_that_is_not_reached_is_not_named(lan: Any) -> None:
    disk(lan, "read", 25.4, limits={"read_bytes_per_second": 100 * MB, "group": "/docker/nas"})
    lan.copy("pull.uncached", 24.6)
    verdict = diagnose(lan.report()).copies[0].verdict
    assert verdict.detail == "" and "cgroup" not in verdict.sentence


def test_sync_always_is_turned_off_with_its_risk_said(lan: Any) -> None:
    disk(lan, "write", 108)
    disk(lan, "write", 20, "synced", request_bytes=1 << 20)
    lan.copy("push.cached", 19.5)
    always = [{"option": "sync always", "value": "yes", "why": "", "remedy": ""}]
    detail, sentence, advice = said(lan, "disk/server/sync", smb_conf=always)
    assert detail == "`sync always = yes`" and "`sync always = yes` in smb.conf" in sentence
    assert advice.startswith("Set `sync always = no`") and "lost in a power cut" in advice


@pytest.mark.parametrize(
    ("synced", "rate", "named"),
    [(20, 19, "disk/server/sync"), (23, 23, "disk/server/write")],
    ids=["it costs much", "the disk's own measurement was made through it"],
)
def test_a_mount_with_sync_is_changed_first(
    lan: Any, synced: float, rate: float, named: str
) -> None:
    folder = replace(lan.server.folder, mount_options="rw,sync")
    lan.server = replace(lan.server, folder=folder)
    disk(lan, "write", 108 if named.endswith("sync") else 24)
    disk(lan, "write", synced, "synced", request_bytes=1 << 20)
    lan.copy("push.cached", rate)
    detail, _, advice = said(lan, named)
    assert detail == "mounted with `sync`"
    assert advice.startswith("Remount the server's file system with `mount -o remount,async`")


LINKS = {
    "the sender's shaper": (
        SHAPED,
        "shaped (tbf) on the server",
        "a tbf qdisc on the server shapes enp3s0 to 100 Mbit/s",
        "Raise or remove the 100 Mbit/s limit of enp3s0 on the server",
    ),
    "a rate that is set by hand": (
        {**ABLE, "autonegotiated": False},
        "enp3s0 is set to 100 Mbit/s by hand",
        "enp3s0 on the server is set to 100 Mbit/s by hand",
        "Turn on autonegotiation for enp3s0 on the server",
    ),
    "a cable between two fast ends": (
        {**ABLE, "partner_bits_per_second": G1},
        "enp3s0 negotiated 100 Mbit/s",
        "enp3s0 on the server negotiated 100 Mbit/s",
        "Replace the cable of enp3s0 on the server",
    ),
    "a slow switch port": (
        {**ABLE, "partner_bits_per_second": 10**8},
        "enp3s0 negotiated 100 Mbit/s",
        "enp3s0 on the server negotiated 100 Mbit/s",
        "Connect enp3s0 on the server to a port of 1 Gbit/s",
    ),
}


def slow(empty_world: Any, rate: float = 11.8) -> Any:
    world = empty_world()
    world.tcp("pull", rate)
    world.tcp("push", rate)
    world.copy("pull.cached", rate * 0.97, memory=rate * 0.99)
    return world


@pytest.mark.parametrize(("facts", "detail", "words", "step"), LINKS.values(), ids=LINKS)
def test_what_slows_an_interface_down_is_changed_before_a_link_is_bought(
    empty_world: Any, facts: Any, detail: str, words: str, step: str
) -> None:
    world = slow(empty_world)
    changed(world, "server", **facts)
    found = said(world, "network/path/link-rate")
    assert found[0] == detail and words in found[1] and found[2].startswith(step)


def test_half_of_a_path_that_is_wifi_is_named(empty_world: Any) -> None:
    world = slow(empty_world, 23.0)
    changed(world, "client", kind="wifi", wifi={"signal_dbm": -70})
    detail, sentence, advice = said(world, "network/path/link-rate")
    assert detail == "Wi-Fi on the client" and "enp3s0 on the client is Wi-Fi" in sentence
    assert advice.startswith("Connect the client by cable")


OTHER_LINKS = {
    "a shaper of another rate": {"qdisc": "tbf", "qdisc_rate_bytes_per_second": 50_000_000},
    "a card that was offered an unknown rate": ABLE,
    "a card at all that it can": {**ABLE, "able_bits_per_second": 10**8},
    "a card at another rate than the path's": {
        **{"rate_bits_per_second": G1, "able_bits_per_second": 10 * G1, "autonegotiated": False}
    },
    "a radio beside a standard link": {"kind": "wifi"},
}


@pytest.mark.parametrize("facts", OTHER_LINKS.values(), ids=OTHER_LINKS)
def test_an_interface_that_does_not_explain_the_rate_is_not_named(
    empty_world: Any, facts: Any
) -> None:
    world = slow(empty_world)
    changed(world, "server", **facts)
    verdict = diagnose(world.report()).copies[0].verdict
    assert verdict.words == "network/path/link-rate"
    assert verdict.detail == "" and "usable rate of a 100 Mbit/s link" in verdict.sentence


def test_the_receivers_shaper_is_not_what_the_sender_is_held_by(empty_world: Any) -> None:
    world = slow(empty_world)
    changed(world, "client", **SHAPED)
    assert diagnose(world.report()).copies[0].verdict.detail == ""


def test_a_cpu_quota_is_raised_with_its_present_size_said(world: Any) -> None:
    load = {"quota_cores": 0.25, "throttled_ratio": 0.9, "copy_cpu_seconds": 1.0}
    world.copy("pull.cached", 43, server=load)
    detail, sentence, advice = said(world, "cpu/server/quota")
    assert (
        detail == "limited to 0.25 cores" and "(0.25 cores) throttles the copy in 90%" in sentence
    )
    assert advice.startswith("Raise the CPU quota on the server (`cpu.max` of its cgroup, now 0.25")


def test_a_line_of_smb_conf_that_keeps_requests_few_is_named(empty_world: Any) -> None:
    world = empty_world()
    for verb in ("pull", "push"):
        world.tcp(verb, 1170)
    world.disk("client", "write", 800)
    world.matrix("pull", {(65536, 1): 0.65, (1 << 20, 8): 80}, 0.1)
    told = {"in_flight_bytes": 2 << 20, "request_bytes": 1 << 20, "depth": 2, "requests": 200}
    world.copy("pull.cached", (19, 20, 21), details={**told, "credit_stalls": 150})
    few = [{"option": "smb2 max credits", "value": "32", "why": "", "remedy": ""}]
    detail, _, advice = said(world, "smb/server/round-trips", smb_conf=few)
    assert detail == "`smb2 max credits = 32`"
    assert advice.startswith("Raise `smb2 max credits` in the server's smb.conf")


def test_a_mounts_option_is_named(world: Any) -> None:
    world.copy("pull.cached", (109, 110, 111), details={"signing": "aes-gmac"})
    world.native("pull.cached", (58, 60, 61), "rw,vers=3.1.1,rsize=65536")
    native = next(each for each in diagnose(world.report()).copies if each.dialect == "native")
    assert native.verdict.detail == "mount option rsize=65536"
    assert native.advice[0].startswith("Mount the share with `-o rsize=4194304`")


def test_other_traffic_is_looked_for_at_the_interfaces_by_name(world: Any) -> None:
    busy = {"interface_sent_bytes": int(118 * MB * 4), "wall_seconds": 4.0}
    changed(world, "client", name="eth7")
    world.copy("pull.cached", 60, server=busy)
    _, sentence, advice = said(world, "network/path/contention")
    assert "because other traffic uses" in sentence and "in this direction" in sentence
    assert "`iftop -i eth7` on the client and `iftop -i enp3s0` on the server" in advice
