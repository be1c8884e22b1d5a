"""Figures that a person told: verdicts no surer than they deserve, and silence where they tell
nothing.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.estimate.observations import SCHEMA

GIGABIT = """
[client]
link = "1 Gbit/s"
mtu = 1500
[server]
link = "1 Gbit/s"
mtu = 1500
"""
LINK, NOBODY = "network/path/link-rate", "unknown/inconclusive"


def copy(name: str, rate: str = "") -> str:
    line = f'rate = "{rate} MB/s"\n' if rate else ""
    return f'[[copy]]\ncopy = "{name}"\n{line}'


def tcp(sender: str, rate: str) -> str:
    return f'[[tcp]]\nsender = "{sender}"\nrate = "{rate}"\n'


def disk(side: str, verb: str, rate: str) -> str:
    return f'[[disk]]\nside = "{side}"\nverb = "{verb}"\nrate = "{rate}"\n'


# -- what is measured is left alone ------------------------------------------------------------


def test_figures_that_a_person_told_make_no_verdict_surer_than_0_7(world, expect):
    world.copy("push.cached", 116)
    expect(world, LINK)
    assert world.diagnosis_of().verdict.confidence == 0.85
    supplied = world.report(tool={"version": "0", "observations": SCHEMA})
    expect(supplied, LINK)
    assert diagnose(supplied).copies[0].verdict.confidence == 0.7


def test_a_strange_report_that_calls_itself_told_and_broke_off_raises_nothing(world):
    world.copy("push.cached", 116)
    report = world.report(status="interrupted", tool={"version": "0", "observations": "x"})
    assert len(diagnose(report).copies) == 4


# -- copies with a rate ------------------------------------------------------------------------

FULL, PUSHED = tcp("server", "940 Mbit/s"), copy("push.cached", "50")
CORE = 'server_cpu = "98%"\n'
ONE = {
    "a disk that is read": pytest.param(
        "disk/server/read", disk("server", "read", "60 MB/s") + copy("pull.uncached", "58")
    ),
    "a disk that is written": pytest.param(
        "disk/server/write", disk("server", "write", "60 MB/s") + copy("push.cached", "58")
    ),
    "a link": (LINK, copy("push.cached", "113")),
    "a core that was noted": ("cpu/server/one-core", f"{PUSHED}{CORE}"),
    "signing on it": ("smb/server/signing", f'{PUSHED}{CORE}security = "signed"\n'),
    "TCP alone": (LINK, tcp("server", "300 Mbit/s") + copy("pull.cached", "36")),
    "a hop that is slower than the links": pytest.param(
        LINK, tcp("client", "94 Mbit/s") + copy("push.cached", "11.5")
    ),
    "below all that was told": (NOBODY, copy("pull.cached", "40")),
    "below a disk": pytest.param(
        NOBODY, disk("server", "read", "160 MB/s") + copy("pull.uncached", "40")
    ),
    "TCP alone rules the network out": (NOBODY, FULL + copy("pull.uncached", "40")),
    **{
        f"{rate} MB/s, beside a link of 100 Mbit/s": (NOBODY, FULL + copy("pull.uncached", rate))
        for rate in ("11", "11.54", "11.8", "9", "14", "60")
    },
}


@pytest.mark.parametrize(("cap", "text"), ONE.values(), ids=ONE)
def test_a_ceiling_that_was_told_and_is_reached_caps_the_copy(load_toml, cap, text, expect):
    """A copy at the rate of a slower link may take another way, and the text points at that."""
    expect(load_toml(GIGABIT + text), cap)


def test_without_any_faster_figure_a_slower_link_is_no_riddle(load_toml, expect):
    expect(load_toml(disk("server", "read", "60 MB/s") + copy("pull.uncached", "11.7")), NOBODY)


@pytest.mark.parametrize(
    ("hosts", "rate"),
    [(GIGABIT.replace("1500", "9000"), "118"), (GIGABIT.replace("mtu = 1500", ""), "113")],
    ids=["long", "not known"],
)
def test_frames_that_are_long_or_not_known_are_not_told_to_grow(load_toml, hosts, rate, expect):
    expect(load_toml(hosts + tcp("client", f"{rate} MB/s") + copy("push.cached", rate)), LINK)


# -- one against the other -----------------------------------------------------------------------

TWO = {
    "the other way rules out the link, and RAM the disk": pytest.param(
        (NOBODY, LINK), copy("pull.cached", "25") + copy("push.cached", "96")
    ),
    "an uncached copy does not rule out its disk": pytest.param(
        (NOBODY, LINK), copy("pull.uncached", "25") + copy("push.uncached", "96")
    ),
    "another way that is hardly faster rules nothing out": pytest.param(
        (NOBODY, NOBODY), copy("pull.cached", "25") + copy("push.cached", "27")
    ),
    "nor one that is slower": pytest.param(
        (NOBODY, NOBODY), copy("pull.cached", "25") + copy("push.cached", "20")
    ),
    "a copy that both hosts started is not asked for again": pytest.param(
        (NOBODY,), copy("pull.cached", "25") + copy("server.push.cached", "27")
    ),
    "what a pull loses without RAM is the server's disk; what holds its twin was not found": (
        ("disk/server/read",),
        copy("pull.uncached", "15") + copy("pull.cached", "25"),
    ),
    "a twin that fills the link has it for next": pytest.param(
        ("disk/server/read",), copy("pull.uncached", "30") + copy("pull.cached", "110")
    ),
    "a push loses the client's": pytest.param(
        ("disk/client/read",), copy("push.uncached", "30") + copy("push.cached", "96")
    ),
    "a server's push loses its own": (
        ("disk/server/read",),
        copy("server.push.uncached", "20") + copy("server.push.cached", "60"),
    ),
    "a cap that is not the sender's disk keeps its next": (
        ("disk/client/write",),
        disk("client", "write", "16 MB/s")
        + disk("server", "read", "80 MB/s")
        + copy("pull.uncached", "15")
        + copy("pull.cached", "15.5"),
    ),
    "a twin that is hardly faster": pytest.param(
        (NOBODY,), copy("pull.uncached", "24") + copy("pull.cached", "25")
    ),
    "one that is slower": ((NOBODY,), copy("pull.uncached", "40") + copy("pull.cached", "25")),
    "one of the other way": ((NOBODY,), copy("pull.uncached", "15") + copy("push.cached", "96")),
    "a disk that is known": (
        (NOBODY,),
        disk("server", "read", "150 MB/s")
        + copy("pull.uncached", "15")
        + copy("pull.cached", "25"),
    ),
}


@pytest.mark.parametrize(("caps", "text"), TWO.values(), ids=TWO)
def test_copies_tell_of_one_another(load_toml, caps, text, expect):
    expect(load_toml(GIGABIT + text), *caps)


@pytest.mark.parametrize(
    ("proven", "cap"), [(False, "disk/server/read"), (True, "disk/server/read")]
)
def test_measured_copies_blame_a_disk_by_their_twin(empty_world, proven, cap, expect):
    world = empty_world(agent=False)
    world.copy("pull.uncached", (29, 30, 31), proven=proven)
    world.copy("pull.cached", (89, 90, 91), proven=proven)
    expect(world, cap)


# -- copies without a rate ---------------------------------------------------------------------

BOUNDS = {
    "TCP alone": (LINK, GIGABIT + tcp("client", "300 Mbit/s")),
    "nothing is known": ("unknown/not-measured", tcp("server", "300 Mbit/s")),
    "as near as the next": ("disk/server/write", GIGABIT + disk("server", "write", "110 MB/s")),
    "near it": (LINK, GIGABIT + disk("server", "write", "140 MB/s")),
    "far from it": (LINK, GIGABIT + disk("server", "write", "1 GB/s")),
}


@pytest.mark.parametrize(("cap", "text"), BOUNDS.values(), ids=BOUNDS)
def test_a_copy_without_a_rate_is_told_what_bounds_it(load_toml, cap, text, expect):
    """The surer the further the next ceiling is."""
    expect(load_toml(text + copy("push.cached")), cap)


# -- who starts it -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sender", "better", "host"),
    [
        ("client", "sender", "client"),
        ("server", "receiver", "client"),
        ("server", "sender", "server"),
    ],
)
def test_who_should_start_a_copy_is_passed_on_without_figures(load_toml, sender, better, host):
    text = f'[[start]]\nsender = "{sender}"\nbetter = "{better}"\n' + copy("push.cached", "90")
    (comparison,) = [
        e for e in diagnose(load_toml(GIGABIT + text)).comparisons if e.about == "initiator"
    ]
    assert comparison.significant and comparison.ratio is None
    assert comparison.sentence.startswith(f"Start the copy from the {better}: ")
    assert f"if the {host} starts the copy" in comparison.sentence


def test_strange_words_of_who_starts_it_are_left_out(load_toml):
    report = load_toml(GIGABIT + copy("push.cached", "90"))
    strange = [{"sender": "moon", "better": "sender"}, {"sender": "client", "better": 3}]
    report = replace(report, target={**report.target, "starts": strange})
    assert diagnose(report).comparisons == ()
