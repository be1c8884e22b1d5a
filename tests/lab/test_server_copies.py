"""The server starts copies between two hosts with disks, cores and file systems of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from plant import Plant
from world import missing, world

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "tests" / "programs" / "server_copies.py"
SIZE_BYTES = 32 << 20

pytestmark = pytest.mark.lab


def test_each_side_sees_its_own_part_of_the_copy() -> None:
    """smbclient's CPU time is the server's, smbd's the client's; what was cached is proven."""
    if lacks := missing():
        pytest.skip("not run: " + "; ".join(lacks))
    with world(Plant()) as lab:
        request = {
            "target": lab.share.target,
            "user": lab.share.user,
            "password": lab.share.password,
            "options": {
                "folder": str(lab.client.folder),
                "agent": f"exec:{lab.server.script}",
                "size_bytes": SIZE_BYTES,
            },
        }
        done = subprocess.run(
            [lab.client.script, sys.executable, str(RUN)],
            input=json.dumps(request) + "\n",
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        leftovers = [
            host.run(["find", host.folder, "-name", "bottleneck*"]).stdout
            for host in (lab.client, lab.server)
        ]
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [step["kind"] for step in document["steps"]] == ["Measured"] * 4, document
    for step in document["steps"]:
        assert step["engine"] == "smbclient" and step["details"]["hash_ok"] is True
        assert step["details"]["cache"]["proven"] is True
        assert all(seconds > 0 for seconds in step["cpu_seconds"])
    assert document["unclosed"] == [] and leftovers == ["", ""]
