"""Coordinator's interface to an agent: questions, holds, observations, stages."""

from __future__ import annotations

import contextlib
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

from bottleneck import __version__
from bottleneck.agents import bootstrap, own_modules, protocol, replies
from bottleneck.agents.metrics import MetricsEndpoint
from bottleneck.agents.replies import AgentLost, Observation, Pair, PartlyRan, Result, StageError
from probes.core import typed
from probes.core.records import Endpoint, HostFacts, Sample
from probes.core.stage import Refused, Unavailable
from probes.host.counters import CountedObjects
from probes.system import tools
from probes.system.child import delay_signals, detached_arguments
from probes.system.platform import os
from probes.system.waiting import signal

__all__ = ("AgentLost", "Host", "Observation", "Pair", "PartlyRan", "Result", "StageError")
GREETING_SECONDS = 15.0
CLOSING_SECONDS = 5.0
REMAINS = "may remain"
"""Words in the error of a hold that could not remove what it created."""
SILENT_SECONDS = 0.2
"""CLOSING_SECONDS of an agent that did not answer an earlier closing."""
LAST_WORDS_SECONDS = 1.0
LONGEST_VERSION = 80
ANSWER_SECONDS = 5.0
"""Time for a request and its reply on the wire, beside the request's own time."""
Progress = Callable[[Sample], None]


@dataclass
class Host(replies.Stream):
    """Connection to an agent."""

    silent: bool = False
    """Whether it did not answer the closing of a hold."""
    unclosed: list[str] = field(default_factory=list)
    """Sentences on holds that could not be closed, whose files may remain."""

    @classmethod
    def start(
        cls,
        side: str,
        command: list[str],
        program: bytes = b"",
        timeout_seconds: float | None = None,
    ) -> Self:
        """Starts an agent and waits for its greeting.

        Raises:
            AgentLost: no greeting in time, or that of another version.
        """
        program_path = tools.find_named(command[0])
        if program_path is None:
            raise AgentLost(
                f"the {side}'s agent did not start: {command[0]}: not found in any folder of "
                "PATH that only root and this user can write to; install it or use its full "
                "path"
            )
        host: Self | None = None
        try:
            with delay_signals():
                process = subprocess.Popen(
                    [program_path, *command[1:]],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    # Ctrl-C goes only to the coordinator, which closes the agents in order. If it
                    # is killed, this signal ends an ssh that waits.
                    **detached_arguments(signal.SIGTERM),
                )
                host = cls(side, process)
            host._greet(program, timeout_seconds or GREETING_SECONDS)
        except BaseException as error:
            if host is not None:
                host.close(now=True)
            if isinstance(error, (OSError, RuntimeError)):  # RuntimeError: of a thread
                what = f"{command[0]}: {getattr(error, 'strerror', error)}"
                raise AgentLost(f"the {side}'s agent did not start: {what}") from None
            raise
        return host

    def _greet(self, program: bytes, timeout_seconds: float) -> None:
        listening = threading.Thread(target=self._read_errors, daemon=True)
        listening.start()
        greeted: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(program, greeted), daemon=True).start()
        try:
            trouble = greeted.get(timeout=timeout_seconds)
        except queue.Empty:
            trouble = f"sent nothing for {timeout_seconds:.0f} s"
        if "refused" in self.greeting:
            raise self._checked_value(replies.refusal, self.greeting["refused"])
        version = self.greeting.get("version")
        if not trouble and version != __version__:
            words = replies.words(version)[:LONGEST_VERSION]
            trouble = f"has version {words}, but this host has {__version__}"
        if trouble:
            if self.lost or self.process.poll() is not None:
                # Its stream may have closed before its last errors were read.
                listening.join(LAST_WORDS_SECONDS)
            words = f"the {self.side}'s agent {trouble}{self._last_words()}"
            raise AgentLost(words, said="\n".join([trouble, *self.errors]))
        threading.Thread(target=self._send_signs, daemon=True).start()

    def ask(self, name: str, seconds: float = 10.0, **arguments: Any) -> Any:
        """Asks one question of requests.ASKS and returns the answer."""
        return self.start_ask(name, seconds, **arguments)()

    def start_ask(self, name: str, seconds: float = 10.0, **arguments: Any) -> Callable[[], Any]:
        """Sends a question; the returned function waits for the answer."""
        request = {"do": "ask", "name": name, "arguments": arguments, "seconds": seconds}
        return self._start_call(request, seconds + ANSWER_SECONDS, name)

    def tell(self, do: str, **fields: Any) -> Any:
        """Sends a request that the agent itself answers: watch, counters, preload."""
        return self.start_tell(do, **fields)()

    def start_tell(self, do: str, **fields: Any) -> Callable[[], Any]:
        """Sends such a request; the returned function waits for the answer."""
        return self._start_call({"do": do, **fields}, 10.0, do)

    def _start_call(self, request: dict[str, Any], seconds: float, step: str) -> Callable[[], Any]:
        number, until = self.send(request), time.monotonic() + seconds

        def answer() -> Any:
            try:
                return self._checked_value(replies.answer, self.next(number, until, step))
            finally:
                self.replies.forget(number)

        return answer

    def _begin(
        self, do: str, name: str, setting: Any, seconds: float, peer: Endpoint | None = None
    ) -> int:
        """Sends a request with a setting; returns its number."""
        request = {"do": do, "name": name, "setting": typed.to_plain(setting), "seconds": seconds}
        if peer is not None:
            request["peer"] = protocol.endpoint_to_plain(peer)
        return self.send(request)

    def watch(self, facts: HostFacts, peer_address: str, file_server: bool, **changes: Any) -> None:
        """Sets the interface, device and peer that this host's counters count from now on."""
        watched = CountedObjects(
            interface=facts.interface.name if facts.interface else None,
            folder_device=facts.folder.device if facts.folder else None,
            file_server=file_server,
            peer_address=peer_address,
        )
        self.tell("watch", watched=typed.to_plain(replace(watched, **changes)))

    @contextmanager
    def hold(
        self, name: str, setting: Any, peer: Endpoint, seconds: float, opening_seconds: float = 15.0
    ) -> Iterator[Endpoint]:
        """Has the host hold a resource (a responder, a file, a folder) for the block."""
        with self.start_hold(name, setting, peer, seconds, opening_seconds) as opened:
            yield opened()

    @contextmanager
    def start_hold(
        self, name: str, setting: Any, peer: Endpoint, seconds: float, opening_seconds: float
    ) -> Iterator[Callable[[], Endpoint]]:
        """Has the host hold a resource; the yielded function waits until it is there."""
        number = self._begin("hold", name, setting, seconds, peer)
        until = time.monotonic() + opening_seconds
        is_open: bool | None = None  # no reply yet

        def opened() -> Endpoint:
            nonlocal is_open
            try:
                reply = self.next(number, until, name)
            except Exception:
                is_open = False
                raise
            is_open = True
            endpoint = self._checked_value(replies.endpoint, reply)
            return endpoint if endpoint.access else replace(endpoint, access=peer.access)

        try:
            yield opened
        finally:
            self._close_hold(number, name, is_open, setting)
            self.replies.forget(number)

    def _note_files(self, setting: Any) -> None:
        """Notes files that may remain on another host after its connection was lost."""
        text = f"files of this run may remain on the {self.side} for up to 60 s"
        text += "; then its agent removes them"
        if self.is_remote and getattr(setting, "folder", False) and text not in self.unclosed:
            self.unclosed.append(text)

    def _close_hold(self, number: int, name: str, opened: bool | None, setting: Any) -> None:
        """Closes a hold; opened: None: no reply came yet, the next may report remaining files."""
        if self.lost:
            self._note_files(setting)
            return
        timeout_seconds = SILENT_SECONDS if self.silent else CLOSING_SECONDS
        try:
            self._write(protocol.encode({"id": number, "do": "close"}), timeout_seconds)
            if opened is not False:
                self.next(number, time.monotonic() + timeout_seconds, f"closing {name}")
            self.silent = False
        except (AgentLost, StageError, Refused, Unavailable, OSError) as error:
            # The other holds are closed too, without a long wait for each.
            self.silent = isinstance(error, (AgentLost, OSError))
            if self.silent and self.is_remote:
                self._note_files(setting)
            elif opened or self.silent or REMAINS in str(error):
                self.unclosed.append(f"{self.side}: closing the {name}: {error}")

    @contextmanager
    def observe(self, name: str, setting: Any, seconds: float) -> Iterator[Observation]:
        """Has the host observe (requests.OBSERVERS) during the block.

        An error of the observer never fails the block. If the block set a window, the observation
        holds the reply afterwards, or the reason why there is none.
        """
        number = self._begin("observe", name, setting, seconds)
        observation = Observation(partial(self._close_observation, number, name))
        try:
            yield observation
        finally:
            observation.end()
            self.replies.forget(number)

    def _close_observation(self, number: int, name: str, observation: Observation) -> None:
        if self.lost:
            observation.trouble = f"{self.side}: the agent {self.lost}"
            return
        close = {"id": number, "do": "close", "window": observation.window}
        try:
            self._write(protocol.encode(close))
            if observation.window is not None:
                until = time.monotonic() + CLOSING_SECONDS
                observation.reply = self.next(number, until, f"watching the {name}")["observed"]
        except (AgentLost, StageError, Refused, Unavailable, OSError, LookupError) as error:
            observation.trouble = str(error)

    def initiate(
        self,
        name: str,
        setting: Any,
        peer: Endpoint,
        seconds: float,
        watch_too: Host | MetricsEndpoint | None = None,
        progress: Progress | None = None,
        finish: Callable[[], float] | None = None,
        ended: Callable[[Pair, Pair | None], None] | None = None,
    ) -> Result:
        """Runs a stage from this host; both hosts' counters are read at its window's ends.

        finish: completes the work on the other host, and returns its seconds, which belong to the
        window. ended: receives both hosts' counters while the stage still holds its connection.
        Raises PartlyRan: it broke; its samples are kept.
        """
        number = self._begin("initiate", name, setting, seconds, peer)
        until = time.monotonic() + seconds + ANSWER_SECONDS
        samples: list[Sample] = []
        counts: list[Any] = []
        others: list[Any] = []
        with self._end_on_error(number, name, setting, samples, watch_too):
            while True:
                reply = self.next(number, until, name)
                if "details" in reply:
                    details = self._checked_value(typed.details, reply["details"])
                    break
                samples.append(self._checked_value(replies.sample, reply.get("sample")))
                if finish is not None and reply.get("last"):
                    until += _seconds_of(_finish_samples, samples, finish)
                if "counters" in reply and len(counts) < 2:
                    counts.append(reply["counters"])
                    if watch_too is not None:
                        until += _seconds_of(lambda: others.append(watch_too.tell("counters")))
                    if ended is not None and len(counts) > 1:
                        until += _seconds_of(ended, _ends(counts), _ends(others))
                    self._write(protocol.encode({"id": number, "do": "continue"}))
                if progress is not None:
                    progress(samples[-1])
        if len(counts) < 2 or not replies.is_window(samples):
            raise PartlyRan("the test gave no complete result", tuple(samples), False)
        return Result(tuple(samples), details, _ends(counts), _ends(others))

    @contextmanager
    def _end_on_error(
        self,
        number: int,
        name: str,
        setting: Any,
        samples: list[Sample],
        other: Host | MetricsEndpoint | None,
    ) -> Iterator[None]:
        """Ends a stage on its host if the block fails. Raises PartlyRan, Unavailable."""
        try:
            yield
        except OSError as error:
            lost = f"{self.side}: the agent failed in {name} ({error})"
            raise PartlyRan(lost, tuple(samples), True) from None
        except AgentLost as error:
            self._note_files(setting)
            raise PartlyRan(str(error), tuple(samples), True) from None
        except (StageError, Unavailable) as error:
            # From here a link that is down looks like a firewall.
            if lost := other.why_lost() if other is not None else "":
                raise PartlyRan(lost, tuple(samples), True) from None
            if isinstance(error, Unavailable):
                raise
            raise PartlyRan(str(error), tuple(samples), False) from None
        except BaseException as error:
            if isinstance(error, Refused):
                error.samples = tuple(samples)
            # Ctrl-C: a stage's files must be removed before their folder.
            with contextlib.suppress(OSError):
                self._write(protocol.encode({"id": number, "do": "close"}))
            raise
        finally:
            self.replies.forget(number)

    def why_lost(self) -> str:
        """Asks for a sign of life; returns why none comes, or empty."""
        try:
            self.tell("counters")
        except (AgentLost, OSError) as lost:
            return str(lost)
        return ""

    def close(self, now: bool = False) -> None:
        """Closes the stream, which ends the agent and its children, and kills the rest."""
        process = self.process
        if now:
            self._signal(signal.SIGTERM)
        try:
            self.closing.set()
            with self.sending, contextlib.suppress(OSError):
                if process.stdin is not None:
                    process.stdin.close()
            process.wait(1.0 if now else CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            process.wait()
        finally:
            # Also if an interrupt ended the wait.
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        """Signals the command's process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _ends(counters: list[Any]) -> Any:
    """Returns the counters at both ends of a window; None: there are none."""
    return (counters[0], counters[-1]) if counters else None


def _finish_samples(samples: list[Sample], finish: Callable[[], float]) -> None:
    """Completes the work on the other host, and adds its seconds to the last sample."""
    last = samples[-1]
    samples[-1] = Sample(last.elapsed_seconds + finish(), last.moved_bytes)


def _seconds_of(work: Callable[..., None], *arguments: Any) -> float:
    """Returns the seconds of a call, which extend the agent's time."""
    began = time.monotonic()
    work(*arguments)
    return time.monotonic() - began


def start_here() -> Host:
    """Starts the agent of this host, the client."""
    return Host.start("client", own_modules.command("bottleneck.agents.server"))


def start_there(spec: str) -> Host:
    """Starts the agent that travels to the server. Raises AgentLost: it does not answer."""
    try:
        host = Host.start("server", bootstrap.command_for(spec), bootstrap.program())
    except AgentLost as lost:
        raise AgentLost(*bootstrap.explain_failure(spec, lost.text, lost.said)) from None
    host.is_remote = True
    return host
