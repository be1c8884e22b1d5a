"""An agent on the server, from a Windows client under wine: by ssh, whose program is a stand-in
that passes its streams to this host's ssh and a real sshd (ssh_exe.py)."""

import json
import signal
import subprocess

import psutil
import pytest

from bottleneck.agents.bootstrap import STARTER
from tests.conftest import PASSWORD, target_of
from tests.living import until
from tests.windows import bed, ssh_exe
from tests.windows.test_worlds import (
    INTERRUPTED_SECONDS,
    SECONDS,
    ended,
    running,
    under_way,
    user_files,
)

pytestmark = pytest.mark.long


@pytest.fixture
def agents(sshd):
    """Tells which agents came to this host by this sshd, and the ssh's that lead to them.

    Other tests have their own at the same time.
    """

    def led_here(process):
        words = " ".join(process["cmdline"] or ())
        there = (process["environ"] or {}).get("SSH_CONNECTION", "")
        mine = str(sshd.folder) in words or there.endswith(f" {sshd.port}")
        return STARTER in words and mine

    return lambda: [
        each.pid for each in psutil.process_iter(["cmdline", "environ"]) if led_here(each.info)
    ]


@pytest.fixture
def ssh(windows, sshd):
    """Yields a client's environment in which this sshd is `nas`."""
    with ssh_exe.planted(windows, sshd.folder / "bin" / "ssh") as variables:
        yield variables


def measured(report, stage, **setting):
    return [
        each["outcome"]
        for each in report["steps"]
        if each["stage"] == stage
        and each["outcome"]["kind"] == "measured"
        and setting.items() <= each["setting"].items()
    ]


def test_the_server_is_measured_by_its_agent(windows, samba, ssh, agents, tmp_path):
    server, _ = samba
    file = tmp_path / "report.json"
    code, output = ended(
        windows,
        target_of(server),
        server.username,
        PASSWORD,
        *f"--agent ssh://nas --budget 60 --json {bed.windows_path(file)}".split(),
        **ssh,
    )
    assert code in (0, 3), output
    report = json.loads(file.read_text())
    assert not [each for each in report["steps"] if each["outcome"]["kind"] == "failed"]
    assert report["hosts"]["server"]["system"].startswith("Linux")
    for verb in ("push", "pull"):
        (step, *_) = measured(report, "tcp", verb=verb)
        assert step["usage"]["server"]["busiest_core_ratio"] > 0
        assert step["details"]["limits"]
    copies = measured(report, "smb-copy")
    assert copies and all(each["usage"]["server"] for each in copies)
    assert not user_files(windows) and not running(windows)
    assert until(lambda: not agents())


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nobody-of-that-name@nas", "it accepts no key of this user"),
        ("nowhere.invalid", "the name cannot be resolved"),
        ("nas:9", "nothing accepts connections on that port"),
    ],
)
def test_a_login_that_ssh_refuses_ends_with_69_and_sshs_words(
    windows, samba, ssh, agents, place, said
):
    server, _ = samba
    target = target_of(server)
    option = ("--agent", f"ssh://{place}")
    code, output = ended(windows, target, server.username, PASSWORD, *option, **ssh)
    complaints = [line for line in output.splitlines() if line.startswith("bottleneck: ")]
    assert code == 69 and len(complaints) == 1 and said in complaints[0], output
    assert not user_files(windows) and not running(windows) and not agents()


@pytest.mark.parametrize(
    ("work", "said"),
    [
        # A pipe of Windows makes its writer wait: the deadline of a request would not be kept.
        ("write_without_waiting", f"{1 << 20} True True True"),
        # Round trips take less than a tick of Windows' usual clock.
        ("read_the_clock", "probes.system.platform True"),
    ],
)
def test_pipes_and_clock_are_as_the_stages_need_them(windows, work, said):
    code = f"import sys; sys.path[:0] = [{bed.windows_path(bed.ROOT)!r}]"
    code += f"; from tests.windows import child_work; child_work.{work}()"
    done = subprocess.run(
        [bed.WINE, str(windows.python), "-c", code],
        env=windows.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert " ".join(done.stdout.split()) == said, done


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_ended_run_leaves_no_agent(windows, samba, ssh, agents, number):
    with under_way(windows, samba, "--agent", "ssh://nas", **ssh) as run:
        assert agents()
        run.send_signal(number)
        _, output = run.communicate(timeout=INTERRUPTED_SECONDS)
    if number == signal.SIGINT:
        assert run.returncode == 130 and "both hosts were cleaned up" in output, output
    assert until(lambda: not agents(), SECONDS)
