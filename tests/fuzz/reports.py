"""A file that is called a report: refused in one line, or diagnosed and shown.

Reports and observations, as `explain` takes them; each through one of the documents.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import json_mutation
import sinks

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.cli import loading
from probes.core.stage import Refused


def one_input(data: bytes) -> None:
    fd = os.memfd_create("report")
    try:
        os.write(fd, data)
        run_report = loading.load(Path(f"/proc/self/fd/{fd}"))
    except Refused as error:
        assert "\n" not in error.text and len(error.text) < 1000, error.text
        return
    finally:
        os.close(fd)
    sinks.SINKS[sum(data) % len(sinks.SINKS)](run_report, diagnose(run_report))


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Its JSON with something changed. Errors: ValueError, RecursionError: it has none."""
    start, end = data.find(b"{"), data.rfind(b"}") + 1
    changed = json_mutation.mutated(data[start:end], chance)
    return data[:start] + changed + data[end:]
