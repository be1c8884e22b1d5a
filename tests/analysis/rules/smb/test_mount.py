"""The system's own copies: capped like others, and by their mount where ours shows that."""

import pytest

from bottleneck.analysis import sentences
from bottleneck.analysis.diagnosis import diagnose

LINK, NOBODY = "network/path/link-rate", "unknown/inconclusive"


def test_a_native_copy_is_a_copy_and_leads(world):
    world.copy("pull.cached", 112, memory=116)
    world.native("pull.cached", (109, 110, 111))
    diagnosis = diagnose(world.report())
    assert [each.dialect for each in diagnosis.copies] == ["native", "3.1.1"]
    assert diagnosis.main_copy is not None
    assert diagnosis.main_copy.dialect == "native"
    assert diagnosis.main_copy.verdict.key == ("network", "path", "link-rate")
    assert diagnosis.summary.startswith(
        "Pulling a file that is in the server's cache with the operating system's copy runs at 110 "
    )


@pytest.mark.parametrize(
    ("name", "options", "cause"),
    [
        ("pull.cached", "rw,vers=3.1.1,rsize=65536,wsize=65536", "round-trips"),
        ("push.cached", "rw,vers=3.1.1,rsize=65536,wsize=65536", "round-trips"),
        ("pull.cached", "rw,cache=none", "round-trips"),
        ("push.cached", "rw,sync", "round-trips"),
        ("pull.cached", "rw,sync", "round-trips"),
        ("pull.cached", "rw,vers=1.0", "dialect"),
        ("pull.cached", "rw,seal", "encryption"),
        ("pull.cached", "rw,sign", "round-trips"),  # ours was signed too
        ("pull.cached", "rw,sec=ntlmsspi", "round-trips"),
        ("pull.cached", "rw,sec=ntlmssp", "round-trips"),
        ("pull.cached", "", "round-trips"),
        ("pull.cached", "rsize=lots,rsize=٣,,=", "round-trips"),
        ("pull.cached", "rsize=" + "9" * 50, "round-trips"),
    ],
)
def test_a_mount_that_is_slower_than_this_tools_copy_is_named(world, name, options, cause, expect):
    world.copy(name, (109, 110, 111), details={"signing": "aes-gmac"})
    world.native(name, (58, 60, 61), options)
    expect(world, f"smb/client/{cause}")


@pytest.mark.parametrize("option", ["sign", "sec=krb5i"])
def test_signing_is_the_cause_where_ours_was_not_signed(world, option, expect):
    world.copy("pull.cached", (109, 110, 111))
    world.native("pull.cached", (58, 60, 61), f"rw,{option}")
    expect(world, "smb/client/signing")


SLOW, FAST = (58, 60, 61), (109, 110, 111)
PAIRS = {
    "it reaches the same": (LINK, "pull.cached", FAST, {}, (105, 108, 111)),
    "it is faster": (LINK, "pull.cached", SLOW, {}, (109, 112, 113)),
    "ours altered the bytes": (NOBODY, "pull.cached", FAST, {"details": {"hash_ok": False}}, SLOW),
    "only one source was proven cold": (NOBODY, "pull.uncached", FAST, {"proven": False}, SLOW),
}


@pytest.mark.parametrize(("cap", "name", "rate", "extra", "native"), PAIRS.values(), ids=PAIRS)
def test_a_mount_is_not_blamed_where_ours_shows_nothing(
    world, cap, name, rate, extra, native, expect
):
    world.copy(name, rate, **extra)
    world.native(name, native, "rw,rsize=65536")
    expect(world, cap)


def test_the_mount_is_called_that_and_no_window():
    assert sentences.part_name(("smb", "client")) == "the client's mount"
    assert sentences.part_name(("smb", "path")) == "the SMB window"


def test_without_our_own_copy_beside_it_the_mount_is_not_blamed(world, expect):
    world.native("pull.cached", (58, 60, 61), "rw,rsize=4096")
    world.fail("pull.cached", "reset")
    expect(world, NOBODY)


@pytest.mark.parametrize(
    ("options", "advice"),
    [("rw,cache=strict", "without --native-command"), ("rw,cache=none", "-o cache=strict")],
)
def test_a_users_command_is_named_beside_its_mount(world, options, advice):
    """It may be slow by itself: the mount is blamed where an option of it explains the gap."""
    world.copy("pull.cached", (109, 110, 111))
    world.native("pull.cached", (58, 60, 61), options, command=True)
    copy = world.diagnosis_of()
    assert "the user's command through the mount" in copy.verdict.sentence
    assert any(advice in each for each in copy.advice)


BUSY = {"core_busy_ratios": (0.98, 0.1), "busiest_process_ratio": 0.97}


def test_a_program_that_fills_a_core_is_limited_by_it_and_not_by_its_mount(world, expect):
    world.copy("pull.cached", (109, 110, 111))
    world.native("pull.cached", (58, 60, 61), client=BUSY)
    expect(world, "cpu/client/one-core")


DEFAULTS = "rw,vers=3.1.1,cache=strict,rsize=4194304,wsize=4194304,actimeo=1,closetimeo=1"


@pytest.mark.parametrize("options", [DEFAULTS, "wsize=8388608", "fuse"])
def test_an_option_that_cannot_be_raised_is_not_advised(world, options):
    world.copy("push.cached", (109, 110, 111))
    filesystem = "fuse.smbnetfs" if options == "fuse" else "cifs"
    world.native("push.cached", (58, 60, 61), options, filesystem=filesystem)
    first = world.diagnosis_of().advice[0]
    assert first == "Copy several files at once: no option of the mount explains it."


def test_a_size_below_the_kernels_own_is_advised_to_be_raised(world):
    world.copy("push.cached", (109, 110, 111))
    world.native("push.cached", (58, 60, 61), DEFAULTS.replace("wsize=4", "wsize=1"))
    assert world.diagnosis_of().advice[0] == "Mount the share with `-o wsize=4194304`."


@pytest.mark.parametrize("cores", [(0.86, 0.2), (0.9, 0.86)])
def test_a_mount_is_not_blamed_beside_nearly_full_cores_of_the_client(world, cores, expect):
    """The CPU time of the kernel's SMB client is in no process' account."""
    world.copy("push.cached", (109, 110, 111))
    world.native("push.cached", (58, 60, 61), DEFAULTS, client={"core_busy_ratios": cores})
    expect(world)
    assert "round-trips" not in world.verdict_key()


def test_an_option_that_costs_is_named_also_where_the_limit_is_not_clear(world):
    world.copy("push.cached", (55, 64, 66))
    full = {"core_busy_ratios": (0.9, 0.8)}
    world.native("push.cached", (52, 60, 68), "rw,cache=none", client=full)
    copy = world.diagnosis_of()
    assert copy.verdict.component == "unknown"
    assert any("The mount option cache=none turned off" in each for each in copy.evidence)


def test_a_full_core_under_the_systems_copy_is_no_instrument(empty_world, expect):
    world = empty_world()
    world.tcp("pull", 1100)
    world.disk("client", "write", 900)
    world.native("pull.cached", 240, client=BUSY)
    expect(world, "cpu/client/one-core")


def test_this_tools_own_ceiling_does_not_bound_what_others_move(empty_world, expect):
    world = empty_world()
    world.loopback("client", 150)
    world.native("pull.cached", 113)
    world.copy("server.push.cached", 113, initiator="server", engine="smbclient")
    expect(world)
    assert not any(each[0] == "instrument" for copy in (0, 1) for each in world.ceilings(copy))


@pytest.mark.parametrize(
    ("engine", "details", "busy", "cap"),
    [
        ("own", {}, "server", "instrument/server/ceiling"),
        ("own", {}, "client", "cpu/client/one-core"),
        ("smbclient", {}, "server", "cpu/server/one-core"),
        ("smbclient", {"engine_server": "smbd"}, "client", "cpu/client/one-core"),
        ("smbclient", {"engine_server": "impacket"}, "client", "instrument/client/ceiling"),
    ],
)
def test_of_copies_that_the_server_started_the_tool_is_where_it_ran(
    empty_world, engine, details, busy, cap, expect
):
    world = empty_world()
    world.tcp("pull", 1100)
    extra = {"engine": engine, "details": details, busy: BUSY}
    world.copy("server.pull.cached", 240, initiator="server", **extra)
    expect(world, cap)


@pytest.mark.parametrize(
    ("near", "cap"), [(True, "disk/client/write"), (False, "unknown/inconclusive")]
)
def test_another_disk_of_the_client_than_the_measured_one_bounds_nothing(
    empty_world, near, cap, expect
):
    world = empty_world()
    world.tcp("push", 1100)
    world.disk("client", "write", 100)
    details = {"engine_server": "given", "on_folder_disk": near}
    world.copy("server.push.cached", 98, initiator="server", engine="smbclient", details=details)
    expect(world, cap)


def test_a_copy_that_was_not_flushed_says_so(world, expect):
    details = {"flushed": False}
    world.copy("server.push.cached", 100, initiator="server", engine="smbclient", details=details)
    expect(world)
