"""File system, mount, block device and room under a folder; creation of private folders."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional
from urllib.parse import unquote

from probes.core.field_types import Folder
from probes.core.records import FolderFacts
from probes.files import free_space
from probes.system.platform import os
from probes.system.proc import text, word

SYS = Path("/sys")
STACK_LAYERS = 8
"""More layers of device mapper and RAID than anyone builds."""


class MountEntry(NamedTuple):
    """One line of /proc/PID/mountinfo."""

    device_number: str
    """major:minor."""
    point: str
    filesystem: str
    source: str
    options: str
    """Options of the mount, then of the file system."""
    root: str = "/"
    """Folder of the file system that the mount shows; not / under a bind mount."""

    @property
    def remote(self) -> bool:
        """Whether another system, or a FUSE daemon, stores the data and caches it elsewhere."""
        return self.filesystem in REMOTE_FILESYSTEMS or self.filesystem.startswith("fuse.")

    @property
    def option_values(self) -> Dict[str, str]:
        return _options(self.options)


def make_private(path: str) -> None:
    """Creates a folder and missing ones above it, for this user alone under any umask."""
    umask = os.umask(0o077)
    try:
        os.makedirs(path, 0o700, exist_ok=True)  # noqa: PTH103 - any bytes
    finally:
        os.umask(umask)


def parse_mountinfo(mountinfo: str) -> list[MountEntry]:
    """Returns the mounts of /proc/PID/mountinfo (proc(5)), without malformed lines."""
    entries = []
    for line in mountinfo.splitlines():
        mount, _, rest = line.partition(" - ")
        fields, tail = mount.split(), rest.split()
        if len(fields) < 6 or len(tail) < 2:
            continue
        super_options = tail[2] if len(tail) > 2 else ""
        options = ",".join(dict.fromkeys(",".join((fields[5], super_options)).split(",")))
        entries.append(
            MountEntry(
                fields[2],
                _unescaped_field(fields[4]),
                tail[0],
                _unescaped_field(tail[1]),
                options.strip(","),
                _unescaped_field(fields[3]),
            )
        )
    return entries


def mount_of(path: str, entries: list[MountEntry]) -> MountEntry | None:
    """Returns the mount that shows an absolute, resolved path: the longest, the last of equals."""
    best = None
    for entry in entries:
        if not (path + "/").startswith(entry.point.rstrip("/") + "/"):
            continue
        if best is None or len(entry.point) >= len(best.point):
            best = entry
    return best


def device_of(entry: MountEntry, sys_folder: Path = SYS) -> str | None:
    """Returns the kernel name of the block device below a mount; None: no block device.

    btrfs and others show an anonymous device number: there the source's node is read.
    """
    numbers = [entry.device_number]
    if entry.device_number.startswith("0:") and entry.source.startswith("/dev/"):
        try:
            node = Path(entry.source).stat()
            numbers.append(f"{os.major(node.st_rdev)}:{os.minor(node.st_rdev)}")
        except OSError:
            return None
    for number in numbers:
        link = sys_folder / "dev/block" / number
        if link.exists():
            return link.resolve().name
    return _named_in_diskstats(numbers[-1])


def rotational_of(device: str) -> bool | None:
    """Whether the device, or the disk it is a partition of, spins by the kernel's account."""
    node = Path("/sys/class/block") / device
    if not node.exists():
        return None
    queues = (node / "queue", node.resolve().parent / "queue")
    flags = [each for each in (word(queue / "rotational") for queue in queues) if each is not None]
    return flags[0] == "1" if flags else None


def folder_facts(path: str) -> FolderFacts:
    """Returns the facts of an existing folder; None where the system does not report one."""
    resolved = os.path.realpath(path)
    entry = _mount_of(resolved)
    device = device_of(entry) if entry else None
    total_bytes = free_bytes = None
    # a folder that has vanished keeps its other facts
    with contextlib.suppress(OSError):
        free_bytes, total_bytes = free_space.space_of(resolved)
    return FolderFacts(
        path=path,
        filesystem=entry.filesystem if entry else None,
        mount_options=entry.options if entry else None,
        device=device,
        rotational=rotational_of(device) if device else None,
        total_bytes=total_bytes,
        free_bytes=free_bytes,
    )


def stack(path: str) -> list[str]:
    """Returns a folder's file system and devices below, top first: ["ext4", "dm-0", "sda2"]."""
    entry = _mount_of(os.path.realpath(path))
    if entry is None:
        return []
    words = [entry.filesystem]
    device = device_of(entry)
    below = [device] if device else []
    while below and len(words) < STACK_LAYERS:
        name = below.pop(0)
        words.append(name)
        slaves = Path("/sys/class/block") / name / "slaves"
        if slaves.is_dir():
            below.extend(sorted(slave.name for slave in slaves.iterdir()))
    if device is not None and rotational_of(device):
        words.append("rotational")
    return words


def mounts() -> list[MountEntry]:
    """Returns all mounts that this process sees; empty: there is no /proc."""
    return parse_mountinfo(_mountinfo())


def _mountinfo() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _mount_of(resolved: str) -> MountEntry | None:
    return mount_of(resolved, mounts())


def _named_in_diskstats(number: str) -> str | None:
    """Returns a device's name where /sys lacks it."""
    for line in text("/proc/diskstats").splitlines():
        fields = line.split()
        if len(fields) > 2 and ":".join(fields[:2]) == number:
            return fields[2]
    return None


def _unescaped_field(field: str) -> str:
    """Returns a field without mountinfo's octal escapes (\\040 is a blank)."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), field)


SMB_FILESYSTEMS = ("cifs", "smb3", "smbfs")
REMOTE_FILESYSTEMS = frozenset(
    (*SMB_FILESYSTEMS, "nfs", "nfs4", "9p", "virtiofs", "afs", "ceph", "coda", "davfs", "fuse")
    + ("glusterfs", "gfs2", "lustre", "beegfs", "ncpfs", "ocfs2", "orangefs", "vboxsf", "vmhgfs")
)
"""Remote file systems beside every fuse.NAME; fuseblk is local, on a block device."""
DIALECT_OF_VERSION = {
    "1.0": "smb1",
    "2.0": "2.0.2",
    "2.1": "2.1",
    "3.0": "3.0",
    "3.02": "3.0.2",
    "3.0.2": "3.0.2",
    "3.11": "3.1.1",
    "3.1.1": "3.1.1",
}
"""vers= as the kernel shows it (fs/smb/client/smb2ops.c, smb1ops.c: version_string)."""
SIGNED_AUTHENTICATION = re.compile(r"(?:ntlm|ntlmv2|ntlmssp|krb5|lanman)i\Z")
"""sec= of a session that signs: cifs_show_security() appends an i (fs/smb/client/cifsfs.c)."""
ALGORITHM_UNTOLD = "algorithm not reported by the mount"
SECRET_OPTIONS = ("pass", "password", "pass2", "password2", "secret", "passwd")
GVFS_SHARE = re.compile(r"smb-share:(.*)\Z")


@dataclass(frozen=True)
class Mount:
    """Mount of a folder; None where it does not report a value."""

    path: str
    """The folder, absolute and without links."""
    point: str
    filesystem: str
    source: str
    options: str
    remote: bool
    """See MountEntry.remote."""
    server: Optional[str]
    """Name or address, as the mount's source has it."""
    address: Optional[str]
    """The server's IP address, where the kernel shows it."""
    share: Optional[str]
    """Name of an SMB share."""
    folder: str
    """Folder on an SMB share, backslashes; empty: its root."""
    dialect: Optional[str]
    """SMB dialect by this product's names: smb1, 2.0.2 ... 3.1.1."""
    signing: Optional[str]
    encryption: Optional[str]


class _Place(NamedTuple):
    server: Optional[str]
    share: Optional[str]
    folder: str


def read_mount(folder: Folder) -> Optional[Mount]:
    """Returns the mount under an existing folder; None: the system shows none (no /proc).

    May wait for a mount that does not answer: the caller needs a deadline.
    """
    return parse(_mountinfo(), os.path.realpath(folder))


def parse(mountinfo: str, path: str) -> Optional[Mount]:
    """Returns the mount that shows an absolute path without links, by the text of mountinfo."""
    entry = mount_of(path, parse_mountinfo(mountinfo))
    if entry is None:
        return None
    options = entry.option_values
    smb = entry.filesystem in SMB_FILESYSTEMS
    signs = "sign" in options or SIGNED_AUTHENTICATION.match(options.get("sec", ""))
    place = _remote_place(entry, options, path)
    return Mount(
        path=path,
        point=entry.point,
        filesystem=entry.filesystem,
        source=entry.source,
        options=_without_secrets(entry.options),
        remote=entry.remote,
        server=place.server,
        address=options.get("addr") or None,
        share=place.share,
        folder=place.folder,
        dialect=DIALECT_OF_VERSION.get(options.get("vers", "")) if smb else None,
        signing=ALGORITHM_UNTOLD if smb and signs else None,
        encryption=ALGORITHM_UNTOLD if smb and "seal" in options else None,
    )


def _options(options: str) -> Dict[str, str]:
    pairs = [each.partition("=") for each in options.split(",") if each]
    return {name: value for name, _, value in pairs}


def _without_secrets(options: str) -> str:
    each = options.split(",")
    return ",".join(one for one in each if one.partition("=")[0] not in SECRET_OPTIONS)


def _remote_place(entry: MountEntry, options: Dict[str, str], path: str) -> _Place:
    """Returns server, share and folder from a mount's source."""
    below = _parts(path)[len(_parts(entry.point)) :]
    if entry.filesystem in SMB_FILESYSTEMS:
        return _smb_place(entry, below)
    if entry.filesystem == "fuse.gvfsd-fuse":
        return _gvfs_place(below)
    if entry.filesystem in ("nfs", "nfs4", "fuse.sshfs"):
        return _Place(_host_before_colon(entry.source), None, "")
    if entry.filesystem == "9p" and options.get("trans") in ("tcp", "rdma"):
        return _Place(entry.source or None, None, "")
    return _Place(None, None, "")


def _smb_place(entry: MountEntry, below: List[str]) -> _Place:
    source = entry.source.replace("\\", "/")
    parts = _parts(source) if source.startswith("//") else []
    if len(parts) < 2:
        return _Place(None, None, "")
    server, share, *prefix = parts
    root = _parts(entry.root)
    # The kernel may have put a prefix path into the root as well (cifs_get_root).
    if root[: len(prefix)] != prefix:
        root = prefix + root
    return _Place(server, share, "\\".join(root + below))


def _gvfs_place(below: List[str]) -> _Place:
    """Parses gvfsd-fuse's names: smb-share:server=nas,share=media,user=anna/folder."""
    match = GVFS_SHARE.match(below[0]) if below else None
    options = _options(match[1]) if match else {}
    if "server" not in options or "share" not in options:
        return _Place(None, None, "")
    return _Place(unquote(options["server"]), unquote(options["share"]), "\\".join(below[1:]))


def _host_before_colon(source: str) -> Optional[str]:
    """Returns the host of host:/export, user@host:dir and [address]:/export."""
    match = re.match(r"(?:[^@/]*@)?(?:\[([^]]+)\]|([^:/]+)):", source)
    return (match[1] or match[2]) if match else None


def _parts(path: str) -> List[str]:
    return [part for part in path.split("/") if part]
