"""Clients and servers in network namespaces of their own, each with its link's rate and its site.

Clients have a real sshd, at an address of a network of its own, as many fleets do; servers have a
private Samba, on a disk of its own where that is asked for. The switch between all is a namespace
too: all that passes is seen there.

`python hosts.py ADDRESS FOLDER` serves a folder with a private Samba until its input ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARE, USER, PASSWORD = "share", "anna", "anna's own {{ password }} %"
NET, SSH_NET = "10.93.55.", "10.93.56."
PORT, SSH_PORT = 445, 22
DISK_BYTES = 4 << 30
THROTTLE = Path("/sys/fs/cgroup/blkio")
MIB = 1 << 20


@dataclass(frozen=True)
class Plan:
    """Links in bits per second, disks in bytes per second."""

    clients: Mapping[str, int]
    servers: Mapping[str, int]
    sites: Mapping[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    """By name the rate of the uplink, and the clients behind it."""
    disks: Mapping[str, int] = field(default_factory=dict)
    """Servers whose share is on a disk of its own, and what that writes; 0: as fast as it can."""

    @property
    def addresses(self) -> dict[str, int]:
        """The last byte of each host's."""
        return {host: index for index, host in enumerate((*self.clients, *self.servers), 1)}


@dataclass(frozen=True)
class Lab:
    """Hosts of a plan, each in its namespace."""

    plan: Plan
    hub: str
    """The namespace of the switch, from which all clients can be reached by ssh."""
    spaces: Mapping[str, str]
    """By host its namespace."""
    folders: Mapping[str, Path]
    """By client its home, by server what it serves."""
    devices: Mapping[str, str]
    """By server the name of its disk, as loop3."""
    key: Path

    @property
    def shares(self) -> dict[str, str]:
        return {each: f"//{self.address(each)}/{SHARE}" for each in self.plan.servers}

    @property
    def names(self) -> dict[str, str]:
        """By address the server's name."""
        return {self.address(each): each for each in self.plan.servers}

    def address(self, host: str) -> str:
        return f"{NET}{self.plan.addresses[host]}"

    def within(self, space: str) -> list[str]:
        """The beginning of a command in a namespace."""
        return ["ip", "netns", "exec", space]

    def sent_bytes(self, host: str) -> tuple[int, int]:
        """Returns bytes that the host's link received and sent so far."""
        path = "/sys/class/net/eth0/statistics"
        text = call(*self.within(self.spaces[host]), "cat", f"{path}/rx_bytes", f"{path}/tx_bytes")
        received, sent = map(int, text.split())
        return received, sent

    def inventory(self, folder: Path, size: str, **by_client: Mapping[str, object]) -> Path:
        """An inventory of the clients, reached by ssh; by_client: further variables."""
        options = "-F /dev/null -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
        hosts = {
            client: {
                "ansible_host": f"{SSH_NET}{self.plan.addresses[client]}",
                "ansible_user": "root",
                "ansible_ssh_private_key_file": str(self.key),
                "ansible_ssh_common_args": options,
                # Kept connections of another lab lead into its hosts, which have these addresses.
                "ansible_control_path_dir": str(self.key.parent),
                "ansible_python_interpreter": sys.executable,
                "bottleneck_command": ["env", f"PYTHONPATH={ROOT}", *PROGRAM],
                "bottleneck_folder": str(self.folders[client]),
                "bottleneck_size": size,
                **by_client.get(client, {}),
            }
            for client in self.plan.clients
        }
        sites = {
            name: {"hosts": dict.fromkeys(members, {})}
            for name, (_, members) in self.plan.sites.items()
        }
        path = folder / "inventory.yml"
        path.write_text(json.dumps({"all": {"hosts": hosts, "children": sites}}))
        return path

    @contextmanager
    def full_disk(self, client: str, folder: Path) -> Iterator[Path]:
        """A disk without room in an empty folder, which only the client sees; its files from here.

        It is mounted where the client's sshd is: with that it goes, however a test ends."""
        pids = call("ip", "netns", "pids", self.spaces[client]).split()
        pid = next(each for each in pids if "[listener]" in _command(each))
        inside = ("nsenter", f"--mount=/proc/{pid}/ns/mnt")
        call(*inside, "mount", "-t", "tmpfs", "-o", f"size={MIB}", "tmpfs", folder)
        try:
            there = Path(f"/proc/{pid}/root{folder}")
            with (there / "filler").open("wb") as file, contextlib.suppress(OSError):
                file.write(bytes(2 * MIB))
            yield there
        finally:
            call(*inside, "umount", "--lazy", folder)

    def left_behind(self) -> list[str]:
        """Files on any host, and processes in any namespace that a run may have left."""
        lines = [
            str(each) for of in self.folders.values() for each in of.rglob("*") if each.is_file()
        ]
        for host in self.plan.clients:
            pids = call("ip", "netns", "pids", self.spaces[host]).split()
            lines += [f"{host}: {line}" for pid in pids if "sshd" not in (line := _command(pid))]
        return lines


PROGRAM = (sys.executable, "-m", "bottleneck")


def call(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def _command(pid: str) -> str:
    try:
        return Path("/proc", pid, "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return "sshd, ended"


@contextmanager
def lab(plan: Plan, work: Path) -> Iterator[Lab]:
    """All hosts of a plan until the block ends; work: an empty folder on a real disk."""
    hub = f"bf{os.getpid()}"
    spaces = {host: f"{hub}-{host}" for host in plan.addresses}
    folders = {host: work / host for host in spaces}
    with ExitStack() as stack:
        for each in (hub, *spaces.values()):
            call("ip", "netns", "add", each)
            stack.callback(_removed, each)
        for each in folders.values():
            each.mkdir()
        _joined(plan, hub, spaces)
        key = _key(work)
        devices = {
            host: stack.enter_context(_disk(folders[host], rate))
            for host, rate in plan.disks.items()
        }
        built = Lab(plan, hub, spaces, folders, devices, key)
        for host in plan.clients:
            stack.enter_context(_reached(built, host, work))
        started = [stack.enter_context(_served(built, host)) for host in plan.servers]
        for process in started:
            assert process.stdout.readline(), "Samba did not come up"
        yield built


def _removed(space: str) -> None:
    """A namespace and what still runs in it, as the connections that Ansible keeps for a while."""
    for pid in call("ip", "netns", "pids", space).split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGTERM)
    call("ip", "netns", "delete", space)


def _joined(plan: Plan, hub: str, spaces: Mapping[str, str]) -> None:
    """The switch, the sites' own, and each host's links: one for data, one for ssh."""
    lines = [
        "link set lo up",
        *_bridge("br0"),
        *_bridge("ssh0"),
        "address add 10.93.56.254/24 dev ssh0",
    ]
    shaped = []
    for n, (rate, _) in enumerate(plan.sites.values(), 1):
        lines += [*_bridge(f"br{n}"), f"link add u{n} type veth peer name d{n}"]
        lines += [f"link set u{n} master br0 up", f"link set d{n} master br{n} up"]
        shaped += [(hub, f"u{n}", rate), (hub, f"d{n}", rate)]
    switch = {client: f"br{n}" for n, (_, of) in enumerate(plan.sites.values(), 1) for client in of}
    rates = {**plan.clients, **plan.servers}
    for host, n in plan.addresses.items():
        for outer, inner, bridge in (
            (f"v{n}", "eth0", switch.get(host, "br0")),
            (f"s{n}", "eth1", "ssh0"),
        ):
            lines += [
                f"link add {outer} type veth peer name {inner} netns {spaces[host]}",
                f"link set {outer} master {bridge} up",
            ]
        shaped += [(spaces[host], "eth0", rates[host]), (hub, f"v{n}", rates[host])]
    _batch(["ip", "-n", hub], lines)
    for host, n in plan.addresses.items():
        inside = ["link set lo up"]
        for inner, net in (("eth0", NET), ("eth1", SSH_NET)):
            inside += [f"address add {net}{n}/24 dev {inner}", f"link set {inner} up"]
        _batch(["ip", "-n", spaces[host]], inside)
    for space, device, rate in shaped:
        burst = max(16_384, rate // 8 // 500)
        call(
            *f"tc -n {space} qdisc add dev {device} root tbf".split(),
            *f"rate {rate}bit burst {burst} latency 30ms".split(),
        )


def _bridge(name: str) -> list[str]:
    return [f"link add {name} type bridge", f"link set {name} up"]


def _batch(command: list[str], lines: list[str]) -> None:
    done = subprocess.run(
        [*command, "-batch", "-"], input="\n".join(lines), capture_output=True, text=True
    )
    assert done.returncode == 0, (lines, done.stderr)


def _key(work: Path) -> Path:
    """The key that all clients know, and that all have as their own."""
    key = work / "key"
    call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    return key


@contextmanager
def _reached(lab: Lab, host: str, work: Path) -> Iterator[None]:
    """Starts a real sshd of the host; its logins have the host's own home."""
    address = f"{SSH_NET}{lab.plan.addresses[host]}"
    configuration = work / f"{host}.sshd"
    configuration.write_text(
        f"ListenAddress {address}:{SSH_PORT}\nHostKey {lab.key}\nPidFile none\n"
        f"AuthorizedKeysFile {lab.key}.pub\nStrictModes no\nUsePAM no\n"
        f"PermitRootLogin yes\nSetEnv HOME={lab.folders[host]}\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    command = [*lab.within(lab.spaces[host]), "/usr/sbin/sshd", "-D", "-f", configuration]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def _disk(folder: Path, rate: int) -> Iterator[str]:
    """An ext4 on a loop device, mounted in the folder; its writes have that rate, 0: none."""
    from tests import living

    image = folder.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(DISK_BYTES)
    call("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", "nodiscard", image)
    device = Path(call("losetup", "--find", "--show", image).strip())
    number = device.stat().st_rdev
    limit = f"{os.major(number)}:{os.minor(number)} "
    limits = [THROTTLE / f"blkio.throttle.{verb}_bps_device" for verb in ("read", "write")]
    try:
        call("mount", "-o", "noatime,barrier=0", device, folder)
        for each in limits if rate else ():
            each.write_text(limit + str(rate))
        yield device.name
    finally:
        for each in limits:
            each.write_text(limit + "0")
        subprocess.run(["umount", folder])

        def detached() -> bool:
            subprocess.run(["losetup", "--detach", device], stderr=subprocess.DEVNULL)
            return not call("losetup", "--associated", image)

        living.until(detached)
        image.unlink()


@contextmanager
def _served(lab: Lab, host: str) -> Iterator[subprocess.Popen[str]]:
    command = [*lab.within(lab.spaces[host]), sys.executable, __file__]
    process = subprocess.Popen(
        [*command, lab.address(host), str(lab.folders[host])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.wait(20)


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from probes.programs.samba import private_samba

    address, folder = sys.argv[1:]
    served = {"share": SHARE, "username": USER, "password": PASSWORD, "address": address}
    with private_samba(folder, **served, port=PORT) as server:
        print(server.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
