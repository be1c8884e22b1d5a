"""A fault in mid-run: one line, the contract's code, what was measured so far, nothing left."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from probes.drivers.samba import private_samba

ROOT = Path(__file__).parents[2]
PASSWORD = "p"


@pytest.fixture
def folders(tmp_path):
    """The client's folder and the share's."""
    made = tmp_path / "client", tmp_path / "shared"
    for each in made:
        each.mkdir()
    return made


@pytest.fixture
def start(tmp_path):
    """Starts a diagnosis and gives its process and the report's path."""
    started = []

    def go(server, folder, *more, command="diagnose", environment=None, prefix=()):
        report = tmp_path / "report.json"
        command = [*prefix, sys.executable, "-m", "bottleneck", *command.split()]
        command += [f"//{server.host}:{server.port}/{server.share}", "--user", server.username]
        command += ["--folder", str(folder), "--yes", "--json", str(report), *more]
        known = {**os.environ, "PYTHONPATH": str(ROOT), "BOTTLENECK_PASSWORD": PASSWORD}
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**known, **(environment or {})},
        )
        started.append(process)
        return process, report

    yield go
    for process in started:
        process.kill()
        process.wait()


def wait_for(process, pattern):
    """Reads progress from stderr until a line matches; the lines read."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        if re.search(pattern, line):
            return lines
    raise AssertionError(f"no line like {pattern}: {''.join(lines)}")


def finish(process, seconds=60):
    """Output, our one complaint and the exit code."""
    out, err = process.communicate(timeout=seconds)
    assert "Traceback" not in err, err
    return out, [line for line in err.splitlines() if line.startswith("bottleneck: ")]


def names_in(*folders):
    return sorted(str(path) for each in folders for path in each.rglob("*"))


def gone(*folders, seconds=5.0):
    """Whether nothing is left in the folders, within the time that a server may take."""
    until = time.monotonic() + seconds
    while names_in(*folders) and time.monotonic() < until:
        time.sleep(0.05)
    return names_in(*folders) == []


def descendants(pid):
    """Live processes below one."""
    found, todo = [], [pid]
    while todo:
        parent = todo.pop()
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent and fields[0] != "Z":
                found.append(int(path.parent.name))
                todo.append(int(path.parent.name))
    return found


def living(pids):
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in {"Z", "X"}:
            found.append(pid)
    return found


def all_end(pids, seconds=5.0):
    until = time.monotonic() + seconds
    while living(pids) and time.monotonic() < until:
        time.sleep(0.05)
    return living(pids) == []


def test_ctrl_c_keeps_what_was_measured_and_leaves_nothing(folders, start):
    client, shared = folders
    with private_samba(str(shared), password=PASSWORD) as server:
        process, report = start(server, client, "--agent", "exec:", "--budget", "30")
        wait_for(process, "push.cached 3")
        family = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        _, complaints = finish(process, 15)
        assert process.returncode == 130
        assert len(complaints) == 1 and "interrupted" in complaints[0]
        found = json.loads(report.read_text())
        assert found["status"] == "interrupted"
        assert any(step["outcome"]["kind"] == "measured" for step in found["steps"])
        assert gone(client, shared)
        assert all_end(family)


def test_ctrl_c_with_json_on_stdout_is_one_document(folders, start):
    client, shared = folders
    with private_samba(str(shared), password=PASSWORD) as server:
        process, _ = start(server, client, "--json", "-", "--budget", "30")
        wait_for(process, "loopback client")
        process.send_signal(signal.SIGINT)
        out, _ = finish(process, 15)
        assert process.returncode == 130
        assert json.loads(out)["status"] == "interrupted"


@pytest.mark.parametrize(
    "moment", ["loopback client", "tcp pull x1", "client write", "push.cached 3"]
)
def test_kill_9_leaves_no_file_and_no_process(folders, start, moment):
    client, shared = folders
    with private_samba(str(shared), password=PASSWORD) as server:
        process, _ = start(server, client, "--agent", "exec:", "--budget", "30")
        wait_for(process, moment)
        family = descendants(process.pid)
        assert family
        process.kill()
        process.wait()
        assert all_end(family)
        assert gone(client, shared)


def test_a_server_killed_in_mid_copy_is_named_with_how_far_it_came(folders, start):
    client, shared = folders
    with private_samba(str(shared), password=PASSWORD) as server:
        process, report = start(server, client, "--budget", "40", "--size", "1GiB")
        wait_for(process, "disk client write")
        until_copying(shared)
        os.killpg(server.process_id, signal.SIGKILL)
        finish(process)
        assert process.returncode in {3, 69}
        found = json.loads(report.read_text())
        broken = [s for s in found["steps"] if s["outcome"]["kind"] == "failed"]
        assert broken and server.host in broken[0]["outcome"]["error"]
        assert all(c["verdict"]["component"] == "unknown" for c in found["diagnosis"]["copies"])
        assert gone(client)


def until_copying(shared, seconds=30):
    """Waits until payload has arrived on the share."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if any(path.is_file() and path.stat().st_size > 1 << 20 for path in shared.rglob("*")):
            return
        time.sleep(0.01)
    raise AssertionError("no copy began")


@pytest.mark.parametrize(
    ("option", "key"),
    [("server signing = mandatory", "signing"), ("server smb encrypt = required", "encryption")],
)
def test_what_the_server_requires_is_used_and_reported(folders, start, option, key):
    client, shared = folders
    with private_samba(str(shared), password=PASSWORD, options=[option]) as server:
        process, report = start(server, client, "--budget", "10", command="probe smb-copy")
        finish(process)
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


def test_without_fio_the_disk_stages_are_skipped_with_the_remedy(folders, start, hidden_fio):
    client, shared = folders
    with private_samba(str(shared), password=PASSWORD) as server:
        process, report = start(
            server, client, "--agent", "exec:", "--budget", "12", prefix=hidden_fio
        )
        finish(process)
        assert process.returncode == 3
        found = json.loads(report.read_text())
        disks = [s["outcome"] for s in found["steps"] if s["stage"] == "disk"]
        assert disks and all(o["kind"] == "skipped" for o in disks)
        assert all("apt" in o["reason"] for o in disks)
        assert any(
            s["stage"] == "smb-copy" and s["outcome"]["kind"] == "measured" for s in found["steps"]
        )


def test_without_an_agent_the_server_is_not_guessed_at(folders, start):
    client, shared = folders
    with private_samba(str(shared), password=PASSWORD) as server:
        process, report = start(server, client, "--budget", "10", command="probe smb-copy")
        finish(process)
        assert process.returncode == 3
        found = json.loads(report.read_text())
        assert found["hosts"]["server"] is None
        copies = {c["copy"]: c for c in found["diagnosis"]["copies"]}
        uncached = copies["pull.uncached"]["verdict"]
        assert (uncached["component"], uncached["cause"]) == ("unknown", "not-measured")
        assert "agent" in uncached["sentence"]
        assert copies["pull.cached"]["bytes_per_second"] > 0
        assert gone(client, shared)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 24 MiB that is nearly full."""
    if os.geteuid() != 0:
        pytest.skip("not run: needs root to mount a small file system")
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "small", folder], check=True)
    (folder / "full").write_bytes(bytes(23 << 20))
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_on_the_client_is_named(small_disk, folders, start):
    _, shared = folders
    with private_samba(str(shared), password=PASSWORD) as server:
        process, _ = start(server, small_disk, "--budget", "8")
        out, complaints = finish(process)
        assert process.returncode == 3
        assert str(small_disk) in "".join(complaints) + out
        assert names_in(small_disk) == [str(small_disk / "full")]
        assert gone(shared)


def test_a_full_disk_on_the_server_is_named(small_disk, folders, start):
    client, _ = folders
    with private_samba(str(small_disk), password=PASSWORD) as server:
        process, report = start(server, client, "--agent", "exec:", "--budget", "8")
        out, complaints = finish(process)
        assert process.returncode == 3
        said = report.read_text() + out + "".join(complaints)
        assert "room" in said or "full" in said
        assert gone(client)
        assert names_in(small_disk) == [str(small_disk / "full")]


def test_the_password_is_nowhere(folders, start, tmp_path):
    client, shared = folders
    canary = "Canary-7f3a-%s-Pass"
    with private_samba(str(shared), password=canary) as server:
        seen = []

        def watch(process):
            while process.poll() is None:
                for pid in [process.pid, *descendants(process.pid)]:
                    for name in ("cmdline", "environ"):
                        try:
                            if pid != process.pid or name == "cmdline":
                                seen.append(Path(f"/proc/{pid}/{name}").read_bytes())
                        except OSError:
                            continue
                time.sleep(0.05)

        process, report = start(
            server,
            client,
            *("--agent", "exec:", "--budget", "6"),
            command="probe smb-copy",
            environment={"BOTTLENECK_PASSWORD": canary},
        )
        watcher = threading.Thread(target=watch, args=(process,))
        watcher.start()
        out, err = process.communicate(timeout=60)
        watcher.join()
        assert len(seen) > 20
        assert canary not in out + err + report.read_text()
        assert not any(canary.encode() in each for each in seen)
