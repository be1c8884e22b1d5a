#!/usr/bin/env python3
"""What foreign tools see in the lab's worlds: iperf3, fio, dd and smbclient, no product involved.

Usage: python tests/lab/prove.py [WORLD ...]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from host import SHARE, Host
from truth import WORLDS
from world import World, missing, world

MB = 1e6
EVICT = "import os,sys; f=os.open(sys.argv[1],2); os.fsync(f); os.posix_fadvise(f,0,0,4)"


def iperf3(lab: World, verb: str, seconds: int = 4) -> float:
    """Receiver's payload rate of one iperf3 stream, bytes per second; the client initiates."""
    server = ["iperf3", "--server", "--one-off"]
    client = ["iperf3", "--client", lab.server_address, "--json", "--time", str(seconds)]
    client += ["--omit", "1"] + (["--reverse"] if verb == "pull" else [])
    with lab.server.running(server, lab.work / "iperf3.log"):
        for _ in range(40):
            report = json.loads(lab.client.run(client, check=False).stdout)
            if "error" not in report:
                return float(report["end"]["sum_received"]["bits_per_second"]) / 8
            time.sleep(0.2)  # the server is not up yet
    raise RuntimeError(f"iperf3: {report['error']}")


def dd(host: Host, verb: str, size_mib: int, *, direct: bool) -> float:
    """dd through the host's file system, from or to the disk for certain; bytes per second."""
    file = host.folder / "dd"
    if verb == "read":
        flags = ["iflag=direct"] if direct else []
        fill(host, file, size_mib)
        evict(host, file)
        command = ["dd", f"if={file}", "of=/dev/null", "bs=1M", *flags]
    else:
        flags = ["oflag=direct"] if direct else ["conv=fsync"]
        command = ["dd", "if=/dev/zero", f"of={file}", "bs=1M", f"count={size_mib}", *flags]
    began = time.monotonic()
    host.run(command, seconds=120)
    elapsed = time.monotonic() - began
    host.run(["rm", file])
    return size_mib * (1 << 20) / elapsed


def fio(host: Host, verb: str, size_mib: int) -> float:
    """fio, direct, 1 MiB requests, four in flight; bytes per second."""
    folder = host.folder
    command = ["fio", "--name=lab", f"--directory={folder}", f"--rw={verb}", "--bs=1m"]
    command += ["--direct=1", "--ioengine=libaio", "--iodepth=4", f"--size={size_mib}m"]
    command += ["--end_fsync=1", "--output-format=json", "--unlink=1", "--eta=never"]
    report = json.loads(host.run(command, seconds=180).stdout)
    return float(report["jobs"][0][verb]["bw_bytes"])


def fill(host: Host, file: Path, size_mib: int) -> None:
    """A file of random bytes, on disk."""
    command = ["dd", "if=/dev/urandom", f"of={file}", "bs=1M", f"count={size_mib}", "conv=fsync"]
    host.run(command, seconds=180)


def evict(host: Host, file: Path) -> None:
    host.run(["python3", "-c", EVICT, file])


def smbclient(lab: World, copy: str, size_mib: int, dialect: str) -> tuple[float, float]:
    """One copy by Samba's client: rate of the transfer, and with the receiver's flush."""
    verb, cache = copy.split(".")
    sender, receiver = (lab.client, lab.server) if verb == "push" else (lab.server, lab.client)
    places = {"client": lab.client.folder, "server": lab.server.folder / SHARE}
    source, target = places[sender.name] / "source", places[receiver.name] / "target"
    fill(sender, source, size_mib)
    sender.run(["chmod", "0666", source])
    if cache == "uncached":
        evict(sender, source)
    else:
        sender.run(["dd", f"if={source}", "of=/dev/null"])
    words = f"put {source} target" if verb == "push" else f"get source {target}"
    secret = {"USER": lab.share.user, "PASSWD": lab.share.password}
    login = _seconds(lab, dialect, "exit", secret)
    moved = _seconds(lab, dialect, words, secret) - login
    began = time.monotonic()
    receiver.run(["sync", target], seconds=120)
    flushed = time.monotonic() - began
    sender.run(["rm", source])
    receiver.run(["rm", target])
    return size_mib * (1 << 20) / moved, size_mib * (1 << 20) / (moved + flushed)


def _seconds(lab: World, dialect: str, words: str, secret: dict[str, str]) -> float:
    began = time.monotonic()
    command = ["smbclient", lab.share.target, "-m", dialect, "-c", words]
    command += ["--option=client min protocol=NT1"]
    lab.client.run(command, environment=secret, seconds=240)
    return time.monotonic() - began


def prove(name: str) -> None:
    chosen = WORLDS[name]
    slow = chosen.slowest_bytes_per_second()
    size_mib = max(32, min(384, round(slow * 5 / (1 << 20)))) if slow else 384
    with world(chosen.plant) as lab:
        print(f"\n{name}: {chosen.planted}  (files of {size_mib} MiB; MB/s)", flush=True)
        for verb in ("push", "pull"):
            shaped = chosen.plant.payload_bytes_per_second(verb)
            truth = f" (shaped {shaped / MB:.2f})" if shaped else ""
            print(f"  iperf3 {verb}: {iperf3(lab, verb) / MB:.2f}{truth}", flush=True)
        for host in (lab.client, lab.server):
            for verb in ("read", "write"):
                figures = {
                    "fio direct": fio(host, verb, size_mib),
                    "dd direct": dd(host, verb, size_mib, direct=True),
                    "dd buffered": dd(host, verb, size_mib, direct=False),
                }
                text = ", ".join(f"{tool} {rate / MB:.1f}" for tool, rate in figures.items())
                print(f"  {host.name} disk {verb}: {text}", flush=True)
        for dialect in ("SMB3", "NT1"):
            for copy in ("pull.cached", "pull.uncached", "push.cached", "push.uncached"):
                moved, flushed = smbclient(lab, copy, size_mib, dialect)
                text = f"{moved / MB:.1f}, flushed {flushed / MB:.1f}"
                print(f"  smbclient {dialect} {copy}: {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worlds", nargs="*", choices=[[], *WORLDS], metavar="WORLD")
    names = parser.parse_args().worlds or list(WORLDS)
    lacks = missing()
    if lacks:
        print("not run: " + "; ".join(lacks), file=sys.stderr)
        return 1
    for name in names:
        prove(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
