"""The system's own copies: capped like others, and by their mount where ours shows that."""

import pytest

from bottleneck.analysis import diagnose, sentences


def native(world, name="pull.cached"):
    found = [c for c in diagnose(world.report()).copies if (c.copy, c.dialect) == (name, "native")]
    return found[0]


def test_a_native_copy_is_a_copy_and_leads(world):
    world.copy("pull.cached", 112, memory=116)
    world.native("pull.cached", (109, 110, 111))
    found = diagnose(world.report())
    assert [each.dialect for each in found.copies] == ["native", "3.1.1"]
    assert found.chosen is not None
    assert found.chosen.dialect == "native"
    assert found.chosen.verdict.named == ("network", "path", "link-rate")
    assert found.summary.startswith(
        "Pulling this file cached by the system's own copy runs at 110 MB/s"
    )


@pytest.mark.parametrize(
    ("name", "options", "cause", "told"),
    [
        ("pull.cached", "rw,vers=3.1.1,rsize=65536,wsize=65536", "round-trips", "rsize=4194304"),
        ("push.cached", "rw,vers=3.1.1,rsize=65536,wsize=65536", "round-trips", "wsize=4194304"),
        ("pull.cached", "rw,cache=none", "round-trips", "cache=strict"),
        ("push.cached", "rw,sync", "round-trips", "async"),
        ("pull.cached", "rw,sync", "round-trips", "keeps more in flight"),
        ("pull.cached", "rw,vers=1.0", "dialect", "vers=3.1.1"),
        ("pull.cached", "rw,seal", "encryption", "no seal"),
        ("pull.cached", "rw,sign", "round-trips", "no sign"),  # ours was signed too
        ("pull.cached", "rw,sec=ntlmsspi", "round-trips", "no signing"),
        ("pull.cached", "rw,sec=ntlmssp", "round-trips", "keeps more in flight"),
        ("pull.cached", "", "round-trips", "keeps more in flight"),
        ("pull.cached", "rsize=lots,rsize=٣,,=", "round-trips", ""),
        ("pull.cached", "rsize=" + "9" * 5000, "round-trips", ""),
    ],
)
def test_a_mount_that_is_slower_than_this_tools_copy_is_named(world, name, options, cause, told):
    world.copy(name, (109, 110, 111), details={"signing": "aes-gmac"})
    world.native(name, (58, 60, 61), options)
    found = native(world, name)
    assert found.verdict.named == ("smb", "client", cause)
    assert found.verdict.confidence <= 0.8
    assert told in found.advice[0]
    assert found.predicted_bytes_per_second.median == pytest.approx(110e6)
    assert "this tool's own SMB makes the same copy at 110 MB/s" in found.verdict.sentence


@pytest.mark.parametrize("option", ["sign", "sec=krb5i"])
def test_signing_is_the_cause_where_ours_was_not_signed(world, option):
    world.copy("pull.cached", (109, 110, 111))
    world.native("pull.cached", (58, 60, 61), f"rw,{option}")
    assert native(world).verdict.cause == "signing"


def test_a_mount_that_reaches_the_same_is_not_blamed(world):
    world.copy("pull.cached", (109, 112, 113))
    world.native("pull.cached", (105, 108, 111), "rw,rsize=65536")
    assert native(world).verdict.named == ("network", "path", "link-rate")


def test_a_mount_that_is_faster_is_not_blamed(world):
    world.copy("pull.cached", (58, 60, 61))
    world.native("pull.cached", (109, 112, 113))
    assert native(world).verdict.named == ("network", "path", "link-rate")


def test_the_mount_is_called_that_and_no_window():
    assert sentences.part_name(("smb", "client")) == "the client's mount"
    assert sentences.part_name(("smb", "path")) == "the SMB window"


def test_a_copy_of_ours_that_altered_the_bytes_is_no_yardstick(world):
    world.copy("pull.cached", (109, 110, 111), details={"hash_ok": False})
    world.native("pull.cached", (58, 60, 61), "rw,rsize=65536")
    assert native(world).verdict.component == "unknown"


def test_a_source_that_only_ours_proved_cold_compares_nothing(world):
    world.copy("pull.uncached", (109, 110, 111), proven=False)
    world.native("pull.uncached", (58, 60, 61))
    assert native(world, "pull.uncached").verdict.component == "unknown"


def test_without_our_own_copy_beside_it_the_mount_is_not_blamed(world):
    world.native("pull.cached", (58, 60, 61), "rw,rsize=4096")
    world.fail("pull.cached", "reset")
    assert native(world).verdict.component == "unknown"


def test_a_mount_beside_a_full_core_is_told_with_doubt(world):
    """What the kernel's client burns may be the mount's or the host's: both are named."""
    world.copy("pull.cached", (109, 110, 111))
    busy = {"core_busy_ratios": (0.98, 0.1), "busiest_process_ratio": 0.97}
    world.native("pull.cached", (58, 60, 61), client=busy)
    found = native(world)
    assert found.verdict.confidence <= 0.6
    assert "too close to tell from it" in found.verdict.sentence


def test_a_full_core_under_the_systems_copy_is_no_instrument(empty_world):
    world = empty_world()
    world.tcp("pull", 1100)
    world.disk("client", "write", 900)
    busy = {"core_busy_ratios": (0.98, 0.1), "busiest_process_ratio": 0.97}
    world.native("pull.cached", 240, client=busy)
    assert native(world).verdict.named == ("cpu", "client", "one-core")


def test_this_tools_own_ceiling_does_not_bound_what_others_move(empty_world):
    world = empty_world()
    world.loopback("client", 150)
    world.native("pull.cached", 113)
    world.copy("server.push.cached", 113, initiator="server", engine="smbclient")
    found = diagnose(world.report()).copies
    assert not any(c.component == "instrument" for each in found for c in each.ceilings)
    assert "started by the server with smbclient," in found[1].verdict.sentence


BUSY = {"core_busy_ratios": (0.98, 0.1), "busiest_process_ratio": 0.97}


@pytest.mark.parametrize(
    ("engine", "details", "busy", "expected"),
    [
        ("own", {}, "server", ("instrument", "server", "ceiling")),
        ("own", {}, "client", ("cpu", "client", "one-core")),
        ("smbclient", {}, "server", ("cpu", "server", "one-core")),
        ("smbclient", {"engine_server": "smbd"}, "client", ("cpu", "client", "one-core")),
        ("smbclient", {"engine_server": "impacket"}, "client", ("instrument", "client", "ceiling")),
    ],
)
def test_of_copies_that_the_server_started_the_tool_is_where_it_ran(
    empty_world, engine, details, busy, expected
):
    world = empty_world()
    world.tcp("pull", 1100)
    world.copy(
        "server.pull.cached",
        240,
        initiator="server",
        engine=engine,
        details=details,
        **{busy: BUSY},
    )
    assert diagnose(world.report()).copies[0].verdict.named == expected


def test_another_disk_of_the_client_than_the_measured_one_bounds_nothing(empty_world):
    for near, named in ((True, "disk"), (False, "unknown")):
        world = empty_world()
        world.tcp("push", 1100)
        world.disk("client", "write", 100)
        told = {"engine_server": "given", "on_folder_disk": near}
        world.copy("server.push.cached", 98, initiator="server", engine="smbclient", details=told)
        (found,) = diagnose(world.report()).copies
        assert found.verdict.component == named
        assert any("--client-share" in line for line in found.evidence) is not near


def test_a_copy_that_was_not_flushed_says_so(world):
    details = {"flushed": False}
    world.copy("server.push.cached", 100, initiator="server", engine="smbclient", details=details)
    evidence = diagnose(world.report()).copies[0].evidence
    assert any("acknowledged writes" in line for line in evidence)
