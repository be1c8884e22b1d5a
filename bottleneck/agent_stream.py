"""An agent's stream: requests in lines of a bounded length, replies that somebody has to read.

Runs on Python 3.9 with the standard library alone.
"""

from __future__ import annotations

import os
import select
from dataclasses import dataclass
from typing import List

from bottleneck import wire

WRITE_SECONDS = 30.0
"""How long a caller may leave a reply unread."""
LONGEST_PROGRAM_BYTES = 16 << 20


class Ended(Exception):
    """The session is over, for the reason in the text."""


@dataclass
class Requests:
    """What has arrived of the requests."""

    unread: bytes = b""
    skipped_bytes: int = -1
    """Still to come of a program that is not run; below zero: not known yet."""

    def lines(self, chunk: bytes) -> List[bytes]:
        """The lines that are complete with this chunk. Errors: Ended, one without end."""
        *lines, self.unread = self._without_program(self.unread + chunk).split(b"\n")
        if len(self.unread) > wire.MAX_LINE_BYTES:
            raise Ended("a request without end")
        return lines

    def _without_program(self, unread: bytes) -> bytes:
        """What follows the program that a caller sends to a host where it would travel to.

        An agent that is installed, as behind ssh's forced command, runs none that it is sent.
        """
        if self.skipped_bytes < 0:
            size, newline, rest = unread.partition(b"\n")
            if not newline:
                return unread
            self.skipped_bytes = 0
            if size.isdigit():
                if len(size) > 9 or int(size) > LONGEST_PROGRAM_BYTES:
                    raise Ended("a program that is too large")
                self.skipped_bytes, unread = int(size), rest
        skipped = min(self.skipped_bytes, len(unread))
        self.skipped_bytes -= skipped
        return unread[skipped:]


def write(fd: int, line: bytes) -> None:
    """Writes a line to whoever reads it. Errors: BrokenPipeError; Ended, nobody does."""
    while line:
        # So much does not block where a little can be written (pipe(7)).
        if not select.select([], [fd], [], WRITE_SECONDS)[1]:
            raise Ended(f"nobody read its replies for {WRITE_SECONDS:.0f} s")
        line = line[os.write(fd, line[: select.PIPE_BUF]) :]
