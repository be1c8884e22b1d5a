"""What a stage is: a module that describes itself, with a setting, two ends and turns in a run."""

from __future__ import annotations

import importlib
import math
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generator, Iterable, Iterator, List, Literal, Optional, Tuple

from probes.core.records import Details, Endpoint, Sample


class Last(Sample):
    """The sample that closes the measured window; checks and clean-up may follow it."""


Running = Generator[Sample, None, Details]
"""A stage under way: yields samples, returns its details."""


def requested(copy: str) -> str:
    """How a copy wants the sender's file: "cached" or "uncached"."""
    return copy.rpartition(".")[2]


@dataclass
class Window:
    """The measured part of a copy, and how far it came; its moments are by time.monotonic()."""

    opened: float = 0.0
    """0: not yet."""
    acknowledged: float = 0.0
    """The receiver had the last byte."""
    closed: float = 0.0
    """All was durable."""
    moved_bytes: int = 0

    @property
    def seconds(self) -> float:
        """From the opening to the closing."""
        return max(self.closed - self.opened, 1e-9)

    def close(self, now: float, moved_bytes: int) -> Last:
        """The last sample."""
        self.closed = now
        return Last(self.closed - self.opened, moved_bytes)

    def timed(self, moved_bytes: int) -> Details:
        """Rate until the last byte was acknowledged, and what came after that."""
        return {
            "acknowledged_bytes_per_second": moved_bytes
            / max(self.acknowledged - self.opened, 1e-9),
            "flush_seconds": self.closed - self.acknowledged,
        }


class Unavailable(Exception):
    """This stage cannot be tried here; the text is the reason and becomes a Skipped."""


class Refused(Exception):
    """The other side said no before anything could be measured; ends the whole run, tried once.

    kind: "unreachable" (name, route, port, no SMB there), "share" (no such share or folder on it),
    "login" (wrong password, locked, guest instead of us), "permission" (no right to write or
    read), "space" (no room), "crowded" (no more connections), "replaced" (something else has a name
    of this run's), "usage" (a folder that does not exist ...).
    text: one plain line that names host, step and remedy; no secret.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.samples: Tuple[Sample, ...] = ()
        """Samples of the stage until then."""

    @property
    def ends_run(self) -> bool:
        """Whether nothing more may be tried: a login locks accounts, a swapped file is a trap."""
        return self.kind in ("login", "replaced")


Need = Literal["server", "share", "mount", "rate", "source"]
"""The server's address; a login at //host/share; a mounted share; what TCP carries that way; the
run's source file on the share, where it pulls."""
Peer = Literal["", "agent", "own", "share"]
"""Who answers: nobody, the other host's agent, the initiator's own, the file server."""
"""Whom an initiator calls: nobody by its peer, a port that its own agent opened, somebody else."""
LEAST_BUDGET_SECONDS, USUAL_BUDGET_SECONDS, LONG_BUDGET_SECONDS = 30.0, 60.0, 180.0
NO_ROOM = "not enough free space on the share for a file of 2 MiB"


@dataclass(frozen=True)
class Stage:
    """What others need to know of a stage; it stands at the top of its file and nowhere else.

    Beside it the file has `Setting`, a frozen dataclass of plain values whose annotations say what
    each means (probes/core/meaning.py); `respond(setting)`, a context manager that is the passive
    end until closed; and `initiate(setting, peer)`, which drives the stage and ends within its
    setting's time plus one I/O timeout. Its first sample is (0.0, 0) and opens the measured window,
    a `Last` closes it: CPU and memory of both hosts are read at those two moments, so set-up comes
    before the first and clean-up after the last. `turns(known)`, and `fitted(setting, known)` where
    a step is not settled before its turn, say what a run makes of it.
    """

    name: str
    """The word in the report and after `bottleneck probe`."""
    measures: str
    """Why a run makes it where no doubt asks for it."""
    usual_seconds: float = 0.0
    """Of all its turns, with the usual budget."""
    needs: Tuple[Need, ...] = ()
    by_agent: bool = False
    """Without an agent on the server it tells nothing, or less, of what lies between the hosts."""
    writes: bool = False
    """It writes files of its own on a disk, which a person is asked about first."""
    explains: bool = True
    """It is made after the copies, which it explains; no: where session.py makes it by itself."""
    optional: bool = False
    """Nobody misses it in a run that was asked for more: what cannot be tried is a note."""
    least_budget_seconds: float = LEAST_BUDGET_SECONDS
    """A shorter run has its time for the copies alone."""
    from_budget_seconds: float = 0.0
    """A run of less does not make it unless asked: it explains what few runs come to."""
    speaks_of: Tuple[str, ...] = ()
    """Verdicts (COMPONENT/CAUSE, or COMPONENT of any cause) that it can tell apart."""
    refines: Tuple[str, ...] = ()
    """Verdicts that name what something else may be behind, which it can find."""
    varying: Tuple[str, ...] = ()
    """Keys of its Setting that change from run to run of one step."""


@dataclass(frozen=True)
class Known:
    """What a run knows when a stage's turn comes; by it the stage chooses its settings."""

    address: str
    """The server's IP address; empty: unknown."""
    port: int
    """Where it serves SMB."""
    dialect: str
    """Of the run's own session; empty: there is none."""
    seed: str
    budget_seconds: float
    alone: bool
    """Nothing but this stage was asked for."""
    agent: bool
    """There is one on the server too."""
    connect_seconds: float
    """What a connection to the share took; 0: not known."""
    bytes_per_second: float = 0.0
    """What TCP carries that way (Need "rate")."""
    rtt_seconds: Optional[float] = None
    """The same transfer's."""
    link: str = ""
    """The standard link that it fills."""
    room_bytes: int = 0
    """That may be written to the share (Need "share")."""
    source_bytes: int = 0
    """Of the file on it (Need "source")."""

    @property
    def thorough(self) -> bool:
        """Whether there is time for what explains a copy less directly."""
        return self.alone or self.budget_seconds >= 2 * USUAL_BUDGET_SECONDS


@dataclass(frozen=True)
class Turn:
    """One step of a stage, as a run makes it."""

    label: str
    setting: Any
    usual_seconds: float
    """With the usual budget."""
    parts: float = 1.0
    """How many times as long as this turn all is that is left, where the stage is made alone."""
    timed: Tuple[str, float] = ("seconds", 1.0)
    """The setting's key that gets the turn's time, and how much of it."""
    least_seconds: float = 0.0
    """It is made in every run, and takes so long at least; 0: left out where there is no time."""
    most_seconds: float = math.inf
    initiator: str = "client"
    peer: Peer = ""
    grace_seconds: float = 30.0
    """How much longer than its time it may take in all, and a responder waits."""


@contextmanager
def no_agent(setting: Any) -> Iterator[Endpoint]:
    """respond() of a stage whose passive end is a file server, or that has none."""
    yield Endpoint()


def module_of(name: str) -> Any:
    """The module of one of the stages."""
    return importlib.import_module("probes.stages." + name.replace("-", "_"))


def described(names: Iterable[str]) -> List[Stage]:
    """The descriptions of stages, by their names."""
    return [module_of(name).STAGE for name in names]
