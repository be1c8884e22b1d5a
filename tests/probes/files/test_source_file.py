"""The run's own file: real payload, nameless, gone with its holder, ended in time."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="attr-defined,union-attr"

import subprocess
import sys
from pathlib import Path

import pytest

from probes.core.records import Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import free_space, payload, source_file
from probes.files.source_file import Setting
from tests.living import running, until

MIB = 1024 * 1024


def test_the_payload_is_really_written(tmp_path):
    with source_file.hold(Setting(str(tmp_path), 9 * MIB, 30.0, "ab"), Endpoint()) as endpoint:
        assert endpoint.facts["size_bytes"] == 9 * MIB
        ring = payload.make_ring(b"\xab")
        with Path(endpoint.path).open("rb") as file:
            content = file.read()
        assert len(content) == 9 * MIB
        for offset in range(0, 9 * MIB, MIB):
            assert payload.matches(ring, offset, memoryview(content)[offset : offset + MIB])
        assert list(tmp_path.iterdir()) == []
    assert not Path(endpoint.path).exists()


def test_it_ends_early_when_the_time_is_over(tmp_path):
    with source_file.hold(Setting(str(tmp_path), 64 * MIB, 0.0, "ab"), Endpoint()) as endpoint:
        assert endpoint.facts["size_bytes"] == source_file.STEP_BYTES
        assert Path(endpoint.path).stat().st_size == source_file.STEP_BYTES


def test_without_sync_file_range_it_is_flushed_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(source_file, "sync_range", lambda *arguments: False)
    with source_file.hold(Setting(str(tmp_path), 9 * MIB, 30.0, "ab"), Endpoint()) as endpoint:
        assert Path(endpoint.path).stat().st_size == 9 * MIB


def test_a_missing_folder_is_refused_as_usage(tmp_path):
    with pytest.raises(Refused) as caught:
        source_file.open_new(str(tmp_path / "none"))
    assert caught.value.kind == "usage"
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(Refused) as caught:
        source_file.open_new(str(file))
    assert caught.value.kind == "usage"


def test_a_folder_that_is_not_ours_to_write_is_refused_as_permission():
    with pytest.raises(Refused) as caught:
        source_file.open_new("/proc")
    assert caught.value.kind in ("permission", "usage")


def test_no_room_makes_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(free_space, "reserve_bytes", lambda total: 1 << 62)
    setting = Setting(str(tmp_path), 64 * MIB, 5.0, "ab")
    with (
        pytest.raises(Unavailable, match="not enough free space"),
        source_file.hold(setting, Endpoint()),
    ):
        pass


def test_a_disk_that_fills_up_is_refused_as_space(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(source_file.errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(source_file, "_write_all", full)
    setting = Setting(str(tmp_path), 64 * MIB, 5.0, "ab")
    with pytest.raises(Refused) as caught, source_file.hold(setting, Endpoint()):
        pass
    assert caught.value.kind == "space"


HOLDER = """
import sys
from probes.files import source_file
from probes.core.records import Endpoint
with source_file.hold(source_file.Setting(sys.argv[1], 4 << 20, 5.0, "ab"), Endpoint()) as held:
    print(held.path, flush=True)
    sys.stdin.read()
"""


def test_nothing_is_left_when_the_holder_is_killed(tmp_path):
    with running(HOLDER, tmp_path) as holder:
        path = Path(holder.stdout.readline().strip())
        assert path.stat().st_size == 4 * MIB
        holder.kill()
    assert until(lambda: not path.exists())
    assert list(tmp_path.iterdir()) == []


SHOWN = """
import json, os, sys
from probes.files import source_file
from probes.system import child
from probes.core.records import Endpoint

def work(tell, control_fd):
    setting = source_file.Setting(sys.argv[1], 4 << 20, 30.0, "ab")
    with source_file.hold(setting, Endpoint()) as held:
        tell({"path": held.path})
        os.read(control_fd, 1)

made = child.spawn(work)
with os.fdopen(made.events_fd) as events:
    path = json.loads(events.readline())["path"]
    with open(path, "rb") as file:
        assert len(file.read()) == 4 << 20
    os.close(made.control_fd)
    assert events.read() == ""
os.waitpid(made.pid, 0)
assert not os.path.exists(path)
"""


@pytest.mark.long
def test_other_processes_open_it_although_its_holder_shows_them_nothing(tmp_path, unprivileged):
    """The stages that read it are children of the same agent, and no right of root's is needed."""
    command = [sys.executable, "-c", SHOWN, tmp_path]
    done = subprocess.run(command, capture_output=True, preexec_fn=unprivileged)
    assert done.returncode == 0, done.stderr
