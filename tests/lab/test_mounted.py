"""A share that is mounted by a real kernel's SMB client, in a virtual machine.

BOTTLENECK_VM names a program that boots one: `$BOTTLENECK_VM run JOB SECONDS` runs `bash JOB` there
as root, below this host's files, and prints what it prints. Its namespaces `client` and `server`
have a card each on one wire. It runs some twenty times slower than this host: no rate counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
VM = os.environ.get("BOTTLENECK_VM", "")
SECONDS = 580
OWN_OPTIONS = ("rsize=", "wsize=", "cache=strict")  # of the kernel's mount by itself
pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(SECONDS + 60),
    pytest.mark.skipif(
        not VM,
        reason="NOT TESTED here: set BOTTLENECK_VM to a program that boots a kernel with cifs, "
        "netem and dm-crypt",
    ),
]
WORLDS: dict[str, tuple[dict[str, str], set[str]]] = {
    "near": ({}, {"cpu", "unknown", "instrument"}),
    "20 ms": ({"NETEM": "delay 10ms"}, {"cpu", "unknown", "smb", "tcp", "instrument"}),
    "1 % lost": ({"NETEM": "delay 10ms loss 1%"}, {"network", "unknown"}),
    "cache=none": ({"MOUNT": ",cache=none"}, {"smb", "cpu", "unknown"}),
    "dm-crypt below": ({"CRYPT": "yes"}, {"cpu", "disk", "unknown", "instrument"}),
}
"""Settings of the job, and the components that may be named of the mount's copies."""


def run_in_vm(tmp_path: Path, settings: dict[str, str]) -> tuple[str, list[dict[str, Any]]]:
    usual = {"MOUNT": "", "NETEM": "", "CRYPT": "", "ROOT": str(ROOT), "PYTHON": sys.executable}
    set_ = "".join(f"{name}='{value}'\n" for name, value in (usual | settings).items())
    job = tmp_path / "job.sh"
    job.write_text(set_ + (ROOT / "tests/lab/mounted.sh").read_text())
    words = ["bash", VM, "run", str(job), str(SECONDS)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    print(done.stdout)
    lines = [each for each in done.stdout.splitlines() if each.startswith("COPIES ")]
    assert lines, done.stdout[-2000:] + done.stderr[-500:]
    return done.stdout, json.loads(lines[-1].removeprefix("COPIES "))


@pytest.mark.parametrize("name", WORLDS)
def test_a_mounted_share_is_judged_right_and_what_stays_is_told(tmp_path: Path, name: str) -> None:
    settings, components = WORLDS[name]
    text, copies = run_in_vm(tmp_path, settings)
    native = [each for each in copies if each["dialect"] == "native" and each["bytes_per_second"]]
    assert native
    for each in native:
        assert each["verdict"]["component"] in components, each
        assert name == "cache=none" or not any(word in str(each["advice"]) for word in OWN_OPTIONS)
    assert name != "1 % lost" or "loss" in {each["verdict"]["cause"] for each in copies}
    assert name != "cache=none" or "cache=none" in json.dumps(native)
    # What a path of 1 MB/s cannot remove in the time of an end is told, with what removes it.
    assert "left:  \n" in text or "may remain; the next run or bottleneck cleanup" in text, text
