"""The agent itself refuses what is not on its list, and what leads beyond its caller's things."""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
import shlex
import subprocess
import sys
import tomllib
from contextlib import contextmanager, suppress

import pytest

from bottleneck import agent_checks, agent_limits, bootstrap, hosts, wire
from bottleneck.agent_checks import Session, check
from bottleneck.agent_limits import Limits
from bottleneck.agent_requests import LISTED, OF_STAGES, takes
from probes import STAGES, loopback, meaning, smb_copy, smbclient_copy, tcp
from probes.host import open_files, source_file
from probes.records import Endpoint
from probes.stage import Refused
from tests.living import below, until, within

CALLER, OTHER = "192.0.2.7", "198.51.100.9"
EXAMPLES = {
    "text": "a", "truth": True, "number": 1.0, "count": 1, "any": {}, "port": 5, "seconds": 1.0,
    "rate": 1.0, "size": 1, "hex": "0" * 16, "name": "a", "address": "", "called": CALLER,
    "folder": "/run-folder", "file": "", "handed": "", "device": "", "leftover": "/left",
    "command": "",
}  # fmt: skip
"""A value of each kind that a narrow agent takes."""
FOREIGN = {
    "called": (
        *(OTHER, "localhost", "127.0.0.1", "::1", f"::ffff:{OTHER}", "nas.example", "", "0"),
        *(f"{CALLER}%x.localhost", f"{CALLER}%\n.localhost"),
    ),
    "address": ("nas.example", "127.0.0.1%\nlog file = /x\n#.localhost"),
    "folder": ("/etc", "/", "/run-folder/..", "run-folder", ""),
    "file": ("/etc/shadow", "/proc/self/environ", "/proc/1/fd/3"),
    "handed": ("/etc/shadow", "/run-folder/../etc/shadow"),
    "device": ("/dev/sda", "/dev/null"),
    "leftover": ("/tmp/bottleneck-0123456789abcdef", "/etc"),
    "name": ("../shadow", "..", "/etc/shadow"),
    "hex": ("../../etc",),
    "command": ("/bin/sh", "rm"),
}
"""What leads elsewhere, by the kind of value that it would be."""


def example(kind):
    if kind.endswith("?"):
        return None
    return [example(kind[:-1])] if kind.endswith("*") else EXAMPLES[kind]


def session():
    found = Session(peer=CALLER)
    found.folders.add("/run-folder")
    found.leftovers.add("/left")
    found.held[1] = ("", 5)
    return found


def request_for(do, name):
    wanted = takes(do, name)
    given = {key: example(kind) for key, kind in wanted.keys.items()}
    made = {"id": 1, "do": do, "name": name, "seconds": 5.0}
    made["arguments" if do == "ask" else "setting"] = given
    if do in ("hold", "initiate"):
        host = "" if wanted.calls == "own" else CALLER
        made["peer"] = {**wire.endpoint_to_plain(Endpoint(host=host, port=5, share="s"))}
    return made, given


EVERY = [
    (do, name)
    for do in ("ask", "hold", "initiate", "observe")
    for name in (*LISTED[do], *(STAGES if do in OF_STAGES else ()))
]


def test_a_key_that_nobody_gave_a_meaning_is_refused_to_everybody(monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Setting:
        path: str

    with pytest.raises(TypeError, match=r"Setting\.path has no meaning"):
        meaning.keys(Setting)
    request, given = request_for("hold", "source-file")
    monkeypatch.setattr(source_file, "Setting", Setting)
    with pytest.raises(TypeError):
        check(request, Session())


@pytest.mark.parametrize(("do", "name"), EVERY)
def test_what_leads_to_other_hosts_and_paths_is_refused_in_every_request(do, name, monkeypatch):
    """Each key in turn; what the caller itself was handed passes."""
    monkeypatch.setattr(agent_checks._Checked, "below", lambda *_: None)  # has a test of its own
    made, given = request_for(do, name)
    if do == "initiate" and takes(do, name).strays:
        with pytest.raises(Refused, match="others than its peer"):
            check(made, session())
        return
    check(made, session())
    tried = [(given, key, kind) for key, kind in takes(do, name).keys.items()]
    if "peer" in made:
        tried.append((made["peer"], "path", "handed"))
        calls = takes(do, name).calls.rstrip("?")
        if calls and not (do == "hold" and name in STAGES):
            tried.append((made["peer"], "host", "called" if calls == "called" else "own"))
    for where, key, kind in tried:
        plain = kind.rstrip("?*")
        foreign = (OTHER, CALLER, "nas") if kind == "own" else FOREIGN.get(plain, ())
        if plain == "called" and do == "hold" and name in STAGES:
            foreign = FOREIGN["address"]  # where a responder listens
        for each in foreign:
            if not each and kind != plain:
                continue
            before, where[key] = where[key], [each] if kind.endswith("*") else each
            with pytest.raises(Refused):
                check(made, session())
            where[key] = before


@pytest.mark.parametrize("changed", [
    {"do": "shell"}, {"do": None}, {"name": "etc"}, {"name": ["facts"]}, {"more": 1},
    {"seconds": 86_401}, {"seconds": float("inf")}, {"seconds": -1}, {"seconds": "5"},
    {"seconds": None}, {"arguments": []}, {"arguments": {"toward": 5}}, {"arguments": {"more": 5}},
    {"arguments": {"toward": "a" * 5000}},
])  # fmt: skip
def test_what_is_not_on_the_list_is_refused_to_everybody(changed):
    request = {"id": 1, "do": "ask", "name": "facts", "arguments": {"toward": ""}, "seconds": 5.0}
    check(request, Session())
    with pytest.raises(Refused):
        check({**request, **changed}, Session())


def test_a_caller_on_this_hosts_own_pipe_names_what_it_likes():
    request, given = request_for("ask", "user-file")
    given.update(folder="/home/anna", parts=["a.mkv"])
    check(request, Session())
    request, given = request_for("initiate", "disk")
    given.update(device="/dev/sda", folder="/srv")
    check(request, Session())


@pytest.mark.parametrize(("limits", "do", "name", "key", "good", "bad"), [
    (Limits(bytes=10), "hold", "source-file", "size_bytes", 10, 11),
    (Limits(seconds=10), "hold", "source-file", "seconds", 10, 11),
    (Limits(rate=10), "initiate", "udp", "bytes_per_second", 10, 11),
    (Limits(rate=10), "initiate", "path", "load", False, True),
    (Limits(folders=("/usr",)), "hold", "source-file", "folder", "/usr/lib", "/usr/../etc"),
    (Limits(folders=("/usr",)), "initiate", "disk", "device", "", "/dev/sda"),
    (Limits(devices=("/dev/sda",)), "ask", "readable-device", "node", "/dev/sda", "/dev/sdb"),
    (Limits(peers=("192.0.2.0/24",)), "ask", "reach", "host", CALLER, OTHER),
    (Limits(peers=("192.0.2.0/24",)), "ask", "offered", "host", CALLER, "nas.example"),
])  # fmt: skip
def test_the_limits_of_a_host_bind_its_own_users_agents_too(limits, do, name, key, good, bad):
    request, given = request_for(do, name)
    kinds = takes(do, name).keys.items()
    given.update({each: "/usr" for each, kind in kinds if kind.startswith("folder")})
    given[key] = good
    check(request, Session(limits))
    given[key] = bad
    (named,) = (each for each, limit in dataclasses.asdict(limits).items() if limit is not None)
    named = "devices" if key == "device" else named
    with pytest.raises(Refused, match=f"{named} in {agent_limits.PATH}"):
        check(request, Session(limits))


def test_the_bytes_of_a_session_add_up():
    request, given = request_for("initiate", "small-files")
    given.update(files=5, file_bytes=10, size_bytes=0)
    limited = Session(Limits(bytes=99))
    check(request, limited)
    with pytest.raises(Refused, match="100 bytes"):
        check(request, limited)


def test_a_session_has_a_bound_on_its_requests(monkeypatch):
    monkeypatch.setattr(agent_checks, "MOST_TASKS", 2)
    request, _ = request_for("ask", "smbclient")
    limited = Session()
    for _ in range(2):
        check(request, limited)
    with pytest.raises(Refused, match="requests"):
        check(request, limited)


def test_an_address_is_one_however_it_is_written_and_what_is_more_is_none():
    """A resolver may know the rest as a name, and a configuration as lines of its own."""
    for given in ("::ffff:192.0.2.7", "192.0.2.7", "::ffff:c000:207%eth0"):
        assert agent_checks.plain_address(given) == CALLER
    for given in ("192.0.2.7%eth0", "[192.0.2.7]", "::1%\n[x]", "::1%a b", "::1%"):
        assert agent_checks.plain_address(given) == ""


@pytest.mark.parametrize(("do", "name"), [each for each in EVERY if each[0] != "ask"])
def test_a_setting_without_a_key_is_refused(do, name):
    """Its default would be what nobody has checked: the current folder, a rate."""
    made, given = request_for(do, name)
    for key in list(given):
        value = given.pop(key)
        with pytest.raises(Refused, match="lacks"):
            check(made, Session())
        given[key] = value


def test_a_link_leads_out_of_no_folder_that_is_allowed(tmp_path):
    allowed, secret = tmp_path / "allowed", tmp_path / "secret"
    for each in (allowed, secret):
        each.mkdir()
        (each / "file").touch()
    (allowed / "link").symlink_to(secret)
    request, given = request_for("ask", "user-file")
    given.update(folder=str(allowed), parts=["file"])
    limited = Session(Limits(folders=(str(allowed),)))
    check(request, limited)
    for parts in (["link", "file"], ["LINK", "file"], ["FILE"]):
        given["parts"] = parts
        with pytest.raises(Refused, match="link"):
            check(request, limited)


@contextmanager
def agent_for(peer):
    """The product's agent as a listener starts it."""
    command = bootstrap.command_here("--peer", peer)
    with hosts.Host.start("server", command) as host:
        yield host


def test_a_token_reads_no_file_of_the_agents_user(tmp_path):
    """A file of its choice for the caller's own share, a folder to work in, a third host."""
    secret = tmp_path / "secret"
    secret.write_text("the host's own")
    copied = smbclient_copy.Setting("push.cached", "3.1.1", 14, 5.0, "got", folder="")
    by_us = smb_copy.Setting("push.cached", "3.1.1", "memory", 14, 5.0, folder="")
    peer = Endpoint(host="127.0.0.1", port=9, share="mine", path=str(secret))
    held = source_file.Setting(str(tmp_path), 1, 1.0, "00")
    with agent_for("127.0.0.1") as host:
        with pytest.raises(Refused, match="others than its peer"):
            host.initiate("smbclient-copy", copied, peer, 5.0)
        with pytest.raises(Refused, match="only files that it made"):
            host.initiate("smb-copy", by_us, peer, 5.0)
        with (
            pytest.raises(Refused, match="folder of its run"),
            host.hold("source-file", held, Endpoint(), 5),
        ):
            pass
        with pytest.raises(Refused, match="connects to its caller's address"):
            host.ask("reach", host="127.0.0.2", port=9, wait_seconds=1.0)
        assert not below(host.process.pid)
    assert list(tmp_path.iterdir()) == [secret]


def test_what_an_agent_found_by_the_runs_own_folder_may_be_worked_in(tmp_path):
    folder = tmp_path / f"bottleneck-{secrets.token_hex(8)}"
    folder.mkdir()
    with agent_for("127.0.0.1") as host:
        found = host.ask("locate", folder_name=folder.name, hint=str(tmp_path))
        assert found == str(folder)
        setting = source_file.Setting(found, 1 << 12, 5.0, "00")
        with host.hold("source-file", setting, Endpoint(), 20):
            assert host.ask("usable-bytes", folder=found) > 0
        with host.hold("loopback", loopback.Setting(seconds=0.1), Endpoint(), 20) as peer:
            try:
                host.initiate("loopback", loopback.Setting(seconds=0.1), peer, 20)
            except hosts.PartlyRan as error:  # begun, on a host that then stood still
                assert "nothing arrived after the warm-up" in str(error)
        with pytest.raises(Refused, match="own"):
            host.initiate("loopback", loopback.Setting(), Endpoint(port=22), 20)


def test_so_many_requests_at_once_and_no_more():
    with hosts.start_here() as host, pytest.raises(Refused, match="at once"):
        numbers = [
            host.send({"do": "hold", "name": "disk", "seconds": 20.0, **settings()})
            for _ in range(agent_checks.MOST_AT_ONCE + 1)
        ]
        host.next(numbers[-1], within(), "the last")


def settings():
    made, _ = request_for("hold", "disk")
    return {"setting": made["setting"], "peer": wire.endpoint_to_plain(Endpoint())}


def write(path, text, mode=0o644):
    path.write_text(text)
    path.chmod(mode)
    return str(path)


LIMITS = """# of this host
bytes = 10_000_000_000
seconds = 600   # ten minutes
folders = ["/srv/media", "/srv/b"]
peers = []
"""


def test_limits_are_read_as_any_reader_of_toml_reads_them(tmp_path):
    found = agent_limits.load(write(tmp_path / "limits.toml", LIMITS))
    expected = {k: tuple(v) if isinstance(v, list) else v for k, v in tomllib.loads(LIMITS).items()}
    assert {k: v for k, v in dataclasses.asdict(found).items() if v is not None} == expected
    assert agent_limits.load(str(tmp_path / "none.toml")) == Limits()


@pytest.mark.parametrize("text", [
    "bytes = ten", "byte = 10", "bytes = 1\nbytes = 2", "folders = [srv]", 'folders = ["srv"]',
    "bytes = [1]", "folders = 5", "seconds = -5", "[limits]", "seconds = 1.5", "bytes 5", "\0",
])  # fmt: skip
def test_limits_that_are_not_understood_serve_nobody(tmp_path, text):
    with pytest.raises(agent_limits.Untrusted, match="line"):
        agent_limits.load(write(tmp_path / "limits.toml", text))


def test_limits_that_others_may_change_serve_nobody(tmp_path):
    path = tmp_path / "limits.toml"
    with pytest.raises(agent_limits.Untrusted, match="other users can change"):
        agent_limits.load(write(path, LIMITS, 0o664))
    path.chmod(0o644)
    tmp_path.chmod(0o777)
    with pytest.raises(agent_limits.Untrusted, match="other users can change"):
        agent_limits.load(str(path))
    tmp_path.chmod(0o755)
    path.rename(tmp_path / "other")
    path.symlink_to(tmp_path / "other")
    with pytest.raises(agent_limits.Untrusted, match="cannot be read"):
        agent_limits.load(str(path))


def test_an_agent_whose_limits_cannot_be_trusted_says_so_and_serves_nobody(tmp_path):
    path = write(tmp_path / "limits.toml", "nonsense")
    start = f"from bottleneck import agent, agent_limits; agent_limits.PATH = {path!r}; "
    start += "agent_limits.load.__defaults__ = (agent_limits.PATH,); agent.main()"
    with pytest.raises(Refused, match="line 1: not a limit") as refused:
        hosts.Host.start("server", [sys.executable, "-c", start])
    assert refused.value.kind == "permission"


@pytest.mark.long
def test_an_installed_agent_behind_a_forced_command_runs_no_program_that_it_is_sent(tmp_path):
    """ssh hands the caller's own command to nobody; the program that would travel is left aside."""
    forced = tmp_path / "forced"
    forced.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bottleneck agent\n')
    forced.chmod(0o755)
    with hosts.start_there(f"exec:{shlex.quote(str(forced))}") as host:
        assert host.ask("facts", toward="", folder=None)["python"]


@pytest.mark.long
def test_a_caller_that_reads_no_replies_is_left():
    read, written = os.pipe()
    program = "from bottleneck import agent; "
    program += "agent.WRITE_SECONDS = 0.2; agent.main()"
    flood = b"".join(wire.encode({"id": n, "do": "counters"}) for n in range(1, 200))
    pipes = {"stdin": subprocess.PIPE, "stdout": written, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:
        os.close(written)
        process.stdin.write(flood)
        process.stdin.flush()
        assert process.wait() == 70
        assert b"its replies were not read" in process.stderr.read()
    os.close(read)


def test_a_session_ends_when_its_host_says_so():
    program = "from bottleneck import agent, agent_limits as limits; "
    program += "limits.load = lambda: limits.Limits(seconds=0.2); agent.main()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:
        assert process.wait() == 70
        assert b"its session has ended; see seconds in /etc" in process.stderr.read()


COUNTERS = b"".join(wire.encode({"id": n, "do": "counters"}) for n in range(2, 1500))


@pytest.fixture
def agent_beside():
    """An agent with a session of so many seconds, to be written to and read from by hand."""
    started = []

    def start(seconds="None"):
        program = "from bottleneck import agent, agent_limits as limits; "
        program += f"limits.load = lambda: limits.Limits(seconds={seconds}); agent.main()"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen([sys.executable, "-c", program], bufsize=0, **pipes))
        assert b"version" in started[0].stdout.readline()
        return started[0]

    yield start
    for each in started:
        each.kill()
        for end in (each.stdin, each.stdout, each.stderr):
            end.close()
        each.wait()


def test_a_session_ends_although_nobody_reads_its_replies(agent_beside):
    process = agent_beside("0.5")
    with suppress(BrokenPipeError):  # it has ended by now
        process.stdin.write(COUNTERS[:60_000])
    assert process.wait() == 70
    assert b"its session has ended" in process.stderr.read()


@pytest.mark.long
def test_a_hold_ends_although_nobody_reads_its_replies(agent_beside):
    process = agent_beside()
    held = {"id": 1, "do": "hold", "name": "tcp", "seconds": 5.0}
    held["setting"] = wire.to_plain(tcp.Setting())
    held["peer"] = wire.endpoint_to_plain(Endpoint(host="127.0.0.1"))
    process.stdin.write(wire.encode(held))
    port = json.loads(process.stdout.readline())["endpoint"]["port"]
    process.stdin.write(COUNTERS[:60_000])
    assert until(lambda: not open_files.listeners("127.0.0.1", port)) and process.poll() is None


def test_an_agent_whose_caller_has_gone_does_nothing_more(agent_beside):
    process = agent_beside()
    process.stdin.write(COUNTERS[:60_000])
    process.stdin.close()
    process.stdout.close()
    process.wait()
