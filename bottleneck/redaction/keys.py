"""What each key of a report holds: the table that redaction goes by."""

from __future__ import annotations

import re


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


WORDS = _keys(
    """
    status stage initiator copy verb cache requested side pattern end engine security dialect
    signing encryption signing_required_by encryption_required_by security_mode capabilities
    share_flags share_capabilities over connection ended_by by rtt_by kind matters_for
    engine_server told_by raid_level headline component cause standing about states
    sender better duplex bond_mode
    """
)
"""Keys of words that rules compare: they stay where they are the program's, and are injective."""
TECHNICAL = _keys(
    """
    system distribution python virtual driver qdisc scheduler transport write_cache filesystem
    subtype usb_version congestion_control version fio_version server_time started observations
    schema ticket
    """
)
"""Keys of what kernels, drivers and packages call themselves."""
TECHNICAL_TABLES = frozenset(("socket_buffers", "tools", "tool"))
"""Objects whose texts are all of that kind."""
TECHNICAL_TEXT = re.compile(r"[\w .,:+()/@~#;-]{0,120}")
SENTENCES = _keys(
    """
    reason error why remedy value option words refused notes sentence summary evidence advice
    altered unknown not_measured program process tool client title peer url
    """
)
"""Keys of free text, ours or somebody's."""
PATHS = _keys(
    """
    path folder target_folder server_folder backing_file local_path group file file_name
    mount_point
    """
)
FILES = frozenset(("file", "file_name"))
PLACES = frozenset(("address", "own_address", "peer_address", "host"))
DEVICES = frozenset(("device", "members", "stack", "disk"))
MOUNTS = frozenset(("mount_options", "options"))
MODELS = frozenset(("model",))
SERIAL = re.compile(r"(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{12,}", re.IGNORECASE)
TOKENS = {"serial": "serial", "server_guid": "guid", "uuid": "guid", "mac": "address"}
"""Keys whose whole text is replaced, with the role of what replaces it."""
NAMED_DISKS = frozenset(("layers", "disks"))
"""Lists whose objects' `name` is a disk's or a file system's."""
KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.:\[\] /-]{0,63}")
MOUNT_WORDS = _keys(
    """
    vers sec cache soft hard local_lock errors data commit barrier discard nconnect proto
    iocharset compress subvolid space_cache mode_data upstream rsize wsize bsize
    """
)
MOUNT_NAMES = {
    **{"username": "user", "user": "user", "domain": "domain", "dom": "domain"},
    **{"addr": "address", "ip": "address", "clientaddr": "address", "mountaddr": "address"},
}
ROLES = {"--user": "user", "--domain": "domain"}
PATH_OPTIONS = frozenset(("--folder", "--server-folder", "--auth-file", "--file", "--history"))
PLACE_OPTIONS = frozenset(("--client-share", "TARGET"))
CLASSIFIED = frozenset(
    (*WORDS, *TECHNICAL, *TECHNICAL_TABLES, *SENTENCES, *PATHS, *PLACES, *DEVICES, *MOUNTS)
    + (*MODELS, *TOKENS, "name", "source", "share", "command")
)
"""Every key of texts that was thought of; any other is treated as a sentence."""
