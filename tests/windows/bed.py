"""A Windows Python under wine, in a folder of its own, to run this product in.

    .venv/bin/python tests/windows/bed.py [FOLDER]              makes it; prints what is missing
    .venv/bin/python tests/windows/bed.py [FOLDER] -- ARGS      runs `bottleneck ARGS` in it

Needs wine64, binutils-mingw-w64-x86-64 and maven (scripts/packages installs them as root); the
first two programs of its own kind on Debian 12. What it fetches is pinned: the Windows build of
CPython by its hash, the wheels by uv.lock. Nothing outside FOLDER is written, but what maven and uv
keep in their caches.

Under wine programs, streams and sockets are those of Windows; cards, disks and TCP are the host's,
so no figure that this bed shows is a figure of Windows.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
USUAL = ROOT / ".venv" / "wine"
PYTHON = "org.bytedeco:cpython:3.11.3-1.5.9:jar:windows-x86_64"
PYTHON_SHA256 = "3263a50b256447bb7b9e604d6587627e419891370fc33b94469e6a06ff4de834"
INSIDE = "org/bytedeco/cpython/windows-x86_64/"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
WINE = "/usr/lib/wine/wine64"
"""Path of Debian's package, in no folder of PATH."""
NEEDED = {WINE: "wine64", "x86_64-w64-mingw32-dlltool": "binutils-mingw-w64-x86-64", "mvn": "maven"}
"""Program and Debian's package."""
TESTING = ("pytest", "pytest-timeout", "hypothesis", "jsonschema", "xmlschema")
DLL = "x86_64-w64-mingw32-"
FORWARDED = {
    # The stable interface, which wheels ask for; this build comes without it.
    "python3": None,
    # What newer programs take random bytes from; wine 8.0 has none.
    "bcryptprimitives": "EXPORTS\nProcessPrng=advapi32.SystemFunction036\n",
}


class Missing(Exception):
    """The bed cannot be made here; the text says why."""


@dataclass(frozen=True)
class Bed:
    """A folder with the prefix, the Windows Python and the wheels."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "python" / "python.exe"

    def environment(self, **options: str) -> dict[str, str]:
        """Variables for wine: this prefix, silent, without a display or this user's home."""
        base = {each: os.environ[each] for each in ("PATH", "LANG", "TMPDIR") if each in os.environ}
        return {
            **base,
            "HOME": str(self.folder),
            "WINEPREFIX": str(self.folder / "prefix"),
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": "mscoree,mshtml=",
            "PYTHONPATH": windows_path(self.folder / "site"),
            "PYTHONDONTWRITEBYTECODE": "1",
            **options,
        }

    def command(self, *arguments: str) -> list[str]:
        start = f"import sys; sys.path.insert(0, {windows_path(ROOT)!r})"
        start += "; from bottleneck.__main__ import main; main()"
        return [WINE, str(self.python), "-c", start, *arguments]


def windows_path(path: Path) -> str:
    """A path of this host as wine shows it."""
    return "Z:" + str(path).replace("/", "\\")


def make(folder: Path = USUAL) -> Bed:
    """The bed, made where it is not there yet, by one process at a time. Errors: Missing."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _make_locked(folder)


def _make_locked(folder: Path) -> Bed:
    lacks = [f"{name} ({package})" for name, package in NEEDED.items() if not shutil.which(name)]
    if lacks:
        raise Missing(f"not installed: {', '.join(lacks)}")
    bed = Bed(folder)
    digest = hashlib.sha256((ROOT / "uv.lock").read_bytes() + Path(__file__).read_bytes())
    stamp = folder / "ready"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return bed
    stamp.unlink(missing_ok=True)
    try:
        _python(folder)
        _wheels(folder)
        _prefix(bed)
    except subprocess.CalledProcessError as error:
        words = (error.stderr or b"").decode(errors="replace").strip().splitlines()[-1:]
        raise Missing(f"{error.cmd[0]} failed: {' '.join(words)[:300]}") from None
    stamp.write_text(digest.hexdigest())
    return bed


def _run(*command: object, **options: object) -> None:
    subprocess.run([str(each) for each in command], check=True, capture_output=True, **options)


def _python(folder: Path) -> None:
    """The Windows Python out of its archive, with the libraries that wine lacks."""
    jar = folder / "cpython-3.11.3-1.5.9-windows-x86_64.jar"
    if not jar.exists():
        copy = f"{PLUGIN}:copy"
        _run("mvn", "-q", "-B", copy, f"-Dartifact={PYTHON}", f"-DoutputDirectory={folder}")
    if hashlib.sha256(jar.read_bytes()).hexdigest() != PYTHON_SHA256:
        raise Missing(f"{jar}: not the file that this bed was tried with")
    target = folder / "python"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            below = name.removeprefix(INSIDE)
            if name == below or name.endswith("/") or below.startswith("include/"):
                continue
            lib = below.removeprefix("lib/")
            flat = lib.endswith((".dll", ".pyd")) and "/" not in lib
            place = target / (lib if flat else below.replace("lib/", "Lib/", 1))
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(archive.read(name))
    for name, definition in FORWARDED.items():
        _forwarder(target, name, definition or _stable_interface(target))


def _stable_interface(target: Path) -> str:
    """python3.dll's exports: all that this Python's own library exports, forwarded to it."""
    dump = [f"{DLL}objdump", "-p", str(target / "python311.dll")]
    text = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    table = text.partition("[Ordinal/Name Pointer] Table")[2].partition("\n\n")[0]
    names = [line.split()[-1] for line in table.splitlines() if line.lstrip().startswith("[")]
    lines = [f"{name}=python311.{name}" for name in names if name.startswith(("Py", "_Py"))]
    return "\n".join(["EXPORTS", *lines, ""])


def _forwarder(target: Path, name: str, definition: str) -> None:
    """A library without code of its own."""
    source, exports = target / f"{name}.def", target / f"{name}.exp"
    source.write_text(f"LIBRARY {name}\n{definition}")
    _run(f"{DLL}dlltool", "-d", source, "-e", exports)
    _run(f"{DLL}ld", "-shared", "-e", "0", "-o", target / f"{name}.dll", exports)


def _wheels(folder: Path) -> None:
    """The locked dependencies as Windows wheels, and what the tests there import."""
    needed, locked, site = (folder / each for each in ("needed.txt", "locked.txt", "site"))
    uv = [sys.executable, "-m", "uv"]
    export = [*uv, "export", "--frozen", "--extra", "smb1", "--no-emit-project", "--project", ROOT]
    _run(*export, "--no-dev", "-o", needed)
    _run(*export, "-o", locked)
    shutil.rmtree(site, ignore_errors=True)
    kind = ("--python-platform", "x86_64-pc-windows-msvc", "--python-version", "3.11")
    options = ("--target", site, *kind, "--only-binary", ":all:", "--require-hashes")
    testing = [f"{name}=={metadata.version(name)}" for name in TESTING]
    _run(*uv, "pip", "install", *options, "-r", needed, "-c", locked, *testing)


def _prefix(bed: Bed) -> None:
    """wine's own folder, and a first start of the Windows Python in it."""
    environment = bed.environment()
    shutil.rmtree(bed.folder / "prefix", ignore_errors=True)
    _run(WINE, "wineboot", "--init", env=environment, stdin=subprocess.DEVNULL)
    check = "import ssl, psutil, cryptography.hazmat.bindings._rust"
    _run(WINE, bed.python, "-c", check, env=environment, stdin=subprocess.DEVNULL)


def main() -> None:
    """Makes the bed, and runs the product in it where arguments follow `--`."""
    folders, mark, command = _split(sys.argv[1:])
    try:
        bed = make(Path(folders[0]).resolve() if folders else USUAL)
    except Missing as error:
        sys.exit(f"no Windows Python under wine: {error}")
    if mark:
        sys.exit(subprocess.run(bed.command(*command), env=bed.environment()).returncode)
    print(bed.folder)


def _split(arguments: list[str]) -> tuple[list[str], bool, list[str]]:
    if "--" not in arguments:
        return arguments, False, []
    index = arguments.index("--")
    return arguments[:index], True, arguments[index + 1 :]


if __name__ == "__main__":
    main()
