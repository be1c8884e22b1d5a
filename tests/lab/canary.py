"""Ten thousand files of somebody else's, where a run writes, and one hash of them all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

FILES = 10_000
PER_FOLDER = 100
NAMES = ("photos", "bottleneck-notes", "bottleneck-0123456789abcdef.old")
"""Of the trees in each place; two look like what a run makes."""


def plant(places: Sequence[Path], files: int = FILES) -> None:
    """Makes the files, spread over the places."""
    for number in range(files):
        place = places[number % len(places)]
        tree = place / NAMES[number // len(places) % len(NAMES)]
        folder = tree / str(number // (PER_FOLDER * len(places) * len(NAMES)))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.bin").write_bytes(f"canary {number}\n".encode() * (number % 40))


def digest(places: Sequence[Path]) -> tuple[int, str]:
    """How many there are, and the hash of all names, modes, times and contents."""
    whole, count = hashlib.sha256(), 0
    for place in places:
        for name in NAMES:
            for parent, folders, names in os.walk(place / name):
                folders.sort()
                for each in sorted(names):
                    path = Path(parent, each)
                    facts = path.lstat()
                    whole.update(f"{path} {facts.st_mode} {facts.st_mtime_ns}\n".encode())
                    whole.update(path.read_bytes())
                    count += 1
    return count, whole.hexdigest()
