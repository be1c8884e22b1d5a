"""A Python of this host that lacks what another platform's lacks, to import and start the product.

    python tests/windows/stub.py win32|darwin import MODULE...
    python tests/windows/stub.py win32|darwin|linux run '[["schema"], ["config"]]'
    (linux: as this Python is)

The libraries are loaded first, as they are for their own platform; then the platform is changed,
and this product's own modules are loaded anew. What Windows has instead of POSIX's calls is made of
POSIX's here, as far as files are opened.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import signal
import socket
import sys
import types
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT)

POSIX_MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "readline")
POSIX_OS = (
    *"fork forkpty wait waitpid wait3 wait4 setsid killpg getpgid".split(),
    *"nice geteuid getuid getegid getgid sysconf uname statvfs fstatvfs".split(),
    "mkfifo",
    *"pread preadv pwrite pwritev sendfile fchmod fchown chown lchown".split(),
    *"makedev major minor sync getloadavg set_blocking WNOHANG".split(),
    "register_at_fork",
    *"O_NONBLOCK O_NOFOLLOW O_NOCTTY O_CLOEXEC O_DIRECTORY O_SYNC O_DSYNC".split(),
)
LINUX_OS = (
    *"posix_fadvise posix_fallocate sched_getaffinity sched_setaffinity memfd_create".split(),
    *"copy_file_range pidfd_open splice eventfd getrandom setns unshare".split(),
    *"O_TMPFILE O_PATH O_DIRECT O_LARGEFILE O_NOATIME".split(),
)
POSIX_SIGNALS = (
    *"SIGHUP SIGKILL SIGALRM SIGCHLD SIGUSR1 SIGUSR2 SIGPIPE SIGQUIT".split(),
    "SIGSTOP",
    *"SIGCONT SIGTSTP setitimer alarm pthread_sigmask ITIMER_REAL sigwait".split(),
)
LINUX_SOCKET = (
    *"TCP_INFO TCP_CONGESTION TCP_USER_TIMEOUT TCP_KEEPIDLE AF_NETLINK AF_PACKET".split(),
    *"SO_BINDTODEVICE SO_MARK MSG_ERRQUEUE IP_MTU_DISCOVER TCP_MAXSEG".split(),
    "TCP_QUICKACK",
)
POSIX_SOCKET = ("AF_UNIX", "SO_REUSEPORT", "SCM_RIGHTS", "sendmsg", "MSG_DONTWAIT", "MSG_NOSIGNAL")


def drop(module: object, names: tuple[str, ...]) -> None:
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
        if name in getattr(module, "__all__", ()):
            module.__all__.remove(name)  # type: ignore[attr-defined]


def win32() -> None:
    """Windows' own modules, and none of POSIX's."""
    openers = (os.open, os.close, os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_EXCL)
    _open, _close, reading, writing, both, new, excl = openers
    access = {1: writing, 2: reading, 3: both}  # GENERIC_WRITE, GENERIC_READ
    ways = {1: new | excl, 2: new | os.O_TRUNC, 3: 0, 4: new, 5: os.O_TRUNC}
    delete_on_close = 0x04000000

    def create_file(
        name: str, rights: int, share: int, _: int, way: int, flags: int, __: int
    ) -> int:
        plain = name.removeprefix("\\\\?\\")
        fd = _open(plain, access[rights >> 30 & 1 | rights >> 30 & 2] | ways[way], 0o600)
        if flags & delete_on_close:
            Path(plain).unlink()
        return fd

    api, msvcrt = types.ModuleType("_winapi"), types.ModuleType("msvcrt")
    api.CreateFile, api.CloseHandle = create_file, _close  # type: ignore[attr-defined]
    msvcrt.open_osfhandle = lambda handle, flags: handle  # type: ignore[attr-defined]
    msvcrt.locking = lambda fd, how, size: None  # type: ignore[attr-defined]
    msvcrt.LK_NBLCK = msvcrt.LK_LOCK = 0  # type: ignore[attr-defined]
    sys.modules.update({"_winapi": api, "msvcrt": msvcrt})
    sys.modules.update(dict.fromkeys(POSIX_MODULES))
    os.environ["USERPROFILE"] = os.environ.get("HOME", "/")
    drop(os, POSIX_OS + LINUX_OS)
    drop(signal, POSIX_SIGNALS)
    drop(socket, POSIX_SOCKET + LINUX_SOCKET)
    os.O_BINARY = os.O_NOINHERIT = 0  # type: ignore[attr-defined]
    signal.SIGBREAK = signal.Signals(21)  # type: ignore[attr-defined]
    import ctypes

    windll = types.SimpleNamespace(shell32=types.SimpleNamespace(IsUserAnAdmin=lambda: 0))
    ctypes.windll = windll  # type: ignore[attr-defined]
    ctypes.CDLL = None  # type: ignore[misc,assignment]  # it takes no None there
    ctypes.WinDLL = lambda *_, **__: _Library()  # type: ignore[attr-defined]


class _Library:
    """Whose functions do nothing."""

    def __getattr__(self, name: str) -> object:
        def nothing(*_: object) -> int:
            return 0

        self.__dict__[name] = nothing
        return nothing


def darwin() -> None:
    """macOS: POSIX without what is Linux's own."""
    drop(os, LINUX_OS)
    drop(socket, LINUX_SOCKET)


def modules() -> list[str]:
    """Returns this product's modules; those of Windows alone are loaded by `win32` itself."""
    paths = [each for top in ("bottleneck", "probes") for each in (ROOT / top).rglob("*.py")]
    names = [".".join(each.relative_to(ROOT).with_suffix("").parts) for each in paths]
    names = [each.removesuffix(".__init__") for each in names]
    return sorted(each for each in names if not each.startswith("probes.system.windows"))


def become(platform: str) -> None:
    """Changes the platform under libraries that are loaded."""
    for module in (*modules(), "multiprocessing", "asyncio", "zoneinfo"):
        importlib.import_module(module)
    import platformdirs.unix

    for name in ("site_config_dir", "user_config_dir", "user_state_dir"):  # folders of this host
        setattr(platformdirs, name, partial(_folder, platformdirs.unix.Unix, name))
    with contextlib.redirect_stdout(io.StringIO()):  # what libraries import when they are used
        importlib.import_module("bottleneck.cli.app").run(["estimate", "--link", "1Gbit/s"])
    for name in [each for each in sys.modules if each.split(".")[0] in ("bottleneck", "probes")]:
        del sys.modules[name]
    {"win32": win32, "darwin": darwin}[platform]()
    sys.platform = platform


def _folder(kind: Any, name: str, product: str) -> str:
    return str(getattr(kind(product), name))


def _ran(command: list[str]) -> list[Any]:
    """A command's exit code and what it prints."""
    from bottleneck.cli.app import run

    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2)]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        code = run(command)
    for each in streams:
        each.flush()
    return [code, *(each.buffer.getvalue().decode() for each in streams)]  # type: ignore[attr-defined]


def main() -> None:
    """Imports each module, or runs a command."""
    platform, what, *arguments = sys.argv[1:]
    if platform != "linux":
        become(platform)
    if what == "run":
        print(json.dumps([_ran(each) for each in json.loads(arguments[0])]))
        return
    failed = io.StringIO()
    for name in arguments or modules():
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(f"{name}: {type(error).__name__}: {error}", file=failed)
    print(failed.getvalue(), end="")


if __name__ == "__main__":
    main()
