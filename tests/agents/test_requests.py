"""The agent itself refuses what is not on its list, and what leads beyond its caller's things."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from bottleneck.agents import bootstrap, hosts, protocol, request_checks, server
from bottleneck.agents.request_checks import (
    INSTALLED_REQUESTS,
    AllowedPaths,
    Session,
    allowed_paths,
    check,
)
from bottleneck.agents.requests import LISTED, OF_STAGES, takes
from probes import STAGES
from probes.core import field_types, typed
from probes.core.records import Endpoint
from probes.core.stage import Refused
from probes.files import created_folder, open_files, source_file
from probes.stages import smb_copy, smbclient_copy, tcp
from tests.living import GENEROUS_SECONDS, below, deadline_in, until

CALLER = "192.0.2.7"
EXAMPLES = {
    "text": "a", "truth": True, "number": 1.0, "count": 1, "any": {}, "port": 5, "seconds": 1.0,
    "size": 1, "hex": "0" * 16, "name": "a", "address": "",
    "folder": "/run-folder", "file": "", "handed": "", "device": "", "leftover": "/left",
}  # fmt: skip
"""A value of each kind that a narrow agent takes."""
FOREIGN = {
    "address": ("nas.example", "127.0.0.1%\nlog file = /x\n#.localhost"),
    "folder": ("/etc", "/", "/run-folder/..", "run-folder", "", "/run-folder-2"),
    "file": ("/etc/shadow", "/proc/self/environ", "/proc/1/fd/3"),
    "handed": ("/etc/shadow", "/run-folder/../etc/shadow"),
    "device": ("/dev/sda", "/dev/null"),
    "leftover": ("/tmp/bottleneck-0123456789abcdef", "/etc"),
    "name": ("../shadow", "..", "/etc/shadow"),
    "hex": ("../../etc",),
}
"""Values that lead elsewhere, by kind."""


def example(kind):
    if kind.endswith("?"):
        return None
    return [example(kind[:-1])] if kind.endswith("*") else EXAMPLES[kind]


def session():
    opened = Session(AllowedPaths(("/run-folder",)))
    opened.leftovers.add("/left")
    return opened


def request_for(do, name):
    form = takes(do, name)
    values = {key: example(kind) for key, kind in form.keys.items()}
    request = {"id": 1, "do": do, "name": name, "seconds": 5.0}
    request["arguments" if do == "ask" else "setting"] = values
    if do in ("hold", "initiate"):
        request["peer"] = {**protocol.endpoint_to_plain(Endpoint(host=CALLER, port=5, share="s"))}
    return request, values


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
        field_types.keys(Setting)
    request, values = request_for("hold", "source-file")
    monkeypatch.setattr(source_file, "Setting", Setting)
    with pytest.raises(TypeError):
        check(request, Session())


@pytest.mark.parametrize(("do", "name"), EVERY)
def test_what_leads_to_other_paths_and_programs_is_refused_in_every_request(do, name, monkeypatch):
    """Each key in turn; what the caller itself was handed passes."""
    monkeypatch.setattr(request_checks._ValueChecks, "check_below", lambda *_: None)
    request, values = request_for(do, name)
    for key, kind in takes(do, name).keys.items():
        values[key] = "/run-folder" if kind == "folder?" else values[key]
    if name not in INSTALLED_REQUESTS[do]:
        with pytest.raises(Refused, match=f"does not {do} {name}"):
            check(request, session())
        check(request, Session())
        return
    check(request, session())
    tried = [(values, key, kind) for key, kind in takes(do, name).keys.items()]
    if "peer" in request:
        tried.append((request["peer"], "path", "handed"))
    for where, key, kind in tried:
        plain = kind.rstrip("?*")
        for each in FOREIGN.get(plain, ()):
            if not each and kind != plain and do == "ask":
                continue
            earlier, where[key] = where[key], [each] if kind.endswith("*") else each
            with pytest.raises(Refused):
                check(request, session())
            where[key] = earlier


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
    request, values = request_for("ask", "user-file")
    values.update(folder="/home/anna", parts=["a.mkv"])
    check(request, Session())
    request, values = request_for("initiate", "disk")
    values.update(device="/dev/sda", folder="/srv")
    check(request, Session())


ALLOWED = AllowedPaths(("/usr",), ("/dev/sda",))


@pytest.mark.parametrize(("allowed", "do", "name", "key", "good", "bad", "said"), [
    (ALLOWED, "hold", "source-file", "folder", "/usr/lib", "/usr/../etc", "--folder"),
    (ALLOWED, "ask", "usable-bytes", "folder", "/usr", "/", "--folder"),
    (AllowedPaths(("/usr",)), "initiate", "disk", "device", "", "/dev/sda", "--device /dev/sda"),
    (ALLOWED, "ask", "readable-device", "node", "/dev/sda", "/dev/sdb", "--device /dev/sdb"),
    (AllowedPaths((), ("/dev/sda",)), "ask", "usable-bytes", "folder", None, "/usr", "--folder"),
    (ALLOWED, "initiate", "smbclient-copy", "folder", "/usr", "", "needs a folder"),
    (ALLOWED, "initiate", "disk", "folder", "/usr", "", "needs a folder"),
    (ALLOWED, "ask", "remove-leftover", "path", None, "/usr/lib/a", "listed"),
])  # fmt: skip
def test_an_installed_agent_touches_only_what_its_command_line_names(
    allowed, do, name, key, good, bad, said
):
    request, values = request_for(do, name)
    kinds = takes(do, name).keys.items()
    values.update({each: "/usr" for each, kind in kinds if kind.startswith("folder")})
    if good is not None:
        values[key] = good
        check(request, Session(allowed))
    values[key] = bad
    with pytest.raises(Refused, match=said):
        check(request, Session(allowed))
    check(request, Session())


def test_a_session_has_a_bound_on_its_requests(monkeypatch):
    monkeypatch.setattr(request_checks, "MOST_TASKS", 2)
    request, _ = request_for("ask", "smbclient")
    limited = Session()
    for _ in range(2):
        check(request, limited)
    with pytest.raises(Refused, match="requests"):
        check(request, limited)


def test_an_address_is_one_however_it_is_written_and_what_is_more_is_none():
    """A resolver may know the rest as a name, and a configuration as lines of its own."""
    for text in ("::ffff:192.0.2.7", "192.0.2.7", "::ffff:c000:207%eth0"):
        assert request_checks.whole_address(text) == CALLER
    for text in ("192.0.2.7%eth0", "[192.0.2.7]", "::1%\n[x]", "::1%a b", "::1%"):
        assert request_checks.whole_address(text) == ""


@pytest.mark.parametrize(("do", "name"), [each for each in EVERY if each[0] != "ask"])
def test_a_setting_without_a_key_is_refused(do, name):
    """Its default would be what nobody has checked: the current folder, a rate."""
    request, values = request_for(do, name)
    for key in list(values):
        value = values.pop(key)
        with pytest.raises(Refused, match="lacks"):
            check(request, Session())
        values[key] = value


def test_a_link_leads_out_of_no_folder_that_is_allowed(tmp_path):
    allowed, secret = tmp_path / "allowed", tmp_path / "secret"
    for each in (allowed, secret):
        each.mkdir()
        (each / "file").touch()
    (allowed / "link").symlink_to(secret)
    request, values = request_for("ask", "user-file")
    values.update(folder=str(allowed), parts=["file"])
    limited = Session(AllowedPaths((str(allowed),)))
    check(request, limited)
    for parts in (["link", "file"], ["LINK", "file"], ["FILE"]):
        values["parts"] = parts
        with pytest.raises(Refused, match="link"):
            check(request, limited)


@contextmanager
def start_installed(*options):
    """The agent as a forced command of ssh starts it: the program that would travel is left."""
    forced = shlex.join([sys.executable, "-m", "bottleneck", "agent", *map(str, options)])
    with hosts.start_there(f"exec:sh -c {shlex.quote(f'exec {forced}')}") as host:
        yield host


@pytest.mark.long
def test_an_installed_agent_reads_no_file_of_its_user_and_runs_no_command(tmp_path):
    secret, media = tmp_path / "secret", tmp_path / "media"
    secret.write_text("the host's own")
    media.mkdir()
    copied = smbclient_copy.Setting("push.cached", "3.1.1", 14, 5.0, "got", folder=str(media))
    by_us = smb_copy.Setting("push.cached", "3.1.1", "memory", 14, 5.0, folder="")
    peer = Endpoint(host="127.0.0.1", port=9, share="mine", path=str(secret))
    outside = source_file.Setting(str(tmp_path), 1, 1.0, "00")
    with start_installed("--folder", media) as host:
        with pytest.raises(Refused, match="only files that it made"):
            host.initiate("smbclient-copy", copied, peer, 5.0)
        with pytest.raises(Refused, match="does not initiate smb-copy"):
            host.initiate("smb-copy", by_us, peer, 5.0)
        with (
            pytest.raises(Refused, match="--folder"),
            host.hold("source-file", outside, Endpoint(), 5),
        ):
            pass
        inside = source_file.Setting(str(media), 1 << 12, 5.0, "00")
        with host.hold("source-file", inside, Endpoint(), 20):
            assert host.ask("usable-bytes", folder=str(media)) > 0
        assert until(lambda: not below(host.process.pid))
    assert sorted(tmp_path.iterdir()) == [media, secret] and not list(media.iterdir())


def test_a_file_below_its_folder_is_timed_by_an_installed_agent_and_not_copied():
    for name, allowed in (("disk", True), ("smbclient-copy", False)):
        request, values = request_for("initiate", name)
        values["folder"] = "/run-folder"
        request["peer"]["path"] = "/run-folder/film.mkv"
        if allowed:
            check(request, session())
            request["peer"]["path"] = "/etc/shadow"
        with pytest.raises(Refused, match="only files that it made"):
            check(request, session())


def test_after_a_hold_that_hands_out_nothing_no_path_is_handed_out():
    """The empty path of a data port is none."""
    caller = session()
    event = {"endpoint": protocol.endpoint_to_plain(Endpoint(host="", port=5, path=""))}
    caller.hand_out(1, "hold", "tcp", event)
    caller.hand_out(2, "hold", "source-file", event)
    assert not caller.source_files
    request, values = request_for("ask", "usable-bytes")
    for values["folder"] in ("", ".", "bottleneck-0123456789abcdef"):
        with pytest.raises(Refused, match="--folder"):
            check(request, caller)


def test_leftovers_elsewhere_are_neither_told_nor_removed(tmp_path):
    session = Session(AllowedPaths((str(tmp_path),)))
    paths = [
        str(tmp_path / "bottleneck-0123456789abcdef"),
        "/srv/other/bottleneck-0123456789abcdef",
    ]
    event = {"answer": [{"path": each} for each in paths]}
    session.hand_out(1, "ask", "leftovers", event)
    assert event["answer"] == [{"path": paths[0]}] and session.leftovers == {paths[0]}
    free = Session()
    free.hand_out(1, "ask", "leftovers", {"answer": [{"path": each} for each in paths]})
    assert free.leftovers == set(paths)


@pytest.mark.parametrize("typed", ["", "media", "/no/such/folder", "/etc/passwd"])
def test_a_folder_of_the_command_line_is_a_full_path_that_is_there(typed, tmp_path):
    with pytest.raises(Refused, match="--folder"):
        allowed_paths([typed], [])
    (tmp_path / "link").symlink_to("/usr")
    assert allowed_paths([str(tmp_path / "link")], ["/dev/sda"]) == AllowedPaths(
        ("/usr",), ("/dev/sda",)
    )
    with pytest.raises(Refused, match="--device"):
        allowed_paths([], ["sda"])


def test_so_many_requests_at_once_and_no_more():
    with hosts.start_here() as host, pytest.raises(Refused, match="at once"):
        numbers = [
            host.send({"do": "hold", "name": "disk", "seconds": 20.0, **settings()})
            for _ in range(request_checks.MOST_AT_ONCE + 1)
        ]
        host.next(numbers[-1], deadline_in(), "the last")


def settings():
    request, _ = request_for("hold", "disk")
    return {"setting": request["setting"], "peer": protocol.endpoint_to_plain(Endpoint())}


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
    program = "from bottleneck.agents import server; "
    program += "server.WRITE_SECONDS = 0.2; server.main()"
    flood = b"".join(protocol.encode({"id": n, "do": "counters"}) for n in range(1, 200))
    pipes = {"stdin": subprocess.PIPE, "stdout": written, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:
        os.close(written)
        process.stdin.write(flood)
        process.stdin.flush()
        assert process.wait() == 70
        assert b"its replies were not read" in process.stderr.read()
    os.close(read)


COUNTERS = b"".join(protocol.encode({"id": n, "do": "counters"}) for n in range(2, 1500))


@pytest.fixture
def agent_beside():
    """An agent, to be written to and read from by hand."""
    started = []

    def start():
        program = "from bottleneck.agents import server; server.main()"
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


@pytest.mark.long
def test_a_hold_ends_although_nobody_reads_its_replies(agent_beside):
    process = agent_beside()
    request = {"id": 1, "do": "hold", "name": "tcp", "seconds": 5.0}
    request["setting"] = typed.to_plain(tcp.Setting())
    request["peer"] = protocol.endpoint_to_plain(Endpoint(host="127.0.0.1"))
    process.stdin.write(protocol.encode(request))
    port = json.loads(process.stdout.readline())["endpoint"]["port"]
    process.stdin.write(COUNTERS[:60_000])
    assert until(lambda: not open_files.listeners("127.0.0.1", port)) and process.poll() is None


def test_an_agent_whose_caller_has_gone_does_nothing_more(agent_beside):
    process = agent_beside()
    process.stdin.write(COUNTERS[:60_000])
    process.stdin.close()
    process.stdout.close()
    process.wait()


@pytest.mark.parametrize(("work", "limit"), [(False, "SILENCE"), (True, "RUN_SILENCE")])
def test_an_agent_whose_client_is_silent_ends_with_its_folder(tmp_path, work, limit):
    """Its stdin stays open, as behind an sshd that has not noticed a power cut."""
    program = f"from bottleneck.agents import server as s; s.SILENCE_SECONDS = {GENEROUS_SECONDS}; "
    program += f"s.RUN_SILENCE_SECONDS = {GENEROUS_SECONDS}; s.{limit}_SECONDS = 0.2; s.main()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], bufsize=0, **pipes) as process:
        if work:
            setting = created_folder.Setting(str(tmp_path), "0" * 16, 1 << 22, 9.0, "00")
            request = {"id": 1, "do": "hold", "name": "mounted-folder", "seconds": GENEROUS_SECONDS}
            request["setting"] = typed.to_plain(setting)
            request["peer"] = protocol.endpoint_to_plain(Endpoint())
            process.stdin.write(protocol.encode(request))
        assert process.wait() == 70
        assert b"its client has been silent for too long" in process.stderr.read()
    assert not list(tmp_path.iterdir())


def test_a_folder_whose_source_is_still_written_goes_when_the_agent_ends(tmp_path):
    """SIGTERM while a slow mount takes the source: its writer cannot be waited for."""
    program = "import threading; from probes.files import source_file; from bottleneck.agents "
    program += (
        "import server; source_file.fill = lambda *_: threading.Event().wait(); server.main()"
    )
    setting = created_folder.Setting(str(tmp_path), "0" * 16, 1 << 22, 600.0, "00")
    request = {"id": 1, "do": "hold", "name": "mounted-folder", "seconds": 600.0}
    request["setting"] = typed.to_plain(setting)
    request["peer"] = protocol.endpoint_to_plain(Endpoint())
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, bufsize=0
    ) as agent:
        agent.stdin.write(protocol.encode(request))
        assert until(lambda: list(tmp_path.glob("*/source-*")))
        agent.stdin.close()
        assert agent.wait() == 0
    assert not list(tmp_path.iterdir())


def test_a_blank_line_is_a_sign_of_life_of_a_client_and_no_request():
    with Path(os.devnull).open("wb") as replies:
        for sign in (b"", b"\n"):
            requests_fd, client_fd = os.pipe()
            agent = server.Agent(requests_fd, replies.fileno(), heard=-math.inf)
            agent.reply_bytes = lambda line: None
            os.write(client_fd, sign)
            if not sign:
                with pytest.raises(server.SessionEnd, match="silent"):
                    agent.serve()
            os.close(client_fd)
            if sign:
                agent.serve()
            os.close(requests_fd)


def test_a_program_that_stops_travelling_is_not_waited_for():
    source = bootstrap._STARTER_SOURCE.replace("alarm(30)", "setitimer(signal.ITIMER_REAL,0.2)")
    with subprocess.Popen([sys.executable, "-c", source], stdin=subprocess.PIPE) as starter:
        starter.stdin.write(b"5000\n")
        starter.stdin.flush()
        assert starter.wait() == -signal.SIGALRM


@pytest.mark.parametrize("redirected", ["</dev/null", "<&-"])
def test_an_agent_that_nobody_can_ask_is_one_line(redirected):
    command = f"{shlex.quote(sys.executable)} -m bottleneck agent {redirected}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith("bottleneck: agent: stdin") and done.stderr.count("\n") == 1


def test_no_agent_listens():
    """A test's data port is its child's, for its seconds."""
    with hosts.start_here() as host:
        with host.hold("tcp", tcp.Setting(), Endpoint(host="127.0.0.1"), 20) as endpoint:
            assert endpoint.port
            assert not psutil.Process(host.process.pid).net_connections()
        children = below(host.process.pid)
        assert until(lambda: not below(host.process.pid)), children
        assert until(lambda: not open_files.listeners("127.0.0.1", endpoint.port))
