"""Reach an agent: a pipe on this host, the system's ssh, or any command that passes streams."""

from __future__ import annotations

import queue
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from bottleneck import __version__, travel, wire
from probes.records import Details, Endpoint, Sample
from probes.stage import Refused, Unavailable

GREETING_SECONDS = 15.0
CLOSING_SECONDS = 5.0
ANSWER_SECONDS = 5.0
"""How much longer than its own time a request may take on the wire."""

Progress = Callable[[Sample], None]


class StageError(Exception):
    """A probe was tried and broke; the text says how, in one line."""


class AgentLost(Exception):
    """The agent does not answer or is gone; the text names host, step and remedy."""


@dataclass(frozen=True)
class Ran:
    """What an initiated stage gave, with the counters of both hosts at its window's ends."""

    samples: tuple[Sample, ...]
    details: Details
    own: tuple[Any, Any]
    other: tuple[Any, Any] | None


def command_for(spec: str) -> list[str]:
    """The command that starts a travelling agent where SPEC says.

    SPEC is `ssh://[user@]host[:port]` or `exec:PREFIX`; the prefix is split as a shell would.

    Raises:
        Refused: kind "usage", a spec that is neither or that would be taken for an option.
    """
    starter = ["python3", "-c", travel.STARTER]
    if spec.startswith("exec:"):
        try:
            prefix = shlex.split(spec.removeprefix("exec:"))
        except ValueError as error:
            raise Refused("usage", f"--agent {spec!r}: {error}") from None
        return [*prefix, *starter]
    if not spec.startswith("ssh://"):
        raise Refused(
            "usage", f"--agent {spec!r} is none of ssh://[user@]host[:port], exec:PREFIX, none"
        )
    try:
        parts = urlsplit(spec)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise Refused("usage", f"--agent {spec!r}: {error}") from None
    if parts.password is not None:
        raise Refused("usage", "--agent takes no password: use a key or an ssh agent")
    names = [each for each in (host, parts.username) if each is not None]
    if not host or any(not re.fullmatch(r"[\w.:%][\w.:%-]*", each) for each in names):
        raise Refused("usage", f"--agent {spec!r} names no host that ssh could reach")
    options = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]
    options += ["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=6"]
    if port:
        options += ["-p", str(port)]
    if parts.username:
        options += ["-l", parts.username]
    # ssh hands one string to the other side's shell: it is quoted here for that shell.
    return ["ssh", *options, "--", host, shlex.join(starter)]


def command_here() -> list[str]:
    """The command that starts the agent of this host, from this installation."""
    return [sys.executable, "-m", "bottleneck.agent"]


@dataclass
class Host:
    """An agent at the other end of a stream, as the coordinator sees it."""

    side: str
    process: subprocess.Popen[bytes]
    banner: list[str] = field(default_factory=list)
    """What stood in front of the greeting: shown, never obeyed."""
    about: dict[str, Any] = field(default_factory=dict)
    replies: dict[int, queue.SimpleQueue[dict[str, Any]]] = field(default_factory=dict)
    lost: str = ""
    number: int = 0
    sending: threading.Lock = field(default_factory=threading.Lock)
    errors: list[str] = field(default_factory=list)

    @classmethod
    def start(cls, side: str, command: list[str], program: bytes = b"") -> Self:
        """Starts an agent and waits for its greeting.

        Raises:
            AgentLost: no greeting in time, or of another version.
        """
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C is the coordinator's alone: it closes the agents in order.
                start_new_session=True,
            )
        except OSError as error:
            what = f"{command[0]}: {error.strerror}"
            raise AgentLost(f"the {side}'s agent did not start: {what}") from None
        host = cls(side, process)
        threading.Thread(target=host._read_errors, daemon=True).start()
        greeted: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=host._read, args=(program, greeted), daemon=True).start()
        try:
            trouble = greeted.get(timeout=GREETING_SECONDS)
        except queue.Empty:
            trouble = f"said nothing for {GREETING_SECONDS:.0f} s"
        if not trouble and host.about["version"] != __version__:
            trouble = f"has version {host.about['version']}, this host {__version__}"
        if trouble:
            host.close(now=True)
            raise AgentLost(
                f"the {side}'s agent {trouble}{host._last_words()}; try the same command by hand"
            )
        return host

    def _last_words(self) -> str:
        words = [*self.errors[-1:]] or self.banner[-1:]
        return f" ({words[0][:200]})" if words else ""

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            text = line[:500].decode(errors="replace").strip()
            if text:
                self.errors.append(text)
                del self.errors[:-20]

    def _read(self, program: bytes, greeted: queue.SimpleQueue[str]) -> None:
        assert self.process.stdout is not None
        stream = self.process.stdout
        try:
            self._write(program)
            junk = 0
            while not self.about:
                line = stream.readline(wire.MAX_LINE_BYTES)
                junk += len(line)
                if not line or junk > wire.MAX_JUNK_BYTES:
                    self.process.wait(1) if not line else None
                    greeted.put("ended without a greeting" if not line else "only sent noise")
                    return
                self.about = wire.read_greeting(line) or {}
                if not self.about:
                    self.banner.append(line.decode(errors="replace").rstrip())
            greeted.put("")
            while line := stream.readline(wire.MAX_LINE_BYTES + 1):
                reply = wire.decode(line)
                replies = self.replies.get(reply.get("id", -1))
                if replies is not None:
                    replies.put(reply)
            self._lose("ended")
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            self._lose(f"broke off: {error}")
            greeted.put(self.lost)

    def _lose(self, how: str) -> None:
        self.lost = how
        for replies in list(self.replies.values()):
            replies.put({"lost": how})

    def _write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        with self.sending:
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def send(self, request: dict[str, Any]) -> int:
        """Sends a request; its number."""
        self.number += 1
        number = self.number
        self.replies[number] = queue.SimpleQueue()
        try:
            self._write(wire.encode({"id": number, **request}))
        except OSError as error:
            self._lose(f"broke off: {error}")
        if self.lost:
            self.replies[number].put({"lost": self.lost})
        return number

    def next(self, number: int, until: float, step: str) -> dict[str, Any]:
        """The next reply to a request.

        Raises:
            Unavailable, Refused, StageError: as the probe said.
            AgentLost: nothing more will come.
        """
        try:
            reply = self.replies[number].get(timeout=max(0.01, until - time.monotonic()))
        except queue.Empty:
            raise AgentLost(
                f"{self.side}: the agent did not answer in {step}; is the host still up?"
            ) from None
        if "lost" in reply:
            raise AgentLost(f"{self.side}: the agent {reply['lost']} in {step}{self._last_words()}")
        if "skipped" in reply:
            raise Unavailable(str(reply["skipped"]))
        if "refused" in reply:
            raise Refused(str(reply["refused"]["kind"]), str(reply["refused"]["text"]))
        if "failed" in reply:
            raise StageError(str(reply["failed"]))
        return reply

    def ask(self, name: str, seconds: float = 10.0, **arguments: Any) -> Any:
        """The answer to one question of agent.ASKS."""
        request = {"do": "ask", "name": name, "arguments": arguments, "seconds": seconds}
        until = time.monotonic() + seconds + ANSWER_SECONDS
        return self._answer(request, until, name)

    def _answer(self, request: dict[str, Any], until: float, step: str) -> Any:
        number = self.send(request)
        try:
            return self.next(number, until, step)["answer"]
        finally:
            del self.replies[number]

    def tell(self, do: str, **fields: Any) -> Any:
        """A request that the agent answers itself: watch, counters, preload."""
        return self._answer({"do": do, **fields}, time.monotonic() + 10.0, do)

    @contextmanager
    def hold(
        self, name: str, setting: Any, peer: Endpoint, seconds: float, opening_seconds: float = 15.0
    ) -> Iterator[Endpoint]:
        """Has the host hold something (a responder, a file, a folder) until left."""
        number = self.send(
            {
                "do": "hold",
                "name": name,
                "setting": wire.to_plain(setting),
                "peer": wire.endpoint_to_plain(peer),
                "seconds": seconds,
            }
        )
        opened = False
        try:
            reply = self.next(number, time.monotonic() + opening_seconds, name)
            opened = True
            plain = dict(reply["endpoint"])
            plain.pop("access", None)
            yield wire.from_plain(Endpoint, plain)
        finally:
            self._close_hold(number, name, opened)
            del self.replies[number]

    def _close_hold(self, number: int, name: str, opened: bool) -> None:
        if self.lost:
            return
        try:
            self._write(wire.encode({"id": number, "do": "close"}))
            if opened:
                self.next(number, time.monotonic() + CLOSING_SECONDS, f"closing {name}")
        except (AgentLost, StageError, Refused, Unavailable, OSError) as error:
            self.errors.append(f"closing {name}: {error}")

    def initiate(
        self,
        name: str,
        setting: Any,
        peer: Endpoint,
        seconds: float,
        watch_too: Host | None = None,
        progress: Progress | None = None,
    ) -> Ran:
        """Runs a stage from this host; both hosts' counters are read at its window's ends.

        Raises:
            PartlyRan: it broke; what was seen is kept with it.
        """
        number = self.send(
            {
                "do": "initiate",
                "name": name,
                "setting": wire.to_plain(setting),
                "peer": wire.endpoint_to_plain(peer),
                "seconds": seconds,
            }
        )
        until = time.monotonic() + seconds + ANSWER_SECONDS
        samples: list[Sample] = []
        own: list[Any] = []
        other: list[Any] = []
        try:
            while True:
                reply = self.next(number, until, name)
                if "details" in reply:
                    break
                elapsed, moved = reply["sample"]
                samples.append(Sample(float(elapsed), int(moved)))
                if "counters" in reply:
                    own.append(reply["counters"])
                    if watch_too is not None:
                        other.append(watch_too.tell("counters"))
                    self._write(wire.encode({"id": number, "do": "continue"}))
                if progress is not None:
                    progress(samples[-1])
        except OSError as error:
            lost = f"{self.side}: the agent broke off in {name} ({error})"
            raise PartlyRan(lost, tuple(samples), True) from None
        except (StageError, AgentLost) as error:
            raise PartlyRan(str(error), tuple(samples), isinstance(error, AgentLost)) from None
        finally:
            self.replies.pop(number, None)
        if len(own) < 2 or len(samples) < 2:
            raise PartlyRan("the stage gave no complete window", tuple(samples), False)
        both = (other[0], other[-1]) if other else None
        return Ran(tuple(samples), reply["details"], (own[0], own[-1]), both)

    def close(self, now: bool = False) -> None:
        """Closes the stream: the agent and its children end; what does not is killed."""
        process = self.process
        try:
            if process.stdin is not None:
                process.stdin.close()
        except OSError as error:
            self.errors.append(str(error))
        try:
            process.wait(0.5 if now else CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class PartlyRan(Exception):
    """A stage broke after it had begun; the samples until then are kept."""

    def __init__(self, text: str, samples: tuple[Sample, ...], lost: bool) -> None:
        super().__init__(text)
        self.samples = samples
        self.lost = lost
        """Whether the agent went with it."""


def start_here() -> Host:
    """The agent of this host, the client."""
    return Host.start("client", command_here())


def start_there(spec: str) -> Host:
    """The agent that travels to the server."""
    return Host.start("server", command_for(spec), travel.program())
