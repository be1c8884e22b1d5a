"""docs/measuring.md: each line runs as it stands, beside the line of the tool that it replaces.

In a world whose link is slow, so that both measure the link and not this machine.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bottleneck.cli import knobs
from bottleneck.cli.app import tree
from bottleneck.cli.command_line import commands_of, options_of
from tests.living import STAYS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/measuring.md").read_text()
CLIENT, SERVER = "10.91.40.1", "10.91.40.2"
LINK_BITS_PER_SECOND = 50_000_000
NOISE_RATIO = 0.06
"""By which two tools may differ that measure the same link: the start of TCP is in one's figure."""


@dataclass(frozen=True)
class Line:
    """A row of the page: our line, the one that it replaces, and the figure that both have."""

    ours: str
    theirs: str
    figure: str

    @property
    def program(self) -> str:
        """Whose line it replaces."""
        return self.theirs.split()[0]


def lines() -> list[Line]:
    row = re.compile(r"^\|[^|]+\| `(bottleneck [^`]+)` \| `([^`]+)` \| ([^|]+?) \|$", re.M)
    return [Line(*cells) for cells in row.findall(PAGE)]


LINES = lines()


def test_each_row_of_the_page_is_a_line_that_is_tried():
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and "`bottleneck " in line]
    assert rows and len(LINES) == len(rows)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.ours)
def test_each_option_of_a_line_is_one_of_the_stage(line):
    stage, *words = shlex.split(line.ours)[2:]
    accepted = {f"--{each.name}" for each in knobs.stage_knobs(stage)}
    every = {flag for each in options_of(commands_of(tree())["probe"]) for flag in each.flags}
    foreign = {f"--{each.name}" for each in knobs.KNOBS} - accepted
    assert {each for each in words if each.startswith("--")} <= every - foreign


def test_each_knob_of_the_network_and_of_repeated_runs_has_its_line():
    words = {word for line in LINES for word in line.ours.split()}
    of_network = {each for stage in ("tcp", "udp", "matrix") for each in knobs.stage_knobs(stage)}
    assert {f"--{each.name}" for each in of_network} <= words
    assert {"--runs", "--interval", "--format"} <= words


# -- both lines, over a slow link -----------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """Two hosts with a shaped link, by the process that holds each network."""

    client: int
    server: int

    def run(self, arguments: list[str], most_seconds: float = 90.0) -> str:
        inside = ["nsenter", f"--net=/proc/{self.client}/ns/net", *arguments]
        done = subprocess.run(
            inside, capture_output=True, text=True, timeout=most_seconds, check=False, cwd=ROOT
        )
        assert done.returncode == 0, f"{shlex.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout


def call(pid: int, line: str) -> None:
    subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", *line.split()], check=True)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A client and a server whose link carries LINK_BITS_PER_SECOND; iperf3 serves there."""
    missing = [
        each for each in ("nsenter", "unshare", "ip", "tc", *THEIRS) if not shutil.which(each)
    ]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"NOT TESTED: needs root and {missing or 'namespaces'}")
    with ExitStack() as stack:
        hosts = [started(stack, ["unshare", "--net", *STAYS]) for _ in range(2)]
        client, server = hosts
        wait_for_own_network(hosts)
        veth = f"ip link add eth0 type veth peer name eth0 netns /proc/{server}/ns/net"
        call(client, veth)
        for pid, address in ((client, CLIENT), (server, SERVER)):
            call(pid, "ip link set lo up")
            call(pid, f"ip address add {address}/24 dev eth0")
            call(pid, "ip link set eth0 up")
            tbf = f"rate {LINK_BITS_PER_SECOND}bit burst 16384 limit 141384"
            call(pid, f"tc qdisc add dev eth0 root tbf {tbf}")
        for serving in (["iperf3", "-s"], ["iperf", "-s"], ["nuttcp", "-S", "--nofork"]):
            started(stack, ["nsenter", f"--net=/proc/{server}/ns/net", *serving])
        yield World(client, server)


def started(stack: ExitStack, arguments: list[str]) -> int:
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process.pid


def wait_for_own_network(pids: list[int]) -> None:
    namespace = Path("/proc/self/ns/net").readlink()
    while any(Path(f"/proc/{pid}/ns/net").readlink() == namespace for pid in pids):
        pass


def adapt(line: str) -> str:
    """Returns a line with this world's names, and a fifth of the time."""
    line = re.sub(r"(--seconds|-t|-T) 10\b", r"\1 3", line)
    line = re.sub(r"--runs 10\b", "--runs 3", line)
    # both have 5001 by their default, where a server of iperf listens here
    line = re.sub(r"^nuttcp", "nuttcp -p 5101", line)
    return re.sub(r"(?<!ssh://)\bnas\b", SERVER, line)


def ours(line: Line, world: World, folder: Path) -> list[float]:
    """Bytes per second of the runs of our line, by its report."""
    report = folder / "report.json"
    command = adapt(line.ours).replace(
        "--agent ssh://nas", f"--agent 'exec:nsenter --net=/proc/{world.server}/ns/net'"
    )
    words = [sys.executable, "-m", "bottleneck", *shlex.split(command)[1:]]
    json_out = [] if "--format json" in line.ours else ["--json", str(report)]
    printed = world.run([*words, *json_out])
    tree = json.loads(report.read_text() if json_out else printed)
    return [rate for step in tree["steps"] if figure(step) == line.figure for rate in rates(step)]


def figure(step: dict[str, Any]) -> str:
    setting = step["setting"]
    return f"{setting.get('verb')}{' both ways' if setting.get('both_ways') else ''}"


def rates(step: dict[str, Any]) -> list[float]:
    runs = step["outcome"]["runs"]
    return [(run[-1][1] - run[0][1]) / (run[-1][0] - run[0][0]) for run in runs]


def iperf3_rates(line: Line, world: World) -> list[float]:
    """Runs iperf3 with the line's options; returns the rates that its receiver counted."""
    words = shlex.split(adapt(line.theirs))
    end = json.loads(world.run([*words, *({"-J"} - set(words))]))["end"]
    if "-u" in words:
        return [end["sum"]["bits_per_second"] / 8 * (1 - end["sum"]["lost_percent"] / 100)]
    reverse = "_bidir_reverse" if "--bidir" in words else ""
    return [end[f"sum_received{reverse}"]["bits_per_second"] / 8]


def hyperfine_rates(line: Line, world: World) -> list[float]:
    words = shlex.split(adapt(line.theirs))
    tree = json.loads(world.run([*words, "--export-json", "/dev/stdout", "--style", "none"]))
    total_bytes = 1e6 * float(re.search(r"-n (\d+)M", line.theirs)[1])  # type: ignore[index]
    return [total_bytes / each for each in tree["results"][0]["times"]]


def iperf_rates(line: Line, world: World) -> list[float]:
    return [int(world.run(shlex.split(adapt(line.theirs))).split(",")[-1]) / 8]


def nuttcp_rates(line: Line, world: World) -> list[float]:
    output = world.run(shlex.split(adapt(line.theirs)))
    return [float(re.search(r"= +([\d.]+) Mbps", output)[1]) * 125_000]  # type: ignore[index]


THEIRS: dict[str, Callable[[Line, World], list[float]]] = {
    "iperf3": iperf3_rates,
    "hyperfine": hyperfine_rates,
    "iperf": iperf_rates,
    "nuttcp": nuttcp_rates,
}
"""By the program of a line: bytes per second of its runs."""


def compare(line: Line, world: World, folder: Path) -> None:
    """Both figures are the same, within the noise of both."""
    measured = ours(line, world, folder)
    assert measured, f"no {line.figure} in the report"
    theirs = THEIRS[line.program](line, world)
    one, other = statistics.median(measured), statistics.median(theirs)
    noise = max(NOISE_RATIO, *((max(each) - min(each)) / max(each) for each in (measured, theirs)))
    print(f"{line.ours}: {one:.4g}, {line.program} {other:.4g} bytes/s ({one / other - 1:+.1%})")
    assert abs(one / other - 1) <= noise, (one, other)


@pytest.mark.long
def test_the_first_line_finds_what_the_other_tool_finds(world, tmp_path):
    compare(LINES[0], world, tmp_path)


@pytest.mark.lab
@pytest.mark.parametrize("line", LINES[1:], ids=lambda line: line.ours)
def test_each_line_finds_what_the_other_tool_finds(line, world, tmp_path):
    compare(line, world, tmp_path)
