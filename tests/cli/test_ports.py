"""Nothing of ours listens on a host but a test's data port and the client's temporary share."""

import contextlib
import time

import psutil
import pytest

from tests.conftest import PASSWORD, target_of
from tests.living import GENEROUS_SECONDS

pytestmark = pytest.mark.long
LOOK_SECONDS = 0.02


def ports_of(process):
    """Ports that a process of ours listens on, with what it is: coordinator, agent, child."""
    listeners = set()
    with contextlib.suppress(psutil.Error):
        agents = process.children()
        kinds = {process: "coordinator", **dict.fromkeys(agents, "agent")}
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                kind = kinds.get(each) or each.name().partition("[")[0]
                ports = each.net_connections(kind="tcp")
                listeners |= {(kind, e.laddr.port) for e in ports if e.status == psutil.CONN_LISTEN}
    return listeners


def test_in_a_run_no_coordinator_and_no_agent_listens(samba, begin, tmp_path):
    server, _ = samba
    run = begin(
        *f"diagnose {target_of(server)} --user {server.username} --folder {tmp_path}".split(),
        *"--agent exec: --yes --quiet --budget 60".split(),
        environment={"BOTTLENECK_PASSWORD": PASSWORD},
    )
    listeners, process = set(), psutil.Process(run.pid)
    until = time.monotonic() + 4 * GENEROUS_SECONDS
    while run.poll() is None and time.monotonic() < until:
        listeners |= ports_of(process)
        time.sleep(LOOK_SECONDS)
    assert run.returncode in (0, 3)
    kinds = {kind for kind, _ in listeners}
    # Data ports are children's, for their seconds; smbd serves the client's temporary share.
    assert not kinds & {"coordinator", "agent"}, listeners
    assert any(kind.startswith("python") for kind in kinds), listeners
    assert kinds <= {"smbd", *(kind for kind in kinds if kind.startswith("python"))}, listeners
