"""What the tool itself takes while 1 GiB is copied: resident memory of the coordinator and agents.

    .venv/bin/python benchmarks/cost.py [--json F]

Runs `bottleneck demo --size 1GiB` and reads the highest resident set of each of its processes ten
times a second. An agent's figure is the agent's own and, apart, its largest child's (the probe).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import psutil

MIB = 1 << 20
ALLOWED = {"coordinator": 150 * MIB, "agent client": 100 * MIB, "agent server": 100 * MIB}


def role(process: psutil.Process, main: psutil.Process) -> str | None:
    """What a process of the run is; None: none of ours (smbd, fio)."""
    if process == main:
        return "coordinator"
    line = process.cmdline()
    parent = process.parent()
    ours = process.name().startswith("python") or "python" in (line[:1] or [""])[0]
    if parent is None or not ours:
        return None
    side = "client" if "bottleneck.agents.server" in line else "server"
    return f"agent {side}" if parent == main else f"probe {side}"


def watch(run: subprocess.Popen[str]) -> dict[str, int]:
    """Highest resident bytes of each role until the run ends."""
    main = psutil.Process(run.pid)
    most: dict[str, int] = {}
    while run.poll() is None:
        for process in [main, *main.children(recursive=True)]:
            try:
                name, resident = role(process, main), process.memory_info().rss
            except psutil.Error:
                continue
            if name is not None:
                most[name] = max(resident, most.get(name, 0))
        time.sleep(0.1)
    return most


def main() -> int:
    """Prints a row a role; 1 where one takes more than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    told = parser.parse_args()
    command = [sys.executable, "-m", "bottleneck", "demo", "--size", "1GiB", "--budget", "120"]
    command += ["--dialects", "3.1.1", "--quiet"]
    run = subprocess.Popen(command, text=True, stdout=subprocess.PIPE)
    most = watch(run)
    print(run.stdout.read() if run.stdout else "", end="")
    over = False
    for name, resident in sorted(most.items()):
        allowed = ALLOWED.get(name)
        over = over or allowed is not None and resident > allowed
        limit = f" of {allowed / MIB:.0f} allowed" if allowed else ""
        print(f"{name:14} {resident / MIB:7.1f} MiB{limit}")
    if told.json:
        told.json.write_text(json.dumps(most))
    return 1 if over or run.returncode not in {0, 3} else 0


if __name__ == "__main__":
    sys.exit(main())
