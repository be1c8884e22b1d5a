#!/usr/bin/env python3
"""Serves one file by FUSE, each request answered when the planted disc would have done it.

Usage: fuse_file.py PLANTED CONTENT FILE
PLANTED: a Disc as JSON; CONTENT: a descriptor of the bytes; FILE: an empty file to mount over.
Says "ready" and serves until the file is unmounted.

The kernel's protocol is in linux/fuse.h: a read of /dev/fuse gives one request, a write answers it.
A file may be the root of a mount, so there are no names to look up.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import select
import stat
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

from platter import Disc, Platter, Request, Weak

LARGEST_BYTES = 1 << 20
"""Bytes of a request: 256 pages, the most that the kernel allows as it comes."""
PAGES = LARGEST_BYTES // 4096
BACKGROUND_REQUESTS = 256
"""At a time; direct I/O of a loop device counts as background."""
FOREVER_SECONDS = 1 << 30

GETATTR, SETATTR, OPEN, READ, WRITE = 3, 4, 14, 15, 16
STATFS, RELEASE, FSYNC, FLUSH, INIT = 17, 18, 20, 25, 26
FORGET, INTERRUPT, BATCH_FORGET = 2, 36, 42  # these want no answer
ASYNC_READ, BIG_WRITES, ASYNC_DIO, MAX_PAGES = 1 << 0, 1 << 5, 1 << 15, 1 << 22
OPEN_DIRECT, OPEN_PARALLEL = 1 << 0, 1 << 6
MAJOR, MINOR = 7, 38
MS_NOSUID, MS_NODEV = 2, 4  # linux/mount.h

_HEAD = struct.Struct("<IIQQIIIHH")  # fuse_in_header
_ANSWER = struct.Struct("<IiQ")  # fuse_out_header
_SPAN = struct.Struct("<QQIIQII")  # fuse_read_in and fuse_write_in: fh, offset, size, ...
_ATTRIBUTES = struct.Struct("<QII QQQQQQ IIIIIIIIII")  # fuse_attr_out
_INIT = struct.Struct("<IIIIHHIIHHI28x")  # fuse_init_out
_STATFS = struct.Struct("<QQQQQIIII24x")
_libc = ctypes.CDLL(None, use_errno=True)


def mount(file: Path) -> int:
    """Mounts a FUSE file over an empty one; the descriptor that its requests come from."""
    device = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
    options = f"fd={device},rootmode={stat.S_IFREG:o},user_id=0,group_id=0,allow_other"
    flags = MS_NOSUID | MS_NODEV
    if _libc.mount(b"disc", os.fsencode(file), b"fuse.disc", flags, options.encode()):
        raise OSError(ctypes.get_errno(), f"mount {file}")
    return device


class Server:
    def __init__(self, device: int, content: int, planted: Disc) -> None:
        self._device = device
        self._content = content
        self._size_bytes = planted.size_bytes
        self._platter = Platter(planted)
        self._buffer = bytearray(LARGEST_BYTES + 4096)
        self._view = memoryview(self._buffer)
        self._data = bytearray(LARGEST_BYTES)

    def serve(self) -> None:
        while True:
            due = self._platter.due
            patience = None if due is None else max(0.0, due - time.monotonic())
            select.select([self._device], [], [], patience)
            while self._took():
                pass
            for request in self._platter.done(time.monotonic()):
                self._finish(request)

    def _took(self) -> bool:
        """Whether there was a request to take. Errors: OSError ENODEV once unmounted."""
        try:
            length = os.readv(self._device, [self._buffer])
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):  # withdrawn meanwhile
                return True
            raise
        now = time.monotonic()
        _, opcode, unique, *_ = _HEAD.unpack_from(self._buffer)
        body = self._view[_HEAD.size : length]
        if opcode in (READ, WRITE):
            _, offset, size, *_ = _SPAN.unpack_from(body)
            if opcode == WRITE:
                os.pwrite(self._content, body[_SPAN.size : _SPAN.size + size], offset)
            verb = "read" if opcode == READ else "write"
            self._platter.take(Request(unique, verb, offset, size, now))
        elif opcode == FSYNC:
            self._platter.take(Request(unique, "flush", 0, 0, now))
        elif opcode not in (FORGET, INTERRUPT, BATCH_FORGET):
            self._at_once(opcode, unique)
        return True

    def _at_once(self, opcode: int, unique: int) -> None:
        flags = ASYNC_READ | BIG_WRITES | ASYNC_DIO | MAX_PAGES
        queue = (BACKGROUND_REQUESTS, BACKGROUND_REQUESTS * 3 // 4)
        limits = (*queue, LARGEST_BYTES, 1, PAGES, 0, 0)
        answers: dict[int, Callable[[], bytes]] = {
            INIT: lambda: _INIT.pack(MAJOR, MINOR, LARGEST_BYTES, flags, *limits),
            OPEN: lambda: struct.pack("<QII", 0, OPEN_DIRECT | OPEN_PARALLEL, 0),
            GETATTR: self._attributes,
            SETATTR: self._attributes,
            STATFS: lambda: _STATFS.pack(self._size_bytes // 4096, 0, 0, 1, 0, 4096, 255, 4096, 0),
            RELEASE: lambda: b"",
            FLUSH: lambda: b"",
        }
        if opcode in answers:
            self._answer(unique, answers[opcode]())
        else:
            self._answer(unique, error=errno.ENOSYS)

    def _attributes(self) -> bytes:
        times = (0, 0, 0)
        sizes = (1, self._size_bytes, self._size_bytes // 512)
        mode = (stat.S_IFREG | 0o600, 1, 0, 0, 0, 4096, 0)
        return _ATTRIBUTES.pack(FOREVER_SECONDS, 0, 0, *sizes, *times, *times, *mode)

    def _finish(self, request: Request) -> None:
        if request.verb == "read":
            part = memoryview(self._data)[: request.size_bytes]
            length = os.preadv(self._content, [part], request.offset_bytes)
            self._answer(request.unique, part[:length])
        elif request.verb == "write":
            self._answer(request.unique, struct.pack("<II", request.size_bytes, 0))
        else:
            self._answer(request.unique)

    def _answer(self, unique: int, data: bytes | memoryview = b"", error: int = 0) -> None:
        head = _ANSWER.pack(_ANSWER.size + len(data), -error, unique)
        with contextlib.suppress(FileNotFoundError):  # nobody waits for it any more
            os.writev(self._device, [head, data])


def main() -> int:
    planted, content, file = sys.argv[1:]
    facts = json.loads(planted)
    weak = facts.pop("weak")
    device = mount(Path(file))
    server = Server(device, int(content), Disc(**facts, weak=Weak(**weak) if weak else None))
    # late answers would be another's work on this machine, and not the disc's
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    print("ready", flush=True)
    try:
        server.serve()
    except OSError as error:
        if error.errno != errno.ENODEV:
            raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
