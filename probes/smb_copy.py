"""A real copy of one file between this host and a share, flushed to the disk at its end.

READ and WRITE are our own, pipelined on the session of an SMB library: the libraries' copy loops
keep one request in flight and would measure themselves. Runs on the client alone (Python 3.11).
"""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from probes.host import payload
from probes.records import Details, Endpoint, Sample
from probes.smb import status, transfer
from probes.smb.ends import FolderSink, FolderSource, MemorySink, MemorySource
from probes.smb.frames import Broken, Late
from probes.smb.pipe import Pipe, received
from probes.smb.run_folder import SOURCE, joined
from probes.smb.session import Handle, Session, open_session
from probes.stage import Last, Refused, Running, Unavailable

NAME = "smb-copy"

COPIES = ("pull.cached", "pull.uncached", "push.cached", "push.uncached")
ENDS = ("folder", "memory")
SAMPLE_SECONDS = 0.1
CHECK_BYTES = 64 * 1024
CHECKED_ON_CLIENT = 64
CHECKED_ON_SHARE = 16
CHECK_SECONDS = 20.0

Blocks = Callable[[int, int], Iterator[memoryview]]
"""From offset and size to what the receiver has there, in parts."""


@dataclass(frozen=True)
class Setting:
    """Which copy, and how."""

    copy: str
    """One of COPIES; cached or not speaks of the sender."""
    dialect: str
    """2.0.2, 2.1, 3.0, 3.0.2, 3.1.1 or smb1."""
    end: str
    """folder: the client's folder is read from or written to; memory: no disk on the client."""
    size_bytes: int
    seconds: float
    """Deadline of this one run, from the opening of its window."""
    folder: str = "."
    """The client's folder."""
    seed: str = ""
    """Of the payload, hex."""
    fill_source: bool = False
    """Push alone: writes the run's own source file instead of a new one."""
    signing: str | None = None
    """Label of a report; what is really used stands in the details."""
    encryption: str | None = None
    request_bytes: int = 0
    """0: the dialect's best."""
    depth: int = 0
    """Requests in flight; 0: the dialect's best."""


def preload() -> None:
    """Imports the SMB library, so that children forked afterwards need not."""
    from cryptography.hazmat.primitives import cmac
    from cryptography.hazmat.primitives.ciphers import Cipher, aead

    from probes.drivers import smbprotocol_session

    del cmac, Cipher, aead, smbprotocol_session


@contextmanager
def respond(setting: Setting) -> Iterator[Endpoint]:
    """Nothing: the file server is the responder."""
    yield Endpoint()


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Makes the copy once and yields its samples: payload that the receiver has.

    peer: host, port, share, access, folder (the run's folder on the share) and, for a push from
    the folder, path (the client's file, opened for reading). The window opens before the first
    READ or WRITE and closes when all is durable; login, open, cache and check lie outside.
    Returns the details. Raises Refused, Unavailable, ValueError for a setting that makes no
    sense, and Broken in mid-copy.
    """
    if setting.copy not in COPIES or setting.end not in ENDS or setting.size_bytes < 1:
        raise ValueError(f"no such copy: {setting.copy}, {setting.end}, {setting.size_bytes} bytes")
    ring = payload.ring(bytes.fromhex(setting.seed))
    if setting.copy.startswith("pull"):
        if setting.fill_source:
            raise ValueError("the source file is filled by a push alone")
        return (yield from _pull(setting, peer, ring))
    return (yield from _push(setting, peer, ring))


def _pull(setting: Setting, peer: Endpoint, ring: memoryview) -> Running:
    folder = setting.end == "folder"
    with closing(FolderSink(setting.folder) if folder else MemorySink(ring)) as sink:
        with ExitStack() as stack:
            with _in_another_dialect(setting, peer):
                session = stack.enter_context(open_session(peer, setting.dialect))
                handle = _source_on_share(session, peer, setting.size_bytes)
            window = _Window(setting, peer)
            with window.blamed(), session.pipe(handle) as pipe:
                shape = pipe.prepare("read", setting.request_bytes, setting.depth)
                arrived = transfer.pull(pipe, setting.size_bytes, *shape, sink.take)
                yield from window.opened(pipe, arrived)
                sink.finish()
                yield window.closed()
            details = window.details(pipe, session, shape)
        intact = sink.intact
        if isinstance(sink, FolderSink):
            intact = _intact(ring, setting.size_bytes, sink.block, CHECKED_ON_CLIENT)
    # what the server's cache held is for the server's agent to prove
    cache = {"side": "server", "proven": False, "cached_ratio_before": None}
    return {**details, "cache": {**cache, "requested": _requested(setting)}, "hash_ok": intact}


def _push(setting: Setting, peer: Endpoint, ring: memoryview) -> Running:
    cached = _requested(setting) == "cached"
    folder = setting.end == "folder"
    with (
        closing(
            FolderSource(peer.path, setting.size_bytes, cached)
            if folder
            else MemorySource(ring, cached)
        ) as source,
        ExitStack() as stack,
    ):
        with _in_another_dialect(setting, peer):
            session = stack.enter_context(open_session(peer, setting.dialect))
            handle = _target_on_share(session, peer, setting.fill_source)
        window = _Window(setting, peer)
        with window.blamed(), session.pipe(handle) as pipe:
            shape = pipe.prepare("write", setting.request_bytes, setting.depth)
            cache = source.cache()
            every = (
                transfer.SHORT_FLUSH_BYTES if setting.dialect == "smb1" else transfer.FLUSH_BYTES
            )
            acknowledged = transfer.push(pipe, setting.size_bytes, *shape, source.give, every)
            yield from window.opened(pipe, acknowledged)
            transfer.finish(pipe)
            yield window.closed()
            details = window.details(pipe, session, shape)
            pipe.limit(time.monotonic() + CHECK_SECONDS)

            def on_share(offset: int, size: int) -> Iterator[memoryview]:
                return received(pipe, offset, memoryview(bytearray(size)))

            intact = _intact(ring, setting.size_bytes, on_share, CHECKED_ON_SHARE)
    cache = {"side": "client", "requested": _requested(setting), **cache}
    return {**details, "cache": cache, "hash_ok": intact}


class _Window:
    """The measured part of a copy, and how far it came."""

    def __init__(self, setting: Setting, peer: Endpoint) -> None:
        self._setting, self._peer = setting, peer
        self._opened = self._acknowledged = self._closed = 0.0
        self._moved_bytes = 0
        self._under_way = False

    def opened(self, pipe: Pipe, moves: Iterator[int]) -> Iterator[Sample]:
        """Samples from the opening to the last byte that the receiver acknowledged."""
        yield Sample(0.0, 0)
        self._under_way = True
        self._opened = told = time.monotonic()
        pipe.limit(self._opened + self._setting.seconds)
        for self._moved_bytes in moves:
            now = time.monotonic()
            if now - told >= SAMPLE_SECONDS:
                told = now
                yield Sample(now - self._opened, self._moved_bytes)
        self._acknowledged = time.monotonic()

    def closed(self) -> Last:
        """The last sample: everything is durable."""
        self._closed = time.monotonic()
        return Last(self._closed - self._opened, self._moved_bytes)

    def details(self, pipe: Pipe, session: Session, shape: tuple[int, int]) -> Details:
        """What happened in the window; nothing that comes after it."""
        counters, facts = pipe.counters, session.facts
        seconds = max(self._acknowledged - self._opened, 1e-9)
        return {
            "in_flight_bytes": counters.in_flight_bytes,
            "credit_stalls": counters.credit_stalls,
            "pending_replies": counters.pending_replies,
            "short_replies": counters.short_replies,
            "requests": counters.requests,
            "flushes": counters.flushes,
            "acknowledged_bytes_per_second": self._setting.size_bytes / seconds,
            "flush_seconds": self._closed - self._acknowledged,
            "request_seconds_median": statistics.median(counters.request_seconds),
            "dialect": facts.dialect,
            "signing": facts.signing,
            "encryption": facts.encryption,
            "request_bytes": shape[0],
            "depth": shape[1],
        }

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Says in one line where a copy broke and how far it came."""
        setting, peer = self._setting, self._peer
        try:
            yield
        except Broken as error:
            moment = "before the copy began"
            if self._under_way:
                moment = f"after {self._moved_bytes} of {setting.size_bytes} bytes"
            if self._closed:
                moment = "while the copy was checked"
            text = f"//{peer.host}/{peer.share}: {setting.copy} broke {moment}: {error}"
            if isinstance(error, status.ServerSaid) and error.status in status.NO_ROOM:
                text += "; make room there, or name a smaller size"
                raise Refused("space", text) from error
            if isinstance(error, Late):
                text += f" ({setting.seconds:.1f} s)"
            raise type(error)(*_arguments(text, error)) from error


def _arguments(text: str, error: Broken) -> tuple[str | int, ...]:
    return (text, error.status) if isinstance(error, status.ServerSaid) else (text,)


def _requested(setting: Setting) -> str:
    return setting.copy.rpartition(".")[2]


@contextmanager
def _in_another_dialect(setting: Setting, peer: Endpoint) -> Iterator[None]:
    """A login that works in the dialect that holds the run's folder, but not in this one."""
    try:
        yield
    except Refused as refused:
        held = peer.facts.get("dialect")
        if held in (None, setting.dialect) or refused.kind == "space":
            raise
        raise Unavailable(f"not by {setting.dialect}, though by {held}: {refused.text}") from None


def _source_on_share(session: Session, peer: Endpoint, size_bytes: int) -> Handle:
    """The run's source file. The folder is opened first: the last to leave removes both."""
    session.open_folder(peer.folder)
    handle = session.open_file(joined(peer.folder, SOURCE), write=False)
    if handle.size_bytes < size_bytes:
        raise ValueError(
            f"the source on //{peer.host}/{peer.share} has {handle.size_bytes} bytes, "
            f"{size_bytes} are to be pulled"
        )
    return handle


def _target_on_share(session: Session, peer: Endpoint, fill_source: bool) -> Handle:
    session.open_folder(peer.folder)
    if fill_source:
        return session.open_file(joined(peer.folder, SOURCE), write=True)
    return session.create_file(joined(peer.folder, f"pushed-{secrets.token_hex(8)}"))


def _intact(ring: memoryview, size_bytes: int, blocks: Blocks, count: int) -> bool:
    """Whether blocks spread over the file, first and last among them, are the payload."""
    count = min(count, -(-size_bytes // CHECK_BYTES))
    last = max(0, size_bytes - CHECK_BYTES)
    for number in range(count):
        offset = last * number // max(1, count - 1)
        size = min(CHECK_BYTES, size_bytes - offset)
        seen = 0
        for part in blocks(offset, size):
            if not payload.matches(ring, offset + seen, part):
                return False
            seen += len(part)
        if seen != size:
            return False
    return True
