"""No process that holds the password shows it: coordinator, agents, the child that logs in."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bottleneck.agents import hosts

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
PASSWORD = "hunter2-and-more"


def shown_environment(pid):
    """Returns a process's environment as /proc has it; only root may look."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except PermissionError:
        return b""


def test_no_process_of_a_run_leaves_a_core_or_shows_the_password(
    tmp_path, is_private, unprivileged
):
    """Its server takes the connection and says nothing: by then the login is in all of them."""
    environment = {**os.environ, "BOTTLENECK_PASSWORD": PASSWORD, "PYTHONPATH": str(ROOT)}
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        target = f"//127.0.0.1:{server.getsockname()[1]}/share"
        options = ["--user", "anna", "--folder", tmp_path, "--yes"]
        process = subprocess.Popen(
            [sys.executable, "-m", "bottleneck", "diagnose", target, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            preexec_fn=unprivileged,
        )
        try:
            with server.accept()[0]:
                coordinator = psutil.Process(process.pid)
                others = coordinator.children(recursive=True)
                assert len(others) >= 2, "an agent and its child"
                for each in (coordinator, *others):
                    assert is_private(each.pid), each
                    assert PASSWORD.encode() not in shown_environment(each.pid), each
        finally:
            process.kill()
            process.wait()


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="NOT RUN: setpriv(1) is missing")
def test_the_agent_that_travels_is_private(is_private):
    with hosts.start_there("exec:setpriv --bounding-set=-all --inh-caps=-all") as host:
        assert is_private(host.process.pid)
