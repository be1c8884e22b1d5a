"""An interrupt in mid-run, and what a server requires.

Every fault at every moment is tests/hostile/faults.py's, kills are tests/lab/kills.py's.
"""

import json
import signal

import pytest

from probes.drivers.samba import private_samba

pytestmark = pytest.mark.long

PASSWORD = "p"


@pytest.fixture
def folders(tmp_path):
    """The client's folder and the share's."""
    made = tmp_path / "client", tmp_path / "shared"
    for each in made:
        each.mkdir()
    return made


@pytest.fixture
def start(tmp_path, begin):
    """Starts the copies and gives its process and the report's path."""

    def go(server, folder, *more):
        report = tmp_path / "report.json"
        arguments = ["probe", "smb-copy", f"//{server.host}:{server.port}/{server.share}"]
        arguments += ["--user", server.username, "--folder", folder, "--yes", "--json", report]
        return begin(*arguments, *more, environment={"BOTTLENECK_PASSWORD": PASSWORD}), report

    return go


def test_ctrl_c_keeps_what_was_measured_and_leaves_nothing(folders, start, watched):
    client, shared = folders
    with private_samba(str(shared), password=PASSWORD) as server:
        process, report = start(server, client, *("--agent", "exec:", "--budget", "30"))
        watched.wait_for(process, "push.cached 3")
        family = watched.descendants(process.pid)
        process.send_signal(signal.SIGINT)
        _, complaints = watched.finish(process)
        assert process.returncode == 130
        assert len(complaints) == 1 and "interrupted" in complaints[0]
        found = json.loads(report.read_text())
        assert found["status"] == "interrupted"
        assert any(step["outcome"]["kind"] == "measured" for step in found["steps"])
        assert watched.gone(client, shared)
        assert watched.all_end(family)


@pytest.mark.parametrize(
    ("option", "key"),
    [("server signing = mandatory", "signing"), ("server smb encrypt = required", "encryption")],
)
def test_what_the_server_requires_is_used_and_reported(folders, start, option, key, watched):
    client, shared = folders
    with private_samba(str(shared), password=PASSWORD, options=[option]) as server:
        process, report = start(server, client, "--budget", "30")
        watched.finish(process)
        found = json.loads(report.read_text())
        assert found["target"][key]
        copies = [s for s in found["steps"] if s["stage"] == "smb-copy"]
        made = [s for s in copies if s["outcome"]["kind"] == "measured"]
        assert made and all(s["outcome"]["details"][key] for s in made)
        assert all(s["outcome"]["details"]["hash_ok"] for s in made)
