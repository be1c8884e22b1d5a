"""Peak memory of a process, and a run of the program that is asked for it all the time."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOOK_SECONDS = 0.005


@dataclass(frozen=True)
class PeakResult:
    code: int
    """Below zero: the signal that ended it."""
    out: str
    err: str
    elapsed_seconds: float
    peak_bytes: int


def peak_bytes(pid: int | str) -> int:
    """The most so far: wait4(2) and getrusage(2) also count what was before its exec. 0: gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    _, _, peak = text.partition("VmHWM:")
    return int(peak.split()[0]) * 1024 if peak else 0


def run_program(
    *arguments: str, seconds: float, environment: dict[str, str] | None = None
) -> PeakResult:
    """The program with these arguments, killed after so many seconds."""
    began, peak = time.monotonic(), 0
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "bottleneck", *arguments],
            **{"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, "cwd": ROOT},
            env=environment,
            start_new_session=True,
        )
        while process.poll() is None:
            peak = max(peak, peak_bytes(process.pid))
            if time.monotonic() - began > seconds:
                process.kill()
            time.sleep(LOOK_SECONDS)
        elapsed, texts = time.monotonic() - began, []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return PeakResult(process.returncode, texts[0], texts[1], elapsed, peak)
