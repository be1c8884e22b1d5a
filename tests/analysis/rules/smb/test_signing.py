"""Causes smb/signing and smb/encryption: named where crypto fills a CPU, silent where not."""

from dataclasses import replace

import pytest

from bottleneck.analysis import diagnose, sentences
from bottleneck.analysis.finding import Ceiling

RUN_SECONDS = 4.0


def about(rate):
    return (0.99 * rate, rate, 1.01 * rate)


def costing(seconds_per_gigabyte, rate, cores=1, **more):
    """A host whose copy costs so much of its CPU, on a single busy thread."""
    busy = seconds_per_gigabyte * rate / 1000
    ratios = (min(1.0, busy + 0.02), *(0.02,) * (cores - 1))
    return {
        "core_busy_ratios": ratios,
        "busiest_process_ratio": min(1.0, busy),
        "copy_cpu_seconds": busy * RUN_SECONDS,
        **more,
    }


ENCRYPTED = {"signing": None, "encryption": "aes-128-gcm", "request_bytes": 1 << 20}
SIGNED = {"signing": "aes-cmac", "encryption": None, "request_bytes": 1 << 20}


def slow(empty_world, sending=0.6, link=1500):
    """A fast path to a server whose CPU needs 0.6 s to send a gigabyte by TCP."""
    world = empty_world()
    for verb in ("pull", "push"):
        world.tcp(verb, link, server=costing(sending, link))
    for side in ("client", "server"):
        for verb in ("read", "write"):
            world.disk(side, verb, 3000)
    return world


# -- right -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("details", "cause"), [(ENCRYPTED, "encryption"), (SIGNED, "signing")], ids=["seal", "sign"]
)
def test_a_core_that_is_full_with_what_the_server_requires_names_it(empty_world, details, cause):
    """Nothing else is 9 times as dear as to send by TCP: plain was not to be had."""
    world = slow(empty_world)
    world.copy("pull.cached", about(175), details=details, server=costing(5.6, 175))
    found = world.diagnosed()
    assert found.verdict.named == ("smb", "server", cause)
    assert found.verdict.confidence == 0.8
    assert f"about 76 % of that with {cause} (" in found.verdict.sentence
    assert f"no {cause} would give about" in found.verdict.sentence.lower()
    assert any(
        "TCP alone takes 0.6 s/GB there, and a plain pull about" in e for e in found.evidence
    )
    assert "4.3" in found.advice[0]


def test_what_the_cpu_allows_without_the_crypto_comes_next(empty_world):
    world = slow(empty_world)
    world.copy("pull.cached", about(175), details=ENCRYPTED, server=costing(5.6, 175))
    found = world.diagnosed()
    by_words = {each.named: each.bytes_per_second for each in found.ceilings}
    assert by_words["smb", "server", "encryption"] == pytest.approx(175e6, rel=0.03)
    assert by_words["cpu", "server", "all-cores"] > 600e6
    assert found.predicted_bytes_per_second.median > 2 * 175e6


def test_the_same_bytes_plain_tell_it_for_sure(empty_world):
    """Here the server's core is one of four, and the copy is a push."""
    world = slow(empty_world)
    world.tax("push", "plain", about(117), server=costing(2.0, 117, 4))
    world.tax("push", "encrypted", about(84), server=costing(11.5, 84, 4))
    world.copy("push.cached", about(82), details=ENCRYPTED, server=costing(11.8, 82, 4))
    found = world.diagnosed()
    assert found.verdict.named == ("smb", "server", "encryption")
    assert found.verdict.confidence >= 0.85
    assert "one core of the server's 4 is 97 % busy with it, 81 % of that with encryption" in (
        found.verdict.sentence
    )
    assert any(
        "11.5 s/GB of the server's CPU encrypted and 2 s/GB plain" in e for e in found.evidence
    )
    levels = sorted(e.bytes_per_second for e in found.ceilings if e.component == "cpu")
    assert levels[0] > 350e6


def test_a_push_is_told_by_the_pulls_of_the_same_server(empty_world):
    """What the server's disk adds to a push is not known; the crypto is the same both ways."""
    world = slow(empty_world)
    world.copy("pull.cached", about(175), details=ENCRYPTED, server=costing(5.6, 175))
    world.copy("push.cached", about(140), details=ENCRYPTED, server=costing(7.0, 140))
    assert world.named(1) == ("smb", "server", "encryption")


@pytest.mark.parametrize(
    ("smb_conf", "expected"),
    [
        (
            [
                {"option": "case sensitive", "value": "Auto"},
                {"option": "server smb encrypt", "value": "required"},
            ],
            "(server smb encrypt is required in its smb.conf), or AES-128-GCM of SMB 3.1.1 instead",
        ),
        ([], "(Samba: server smb encrypt; Windows: EncryptData)"),
        ("strange", "(Samba: server smb encrypt; Windows: EncryptData)"),
    ],
)
def test_the_advice_names_the_setting_and_a_cheaper_cipher(empty_world, smb_conf, expected):
    world = slow(empty_world)
    details = {**ENCRYPTED, "encryption": "aes-256-ccm"}
    world.copy("pull.cached", about(100), details=details, server=costing(9.8, 100))
    report = world.report()
    report = replace(report, target={**report.target, "smb_conf": smb_conf})
    (advice,) = diagnose(report).copies[0].advice
    assert advice.startswith("No encryption where the network can be trusted ")
    assert expected in advice


def test_the_best_cipher_is_not_advised_against_itself_and_signing_has_its_own_switch(empty_world):
    world = slow(empty_world)
    details = {**SIGNED, "signing": "aes-gmac"}
    world.copy("pull.cached", about(175), details=details, server=costing(5.6, 175))
    (advice,) = world.diagnosed().advice
    assert "(Samba: server signing; Windows: RequireSecuritySignature), or a CPU on" in advice


def test_a_server_that_copies_from_a_client_which_encrypts_names_the_client(empty_world):
    world = slow(empty_world)
    world.tcp("push", 1500, client=costing(0.6, 1500))
    world.copy(
        "server.pull.cached",
        about(175),
        initiator="server",
        engine="smbclient",
        details=ENCRYPTED,
        client=costing(5.6, 175),
    )
    assert world.named() == ("smb", "client", "encryption")


# -- decoys ------------------------------------------------------------------------------------


def test_encryption_is_not_the_cap_of_a_copy_that_fills_the_link(empty_world):
    """It is what comes next."""
    world = slow(empty_world, link=117.6)
    world.copy("pull.cached", about(114), details=ENCRYPTED, server=costing(5.6, 114))
    found = world.diagnosed()
    assert found.verdict.named == ("network", "path", "link-rate")
    assert (found.next.component, found.next.cause) == ("smb", "encryption")
    assert "Next is the server's encryption (174 MB/s)" in found.verdict.sentence


def test_signing_is_not_the_cap_of_a_copy_that_waits_for_the_disk(empty_world):
    world = slow(empty_world)
    world.entries = [e for e in world.entries if e[0].setting.get("side") != "server"]
    world.disk("server", "read", 60)
    world.copy("pull.uncached", about(58), details=SIGNED, server=costing(5.6, 58))
    assert world.named() == ("disk", "server", "read")


def test_crypto_that_the_cpu_does_in_passing_leaves_the_cpu_the_cap(empty_world):
    """An AES unit: 1.1 s/GB in all, hardly more than what TCP takes and a copy from RAM."""
    world = slow(empty_world)
    world.copy("pull.cached", about(880), details=ENCRYPTED, server=costing(1.1, 880))
    assert world.named() == ("cpu", "server", "all-cores")


def test_a_tax_within_the_noise_blames_no_crypto(empty_world):
    world = slow(empty_world)
    world.tax("pull", "plain", about(170), server=costing(5.5, 170))
    world.tax("pull", "signed", about(168), server=costing(5.6, 168))
    details = {**SIGNED, "signing": "aes-gmac"}
    world.entries = [e for e in world.entries if e[0].stage != "tcp"]
    world.copy("pull.cached", about(168), details=details, server=costing(5.8, 168))
    assert world.named() == ("cpu", "server", "all-cores")


def test_crypto_that_is_the_lesser_part_of_a_full_core_is_not_named(empty_world):
    world = slow(empty_world)
    world.tax("pull", "plain", about(290), server=costing(3.3, 290))
    world.tax("pull", "signed", about(200), server=costing(4.8, 200))
    world.copy("pull.cached", about(190), details=SIGNED, server=costing(5.1, 190))
    assert world.named() == ("cpu", "server", "all-cores")


def test_a_cpu_that_others_fill_is_theirs(empty_world):
    world = slow(empty_world)
    load = {"core_busy_ratios": (1.0,), "other_cpu_seconds": 3.0, "run_delay_seconds": 2.0}
    world.copy(
        "pull.cached",
        about(43),
        details=ENCRYPTED,
        server={**costing(5.6, 43), **load},
    )
    assert world.named() == ("cpu", "server", "contention")


def test_a_quota_stays_a_quota(empty_world):
    world = slow(empty_world)
    load = {"quota_cores": 0.25, "throttled_ratio": 0.9, "core_busy_ratios": (0.25,)}
    world.copy("pull.cached", about(43), details=ENCRYPTED, server={**costing(5.6, 43), **load})
    assert world.named() == ("cpu", "server", "quota")


def test_this_tools_own_crypto_is_the_instruments_affair(empty_world):
    world = slow(empty_world)
    full = costing(5.6, 175, 2)
    world.copy("pull.cached", about(175), details=ENCRYPTED, client=full, server=costing(1, 175))
    assert world.named() == ("instrument", "client", "ceiling")


@pytest.mark.parametrize(
    "details", [{}, {"signing": None, "encryption": None, "request_bytes": 1 << 20}]
)
def test_a_dear_copy_that_is_plain_or_does_not_tell_is_the_cpus(empty_world, details):
    world = slow(empty_world)
    world.copy("pull.cached", about(175), details=details, server=costing(5.6, 175))
    assert world.named() == ("cpu", "server", "all-cores")


def test_short_requests_make_a_copy_dear_without_any_crypto(empty_world):
    """SMB1's 16 KiB, each of them work: a signature on top is not shown to be most of it."""
    world = slow(empty_world)
    details = {"signing": "md5", "encryption": None, "request_bytes": 16384}
    world.copy("pull.cached", about(175), details=details, server=costing(5.7, 175))
    assert world.named() == ("cpu", "server", "all-cores")


def test_without_tcps_own_cost_nothing_is_deduced(empty_world):
    world = slow(empty_world)
    world.entries = [e for e in world.entries if e[0].stage != "tcp"]
    world.copy("pull.cached", about(175), details=ENCRYPTED, server=costing(5.6, 175))
    assert world.named() == ("cpu", "server", "all-cores")


def test_pushes_alone_tell_nothing_of_the_crypto(empty_world):
    world = slow(empty_world)
    world.copy("push.cached", about(140), details=ENCRYPTED, server=costing(7.0, 140))
    assert world.named() == ("cpu", "server", "all-cores")


@pytest.mark.parametrize("change", ["security", "dialect", "cipher", "altered", "initiator"])
def test_other_copies_than_alike_ones_are_no_witness(empty_world, change):
    """The pull that would tell of the push's crypto was not the same session's kind."""
    world = slow(empty_world)
    more = {"dialect": "3.0.2"} if change == "dialect" else {}
    details = {
        "security": SIGNED,
        "cipher": {**ENCRYPTED, "encryption": "aes-128-ccm"},
        "altered": {**ENCRYPTED, "hash_ok": False},
    }.get(change, ENCRYPTED)
    if change == "initiator":
        more = {"initiator": "server"}
    world.copy("push.cached", about(140), details=ENCRYPTED, server=costing(7.0, 140))
    name = "server.pull.cached" if change == "initiator" else "pull.cached"
    world.copy(name, about(175), details=details, server=costing(5.6, 175), **more)
    copies = {each.copy: each for each in diagnose(world.report()).copies}
    assert copies["push.cached"].verdict.named == ("cpu", "server", "all-cores")


def test_a_difference_of_less_than_the_clocks_ticks_is_none(empty_world):
    """Both runs are so short that their CPU time is one tick or two."""
    world = slow(empty_world)
    world.tax("pull", "plain", about(0.9), server=costing(2.0, 0.9))
    world.tax("pull", "encrypted", about(0.5), server=costing(9.0, 0.5))
    world.entries = [e for e in world.entries if e[0].stage != "tcp"]
    world.copy("pull.cached", about(100), details=ENCRYPTED, server=costing(9.6, 100))
    assert world.named() == ("cpu", "server", "all-cores")


def test_without_an_agent_nothing_tells_whose_crypto_it_is(empty_world):
    world = empty_world(agent=False)
    world.tax("pull", "plain", about(117))
    world.tax("pull", "encrypted", about(84))
    world.copy("pull.cached", about(82), details=ENCRYPTED)
    assert world.diagnosed().verdict.component == "unknown"


@pytest.mark.parametrize(
    ("cause", "name"),
    [
        ("signing", "the server's signing"),
        ("encryption", "the server's encryption"),
        ("dialect", "the server's SMB dialect"),
        ("server-software", "the server's file server software"),
        ("round-trips", "the SMB window"),
    ],
)
def test_what_smb_may_be_is_called_by_its_cause(cause, name):
    ceiling = Ceiling("smb", "server", cause, 1e8, 1e8, 1e8, (0,), "estimated")
    assert sentences.name(ceiling) == name
