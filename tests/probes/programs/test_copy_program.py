"""The system's program that copies: which one, watched to its end, gone with whoever watches."""

import os
import re

import pytest

from probes.programs import copy_program
from probes.programs.copy_program import CopyBroke, Program, start_copy
from probes.system import tools
from tests.living import deadline_in, ended, running

CONTENT = os.urandom(3 << 20)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source"
    path.write_bytes(CONTENT)
    return path


def copy(program, source, destination, descriptors=()):
    with start_copy(program, str(source), str(destination), descriptors) as copying:
        copying.ready()
        copying.begin()
        return list(copying.progress(deadline_in(), 0.001))


@pytest.mark.parametrize("same_filesystem", [True, False])
def test_cp_copies_and_tells_who_it_is(source, tmp_path, same_filesystem):
    program = copy_program.find(same_filesystem)
    assert re.match(r"cp (--reflink=never )?\(.+\)", program.name)
    copy(program, source, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == CONTENT


def test_without_cp_python_copies(source, tmp_path, monkeypatch):
    monkeypatch.setattr(tools, "find", lambda name: None)
    program = copy_program.find(False)
    assert program.name.startswith("shutil.copyfile of Python 3.")
    copy(program, source, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == CONTENT
    with pytest.raises(CopyBroke, match=r"missing: No such file or directory\Z"):
        copy(program, tmp_path / "missing", tmp_path / "other")


def test_a_nameless_file_can_be_source_and_destination(source, tmp_path):
    with source.open("rb") as reading, (tmp_path / "sink").open("w+b") as writing:
        (tmp_path / "sink").unlink()
        ends = [f"/proc/self/fd/{each.fileno()}" for each in (reading, writing)]
        copy(copy_program.find(False), *ends, (reading.fileno(), writing.fileno()))
        assert os.pread(writing.fileno(), len(CONTENT), 0) == CONTENT


def test_the_complaint_of_a_program_comes_through(tmp_path):
    with pytest.raises(CopyBroke, match=r"missing': No such file or directory\Z"):
        copy(copy_program.find(False), tmp_path / "missing", tmp_path / "copy")


def test_progress_counts_what_was_written_since_the_gate_opened(tmp_path):
    script = "head -c 4096 /dev/zero | cat >/dev/null; echo; read -r go; printf 123456789; "
    program = Program("slow", ("/bin/sh", "-c", f"{script} exec tail -f /dev/null", "slow"))
    with start_copy(program, "", "", ()) as copying:
        copying.ready()
        copying.begin()
        for written in copying.progress(deadline_in(), 0.01):
            if written:
                assert written == 9
                break


def test_a_program_that_does_not_end_is_stopped_at_the_deadline():
    program = Program("slow", ("/bin/sh", "-c", "echo; read -r go; exec tail -f /dev/null", "slow"))
    with start_copy(program, "", "", ()) as copying:
        copying.ready()
        copying.begin()
        with pytest.raises(CopyBroke, match="no end within its time"):
            list(copying.progress(deadline_in(0.0), 0.01))
        pid = copying._process.pid
    assert ended([pid])


@pytest.mark.parametrize(("goes_on", "says"), [(False, "no end within"), (True, "it ended with 7")])
def test_a_program_that_closes_its_stderr_is_watched_on(goes_on, says, tmp_path):
    os.mkfifo(tmp_path / "gate")
    script = 'echo; read -r go; exec 2>&-; printf 1234; read -r go <"$1"; exit 7'
    program = Program("mute", ("/bin/sh", "-c", script, "--key=s3cret"))
    with start_copy(program, str(tmp_path / "gate"), "", ()) as copying:
        copying.ready()
        copying.begin()
        assert 4 in copying.progress(deadline_in(), 0.01)
        if goes_on:
            (tmp_path / "gate").write_text("go\n")
        with pytest.raises(CopyBroke, match=f"^{says}"):
            list(copying.progress(deadline_in() if goes_on else deadline_in(0.0), 0.01))


def test_a_program_that_does_not_start_is_said_to():
    with (
        start_copy(Program("broken", ("/bin/false",)), "", "", ()) as copying,
        pytest.raises(CopyBroke, match="broken did not start"),
    ):
        copying.ready()


WATCHER = """
import sys
from probes.programs.copy_program import Program, start_copy
program = Program("slow", ("/bin/sh", "-c", "echo; read -r go; exec tail -f /dev/null", "slow"))
with start_copy(program, "", "", ()) as copying:
    copying.ready()
    copying.begin()
    print(copying._process.pid, flush=True)
    sys.stdin.read()
"""


def test_the_program_ends_with_a_killed_watcher():
    with running(WATCHER) as watcher:
        pid = int(watcher.stdout.readline())
        watcher.kill()
    assert ended([pid])


@pytest.mark.parametrize(
    ("text", "maker"),
    [
        ("cp (GNU coreutils) 9.1\nCopyright (C) 2022 ...", "GNU coreutils"),
        ("cp: unrecognized option '--version'\nBusyBox v1.35.0 (Debian 1:1.35.0-4) ...", "BusyBox"),
        ("cp 0.0.17", "unknown"),
        ("cp (uutils coreutils) 0.1.0", "uutils coreutils"),
        ("", "unknown"),
    ],
)
def test_who_made_a_cp_is_read_from_its_version(text, maker):
    assert copy_program.parse_maker(text) == maker
