"""The private Samba: real smbd processes, real clients, and nothing left of either."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from probes.core.stage import Unavailable
from probes.programs import samba
from probes.programs.samba import Samba, find_smbd, private_samba
from tests import living
from tests.living import entered

ROOT = Path(__file__).resolve().parents[3]
PASSWORD = "pä ss%w$rd"
NT1 = "server min protocol = NT1"
NOBODY = 65534


@pytest.fixture
def any_dir() -> Iterator[Path]:
    """A folder that any account may write to, as /tmp; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="bottleneck-test-"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def smbclient(server: Samba, protocol: str, command: str) -> str:
    """Output of a command of Samba's own client."""
    done = subprocess.run(
        ["smbclient", f"//{server.host}/{server.share}", "-p", str(server.port)]
        + ["-m", protocol, "--option=client min protocol=NT1"]
        + ["-s", "/dev/null", "-U", server.username, "-c", command],
        env={**os.environ, "PASSWD": server.password},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def put_list_get(folder: Path) -> None:
    """Serve folder, put a file there over both protocols, list it and get it back."""
    content = os.urandom(300_000)
    with (
        tempfile.TemporaryDirectory() as place,
        private_samba(str(folder), password=PASSWORD, options=[NT1]) as server,
    ):
        source, back = Path(place, "source"), Path(place, "back")
        source.write_bytes(content)
        for protocol in ("SMB3", "NT1"):
            smbclient(server, protocol, f"put {source} {protocol}.bin")
            assert f"{protocol}.bin" in smbclient(server, protocol, "ls")
            assert (folder / f"{protocol}.bin").read_bytes() == content
            smbclient(server, protocol, f"get {protocol}.bin {back}")
            assert back.read_bytes() == content


def run_as(user: int, temporary: Path, work: Callable[[], None]) -> None:
    """Do the work in a child that has become another user; fails when it fails."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            tempfile.tempdir = os.environ["XDG_STATE_HOME"] = str(temporary)
            # Ours, and this program, may lie where only root may go.
            sys.executable = "/usr/bin/python3"
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            work()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def alive(group: int) -> bool:
    """Whether a process of the group is more than a zombie."""
    return samba._group_runs(group)


def test_a_client_lists_puts_and_gets_over_smb3_and_nt1(any_dir: Path) -> None:
    put_list_get(any_dir)


def test_an_ordinary_user_can_serve_as_well(any_dir: Path) -> None:
    """Run as root this becomes another user; run as an ordinary user it is one."""
    if os.geteuid() == 0:
        run_as(NOBODY, any_dir, lambda: put_list_get(any_dir))
        assert (any_dir / "SMB3.bin").stat().st_uid == NOBODY
    else:
        put_list_get(any_dir)
        assert (any_dir / "SMB3.bin").stat().st_uid == os.geteuid()


def test_nothing_is_left_after_the_block(any_dir: Path) -> None:
    with private_samba(str(any_dir), password=PASSWORD) as server:
        smbclient(server, "SMB3", "ls")
        assert alive(server.process_id)
        state = Path(server.configuration).parent
        assert state.is_dir()
    assert not alive(server.process_id)
    assert not state.exists()
    assert any_dir.is_dir()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((server.host, server.port), 5)


def test_the_next_sweep_leaves_nothing_of_a_killed_starter(any_dir: Path) -> None:
    """SIGKILL: no code of the starter runs any more."""
    code = """
import json, sys
from probes.programs.samba import private_samba
with private_samba(sys.argv[1], password="x") as server:
    print(json.dumps([server.process_id, server.configuration, server.port]), flush=True)
    sys.stdin.read()
"""
    starter = living.running(code, any_dir)
    assert starter.stdout is not None
    group, configuration, port = json.loads(starter.stdout.readline())
    with socket.create_connection(("127.0.0.1", port), 5):  # a connection has a smbd of its own
        starter.send_signal(signal.SIGKILL)
        starter.wait()
        starter.stdout.close()
        assert living.until(lambda: not alive(group))
    assert living.swept(lambda: not Path(configuration).parent.exists())
    assert any_dir.is_dir()


def test_the_password_is_on_no_command_line_in_no_file_and_in_no_repr(
    any_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    class Recording(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **how: object) -> None:
            commands.append(command)
            super().__init__(command, **how)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", Recording)
    with private_samba(str(any_dir), password=PASSWORD) as server:
        assert PASSWORD not in repr(server)
        assert {Path(command[0]).name for command in commands} >= {"pdbedit", "smbd"}
        assert not [word for command in commands for word in command if PASSWORD in word]
        for path in Path(server.configuration).parent.rglob("*"):
            if path.is_file() and not path.is_symlink():
                assert PASSWORD.encode() not in path.read_bytes()


def test_a_second_server_does_not_share_the_port_of_a_first(any_dir: Path) -> None:
    """Both would bind it, and take turns with the clients."""
    with private_samba(str(any_dir), password="x") as first:
        with pytest.raises(Unavailable, match=f"port {first.port} .* is in use"):
            entered(private_samba(str(any_dir), password="y", port=first.port))
        smbclient(first, "SMB3", "ls")


def test_a_folder_with_odd_characters_is_served(any_dir: Path) -> None:
    odd = any_dir / "a %S; b # ü"
    odd.mkdir()
    (odd / "inside").touch()
    with private_samba(str(odd), password="x") as server:
        assert "inside" in smbclient(server, "SMB3", "ls")


def test_ipv6_loopback_is_served(any_dir: Path) -> None:
    with private_samba(str(any_dir), password="x", address="::1") as server:
        assert server.host == "::1"
        smbclient(server, "SMB3", "ls")


def test_a_server_that_does_not_come_up_says_why_in_its_own_words(any_dir: Path) -> None:
    with pytest.raises(Unavailable, match="Failed to load config file"):
        entered(private_samba(str(any_dir), password="x", options=["smb ports = none"]))
    with pytest.raises(Unavailable, match="user could not be created"):
        entered(private_samba(str(any_dir), password="x", options=["passdb backend = nonsense"]))


@pytest.mark.parametrize(
    ("folder", "password", "share", "reason"),
    [
        ("/nonexistent/folder", "x", "share", "not found"),
        ("/tmp", "two\nlines", "share", "characters"),
        ("/tmp", "x", "share]\npath = /", "characters"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_starts(
    folder: str, password: str, share: str, reason: str
) -> None:
    with pytest.raises(Unavailable, match=reason):
        entered(private_samba(folder, password=password, share=share))


def test_without_samba_the_reason_names_the_package(
    any_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samba.tools, "find", lambda program: None)
    assert find_smbd() is None
    with pytest.raises(Unavailable, match="apt-get install samba"):
        entered(private_samba(str(any_dir), password="x"))


def test_smbd_is_found_where_path_lacks_the_system_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert find_smbd()
