"""Runs as a tape: the order of what they measure, why, and how each step ends."""

from __future__ import annotations

from typing import Any

import pytest

from bottleneck.agents.hosts import PartlyRan
from bottleneck.login.target import NamedDevice, NamedFile
from bottleneck.run import plan
from probes.core.stage import Refused
from tests.run.tape import MOUNT, Script, play

AGENT = {"agent": "ssh://nas"}
SLOW_DISK = {"disk read": 30.0, "server read": 30.0, "pull.uncached": 29.0}
TIED = {"pull.uncached": 70.0, "pull.cached": 70.0, "push.cached": 71.0, "push.uncached": 69.0}
EQUAL = {"server read": 118.0, "client write": 118.0}


def second_copy(error: Exception) -> Any:
    """Breaks it; two small copies come before the first."""
    return lambda what, number: error if number == 3 else None


def stalls(what: str, number: int) -> Exception | None:
    """Every copy of files, in both directions."""
    return PartlyRan(STILL, (), False) if what.startswith(("push", "pull")) and number > 1 else None


STILL = "nothing arrived for 5 s"
REFUSED = Refused("login", "//127.0.0.1/media: wrong user or password")
LOST = PartlyRan("server: the agent is gone", (), True)
HOLE = {"path": {"push": {"black_hole": {"passes_bytes": 1400.0, "stalls_bytes": 1500.0}}}}
MOUNTED = {"target": "/mnt/media", "stages": plan.stages(of_folder=True)}
RUNS: dict[str, tuple[Script, dict[str, Any]]] = {
    "usual": (Script(SLOW_DISK), AGENT),
    "quick": (Script(SLOW_DISK), {**AGENT, "budget_seconds": 20.0}),
    "thorough": (Script(SLOW_DISK), {**AGENT, "budget_seconds": 300.0}),
    "no-agent": (Script(SLOW_DISK), {}),
    "mount": (Script(EQUAL, mount=MOUNT), {**AGENT, **MOUNTED}),
    "runs-3": (Script(SLOW_DISK), {**AGENT, "runs": 3, "budget_seconds": 200.0}),
    "login-refused": (Script(SLOW_DISK, second_copy(REFUSED)), AGENT),
    "agent-lost": (Script(SLOW_DISK, second_copy(LOST)), AGENT),
    "black-hole": (Script(SLOW_DISK, stalls, details=HOLE), AGENT),
    "a-file-of-the-user": (Script(SLOW_DISK), {**AGENT, "file": NamedFile("server", "film")}),
    "the-disks-alone": (Script(SLOW_DISK), {**AGENT, "stages": ("disk",)}),
    "a-device-alone": (
        Script(SLOW_DISK),
        {**AGENT, "stages": ("disk",), "device": NamedDevice("server", "/dev/sdb")},
    ),
    "zones-that-are-written": (
        Script(SLOW_DISK),
        {**AGENT, "stages": ("disk",), "settings": {"pattern": "zones", "verb": "write"}},
    ),
    "one-copy-for-a-time": (
        Script(SLOW_DISK),
        {"stages": ("smb-copy",), "copy": "pull.cached", "settings": {"seconds": 3.0}},
    ),
    "security-alone": (Script(SLOW_DISK), {"stages": ("smb-tax",)}),
    "two-dialects": (Script(SLOW_DISK), {**AGENT, "dialects": ("2.1", "3.1.1")}),
    "nobody-decides": (Script(TIED), {**AGENT, "budget_seconds": 180.0}),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_asks_for_this_in_this_order(name, golden, monkeypatch):
    script, options = RUNS[name]
    for line in play(script, monkeypatch, **options):
        golden(line)


def test_of_a_mount_that_is_not_smb_no_share_is_opened(monkeypatch):
    script = Script(EQUAL, mount={**MOUNT, "filesystem": "nfs4"})
    lines = play(script, monkeypatch, target="/mnt/media", stages=("native-copy", "smb-copy"))
    assert "  hold client run-folder" not in lines
    assert any(each.startswith("native-copy push.cached client: Measured") for each in lines)
