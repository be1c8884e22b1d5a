"""An interrupt in mid-run.

Every fault at every moment is tests/hostile/faults.py's, kills are tests/lab/kills.py's.
"""

import json
import signal

import pytest

from probes.programs.samba import private_samba

PASSWORD = "p"


@pytest.mark.long
def test_ctrl_c_keeps_what_was_measured_and_leaves_nothing(tmp_path, begin, helpers):
    client, shared = folders = tmp_path / "client", tmp_path / "shared"
    report = tmp_path / "report.json"
    for each in folders:
        each.mkdir()
    with private_samba(str(shared), password=PASSWORD) as server:
        process = begin(
            *f"probe smb-copy //{server.host}:{server.port}/{server.share}".split(),
            *f"--user {server.username} --folder {client} --yes --json {report}".split(),
            *"--agent exec: --budget 30".split(),
            environment={"BOTTLENECK_PASSWORD": PASSWORD},
        )
        helpers.wait_for(process, "push.cached 3")
        family = helpers.descendants(process.pid)
        process.send_signal(signal.SIGINT)
        _, complaints = helpers.finish(process)
        assert process.returncode == 130
        assert len(complaints) == 1 and "interrupted" in complaints[0]
        document = json.loads(report.read_text())
        assert document["status"] == "interrupted"
        assert any(step["outcome"]["kind"] == "measured" for step in document["steps"])
        assert helpers.all_removed(*folders)
        assert helpers.all_end(family)
