"""The server starts copies: what it says of them, what it needs, and what is left behind.

Two hosts are two network namespaces with one file system: each sees its own addresses alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bottleneck.cli import measuring
from bottleneck.cli.options import Ends, Others
from bottleneck.run import plan
from probes.core.stage import Refused
from probes.programs.samba import Samba, private_samba
from tests.living import alive, below, ended, swept

ROOT = Path(__file__).resolve().parents[3]
PASSWORD = "correct horse 47 %&"
MIB = 1 << 20
CLIENT, SERVER, STRANGER = "10.91.9.1", "10.91.9.2", "10.91.9.3"
NAMES = [f"server.{copy}" for copy in plan.COPY_ORDER]

RUN = ROOT / "tests" / "programs" / "server_copies.py"

SERVE = """
import json, sys
from probes.programs.samba import private_samba
with private_samba(sys.argv[1], password=sys.argv[2], address=sys.argv[3]) as server:
    print(json.dumps([server.host, server.port, server.share]), flush=True)
    sys.stdin.read()
"""


def start_program(arguments: list[str], prefix: tuple[str, ...] = ()) -> Any:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [*prefix, sys.executable, *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, env=environment, cwd=ROOT, text=True, **pipes)


@dataclass
class Pair:
    folder: Path
    target: str
    agent: str
    client: tuple[str, ...] = ()
    """Command that enters the client."""

    def start(self, **options: Any) -> Any:
        password = options.pop("password", PASSWORD)
        tell_at = options.pop("tell_at", None)
        plain = {
            "folder": str(self.folder / "client"),
            "agent": self.agent,
            "server_folder": str(self.folder / "server"),
            "size_bytes": 16 * MIB,
            **options,
        }
        request = {"target": self.target, "options": plain, "password": password}
        run = start_program([str(RUN)], self.client)
        run.stdin.write(json.dumps({**request, "tell_at": tell_at}) + "\n")
        run.stdin.flush()
        return run

    def run(self, **options: Any) -> dict[str, Any]:
        out, _ = self.start(**options).communicate(timeout=100)
        document: dict[str, Any] = json.loads(out)
        assert document["unclosed"] == []
        assert self.leftovers() == []
        return document

    def leftovers(self) -> list[Path]:
        return [path for name in ("client", "server") for path in (self.folder / name).iterdir()]


@pytest.fixture(scope="module")
def one_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("one-host")
    for name in ("client", "server"):
        (folder / name).mkdir()
    with private_samba(folder / "server", password=PASSWORD) as server:
        # no copy-bottleneck on the server's PATH, whatever is on that of the tests
        agent = f"exec:env PATH={without_this_product(folder)} HOME=/nonexistent"
        yield Pair(folder, f"//{server.host}:{server.port}/{server.share}", agent)


def without_this_product(folder: Path) -> str:
    """A PATH with the system's programs and our Python, and no copy-bottleneck."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (programs / "python3").symlink_to(sys.executable)
    return f"{programs}:/usr/bin:/bin:/usr/sbin:/sbin"


@contextlib.contextmanager
def namespace() -> Iterator[tuple[str, ...]]:
    command = ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        assert holder.stdout.readline() == b"up\n"
        try:
            yield ("nsenter", f"--net=/proc/{holder.pid}/ns/net")
        finally:
            holder.stdin.close()


def call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Each in a network namespace of its own, a link between them."""
    if os.geteuid() != 0:
        pytest.skip("not run: network namespaces need root")
    folder = tmp_path_factory.mktemp("two-hosts")
    for name in ("client", "server"):
        (folder / name).mkdir()
    with namespace() as client, namespace() as server:
        name = f"e{os.getpid()}"
        there = server[1].removeprefix("--net=/proc/").partition("/")[0]
        call(
            *client,
            *f"ip link add {name} type veth".split(),
            *f"peer name {name} netns {there}".split(),
        )
        for enter, addresses in ((client, (CLIENT,)), (server, (SERVER, STRANGER))):
            for address in addresses:
                call(*enter, "ip", "address", "add", f"{address}/24", "dev", name)
            call(*enter, "ip", "link", "set", name, "up")
        served = start_program(["-c", SERVE, str(folder / "server"), PASSWORD, SERVER], server)
        host, port, share = json.loads(served.stdout.readline())
        path = without_this_product(folder)
        agent = f"exec:{shlex.join(server)} env PATH={path} HOME=/nonexistent"
        yield Pair(folder, f"//{host}:{port}/{share}", agent, client)
        served.communicate(timeout=20)


def texts(document: dict[str, Any], kind: str) -> set[str]:
    """The one sentence or more of four copies that all ended like this."""
    assert [step["copy"] for step in document["steps"]] == NAMES
    assert {step["kind"] for step in document["steps"]} == {kind}, document
    return {step["text"] for step in document["steps"]}


def all_measured(document: dict[str, Any], engine: str, server: str) -> None:
    assert [step["copy"] for step in document["steps"]] == NAMES
    assert {step["kind"] for step in document["steps"]} == {"Measured"}, document
    for step in document["steps"]:
        details = step["details"]
        assert step["initiator"] == "server" and step["engine"] == engine
        assert details["engine_server"] == server
        assert details["hash_ok"] is True
        assert step["dialect"] == details["dialect"] == "3.1.1"
        # the bytes come from the server when it pushes: cached or not speaks of the sender
        sender = "server" if ".push." in step["copy"] else "client"
        assert details["cache"]["side"] == sender
        assert details["cache"]["requested"] == step["copy"].rpartition(".")[2]
        assert details["flush_seconds"] >= 0
        assert step["moved_bytes"] == 16 * MIB
    assert document["notes"] == []


@pytest.mark.long
def test_smbclient_makes_all_four_between_two_hosts(two_hosts: Pair) -> None:
    outcome = two_hosts.run()
    all_measured(outcome, "smbclient", "samba")
    for step in outcome["steps"]:
        # smbclient there and smbd here: both are seen by the agents as the copy's own
        assert all(seconds > 0 for seconds in step["cpu_seconds"])


@pytest.mark.long
def test_smbclient_makes_all_four_on_one_host(one_host: Pair) -> None:
    all_measured(one_host.run(), "smbclient", "samba")


@contextlib.contextmanager
def share_of_the_client(
    folder: Path, password: str = PASSWORD, options: tuple[str, ...] = ()
) -> Iterator[tuple[Samba, Path]]:
    shared = folder / "users share"
    shared.mkdir()
    (shared / "users own").write_bytes(b"precious")
    options = ("log level = 0 auth_audit:2", *options)
    with private_samba(shared, password=password, options=options) as server:
        yield server, shared
        assert [path.name for path in shared.iterdir()] == ["users own"]


@pytest.mark.long
def test_the_user_s_own_share_is_used_where_it_is_named(one_host: Pair, tmp_path: Path) -> None:
    with share_of_the_client(tmp_path) as (server, _):
        outcome = one_host.run(client_share=f"//{server.host}:{server.port}/{server.share}")
        all_measured(outcome, "smbclient", "given")


@pytest.mark.long
def test_a_share_with_another_protection_is_told_as_that(one_host: Pair, tmp_path: Path) -> None:
    with share_of_the_client(tmp_path, options=("server signing = mandatory",)) as (server, _):
        outcome = one_host.run(client_share=f"//{server.host}:{server.port}/{server.share}")
    (note,) = outcome["notes"]
    assert "client's share are signed, copies with the server's share plain" in note
    all_measured({**outcome, "notes": []}, "smbclient", "given")
    for step in outcome["steps"]:
        assert step["signing"] == step["details"]["signing"] == "aes-gmac"


@pytest.mark.long
def test_a_wrong_password_for_it_is_tried_once(one_host: Pair, tmp_path: Path) -> None:
    """Accounts lock: none of the copies that are left tries it again."""
    with share_of_the_client(tmp_path, "another") as (server, _):
        outcome = one_host.run(client_share=f"//{server.host}:{server.port}/{server.share}")
        (text,) = texts(outcome, "Failed")
        assert f"{server.host}" in text and "login" in text and "\n" not in text
        log = (Path(server.configuration).parent / "log.smbd").read_text(errors="replace")
        assert log.count("NT_STATUS_WRONG_PASSWORD") == 1


@pytest.mark.long
def test_without_smbclient_the_remedy_is_named(two_hosts: Pair) -> None:
    """Hidden by an empty file over it, in a mount namespace of the agent's own."""
    hide = 'mount --bind /dev/null /usr/bin/smbclient && exec "$@"'
    hidden = f"exec:unshare --mount sh -c {shlex.quote(hide)} sh "
    agent = two_hosts.agent.replace("exec:", hidden)
    pair = Pair(two_hosts.folder, two_hosts.target, agent, two_hosts.client).run()
    (text,) = texts(pair, "Skipped")
    assert "install smbclient on the server" in text


@pytest.mark.long
@pytest.mark.parametrize("verdict", ["drop", "reject"])
def test_a_firewall_is_named_with_the_port_to_open(two_hosts: Pair, verdict: str) -> None:
    """Nobody connects to the client: what the client begins itself goes on."""
    rules = f"""
        add table inet closed
        add chain inet closed input {{ type filter hook input priority 0; policy accept; }}
        add rule inet closed input iifname != lo tcp flags & (syn | ack) == syn {verdict}
    """
    call(*two_hosts.client, "nft", rules)
    try:
        outcome = two_hosts.run()
    finally:
        call(*two_hosts.client, "nft", "delete table inet closed")
    (text,) = texts(outcome, "Skipped")
    assert f"the server cannot reach {CLIENT} port " in text
    assert "allow it in the client's firewall, or use --client-share" in text


@pytest.mark.long
def test_the_private_share_answers_the_server_alone(two_hosts: Pair) -> None:
    """Another host of the same network gets no word of SMB from it."""
    code = f"""
import sys
from probes.core.records import Endpoint
from probes.smb import client_share
allow = ({CLIENT!r}, {SERVER!r})
setting = client_share.Setting("0123456789abcdef", "3.1.1", sys.argv[1], {CLIENT!r}, allow)
with client_share.hold(setting, Endpoint()) as held:
    print(held.port, flush=True)
    sys.stdin.read()
"""
    asks = """
import socket, sys
negotiate = bytes.fromhex(
    "fe534d4240000000000000000000010000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000"
    "2400010001000000000000000000000000000000000000000000000000000000"
    "00000000" "1002"
)
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 5, (sys.argv[3], 0)) as peer:
    peer.sendall(len(negotiate).to_bytes(4, "big") + negotiate)
    try:
        print(peer.recv(8)[4:] == b"\\xfeSMB")
    except ConnectionError:
        print(False)
"""
    holder = start_program(["-c", code, str(two_hosts.folder / "client")], two_hosts.client)
    port = holder.stdout.readline().strip()
    enter = shlex.split(two_hosts.agent.removeprefix("exec:"))[:2]
    for address, answered in ((SERVER, "True"), (STRANGER, "False")):
        asking = [*enter, sys.executable, "-c", asks, CLIENT, port, address]
        done = subprocess.run(asking, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == answered
    holder.communicate(timeout=20)
    assert two_hosts.leftovers() == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("share", "how"),
    [("private", signal.SIGKILL), ("given", signal.SIGKILL), ("given", signal.SIGINT)],
)
def test_a_run_ended_in_a_copy_leaves_neither_process_nor_file(
    one_host: Pair, tmp_path: Path, share: str, how: int
) -> None:
    """The coordinator is killed, or interrupted, in the middle of a copy."""
    with share_of_the_client(tmp_path) as (server, _):
        share_name = f"//{server.host}:{server.port}/{server.share}" if share == "given" else None
        run = one_host.start(client_share=share_name, size_bytes=128 * MIB, tell_at="smb-copy")
        assert run.stdout.readline() == "in the copy\n"
        family = below(run.pid)
        names = {Path(f"/proc/{pid}/comm").read_text().strip() for pid in family if alive(pid)}
        assert "smbclient" in names and ("smbd" in names) == (share == "private")
        run.send_signal(how)
        run.communicate()
        assert ended(family, 30)
        assert swept(lambda: one_host.leftovers() == [])
        assert swept(lambda: len(list((tmp_path / "users share").iterdir())) == 1)


@pytest.mark.long
def test_without_an_agent_it_is_a_note(one_host: Pair) -> None:
    pair = Pair(one_host.folder, one_host.target, "none").run()
    assert pair["steps"] == []
    assert any(
        "copies started by the server: skipped: needs an agent" in note for note in pair["notes"]
    )


@pytest.mark.long
def test_a_short_run_leaves_them_out_with_a_note(one_host: Pair) -> None:
    outcome = one_host.run(budget_seconds=20.0)
    assert outcome["steps"] == []
    assert any("larger --budget" in note for note in outcome["notes"])


@pytest.mark.long
def test_without_the_server_s_folder_the_remedy_is_named(one_host: Pair, tmp_path: Path) -> None:
    """An agent in a mount namespace where the share's folder is empty does not find it."""
    if os.geteuid() != 0:
        pytest.skip("not run: mount namespaces need root")
    server = one_host.folder / "server"
    hide = f'mount -t tmpfs none {shlex.quote(str(server))} && exec "$@"'
    agent = one_host.agent.replace("exec:", f"exec:unshare --mount sh -c {shlex.quote(hide)} sh ")
    pair = Pair(one_host.folder, one_host.target, agent).run()
    (text,) = texts(pair, "Skipped")
    assert "--server-folder DIR" in text


@pytest.mark.parametrize("share", ["", "media", "//nas", "/home/me", "//nas:0/share"])
def test_what_is_no_share_is_refused_before_anything_starts(tmp_path: Path, share: str) -> None:
    with pytest.raises(Refused, match="--client-share") as refused:
        measuring.choose("//nas/media", 60.0, Ends(folder=tmp_path), others=Others(share))
    assert refused.value.kind == "usage"
