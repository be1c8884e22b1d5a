"""The plan: what is expected of a copy, and how large a file makes it last."""

import pytest

from bottleneck.login.target import NamedDevice, NamedFile, parse
from bottleneck.run import plan
from probes.core.stage import Refused


def test_a_copy_is_expected_no_faster_than_the_least_that_bounds_it():
    rates = {"tcp.pull": 117e6, "tcp.push": 11e6, "client.write": 200e6, "server.read": 25e6}
    assert plan.expected_rate("pull.cached", rates) == 117e6
    assert plan.expected_rate("pull.uncached", rates) == 25e6
    assert plan.expected_rate("push.cached", rates) == 11e6


def test_a_slow_hosts_own_loopback_bounds_a_copy_and_is_no_expectation_by_itself():
    assert plan.expected_rate("pull.cached", {"tcp.pull": 117e6, "loopback": 40e6}) == 40e6
    assert plan.expected_rate("pull.cached", {"loopback": 2e9}) is None


def test_a_copy_that_was_made_is_expected_again():
    assert plan.expected_rate("pull.cached", {"tcp.pull": 117e6, "pull.cached": 50e6}) == 50e6


def test_a_far_path_gets_the_round_trips_that_it_needs_and_no_more_than_it_has_time_for():
    near, far = plan.times(60.0), plan.times(60.0, 0.07)
    assert far.tcp - near.tcp == pytest.approx(1.05)
    assert far.copy == pytest.approx(3.5)
    longest = plan.times(60.0, 30.0)
    assert longest.copy == plan.MOST_COPY_SECONDS
    assert longest.tcp - near.tcp == plan.MOST_TO_FILL_SECONDS
    assert (plan.times(60.0, 0.01).copy, far.disk) == (near.copy, near.disk)


def test_nothing_known_is_no_expectation():
    assert plan.expected_rate("pull.cached", {}) is None


@pytest.mark.parametrize(
    ("rate", "limit", "requested", "size"),
    [
        (100e6, 1 << 40, None, 190 * plan.MIB),
        (1e6, 1 << 40, None, 2 * plan.MIB),
        (120e3, 1 << 40, None, plan.SLOW_PATH_COPY_BYTES),
        (480e3, 1 << 40, None, plan.MIB),
        (1.0, 1 << 40, None, plan.SLOW_PATH_COPY_BYTES),
        (1e12, 1 << 40, None, plan.LARGEST_COPY_BYTES),
        (None, 1 << 40, None, plan.UNKNOWN_COPY_BYTES),
        (100e6, 50 * plan.MIB + 5, None, 50 * plan.MIB),
        (100e6, 1 << 40, 3 << 30, 3 << 30),
        (100e6, plan.MIB, 3 << 30, plan.MIB),
        (100e6, 0, None, 0),
        (100e6, 1000, None, 1000),
    ],
)
def test_a_file_lasts_as_long_as_asked_and_fits_where_it_goes(rate, limit, requested, size):
    assert plan.copy_bytes(rate, 2.0, limit, requested) == size


@pytest.mark.parametrize(
    ("settings", "device", "verbs"),
    [
        ({"pattern": "random"}, None, ["read", "write"]),
        ({"verb": "read", "pattern": "random"}, None, ["read"]),
        ({"verb": "write"}, None, ["write"]),
        ({"depth": 4}, NamedDevice("client", "/dev/sdz"), ["read"]),
    ],
)
def test_a_disk_is_read_or_written_as_chosen_and_a_device_is_only_read(settings, device, verbs):
    run_options = options(settings=settings, device=device)
    assert [each.verb for each in plan.chosen_disk_steps(("client",), run_options)] == verbs
    if device:
        with pytest.raises(Refused, match="--device: only read"):
            plan.check_disk(options(settings={"verb": "write"}, device=device))


@pytest.mark.parametrize("budget", [5.0, 20.0, 60.0, 300.0])
def test_all_stages_before_the_copies_leave_half_of_the_budget(budget):
    times = plan.times(max(20.0, budget))
    loopback = max(0.4, 0.6 * max(20.0, budget) / 60.0)
    spent = 2 * loopback + 2 * (times.tcp + times.tcp_many)
    spent += 2 * (times.fill_source + 2 * times.disk + times.disk_cached)
    if budget >= plan.LEAST_DISK_BUDGET_SECONDS:
        spent += 2 * times.zones + times.synced
    assert spent < 0.5 * max(20.0, budget)


def options(**fields):
    return plan.Options(target=parse("//nas/media"), folder="/tmp", **fields)


def patterns(side, single=False, **fields):
    steps = plan.disk_steps(("client", "server"), options(**fields), single)
    return [f"{each.verb} {each.pattern}" for each in steps if each.side == side]


def test_a_file_is_read_cached_while_it_still_is():
    def disk_reads(budget_seconds):
        steps = plan.disk_steps(("client",), options(budget_seconds=budget_seconds))
        return [(s.verb, s.cache) for s in steps if s.pattern == "sequential"]

    past_the_cache = [("read", "uncached"), ("write", "uncached")]
    assert disk_reads(300.0) == [("read", "cached"), *past_the_cache]
    assert disk_reads(60.0) == past_the_cache


def test_where_a_file_lies_is_measured_where_there_is_time():
    usual = ["read sequential", "read zones", "write sequential"]
    assert patterns("client") == usual
    assert patterns("server") == [*usual, "write synced"]
    all_of_it = ["read sequential", *usual, "write synced", "write sustained", "write zones"]
    assert patterns("client", single=True) == all_of_it
    assert patterns("client", budget_seconds=300.0) == patterns("client", single=True)


def test_a_file_that_was_named_is_read_where_it_lies():
    film = NamedFile("server", "film")
    assert "read file" in patterns("server", file=film)
    assert "read file" not in patterns("client", file=film)


@pytest.mark.parametrize(
    ("fields", "looks"),
    [
        ({"device": NamedDevice("client", "/dev/sda")}, ["read zones"]),
        ({"file": NamedFile("client", "/film")}, ["read zones", "read file"]),
    ],
)
def test_to_look_at_a_device_or_a_file_alone_nothing_is_written(fields, looks):
    assert patterns("client", single=True, **fields) == looks
    assert patterns("server", single=True, **fields) == []


@pytest.mark.parametrize("of_folder", [False, True])
def test_the_stages_that_explain_one_connection_are_made_where_there_is_time(of_folder):
    usual, long = plan.stages(of_folder, 60.0), plan.stages(of_folder, 300.0)
    extra = set() if of_folder else {"smb-multichannel", "listing", "parallel"}
    assert set(long) - set(usual) == {"sweep", "matrix", "udp", *extra}
    assert ("native-copy" in usual) == of_folder == ("small-files" not in usual)
    assert {"tcp", "disk", "smb-copy"} <= set(usual)
