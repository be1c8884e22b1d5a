"""TARGET as a folder: the system's own copies, the mount's facts, one line for each trouble."""

import os
import signal
import subprocess
from types import SimpleNamespace

import pytest

from bottleneck.cli import app
from bottleneck.login import target as target_module
from bottleneck.run.steps import native
from probes.files.folders import Mount
from probes.programs.samba import private_samba
from tests.cli.test_endings import one_document

COPIES = {"push.uncached", "push.cached", "pull.uncached", "pull.cached"}
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: mounting needs root")


@pytest.fixture
def folders(tmp_path):
    paths = tmp_path / "client", tmp_path / "target"
    for each in paths:
        each.mkdir()
    return paths


def native_steps(document):
    steps = [step for step in document["steps"] if step["stage"] == "native-copy"]
    return {step["setting"]["copy"]: step for step in steps}


@pytest.mark.parametrize("command", ["diagnose", "doctor"])
def test_a_folder_of_this_host_is_no_target(bottleneck, folders, command):
    """A share was perhaps mounted there once; the file system tells."""
    client, target = folders
    ended = bottleneck(command, target, *(["--folder", client, "--yes"] * (command == "diagnose")))
    assert ended.code == 64
    text = " ".join((ended.out + ended.err).split())
    assert f"{target}: a local folder (" in text and "mount the share first" in text
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "guess"),
    [
        ("diagnose nas/media", "a folder; did you mean //nas/media?"),
        (r"diagnose \nas\media", "the shell took a backslash: quote it, or use //nas/media"),
        ("--yes diagnose //nas/media", "put options after the command, as in 'bottleneck diagnose"),
    ],
)
def test_what_was_meant_is_guessed(capsys, words, guess):
    assert app.run(words.split()) == 64
    assert guess in capsys.readouterr().err


@pytest.mark.long
def test_a_name_alone_is_a_folder_where_one_is_there(bottleneck, smb_mount, folders):
    client, target = folders[0], smb_mount.folder
    ended = bottleneck(
        *f"probe native-copy {target.name} --folder {client} --yes --json -".split(),
        *"--budget 60 --size 1MiB".split(),
        cwd=target.parent,
    )
    assert ended.code in {0, 3}, ended
    document = one_document(ended.out)
    assert {step["stage"] for step in document["steps"]} == {"native-copy"}
    assert document["target"]["share"] == document["target"]["mount"]["path"] == str(target)
    assert native_steps(document)["push.cached"]["setting"]["target_folder"] == str(target)


@pytest.mark.long
def test_with_an_agent_the_servers_cache_is_proven_and_its_disk_measured(
    bottleneck, smb_mount, folders
):
    client, _ = folders
    ended = bottleneck(
        *f"diagnose {smb_mount.folder} --folder {client} --yes --json -".split(),
        *"--agent exec: --budget 60 --size 2MiB".split(),
    )
    assert ended.code in {0, 3}
    document = one_document(ended.out)
    steps = native_steps(document)
    assert set(steps) == COPIES
    for copy in ("pull.uncached", "pull.cached"):
        cache = steps[copy]["outcome"]["details"]["cache"]
        assert cache["side"] == "server" and cache["requested"] == copy.partition(".")[2]
    assert steps["pull.cached"]["outcome"]["details"]["cache"]["proven"] is True
    assert steps["pull.cached"]["outcome"]["usage"]["server"] is not None
    sides = {step["setting"]["side"] for step in document["steps"] if step["stage"] == "disk"}
    assert sides == {"client", "server"}
    assert document["target"]["mount"]["filesystem"] == "fuse.smbnetfs"
    # This mount does not tell where its server is.
    assert any("does not show its server's address" in note for note in document["notes"])
    assert list(client.iterdir()) == list(smb_mount.shared.iterdir()) == []


@pytest.mark.long
@NEEDS_ROOT
def test_a_read_only_mount_is_one_line_and_77(bottleneck, smb_mount, folders):
    client, target = folders
    subprocess.run(["mount", "--bind", smb_mount.folder, target], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", target], check=True)
    try:
        ended = bottleneck("diagnose", target, "--folder", client, "--yes", "--quiet")
    finally:
        subprocess.run(["umount", target], check=True)
    assert ended.code == 77
    assert str(target) in ended.complaint and "read-only" in ended.complaint


def test_both_ends_on_one_mounted_share_are_refused(bottleneck, smb_mount):
    inside = smb_mount.folder / "inside"
    inside.mkdir()
    ended = bottleneck("diagnose", smb_mount.folder, "--folder", inside, "--yes", "--quiet")
    inside.rmdir()
    assert ended.code == 64
    assert "same mount" in ended.complaint


@pytest.mark.long
def test_a_mount_that_does_not_answer_is_one_line_and_69(
    troubled_mount, folders, monkeypatch, capsys
):
    monkeypatch.setattr(native, "ANSWER_SECONDS", 1.0)
    os.kill(troubled_mount.daemon, signal.SIGSTOP)
    arguments = ["diagnose", str(troubled_mount.folder), "--folder", str(folders[0])]
    assert app.run([*arguments, "--yes", "--quiet"]) == 69
    output = capsys.readouterr().err.splitlines()
    assert len(output) == 1
    assert str(troubled_mount.folder) in output[0] and "does not answer" in output[0]


@pytest.mark.long
def test_nothing_is_left_by_a_run_that_is_killed(begin, helpers, smb_mount, folders):
    """In the midst of a push into the mounted share."""
    process = begin(
        *f"probe native-copy {smb_mount.folder} --folder {folders[0]} --yes".split(),
        *"--budget 30 --size 16MiB".split(),
    )
    helpers.wait_for(process, "push.uncached native")
    helpers.until(lambda: list(smb_mount.shared.glob("*/pushed-*")))
    family = helpers.descendants(process.pid)
    process.kill()
    process.wait()
    # What writes into a mount ends when its request is answered, and only then its file can go.
    helpers.until(lambda: helpers.paths_in(folders[0], smb_mount.shared) == [])
    assert helpers.paths_in(folders[0], smb_mount.shared) == []
    assert helpers.all_end(family)


@pytest.mark.long
def test_beside_an_smb_mount_our_own_copies_run_where_somebody_can_log_in(
    folders, monkeypatch, capsys, tmp_path
):
    """The kernel here may have no SMB client: what a mount would say is put in its place."""
    client, target = folders
    real = native._ask_mount

    def ask(world, folder):
        if folder != str(target):
            return real(world, folder)
        return Mount(
            **{"path": folder, "point": folder, "filesystem": "cifs", "remote": True},
            **{"source": "//127.0.0.1/share", "options": "rw,vers=3.0,rsize=1048576"},
            **{"server": "127.0.0.1", "address": "127.0.0.1", "share": "share", "folder": ""},
            **{"dialect": "3.0", "signing": None, "encryption": None},
        )

    monkeypatch.setattr(native, "_ask_mount", ask)
    monkeypatch.setenv("BOTTLENECK_PASSWORD", "p")
    path = tmp_path / "report.json"
    with private_samba(str(target), password="p") as server:
        # A mount does not tell its port.
        monkeypatch.setattr(target_module, "SMB_PORT", server.port)
        code = app.run(
            ["diagnose", str(target), "--user", server.username, "--folder", str(client)]
            + ["--yes", "--quiet", "--json", str(path), "--budget", "40", "--size", "2MiB"]
        )
    assert code in {0, 3}, capsys.readouterr().err
    document = one_document(path.read_text())
    assert document["target"]["share"] == "//127.0.0.1/share"
    assert document["target"]["mount"]["dialect"] == "3.0"
    assert document["target"]["dialect"] == "3.1.1"
    ours = [
        step["outcome"]["kind"]
        for step in document["steps"]
        if step["stage"] == "smb-copy" and step["setting"]["copy"] == "push.cached"
    ]
    assert "measured" in ours
    assert native_steps(document)["push.cached"]["outcome"]["kind"] == "measured"
    assert list(client.iterdir()) == list(target.iterdir()) == []


@pytest.mark.parametrize(
    ("server", "address"), [(None, "::1"), ("127.0.0.9", "127.0.0.9")], ids=["rclone", "sshfs"]
)
def test_an_agent_over_ssh_has_the_address_that_a_mount_lacks(server, address):
    mount = SimpleNamespace(server=server, address=None, filesystem="fuse.rclone")
    assert native._address(mount, "ssh://root@[::1]:22", None) == address


def test_a_mount_without_a_server_has_no_address_of_an_agents_host():
    mount = SimpleNamespace(server=None, address=None, filesystem="virtiofs")
    assert native._address(mount, "ssh://root@[::1]:22", None) == ""
