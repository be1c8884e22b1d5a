"""Ceilings that follow from told figures by rules of thumb; none where a figure is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

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
LINK = '[client]\nlink = "1 Gbit/s"\n'
BARE = HOSTS.replace("tcp_", "# ")
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
FLAT = TABLE.replace("1.1 ms", "1.01 ms").replace("2 ms", "1.01 ms").replace("11 ms", "1.01 ms")


def without(line: str) -> str:
    return "".join(each for each in HOSTS.splitlines(keepends=True) if line not in each)


def copy(name: str, **fields: object) -> str:
    lines = [f"{key} = {value}\n" for key, value in fields.items()]
    return f'[[copy]]\ncopy = "{name}"\n{"".join(lines)}'


def tcp(rate: str, window: str) -> str:
    return f'[[tcp]]\nsender = "server"\nrate = "{rate}"\nwindow = "{window}"\n'


PUSH, PULL = copy("push.cached"), copy("pull.cached")
WINDOW, BUFFER = "tcp/server/receive-window", "tcp/server/send-buffer"
FULL, TRIPS = "network/path/link-rate", "smb/path/round-trips"
PATHS = {
    "the receiver's largest window over the round trip": (WINDOW, HOSTS + PUSH),
    "of a pull it is the server's send buffer": (BUFFER, HOSTS + PULL),
    "streams share what the link asks for": (WINDOW, HOSTS + copy("push.cached", streams=10)),
    "a window that holds the path asks for nothing": pytest.param(
        FULL, HOSTS.replace("100 ms", "0.2 ms") + PUSH
    ),
    "no such ceiling without a round trip": (FULL, without("rtt") + PUSH),
    "nor without a size": ("tcp/client/send-buffer", without("tcp_rmem") + PUSH),
    "without a link nobody knows what would fill it": (WINDOW, without("link") + PUSH),
    "TCP that its window held leaves the link as it was told": pytest.param(
        FULL, BARE + tcp("640 kB/s", "64KiB") + PULL
    ),
    "TCP that nothing held is the path": (FULL, BARE + tcp("300 Mbit/s", "64MiB") + PULL),
    "losses leave what Mathis says": pytest.param(
        "network/path/loss", HOSTS + "loss = 0.001\n" + copy("push.cached", streams=100)
    ),
    "no losses": (FULL, '[path]\nrtt = "100 ms"\nloss = 0.0\n' + LINK + PUSH),
    "losses without a round trip": (FULL, "[path]\nloss = 0.01\n" + LINK + PUSH),
}


@pytest.mark.parametrize(("cap", "text"), PATHS.values(), ids=PATHS)
def test_told_figures_of_the_path_bound_a_copy(load_toml, cap, text, expect):
    expect(load_toml(text), cap)


REQUESTS = {
    "a size that was timed": (TRIPS, TABLE, "1kB", 1),
    "four of them": (TRIPS, TABLE, "1kB", 4),
    "the line's, of another size": (TRIPS, TABLE, "2kB", 1),
    "long ones wait for the link and not for answers": (FULL, TABLE + LINK, "1MB", 1),
    "without a table the round trip tells": (TRIPS, BARE, "64KiB", None),
    "with neither nothing is known of them": (FULL, LINK, "64KiB", None),
    "a table without a line tells a size that it has": (TRIPS, FLAT, "10kB", None),
    "and no other": ("unknown/not-measured", FLAT, "20kB", None),
}


@pytest.mark.parametrize(("cap", "text", "size", "depth"), REQUESTS.values(), ids=REQUESTS)
def test_requests_carry_what_their_answers_let_them(load_toml, cap, text, size, depth, expect):
    extra = {} if depth is None else {"depth": depth}
    expect(load_toml(text + copy("push.cached", request=f'"{size}"', **extra)), cap)


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
ONE_ZONE = ZONES.replace(', {at = 1.0, rate = "80 MB/s"}', "")
ONE_RATE = '[[disk]]\nside = "client"\nverb = "read"\nrate = "60 MB/s"\n'
READ, ZONE = "disk/client/read", "disk/client/zone"


def push_text(**fields: object) -> str:
    return copy("push.uncached", **fields)


DISKS = {
    "at the inner edge": (ZONE, ZONES + push_text(from_place=1.0)),
    "in the middle": (ZONE, ZONES + push_text(from_place=0.5)),
    "further inside": (ZONE, ZONES + push_text(from_place=0.6)),
    "not far inside": (READ, ZONES + push_text(from_place=0.1)),
    "at the outer edge": (READ, ZONES + push_text(from_place=0.0)),
    "beyond the last zone": ("disk/server/zone", EDGES + copy("push.cached", to_place=0.95)),
    "before the first one": ("disk/server/write", EDGES + copy("push.cached", to_place=0.0)),
    "one zone alone is the disc": (READ, ONE_ZONE + push_text(from_place=0.0)),
    "a place that is not told may be the outer edge": (READ, ZONES + push_text()),
    "a cached source is read from no disk": ("unknown/not-measured", ZONES + PUSH),
    "a disk of one rate has no zones": (READ, ONE_RATE + push_text(from_place=0.9)),
}


@pytest.mark.parametrize(("cap", "text"), DISKS.values(), ids=DISKS)
def test_a_disc_gives_what_its_place_gives(load_toml, cap, text, expect):
    expect(load_toml(text), cap)


def test_strange_zones_are_left_out(load_toml, expect):
    report = load_toml(ZONES + push_text(from_place=1.0))
    odd = [{"at_ratio": "far"}, {"at_ratio": 0.0, "bytes_per_second": 2e8}]
    report.entries[0][1].details["zones"] = odd
    expect(report, READ)


def test_measured_reports_get_no_such_ceiling(world, expect):
    world.copy("push.cached", 60)
    report = world.report()
    target = {**report.target, "connect_seconds": 0.1, "loss_ratio": 0.01}
    expect(replace(report, target=target), "unknown/inconclusive")
