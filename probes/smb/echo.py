"""The round-trip time of a session: SMB ECHOs, one at a time (MS-SMB2 2.2.28, MS-CIFS 2.2.4.39)."""

from __future__ import annotations

import time

from probes.smb.frames import Broken
from probes.smb.pipe import Pipe

COUNT = 12
LEAST = 3


def round_trips(pipe: Pipe, seconds: float, count: int = COUNT) -> list[float]:
    """Seconds of each of up to count ECHOs; at least LEAST, whatever time they take.

    Nothing else may be in flight: a READ's payload in front of a reply would be counted too.
    Raises Broken where something is.
    """
    if pipe.outstanding:
        raise Broken("an ECHO tells the round-trip time of an idle session alone")
    taken: list[float] = []
    until = time.monotonic() + seconds
    while len(taken) < count and (len(taken) < LEAST or time.monotonic() < until):
        before = time.perf_counter()
        pipe.echo()
        pipe.wait()
        taken.append(time.perf_counter() - before)
    return taken
