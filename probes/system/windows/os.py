"""os, with POSIX's calls that Windows lacks.

An open folder is a handle without FILE_SHARE_DELETE: nobody can rename or remove the folder
meanwhile, so that a call by its path acts in that very folder. Files are opened so that they can be
removed and renamed while they are open, as on POSIX. Numbers that the standard library (_winapi,
msvcrt) lacks are those of winbase.h and ntifs.h.
"""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import _winapi
import ctypes
import errno
import io
import itertools
import msvcrt
import os as _os
import secrets
import shutil
import threading
import time
from dataclasses import dataclass
from os import *  # noqa: F403
from os import environ, path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from probes.system.windows import pipes

# Before Python 3.13 its own monotonic clock has ticks of 15.6 ms: a round trip would take no time.
# Every process of ours imports this before it reads a clock; both clocks are system-wide.
time.monotonic, time.monotonic_ns = time.perf_counter, time.perf_counter_ns

O_NONBLOCK = O_NOCTTY = 0
O_CLOEXEC = _os.O_NOINHERIT
# Bits that the C library has no meaning for.
O_NOFOLLOW, O_DIRECTORY, O_PATH, O_TMPFILE = 1 << 24, 1 << 25, 1 << 26, 1 << 27

_SHARE_READ, _SHARE_WRITE, _SHARE_DELETE = 1, 2, 4
_READ, _WRITE, _DELETE = 0x80000000, 0x40000000, 0x10000
_NEW, _CREATE, _EXISTING, _ALWAYS, _TRUNCATE = 1, 2, 3, 4, 5
_BACKUP, _OPEN_LINK, _DELETE_ON_CLOSE, _NORMAL = 0x02000000, 0x00200000, 0x04000000, 0x80
_NO_BUFFERING = 0x20000000
_BROKEN_PIPE = (errno.EINVAL, errno.EPIPE)
"""Errors of the C library for a pipe that nobody reads."""

ADMINISTRATOR, ORDINARY, PRIVATE_MODE, OPEN_MODE = 0, 1000, 0o077, 0o022
_FIRST_FOLDER = 1 << 28
"""First number of open folders, above any file descriptor."""


Refused = Callable[[OSError], None]
Walked = Tuple[str, List[str], List[str], int]


@dataclass(frozen=True)
class _Folder:
    handle: int
    path: str


_folders: Dict[int, _Folder] = {}
_paths: Dict[int, str] = {}
"""Paths of files that were opened here, by descriptor."""
_numbers = itertools.count(_FIRST_FOLDER)
_positions = threading.Lock()


def geteuid() -> int:
    """Returns 0 for an administrator whose rights are in force."""
    return ADMINISTRATOR if ctypes.windll.shell32.IsUserAnAdmin() else ORDINARY


getuid = getegid = geteuid


def sysconf(name: str) -> int:
    """Returns one of the two values that this program asks for."""
    return {"SC_PAGE_SIZE": 4096, "SC_CLK_TCK": 100}[name]


def _path_of(name: Any, dir_fd: Optional[int]) -> str:
    text = _os.fsdecode(name)
    if dir_fd is None:
        return text
    inner = _folders[dir_fd].path
    return path.join(inner, text) if text not in ("", ".") else inner


def open(name: Any, flags: int, mode: int = 0o777, *, dir_fd: Optional[int] = None) -> int:
    """Returns a descriptor; a folder's is valid only for these functions."""
    place = _path_of(name, dir_fd)
    if flags & O_TMPFILE:
        if dir_fd is not None:  # the file is about to get a name
            raise OSError(errno.EOPNOTSUPP, _os.strerror(errno.EOPNOTSUPP))
        place = path.join(place, f".bottleneck-{secrets.token_hex(16)}")
        access = _READ | _WRITE | _DELETE
        return _open_file(place, access, _NEW, _NORMAL | _DELETE_ON_CLOSE, flags)
    link = path.islink(place) and bool(flags & O_NOFOLLOW)
    if flags & O_PATH or flags & O_DIRECTORY or _is_folder(place):
        if flags & O_DIRECTORY and not _is_folder(place):
            code = errno.ENOTDIR if path.lexists(place) else errno.ENOENT
            raise OSError(code, _os.strerror(code), place)
        if link and flags & O_DIRECTORY:
            raise OSError(errno.ELOOP, _os.strerror(errno.ELOOP), place)
        return _folder(place, link)
    if link:
        raise OSError(errno.ELOOP, _os.strerror(errno.ELOOP), place)
    access = {_os.O_WRONLY: _WRITE, _os.O_RDWR: _READ | _WRITE}.get(flags & 3, _READ)
    return _open_file(place, access, _disposition(flags), _NORMAL, flags)


def _disposition(flags: int) -> int:
    if flags & _os.O_CREAT:
        if flags & _os.O_EXCL:
            return _NEW
        return _CREATE if flags & _os.O_TRUNC else _ALWAYS
    return _TRUNCATE if flags & _os.O_TRUNC else _EXISTING


def _open_file(place: str, access: int, disposition: int, attributes: int, flags: int) -> int:
    share = _SHARE_READ | _SHARE_WRITE | _SHARE_DELETE
    handle = _winapi.CreateFile(_long(place), access, share, 0, disposition, attributes, 0)
    mode_flags = flags & (_os.O_APPEND | 3) | _os.O_BINARY | _os.O_NOINHERIT
    descriptor = msvcrt.open_osfhandle(handle, mode_flags)
    _paths[descriptor] = place
    return descriptor


def _long(place: str) -> str:
    """Returns the full path, which may exceed 260 characters; NUL and CON unchanged."""
    if "." not in place and "\\" not in place and "/" not in place or place.startswith("\\\\"):
        return place
    return "\\\\?\\" + path.abspath(place)


def _folder(place: str, link: bool) -> int:
    full_path = path.abspath(place)
    attributes = _BACKUP | (_OPEN_LINK if link else 0)
    # Nobody may move a folder while it is open; a file is only looked at.
    share = _SHARE_READ | _SHARE_WRITE | (0 if _is_folder(place) else _SHARE_DELETE)
    handle = _winapi.CreateFile(full_path, _READ, share, 0, _EXISTING, attributes, 0)
    number = next(_numbers)
    _folders[number] = _Folder(handle, full_path)
    return number


def _is_folder(place: str) -> bool:
    return path.isdir(place)


def close(fd: int) -> None:
    """Closes a file or a folder."""
    folder = _folders.pop(fd, None)
    if folder is not None:
        _winapi.CloseHandle(folder.handle)
        return
    _paths.pop(fd, None)
    _os.close(fd)


def name_of(fd: int) -> str:
    """Returns the path of an open file."""
    return _paths[fd]


def dup(fd: int) -> int:
    """Duplicates the descriptor of a file or a folder."""
    folder = _folders.get(fd)
    return _os.dup(fd) if folder is None else _folder(folder.path, False)


def fstat(fd: int) -> _os.stat_result:
    """Returns the status of a file or a folder."""
    folder = _folders.get(fd)
    if folder is not None:
        return stat(folder.path)
    return _add_rights(_os.fstat(fd), _paths.get(fd, ""))


def stat(
    name: Any, *, dir_fd: Optional[int] = None, follow_symlinks: bool = True
) -> _os.stat_result:
    """Returns a status as on POSIX, with an owner and the rights of others."""
    if isinstance(name, int):
        return fstat(name)
    place = _path_of(name, dir_fd)
    return _add_rights(_os.stat(place, follow_symlinks=follow_symlinks), place)


def lstat(name: Any, *, dir_fd: Optional[int] = None) -> _os.stat_result:
    """Returns the status of a link itself."""
    return stat(name, dir_fd=dir_fd, follow_symlinks=False)


def _add_rights(status: _os.stat_result, place: str) -> _os.stat_result:
    """Adds rights, which Windows' status lacks: others can write to everything outside this user's
    profile and the system's folders."""
    mode = status.st_mode & ~PRIVATE_MODE
    if place and not is_private(place):
        mode |= OPEN_MODE
    return _os.stat_result((mode, *status[1:4], geteuid(), geteuid(), *status[6:10]))


def is_private(place: str) -> bool:
    """Whether a path lies where Windows' default rights let no other user write."""
    full_path = path.normcase(path.realpath(place))
    homes = (environ.get(each) for each in PRIVATE_FOLDERS)
    inside = (path.normcase(path.realpath(each)) for each in homes if each)
    return any(full_path == e or full_path.startswith(e.rstrip("\\") + "\\") for e in inside)


PRIVATE_FOLDERS = ("USERPROFILE", "SystemRoot", "ProgramFiles", "ProgramFiles(x86)")
"""Variables of the folders that Windows' default rights let no other user write to."""
_SYSTEM = path.join(environ.get("SYSTEMROOT", "C:\\Windows"), "System32")
SYSTEM_FOLDERS = (
    _SYSTEM,
    path.join(_SYSTEM, "OpenSSH"),
    path.join(_SYSTEM, "WindowsPowerShell", "v1.0"),
    path.join(environ.get("PROGRAMFILES", "C:\\Program Files"), "fio"),
)
"""Folders that are searched for programs before those of PATH."""


def unlink(name: Any, *, dir_fd: Optional[int] = None) -> None:
    """Removes a file in an open folder."""
    _os.unlink(_path_of(name, dir_fd))


def rmdir(name: Any, *, dir_fd: Optional[int] = None) -> None:
    """Removes a folder in an open folder."""
    _os.rmdir(_path_of(name, dir_fd))


def mkdir(name: Any, mode: int = 0o777, *, dir_fd: Optional[int] = None) -> None:
    """Creates a folder in an open folder."""
    _os.mkdir(_path_of(name, dir_fd), mode)


def readlink(name: Any, *, dir_fd: Optional[int] = None) -> str:
    """Reads a link in an open folder."""
    return _os.readlink(_path_of(name, dir_fd)).removeprefix("\\\\?\\")


def rename(
    source: Any, target: Any, *, src_dir_fd: Optional[int] = None, dst_dir_fd: Optional[int] = None
) -> None:
    """Renames a file and replaces the target, as on POSIX."""
    _os.replace(_path_of(source, src_dir_fd), _path_of(target, dst_dir_fd))


def listdir(place: Union[int, str, None] = None) -> List[str]:
    """Lists a folder by path or descriptor."""
    return _os.listdir(_folders[place].path if isinstance(place, int) else place)


def fwalk(top: Any, *, onerror: Optional[Refused] = None) -> Iterator[Walked]:
    """Yields each folder from the top down: path, folders, other names, and a descriptor that is
    valid until the next one. A folder that cannot be opened goes to onerror and is skipped."""
    try:
        folder = _folder(_os.fsdecode(top), False)
    except OSError as error:
        if onerror is not None:
            onerror(error)
        return
    try:
        inner: List[str] = []
        names: List[str] = []
        for name in listdir(folder):
            (inner if _is_folder(_path_of(name, folder)) else names).append(name)
        yield _folders[folder].path, inner, names, folder
        for name in inner:
            yield from fwalk(_path_of(name, folder), onerror=onerror)
    finally:
        close(folder)


def fchmod(fd: int, mode: int) -> None:
    """Does nothing: a file here has the rights of its folder."""


def fsync(fd: int) -> None:
    """Flushes a file; a folder needs no flush."""
    if fd not in _folders:
        _os.fsync(fd)


def write(fd: int, data: Any) -> int:
    """Writes to a file or pipe. Errors: BrokenPipeError, as on POSIX."""
    if pipes.takes(fd, data):
        return len(data)
    try:
        return _os.write(fd, data)
    except OSError as error:
        if error.errno in _BROKEN_PIPE and fd not in _paths:
            raise BrokenPipeError(errno.EPIPE, _os.strerror(errno.EPIPE)) from None
        raise


def pread(fd: int, size: int, offset: int) -> bytes:
    """Reads at an offset; changes the descriptor's position."""
    with _positions:
        _os.lseek(fd, offset, _os.SEEK_SET)
        return _os.read(fd, size)


def preadv(fd: int, buffers: Sequence[Any], offset: int) -> int:
    """Reads into one buffer, up to the end of the file, without another copy."""
    (buffer,) = buffers
    with _positions, io.FileIO(fd, closefd=False) as file:
        file.seek(offset)
        return file.readinto(buffer) or 0


def pwrite(fd: int, data: Any, offset: int) -> int:
    """Writes at an offset; changes the descriptor's position."""
    with _positions:
        _os.lseek(fd, offset, _os.SEEK_SET)
        return _os.write(fd, data)


def pass_cache(fd: int) -> None:
    """Has reads and writes of full sectors, at page starts in memory, bypass the file cache.

    Errors: OSError. Source: ReOpenFile, FILE_FLAG_NO_BUFFERING.
    """
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.ReOpenFile.argtypes = (ctypes.c_void_p, *[ctypes.c_uint32] * 3)
    kernel.ReOpenFile.restype = ctypes.c_void_p
    share, handle = _SHARE_READ | _SHARE_WRITE | _SHARE_DELETE, msvcrt.get_osfhandle(fd)
    for access in (_READ | _WRITE, _READ):
        again = kernel.ReOpenFile(handle, access, share, _NO_BUFFERING)
        if again not in (None, ctypes.c_void_p(-1).value):
            other = msvcrt.open_osfhandle(again, _os.O_BINARY | _os.O_NOINHERIT | _os.O_RDWR)
            _os.dup2(other, fd, inheritable=False)
            _os.close(other)
            return
    raise ctypes.WinError(ctypes.get_last_error())


@dataclass(frozen=True)
class _Room:
    f_bavail: int
    f_blocks: int
    f_frsize: int = 1
    f_files: int = 0
    f_favail: int = 0
    """Free inodes; 0: the file system has no table of them."""


def statvfs(place: Any) -> _Room:
    """Returns free and total bytes of the volume of a path or of a file that was opened here."""
    if isinstance(place, int):
        folder = _folders.get(place)
        place = path.dirname(path.abspath(_paths[place])) if folder is None else folder.path
    usage = shutil.disk_usage(place)
    return _Room(usage.free, usage.total)


fstatvfs = statvfs
set_blocking = pipes.set_blocking


def makedev(major: int, minor: int) -> int:
    """Returns -1: devices have no such number here."""
    return -1


def major(device: Optional[int]) -> int:
    """Returns -1: devices have no such number here."""
    return -1


minor = major


def kill(pid: int, number: int) -> None:
    """Ends a process at once. Errors: ProcessLookupError."""
    try:
        _os.kill(pid, number)
    except OSError:
        raise ProcessLookupError(pid) from None


killpg = kill
