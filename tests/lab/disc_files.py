"""Files on a planted disc before it spins: an ext4, filled or fragmented on purpose."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from cgroups import call

PLANTED = "planted-"
"""Beginning of each planted file's name, to tell it from one that was left behind."""
FRAGMENTED = f"{PLANTED}film.bin"
FRAGMENTS, FRAGMENT_BYTES, GAP_BYTES = 500, 128 << 10, 1 << 20
"""The gaps are longer than what the heads pass in the time of a seek: each one costs one."""
FILLERS_BYTES = (64 << 20, 1 << 20, 4 << 10)
"""Sizes of what takes the room: large ones, and small ones for what is left."""
COLLAPSE_RANGE = 0x08  # linux/falloc.h

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
Prepare = Callable[[Path, Path], None]
"""Writes on a disc's content, a file; in the folder it may mount that."""


def ext4(folder: str, owner: str, room: tuple[float, float], *, fragments: bool) -> Prepare:
    """An ext4 with one folder in it, which the named user owns.

    room: the only part of the disc in which there is room, from and to, as ratios; else a folder's
    files lie where its name happens to put them. fragments: the folder holds FRAGMENTED, in
    FRAGMENTS pieces. Few inodes: there is little to initialise.
    """

    def prepare(content: Path, work: Path) -> None:
        options = ["-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", "-m", "0"]
        options += ["-i", str(1 << 20), "-J", "size=16"]
        subprocess.run(["mkfs.ext4", "-q", "-F", *options, content], check=True)
        with _mount(content, work) as root:
            subprocess.run(["install", "-d", "-o", owner, "-m", "0700", root / folder], check=True)
            size_bytes = content.stat().st_size
            _taken_but_for(root, room[0] * size_bytes, room[1] * size_bytes)
            if fragments:
                _fragment(root / folder / FRAGMENTED)
                subprocess.run(["chown", owner, root / folder / FRAGMENTED], check=True)

    return prepare


@contextlib.contextmanager
def _mount(content: Path, work: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=work) as folder:
        subprocess.run(["mount", "-o", "loop", content, folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


def _taken_but_for(root: Path, from_bytes: float, to_bytes: float) -> None:
    """Takes all room and gives back what lies in the span: no allocator is trusted."""
    folder = root / f"{PLANTED}filler"
    folder.mkdir()
    device = Path(call("findmnt", "--noheadings", "--output", "SOURCE", root).strip())
    Path("/sys/fs/ext4", device.name, "reserved_clusters").write_text("0")
    for filler_bytes in FILLERS_BYTES:
        number = 0
        while _allocate(folder / f"{PLANTED}{filler_bytes}-{number}", filler_bytes):
            number += 1
    for file in folder.iterdir():
        if all(from_bytes <= start and end <= to_bytes for start, end in extents(file)):
            file.unlink()


def _allocate(file: Path, size_bytes: int) -> bool:
    """Whether there was room for all of the file; else it has what there was."""
    try:
        with file.open("wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, size_bytes)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True


def _fragment(file: Path) -> None:
    """A file in one piece, cut: what lay between its fragments is taken out of it."""
    with file.open("wb") as film:
        size = FRAGMENTS * (FRAGMENT_BYTES + GAP_BYTES)
        os.posix_fallocate(film.fileno(), 0, size)
        for index in range(1, FRAGMENTS + 1):
            place, cut = index * FRAGMENT_BYTES, GAP_BYTES
            if index == FRAGMENTS:  # a range at the end is not collapsed
                os.ftruncate(film.fileno(), place)
            elif _libc.fallocate(film.fileno(), COLLAPSE_RANGE, place, cut):
                raise OSError(ctypes.get_errno(), "fallocate")
        for _ in range(FRAGMENTS):
            film.write(os.urandom(FRAGMENT_BYTES))


def extents(file: Path) -> list[tuple[int, int]]:
    """Returns begin and end of a file's pieces on its device, in bytes, as filefrag(8) tells."""
    pieces = []
    for line in call("filefrag", "-v", "-b1", file).splitlines():
        words = line.replace(":", " ").replace("..", " ").split()
        if words and words[0].isdigit():
            pieces.append((int(words[3]), int(words[4]) + 1))
    return pieces


def fill_disc(filesystem: str, full_ratio: float, content: Path, work: Path) -> None:
    """Makes a file system on a disc's content, and reserves so much of it for files."""
    ext4 = ["-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"]
    call(f"mkfs.{filesystem}", "-q", *(ext4 if filesystem == "ext4" else ["-f", "-K"]), content)
    point = work / "full"
    point.mkdir()
    call("mount", "-o", "loop", content, point)
    try:
        facts = os.statvfs(point)
        blocks = facts.f_bfree - round((1 - full_ratio) * facts.f_blocks)
        with (point / f"{PLANTED}full").open("wb") as file:
            if blocks > 0:
                os.posix_fallocate(file.fileno(), 0, blocks * facts.f_frsize)
    finally:
        call("umount", point)
