"""What Samba's VFS modules do to each request; runs on Python 3.9 with the standard library alone.

Source: the vfs_*(8) manual pages of Samba 4.17. A module that is not here is not judged.
"""

from __future__ import annotations

from typing import Dict, Tuple

_ACL = "Windows rights are read from there and checked at each open"

MODULES: Dict[str, Tuple[str, str]] = {
    "acl_tdb": ("small-files", f"keeps ACLs in a database: {_ACL}"),
    "acl_xattr": ("small-files", f"keeps ACLs in extended attributes: {_ACL}"),
    "aio_fork": ("all", "does reads and writes in helper processes: data is copied between them"),
    "audit": ("small-files", "writes a line to syslog for each open, close, rename and deletion"),
    "cap": ("small-files", "translates each name"),
    "catia": ("small-files", "translates the characters of each name; data passes untouched"),
    "ceph": ("all", "files lie in a Ceph cluster: each read and write crosses its network"),
    "commit": ("write", "syncs to the disk again and again while a file is written"),
    "crossrename": (
        "small-files",
        "a rename across file systems becomes a copy, during which smbd answers nothing else",
    ),
    "delay_inject": ("all", "delays requests on purpose, for trials"),
    "dirsort": ("small-files", "reads and sorts a whole folder before it lists it"),
    "expand_msdfs": ("small-files", "looks up DFS links per client"),
    "extd_audit": ("small-files", "writes lines to syslog and log for each open and close"),
    "fruit": (
        "small-files",
        "keeps Apple's metadata and resource forks: more lookups at each open and in each listing",
    ),
    "full_audit": (
        "all",
        "writes a line to syslog for each operation that it is told to log; with all, for every "
        "read and write",
    ),
    "gluster_fuse": ("all", "files lie in a GlusterFS volume: requests cross its network"),
    "glusterfs": (
        "all",
        "files lie in a GlusterFS volume: each read and write crosses its network",
    ),
    "gpfs": ("all", "files lie in a GPFS cluster; leases and ACLs are asked there"),
    "media_harmony": ("small-files", "gives each client its own copy of media index files"),
    "nfs4acl_xattr": ("small-files", f"keeps NFSv4 ACLs in extended attributes: {_ACL}"),
    "posix_eadb": ("small-files", "keeps extended attributes in a database beside the files"),
    "prealloc": ("write", "allocates the blocks of files with certain endings before writing"),
    "readahead": ("read", "asks the kernel to read ahead; it competes with the kernel's own"),
    "recycle": (
        "small-files",
        "a deletion becomes a move into the recycle folder: space stays used",
    ),
    "scannedonly": ("all", "holds files back until a virus scanner has seen them"),
    "shadow_copy2": ("small-files", "looks at each path for a snapshot's time stamp"),
    "snapper": ("small-files", "looks at each path for a snapshot's time stamp"),
    "streams_depot": ("small-files", "keeps alternate streams in files beside: more lookups"),
    "streams_xattr": (
        "small-files",
        "keeps alternate streams in extended attributes, which each open and listing reads",
    ),
    "syncops": ("small-files", "syncs the folder after each creation, rename and deletion"),
    "time_audit": ("all", "takes the time of each single operation"),
    "unityed_media": ("small-files", "gives each client its own view of media folders"),
    "virusfilter": ("small-files", "a virus scanner reads each file at open or close"),
    "worm": ("small-files", "looks at the age of each file before it may be written"),
    "xattr_tdb": ("small-files", "keeps extended attributes in a database"),
    "zfsacl": ("small-files", f"takes ZFS's ACLs: {_ACL}"),
}
"""Name, and what it matters for (as in samba_costs.Costly) with what it does."""
