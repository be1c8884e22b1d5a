#!/usr/bin/env python3
"""Captures smbclient's copies in drawn worlds at both ends, and has `explain` judge the packets.

Usage: python tests/lab/captured.py --seed S [--count N] [--own] [--keep DIR] [--from DIR]

Each capture is judged whole, without its start and SYN, and without TCP time stamps, as Windows'.
Exit code: 0 no component is wrong; 1 one is; 69 this machine cannot hold it.
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
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from draw import KINDS, Dice
from experiment import product
from host import Host
from pcap_edits import without_beginning, without_stamps
from truth import MB, LabWorld, parsed
from watched import Case, make, run_copy
from world import World, missing, world

from probes.core.records import SIDES

ROOT = Path(__file__).resolve().parents[2]
NEAR = ("link", "one-way", "disk", "disk-and-link", "busy", "quota")
FAR = ("far", "small-queue", "window", "buffer", "credits", "loss", "hole")
COPY_SECONDS, OWN_SECONDS, SNAP_BYTES = 8, 20, 128
LOST_BEGINNING_SECONDS = 2.0
TWINS, FULL_RATIO = ("disk", "cpu"), 0.9
"""Components of a host that packets do not tell apart; the share of a link that makes it full."""
VARIANTS = ("whole", "no-syn", "no-stamps")


class Grade(NamedTuple):
    """A verdict on one capture."""

    word: str
    """right, twin, cause: the component alone is right, abstained, wrong, unbound by the link."""
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
        # A page cache that takes the whole file hides a disk that is slow to write.
        plant += "".join(f" {e}.dirty=4Mi" for e in SIDES if f"{e}.writes=" in plant)
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
    command = ["tcpdump", "-i", device, "-s", str(SNAP_BYTES), "-w", str(file), "-U"]
    with host.running(command, file.with_suffix(".log")):
        host.run(["sh", "-c", f"until test -s {file}; do sleep 0.05; done"])
        yield


def capture(each: LabWorld, copy: str, files: Iterable[Path], *, is_own: bool) -> None:
    """Has smbclient or this tool copy in a world; writes the captures of both ends."""
    case = Case(each.plant, copy[:4], frozenset(), (1000 if "disk" in each.name else 400) * MB)
    with world(each.plant) as lab:
        host, below = (lab.client, ".") if case.verb == "push" else (lab.server, "share")
        make(host, host.folder / below / "watched.bin", case.size_bytes)
        with (
            capturing(lab, lab.client, lab.work / "client.pcap"),
            capturing(lab, lab.server, lab.work / "server.pcap"),
        ):
            if is_own:
                words = ["probe", "smb-copy", "--copy", copy]
                product(lab, words, lab.work / "own.json", OWN_SECONDS)
            else:
                with run_copy(lab, case) as program, contextlib.suppress(subprocess.TimeoutExpired):
                    program.wait(COPY_SECONDS)
        for side, file in zip(SIDES, files, strict=True):
            shutil.copy(lab.work / f"{side}.pcap", file)


def judged(file: Path, each: LabWorld, copy: str) -> Grade:
    """Has `explain` judge a capture, and compares its verdict with what was planted."""
    command = [sys.executable, "-m", "bottleneck", "explain", str(file), "--json", "-"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        return Grade("abstained", done.stderr.strip()[-80:], 0.0)
    copies = json.loads(done.stdout)["diagnosis"]["copies"]
    judged_copy = next((e for e in copies if copy.startswith(e["copy"])), copies[0])
    verdict = judged_copy["verdict"]
    answer = component, side, cause = verdict["component"], verdict["side"], verdict["cause"]
    text, sure = "/".join(map(str, answer)), verdict["confidence"]
    right = next(e.right for e in each.expected if e.copy == copy)
    sender = each.plant.client if copy.startswith("push") else each.plant.server
    full_rate = FULL_RATIO * (sender.sends_bits_per_second or 0) / 8
    if (
        all(part != "network" for part, _, _ in right)
        and judged_copy["bytes_per_second"] > full_rate
    ):
        return Grade("unbound", text, sure)
    if answer in right or component == "unknown":
        return Grade("right" if answer in right else "abstained", text, sure)
    is_twin = component in TWINS and side in {of for part, of, _ in right if part in TWINS}
    # Who asks for too little, the program or its server, is not in the packets.
    is_twin = is_twin or component == "smb" and cause in {each for _, _, each in right}
    word = "cause" if any((component, side) == each[:2] for each in right) else "wrong"
    return Grade("twin" if is_twin else word, text, sure)


def main() -> int:
    parser = argparse.ArgumentParser(description="Captures of smbclient's copies, judged.")
    parser.add_argument("--seed", required=True)
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the captures there")
    parser.add_argument("--from", dest="stored", type=Path, metavar="DIR", help="judge kept ones")
    parser.add_argument("--own", action="store_true", help="copies of this tool, not smbclient's")
    options = parser.parse_args()
    if not options.stored and (lacks := missing() + ["tcpdump"] * (not shutil.which("tcpdump"))):
        print("not run: " + "; ".join(lacks), file=sys.stderr)
        return 69
    totals: dict[str, Counter[str]] = {name: Counter() for name in VARIANTS}
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.stored or options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for each, copy in drawn(options.count, options.seed):
            verb, _, _ = copy.partition(".")
            files = [folder / f"{each.name}.{verb}.{side}.pcap" for side in SIDES]
            if not options.stored:
                capture(each, copy, files, is_own=options.own)
            for file in files:
                edited = [Path(scratch) / f"{name}.pcap" for name in VARIANTS[1:]]
                without_beginning(file, edited[0], LOST_BEGINNING_SECONDS)
                without_stamps(file, edited[1])
                for name, variant in zip(VARIANTS, (file, *edited), strict=True):
                    grade = judged(variant, each, copy)
                    is_sure = grade.word == "wrong" and grade.confidence >= 0.7
                    totals[name][grade.word + " SURE" * is_sure] += 1
                    print(f"{file.stem:44} {name:10} {grade.word:9}", *grade[1:], flush=True)
    for name, counts in totals.items():
        print(f"{name}: {dict(counts)}")
    return 1 if any("wrong" in word for counts in totals.values() for word in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
