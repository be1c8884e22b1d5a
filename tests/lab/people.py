#!/usr/bin/env python3
"""What people are told: 26 situations of an ordinary user, with the program's words and exit code.

Usage: python tests/lab/people.py [NAME ...]

Two hosts in namespaces of their own, with accounts of their own: `anna` at the client, nobody
special; `srv`, whom the server's sshd lets in, and `smb`, who owns the shares of a private Samba.
Needs root and the tree and its .venv where everybody may read them. All of it takes 15 minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from samba import GLOBAL

ROOT = Path(__file__).resolve().parents[2]
SITE = next((ROOT / ".venv" / "lib").glob("python3.*/site-packages"), ROOT)
HERE, NAS = "10.77.9.1", "10.77.9.2"
ANNA, SRV, SMB = 4101, 4102, 4103
PASSWORD = "anna's own word"
SHARES = {"media": "", "open": "", "small": "", "full": "", "readonly": "read only = yes"}
ROOM = {"small": 440 << 20, "full": 64 << 20}
USUAL, LINK = ("--budget", "30"), "200mbit"
SSHD = """ListenAddress {nas}
HostKey {work}/host
PidFile none
AuthorizedKeysFile {work}/authorized.%u
StrictModes no
UsePAM no
PasswordAuthentication no
"""
NO_LARGE_PACKETS = """
add table inet hole
add chain inet hole in { type filter hook input priority 0; }
add rule inet hole in tcp dport 22 accept
add rule inet hole in tcp sport 22 accept
add rule inet hole in iif eth0 meta length > 1500 drop
"""
DEAD_MOUNT = """
import ctypes, os, sys
fd = os.open("/dev/fuse", os.O_RDWR)
told = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
if ctypes.CDLL(None, use_errno=True).mount(b"nas", sys.argv[1].encode(), b"fuse.sshfs", 0, told):
    raise OSError(ctypes.get_errno(), "mount")
"""


def call(*command: str | Path, **more: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload]
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.strip()}")
    return str(done.stdout)


@dataclass
class Host:
    """Namespaces with files of their own, and who holds them."""

    holder: subprocess.Popen[bytes]

    def inside(self, *command: str | Path) -> list[str]:
        """A command there, as root."""
        spaces = ("--mount", "--net", "--uts")
        return ["nsenter", "--target", str(self.holder.pid), *spaces, "--", *map(str, command)]

    def call(self, *command: str | Path, **more: object) -> str:
        return call(*self.inside(*command), **more)

    @contextlib.contextmanager
    def hidden(self, program: str) -> Iterator[None]:
        """A program that nobody can start there."""
        path = os.path.realpath(program)
        self.call("mount", "--bind", "/dev/null", path)
        try:
            yield
        finally:
            self.call("umount", path)


@contextlib.contextmanager
def host(name: str, work: Path) -> Iterator[Host]:
    """A host with accounts and names of its own."""
    made = work / name
    made.mkdir()
    for uid, user in ((ANNA, "anna"), (SRV, "srv"), (SMB, "smb")):
        home = work / f"{name}-{user}"
        (home / ".ssh").mkdir(parents=True)
        for each in (home, home / ".ssh"):
            os.chown(each, uid, uid)
        with (made / "passwd").open("a") as passwd, (made / "shadow").open("a") as shadow:
            passwd.write(f"{user}:x:{uid}:{uid}::{home}:/bin/bash\n")
            shadow.write(f"{user}:*:19000:0:99999:7:::\n")
        with (made / "group").open("a") as group:
            group.write(f"{user}:x:{uid}:\n")
    for file in ("passwd", "shadow", "group"):
        (made / file).write_text(Path("/etc", file).read_text() + (made / file).read_text())
    (made / "hosts").write_text(f"127.0.0.1 localhost\n{NAS} nas\n{HERE} pc\n")
    command = ["unshare", "--mount", "--net", "--uts", "sh", "-c", "echo ready; exec cat"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as holder:  # type: ignore[call-overload]
        assert holder.stdout is not None and holder.stdin is not None
        holder.stdout.readline()
        found = Host(holder)
        for file in ("passwd", "shadow", "group", "hosts"):
            found.call("mount", "--bind", made / file, f"/etc/{file}")
        found.call("hostname", name)
        found.call("ip", "link", "set", "lo", "up")
        try:
            yield found
        finally:
            holder.stdin.close()


@dataclass
class People:
    """Both hosts and what runs there."""

    work: Path
    client: Host
    server: Host
    stack: ExitStack
    said: list[str] = field(default_factory=list)

    def serve(self, *command: str | Path, at: Host | None = None) -> subprocess.Popen[bytes]:
        """A program that runs until the end."""
        command = ("setpriv", "--pdeathsig", "KILL", "--", *command)
        with (self.work / "log").open("ab") as log:
            running = subprocess.Popen(
                (at or self.server).inside(*command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # smbd ends its whole process group
            )
        self.stack.callback(running.wait)
        self.stack.callback(running.terminate)
        return running

    def anna(self, *words: str) -> list[str]:
        """The program as an ordinary user starts it."""
        who = (
            "setpriv",
            "--reuid",
            str(ANNA),
            "--regid",
            str(ANNA),
            "--clear-groups",
            "env",
            "-i",
            "-C",
        )
        home = f"{self.work}/pc-anna"
        given = (home, "PATH=/usr/bin:/bin", f"HOME={home}", "USER=anna", "LANG=C.UTF-8")
        more = (f"PYTHONPATH={ROOT}:{SITE}", f"BOTTLENECK_PASSWORD={PASSWORD}")
        return self.client.inside(
            *who, *given, *more, "/usr/bin/python3", "-m", "bottleneck", *words
        )

    def says(self, *words: str, seconds: float = 120.0) -> None:
        """Prints what a command said, and its exit code."""
        began = time.monotonic()
        done = subprocess.run(
            self.anna(*words), capture_output=True, text=True, timeout=seconds, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        lines = [each for each in done.stderr.splitlines() if each.startswith("bottleneck:")]
        print(f"$ bottleneck {' '.join(words)}", *done.stdout.splitlines(), *lines, sep="\n")
        print(f"[exit code {done.returncode}, {time.monotonic() - began:.0f} s]\n", flush=True)

    def diagnose(self, share: str, *words: str, seconds: float = 120.0, rate: str = LINK) -> None:
        """A diagnosis of a share behind a link of that rate; empty: of any."""
        usual = () if {"--budget", "--quick", "--thorough"} & set(words) else USUAL
        given = ("--user", "smb", "--yes", *usual)
        with self.shaped(rate, self.client, self.server):
            self.says("diagnose", f"//nas/{share}", *given, *words, seconds=seconds)

    @contextlib.contextmanager
    def shaped(self, rate: str, *hosts: Host) -> Iterator[None]:
        """What leaves these hosts, at most; empty: whatever they can."""
        hosts = hosts if rate else ()
        limit = ("root", "tbf", "rate", rate, "burst", "32k", "latency", "50ms")
        for each in hosts:
            each.call("tc", "qdisc", "add", "dev", "eth0", *limit)
        try:
            yield
        finally:
            for each in hosts:
                each.call("tc", "qdisc", "del", "dev", "eth0", "root")

    def known(self, text: str) -> None:
        """What anna's ssh knows of hosts."""
        file = self.work / "pc-anna" / ".ssh" / "known_hosts"
        file.write_text(text)
        os.chown(file, ANNA, ANNA)


@contextlib.contextmanager
def people() -> Iterator[People]:
    with ExitStack() as stack:
        work = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="people-", dir="/var/tmp"))
        )
        work.chmod(0o755)
        client, server = (stack.enter_context(host(each, work)) for each in ("pc", "nas"))
        made = People(work, client, server, stack)
        _cable(client, server)
        _shares(made)
        _ssh(made)
        made.serve("smbd", "-s", work / "smb.conf", "--foreground", "--no-process-group")
        made.serve("/usr/sbin/sshd", "-D", "-e", "-f", work / "sshd_config")
        _until_settled(client, server)
        for port in (445, 22):
            _until_open(client, port)
        yield made


def _cable(client: Host, server: Host) -> None:
    pids = [str(each.holder.pid) for each in (client, server)]
    call("ip", "link", "add", "people0", "type", "veth", "peer", "name", "people1")
    for name, pid, where, address in zip(
        ("people0", "people1"), pids, (client, server), (HERE, NAS), strict=True
    ):
        call("ip", "link", "set", name, "netns", pid, "name", "eth0")
        where.call("ip", "address", "add", f"{address}/24", "dev", "eth0")
        where.call("ip", "link", "set", "eth0", "up")


def _shares(made: People) -> None:
    state = made.work / "samba"
    text = GLOBAL.format(state=state, options="server min protocol = SMB2")
    for name, more in SHARES.items():
        folder, image = made.work / "shares" / name, made.work / f"{name}.img"
        folder.mkdir(parents=True)
        with image.open("wb") as file:
            file.truncate(ROOM.get(name, 4 << 30))
        call("mkfs.ext4", "-q", "-m", "0", image)
        made.server.call("mount", "-o", "loop", image, folder)
        made.stack.callback(made.server.call, "umount", "--lazy", folder)
        # Where only its user may write, no other account has a place on that file system.
        made.server.call("rmdir", folder / "lost+found")
        made.server.call("chown", "smb:smb", folder)
        made.server.call("chmod", "1777" if name == "open" else "0755", folder)
        text += f"[{name}]\npath = {folder}\nvalid users = smb\n{more or 'read only = no'}\n"
    made.server.call("fallocate", "-l", "230M", made.work / "shares/small/film")
    made.server.call("dd", "if=/dev/zero", f"of={made.work}/shares/full/film", "bs=1M", "count=50")
    state.mkdir()
    (made.work / "smb.conf").write_text(text)
    made.server.call("mount", "--bind", made.work / "smb.conf", "/etc/samba/smb.conf")
    told = {"input": f"{PASSWORD}\n{PASSWORD}\n"}
    made.server.call("smbpasswd", "-c", made.work / "smb.conf", "-L", "-s", "-a", "smb", **told)


def _ssh(made: People) -> None:
    key = made.work / "pc-anna" / ".ssh" / "id_ed25519"
    for file in (key, made.work / "host"):
        call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file)
    for file in (key, key.with_suffix(".pub")):
        os.chown(file, ANNA, ANNA)
    (made.work / "authorized.srv").write_text(key.with_suffix(".pub").read_text())
    (made.work / "authorized.root").write_text(key.with_suffix(".pub").read_text())
    (made.work / "sshd_config").write_text(SSHD.format(work=made.work, nas=NAS))
    Path("/run/sshd").mkdir(exist_ok=True)
    kind, public, *_ = (made.work / "host.pub").read_text().split()
    made.known(f"nas,{NAS} {kind} {public}\n")


def _until_settled(client: Host, server: Host) -> None:
    """Until nobody else is known to have the hosts' addresses of the link (RFC 4862)."""
    for each in (client, server):
        while each.call("ip", "-6", "address", "show", "tentative").strip():
            time.sleep(0.1)


def _until_open(client: Host, port: int) -> None:
    probe = f"import socket; socket.create_connection(('{NAS}', {port}), 1).close()"
    until = time.monotonic() + 30
    while subprocess.run(
        client.inside("python3", "-c", probe), stderr=subprocess.DEVNULL
    ).returncode:
        if time.monotonic() > until:
            raise RuntimeError(f"nothing listens on port {port}")
        time.sleep(0.1)


# -- the situations -------------------------------------------------------------------------------


def local_folder(it: People) -> None:
    it.says("diagnose", "/tmp", "--yes")


def dead_mount(it: People) -> None:
    gone = it.work / "gone"
    gone.mkdir()
    it.client.call("/usr/bin/python3", "-c", DEAD_MOUNT, gone)
    it.says("diagnose", str(gone), "--yes")
    it.client.call("umount", "--lazy", gone)


def without_slashes(it: People) -> None:
    it.says("diagnose", "nas/media", "--yes")


def small_share(it: People) -> None:
    it.says("doctor", "//nas/small", "--user", "smb")
    it.diagnose("small")


def full_share(it: People) -> None:
    it.says("doctor", "//nas/full", "--user", "smb")
    it.diagnose("full")


def read_only_share(it: People) -> None:
    it.says("doctor", "//nas/readonly", "--user", "smb")
    it.diagnose("readonly")


def other_account(it: People) -> None:
    agent = ("--agent", "ssh://srv@nas")
    it.says("doctor", "//nas/media", "--user", "smb", *agent)
    it.diagnose("media", *agent)


def other_account_with_a_folder(it: People) -> None:
    agent = ("--agent", "ssh://srv@nas")
    it.says("doctor", "//nas/open", "--user", "smb", *agent)
    it.diagnose("open", *agent)


def shaped_here(it: People) -> None:
    with it.shaped(LINK, it.client):
        it.diagnose("media", rate="")


def _watched(it: People, command: str) -> None:
    words = ("smbclient", "-s", str(it.work / "smb.conf"), "//nas/media", "-U", f"smb%{PASSWORD}")
    with it.shaped(LINK, it.client, it.server):
        who = ("setpriv", "--reuid", str(ANNA))
        copying = it.serve(*who, *words, "-c", command, at=it.client)
        time.sleep(2)
        it.says("watch", "--seconds", "8")
        copying.terminate()


def watched_push(it: People) -> None:
    file = it.work / "pc-anna" / "film"
    call("dd", "if=/dev/urandom", f"of={file}", "bs=1M", "count=1024")
    file.chmod(0o644)
    _watched(it, f"put {file} film")


def watched_pull(it: People) -> None:
    file = it.work / "shares" / "media" / "film"
    it.server.call("dd", "if=/dev/urandom", f"of={file}", "bs=1M", "count=2500")
    it.server.call("chown", "smb", file)
    _watched(it, "get film /dev/null")
    it.server.call("rm", file)


def one_megabit(it: People) -> None:
    it.diagnose("media", "--budget", "60", rate="1mbit")


def no_fio_here(it: People) -> None:
    with it.client.hidden("/usr/bin/fio"):
        it.diagnose("open", "--agent", "ssh://srv@nas")


def no_fio_there(it: People) -> None:
    with it.server.hidden("/usr/bin/fio"):
        it.diagnose("open", "--agent", "ssh://srv@nas")


def no_agent_three_times(it: People) -> None:
    for _ in range(3):
        it.diagnose("media")


def key_refused(it: People) -> None:
    it.diagnose("media", "--agent", "ssh://smb@nas")


def host_unknown(it: People) -> None:
    known = (it.work / "pc-anna/.ssh/known_hosts").read_text()
    it.known("")
    it.diagnose("media", "--agent", "ssh://srv@nas")
    it.known(known)


def host_key_changed(it: People) -> None:
    known = (it.work / "pc-anna/.ssh/known_hosts").read_text()
    kind, public, *_ = (it.work / "pc-anna/.ssh/id_ed25519.pub").read_text().split()
    it.known(f"nas,{NAS} {kind} {public}\n")
    it.diagnose("media", "--agent", "ssh://srv@nas")
    it.known(known)


def no_python_there(it: People) -> None:
    with it.server.hidden("/usr/bin/python3"):
        it.diagnose("media", "--agent", "ssh://srv@nas")


def banner(it: People) -> None:
    profile = it.work / "nas-srv" / ".bashrc"
    profile.write_text("echo; echo '*** Welcome to nas ***'\n")
    it.diagnose("open", "--agent", "ssh://srv@nas")
    profile.unlink()


def mtu_hole(it: People) -> None:
    for each in (it.client, it.server):
        each.call("ip", "link", "set", "eth0", "mtu", "9000", "gso_max_segs", "1")
        each.call("nft", NO_LARGE_PACKETS)
    it.diagnose("open", "--agent", "ssh://srv@nas", "--quick", rate="")
    for each in (it.client, it.server):
        each.call("nft", "delete", "table", "inet", "hole")
        each.call("ip", "link", "set", "eth0", "mtu", "1500", "gso_max_segs", "65535")


def two_interfaces(it: People) -> None:
    pids = [str(each.holder.pid) for each in (it.client, it.server)]
    call("ip", "link", "add", "people2", "type", "veth", "peer", "name", "people3")
    for name, pid, where, at in zip(
        ("people2", "people3"), pids, (it.client, it.server), (1, 2), strict=True
    ):
        call("ip", "link", "set", name, "netns", pid, "name", "eth1")
        where.call("ip", "address", "add", f"10.77.10.{at}/24", "dev", "eth1")
        where.call("ip", "link", "set", "eth1", "up")
    costly = "strict sync = yes\nsync always = yes\nuse sendfile = no\naio read size = 0\n"
    conf = it.work / "smb.conf"
    conf.write_text(conf.read_text().replace("[media]\n", f"[media]\n{costly}"))
    it.diagnose("media", "--agent", "ssh://root@nas", "--budget", "60")
    conf.write_text(conf.read_text().replace(costly, ""))
    it.client.call("ip", "link", "del", "eth1")


def link_local(it: People) -> None:
    told = it.server.call("ip", "-6", "-brief", "address", "show", "dev", "eth0")
    address = next(each for each in told.split() if each.startswith("fe80")).partition("/")[0]
    given = ("--user", "smb", "--yes", *USUAL)
    it.says("diagnose", f"//[{address}%eth0]/media", *given)


def fleet_mostly_missing(it: People) -> None:
    folder = it.work / "pc-anna" / "reports"
    folder.mkdir(exist_ok=True)
    os.chown(folder, ANNA, ANNA)
    for target in ("nas", "nas2", "nas3", "nas4"):
        name = f"pc@{target}.json"
        given = ("--user", "smb", "--yes", "--quick", "--quiet", "--json", f"{folder}/{name}")
        subprocess.run(
            it.anna("diagnose", f"//{target}/open", *given), capture_output=True, timeout=90
        )
    it.says("fleet", "--reports", str(folder))


def thorough(it: People) -> None:
    it.diagnose("media", "--agent", "ssh://root@nas", "--thorough", seconds=400)


def one_copy(it: People) -> None:
    it.says("probe", "smb-copy", "--copy", "pull.cached", "//nas/media", "--user", "smb", "--yes")


SITUATIONS: tuple[Callable[[People], None], ...] = (
    *(local_folder, dead_mount, without_slashes, small_share, full_share, read_only_share),
    *(other_account, other_account_with_a_folder, shaped_here, watched_push, watched_pull),
    *(one_megabit, no_fio_here, no_fio_there, no_agent_three_times, key_refused, host_unknown),
    *(host_key_changed, no_python_there, banner, mtu_hole, two_interfaces, link_local),
    *(fleet_mostly_missing, thorough, one_copy),
)


def main() -> int:
    by_name = {each.__name__.replace("_", "-"): each for each in SITUATIONS}
    parser = argparse.ArgumentParser(description="What an ordinary user is told.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(by_name))
    chosen = parser.parse_args().names or list(by_name)
    with people() as made:
        for name in chosen:
            print(f"## {name}\n", flush=True)
            by_name[name](made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
