#!/usr/bin/env python3
"""Real fleets with injected limits: does `bottleneck fleet` name them, and load nothing twice?

Usage: python tests/fleet/trial.py FILE [--fleets 20] [--worlds NAME ...] [--seconds 150]

12 clients, 4 servers, two sites with an uplink each: network namespaces with a real sshd or a real
Samba on a disk of its own, driven by the real ansible-playbook. Each fleet has the limits of its
world on hosts that are chosen by its number. FILE gets a line of JSON for each fleet, and those
that it has are not made again; no fleet is begun after so many seconds, so that many short calls
make a long trial. The table is that of all fleets in FILE. Needs root.

`together`: samples, four a second, in which two pairs or more moved more than MOVING_BYTES each, by
the counters of the switch; `meetings`: those in which two of them shared a client, a server or an
uplink; `on a disk`: those in which a server's disk worked for two pairs. Exit code 1: somebody was
blamed wrongly, a limit is missing, two tests met, or none ran together, so that nothing is proved.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.fleet import hosts  # noqa: E402

USUAL, SLOW = 100_000_000, 40_000_000
DISK = 5_000_000
"""Bytes per second that an injected disk writes; a link's are bits."""
CLIENTS = tuple(f"pc{n}" for n in range(12))
SERVERS = tuple(f"nas{n}" for n in range(4))
SITES = {"office": CLIENTS[:4], "branch": CLIENTS[4:8]}
WORLDS = {
    "healthy": (),
    "server-link": ("server",),
    "server-disk": ("disk",),
    "uplink": ("uplink",),
    "client": ("client",),
    "server-link+client": ("server", "client"),
    "server-disk+uplink": ("disk", "uplink"),
    "client+client": ("client", "client"),
}
MOVING_BYTES = 64 << 10
SAMPLE_SECONDS = 0.25
SECTOR_BYTES = 512
BUDGET_SECONDS, SIZE = 10, "2MiB"
COUNTED = """
table bridge fleet {
  set pairs { typeof ip saddr . ip daddr; size 4096; flags dynamic; counter; }
  chain passing { type filter hook forward priority 0; update @pairs { ip saddr . ip daddr }; }
}
"""
SAMPLED = "while :; do nft -j list set bridge fleet pairs; cat {stats}; sleep {pause}; done"


@dataclass(frozen=True)
class Sample:
    pairs: dict[tuple[str, str], int]
    """Bytes both ways, by client and server."""
    disks: dict[str, int]
    """Bytes, by server."""


def injected_limits(world: str, number: int) -> tuple[tuple[str, str], ...]:
    """Returns kind and name of each limit of a fleet."""
    chance = Random(f"{world} {number}")
    # A client behind a slow uplink could not be seen: those of no site are chosen.
    names = {"client": CLIENTS[8:], "server": SERVERS, "disk": SERVERS, "uplink": tuple(SITES)}
    limits: list[tuple[str, str]] = []
    for kind in WORLDS[world]:
        candidates = [each for each in names[kind] if (kind, each) not in limits]
        limits.append((kind, chance.choice(candidates)))
    return tuple(limits)


def plan_of(limits: tuple[tuple[str, str], ...]) -> hosts.Plan:
    return hosts.Plan(
        {each: SLOW if ("client", each) in limits else USUAL for each in CLIENTS},
        {each: SLOW if ("server", each) in limits else USUAL for each in SERVERS},
        {
            name: (SLOW if ("uplink", name) in limits else USUAL, members)
            for name, members in SITES.items()
        },
        {each: DISK if ("disk", each) in limits else 0 for each in SERVERS},
    )


def one_fleet(world: str, number: int, work: Path) -> dict[str, Any]:
    limits = injected_limits(world, number)
    folder = work / "hosts"
    folder.mkdir()
    with hosts.lab(plan_of(limits), folder) as lab:
        began = time.monotonic()
        with sample_counters(lab, work / "samples"):
            done = subprocess.run(
                [*lab.within(lab.hub), *hosts.PROGRAM, "fleet", *words(lab, work)],
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": str(ROOT), "BOTTLENECK_PASSWORD": hosts.PASSWORD},
            )
        seconds = time.monotonic() - began
        samples = list(read(lab, (work / "samples").read_text()))
        remaining = lab.left_behind()
        names = lab.names
    if not done.stdout:
        raise RuntimeError(done.stderr)
    document = json.loads(done.stdout)
    limit = {(kind.replace("disk", "server"), name) for kind, name in limits}
    blame = {(each["kind"], names.get(each["name"], each["name"])) for each in document["culprits"]}
    together, on_links, on_disks = meetings(samples)
    return {
        "world": world,
        "number": number,
        "injected": sorted(limit),
        "named": sorted(blame),
        "verdicts": [each["verdict"] for each in document["culprits"]],
        "undecided": [[each["kind"], each["name"]] for each in document["undecided"]],
        "missing": len(document["missing"]),
        "sentence": document["sentence"],
        "code": done.returncode,
        "tests": len(list((work / "kept").glob("*@*.json"))),
        "samples": len(samples),
        "together": together,
        "meetings": on_links,
        "on_disks": on_disks,
        "left_behind": remaining,
        "seconds": seconds,
    }


def words(lab: hosts.Lab, work: Path) -> list[str]:
    """The arguments of `bottleneck fleet`."""
    shares = [word for share in lab.shares.values() for word in ("--share", share)]
    sites = [word for site in SITES for word in ("--uplink", site)]
    options = ["--user", hosts.USER, "--yes", "--budget", str(BUDGET_SECONDS), "--json", "-"]
    inventory = str(lab.inventory(work, SIZE))
    return [inventory, *shares, *sites, *options, "--keep", str(work / "kept")]


@contextmanager
def sample_counters(lab: hosts.Lab, file: Path) -> Iterator[None]:
    """The counters of the switch and of all disks, again and again until the block ends."""
    switch = lab.within(lab.hub)
    subprocess.run([*switch, "nft", "-f", "-"], input=COUNTED, text=True, check=True)
    stats = " ".join(f"/sys/block/{device}/stat" for device in lab.devices.values())
    loop = SAMPLED.format(stats=stats, pause=SAMPLE_SECONDS)
    with file.open("w") as out:
        process = subprocess.Popen([*switch, "sh", "-c", loop], stdout=out)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def read(lab: hosts.Lab, text: str) -> Iterator[Sample]:
    """The samples; the last may be cut off."""
    host_of = {lab.address(each): each for each in lab.plan.addresses}
    lines = text.splitlines()
    each = 1 + len(lab.devices)
    for index in range(0, len(lines) - each + 1, each):
        pairs: dict[tuple[str, str], int] = {}
        (counters,) = [e["set"] for e in json.loads(lines[index])["nftables"] if "set" in e]
        for element in (one["elem"] for one in counters.get("elem", ())):
            ends = [host_of.get(address, "") for address in element["val"]["concat"]]
            if not all(ends):
                continue  # to all hosts at once
            client, server = sorted(ends, key=lambda end: end in SERVERS)
            count = element["counter"]["bytes"]
            pairs[client, server] = pairs.get((client, server), 0) + count
        stats = [line.split() for line in lines[index + 1 : index + each]]
        disks = {
            server: SECTOR_BYTES * (int(stat[2]) + int(stat[6]))
            for server, stat in zip(lab.devices, stats, strict=True)
        }
        yield Sample(pairs, disks)


def meetings(samples: list[Sample]) -> tuple[int, int, int]:
    """Samples in which two pairs moved data; over one client, server or uplink; on one disk."""
    together = on_links = on_disks = 0
    for earlier, later in pairwise(samples):
        moving = [
            pair
            for pair, count in later.pairs.items()
            if count - earlier.pairs.get(pair, 0) > MOVING_BYTES
        ]
        together += len(moving) > 1
        on_links += any(nodes(one) & nodes(other) for one, other in combinations(moving, 2))
        on_disks += any(
            later.disks[server] - earlier.disks[server] > MOVING_BYTES
            and sum(pair[1] == server for pair in moving) > 1
            for server in later.disks
        )
    return together, on_links, on_disks


def nodes(pair: tuple[str, str]) -> set[str]:
    return {*pair, *(site for site, members in SITES.items() if pair[0] in members)}


def table(fleets: list[dict[str, Any]]) -> bool:
    """Prints it; whether all is right."""
    heads = ("world", "fleets", "right", "blamed wrongly", "tests (most)", "seconds")
    print(" | ".join((*heads, "samples", "together", "meetings", "on a disk", "left")))
    good = True
    for world in WORLDS:
        of = [each for each in fleets if each["world"] == world]
        if not of:
            continue
        right = sum(each["named"] == each["injected"] for each in of)
        wrong = sum(any(one not in each["injected"] for one in each["named"]) for each in of)
        met, disks = (sum(each[key] for each in of) for key in ("meetings", "on_disks"))
        remaining = sum(len(each["left_behind"]) for each in of)
        tests = [each["tests"] for each in of]
        limit = 2 * (len(CLIENTS) + len(SERVERS))
        good = good and right == len(of) and not (wrong or met or disks or remaining)
        together = sum(each["together"] for each in of)
        good = good and together > 0 and max(tests) <= limit
        seconds = statistics.fmean(each["seconds"] for each in of)
        counted = sum(each["samples"] for each in of)
        row = (world, len(of), f"{right} of {len(of)}", wrong)
        row += (f"{statistics.fmean(tests):.0f} ({max(tests)})", f"{seconds:.0f}")
        print(" | ".join(map(str, (*row, counted, together, met, disks, remaining))))
    for each in fleets:
        if each["named"] != each["injected"]:
            print(each["world"], each["number"], each["injected"], each["sentence"])
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description="Real fleets with injected limits.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--fleets", type=int, default=20)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--seconds", type=float, default=150.0)
    options = parser.parse_args()
    # Ended from outside, as by timeout, it takes its hosts down too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    until = time.monotonic() + options.seconds
    text = options.file.read_text() if options.file.exists() else ""
    fleets = [json.loads(line) for line in text.splitlines()]
    there = {(each["world"], each["number"]) for each in fleets}
    for number in range(options.fleets):
        for world in options.worlds:
            if (world, number) in there or time.monotonic() > until:
                continue
            with tempfile.TemporaryDirectory(prefix="bottleneck-fleet-", dir="/var/tmp") as work:
                one = json.loads(json.dumps(one_fleet(world, number, Path(work))))
            fleets.append(one)
            with options.file.open("a") as file:
                file.write(json.dumps(one) + "\n")
    return 0 if table(fleets) else 1


if __name__ == "__main__":
    sys.exit(main())
