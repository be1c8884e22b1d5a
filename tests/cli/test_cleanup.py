"""`bottleneck cleanup` removes what killed runs left, here and on the share, and nothing else."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probes.system import processes
from probes.system.reader import reader
from tests import living
from tests.probes.files.test_leftovers import ID, RUN, SOURCE, make_folder

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


def some_are_hidden():
    return os.geteuid() != 0 or not processes.sees_all(reader().processes())


@pytest.fixture
def cleanup(bottleneck, tmp_path):
    """Runs it in a folder of its own, and looks at nothing else."""
    user_folder = tmp_path / "own"
    user_folder.mkdir()
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def run(*arguments, environment=None, **options):
        if {"--older-than", "0", "--yes"} <= set(arguments) and some_are_hidden():
            pytest.skip("NOT RUN: what is young only goes where root sees every process")
        folder = () if "--folder" in arguments else ("--folder", user_folder)
        environment = {**(environment or {}), "XDG_STATE_HOME": str(scratch)}
        return bottleneck("cleanup", *arguments, *folder, environment=environment, **options)

    run.user_folder, run.scratch = user_folder, scratch
    return run


def test_nothing_found_is_done(cleanup):
    done = cleanup("--yes", "--older-than", "86400")
    assert done.code == 0, done.err


def test_without_a_yes_and_a_terminal_nothing_is_removed(cleanup):
    path = make_folder(cleanup.user_folder)
    assert "a run may use it" in cleanup("--yes").out
    assert cleanup("--older-than", "0", "--dry-run").code == 0
    done = cleanup("--older-than", "0")
    assert done.code == 64 and "--yes" in done.complaint
    assert (path / SOURCE).exists()
    done = cleanup("--older-than", "0", "--yes")
    assert done.code == 0 and f"removed here   {path}" in done.out
    assert not path.exists()


KILLED = """
import os, signal, sys
from probes.files.created_folder import own_folder
with own_folder("tree", sys.argv[1], "bottleneck-demo") as made:
    made.create()
    os.close(made.new_file("whatever"))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_killed_with_all_its_processes_goes_wherever_it_lies(cleanup, tmp_path):
    """A container ends so. The owner is certain: the age is not asked for."""
    environment = {**os.environ, "XDG_STATE_HOME": str(cleanup.scratch)}
    subprocess.run([sys.executable, "-c", KILLED, tmp_path], cwd=ROOT, env=environment)
    leftover = tmp_path / "bottleneck-demo"
    assert (leftover / "whatever").exists()
    assert f"ours    here   {leftover}: created" in cleanup("--dry-run").out
    assert leftover.exists()
    done = cleanup("--yes")
    assert done.code == 0 and f"removed here   {leftover}" in done.out
    assert not leftover.exists()
    assert cleanup("--yes").out == "No files of an interrupted run found.\n"


def test_names_are_made_safe(cleanup):
    path = make_folder(cleanup.user_folder)
    (path / "a\x1b[2J\u202eb").write_text("x")
    done = cleanup("--older-than", "0", "--yes")
    assert done.code == 3
    assert "\x1b" not in done.out and "\u202e" not in done.out
    assert "not from a run" in done.out


def on_share(cleanup, target, auth_file, *extra):
    return cleanup(target, "--auth-file", auth_file, "--older-than", "0", *extra)


def test_on_a_share_only_a_runs_folder_goes(cleanup, samba, target, auth_file):
    _, shared = samba
    ours = make_folder(shared)
    foreign = make_folder(shared, f"bottleneck-{ID[::-1]}", (f"source-{ID[::-1]}", "diary"))
    other = make_folder(shared, "bottleneck-not-a-run")
    try:
        assert "changed" in cleanup(target, "--auth-file", auth_file, "--yes").out
        assert ours.exists()
        done = on_share(cleanup, target, auth_file, "--yes")
        assert done.code == 3, done.err  # the foreign ones are left
        assert f"removed share  {target}/{ours.name}" in done.out
        assert "diary" in done.out
        assert not ours.exists()
        assert any(foreign.glob("source*")) and any(other.glob("source*"))
    finally:
        for each in (*foreign.iterdir(), *other.iterdir()):
            each.unlink()
        foreign.rmdir()
        other.rmdir()


@pytest.mark.parametrize(("share", "password", "code"), [("share", "wrong", 77), ("none", "", 69)])
def test_a_share_that_says_no_does_not_keep_this_host_from_it(
    cleanup, samba, share, password, code
):
    server, _ = samba
    path = make_folder(cleanup.user_folder)
    done = cleanup(
        f"//{server.host}:{server.port}/{share}",
        "--user",
        server.username,
        *"--older-than 0 --yes".split(),
        password=password or server.password,
    )
    assert done.code == code
    assert f"removed here   {path}" in done.out and not path.exists()


def test_a_servers_own_leftovers_go_through_its_agent(cleanup, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    path = make_folder(there)
    arguments = ("--agent", "exec:env", "--server-folder", there, "--older-than", "0", "--yes")
    done = cleanup(*arguments)
    assert done.code == 0 and f"removed server {path}" in done.out
    assert not path.exists()


def test_a_link_on_a_share_is_never_followed(cleanup, samba, target, auth_file, tmp_path):
    _, shared = samba
    outside = make_folder(tmp_path, "outside")
    (shared / RUN).symlink_to(outside)
    try:
        on_share(cleanup, target, auth_file, "--yes")
        assert (outside / SOURCE).exists()
    finally:
        (shared / RUN).unlink(missing_ok=True)


HELD = """
import sys
from bottleneck.agents import hosts
from probes.core.records import Access, Endpoint
from probes.smb import run_folder
_, port, user, password = sys.argv
with hosts.start_here() as host:
    peer = Endpoint(host="127.0.0.1", port=int(port), share="share", access=Access(user, password))
    with host.hold("run-folder", run_folder.Setting("00112233445566aa"), peer, 90, 30):
        print("held", flush=True)
        sys.stdin.read()
"""


def start_holder(server):
    process = living.running(HELD, server.port, server.username, server.password)
    assert process.stdout.readline() == "held\n"
    return process


def test_the_folder_of_a_run_that_lives_is_left_alone(cleanup, samba, target, auth_file):
    server, shared = samba
    with start_holder(server) as run:
        done = on_share(cleanup, target, auth_file, "--yes")
        assert "another client has it open" in done.out
        there = cleanup("--folder", shared, "--older-than", "0", "--yes")
        assert "has it open" in there.out
        assert (shared / "bottleneck-00112233445566aa" / "source-00112233445566aa").exists()
        run.stdin.close()


SERVER = """
import sys
from probes.programs.samba import private_samba
with private_samba(sys.argv[1], password="secret") as server:
    print(server.process_id, server.port, server.username, flush=True)
    sys.stdin.read()
"""


def test_a_run_killed_with_its_server_leaves_a_folder_that_goes(cleanup, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    with living.running(SERVER, shared) as starter:
        smbd, port, user = starter.stdout.readline().split()
        with living.running(HELD, port, user, "secret") as run:
            assert run.stdout.readline() == "held\n"
            # The server first: nobody is left who would delete what was to go at its close.
            os.killpg(int(smbd), signal.SIGKILL)
            run.kill()
        starter.kill()
    leftover = shared / "bottleneck-00112233445566aa"
    assert (leftover / "source-00112233445566aa").exists()
    until = time.monotonic() + 20
    done = cleanup("--folder", shared, "--older-than", "0", "--yes")
    while leftover.exists() and time.monotonic() < until:
        time.sleep(0.2)  # its agent's children may still be ending
        done = cleanup("--folder", shared, "--older-than", "0", "--yes")
    assert done.code == 0
    assert not leftover.exists()
