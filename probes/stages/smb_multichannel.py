"""Measures further connections of one session: 1, 2 and 4 channels over the same file.

From and to memory, without FLUSH, as smb-matrix: the question is whether a single connection limits
a copy (its window, its core at either end, its port of a bond). Client only (Python 3.11).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, cast

from probes.core.records import Endpoint, Sample
from probes.core.stage import (
    LONG_BUDGET_SECONDS,
    Last,
    RunFacts,
    Running,
    Stage,
    Turn,
    Unavailable,
    no_agent,
)
from probes.files import payload
from probes.smb import status
from probes.smb.frames import SmbError
from probes.smb.login import open_session
from probes.smb.pipe import Flight, plan_flight
from probes.smb.session import Handle
from probes.smb.transfer import Transfer
from probes.stages import smb_matrix

if TYPE_CHECKING:
    from probes.smb.smbprotocol_session import Smb2Session

STAGE = Stage(
    "smb-multichannel",
    measures="whether SMB multichannel is faster",
    usual_seconds=3.0,
    needs=("share", "source"),
    writes=True,
    optional=True,
    from_budget_seconds=LONG_BUDGET_SECONDS,
    varying=("size_bytes",),
)
CHANNELS = (1, 2, 4)
MOVES = 2 * len(CHANNELS) + 1
"""Each count is run twice, up and down again, so that a drift affects all; the best once more."""
GRACE_SECONDS = 20.0
"""Additional time for logins, and for the requests in flight when the time is over."""
SAMPLE_SECONDS = 0.1
CHECKED_BLOCKS = 16
Setting = smb_matrix.Setting
fit_setting = smb_matrix.fit_setting
respond = no_agent


def turns(facts: RunFacts) -> Iterator[Turn]:
    """Yields a pull; a push too where this stage alone runs. Only SMB3 has channels."""
    for verb in ("pull", "push") if facts.is_only else ("pull",):
        if facts.dialect.startswith("3"):
            yield Turn(
                f"channels {verb} {facts.dialect}",
                Setting(verb, facts.dialect, 0, 0.0, facts.seed),
                STAGE.usual_seconds,
                parts=2.0,
                peer="share",
                grace_seconds=GRACE_SECONDS,
            )


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Moves the file's bytes over more and more channels; the samples are of the best count.

    peer: host, port, share, access and folder, the run's.

    Returns:
        cells: {channels, bytes_per_second} of each count that the server allowed; offered: each
        address that the server offers for further channels, with the rate_bytes_per_second that it
        claims; request_bytes, depth (of each channel), rtt_seconds, hash_ok, dialect, signing,
        encryption.

    Raises Refused, Unavailable where a session has one connection, ValueError, and SmbError.
    """
    if setting.verb not in smb_matrix.VERBS or setting.size_bytes < 1 or setting.seconds <= 0:
        raise ValueError(f"no such channels: {setting.verb} of {setting.size_bytes} bytes")
    with (
        open_session(peer, setting.dialect, setting.security) as session,
        status.error_context(lambda: f"{STAGE.name} {setting.verb} failed", peer),
        ExitStack() as stack,
    ):
        handle = smb_matrix.open_region(session, setting, peer)
        group = _Group(setting, peer, handle, stack, cast("Smb2Session", session))
        group.open_channels(CHANNELS[1])
        rates: dict[int, list[float]] = {}
        for count in (*CHANNELS, *reversed(CHANNELS)):
            if group.open_channels(count):
                *_, last = group.move(count)
                rate = last.moved_bytes / last.elapsed_seconds
                rates.setdefault(count, []).append(rate)
        cells = {count: sum(each) / len(each) for count, each in rates.items()}
        yield from group.move(max(cells, key=lambda count: cells[count]))
        group.transfers[0].read_back(CHECKED_BLOCKS)
        facts, flight = session.facts, group.flight
        offered = [asdict(each) for each in group.offered]
    return {
        "cells": [{"channels": n, "bytes_per_second": rate} for n, rate in cells.items()],
        "offered": offered,
        "request_bytes": flight.request_bytes,
        "depth": flight.depth,
        "rtt_seconds": flight.rtt_seconds,
        "hash_ok": all(transfer.intact for transfer in group.transfers),
        "dialect": facts.dialect,
        "signing": facts.signing,
        "encryption": facts.encryption,
    }


@dataclass
class _Group:
    """The channels of one session on one file."""

    setting: Setting
    peer: Endpoint
    handle: Handle
    stack: ExitStack
    """Closes the channels, the last one first."""
    first_session: Smb2Session
    transfers: list[Transfer] = field(default_factory=list)
    flight: Flight = Flight(0, 0, None)

    def __post_init__(self) -> None:
        self.offered = self.first_session.interfaces()
        self.deadline = time.monotonic() + self.setting.seconds + GRACE_SECONDS
        self.ring = payload.make_ring(bytes.fromhex(self.setting.seed))
        self._open_transfer(self.first_session)

    def open_channels(self, count: int) -> bool:
        """Opens channels up to the count; returns whether the server allowed it.

        Raises Unavailable where not even a second one may join.
        """
        from probes.smb.smbprotocol_session import open_channel

        while len(self.transfers) < count:
            try:
                channel = open_channel(self.first_session, self.peer)
            except Unavailable:
                if len(self.transfers) == 1:
                    raise
                return False
            self.stack.callback(channel.disconnect)
            self._open_transfer(channel)
        return True

    def _open_transfer(self, channel: Smb2Session) -> None:
        pipe = self.stack.enter_context(channel.pipe(self.handle))
        pipe.limit(self.deadline)
        verb = smb_matrix.VERBS[self.setting.verb]
        size_bytes = self.setting.size_bytes
        flight = plan_flight(pipe, verb)
        depth = max(1, min(flight.depth, size_bytes // flight.request_bytes))
        if not self.transfers:
            self.flight = flight._replace(depth=depth)
        else:
            pipe.prepare(verb, *self.flight.shape)
        self.transfers.append(Transfer(pipe, verb, size_bytes, self.ring))

    def move(self, count: int) -> Generator[Sample, None, None]:
        """Runs so many channels at once; yields samples from when each of them has moved bytes."""
        arrived: deque[tuple[float, int]] = deque()
        begun, over = [threading.Event() for _ in range(count)], threading.Event()
        errors: list[BaseException] = []

        def work(number: int) -> None:
            try:
                transfer = self.transfers[number]
                for reply in transfer.replies(*self.flight.shape, lambda _: not over.is_set()):
                    arrived.append((time.monotonic(), reply.moved_bytes))
                    begun[number].set()
            except BaseException as error:
                errors.append(error)
            finally:
                begun[number].set()

        threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(count)]
        for each in threads:
            each.start()
        try:
            for event in begun:
                event.wait(self.deadline - time.monotonic())
            yield Sample(0.0, 0)
            yield from self._window(arrived, errors)
        finally:
            over.set()
            for each in threads:
                each.join()
        if errors:
            raise errors[0]

    def _window(
        self, arrived: deque[tuple[float, int]], errors: list[BaseException]
    ) -> Iterator[Sample]:
        """Yields samples from the last reply before the window to the last one within it."""
        opened, start_bytes = self._so_far(arrived)
        until = time.monotonic() + self.setting.seconds / MOVES
        last = Sample(0.0, 0)
        while not errors and time.monotonic() < self.deadline:
            # If a reply takes longer than the window, wait for the first one.
            if time.monotonic() >= until and last.moved_bytes:
                break
            time.sleep(min(SAMPLE_SECONDS, self.setting.seconds / MOVES))
            moment, total_bytes = self._so_far(arrived)
            if total_bytes > start_bytes + last.moved_bytes:
                last = Sample(moment - opened, total_bytes - start_bytes)
                yield last
        if not errors and not last.moved_bytes:
            raise SmbError("nothing moved")
        yield Last(last.elapsed_seconds, last.moved_bytes)

    @staticmethod
    def _so_far(arrived: deque[tuple[float, int]]) -> tuple[float, int]:
        """Returns the moment of the last reply, and the bytes of all up to it."""
        pairs = list(arrived)
        return (max(t for t, _ in pairs), sum(size for _, size in pairs)) if pairs else (0.0, 0)
