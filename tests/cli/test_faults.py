"""An interrupt in mid-run, and what a server requires or nobody measured.

Every fault at every moment is tests/hostile/faults.py's, kills are tests/lab/kills.py's.
"""

import json
import os
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
    """Starts a diagnosis and gives its process and the report's path."""

    def go(server, folder, *more, command="diagnose", environment=None, prefix=()):
        report = tmp_path / "report.json"
        arguments = [*command.split(), f"//{server.host}:{server.port}/{server.share}"]
        arguments += ["--user", server.username, "--folder", folder, "--yes", "--json", report]
        known = {"BOTTLENECK_PASSWORD": PASSWORD, **(environment or {})}
        return begin(*arguments, *more, environment=known, prefix=prefix), report

    return go


def test_ctrl_c_keeps_what_was_measured_and_leaves_nothing(folders, start, watched):
    client, shared = folders
    with private_samba(str(shared), password=PASSWORD) as server:
        process, report = start(
            server, client, *("--agent", "exec:", "--budget", "30"), command="probe smb-copy"
        )
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
        process, report = start(server, client, "--budget", "30", command="probe smb-copy")
        watched.finish(process)
        found = json.loads(report.read_text())
        assert found["target"][key]
        copies = [s for s in found["steps"] if s["stage"] == "smb-copy"]
        made = [s for s in copies if s["outcome"]["kind"] == "measured"]
        assert made and all(s["outcome"]["details"][key] for s in made)
        assert all(s["outcome"]["details"]["hash_ok"] for s in made)


@pytest.fixture
def hidden_fio():
    """A command prefix in whose mount namespace there is no fio."""
    if os.geteuid() != 0:
        pytest.skip("not run: needs root to hide the system's fio")
    hide = "for f in /usr/bin/fio /usr/local/bin/fio; do [ ! -e $f ] || mount --bind /dev/null $f; "
    return ["unshare", "--mount", "sh", "-c", hide + 'done; exec "$@"', "sh"]


def test_without_fio_the_disk_stages_are_skipped_with_the_remedy(
    folders, start, hidden_fio, watched
):
    client, shared = folders
    with private_samba(str(shared), password=PASSWORD) as server:
        process, report = start(
            server, client, "--agent", "exec:", "--budget", "40", prefix=hidden_fio
        )
        watched.finish(process)
        assert process.returncode == 3
        found = json.loads(report.read_text())
        disks = [s["outcome"] for s in found["steps"] if s["stage"] == "disk"]
        assert disks and all(o["kind"] == "skipped" for o in disks)
        reasons = [o["reason"] for o in disks if "left out" not in o["reason"]]
        assert reasons and all("apt" in each for each in reasons)
        assert any(
            s["stage"] == "smb-copy" and s["outcome"]["kind"] == "measured" for s in found["steps"]
        )


def test_without_an_agent_the_server_is_not_guessed_at(folders, start, watched):
    client, shared = folders
    with private_samba(str(shared), password=PASSWORD) as server:
        process, report = start(server, client, "--budget", "30", command="probe smb-copy")
        watched.finish(process)
        assert process.returncode == 3
        found = json.loads(report.read_text())
        assert found["hosts"]["server"] is None
        copies = {c["copy"]: c for c in found["diagnosis"]["copies"]}
        uncached = copies["pull.uncached"]["verdict"]
        assert (uncached["component"], uncached["cause"]) == ("unknown", "not-measured")
        assert "agent" in uncached["sentence"]
        assert copies["pull.cached"]["bytes_per_second"] > 0
        assert watched.gone(client, shared)
