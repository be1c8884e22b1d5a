"""Each rule with planted caps: right where one was planted, silent where none was."""

from dataclasses import replace

import pytest

FULL = {"core_busy_ratios": (0.98, 0.97), "busiest_process_ratio": 0.6, "copy_cpu_seconds": 7.0}
THROTTLED = {
    "core_busy_ratios": (0.08,),
    "busiest_process_ratio": 0.07,
    "copy_cpu_seconds": 0.31,
    "quota_cores": 0.08,
    "throttled_ratio": 0.93,
}


LINK, NOBODY = ("network", "path", "link-rate"), ("unknown", None, "inconclusive")


# -- disk --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("copy", "side", "verb"),
    [
        ("pull.uncached", "server", "read"),
        ("push.uncached", "client", "read"),
        ("pull.cached", "client", "write"),
        ("push.cached", "server", "write"),
        ("push.uncached", "server", "write"),
    ],
)
def test_a_slow_disk_on_the_way_is_named(empty_world, copy, side, verb):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.tcp("push", 117.6)
    for each in ("client", "server"):
        for does in ("read", "write"):
            world.disk(each, does, 25 if (each, does) == (side, verb) else 500)
    memory = 116 if side == "client" else 24.5
    world.copy(copy, (23.4, 23.6, 23.9), memory=memory)
    found = world.diagnosed()
    verdict = found.verdict
    assert verdict.named == ("disk", side, verb)
    assert verdict.ceiling_bytes_per_second == 25e6
    assert verdict.confidence >= 0.9
    assert (found.next.component, found.next.ceiling_bytes_per_second) == ("network", 117.6e6)
    assert "23.6 MB/s" in verdict.sentence
    assert "25.0 MB/s" in verdict.sentence


def test_the_sentence_reads_as_promised(world):
    world.entries = [e for e in world.entries if e[0].setting.get("side") != "server"]
    world.disk("server", "read", 25)
    world.copy("pull.uncached", (23.4, 23.6, 23.9), memory=24.5)
    assert world.diagnosed().verdict.sentence.startswith(
        "Pulling a file that is not in the server's cache runs at 23.6 MB/s because the server's "
        "disk reads "
    )


@pytest.mark.parametrize(
    ("copy", "side", "verb"),
    [
        ("pull.cached", "server", "read"),  # the source is in RAM
        ("push.cached", "client", "read"),
        ("pull.uncached", "server", "write"),  # not on the way
        ("push.uncached", "client", "write"),
    ],
)
def test_a_slow_disk_that_is_not_on_the_way_is_not(world, copy, side, verb):
    world.disk(side, verb, 25)
    world.copy(copy, 112, memory=116)
    assert world.named() == LINK
    assert (("disk", side, verb)) not in [c.named for c in world.diagnosed().ceilings]


def test_a_disk_read_without_proof_is_never_named(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("server", "read", 25, proven=False)
    world.disk("client", "write", 500)
    world.copy("pull.uncached", 24)
    assert world.named() == NOBODY
    assert any(
        "Not verified: that the server's disk was read past the page cache" in line
        for line in world.diagnosed().evidence
    )


def test_a_disk_measured_under_a_quota_is_a_lower_bound(empty_world):
    world = empty_world()
    world.busy["server"] = THROTTLED
    world.disk("server", "write", 30)
    world.copy("push.cached", 29)
    found = world.diagnosed()
    assert (found.verdict.component, found.verdict.cause) == ("cpu", "quota")
    assert standings(found, "disk") == ["at-least"]


def test_a_ceiling_that_the_copy_exceeds_is_dropped_and_said(world):
    world.disk("server", "write", 60)
    world.entries = [e for e in world.entries if len(getattr(e[1], "runs", ())) == 1]
    world.copy("push.cached", 110, memory=116)
    found = world.diagnosed()
    assert found.verdict.component == "network"
    assert any(
        "Ignored: a limit of 60.0 MB/s for the server's disk" in line for line in found.evidence
    )
    assert all(c.bytes_per_second * 1.1 >= 110e6 for c in found.ceilings)


# -- network -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "link"), [(11.77, "100 Mbit/s"), (117.7, "1 Gbit/s")])
def test_a_full_link_is_named_with_what_it_looks_like(linked, rate, link):
    linked.tcp("pull", rate)
    linked.tcp("pull", rate * 1.001, streams=4)
    linked.copy("pull.cached", rate * 0.96, memory=rate * 0.99)
    found = linked.diagnosed()
    assert found.verdict.named == LINK
    assert f"the usable rate of a {link} link (MTU 1500)" in found.verdict.sentence
    slow = any("although each interface offered 1 Gbit/s" in line for line in found.evidence)
    assert slow == (rate < 100), "a slow part between fast interfaces is pointed at"


@pytest.fixture
def linked(world):
    """The same hosts and disks, and no TCP between them yet."""
    world.entries = [each for each in world.entries if each[0].stage != "tcp"]
    return world


def test_each_direction_has_its_own_link(empty_world):
    world = empty_world()
    world.tcp("push", 117.7)
    world.tcp("pull", 11.77)
    for side in ("client", "server"):
        world.disk(side, "write", 500)
    world.copy("pull.cached", 11.5)
    world.copy("push.cached", 112)
    assert world.diagnosed(0).verdict.ceiling_bytes_per_second == 11.77e6
    assert world.diagnosed(1).verdict.ceiling_bytes_per_second == 117.7e6


def test_a_rate_of_no_standard_link_is_named_with_less_confidence(pulled):
    verdict = pulled(58, link=60, memory=59).verdict
    assert verdict.named == LINK
    assert "usable rate" not in verdict.sentence
    assert verdict.confidence == 0.98  # that of a standard link is 0.99


@pytest.mark.parametrize(
    ("loads", "known"),
    [
        ({"server": FULL}, ["at-least", "inferred"]),
        ({"client": {"busiest_process_ratio": 0.96}}, ["at-least", "inferred"]),
        ({"server": THROTTLED}, ["at-least", "inferred"]),
        ({"by": "receive-window"}, ["at-least"]),
    ],
    ids=["full cores", "one thread", "quota", "window"],
)
def test_tcp_that_something_else_limited_is_never_a_link(linked, loads, known):
    """Beside a full CPU the cards say what the link carries at most: far above the copy."""
    linked.tcp("pull", 60, **loads)
    linked.copy("pull.cached", 58, memory=59)
    found = linked.diagnosed()
    assert found.verdict.component == "unknown"
    assert standings(found) == known
    assert any("The network may carry more, because" in line for line in found.evidence)


def standings(found, component="network"):
    return [each.standing for each in found.ceilings if each.component == component]


def test_a_busy_core_beside_a_standard_rate_is_still_a_link(linked):
    linked.tcp("pull", 117.6, server=FULL)
    linked.copy("pull.cached", 113, memory=116)
    assert linked.named() == LINK


def test_tcp_near_the_tools_own_ceiling_is_a_lower_bound(empty_world):
    world = empty_world()
    world.loopback("client", 80)
    world.tcp("pull", 60)
    world.disk("client", "write", 500)
    world.copy("pull.cached", 40)
    assert standings(world.diagnosed()) == ["at-least"]


@pytest.mark.parametrize("agent", [True, False])
def test_packets_that_never_leave_the_host_prove_no_link(empty_world, agent):
    world = empty_world(agent)
    world.client = replace(world.client, interface=replace(world.client.interface, name="lo"))
    if agent:
        world.tcp("pull", 117.6)
    world.copy("pull.cached", 115, memory=116, client={"interface_received_bytes": traffic(400)})
    found = world.diagnosed()
    assert found.verdict.component == "unknown"
    assert standings(found) == ["at-least"] * agent


def test_without_an_agent_a_link_is_inferred_from_the_copy_to_memory(pulled):
    verdict = pulled(11.4, memory=11.74, link=None, agent=False).verdict
    assert verdict.named == LINK
    assert verdict.confidence <= 0.9
    assert "inferred" in verdict.sentence


@pytest.mark.parametrize(
    ("rate", "client"),
    [(18.0, {}), (11.74, {"core_busy_ratios": (0.99, 0.98), "busiest_process_ratio": 0.98})],
    ids=["no standard link", "the client's CPU is full"],
)
def test_without_an_agent_nothing_is_inferred_from_other_rates(pulled, rate, client):
    found = pulled(rate, memory=rate, link=None, agent=False, client=client)
    assert found.verdict.component != "network"


# -- network contention ------------------------------------------------------------------------


def traffic(rate_mb, seconds=4.0):
    return int(rate_mb * 1e6 * seconds / (1448 / 1514))


def carried(total):
    """What the interfaces counted while a pull ran."""
    return {
        "client": {"interface_received_bytes": traffic(total)},
        "server": {"interface_sent_bytes": traffic(total)},
    }


def test_somebody_elses_traffic_on_a_full_link_is_named(empty_world):
    world = empty_world()
    world.tcp("pull", 6, client={"interface_received_bytes": traffic(11.7)})
    world.disk("client", "write", 500)
    world.copy("pull.cached", 6, **carried(11.7))
    found = world.diagnosed()
    assert found.verdict.named == ("network", "path", "contention")
    assert "5.70 MB/s" in found.verdict.sentence
    assert found.next.cause == "link-rate"


def test_the_copys_own_packets_are_nobody_elses(world):
    world.copy("pull.cached", 113, **carried(113))
    assert world.named() == LINK


def test_traffic_on_a_link_with_room_is_not_blamed(pulled):
    found = pulled(24, disk=25, **carried(54))
    assert found.verdict.named == ("disk", "client", "write")
    assert any("the link was not seen to be full" in line for line in found.evidence)


@pytest.mark.parametrize(
    ("total", "named"), [(11.77, ("network", "path", "contention")), (9, NOBODY)]
)
def test_without_an_agent_a_full_link_is_known_by_its_total(pulled, total, named):
    assert pulled(6, link=None, disk=None, agent=False, **carried(total)).verdict.named == named


# -- cpu ---------------------------------------------------------------------------------------


def test_a_throttled_server_is_named_and_its_stages_are_lower_bounds(empty_world):
    world = empty_world()
    world.busy["server"] = THROTTLED
    world.loopback("server", 45)
    world.tcp("pull", 40)
    world.disk("client", "write", 500)
    world.copy("pull.cached", 30)
    found = world.diagnosed()
    assert found.verdict.named == ("cpu", "server", "quota")
    assert found.predicted_bytes_per_second.low == pytest.approx(40e6, rel=0.05)
    assert found.predicted_bytes_per_second.median > 100e6
    assert not any(c.component == "instrument" and c.side == "server" for c in found.ceilings)


def test_a_quota_that_cannot_be_seen_is_deduced_from_waiting_beside_idle_cores(pulled):
    waits = {"run_delay_seconds": 3.2, "other_cpu_seconds": 0.02}
    verdict = pulled(30, disk=None, server=waits).verdict
    assert verdict.named == ("cpu", "server", "quota")
    assert verdict.confidence <= 0.9


CROWD = {"core_busy_ratios": (1.0,), "other_cpu_seconds": 2.0, "run_delay_seconds": 2.1}
FAR = {"rate": 240, "link": 1100, "disk": 900}
"""All stages far from the copy."""


@pytest.mark.parametrize(
    ("made", "named"),
    [
        pytest.param({**FAR, "client": FULL}, ("client", "all-cores"), id="full cores"),
        pytest.param(
            {
                **FAR,
                "server": {
                    "core_busy_ratios": (0.98, 0.2, 0.1, 0.1),
                    "busiest_process_ratio": 0.97,
                },
            },
            ("server", "one-core"),
            id="one full core of many",
        ),
        pytest.param(
            {"rate": 40, "disk": None, "server": CROWD},
            ("server", "contention"),
            id="other processes on full cores",
        ),
        pytest.param(
            {
                **FAR,
                "client": {
                    "core_busy_ratios": (0.98, 0.1),
                    "busiest_process_ratio": 0.3,
                    "softirq_ratio": 0.48,
                },
            },
            ("client", "one-core"),
            id="interrupts that fill the client's core are not this tool's process",
        ),
        pytest.param(
            {
                **FAR,
                "client": {
                    "core_busy_ratios": (0.97,),
                    "busiest_process_ratio": 0.6,
                    "softirq_ratio": 0.3,
                },
            },
            ("client", "all-cores"),
            id="the client's 97% busy (1 core), where no process of ours fills it",
        ),
    ],
)
def test_a_cpu_that_is_full_is_named(pulled, made, named):
    assert pulled(**made).verdict.named == ("cpu", *named)


IDLE_OTHERS = {"core_busy_ratios": (1.0,), "other_cpu_seconds": 3.5, "run_delay_seconds": 0.1}
HALF = {"core_busy_ratios": (0.7, 0.5), "busiest_process_ratio": 0.7}


@pytest.mark.parametrize(
    "loads",
    [
        {"server": {"quota_cores": 0.5, "throttled_ratio": 0.1, "copy_cpu_seconds": 1.2}},
        {"server": IDLE_OTHERS},
        {"client": HALF, "server": HALF},
    ],
    ids=["a quota with room", "other processes in idle time", "half loaded hosts"],
)
def test_a_cpu_that_holds_nothing_is_not_named(world, loads):
    world.copy("pull.cached", 112, memory=116, **loads)
    assert world.named() == LINK
    waits = any("did not wait" in line for line in world.diagnosed().evidence)
    assert waits == (IDLE_OTHERS in loads.values())


@pytest.mark.parametrize("cores", [(0.98, 0.2, 0.1, 0.1), (0.97,)], ids=["four", "one"])
def test_this_tools_own_process_on_a_full_core_blames_nobody(pulled, cores):
    found = pulled(**FAR, client={"core_busy_ratios": cores, "busiest_process_ratio": 0.96})
    verdict = found.verdict
    assert verdict.named == ("instrument", "client", "ceiling")
    assert "this tool itself uses all of one core" in verdict.sentence
    assert verdict.ceiling_bytes_per_second == pytest.approx(240e6 / 0.96)
    assert found.next is None
    assert found.predicted_bytes_per_second is None
    assert "faster host" in found.advice[0]


def test_a_link_that_is_reached_beside_a_full_core_of_ours_is_named_with_doubt(world):
    busy = {"core_busy_ratios": (0.95, 0.1), "busiest_process_ratio": 0.95}
    world.copy("pull.cached", 116, memory=117, client=busy)
    verdict = world.diagnosed().verdict
    assert verdict.named == LINK
    assert "Equally likely: this tool" in verdict.sentence
    assert verdict.confidence <= 0.6


def test_on_one_host_the_other_sides_work_is_no_strangers(empty_world):
    """The server's processes are others to the client's agent, and not somebody else's."""
    world = empty_world()
    for host in ("client", "server"):
        setattr(world, host, on_loopback(getattr(world, host)))
    full = {"core_busy_ratios": (1.0, 1.0), "other_cpu_seconds": 4.2, "copy_cpu_seconds": 3.6}
    for waited_seconds in (0.0, 2.0):
        both = {**full, "busiest_process_ratio": 0.6, "run_delay_seconds": waited_seconds}
        world.copy("pull.cached", 240, client=both, server=both)
        assert world.diagnosed().verdict.cause == "all-cores"
        world.entries.pop()


def on_loopback(facts):
    return replace(facts, interface=replace(facts.interface, name="lo", mtu_bytes=65536))


def test_the_only_core_is_all_cores(empty_world):
    world = empty_world()
    busy = {"core_busy_ratios": (0.97,), "busiest_process_ratio": 0.95}
    world.copy("push.cached", 240, server=busy)
    assert world.named() == ("cpu", "server", "all-cores")
    assert "97% busy (1 core)" in world.diagnosed().verdict.sentence


# -- instrument --------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["client", "server"])
def test_near_the_tools_own_ceiling_nobody_is_blamed(empty_world, side):
    world = empty_world()
    world.loopback(side, 150)
    world.tcp("pull", 117.6)
    world.copy("pull.cached", 113)
    found = world.diagnosed()
    assert found.verdict.named == ("instrument", side, "ceiling")
    assert found.next is None
    assert found.predicted_bytes_per_second is None


def test_a_tool_that_others_crowded_out_shows_no_ceiling_of_its_own(empty_world):
    world = empty_world()
    world.loopback("client", 150, client=CROWD)
    world.tcp("pull", 117.6)
    world.copy("pull.cached", 113)
    assert world.diagnosed().verdict.component == "network"


# -- unknown -----------------------------------------------------------------------------------


def test_a_copy_far_below_all_its_ceilings_is_not_guessed_at(world):
    world.copy("pull.uncached", 30, memory=30)
    verdict = world.diagnosed().verdict
    assert verdict.named == NOBODY
    assert verdict.confidence == 0
    assert "30.0 MB/s" in verdict.sentence


def test_a_copy_without_any_ceiling_says_so(pulled):
    idle = {"core_busy_ratios": (0.0, 0.0), "other_cpu_seconds": 0.0, "softirq_ratio": 0.0}
    idle["busiest_process_ratio"] = 0.0
    found = pulled(30, link=None, disk=None, agent=False, client=idle)
    assert "No component could be measured" in found.verdict.sentence
    assert any("--agent" in line for line in found.advice)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda w: w.skip("pull.uncached", "the cache cannot be controlled"), "the cache cannot"),
        (lambda w: w.fail("pull.uncached", "nas: connection reset"), "nas: connection reset"),
        (lambda w: w.copy("pull.uncached", 0.0), "moved nothing"),
    ],
    ids=["skipped", "failed", "nothing moved"],
)
def test_a_copy_that_was_not_made_has_the_reason_as_its_sentence(world, make, text):
    make(world)
    found = world.diagnosed()
    assert found.verdict.named == ("unknown", None, "not-measured")
    assert text in found.verdict.sentence
    assert found.bytes_per_second is None


def test_strange_details_are_no_evidence_and_no_error(world):
    world.copy("pull.cached", 113, memory=116)
    step, outcome = world.entries[-1]
    for strange in ({"cache": "x", "flush_seconds": "soon"}, {"cache": {"proven": 1}}, {}):
        world.entries[-1] = (step, type(outcome)(outcome.runs, outcome.initiator, None, strange))
        assert world.named() == LINK


@pytest.mark.parametrize(("same_host", "component"), [(True, "network"), (False, "unknown")])
def test_a_peer_on_another_host_says_nothing_of_the_copies_path(empty_world, same_host, component):
    world = empty_world(agent=False)
    index = world.tcp("pull", 11.7)
    world.entries[index][1].details["peer_is_target"] = same_host
    world.copy("pull.cached", 11.6)
    assert world.diagnosed().verdict.component == component


def test_a_full_cpu_beside_cards_of_unknown_rate_leaves_the_link_unknown(empty_world):
    """What a shaper or a card lets through is a limit only where one is known."""
    world = empty_world()
    full = {"core_busy_ratios": (1.0, 1.0), "busiest_process_ratio": 0.5}
    world.tcp("pull", 60, client=full)
    world.copy("pull.cached", 50)
    world.client = replace(world.client, interface=None)
    world.server = replace(world.server, interface=None)
    assert standings(world.diagnosed()) == ["at-least"]
