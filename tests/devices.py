"""Block devices of a test's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def loop_device(image: str | Path, *options: str) -> Iterator[Path]:
    """Node of a loop device on a file, until it is left; skips where this user gets none."""
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("NOT RUN: a loop device needs root")
    command = ["losetup", "--find", "--show", *options, image]
    outcome = subprocess.run(command, check=True, capture_output=True, text=True)
    device = Path(outcome.stdout.strip())
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
