#!/usr/bin/env python3
"""Captures smbclient's copies in drawn worlds at both ends, and has `explain` judge the packets.

Usage: python tests/lab/captured.py --seed S [--count N] [--keep DIR] [--from DIR]

N worlds, half of them near and half far, all with CUBIC. Each capture is judged as it is, without
the first seconds (and so without the SYN), and without TCP time stamps, as from Windows.
Exit code: 0 every verdict is right, or abstains; 1 one is wrong; 69 this machine cannot hold it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from draw import KINDS, Dice
from host import Host
from pcap_edits import without_beginning, without_stamps
from truth import MB, LabWorld, parsed
from watched import Case, make, run_copy
from world import World, missing, world

ROOT = Path(__file__).resolve().parents[2]
NEAR = ("link", "one-way", "disk", "disk-and-link", "busy", "quota")
FAR = ("far", "small-queue", "window", "buffer", "credits", "loss", "hole")
COPY_SECONDS, SNAP_BYTES = 8, 128
LOST_BEGINNING_SECONDS = 2.0
TWINS = ("disk", "cpu")
"""Components of a host that packets do not tell apart."""
VARIANTS = ("whole", "no-syn", "no-stamps")


@dataclass(frozen=True)
class Grade:
    """A verdict on one capture."""

    word: str
    """right, twin, abstained, wrong."""
    answer: str
    confidence: float


def drawn(count: int, seed: str) -> list[tuple[LabWorld, str]]:
    """Returns worlds, near and far in turn, each with the copy that smbclient makes."""
    dice = random.Random(seed)
    kinds = [dice.choice(FAR if index % 2 else NEAR) for index in range(count)]
    worlds = []
    for index, kind in enumerate(kinds):
        plant, true = KINDS[kind](Dice(f"{seed} captured {index}"))
        plant += "" if "control=" in plant else " control=cubic"
        (each,) = parsed(f"{seed}-{index:02}-{kind}: {plant}\n  plant {plant}\n  true {true}\n")
        names = ("pull.uncached", "push.uncached")
        touched = [e.copy for e in each.expected if e.touched and e.copy in names]
        worlds.append((each, dice.choice(touched or list(names))))
    return worlds


@contextlib.contextmanager
def capturing(lab: World, host: Host, file: Path) -> Iterator[None]:
    """Captures the packets of a host's interface to the other one until the block ends."""
    other = lab.server_address if host is lab.client else lab.client_address
    route = host.run(["ip", "-o", "route", "get", other]).stdout.split()
    device = route[route.index("dev") + 1]
    command = ["tcpdump", "-i", device, "-s", str(SNAP_BYTES), "-w", str(file), "-U", "tcp"]
    with host.running(command, file.with_suffix(".log")):
        host.run(["sh", "-c", f"until test -s {file}; do sleep 0.05; done"])
        yield


def capture(each: LabWorld, copy: str, folder: Path) -> list[Path]:
    """Has smbclient copy in a world; returns the captures of both ends."""
    verb = copy.partition(".")[0]
    files = [folder / f"{each.name}.{verb}.{side}.pcap" for side in ("client", "server")]
    case = Case(each.plant, verb, frozenset(), 1000 * MB)
    with world(each.plant) as lab:
        source = lab.client if verb == "push" else lab.server
        base = source.folder if verb == "push" else source.folder / "share"
        make(source, base / "watched.bin", case.size_bytes if "disk" in each.name else 400 * MB)
        with (
            capturing(lab, lab.client, lab.work / "client.pcap"),
            capturing(lab, lab.server, lab.work / "server.pcap"),
            run_copy(lab, case) as process,
            contextlib.suppress(subprocess.TimeoutExpired),
        ):
            process.wait(COPY_SECONDS)
        for side, file in zip(("client", "server"), files, strict=True):
            shutil.copy(lab.work / f"{side}.pcap", file)
    return files


def judged(file: Path, each: LabWorld, copy: str) -> Grade:
    """Has `explain` judge a capture, and compares its verdict with what was planted."""
    command = [sys.executable, "-m", "bottleneck", "explain", str(file), "--json", "-"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        return Grade("abstained", done.stderr.strip()[-80:], 0.0)
    verdict = json.loads(done.stdout)["diagnosis"]["copies"][0]["verdict"]
    answer = (verdict["component"], verdict["side"], verdict["cause"])
    text, sure = "/".join(map(str, answer)), verdict["confidence"]
    right = next(e.right for e in each.expected if e.copy == copy)
    if answer in right:
        return Grade("right", text, sure)
    if answer[0] == "unknown":
        return Grade("abstained", text, sure)
    hosts = {side for component, side, _ in right if component in TWINS}
    is_twin = answer[0] in TWINS and answer[1] in hosts
    # Who asks for too little, the program or its server, is not in the packets.
    is_twin = is_twin or answer[0] == "smb" and answer[2] in {cause for _, _, cause in right}
    is_twin = (
        is_twin
        or answer[0] == "network"
        and answer[2] in {c for n, _, c in right if n == answer[0]}
    )
    return Grade("twin" if is_twin else "wrong", text, sure)


def main() -> int:
    parser = argparse.ArgumentParser(description="Captures of smbclient's copies, judged.")
    parser.add_argument("--seed", required=True)
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the captures there")
    parser.add_argument("--from", dest="stored", type=Path, metavar="DIR", help="judge kept ones")
    options = parser.parse_args()
    lacks = [] if options.stored else missing()
    if lacks or not shutil.which("tcpdump"):
        print("not run: " + "; ".join(lacks or ["no tcpdump"]), file=sys.stderr)
        return 69
    totals: dict[str, Counter[str]] = {name: Counter() for name in VARIANTS}
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.stored or options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for each, copy in drawn(options.count, options.seed):
            verb = copy.partition(".")[0]
            files = [folder / f"{each.name}.{verb}.{side}.pcap" for side in ("client", "server")]
            if not options.stored:
                files = capture(each, copy, folder)
            for file in files:
                edited = [Path(scratch) / f"{name}.pcap" for name in VARIANTS[1:]]
                without_beginning(file, edited[0], LOST_BEGINNING_SECONDS)
                without_stamps(file, edited[1])
                for name, variant in zip(VARIANTS, (file, *edited), strict=True):
                    grade = judged(variant, each, copy)
                    sure = " SURE" if grade.word == "wrong" and grade.confidence >= 0.7 else ""
                    totals[name][grade.word + sure] += 1
                    print(
                        f"{file.stem:44} {name:10} {grade.word:9} {grade.answer} {grade.confidence}"
                    )
                print(end="", flush=True)
    for name, counts in totals.items():
        print(f"{name}: {dict(counts)}")
    return 1 if any("wrong" in word for counts in totals.values() for word in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
