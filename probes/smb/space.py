"""Room on a share while a file grows there, asked along with its WRITEs (SMB2 and SMB3)."""

from __future__ import annotations

import struct

from probes.host import free_space
from probes.smb.frames import Broken
from probes.smb.pipe import Pipe

FILESYSTEM, FULL_SIZE = 2, 7
"""SMB2_0_INFO_FILESYSTEM, FileFsFullSizeInformation: MS-SMB2 2.2.37, MS-FSCC 2.5.4."""
HEADER_BYTES = 64
_REQUEST = struct.Struct("<HBBIHHIII16sx")
_REPLY = struct.Struct("<HHI")
_SIZES = struct.Struct("<QQQII")


class ShareRoom:
    """What a push asks about its file's file system, after each free_space.LOOK_BYTES."""

    def __init__(self, pipe: Pipe, file_id: bytes, name: str) -> None:
        """file_id: of the open file; name: of the share, for the message."""
        self._pipe, self._file_id = pipe, file_id
        self._watch = free_space.Watch(name)

    def ask(self) -> None:
        """Sends the question; its reply has the verb "space"."""
        self._pipe.ask("space", 0, question(self._file_id))

    def take(self, body: bytes) -> None:
        """Refused ("space") where the reply says that the reserve is touched; Broken: garbled."""
        self._watch.look(*parse(body))


def question(file_id: bytes) -> bytes:
    """Body of a QUERY_INFO for the sizes of an open file's file system."""
    return _REQUEST.pack(41, FILESYSTEM, FULL_SIZE, _SIZES.size, 0, 0, 0, 0, 0, file_id)


def parse(body: bytes) -> tuple[int, int]:
    """Free bytes for this user and all bytes, of all that follows the reply's header."""
    try:
        _, start, length = _REPLY.unpack_from(body)
        if start < HEADER_BYTES + _REPLY.size or length < _SIZES.size:
            raise struct.error
        total, free, _, sectors, sector_bytes = _SIZES.unpack_from(body, start - HEADER_BYTES)
    except struct.error:
        raise Broken("the server told its room in a garbled reply") from None
    unit_bytes = sectors * sector_bytes
    return free * unit_bytes, total * unit_bytes
