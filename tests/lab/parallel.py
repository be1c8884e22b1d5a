#!/usr/bin/env python3
"""Has the printed command copy a folder in planted worlds: predicted against actual seconds.

Usage: python tests/lab/parallel.py [CASE ...]

Exit code: 0 each command gains where it should, and takes its predicted time (+-15 %); 1 one does
not; 69 this machine cannot hold the lab.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from dataclasses import dataclass
from typing import Any

from experiment import product
from plant import Plant
from truth import planting
from world import World, missing, world

MOST_RATIO = 0.15
FOLDER = "planted-many"
"""experiment.left_behind leaves files of that prefix out."""


@dataclass(frozen=True)
class Case:
    plant: str
    verb: str
    file_bytes: int
    files: int
    gains: bool
    """Whether more files at once are faster."""


CASES = {
    "trips": Case("sends=1000M rtt=0.02", "pull", 64 << 10, 1000, gains=True),
    "window": Case("wan client.rmem=4096:65536:131072 rtt=0.016", "pull", 1 << 20, 600, gains=True),
    "link": Case("sends=100M", "push", 1 << 20, 150, gains=False),
    "disk": Case(
        "sends=1000M server.writes=18M smb: sync always = yes", "push", 1 << 20, 150, gains=False
    ),
    "quota": Case("sends=1000M server.quota=0.1", "pull", 1 << 20, 300, gains=False),
}


def measured(lab: World, case: Case) -> dict[str, Any]:
    """The details of the product's step for that direction and size."""
    file = lab.work / "report.json"
    code, _, message = product(lab, ["probe", "parallel"], file, 60, agent=False)
    if not file.exists():
        raise SystemExit(f"probe parallel ended with {code}: {message}")
    for step in json.loads(file.read_text())["steps"]:
        verb_and_size = (step["setting"].get("verb"), step["setting"].get("file_bytes"))
        if verb_and_size == (case.verb, case.file_bytes):
            details: dict[str, Any] = step["outcome"]["details"]
            return details
    raise SystemExit(f"no such step: {message}")


def copy_seconds(lab: World, case: Case, command: str) -> float:
    """Seconds of the printed command, SRC and DST replaced, for the case's files."""
    sender = lab.server.folder / "share" if case.verb == "pull" else lab.client.folder
    host = lab.server if case.verb == "pull" else lab.client
    script = f"mkdir {sender / FOLDER} && cd {sender / FOLDER} && for i in $(seq {case.files}); do"
    script += f" head -c {case.file_bytes} /dev/urandom > f$i; done; chmod -R a+rX ."
    host.run(["sh", "-c", script])
    address, _, share = lab.share.target.removeprefix("//").partition("/")
    hidden = lab.client.run(["rclone", "obscure", lab.share.password]).stdout.strip()
    there, here = f":smb:{share}/{FOLDER}", str(lab.client.folder / FOLDER)
    places = {"SRC": there, "DST": here} if case.verb == "pull" else {"SRC": here, "DST": there}
    words = [places.get(word, word) for word in command.split()]
    login = ["--smb-host", address, "--smb-user", lab.share.user, "--smb-pass", hidden]
    began = time.monotonic()
    lab.client.run([*words, *login], seconds=300)
    return time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(description="Several files at once: predicted and actual.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=" ".join(CASES))
    lacks = [*missing(), *([] if shutil.which("rclone") else ["needs the program rclone"])]
    if lacks:
        print("not run: " + "; ".join(lacks), file=sys.stderr)
        return 69
    wrong = 0
    for name in parser.parse_args().cases or list(CASES):
        case = CASES[name]
        with world(planting(case.plant, Plant())[0]) as lab:
            details = measured(lab, case)
            command = details["command"]
            actual = copy_seconds(lab, case, command["text"])
        predicted = command["seconds"] * case.files / command["files"]
        off = predicted / actual - 1
        right = abs(off) <= MOST_RATIO and (command["files_at_once"] > 1) == case.gains
        wrong += not right
        print(f"{name:8} {'right' if right else 'WRONG':6} {command['text']}", end="  ")
        print(
            f"predicted {predicted:.1f} s, actual {actual:.1f} s ({off:+.0%}); one at a time",
            end="",
        )
        print(f" {command['one_at_a_time_seconds'] * case.files / command['files']:.1f} s")
        cells = (
            f"{e['files_at_once']}: {e['bytes_per_second'] / 1e6:.2f}" for e in details["cells"]
        )
        print(f"    MB/s at once {', '.join(cells)}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
