"""CREATE and CLOSE of our own on a pipe: what a small file costs beside its bytes.

Sources: MS-SMB2 2.2.13-2.2.16; for SMB1 MS-CIFS 2.2.4.64 and 2.2.4.5. No oplock and no lease is
asked for: nobody here could answer its break.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, Protocol

from probes.smb.frames import Broken
from probes.smb.pipe import Pipe
from probes.smb.pipe1 import Pipe1

_READ, _WRITE, _DELETE = 0x80000000, 0x40000000, 0x00010000
"""GENERIC_READ, GENERIC_WRITE and DELETE: MS-SMB2 2.2.13.1.1."""
_SHARE_ALL, _NORMAL = 0x7, 0x80
_OPEN, _NEW = 1, 2
_FILE, _DELETE_ON_CLOSE = 0x0040, 0x1000
_IMPERSONATION = 2

_CREATE2 = struct.Struct("<HBBIQQIIIIIHHII")
_CREATED2 = struct.Struct("<48xQ8x16s")
_NAME2_OFFSET = 64 + _CREATE2.size
_CLOSE2 = struct.Struct("<HHI16s")

_CREATE1 = struct.Struct("<BBBHBHIIIQIIIIIBH")
_CREATED1 = struct.Struct("<6xH48xQ")
_CLOSE1 = struct.Struct("<BHIH")


class Created(NamedTuple):
    """An open file, as a pipe's turn() takes it."""

    id: bytes
    size_bytes: int
    """When it was opened."""


class Opens(Protocol):
    """Requests to open and close; a Reply has the tag of its request as its offset."""

    def create(self, tag: int, path: str) -> None:
        """Asks for a new file to read and write; it goes when this handle is closed."""

    def open(self, tag: int, path: str, write: bool) -> None:
        """Asks for one more handle of an existing file."""

    def close(self, tag: int, file_id: bytes) -> None:
        """Asks to close a handle."""

    def opened(self, body: bytes) -> Created:
        """What the reply to create() or open() tells. Raises Broken where it is too short."""


def opens(pipe: Pipe) -> Opens:
    """Those of the pipe's own protocol."""
    return Opens1(pipe) if isinstance(pipe, Pipe1) else Opens2(pipe)


def _wanted(write: bool, delete: bool) -> int:
    return _READ | (_WRITE if write else 0) | (_DELETE if delete else 0)


class Opens2:
    """SMB 2.0.2 to 3.1.1."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def create(self, tag: int, path: str) -> None:
        """See Opens."""
        self._ask(tag, path, _wanted(True, True), _NEW, _FILE | _DELETE_ON_CLOSE)

    def open(self, tag: int, path: str, write: bool) -> None:
        """See Opens."""
        self._ask(tag, path, _wanted(write, False), _OPEN, _FILE)

    def _ask(self, tag: int, path: str, access: int, disposition: int, options: int) -> None:
        name = path.encode("utf-16-le")
        head = _CREATE2.pack(
            57,
            0,
            0,
            _IMPERSONATION,
            0,
            0,
            access,
            _NORMAL,
            _SHARE_ALL,
            disposition,
            options,
            _NAME2_OFFSET,
            len(name),
            0,
            0,
        )
        self._pipe.ask("create", tag, head + name)

    def close(self, tag: int, file_id: bytes) -> None:
        """See Opens."""
        self._pipe.ask("close", tag, _CLOSE2.pack(24, 0, 0, file_id))

    def opened(self, body: bytes) -> Created:
        """See Opens."""
        if len(body) < _CREATED2.size:
            raise Broken("the server sent a CREATE reply that is too short")
        size_bytes, file_id = _CREATED2.unpack_from(body)
        return Created(file_id, size_bytes)


class Opens1:
    """SMB1: NT_CREATE_ANDX and CLOSE."""

    def __init__(self, pipe: Pipe1) -> None:
        self._pipe = pipe

    def create(self, tag: int, path: str) -> None:
        """See Opens."""
        self._ask(tag, path, _wanted(True, True), _NEW, _FILE | _DELETE_ON_CLOSE)

    def open(self, tag: int, path: str, write: bool) -> None:
        """See Opens."""
        self._ask(tag, path, _wanted(write, False), _OPEN, _FILE)

    def _ask(self, tag: int, path: str, access: int, disposition: int, options: int) -> None:
        name = path.encode("utf-16-le" if self._pipe.unicode else "ascii")
        # a name in UTF-16 stands at an even offset of the message
        data = b"\0" + name if self._pipe.unicode else name
        head = _CREATE1.pack(
            24,
            0xFF,
            0,
            0,
            0,
            len(name),
            0,
            0,
            access,
            0,
            _NORMAL,
            _SHARE_ALL,
            disposition,
            options,
            _IMPERSONATION,
            0,
            len(data),
        )
        self._pipe.ask("create", tag, head + data)

    def close(self, tag: int, file_id: bytes) -> None:
        """See Opens. Its time of the last write stays the server's."""
        self._pipe.ask("close", tag, _CLOSE1.pack(3, int.from_bytes(file_id, "little"), 0, 0))

    def opened(self, body: bytes) -> Created:
        """See Opens."""
        if len(body) < _CREATED1.size or body[0] < 34:
            raise Broken("the server sent a CREATE reply that is too short")
        file_id, size_bytes = _CREATED1.unpack_from(body)
        return Created(file_id.to_bytes(2, "little"), size_bytes)
