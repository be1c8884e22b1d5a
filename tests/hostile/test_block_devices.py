"""A block device is opened for reading only: whatever it is called, wherever it is named."""

import contextlib
import hashlib
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from bottleneck.cli import app
from bottleneck.report import document_file
from probes.core.records import Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import created_folder, served_file, source_file, unnamed_file
from probes.programs import fio
from probes.smb.client_end import FolderSink
from probes.stages import disk, native_copy
from tests.devices import loop_device
from tests.living import deadline_in, until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/loop-control").exists(),
    reason="NOT RUN: a loop device needs root",
)
MIB = 1 << 20
IMAGE_BYTES = 8 * MIB
DISK_NAMES = (
    *"ata-WDC_WD10EZEX-08WN4A0_WD-WCC6Y0000000 wwn-0x50014ee2b0000000 usb-Disk_0-0:0".split(),
    "pci-0000:00:1f.2-ata-1",
    "3f1a5a3e-0c1f-4a8c-9a5e-0123456789ab",
    "back\\x20up",
)
"""Names of links in /dev/disk/by-id, by-path, by-uuid, by-label, like udev's."""
# fmt: off
ODD_NAMES = (
    "report.json", "disk image.img", " blank ", "line\nbreak", "tab\there", "-x", "--yes", "~",
    "LOOP0", "C:", "con", "..hidden", "dot.", "a;b", "$(id)", "`id`", "*", "?", "%s", "'\"", "#",
    "diskette-größe", "диск", "硬盘", "💾", "\u202egpj.ksid", "\x1b[31mred", "\x7f", "n" * 255,
    os.fsdecode(b"not-utf-8-\xff"), "\\\\.\\PhysicalDrive0", "a\\b", "&", "|", "<", "=",
)
# fmt: on


class Device:
    def __init__(self, node, image):
        self.node, self.image = Path(node), image
        self.number = self.node.stat().st_rdev
        self.before = self.content()

    def content(self):
        """Digest of what is on it, once everything that was written to it has arrived."""
        for path in (self.node, self.image):
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
        return hashlib.sha256(self.image.read_bytes()).hexdigest()

    def written_sectors(self):
        """By the kernel's own count (Documentation/block/stat.rst)."""
        text = Path(f"/sys/block/{self.node.name}/stat").read_text()
        return int(text.split()[6])


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    image = tmp_path_factory.mktemp("image") / "backing.img"
    image.write_bytes(b"\x5a" * 512 + os.urandom(IMAGE_BYTES - 512))
    with loop_device(image) as node:
        yield Device(node, image)


@pytest.fixture(scope="module")
def spellings(device, tmp_path_factory):
    """Paths that all lead to the device, or to the file behind it."""
    root = tmp_path_factory.mktemp("names")
    node, name, pid = str(device.node), device.node.name, os.getpid()
    paths = [node, f"/{node}", f"//{node}", f"/.{node}", f"/dev/./{name}", f"/dev//{name}"]
    paths += [f"/dev/../dev/{name}", f"{node}/", f"{node}/.", f"{node}/report.json"]
    paths += [os.path.relpath(node), f"./{os.path.relpath(node)}", node.upper()]
    paths += [f"/proc/{self}/root{node}" for self in ("self", "thread-self", pid, 1)]
    paths += [f"file://{node}", f"smb://{node}"]
    sys_paths = (f"/sys/block/{name}", f"/sys/class/block/{name}/", f"/sys/block/{name}/uevent")
    paths += [*sys_paths, f"/sys/dev/block/{os.major(device.number)}:{os.minor(device.number)}"]

    def add(path):
        paths.append(str(path))
        return path

    by_id, mapper, nodes, hard = (root / each for each in ("by-id", "mapper", "nodes", "hard"))
    for folder in (by_id, mapper, nodes, hard):
        folder.mkdir()
    for each in DISK_NAMES:
        add(by_id / each).symlink_to(os.path.relpath(node, by_id))
    add(mapper / "vg0-lv0").symlink_to(node)
    (root / "vg0").mkdir()
    add(root / "vg0" / "lv0").symlink_to("../mapper/vg0-lv0")
    for each in ODD_NAMES:
        os.mknod(add(nodes / each), 0o600 | 0o060000, device.number)
        if each != "n" * 255:
            add(root / f"{each}.link").symlink_to(nodes / each)
    os.link(nodes / "report.json", add(hard / "second-name"))
    previous = Path(node)
    for hop in range(39):
        link = root / f"hop-{hop}"
        link.symlink_to(previous)
        previous = link
    paths += [str(root / "hop-1"), str(root / "hop-38"), str(root / "hop-5" / "x")]
    (root / "dev").symlink_to("/dev")
    paths += [str(root / "dev" / name), str(root / "by-id" / ".." / "dev" / name)]

    with ExitStack() as stack:
        for flags in (os.O_RDONLY, os.O_PATH, os.O_RDONLY | os.O_NONBLOCK):
            fd = os.open(node, flags)
            stack.callback(os.close, fd)
            paths += [f"/proc/self/fd/{fd}", f"/dev/fd/{fd}", f"/proc/{pid}/fd/{fd}"]
        os.mknod(root / "gone", 0o600 | 0o060000, device.number)
        fd = os.open(root / "gone", os.O_RDONLY)
        stack.callback(os.close, fd)
        (root / "gone").unlink()
        paths.append(f"/proc/self/fd/{fd}")
        (root / "folder").mkdir()
        for target in (root / "bound.json", root / "folder" / "report.json"):
            target.touch()
            subprocess.run(["mount", "--bind", node, add(target)], check=True)
            stack.callback(subprocess.run, ["umount", target], check=True)
        # the file behind it is in use, and is nobody's report
        paths.append(str(device.image))
        add(root / "image-link").symlink_to(device.image)
        os.link(device.image, add(root / "image-name"))
        fd = os.open(device.image, os.O_RDONLY)
        stack.callback(os.close, fd)
        paths.append(f"/proc/self/fd/{fd}")
        assert len(paths) == len(set(paths)) > 60
        yield paths


@pytest.fixture(autouse=True)
def unwritten(device):
    """Whatever a test does: the kernel counts no write, and the content stays the same."""
    written = device.written_sectors()
    yield
    assert device.content() == device.before
    assert device.written_sectors() == written


def ran(arguments, capsys):
    code = app.run(arguments)
    return code, capsys.readouterr().err


@pytest.mark.long
def test_a_report_is_not_written_to_it(spellings, capsys):
    for path in spellings:
        code, complaint = ran(["probe", "loopback", "--budget", "5", "--json", path], capsys)
        assert code == 64, (path, code)
        assert "--json" in complaint and len(complaint.splitlines()) == 1, (path, complaint)


@pytest.mark.long
def test_it_is_no_folder_of_either_end(spellings, tmp_path, capsys):
    folder = str(tmp_path)
    for number, path in enumerate(spellings):
        if path.startswith("/sys/"):
            continue  # folders, where nothing can be made: below, without a run around it
        for arguments in (
            ["probe", "disk", "--folder", path],
            ["diagnose", "//127.0.0.1/x", "--folder", path],
            ["probe", "native-copy", path, "--folder", folder],
            ["diagnose", "//127.0.0.1/x", "--folder", folder, "--client-share", path],
        ):
            if "--client-share" in arguments and path.startswith(("//", "smb:")):
                continue  # the name of a share
            if "native-copy" in arguments and number % 6:
                continue  # an agent each: the rest below, without one
            code, complaint = ran([*arguments, "--allow-guest", "--yes", "--quiet"], capsys)
            # 69: where it leads may not even be looked at
            assert code in (64, 69, 77), (arguments, code, complaint)


def written_through(path, patterns):
    """Every way by which a coordinator can have an agent write to a path that it names."""
    disk_of = {"folder": path, "side": "server", "size_bytes": 4 * MIB, "seconds": 0.2}
    yield lambda: unnamed_file.create(path)
    yield lambda: FolderSink(path)
    setting_of_source = source_file.Setting(path, 4 * MIB, 1.0, "ab")
    yield lambda: source_file.hold(setting_of_source, Endpoint()).__enter__()
    mounted = created_folder.Setting(path, "0123abcd", 4 * MIB, 1.0, "ab")
    yield lambda: created_folder.hold(mounted, Endpoint()).__enter__()
    for pattern in patterns:
        setting = disk.Setting("write", "uncached", pattern=pattern, **disk_of)
        yield lambda setting=setting: list(disk.initiate(setting, Endpoint()))
    for run_folder in (path, f"{path}/bottleneck-0123abcd"):
        place = (run_folder, "source-0123abcd")
        yield lambda target=place: served_file.resize(*target, MIB, "ab", 1.0, create=True)
        yield lambda target=place: served_file.remove(*target)
        yield lambda target=run_folder: served_file.set_cache(target, "uncached")
    copy = native_copy.Setting("push.cached", "/", "/", MIB, 1.0, "ab")
    peer = Endpoint(folder="/bottleneck-0123abcd", path=path)
    yield lambda: list(native_copy.initiate(copy, peer))


@pytest.mark.long
def test_an_agent_that_is_told_it_writes_nothing(spellings):
    patterns = ("sequential", "zones", "synced", "sustained")
    for number, path in enumerate(spellings):
        for write in written_through(path, patterns[number % 8 : number % 8 + 1]):
            with pytest.raises((OSError, ValueError, RuntimeError, Refused, Unavailable)):
                write()


def test_no_pattern_of_the_disk_stage_writes_to_a_device(device, tmp_path):
    for pattern in ("sequential", "zones", "file", "synced", "sustained"):
        for folder in (str(device.node), str(tmp_path), ""):
            where = ("write", "uncached", folder, "server")
            setting = disk.Setting(
                *where,
                4 * MIB,
                0.2,
                path=str(device.node),
                pattern=pattern,
                device=str(device.node),
            )
            try:
                list(disk.initiate(setting, Endpoint(path=str(device.node))))
            except (OSError, ValueError, RuntimeError, Refused, Unavailable):
                continue
            # a step that wrote did so into a file of its own, in the folder
            assert folder == str(tmp_path) and pattern != "file"
    assert list(tmp_path.iterdir()) == []


def test_what_takes_a_pipes_place_at_the_last_moment_is_seen_on_the_descriptor(
    device, tmp_path, monkeypatch
):
    """The name leads to a pipe when it is looked at, and to the device when it is opened."""
    path = tmp_path / "report.json"
    os.mkfifo(path)
    look = document_file.check

    def exchanged(place):
        checked = look(place)
        path.unlink()
        os.mknod(path, 0o600 | 0o060000, device.number)
        return checked

    monkeypatch.setattr(document_file, "check", exchanged)
    with pytest.raises(OSError, match="a block device is never written to"):
        document_file.write(path, "a report")


def test_what_takes_a_files_place_at_the_last_moment_is_not_replaced(device, tmp_path, monkeypatch):
    """A node would be gone, and its content unreachable by that name."""
    path = tmp_path / "report.json"
    path.touch()
    sync = os.fsync

    def exchanged(fd):
        sync(fd)
        path.unlink()
        os.mknod(path, 0o600 | 0o060000, device.number)

    monkeypatch.setattr(os, "fsync", exchanged)
    with pytest.raises(OSError, match="block device"):
        document_file.write(path, "a report")
    assert path.is_block_device() and len(list(tmp_path.iterdir())) == 1


def test_an_output_that_the_shell_put_on_it_is_refused(device):
    program = [sys.executable, "-m", "bottleneck", "--version"]
    for stream in ("stdout", "stderr"):
        with device.node.open("r+b", buffering=0) as file:
            ended = subprocess.run(program, check=False, **{stream: file})
        assert ended.returncode == 64


def access_modes(pid, device):
    """Returns a process's descriptors of a device: O_RDONLY, O_WRONLY or O_RDWR (proc(5))."""
    opened = {}
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if each.stat().st_rdev == device.number:
                text = Path(f"/proc/{pid}/fdinfo/{each.name}").read_text()
                opened[each.name] = int(text.split("flags:")[1].split()[0], 8) & os.O_ACCMODE
    return opened


def test_fio_gets_a_descriptor_that_is_open_for_reading_and_is_told_to_read_alone(device):
    fd = os.open(device.node, os.O_RDONLY)
    try:
        job = fio.Job(fd, "read", IMAGE_BYTES, 20.0, False, looping=True)
        with fio.run_jobs([job], deadline_in()) as run:
            run.wait_for_io()
            pid = run.process.pid
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            assert b"--readonly" in arguments and b"--rw=read" in arguments
            # ours, and the one that fio made of it
            assert until(lambda: len(access_modes(pid, device)) >= 2)
            opened = access_modes(pid, device)
            assert str(fd) in opened
            assert set(opened.values()) == {os.O_RDONLY}
        wrong = fio.run_jobs([fio.Job(fd, "write", MIB, 1.0, False)], deadline_in())
        with pytest.raises(ValueError, match="reading only"):
            wrong.__enter__()
    finally:
        os.close(fd)
