"""Each rule with planted caps: right where one was planted, silent where none was."""

from dataclasses import replace

import pytest

LINK, NOBODY = "network/path/link-rate", "unknown/inconclusive"
CROWD, TOOL = "network/path/contention", "instrument/client/ceiling"
FULL = {"core_busy_ratios": (0.98, 0.97), "busiest_process_ratio": 0.6, "copy_cpu_seconds": 7.0}


def standings(world, component="network"):
    ceilings = world.diagnosis_of().ceilings
    return [each.standing for each in ceilings if each.component == component]


# -- disk --------------------------------------------------------------------------------------


def test_a_disk_read_without_proof_is_never_named(pull_of, expect):
    world = pull_of(24)
    world.disk("server", "read", 25, proven=False)
    world.copy("pull.uncached", 24)
    expect(world, NOBODY, NOBODY)


# -- network -----------------------------------------------------------------------------------


@pytest.fixture
def no_tcp(world):
    world.forget("tcp")
    return world


def test_each_direction_has_its_own_link(no_tcp, expect):
    no_tcp.tcp("push", 117.7)
    no_tcp.tcp("pull", 11.77)
    no_tcp.copy("pull.cached", 11.5)
    no_tcp.copy("push.cached", 112)
    expect(no_tcp, LINK, LINK)


def test_a_full_cpu_beside_cards_of_unknown_rate_leaves_the_link_unknown(no_tcp):
    """A shaper or a card is a limit only where its rate is known."""
    no_tcp.tcp("pull", 60, client=FULL)
    no_tcp.copy("pull.cached", 50)
    no_tcp.client = replace(no_tcp.client, interface=None)
    no_tcp.server = replace(no_tcp.server, interface=None)
    assert standings(no_tcp) == ["at-least"]


def test_tcp_near_the_tools_own_ceiling_is_a_lower_bound(pull_of):
    world = pull_of(40, link=60)
    world.loopback("client", 80)
    assert standings(world) == ["at-least"]


@pytest.mark.parametrize("agent", [True, False])
def test_packets_that_never_leave_the_host_prove_no_link(empty_world, agent):
    world = empty_world(agent)
    world.client = replace(world.client, interface=replace(world.client.interface, name="lo"))
    if agent:
        world.tcp("pull", 117.6)
    world.copy("pull.cached", 115, memory=116, client={"interface_received_bytes": traffic(400)})
    assert world.diagnosis_of().verdict.component == "unknown"
    assert standings(world) == ["at-least"] * agent


@pytest.mark.parametrize("interface", ["lo", "eth0"])
def test_on_one_host_what_the_server_writes_is_no_others_io(empty_world, interface):
    world = empty_world(agent=False)
    world.client = replace(world.client, interface=replace(world.client.interface, name=interface))
    world.disk("client", "read", 63)
    passed = {"device_read_bytes": 240_000_000, "device_written_bytes": 240_000_000}
    world.copy("push.uncached", 60, client=passed)
    cause = "read" if interface == "lo" else "contention"
    assert world.diagnosis_of("push.uncached").verdict.words == f"disk/client/{cause}"


@pytest.mark.parametrize(("same_host", "cap"), [(True, LINK), (False, NOBODY)])
def test_a_peer_on_another_host_says_nothing_of_the_copies_path(empty_world, same_host, cap):
    world = empty_world(agent=False)
    index = world.tcp("pull", 11.7)
    world.entries[index][1].details["peer_is_target"] = same_host
    world.copy("pull.cached", 11.6)
    assert world.diagnosis_of().verdict.words == cap


# -- network contention ------------------------------------------------------------------------


def traffic(rate_mb, seconds=4.0):
    return int(rate_mb * 1e6 * seconds / (1448 / 1514))


def traffic_usages(total):
    return {
        "client": {"interface_received_bytes": traffic(total)},
        "server": {"interface_sent_bytes": traffic(total)},
    }


OTHERS = {
    "on a link with room": ("disk/client/write", 24, {"disk": 25, **traffic_usages(54)}),
    "without an agent a full link is known by its total": pytest.param(
        CROWD, 6, {"link": None, "disk": None, "agent": False, **traffic_usages(11.77)}
    ),
    "and so is one whose rate nobody measured": pytest.param(
        CROWD, 6, {"link": None, "disk": None, "agent": False, **traffic_usages(9)}
    ),
    "the copy's own packets": (LINK, 113, traffic_usages(113)),
}


@pytest.mark.parametrize(("cap", "rate", "extra"), OTHERS.values(), ids=OTHERS)
def test_other_traffic_is_named_where_the_link_is_full(pull_of, cap, rate, extra, expect):
    expect(pull_of(rate, **extra), cap)


@pytest.mark.parametrize(
    ("rate", "disk", "total", "by", "cap"),
    [
        (4, 500, 113, "receiver", NOBODY),
        (20, 500, 80, "network", NOBODY),
        (24, 25, 80, "network", "disk/client/write"),
        (20, 500, 320, "network", NOBODY),
    ],
    ids=["it does not wait", "room", "a disk", "on another card"],
)
def test_a_full_link_is_shared_by_who_waits_for_it(
    pull_of, sockets, rate, disk, total, by, cap, expect
):
    """Others' traffic that leaves no room, whatever the copy gets beside it."""
    connection = sockets(by=by, rtt_seconds_median=0.004, min_rtt_seconds=0.0002)
    expect(pull_of(rate, disk=disk, details={"sockets": connection}, **traffic_usages(total)), cap)


def test_other_traffic_beside_tcp_by_itself_is_looked_for_at_the_interfaces(no_tcp, expect):
    no_tcp.tcp("pull", 6, client={"interface_received_bytes": traffic(11.7)})
    no_tcp.client = replace(no_tcp.client, interface=replace(no_tcp.client.interface, name="eth7"))
    no_tcp.copy("pull.cached", 6, **traffic_usages(11.7))
    expect(no_tcp, CROWD)


@pytest.mark.parametrize(("waited_seconds", "cap"), [(0.6, NOBODY), (0.1, "disk/client/write")])
def test_a_disk_that_full_cores_kept_waiting_is_no_limit(pull_of, waited_seconds, cap, expect):
    """In 4 seconds; what hardly waited was as fast as it can be, whoever else filled the cores."""
    world = pull_of(24, disk=None)
    full = {"core_busy_ratios": (1.0,), "other_cpu_seconds": 3.0, "copy_cpu_seconds": 0.4}
    world.disk("client", "write", 25, client={**full, "run_delay_seconds": waited_seconds})
    expect(world, cap)


# -- cpu ---------------------------------------------------------------------------------------


FAR = {"link": 1100, "disk": 900}
"""All stages far from the copy."""
CPUS = {
    "the only core is all of them": (
        "cpu/server/all-cores",
        240,
        {**FAR, "server": {"core_busy_ratios": (0.97,), "busiest_process_ratio": 0.95}},
    ),
    "the only core, mostly the copy's, which hardly waits": (
        "cpu/server/all-cores",
        240,
        {
            **FAR,
            "server": {
                "core_busy_ratios": (0.97,),
                "copy_cpu_seconds": 1.2,
                "other_cpu_seconds": 0.5,
                "run_delay_seconds": 0.2,
            },
        },
    ),
    "interrupts that fill the client's core are not this tool's process": (
        "cpu/client/one-core",
        240,
        {
            **FAR,
            "client": {
                "core_busy_ratios": (0.98, 0.1),
                "busiest_process_ratio": 0.3,
                "softirq_ratio": 0.48,
            },
        },
    ),
    "the client's only core, where no process of ours fills it": (
        "cpu/client/all-cores",
        240,
        {
            **FAR,
            "client": {
                "core_busy_ratios": (0.97,),
                "busiest_process_ratio": 0.6,
                "softirq_ratio": 0.3,
            },
        },
    ),
    "a quota that cannot be seen, by waiting beside idle cores": (
        "cpu/server/quota",
        30,
        {"server": {"run_delay_seconds": 3.2, "other_cpu_seconds": 0.02}},
    ),
    "this tool's own process on the only core": (
        TOOL,
        240,
        {**FAR, "client": {"core_busy_ratios": (0.97,), "busiest_process_ratio": 0.96}},
    ),
    "this tool's own, beside a link that is reached": (
        LINK,
        116,
        {"client": {"core_busy_ratios": (0.95, 0.1), "busiest_process_ratio": 0.95}},
    ),
}


@pytest.mark.parametrize(("cap", "rate", "extra"), CPUS.values(), ids=CPUS)
def test_a_cpu_that_is_full_is_named(pull_of, cap, rate, extra, expect):
    expect(pull_of(rate, **extra), cap)


def test_other_processes_in_idle_time_hold_nothing(world, expect):
    others = {"core_busy_ratios": (1.0,), "other_cpu_seconds": 3.5, "run_delay_seconds": 0.1}
    world.copy("pull.cached", 112, memory=116, server=others)
    expect(world, LINK)


CROWDED_OUT = [{"run_delay_seconds": 2.1}, {"busiest_process_ratio": 0.02}]


@pytest.mark.parametrize("extra", CROWDED_OUT, ids=["told0", "told1"])
def test_a_loopback_that_others_crowded_out_is_not_the_tools_ceiling(pull_of, extra, expect):
    world = pull_of(113, disk=None)
    crowded = {"core_busy_ratios": (1.0,), "other_cpu_seconds": 2.0, "run_delay_seconds": 0.0}
    world.loopback("client", 150, client={**crowded, **extra})
    expect(world, LINK)


@pytest.mark.parametrize("waited_seconds", [0.0, 2.0])
def test_on_one_host_the_other_sides_work_is_no_strangers(empty_world, waited_seconds):
    """The server's processes are others to the client's agent, and not somebody else's."""
    world = empty_world()
    for side in ("client", "server"):
        facts = getattr(world, side)
        interface = replace(facts.interface, name="lo", mtu_bytes=65536)
        setattr(world, side, replace(facts, interface=interface))
    full = {"core_busy_ratios": (1.0, 1.0), "other_cpu_seconds": 4.2, "copy_cpu_seconds": 3.6}
    both = {**full, "busiest_process_ratio": 0.6, "run_delay_seconds": waited_seconds}
    world.copy("pull.cached", 240, client=both, server=both)
    assert world.diagnosis_of().verdict.cause == "all-cores"


def test_a_copy_without_any_ceiling_says_so(pull_of, expect):
    idle = {"core_busy_ratios": (0.0, 0.0), "other_cpu_seconds": 0.0, "softirq_ratio": 0.0}
    idle["busiest_process_ratio"] = 0.0
    expect(pull_of(30, link=None, disk=None, agent=False, client=idle), NOBODY)


def test_strange_details_are_no_evidence_and_no_error(world):
    world.copy("pull.cached", 113, memory=116)
    step, outcome = world.entries[-1]
    for strange in ({"cache": "x", "flush_seconds": "soon"}, {"cache": {"proven": 1}}, {}):
        world.entries[-1] = (step, type(outcome)(outcome.runs, outcome.initiator, None, strange))
        assert world.diagnosis_of().verdict.words == LINK
