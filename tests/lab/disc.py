#!/usr/bin/env python3
"""A planted spinning disc: a block device whose rate falls from the outer edge to the inner.

    with disc(Disc(outer_bytes_per_second=60e6, inner_bytes_per_second=30e6)) as device:
        ...  # /dev/loopN

A loop device with direct I/O over a file that a process of its own serves by FUSE (fuse_file.py);
the content lies in memory, so that nothing but the planted heads (platter.py) caps it. By hand:

    python tests/lab/disc.py --outer 180 --inner 90   # prints the device; until the input ends

Needs root, /dev/fuse and loop devices. Server and loop device end with the process that made them,
kill -9 included, but for file systems that are mounted from it; those and the dead mount of the
file go when the next disc is made.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from cgroups import call
from platter import Disc, Weak

PREFIX = "bottleneck-disc-"
WORK = Path("/var/tmp")
SERVER = Path(__file__).with_name("fuse_file.py")
NEEDED = (Path("/dev/fuse"), Path("/dev/loop-control"))
PATIENCE_SECONDS = 10.0
"""For the kernel to let go of a file system whose last process has ended."""


def missing() -> list[str]:
    """Returns what this machine lacks for it, a line each; empty: a disc can be made."""
    if os.geteuid() != 0:
        return ["needs root (FUSE, loop devices)"]
    lacks = [f"needs {path}" for path in NEEDED if not path.exists()]
    return lacks + [f"needs {name}" for name in ("losetup", "setpriv") if not shutil.which(name)]


@contextlib.contextmanager
def disc(planted: Disc, prepare: Callable[[Path, Path], None] | None = None) -> Iterator[Path]:
    """The node of a disc that spins until the end of the block; empty, or what prepare wrote.

    prepare: gets the content as a plain file of the disc's size, which costs no planted time, and
    a folder for its own.
    Raises RuntimeError when it does not come up, or is still in use at the end.
    """
    sweep()
    with contextlib.ExitStack() as stack:
        prefix = f"{PREFIX}{os.getpid()}-"
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix, dir=WORK))
        content = os.memfd_create("disc")
        stack.callback(os.close, content)
        os.ftruncate(content, planted.size_bytes)
        if prepare is not None:
            prepare(Path(f"/proc/{os.getpid()}/fd/{content}"), Path(folder))
        file = Path(folder, "disc")
        file.touch()
        stack.enter_context(_serve(planted, content, file))
        yield stack.enter_context(_attach(file))


@contextlib.contextmanager
def _serve(planted: Disc, content: int, file: Path) -> Iterator[None]:
    command = ["setpriv", "--pdeathsig", "KILL", "--", sys.executable, str(SERVER)]
    command += [json.dumps(asdict(planted)), str(content), str(file)]
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        pass_fds=(content,),
        start_new_session=True,  # Ctrl-C is for the block alone
    )
    assert server.stdout is not None
    try:
        if server.stdout.readline() != b"ready\n":
            raise RuntimeError("the disc did not come up")
        yield
    finally:
        _try("umount", "--lazy", file)
        server.kill()
        server.communicate()


@contextlib.contextmanager
def _attach(file: Path) -> Iterator[Path]:
    """A loop device over the file that goes with its last user, which is at least this block."""
    device = Path(call("losetup", "--find", "--show", "--direct-io=on", file).strip())
    holder = os.open(device, os.O_RDONLY)
    try:
        call("losetup", "--detach", device)  # as soon as nobody has it open
        queue = Path("/sys/block", device.name, "queue")
        (queue / "rotational").write_text("1")
        (queue / "discard_max_bytes").write_text("0")  # a spinning disc knows none
        yield device
    finally:
        os.close(holder)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while call("losetup", "--associated", file):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{device} is still in use")
            time.sleep(0.02)


def sweep() -> None:
    """Remove what killed processes left: mounts, loop devices and folders with our prefix."""
    for folder in WORK.glob(f"{PREFIX}*"):
        owner = folder.name.removeprefix(PREFIX).split("-")[0]
        if not owner.isdigit() or Path("/proc", owner).exists():
            continue
        # by their text: the files themselves cannot be looked at any more
        outcome = call("losetup", "--list", "--noheadings", "--raw", "--output", "NAME,BACK-FILE")
        loops = [line.split(" ", 1) for line in outcome.splitlines()]
        dead = [device for device, backing in loops if backing.startswith(f"{folder}/")]
        for target, source in _mounts():
            if source in dead or target.startswith(f"{folder}/"):
                call("umount", "--lazy", target)
        for device in dead:  # those with a mount are going by themselves
            _try("losetup", "--detach", device)
        shutil.rmtree(folder)


def _mounts() -> list[tuple[str, str]]:
    """Returns each mount's place and source, by proc_pid_mountinfo(5)."""
    mounts = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        head, _, tail = line.partition(" - ")
        mounts.append((head.split()[4], tail.split()[1]))
    return mounts


def _try(*command: str | Path) -> None:
    subprocess.run(command, stderr=subprocess.DEVNULL, check=False)


def main() -> int:
    parser = argparse.ArgumentParser(description="A spinning disc, until the input ends.")
    for name, usual, what in (
        ("outer", 180.0, "rate at the outer edge, MB/s"),
        ("inner", 90.0, "rate at the inner edge, MB/s"),
        ("size", 24.0, "GiB"),
        ("seek", 8.0, "of each jump, ms"),
        ("flush", 8.0, "of each flush, ms"),
    ):
        parser.add_argument(f"--{name}", type=float, default=usual, help=what, metavar="N")
    parser.add_argument(
        "--weak", nargs=3, type=float, metavar=("FROM", "TO", "SHARE"), help="a weak zone, ratios"
    )
    options = parser.parse_args()
    planted = Disc(
        outer_bytes_per_second=options.outer * 1e6,
        inner_bytes_per_second=options.inner * 1e6,
        size_bytes=round(options.size * (1 << 30)),
        seek_seconds=options.seek / 1e3,
        flush_seconds=options.flush / 1e3,
        weak=Weak(*options.weak) if options.weak else None,
    )
    if lacks := missing():
        print("not made: " + "; ".join(lacks), file=sys.stderr)
        return 1
    with disc(planted) as device, contextlib.suppress(KeyboardInterrupt):
        print(device, flush=True)
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
