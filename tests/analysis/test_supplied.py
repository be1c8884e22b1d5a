"""Ceilings that follow from told figures by rules of thumb; none where a figure is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck import observations
from bottleneck.analysis import diagnose
from bottleneck.observations import SCHEMA

HOSTS = """
[client]
link = "1 Gbit/s"
tcp_rmem = "4096 87380 6291456"
tcp_wmem = "4096 16384 4194304"
[server]
link = "1 Gbit/s"
tcp_rmem = "4096 87380 174760"
tcp_wmem = "4096 16384 131072"
[path]
rtt = "100 ms"
"""
TABLE = """
[[latency]]
connection = "warm"
table = [
  {message = "1kB", round_trips = 1, time = "1.01 ms"},
  {message = "10kB", round_trips = 1, time = "1.1 ms"},
  {message = "100kB", round_trips = 1, time = "2 ms"},
  {message = "1MB", round_trips = 1, time = "11 ms"},
]
"""
"""1 ms + n / 100 MB/s."""


def told(text: str):
    head = f'schema = "{SCHEMA}"\ntitle = "A ticket"\ndate = "2026-11-20"\n'
    return observations.told_report(observations.loads((head + text).encode()))


def copy(name: str, **more: object) -> str:
    lines = [f"{key} = {value}\n" for key, value in more.items()]
    return f'[[copy]]\ncopy = "{name}"\n{"".join(lines)}'


def found(text: str):
    return diagnose(told(text)).copies[0]


def ceiling(each, component: str, cause: str):
    return [
        (one.side, one.bytes_per_second)
        for one in each.ceilings
        if (one.component, one.cause) == (component, cause)
    ]


# -- buffers -----------------------------------------------------------------------------------


def test_the_receivers_largest_window_over_the_round_trip_is_a_ceiling():
    each = found(HOSTS + copy("push.cached"))
    assert ceiling(each, "tcp", "receive-window") == [("server", pytest.approx(1_747_600))]
    assert ceiling(each, "tcp", "send-buffer") == [("client", pytest.approx(41_943_040))]
    verdict = each.verdict
    assert verdict.named == ("tcp", "server", "receive-window")
    assert "A receive window of 11.2 MiB or more for one connection" in each.advice[0]


def test_of_a_pull_it_is_the_servers_send_buffer():
    verdict = found(HOSTS + copy("pull.cached")).verdict
    assert verdict.named == ("tcp", "server", "send-buffer")


def test_streams_share_what_the_link_asks_for():
    each = found(HOSTS + copy("push.cached", streams=10))
    assert ceiling(each, "tcp", "receive-window") == [("server", pytest.approx(17_476_000))]
    assert "1.12 MiB or more for each connection" in each.advice[0]
    assert "with 10 streams" in each.verdict.sentence


def test_a_window_that_holds_the_path_asks_for_nothing():
    each = found(HOSTS.replace("100 ms", "0.2 ms") + copy("push.cached"))
    assert each.verdict.cause == "link-rate"


@pytest.mark.parametrize("missing", ['rtt = "100 ms"', "tcp_rmem"])
def test_without_round_trip_or_size_there_is_no_such_ceiling(missing):
    text = "\n".join(line for line in HOSTS.splitlines() if missing not in line)
    assert ceiling(found(text + "\n" + copy("push.cached")), "tcp", "receive-window") == []


def test_without_a_link_nobody_knows_what_would_fill_it():
    text = HOSTS.replace('link = "1 Gbit/s"', "")
    each = found(text + copy("push.cached"))
    assert each.verdict.cause == "receive-window"
    assert "fill the link" not in each.verdict.sentence


# -- TCP alone ---------------------------------------------------------------------------------


def test_a_transfer_that_its_window_held_leaves_the_link_as_it_was_told():
    text = HOSTS + '[[tcp]]\nsender = "server"\nrate = "640 kB/s"\nwindow = "64KiB"\n'
    each = found(text.replace("tcp_", "# ") + copy("pull.cached"))
    assert ceiling(each, "network", "link-rate")[-1][1] == pytest.approx(117.7e6, rel=1e-3)


def test_one_that_nothing_held_is_the_path():
    text = HOSTS + '[[tcp]]\nsender = "server"\nrate = "300 Mbit/s"\nwindow = "64MiB"\n'
    each = found(text.replace("tcp_", "# ") + copy("pull.cached"))
    assert [rate for _, rate in ceiling(each, "network", "link-rate")] == [pytest.approx(37.5e6)]


# -- losses ------------------------------------------------------------------------------------


def test_losses_at_a_round_trip_leave_what_mathis_says():
    each = found(HOSTS + "loss = 0.001\n" + copy("push.cached", streams=100))
    assert each.verdict.cause == "loss"
    ((_, rate),) = ceiling(each, "network", "loss")
    assert 3.2e6 * 10 < rate < 5.6e6 * 10


@pytest.mark.parametrize("path", ['[path]\nrtt = "100 ms"\nloss = 0.0\n', "[path]\nloss = 0.01\n"])
def test_no_losses_or_no_round_trip_leave_no_such_ceiling(path):
    each = found(path + '[client]\nlink = "1 Gbit/s"\n' + copy("push.cached"))
    assert ceiling(each, "network", "loss") == []


# -- requests ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "depth", "rate"),
    [("1kB", 1, 1000 / 1.01e-3), ("1kB", 4, 4000 / 1.01e-3), ("2kB", 1, 2000 / 1.02e-3)],
)
def test_short_requests_carry_what_their_answers_let_them(size, depth, rate):
    """Of a size that was timed its own time; of others the line's."""
    each = found(TABLE + copy("push.cached", request=f'"{size}"', depth=depth))
    assert ceiling(each, "smb", "round-trips") == [("path", pytest.approx(rate, rel=1e-3))]
    assert "of it for the bytes themselves" in each.verdict.sentence


def test_long_requests_wait_for_the_link_and_not_for_answers():
    text = TABLE + '[client]\nlink = "1 Gbit/s"\n' + copy("push.cached", request='"1MB"', depth=1)
    each = found(text)
    assert each.verdict.cause == "link-rate"


def test_without_a_table_the_round_trip_tells():
    each = found(HOSTS.replace("tcp_", "# ") + copy("push.cached", request='"64KiB"'))
    assert ceiling(each, "smb", "round-trips") == [("path", pytest.approx(655_360))]


def test_with_neither_nothing_is_known_of_requests():
    text = '[client]\nlink = "1 Gbit/s"\n' + copy("push.cached", request='"64KiB"')
    assert ceiling(found(text), "smb", "round-trips") == []


def test_a_table_without_a_line_tells_the_sizes_that_it_has():
    flat = TABLE.replace("1.1 ms", "1.01 ms").replace("2 ms", "1.01 ms").replace("11 ms", "1.01 ms")
    each = found(flat + copy("push.cached", request='"10kB"'))
    assert ceiling(each, "smb", "round-trips") == [("path", pytest.approx(1e4 / 1.01e-3))]
    each = found(flat + copy("push.cached", request='"20kB"'))
    assert ceiling(each, "smb", "round-trips") == []


# -- disks -------------------------------------------------------------------------------------

ZONES = """
[[disk]]
side = "client"
verb = "read"
zones = [{at = 0.0, rate = "200 MB/s"}, {at = 1.0, rate = "80 MB/s"}]
"""
EDGES = """
[[disk]]
side = "server"
verb = "write"
zones = [{at = 0.1, rate = "200 MB/s"}, {at = 0.9, rate = "80 MB/s"}]
"""


@pytest.mark.parametrize(
    ("place", "rate", "cause"),
    [
        (1.0, 80e6, "zone"),
        (0.5, ((200e6**2 + 80e6**2) / 2) ** 0.5, "zone"),
        (0.1, (200e6**2 - 0.1 * (200e6**2 - 80e6**2)) ** 0.5, "read"),
        (0.0, 200e6, "read"),
    ],
)
def test_a_disc_gives_what_its_place_gives(place, rate, cause):
    each = found(ZONES + copy("push.uncached", from_place=place))
    assert ceiling(each, "disk", cause) == [("client", pytest.approx(rate))]


@pytest.mark.parametrize(
    ("place", "words"),
    [(1.0, "the inner edge"), (0.6, "60 % of the way to the inner edge"), (0.0, "the outer edge")],
)
def test_a_place_is_told_in_words(place, words):
    each = found(ZONES + copy("push.uncached", from_place=place))
    assert f"uncached from {words} can run" in each.verdict.sentence


@pytest.mark.parametrize(("place", "rate"), [(0.95, 80e6), (0.0, 200e6)])
def test_beyond_the_zones_that_were_told_it_is_the_nearest(place, rate):
    each = found(EDGES + copy("push.cached", to_place=place))
    assert each.verdict.ceiling_bytes_per_second == pytest.approx(rate)


def test_one_zone_alone_is_the_disc():
    text = ZONES.replace(', {at = 1.0, rate = "80 MB/s"}', "")
    each = found(text + copy("push.uncached", from_place=0.0))
    assert ceiling(each, "disk", "read") == [("client", pytest.approx(200e6))]


def test_a_file_whose_place_is_not_told_may_lie_at_the_outer_edge():
    each = found(ZONES + copy("push.uncached"))
    assert ceiling(each, "disk", "read") == [("client", pytest.approx(200e6))]


def test_a_cached_source_is_read_from_no_disk():
    each = found(ZONES + copy("push.cached"))
    assert each.verdict.component == "unknown"


def test_a_disk_of_one_rate_has_no_zones():
    text = '[[disk]]\nside = "client"\nverb = "read"\nrate = "60 MB/s"\n'
    each = found(text + copy("push.uncached", from_place=0.9))
    assert ceiling(each, "disk", "read") == [("client", pytest.approx(60e6))]


def test_strange_zones_are_left_out():
    report = told(ZONES + copy("push.uncached", from_place=1.0))
    (step, outcome), copied = report.entries
    odd = [{"at_ratio": "far"}, {"at_ratio": 0.0, "bytes_per_second": 2e8}]
    details = {**outcome.details, "zones": odd}
    report = replace(report, entries=((step, replace(outcome, details=details)), copied))
    assert diagnose(report).copies[0].verdict.ceiling_bytes_per_second == pytest.approx(2e8)


def test_measured_reports_get_no_such_ceiling(world):
    world.copy("push.cached", 60)
    report = world.report()
    report = replace(report, target={**report.target, "connect_seconds": 0.1, "loss_ratio": 0.01})
    assert all(
        each.cause not in ("loss", "receive-window") for each in diagnose(report).copies[0].ceilings
    )
