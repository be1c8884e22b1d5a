"""Under wine a Windows client names the cap that the lab planted, ends as promised, and leaves
nothing behind. The path is real, the cards and disks are the host's."""

import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import psutil
import pytest

from tests.conftest import PASSWORD, target_of
from tests.windows import bed, ssh_exe

sys.path.append(str(bed.ROOT / "tests" / "lab"))
import experiment  # noqa: E402
import judge  # noqa: E402
import link  # noqa: E402
import truth  # noqa: E402
import world as lab  # noqa: E402

LINK_RATIO = 0.03
"""By which a link may be told wrongly."""
SECONDS = 60
INTERRUPTED_SECONDS, ENDED_SECONDS = 20, 120

pytestmark = pytest.mark.lab


def user_files(windows):
    """Files of runs in the Windows user's own folders."""
    return [str(each) for each in (windows.folder / "prefix/drive_c").rglob("*bottleneck-*")]


def running(windows):
    """Processes of the Windows Python."""
    process = psutil.process_iter(["name", "environ"])
    prefix = windows.environment()["WINEPREFIX"]
    return [
        each.pid
        for each in process
        if each.info["name"] == "python.exe"
        and (each.info["environ"] or {}).get("WINEPREFIX") == prefix
    ]


@contextmanager
def by_ssh(windows, scene):
    """Option and variables of an agent on the lab's server, where the stand-in for ssh leads."""
    ssh = scene.work / "ssh"
    # As ssh does: its last word is for the shell there.
    ssh.write_text(f'#!/bin/sh\nfor last; do :; done\nexec {scene.server.script} sh -c "$last"\n')
    ssh.chmod(0o755)
    with ssh_exe.planted(windows, ssh, [scene.client.script]) as variables:
        yield ("--agent", "ssh://nas"), variables


@contextmanager
def nobody(windows, scene):
    yield (), {}


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        *((name, nobody) for name in ("link-10", "link-100", "link-1000", "rtt-20-credits")),
        *((name, by_ssh) for name in ("link-100", "server-read", "server-quota")),
    ],
)
def test_a_windows_client_names_the_planted_cap(windows, name, agent):
    if lacks := lab.missing():
        pytest.skip("NOT TESTED: " + "; ".join(lacks))
    case = truth.WORLDS[name]
    with lab.world(case.plant) as scene, agent(windows, scene) as (option, variables):
        file = scene.work / "report.json"
        command = windows.command(
            *f"diagnose {scene.share.target} --user {scene.share.user} --yes --quiet".split(),
            *f"--budget {SECONDS} --json {bed.windows_path(file)}".split(),
            *option,
        )
        environment = windows.environment(BOTTLENECK_PASSWORD=scene.share.password, **variables)
        done = scene.client.run(command, environment=environment, seconds=3 * SECONDS, check=False)
        assert file.exists(), done
        document = json.loads(file.read_text())
        remaining = experiment.left_behind(scene)
    assert not remaining and not user_files(windows)
    terms = experiment.Terms(agent=agent is by_ssh, beside=False)
    ran = experiment.judge_run(case, document, terms)
    assert {each.grade for each in ran.verdicts} - {judge.NOT_COUNTED} == {judge.RIGHT}, ran
    assert not ran.unlawful
    card = document["hosts"]["client"]["interface"]
    assert (card["name"], card["address"]) == (link.INTERFACE, scene.client_address)
    for copy in document["diagnosis"]["copies"]:
        verdict = copy["verdict"]
        if verdict["cause"] == "link-rate":
            shaped = case.plant.payload_bytes_per_second(copy["copy"].partition(".")[0])
            assert abs(verdict["ceiling_bytes_per_second"] / shaped - 1) <= LINK_RATIO, copy


def ended(windows, target, user, password, *extra, **variables):
    """Exit code and stderr of a run from Windows."""
    command = windows.command("diagnose", target, "--user", user, "--yes", "--budget", "30", *extra)
    done = subprocess.run(
        command,
        cwd=bed.ROOT,
        env=windows.environment(BOTTLENECK_PASSWORD=password, **variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=ENDED_SECONDS,
        check=False,
    )
    return done.returncode, done.stderr


def test_a_wrong_password_ends_with_77_and_a_closed_port_with_69(windows, samba):
    server, _ = samba
    code, output = ended(windows, target_of(server), server.username, "wrong")
    assert code == 77 and "Traceback" not in output, output
    code, output = ended(windows, "//127.0.0.1:9/share", server.username, PASSWORD)
    assert code == 69 and "Traceback" not in output, output
    assert not user_files(windows)


@contextmanager
def never_accepting():
    """A port whose queue is full: the kernel drops what else comes to it, as a firewall does."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listening, ExitStack() as waiting:
        for _ in range(3):
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            with suppress(BlockingIOError):
                one.connect(listening.getsockname())
        yield listening


@pytest.mark.parametrize(
    ("port", "said"),
    [
        (partial(socket.create_server, ("127.0.0.1", 0)), "negotiate: no answer in 10 s"),
        (never_accepting, "connect: no answer within 5 s"),
    ],
)
def test_a_host_that_never_answers_ends_with_69(windows, port, said):
    with port() as silent:
        code, output = ended(windows, f"//127.0.0.1:{silent.getsockname()[1]}/share", "a", "p")
    assert code == 69 and said in output and "Traceback" not in output, output
    assert not user_files(windows) and not running(windows)


@contextmanager
def under_way(windows, samba, *extra, **variables):
    """A run from Windows that has files on the share; then that nothing is left of it."""
    server, shared = samba

    def files():
        return {each for each in shared.rglob("*") if each.is_file()}

    files_before = files()
    command = windows.command(
        *f"diagnose {target_of(server)} --user {server.username} --yes --budget 60".split(), *extra
    )
    run = subprocess.Popen(
        command,
        cwd=bed.ROOT,
        env=windows.environment(BOTTLENECK_PASSWORD=PASSWORD, **variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + SECONDS
    while not files() - files_before:
        assert time.monotonic() < deadline and run.poll() is None
        time.sleep(0.05)
    assert running(windows)
    yield run
    while remaining := [*running(windows), *files() - files_before]:
        assert time.monotonic() < deadline, remaining
        time.sleep(0.05)
    assert not user_files(windows)


def test_a_run_from_windows_that_is_killed_leaves_nothing(windows, samba):
    """Its processes end with it; its files are deleted on close, by the server and by this host."""
    with under_way(windows, samba) as run:
        run.kill()
        run.communicate(timeout=SECONDS)


def test_ctrl_c_of_a_run_from_windows_is_130_and_its_documents_and_leaves_nothing(
    windows, samba, tmp_path
):
    """wine makes a CTRL_C_EVENT of SIGINT; Windows' Python has no signal of POSIX there."""
    report, page = tmp_path / "report.json", tmp_path / "report.html"
    documents = ("--json", bed.windows_path(report), "--html", bed.windows_path(page))
    with under_way(windows, samba, *documents) as run:
        run.send_signal(signal.SIGINT)
        _, output = run.communicate(timeout=INTERRUPTED_SECONDS)
    complaints = [line for line in output.splitlines() if line.startswith("bottleneck: ")]
    assert run.returncode == 130, output
    assert complaints == ["bottleneck: interrupted; both hosts were cleaned up"]
    assert json.loads(report.read_text())["status"] == "interrupted"
    assert "run was interrupted" in page.read_text()
    assert {each.name for each in tmp_path.iterdir()} == {report.name, page.name}
