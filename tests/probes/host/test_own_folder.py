"""What a run does about its guardian."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from probes.host import removal
from probes.host.own_folder import Guardian


@pytest.mark.timeout(60)
def test_one_that_hangs_holds_nobody_up(tmp_path: Path) -> None:
    """As in a mount that does not answer, whose folder went before."""
    parent = removal.opened(str(tmp_path))
    guardian = Guardian(parent, {"kind": removal.TREE, "name": "gone"}, str(tmp_path / "gone"))
    process = guardian._process
    process.send_signal(signal.SIGSTOP)
    try:
        guardian.end(gone=True)
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGCONT)
        process.wait()
        os.close(parent)
