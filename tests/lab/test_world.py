"""A world goes away without a trace, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import cgroups
import pytest
from plant import Caps, Plant
from world import PREFIX, WORK, missing, world

from tests.living import running

pytestmark = pytest.mark.lab

SLOW = Plant(server=Caps(disk_read_bytes_per_second=25_000_000, quota_ratio=0.5))
CHILD = """
import sys, time
sys.path.append(sys.argv[1])
from test_world import SLOW
from world import world
with world(SLOW) as lab:
    print(lab.work, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _needs_a_lab() -> None:
    if lacks := missing():
        pytest.skip("not run: " + "; ".join(lacks))


def _traces(owner: int) -> list[str]:
    """Groups, folders, loop devices and processes of the lab of this process id."""
    name = f"{PREFIX}{owner}-"
    groups = [g for c in cgroups.CONTROLLERS for g in (cgroups.ROOT / c).glob(f"{name}*")]
    loops = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True)
    lines = [line for line in loops.stdout.splitlines() if name in line]
    return [str(each) for each in [*groups, *WORK.glob(f"{name}*")]] + lines


def test_a_world_that_breaks_leaves_nothing() -> None:
    """An exception inside takes everything down: groups, disks, throttles, folders."""
    text = {file: file.read_text() for file in cgroups.THROTTLES.values()}
    with pytest.raises(ZeroDivisionError), world(SLOW) as lab:
        assert lab.server.run(["hostname"]).stdout == "server\n"
        assert _traces(os.getpid())
        assert "25000000" in cgroups.THROTTLES["read"].read_text()
        raise ZeroDivisionError
    assert _traces(os.getpid()) == []
    assert {file: file.read_text() for file in cgroups.THROTTLES.values()} == text


def test_the_next_world_sweeps_what_a_killed_one_left() -> None:
    """After kill -9 the throttle and the folders are still there, until a lab starts again."""
    child = running(CHILD, Path(__file__).parent)
    assert child.stdout is not None
    work = child.stdout.readline().strip()
    assert Path(work).is_dir()
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert _traces(child.pid)
    with world(Plant()):
        assert _traces(child.pid) == []
        assert "25000000" not in cgroups.THROTTLES["read"].read_text()


def test_the_hosts_see_their_own_network_and_limits() -> None:
    """Each has its interface, name and core, and sees its cgroups as a container does."""
    with world(SLOW) as lab:
        for host, core in ((lab.client, "0"), (lab.server, "1")):
            script = "hostname; ls /sys/class/net; grep Cpus_allowed_list /proc/self/status"
            words = host.run(["sh", "-c", script]).stdout.split()
            assert words == [host.name, "eth0", "lo", "Cpus_allowed_list:", core]
        quota = f"/sys/fs/cgroup/cpu/{lab.server.group}/cpu.cfs_quota_us"
        # The server is entered from the client, as the product's agent is.
        assert lab.client.run([lab.server.script, "cat", quota]).stdout == "50000\n"


def test_a_host_has_kernel_settings_and_a_congestion_control_of_its_own() -> None:
    """They come after the link, which widens the windows, and the other host keeps its own."""
    small = "4096\t65536\t131072"
    client = Caps(sysctls=(("net.ipv4.tcp_rmem", small),), congestion_control="reno")
    with world(Plant(client=client, round_trip_seconds=0.004, mtu_bytes=1500)) as lab:
        words = "cat /proc/sys/net/ipv4/tcp_rmem /sys/class/net/eth0/mtu; ip route"
        reno, other = (host.run(["sh", "-c", words]).stdout for host in (lab.client, lab.server))
        assert reno.startswith(f"{small}\n1500\n")
        assert "congctl reno" in reno
        assert small not in other
        assert "congctl" not in other
