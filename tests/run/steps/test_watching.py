"""A copy's own connection is watched on both hosts, whatever happens meanwhile."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bottleneck.agents.hosts import Host, Result
from bottleneck.report.report import Step
from bottleneck.run import watched_sockets
from bottleneck.run.execution import Session, execute
from bottleneck.run.log import Event, Log, Task
from probes.core.records import Endpoint
from probes.programs.samba import private_samba
from probes.stages import smb_copy
from tests.living import below, until
from tests.run.steps.sessions import PASSWORD, reach, session_of, update_world

MIB = 1 << 20
SEED = "00ff11"
PINNED_BYTES = 8192


def watchers(host: Host) -> set[int]:
    """Returns an agent's children that ask the kernel about sockets (sock_diag is Eth 4)."""
    table = [line.split() for line in Path("/proc/net/netlink").read_text().splitlines()[1:]]
    inodes = {f"socket:[{fields[9]}]" for fields in table if fields[1] == "4"}
    return {pid for pid in below(host.process.pid) if inodes & set(open_files(pid))}


def open_files(pid: int) -> Iterator[str]:
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            yield str(Path(f"/proc/{pid}/fd/{name}").readlink())
    except OSError:
        return  # it ended meanwhile


@pytest.fixture
def open_run(tmp_path: Path) -> Callable[..., Any]:
    """A run whose share is open, with an agent beside the server."""

    @contextmanager
    def connected(
        *options: str, watch: Callable[[Event], None] = lambda event: None
    ) -> Iterator[Session]:
        shared = tmp_path / "shared"
        shared.mkdir()
        with private_samba(str(shared), password=PASSWORD, options=options) as server:
            session = session_of(server, tmp_path, watch, agent="exec:")
            with ExitStack() as stack:
                reach(session, stack, address=server.host)
                run_copy(session, "push.cached", 1 * MIB, fill_source=True)
                agents = list(session.world.hosts.values())
                yield session
                assert until(lambda: not any(map(watchers, agents)), 5.0)
            assert not session.unclosed

    return connected


def run_copy(session: Session, copy: str, size_bytes: int, fill_source: bool = False) -> Result:
    setting = smb_copy.Setting(
        copy=copy,
        dialect=session.files.dialect,
        end="memory",
        size_bytes=size_bytes,
        seconds=60.0,
        seed=session.world.seed,
        fill_source=fill_source,
    )
    step = Step(smb_copy.STAGE.name, asdict(setting), "client")
    return run_task(session, Task(step, setting, session.files.share, 70.0))


def run_task(session: Session, task: Task) -> Result:
    return execute(task, session.world, session.files, session.clock, session.log)


@pytest.mark.long
def test_a_send_buffer_that_smb_conf_fixes_is_seen_in_the_servers_own_socket(
    open_run: Callable[..., Any],
) -> None:
    with open_run(f"socket options = TCP_NODELAY SO_SNDBUF={PINNED_BYTES}") as started:
        facts = run_copy(started, "pull.cached", 1 * MIB).details["sockets"]
        assert facts["sender_seen"] and facts["receiver_seen"]
        # the kernel doubles what a program asks for, to count its own records (socket(7))
        assert facts["send_buffer_bytes"] == 2 * PINNED_BYTES
        assert facts["process"] == "smbd"
        pushed = run_copy(started, "push.cached", 1 * MIB).details.get("sockets", {})
        assert pushed.get("send_buffer_bytes", MIB) > 2 * PINNED_BYTES


@pytest.mark.long
def test_a_watch_that_dies_fails_no_copy_and_is_noted_once(open_run: Callable[..., Any]) -> None:
    killed: list[int] = []

    def kill(event: Event) -> None:
        if event.sample is not None and started:
            for pid in watchers(started[0].world.server):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    started: list[Any] = []
    with open_run(watch=kill) as session:
        started.append(session)
        for _ in range(2):
            ran = run_copy(session, "push.cached", 64 * MIB)
            assert ran.details["hash_ok"]
            assert ran.samples[-1].moved_bytes == 64 * MIB
            facts = ran.details["sockets"]
            assert (facts["sender_seen"], facts["receiver_seen"]) == (True, False)
        assert len(killed) == 2
        (note,) = session.log.notes
        assert note.startswith("server: ") and "signal 9" in note


@pytest.mark.long
def test_what_a_watch_tells_amiss_is_noted_and_fails_no_copy(
    open_run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_run() as session:
        real_next = session.world.server.next

        def amiss(*arguments: Any) -> Any:
            reply = real_next(*arguments)
            return {**reply, "observed": [{"own": 7}]} if "observed" in reply else reply

        monkeypatch.setattr(session.world.server, "next", amiss)
        facts = run_copy(session, "push.cached", 64 * MIB).details["sockets"]
        assert (facts["sender_seen"], facts["receiver_seen"]) == (True, False)
        (note,) = session.log.notes
        assert note.startswith("server: connections of the copies: not observed")


@pytest.mark.long
@pytest.mark.parametrize("answer", [5, {}, {"clock_seconds": "x"}, {"clock_seconds": float("inf")}])
def test_counters_without_a_time_leave_the_watch_without_a_window(
    open_run: Callable[..., Any], answer: Any
) -> None:
    with open_run() as on:
        ran = run_copy(on, "push.cached", 1 * MIB)
        step = Step(smb_copy.STAGE.name, {"copy": "push.cached"}, "client")
        with watched_sockets.watch_copy(
            on.world, on.files, on.log, step, on.files.share, 9.0
        ) as watches:
            watches.finish(ran.initiator, (answer, answer))
        watches.annotate(ran)
        (note,) = on.log.notes
        assert note.startswith("server: ") and "counters" in note


@pytest.mark.long
def test_a_copy_that_breaks_leaves_no_watch_behind(open_run: Callable[..., Any]) -> None:
    with open_run() as on, pytest.raises(ValueError):
        setting = smb_copy.Setting("push.cached", "3.1.1", "memory", MIB, 9.0, seed=SEED)
        step = Step(smb_copy.STAGE.name, asdict(setting), "client")

        def fail() -> float:
            assert watchers(on.world.client) and watchers(on.world.server)
            raise ValueError

        run_task(on, Task(step, setting, on.files.share, 10.0, finish=fail))


def watched_ports(stage: str, mount: dict[str, Any], address: str) -> dict[str, tuple[int, ...]]:
    session = update_world(session_of(), address=address)
    session.files.share = Endpoint(facts={"mount": mount})
    step = Step(stage, {"copy": "pull.cached"}, "client")
    watching = watched_sockets.Watching(session.world, session.files, Log(), step)
    settings = watched_sockets._settings(watching, Endpoint(), 9.0)
    return {side: setting.ports for side, setting in settings.items()}


def test_of_a_mount_its_servers_address_and_port_are_watched() -> None:
    mount = {"remote": True, "options": "rw,vers=3.1.1,addr=10.0.0.2,port=4450"}
    ports = watched_ports("native-copy", mount, "10.0.0.2")
    assert ports == {"client": (4450, 445, 139), "server": (4450, 445, 139)}


def test_of_a_mount_without_an_address_all_connections_to_that_port_are_watched() -> None:
    """FUSE shows none; what did not carry the copy's bytes is left out afterwards."""
    remote = {"remote": True, "options": "rw"}
    assert set(watched_ports("native-copy", remote, "")) == {"client", "server"}


def test_nothing_is_watched_where_no_copy_goes_over_a_known_connection() -> None:
    remote = {"remote": True, "options": "rw"}
    assert watched_ports("smb-copy", remote, "") == {}
    assert watched_ports("native-copy", {"remote": False, "options": "rw"}, "127.0.0.1") == {}
    assert watched_ports("tcp", remote, "10.0.0.2") == {}
