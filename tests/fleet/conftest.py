"""Reports of a whole fleet, made of a recorded one."""

import copy
import json
from pathlib import Path

import pytest

RECORDED = Path(__file__).parents[1] / "data" / "report-v1-lab-with-agent.json"


@pytest.fixture(scope="session")
def report_of():
    """A report of a pair whose copies and disks are so many times slower than they were."""
    recorded = json.loads(RECORDED.read_text())

    def make(client, server, slower=1.0):
        report = copy.deepcopy(recorded)
        report["hosts"]["client"]["name"] = client
        report["target"]["share"] = f"//{server}/share"
        for step in report["steps"]:
            outcome = step["outcome"]
            if step["stage"] in ("smb-copy", "disk") and outcome["kind"] == "measured":
                for key in ("median", "low", "high"):
                    outcome["bytes_per_second"][key] /= slower
                for run in (outcome["samples"], *outcome["runs"]):
                    run[:] = [[seconds * slower, count] for seconds, count in run]
        return report

    return make


@pytest.fixture
def reports(report_of, tmp_path):
    """A folder with reports of 6 clients and 3 servers; to pairs that slower() names a factor."""

    def make(slower=lambda client, server: 1.0, at_sign=False):
        folder = tmp_path / "reports"
        folder.mkdir()
        for client in (f"pc{index}" for index in range(6)):
            for server in (f"nas{index}" for index in range(3)):
                name = f"{client}@{server}.json" if at_sign else f"{client}-{server}.json"
                report = report_of(client, server, slower(client, server))
                (folder / name).write_text(json.dumps(report))
        return folder

    return make
