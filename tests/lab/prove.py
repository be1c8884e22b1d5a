#!/usr/bin/env python3
"""Has foreign tools measure the lab's worlds, and `bottleneck explain` read what they print.

ping, iperf3, fio and smbclient run as a helpdesk runs them; no agent of the product measures.

Usage: python tests/lab/prove.py [WORLD ...] [--reports DIR]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from host import SHARE, Host
from truth import WORLDS
from world import World, missing, world

MB = 1e6
ROOT = Path(__file__).resolve().parents[2]
EVICT = "import os,sys; f=os.open(sys.argv[1],2); os.fsync(f); os.posix_fadvise(f,0,0,4)"


def iperf3(lab: World, verb: str, seconds: int = 4) -> float:
    """Receiver's payload rate of one iperf3 stream, bytes per second; the client initiates."""
    return float(tcp(lab, verb, seconds)["end"]["sum_received"]["bits_per_second"]) / 8


def tcp(lab: World, verb: str, seconds: int = 4) -> dict[str, Any]:
    """Returns what iperf3 -J of the client prints; a pull with -R."""
    server = ["iperf3", "--server", "--one-off"]
    client = ["iperf3", "--client", lab.server_address, "--json", "--time", str(seconds)]
    client += ["--omit", "1"] + (["--reverse"] if verb == "pull" else [])
    report: dict[str, Any] = {}
    with lab.server.running(server, lab.work / "iperf3.log"):
        for _ in range(40):
            report = json.loads(lab.client.run(client, check=False).stdout)
            if "error" not in report:
                return report
            time.sleep(0.2)  # the server is not up yet
    raise RuntimeError(f"iperf3: {report['error']}")


def fill(host: Host, file: Path, size_mib: int) -> None:
    """A file of random bytes, on disk."""
    command = ["dd", "if=/dev/urandom", f"of={file}", "bs=1M", f"count={size_mib}", "conv=fsync"]
    host.run(command, seconds=180)


def evict(host: Host, file: Path) -> None:
    host.run(["python3", "-c", EVICT, file])


def outputs(lab: World, size_mib: int) -> Iterator[tuple[str, str]]:
    """Yields what each tool prints, by the name of a file of `bottleneck explain`."""
    ping = ["ping", "-c", "20", "-i", "0.05", lab.server_address]
    yield "client:ping.txt", lab.client.run(ping).stdout
    for verb in ("push", "pull"):
        yield f"client:iperf-{verb}.json", json.dumps(tcp(lab, verb))
    for verb in ("read", "write"):
        command = ["fio", "--name=lab", f"--directory={lab.server.folder}", f"--rw={verb}"]
        command += ["--bs=1m", "--direct=1", "--ioengine=libaio", "--iodepth=4"]
        command += [f"--size={size_mib}m", "--output-format=json", "--unlink=1", "--eta=never"]
        yield f"server:fio-{verb}.json", lab.server.run(command, seconds=180).stdout
    source, target = lab.server.folder / SHARE / "source", lab.client.folder / "target"
    for host, file in ((lab.server, source), (lab.client, lab.client.folder / "own")):
        fill(host, file, size_mib)
        host.run(["chmod", "0666", file])
        evict(host, file)
    words = f"get source {target}; put {lab.client.folder / 'own'} pushed"
    command = ["smbclient", lab.share.target, "-m", "SMB3", "-c", words]
    secret = {"USER": lab.share.user, "PASSWD": lab.share.password}
    ended = lab.client.run(command, environment=secret, seconds=240)
    yield "client:smbclient.txt", ended.stdout + ended.stderr


def prove(name: str, folder: Path) -> None:
    """Prints what the outputs of a world are explained as, beside what is planted there."""
    case = WORLDS[name]
    slow = case.slowest_bytes_per_second()
    size_mib = max(32, min(384, round(slow * 5 / (1 << 20)))) if slow else 384
    files = []
    with world(case.plant) as lab:
        for label, text in outputs(lab, size_mib):
            side, _, file = label.partition(":")
            path = folder / f"{name}-{file}"
            path.write_text(text)
            files.append(f"{side}:{path}")
    command = [sys.executable, "-m", "bottleneck", "explain", *files, "--format", "json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    print(f"\n{name}: {case.planted}", flush=True)
    for copy in json.loads(ended.stdout)["diagnosis"]["copies"]:
        label = "/".join(filter(None, (copy["verdict"][e] for e in ("component", "side", "cause"))))
        print(f"  {copy['copy']} {copy['bytes_per_second'] / MB:.1f} MB/s: {label}")
        print(f"    {copy['verdict']['sentence']}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worlds", nargs="*", choices=[[], *WORLDS], metavar="WORLD")
    parser.add_argument("--reports", type=Path, help="keeps the outputs here")
    options = parser.parse_args()
    lacks = missing()
    if lacks:
        print("not run: " + "; ".join(lacks), file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.reports or Path(scratch)
        folder.mkdir(exist_ok=True)
        for name in options.worlds or list(WORLDS):
            prove(name, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
