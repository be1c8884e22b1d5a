"""The mount under a folder: which server and share it shows, and how the system speaks to it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional
from urllib.parse import unquote

from probes.host import folders
from probes.host.folders import MountEntry

SMB_FILESYSTEMS = ("cifs", "smb3", "smbfs")
REMOTE_FILESYSTEMS = frozenset(
    (*SMB_FILESYSTEMS, "nfs", "nfs4", "9p", "virtiofs", "afs", "ceph", "coda", "davfs", "fuse")
    + ("glusterfs", "gfs2", "lustre", "beegfs", "ncpfs", "ocfs2", "orangefs", "vboxsf", "vmhgfs")
)
"""Beside every fuse.NAME. fuseblk is none of them: a FUSE file system on a block device."""
LOOPBACK = "127.0.0.1"
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
ALGORITHM_UNTOLD = "algorithm not told by the mount"
SECRET_OPTIONS = ("pass", "password", "pass2", "password2", "secret", "passwd")
GVFS_SHARE = re.compile(r"smb-share:(.*)\Z")


@dataclass(frozen=True)
class Mount:
    """A folder's mount. What it does not tell is None."""

    path: str
    """The folder, absolute and without links."""
    point: str
    filesystem: str
    source: str
    options: str
    remote: bool
    """Whether another system, or a FUSE daemon, holds the data: its page cache is not ours."""
    server: Optional[str]
    """Name or address, as the mount's source has it."""
    address: Optional[str]
    """The server's IP address, where the kernel shows it."""
    share: Optional[str]
    """Of SMB: the share's name."""
    folder: str
    """Of SMB: the folder on the share, backslashes; empty: its root."""
    dialect: Optional[str]
    """As this product names it: smb1, 2.0.2 ... 3.1.1."""
    signing: Optional[str]
    encryption: Optional[str]
    rsize_bytes: Optional[int]
    """The longest READ that the mount sends."""
    wsize_bytes: Optional[int]


class _Place(NamedTuple):
    server: Optional[str]
    share: Optional[str]
    folder: str


def read_mount(folder: str) -> Optional[Mount]:
    """The mount under an existing folder; None: the system shows none (no /proc).

    May wait for a mount that does not answer: the caller keeps a deadline.
    """
    path = os.path.realpath(folder)
    try:
        text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    return parse(text, path)


def parse(mountinfo: str, path: str) -> Optional[Mount]:
    """The mount that shows an absolute path without links, from the text of mountinfo (proc(5))."""
    entry = folders.mount_of(path, folders.parse_mountinfo(mountinfo))
    if entry is None:
        return None
    options = _options(entry.options)
    smb = entry.filesystem in SMB_FILESYSTEMS
    place = _place(entry, options, path)
    return Mount(
        path=path,
        point=entry.point,
        filesystem=entry.filesystem,
        source=entry.source,
        options=_without_secrets(entry.options),
        remote=entry.filesystem in REMOTE_FILESYSTEMS or entry.filesystem.startswith("fuse."),
        server=place.server,
        address=options.get("addr") or None,
        share=place.share,
        folder=place.folder,
        dialect=DIALECT_OF_VERSION.get(options.get("vers", "")) if smb else None,
        signing=ALGORITHM_UNTOLD if smb and _signs(options) else None,
        encryption=ALGORITHM_UNTOLD if smb and "seal" in options else None,
        rsize_bytes=_whole(options.get("rsize")),
        wsize_bytes=_whole(options.get("wsize")),
    )


def _options(text: str) -> Dict[str, str]:
    pairs = [each.partition("=") for each in text.split(",") if each]
    return {name: value for name, _, value in pairs}


def _without_secrets(text: str) -> str:
    each = text.split(",")
    return ",".join(one for one in each if one.partition("=")[0] not in SECRET_OPTIONS)


def _signs(options: Dict[str, str]) -> bool:
    return "sign" in options or bool(SIGNED_AUTHENTICATION.match(options.get("sec", "")))


def _whole(text: Optional[str]) -> Optional[int]:
    return int(text) if text and re.fullmatch(r"[0-9]{1,12}", text) else None


def _place(entry: MountEntry, options: Dict[str, str], path: str) -> _Place:
    """Server, share and folder that a mount's source names."""
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
    named = _parts(source) if source.startswith("//") else []
    if len(named) < 2:
        return _Place(None, None, "")
    server, share, *prefix = named
    root = _parts(entry.root)
    # A prefix that the kernel found by walking stands in the root as well (cifs_get_root).
    if root[: len(prefix)] != prefix:
        root = prefix + root
    return _Place(server, share, "\\".join(root + below))


def _gvfs_place(below: List[str]) -> _Place:
    """smb-share:server=nas,share=media,user=anna/folder, as gvfsd-fuse names what it shows."""
    found = GVFS_SHARE.match(below[0]) if below else None
    told = _options(found[1]) if found else {}
    if "server" not in told or "share" not in told:
        return _Place(None, None, "")
    return _Place(unquote(told["server"]), unquote(told["share"]), "\\".join(below[1:]))


def _host_before_colon(source: str) -> Optional[str]:
    """Host of host:/export, user@host:dir and [address]:/export."""
    found = re.match(r"(?:[^@/]*@)?(?:\[([^]]+)\]|([^:/]+)):", source)
    return (found[1] or found[2]) if found else None


def _parts(path: str) -> List[str]:
    return [part for part in path.split("/") if part]
