#!/usr/bin/env python3
"""Take an agent's client away in four ways, and time how long the agent and its files stay.

Usage: python tests/hostile/agents_end.py

The client is killed, frozen, cut off (the link goes down), or loses its power (it and the link are
gone at once, so that no packet tells of it), through a real sshd in a network namespace of its own;
and a relay of `exec:` stops passing bytes on. Each while the agent is idle, while it holds files
and while it streams results. All cases run at the same time: some 70 seconds.
Exit code: 0 each agent and its files were gone in LIMIT_SECONDS; 1 one was not; 69 this machine
cannot hold the trial.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count, product
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

GONE, STAYED, NO_TRIAL = 0, 1, 69
LIMIT_SECONDS = 60.0
PATIENCE_SECONDS = 90.0
WAYS = ("killed", "frozen", "link cut", "power cut", "relay stops")
WORK = ("idle", "holds files", "streams")
ADDRESS = "198.18.0.1"
KEYGEN = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f")
CLIENT = """
import sys
from contextlib import ExitStack
from bottleneck.agents import bootstrap, hosts
from probes.core.records import Endpoint
from probes.files import created_folder, source_file
from probes.stages import loopback

spec, config, work, folder = sys.argv[1:]
command = bootstrap.command_for(spec)
command[1:1] = ["-F", config] if spec.startswith("ssh:") else []
host = hosts.Host.start("server", command, bootstrap.program())

def ready(*_):
    print("ready", flush=True)

with ExitStack() as stack:
    if work == "holds files":
        own = created_folder.Setting(folder, "0" * 16, 1 << 22, 5.0, "00")
        stack.enter_context(host.hold("mounted-folder", own, Endpoint(), 600, 30))
        source = source_file.Setting(folder, 1 << 22, 5.0, "00")
        stack.enter_context(host.hold("source-file", source, Endpoint(), 600, 30))
    if work == "streams":
        setting = loopback.Setting("push", 1, seconds=300.0)
        peer = stack.enter_context(host.hold("loopback", setting, Endpoint(), 600))
        host.initiate("loopback", setting, peer, 600, progress=ready)
    ready()
    sys.stdin.read()
"""
RELAY = """
import os, subprocess, sys, threading
agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         start_new_session=True)
def passes(source, sink):
    while chunk := os.read(source, 65536):
        os.write(sink, chunk)
    os.close(sink)
threading.Thread(target=passes, args=(0, agent.stdin.fileno()), daemon=True).start()
passes(agent.stdout.fileno(), 1)
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def link_namespaces(name: str, config: Path) -> Iterator[None]:
    """Two namespaces, NAME-c and NAME-s, a link between them, and an sshd in the second."""
    client, server = f"{name}-c", f"{name}-s"
    with ExitStack() as stack:
        for each in (client, server):
            ip("netns", "add", each)
            stack.callback(ip, "netns", "del", each)
        ends = ["veth0", "netns", client, "type", "veth", "peer", "name", "veth0"]
        ip("link", "add", *ends, "netns", server)
        for each, address in ((client, "198.18.0.2/24"), (server, f"{ADDRESS}/24")):
            ip("-n", each, "address", "add", address, "dev", "veth0")
            for device in ("lo", "veth0"):
                ip("-n", each, "link", "set", device, "up")
        command = ["ip", "netns", "exec", server, "/usr/sbin/sshd", "-D", "-e", "-f", str(config)]
        daemon = subprocess.Popen(command, stderr=subprocess.PIPE)
        stack.callback(end, daemon)
        assert daemon.stderr is not None
        while b"listening" not in daemon.stderr.readline():
            if daemon.poll() is not None:
                raise RuntimeError("sshd did not come up")
        yield


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        for each in psutil.Process(process.pid).children(recursive=True):
            each.kill()
        process.kill()
        process.wait()


def agents(folder: Path) -> list[psutil.Process]:
    """Living processes of an agent, which keep its nameless files; their environment names it."""
    processes = []
    for each in psutil.process_iter():
        try:
            if each.status() != psutil.STATUS_ZOMBIE and "-I" in each.cmdline()[:3]:
                processes += [each] if each.environ().get("AGENT_FOLDER") == str(folder) else []
        except psutil.Error:
            continue
    return processes


def end_client(way: str, work: str, name: str, keys: Path) -> float:
    """Takes one client away; the seconds until its agent and files were gone, or patience ended."""
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=keys))
    (folder / "relay.py").write_text(RELAY)
    by_ssh = way != WAYS[-1]
    spec = f"ssh://{ADDRESS}:2222" if by_ssh else f"exec:{sys.executable} {folder}/relay.py"
    config = folder / "sshd"
    config.write_text(f"{(keys / 'sshd').read_text()}SetEnv AGENT_FOLDER={folder}\n")
    command = [sys.executable, "-c", CLIENT, spec, str(keys / "ssh"), work, str(folder)]
    with link_namespaces(name, config), ExitStack() as stack:
        client = subprocess.Popen(
            ["ip", "netns", "exec", f"{name}-c", *command],
            cwd=ROOT,
            env={**os.environ, "AGENT_FOLDER": "" if by_ssh else str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(lambda: [each.kill() for each in agents(folder)])
        stack.callback(end, client)
        assert client.stdout is not None
        if not client.stdout.readline() or not agents(folder):
            raise RuntimeError(f"{way}, {work}: no agent came")
        take_away(client, way, name)
        began = time.monotonic()
        while agents(folder) or [*folder.glob("bottleneck-*")]:
            if time.monotonic() > began + PATIENCE_SECONDS:
                break
            time.sleep(0.2)
        return time.monotonic() - began


def take_away(client: subprocess.Popen[bytes], way: str, name: str) -> None:
    if way == "link cut":
        ip("-n", f"{name}-s", "link", "set", "veth0", "down")
    elif way == "power cut":
        ip("-n", f"{name}-c", "link", "del", "veth0")
        end(client)
    elif way == "relay stops":
        psutil.Process(client.pid).children()[0].suspend()
    else:
        client.send_signal(signal.SIGKILL if way == "killed" else signal.SIGSTOP)


def main() -> int:
    if os.geteuid() != 0 or not Path("/usr/sbin/sshd").exists():
        print("this trial needs root and openssh-server")
        return NO_TRIAL
    Path("/run/sshd").mkdir(exist_ok=True)
    names = (f"ends{os.getpid()}-{number}" for number in count())
    with tempfile.TemporaryDirectory() as place:
        keys = Path(place)
        for key in ("host", "user"):
            subprocess.run([*KEYGEN, str(keys / key)], check=True)
        (keys / "sshd").write_text(
            f"Port 2222\nHostKey {keys}/host\nAuthorizedKeysFile {keys}/user.pub\nPidFile none\n"
            "StrictModes no\nUsePAM no\nPermitRootLogin yes\n"
        )
        (keys / "ssh").write_text(
            f"IdentityFile {keys}/user\nUserKnownHostsFile /dev/null\nStrictHostKeyChecking no\n"
            "User root\n"
        )
        cases = list(product(WAYS, WORK))
        with ThreadPoolExecutor(len(cases)) as pool:
            seconds = list(pool.map(lambda each: end_client(*each, next(names), keys), cases))
    print(f"{'client':12} {'agent':12} gone after")
    for (way, work), each in zip(cases, seconds, strict=True):
        print(f"{way:12} {work:12} {each:8.1f} s")
    stayed = [each for each in seconds if each > LIMIT_SECONDS]
    print(f"{len(cases) - len(stayed)} of {len(cases)} in {LIMIT_SECONDS:.0f} s")
    return STAYED if stayed else GONE


if __name__ == "__main__":
    sys.exit(main())
