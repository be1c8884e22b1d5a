"""Causes smb/signing and smb/encryption: named where crypto fills a CPU, silent where not."""

import pytest

from bottleneck.analysis import sentences
from bottleneck.analysis.finding import Ceiling

RUN_SECONDS = 4.0
CPU = "cpu/server/all-cores"


def spread(rate):
    return (0.99 * rate, rate, 1.01 * rate)


def cpu_load(seconds_per_gigabyte, rate, cores=1, **extra):
    """Returns a host's load by a copy, on a single busy thread."""
    busy = seconds_per_gigabyte * rate / 1000
    ratios = (min(1.0, busy + 0.02), *(0.02,) * (cores - 1))
    return {
        "core_busy_ratios": ratios,
        "busiest_process_ratio": min(1.0, busy),
        "copy_cpu_seconds": busy * RUN_SECONDS,
        **extra,
    }


ENCRYPTED = {"signing": None, "encryption": "aes-128-gcm", "request_bytes": 1 << 20}
SIGNED = {"signing": "aes-cmac", "encryption": None, "request_bytes": 1 << 20}
GMAC = {**SIGNED, "signing": "aes-gmac"}
PLAIN = {"signing": None, "encryption": None, "request_bytes": 1 << 20}


@pytest.fixture
def slow_cpu(empty_world):
    """A server whose CPU needs 0.6 s to send a gigabyte by TCP; path and disks are fast."""
    world = empty_world()
    for verb in ("pull", "push"):
        world.tcp(verb, 1500, server=cpu_load(0.6, 1500))
    for side in ("client", "server"):
        for verb in ("read", "write"):
            world.disk(side, verb, 3000)
    return world


def add_copy(world, rate, cost, details=ENCRYPTED, name="pull.cached", **extra):
    world.copy(name, spread(rate), details=details, server=cpu_load(cost, rate), **extra)


# -- right -------------------------------------------------------------------------------------

FULL_BY_CRYPTO = {
    "nothing else is 9 times as dear as to send by TCP": (175, 5.6, ENCRYPTED),
    "a signature alike": (175, 5.6, SIGNED),
    "the best way to sign is not advised against itself": (175, 5.6, GMAC),
    "a cheaper cipher is advised": (100, 9.8, {**ENCRYPTED, "encryption": "aes-256-ccm"}),
}


@pytest.mark.parametrize(("rate", "cost", "details"), FULL_BY_CRYPTO.values(), ids=FULL_BY_CRYPTO)
def test_a_core_that_is_full_with_what_the_server_requires_names_it(
    slow_cpu, rate, cost, details, expect
):
    add_copy(slow_cpu, rate, cost, details)
    expect(slow_cpu, "smb/server/encryption" if details["encryption"] else "smb/server/signing")


CONFIGS = {
    "as it is set": [
        {"option": "case sensitive", "value": "Auto"},
        {"option": "server smb encrypt", "value": "required"},
    ],
    "strange": "strange",
}


@pytest.mark.parametrize("smb_conf", CONFIGS.values(), ids=CONFIGS)
def test_the_advice_names_the_setting(slow_cpu, smb_conf, expect):
    add_copy(slow_cpu, 175, 5.6)
    expect(slow_cpu, "smb/server/encryption", smb_conf=smb_conf)


def test_the_same_bytes_plain_tell_it_for_sure(slow_cpu, expect):
    """Here the server's core is one of four, and the copy is a push."""
    slow_cpu.tax("push", "plain", spread(117), server=cpu_load(2.0, 117, 4))
    slow_cpu.tax("push", "encrypted", spread(84), server=cpu_load(11.5, 84, 4))
    slow_cpu.copy("push.cached", spread(82), details=ENCRYPTED, server=cpu_load(11.8, 82, 4))
    expect(slow_cpu, "smb/server/encryption")


def test_a_push_is_told_by_the_pulls_of_the_same_server(slow_cpu, expect):
    """Nobody knows what the server's disk adds to a push; the crypto is the same both ways."""
    add_copy(slow_cpu, 175, 5.6)
    add_copy(slow_cpu, 140, 7.0, name="push.cached")
    expect(slow_cpu, "smb/server/encryption", "smb/server/encryption")


def test_a_server_that_copies_from_a_client_which_encrypts_names_the_client(slow_cpu, expect):
    slow_cpu.tcp("push", 1500, client=cpu_load(0.6, 1500))
    extra = {"details": ENCRYPTED, "client": cpu_load(5.6, 175)}
    extra |= {"initiator": "server", "engine": "smbclient"}
    slow_cpu.copy("server.pull.cached", spread(175), **extra)
    expect(slow_cpu, "smb/client/encryption")


# -- decoys ------------------------------------------------------------------------------------


def test_crypto_is_not_the_cap_of_a_copy_that_fills_the_link(two_hosts, expect):
    """It is what comes next."""
    world = two_hosts(117.6, disk=3000)
    world.forget("tcp")
    for verb in ("pull", "push"):
        world.tcp(verb, 117.6, server=cpu_load(0.6, 117.6))
    add_copy(world, 114, 5.6)
    expect(world, "network/path/link-rate")


def test_nor_of_one_that_waits_for_the_disk(slow_cpu, expect):
    slow_cpu.forget("disk", side="server")
    slow_cpu.disk("server", "read", 60)
    add_copy(slow_cpu, 58, 5.6, SIGNED, "pull.uncached")
    expect(slow_cpu, "disk/server/read")


OF_THE_CPU = {
    "an AES unit, hardly more than TCP takes and a copy from RAM": (880, 1.1, ENCRYPTED, {}),
    "the session does not tell": (175, 5.6, {}, {}),
    "a plain session": (175, 5.6, PLAIN, {}),
    "short requests, each of them work": pytest.param(
        175, 5.7, {"signing": "md5", "encryption": None, "request_bytes": 16384}, {}
    ),
    "a push, where no pull tells of the crypto": (140, 7.0, ENCRYPTED, {"name": "push.cached"}),
}


@pytest.mark.parametrize(("rate", "cost", "details", "extra"), OF_THE_CPU.values(), ids=OF_THE_CPU)
def test_where_crypto_is_not_shown_to_be_most_of_it_it_is_the_cpu(
    slow_cpu, rate, cost, details, extra, expect
):
    add_copy(slow_cpu, rate, cost, details, **extra)
    expect(slow_cpu, CPU)


TAXES = {
    "a tax within the noise": ("signed", (170, 5.5), (168, 5.6), GMAC, (168, 5.8)),
    "the lesser part of a full core": ("signed", (290, 3.3), (200, 4.8), SIGNED, (190, 5.1)),
    "less than the clock's ticks": ("encrypted", (0.9, 2.0), (0.5, 9.0), ENCRYPTED, (100, 9.6)),
}


@pytest.mark.parametrize(("kind", "plain", "taxed", "details", "copy"), TAXES.values(), ids=TAXES)
def test_a_small_difference_blames_no_crypto(slow_cpu, kind, plain, taxed, details, copy, expect):
    """plain, taxed, copy: MB/s, and s/GB of the server's CPU."""
    for security, (rate, cost) in (("plain", plain), (kind, taxed)):
        slow_cpu.tax("pull", security, spread(rate), server=cpu_load(cost, rate))
    if details is not SIGNED:
        slow_cpu.forget("tcp")
    add_copy(slow_cpu, *copy, details)
    expect(slow_cpu, CPU)


def test_without_tcps_own_cost_nothing_is_deduced(slow_cpu, expect):
    slow_cpu.forget("tcp")
    add_copy(slow_cpu, 175, 5.6)
    expect(slow_cpu, CPU)


OTHERS = {
    "contention": {
        **{"core_busy_ratios": (1.0,), "other_cpu_seconds": 3.0, "run_delay_seconds": 2.0}
    },
    "quota": {"quota_cores": 0.25, "throttled_ratio": 0.9, "core_busy_ratios": (0.25,)},
}


@pytest.mark.parametrize("cause", OTHERS)
def test_a_cpu_that_others_or_a_quota_take_is_theirs(slow_cpu, cause, expect):
    load = {**cpu_load(5.6, 43), **OTHERS[cause]}
    slow_cpu.copy("pull.cached", spread(43), details=ENCRYPTED, server=load)
    expect(slow_cpu, f"cpu/server/{cause}")


def test_this_tools_own_crypto_is_the_instruments_affair(slow_cpu, expect):
    add_copy(slow_cpu, 175, 1, client=cpu_load(5.6, 175, 2))
    expect(slow_cpu, "instrument/client/ceiling")


NO_WITNESS = {
    "another security": (SIGNED, {}),
    "another dialect": (ENCRYPTED, {"dialect": "3.0.2"}),
    "another cipher": ({**ENCRYPTED, "encryption": "aes-128-ccm"}, {}),
    "altered": ({**ENCRYPTED, "hash_ok": False}, {}),
    "another initiator": (ENCRYPTED, {"initiator": "server", "name": "server.pull.cached"}),
}


@pytest.mark.parametrize(("details", "extra"), NO_WITNESS.values(), ids=NO_WITNESS)
def test_other_copies_than_alike_ones_are_no_witness(slow_cpu, details, extra, expect):
    """The pull that would tell of the push's crypto was not the same session's kind."""
    add_copy(slow_cpu, 140, 7.0, name="push.cached")
    add_copy(slow_cpu, 175, 5.6, details, **extra)
    expect(slow_cpu, CPU)


def test_without_an_agent_nothing_tells_whose_crypto_it_is(empty_world, expect):
    world = empty_world(agent=False)
    world.tax("pull", "plain", spread(117))
    world.tax("pull", "encrypted", spread(84))
    world.copy("pull.cached", spread(82), details=ENCRYPTED)
    expect(world, "unknown/inconclusive")


NAMES = {
    "signing": "the server's signing",
    "encryption": "the server's encryption",
    "dialect": "the server's SMB dialect",
    "server-software": "the server's file server software",
    "round-trips": "the SMB window",
}


@pytest.mark.parametrize("cause", NAMES)
def test_a_ceiling_of_smb_is_named_by_its_cause(cause):
    ceiling = Ceiling("smb", "server", cause, 1e8, 1e8, 1e8, (0,), "estimated")
    assert sentences.name(ceiling) == NAMES[cause]
