"""Files without a name: nothing is left in the folder, nothing of a user's is touched."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from probes.files import unnamed_file


@pytest.mark.parametrize("make", [unnamed_file.create, unnamed_file._created_and_unlinked])
def test_a_file_is_made_that_no_folder_lists(make, tmp_path):
    fd = make(str(tmp_path))
    os.write(fd, b"payload")
    status = os.fstat(fd)
    assert list(tmp_path.iterdir()) == []
    assert (status.st_size, status.st_nlink, stat.S_IMODE(status.st_mode)) == (7, 0, 0o600)
    assert Path(f"/proc/self/fd/{fd}").read_bytes() == b"payload"
    os.close(fd)


def test_without_o_tmpfile_a_random_name_is_made_and_unlinked(tmp_path, monkeypatch):
    monkeypatch.setattr(unnamed_file.os, "O_TMPFILE", os.O_DIRECTORY | os.O_TMPFILE | os.O_CREAT)
    fd = unnamed_file.create(str(tmp_path))
    assert os.fstat(fd).st_nlink == 0
    os.close(fd)


def test_a_name_that_exists_is_never_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(unnamed_file.secrets, "token_hex", lambda size: "0")
    users = tmp_path / ".bottleneck-0"
    users.write_text("mine")
    with pytest.raises(FileExistsError):
        unnamed_file._created_and_unlinked(str(tmp_path))
    assert users.read_text() == "mine"


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """Forgets the folder that tempfile chose earlier."""
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_a_folder_of_ones_own_is_the_only_one(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert unnamed_file.on_disk() == str(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: another account needs root")
def test_who_may_not_write_in_a_folder_is_given_another_of_its_file_system():
    """The share's own folder above the run's, a usual one, or none: then with the remedy."""

    def beside(folder):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                answer_text = unnamed_file.writable_folder(str(folder))
            except Exception as error:
                answer_text = str(error)
            os.write(write, answer_text.encode())
            os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        with os.fdopen(read) as answer:
            return answer.read()

    with tempfile.TemporaryDirectory(dir="/var/tmp") as above:
        share = Path(above) / "share"
        run = share / "bottleneck-1"
        run.mkdir(parents=True)
        Path(above).chmod(0o755)
        assert unnamed_file.writable_folder(str(run)) == str(run)
        assert beside(run) == "/var/tmp"
        share.chmod(0o1777)
        assert beside(run) == str(share)
        assert sorted(os.listdir(share)) == ["bottleneck-1"]
    said = beside("/proc")
    assert "may not write on the share's file system" in said and "--agent" in said
