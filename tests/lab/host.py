"""One host of the lab: namespaces of its own, one core, a disk, and a script that enters it."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cgroups
import disc_files
from cgroups import call
from disc import disc
from plant import Caps

SHARE = "share"
USER = "backup"
"""A system account that Debian always has; the share's files are its own."""
DISK_BYTES = 8 << 30
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_SET_UP = """
set -e
stash=$1 device=$2 folder=$3 name=$4 options=$5
mount --rbind /sys/fs/cgroup "$stash"
umount --lazy /sys
mount -t sysfs sysfs /sys
mount --rbind "$stash" /sys/fs/cgroup
umount --lazy "$stash"
mount -o "$options" "$device" "$folder"
hostname "$name"
ip link set lo up
echo ready
exec cat
"""
# A fresh /sys shows this host's interfaces; the real cgroup tree is laid into it, as containers do.
_OPTIONS, _SPINNING_OPTIONS = "noatime,barrier=0", "noatime"
# Without barriers the backing file's cache takes what was flushed: the throttle alone is the disk.
# A spinning disc has a cache of its own, and a flush is planted as well.

_ENTER = """#!/bin/sh
# Runs a command as the lab's host {name}: its cgroups first, then its namespaces.
for group in {groups}; do echo $$ > "$group" || exit 126; done
exec nsenter --target {pid} --net --mount --uts -- {environment}"$@"
"""


@dataclass(frozen=True)
class Host:
    name: str
    pid: int
    """Process that holds the namespaces."""
    core: int
    group: str
    script: Path
    """Runs its arguments as a command on this host."""
    folder: Path
    """The host's own file system; seen from inside the host alone."""
    device: Path

    def run(
        self,
        command: Sequence[str | Path],
        *,
        seconds: float = 60,
        environment: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """A command on this host, ended after the given seconds; text of stdout and stderr."""
        return subprocess.run(
            [self.script, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            env=None if environment is None else {**os.environ, **environment},
            check=check,
        )

    @contextlib.contextmanager
    def running(
        self, command: Sequence[str | Path], log: Path
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A command that serves on this host until the end of the block or of this process."""
        with log.open("ab") as out:
            process = subprocess.Popen(
                [self.script, "setpriv", "--pdeathsig", "KILL", "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # smbd ends its whole process group
            )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def host(name: str, group: str, core: int, caps: Caps, work: Path) -> Iterator[Host]:
    """Bring a host up; its caps on CPU and disk hold from the moment that it is yielded.

    name: host name; group: name of its cgroups, unique on the machine; work: a folder on a real
    disk, for the disk's backing file.
    """
    folder, stash = work / f"{name}-disk", work / f"{name}-cgroup"
    folder.mkdir()
    stash.mkdir()
    with contextlib.ExitStack() as stack:
        stack.enter_context(cgroups.cpu_group(group, core, caps.quota_ratio))
        groups = [cgroups.ROOT / controller / group for controller in cgroups.CONTROLLERS]
        if caps.memory_bytes is not None:
            groups.append(stack.enter_context(cgroups.memory_group(group, caps.memory_bytes)))
        options = _OPTIONS
        if caps.spinning is None:
            device = stack.enter_context(_disk(work / f"{name}.img"))
        else:
            options, fragments = _SPINNING_OPTIONS, caps.spinning.fragments
            files = disc_files.ext4(SHARE, USER, caps.spinning.room, fragments=fragments)
            device = stack.enter_context(disc(caps.spinning.disc, files))
        pid = stack.enter_context(_namespaces(stash, device, folder, name, options))
        stack.enter_context(_throttle(device, caps, work / f"{name}.device"))
        script = work / f"{name}-exec"
        script.write_text(_enter_script(name, groups, pid))
        script.chmod(0o755)
        yield Host(name, pid, core, group, script, folder, device)


def _enter_script(name: str, groups: Sequence[Path], pid: int) -> str:
    # A log-in elsewhere brings no variable along, least of all the password.
    clean = f"env -i PATH={SYSTEM_PATH} HOME=/root LANG=C.UTF-8 "
    return _ENTER.format(
        name=name,
        groups=" ".join(shlex.quote(str(each / "cgroup.procs")) for each in groups),
        pid=pid,
        environment=clean if name == "server" else "",
    )


@contextlib.contextmanager
def _disk(image: Path) -> Iterator[Path]:
    """An ext4 file system on a loop device; nothing in it writes in the background."""
    with image.open("wb") as file:
        file.truncate(DISK_BYTES)
    options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    call("mkfs.ext4", "-q", "-F", "-E", options, image)
    device = Path(call("losetup", "--find", "--show", image).strip())
    try:
        yield device
    finally:
        deadline = time.monotonic() + 10
        # The kernel unmounts a little after the last process of the namespace has gone.
        while call("losetup", "--associated", image):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{device} is still in use")
            subprocess.run(["losetup", "--detach", device], stderr=subprocess.DEVNULL, check=False)
            time.sleep(0.05)
        image.unlink()


@contextlib.contextmanager
def _throttle(device: Path, caps: Caps, record: Path) -> Iterator[None]:
    """The disk's planted rates; the record lets the next lab lift those of a killed one."""
    number = device.stat().st_rdev
    name = f"{os.major(number)}:{os.minor(number)}"
    record.write_text(name)
    rates = {"read": caps.disk_read_bytes_per_second, "write": caps.disk_write_bytes_per_second}
    cgroups.throttle(name, rates)
    try:
        if caps.dirty_bytes is not None:
            cgroups.limit_dirty(name, caps.dirty_bytes)
        yield
    finally:
        cgroups.release(name)


@contextlib.contextmanager
def _namespaces(stash: Path, device: Path, folder: Path, name: str, options: str) -> Iterator[int]:
    """Network, mount and UTS namespaces, held by a process that ends when this one does."""
    command = ["unshare", "--net", "--mount", "--uts", "--", "sh", "-c", _SET_UP, "sh"]
    arguments = [str(stash), str(device), str(folder), name, options]
    holder = subprocess.Popen(
        [*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        if holder.stdout.readline() != "ready\n":
            raise RuntimeError(f"the lab's host {name} did not come up")
        call("losetup", "--detach", device)  # mounted by now: it goes with the namespace
        yield holder.pid
    finally:
        holder.kill()
        holder.communicate()
