"""Faults of files and file systems: rows 9 to 14, 33, 35 to 37, 40, 47 and 48."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
from pathlib import Path

from fault_world import BEFORE, PATIENCE_SECONDS, NotHere, Row, World, fault, usual, wait_for

SMALL_BYTES = 96 << 20
IMAGE_BYTES = 2 << 30
WRITES, READS = "pwrite64,pwritev,pwritev2", "pread64,preadv,preadv2"
# fmt: off
NAMES = (
    b"\xff\xfe-not-utf-8", "rechts\u202etxt.exe".encode(), b"n" * 255, b"dots...",
    "emoji-\U0001f4be".encode(), b"\x1b]0;owned\x07", b"<script>alert(1)", b"new\nline",
)
# fmt: on


@fault
def small(world: World, folder: str) -> None:
    """A folder of the run on a small file system of its own."""
    place = world.folder / folder
    world.mount(place, "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "small")


@fault
def fill(world: World, folder: str) -> None:
    """Somebody else takes all that is left."""
    file = world.folder / folder / "filler"
    world.baseline[str(file)] = "large"
    world.undo(world.baseline.pop, str(file))
    world.undo(file.unlink)
    block = bytes(1 << 20)
    with file.open("wb") as stream, contextlib.suppress(OSError):
        while True:
            os.write(stream.fileno(), block)


def shrink(world: World) -> None:
    """The client's file system holds 16 MiB from now on, or as little as is possible."""
    for size in (16, 32, 48, 64, 80):
        with contextlib.suppress(NotHere):
            world.call("mount", "-o", f"remount,size={size}m", world.client)
            return


@fault
def inject(world: World, calls: str, error: str, of: str = "server") -> None:
    """System calls of smbd's, or of the client's agent's, on files fail from now on."""
    pids = world.agents()[:1]
    if of == "server":
        pids = [world.smbd.process_id, *world.sessions()]
    elif world.moment == BEFORE:
        raise NotHere("there is no agent before the run")
    words = ["strace", "-f", "-q", "-o", "/dev/null"]
    words += ["-e", f"inject={calls}:error={error}:when=9+5"]
    for pid in sorted(set(pids)):
        words += ["-p", str(pid)]
    world.beside(*words, ends=signal.SIGINT)
    # the server itself has to see it before the next session begins
    wait_for(lambda: _traced(pids[0]), PATIENCE_SECONDS)


def _traced(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()
    return True


def read_only(world: World) -> None:
    """The share's file system is read-only, as soon as nobody has a file open for writing."""

    def remounted() -> bool:
        with contextlib.suppress(NotHere):
            world.call("mount", "-o", "remount,ro", world.share)
            return True
        return False

    if not wait_for(remounted, PATIENCE_SECONDS):
        world.wrong.append("it could not be remounted")
    world.undo(world.call, "mount", "-o", "remount,rw", world.share)


def sparse(path: Path, size_bytes: int) -> Path:
    """A file that is all holes."""
    with path.open("wb") as file:
        file.truncate(size_bytes)
    return path


@fault
def user_file(world: World, size_bytes: int) -> None:
    """A file of the user's, as sparse as can be, that the run is to pull."""
    sparse(world.share / "own.bin", size_bytes)
    world.options += ["--file", "own.bin"]


def truncate(world: World) -> None:
    """Its owner empties it."""
    sparse(world.share / "own.bin", 0)
    world.baseline[str(world.share / "own.bin")] = hashlib.sha256(b"").hexdigest()


def huge(world: World) -> None:
    """A block device of 3 TiB, all holes."""
    image = sparse(world.own / "huge", 3 << 40)
    device = world.call("losetup", "--find", "--show", image).strip()
    world.undo(world.call, "losetup", "--detach", device)
    world.options += ["--device", device]


def cut(world: World) -> None:
    """Most of it is gone."""
    os.truncate(world.own / "huge", 1 << 30)


def hostile_names(world: World) -> None:
    """Files whose names are no text, or markup, or commands to a terminal."""
    for place in (world.client, world.share):
        for name in NAMES:
            path = place / os.fsdecode(name)
            path.write_bytes(b"keep me")
            world.baseline[str(path)] = hashlib.sha256(b"keep me").hexdigest()


def hostile_folders(world: World) -> None:
    """The run's own folders have such names; on the share, those that SMB can name."""
    here, there = "odd \x1b]0;owned\x07<b>\u202e", "odd & (b)'; rm -rf ~ \U0001f4be"
    (world.share / there).mkdir()
    (world.client / here).mkdir()
    world.client = world.client / here
    world.below = f"/{there}"


def on_tmpfs(world: World) -> None:
    """File systems of memory at both ends."""
    for place in ("client", "share"):
        world.mount(world.folder / place, "-t", "tmpfs", "-o", "size=512m", "memory")


def on_image(world: World) -> None:
    """The client's folder is a disc of its own."""
    image = sparse(world.own / "disc.img", IMAGE_BYTES)
    world.call("mkfs.ext4", "-q", "-F", image)
    world.mount(world.client, "-o", "loop", image)
    (world.client / "lost+found").rmdir()


def power_cut(world: World) -> None:
    """The disc as it is this moment is what the next start finds."""
    image, crash = world.own / "crash.img", world.own / "crash"
    world.call("cp", "--sparse=always", world.own / "disc.img", image)
    crash.mkdir()

    def files() -> list[str]:
        return [each.name for each in crash.iterdir() if each.name != "lost+found"]

    def look() -> None:
        world.call("e2fsck", "-fy", image, check=False)
        world.call("mount", "-o", "loop", image, crash)
        names, words = files(), world.command()[:3]
        with contextlib.suppress(NotHere):
            world.call(*words, "cleanup", "--folder", crash, "--older-than", "0", "--yes")
        remaining = files()
        world.call("umount", crash)
        if remaining:
            world.wrong.append(f"of {len(names)} found after the power cut {remaining} stayed")

    world.undo(look)


def strace(world: World) -> None:
    if shutil.which("strace") is None:
        raise NotHere("needs strace")


PULLS = r"pull\.(un)?cached"
"""Comes late where copies are small."""
REFUSES = "the server refuses to delete"
ON_READ_ONLY = "nothing can be deleted on a read-only file system"
DELETES = inject("unlink,unlinkat,rmdir", "EACCES")
MAY_REFUSE = usual(77)
ROWS = (
    Row("9", "client's disk full", fill("client"), small("client"), late=PULLS),
    Row("9b", "server's disk full", fill("share"), small("share"), late=PULLS),
    Row("9c", "TMPDIR full", fill("tmp"), small("tmp")),
    Row("10", "quota used up on the server", inject(WRITES, "EDQUOT"), strace),
    Row("11", "reads fail on the server", inject(READS, "EIO"), strace),
    Row("11b", "I/O fails on the client", inject(f"{READS},{WRITES}", "EIO", "client"), strace),
    Row(
        "13b",
        "share remounted read-only",
        read_only,
        small("share"),
        **{"late": PULLS, "at_start": MAY_REFUSE, "reason": ON_READ_ONLY},
    ),
    Row("14", "delete refused", DELETES, strace, at_start=MAY_REFUSE, reason=REFUSES),
    Row("33", "16 MiB of disk", shrink, small("client"), late=PULLS),
    Row("35", "the user's file emptied", truncate, user_file(64 << 20)),
    Row("35b", "a file of one byte, then of none", truncate, user_file(1)),
    Row("36", "a device of 3 TiB, then cut off", cut, huge),
    Row("37", "files with hostile names", hostile_names),
    Row("40", "file systems in memory", prepare=on_tmpfs, late=PULLS),
    Row("47", "folders with hostile names", prepare=hostile_folders),
    Row("48", "power cut", power_cut, on_image),
)
