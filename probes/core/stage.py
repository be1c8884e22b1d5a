"""Definition of a stage: a module that describes itself, with a setting, two ends and turns."""

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
"""Running stage: yields samples, returns its details."""


def requested_cache(copy: str) -> str:
    """Returns the state of the sender's file that a copy asks for: "cached" or "uncached"."""
    return copy.rpartition(".")[2]


@dataclass
class Window:
    """Measured part of a copy and its progress; its moments are by time.monotonic()."""

    opened: float = 0.0
    """Moment of its opening; 0: not yet open."""
    acknowledged: float = 0.0
    """Moment at which the receiver had the last byte."""
    closed: float = 0.0
    """Moment at which everything was durable."""
    moved_bytes: int = 0

    @property
    def seconds(self) -> float:
        """Seconds from the opening to the closing, above 0."""
        return max(self.closed - self.opened, 1e-9)

    def close(self, now: float, moved_bytes: int) -> Last:
        """Closes the window and returns its last sample."""
        self.closed = now
        return Last(self.closed - self.opened, moved_bytes)

    def flush_details(self, moved_bytes: int) -> Details:
        """Returns the rate until the last byte was acknowledged, and the seconds after that."""
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
        """Samples of the stage until the refusal."""

    @property
    def ends_run(self) -> bool:
        """Whether nothing more may be tried: a login locks accounts, a swapped file is a trap."""
        return self.kind in ("login", "replaced")


Need = Literal["server", "share", "mount", "rate", "source"]
"""The server's address; a login at //host/share; a mounted share; the measured TCP rate that way;
the run's source file on the share, where it pulls."""
Peer = Literal["", "agent", "own", "share"]
"""Responder: nobody, the other host's agent, the initiator's own agent (a port that it opened), the
file server."""
LEAST_BUDGET_SECONDS, USUAL_BUDGET_SECONDS, LONG_BUDGET_SECONDS = 30.0, 60.0, 180.0
NO_ROOM = "not enough free space on the share for a file of 2 MiB"


@dataclass(frozen=True)
class Stage:
    """Description of a stage; it stands at the top of its file and nowhere else.

    Beside it the file has `Setting`, a frozen dataclass of plain values whose annotations say what
    each means (probes/core/field_types.py); `respond(setting)`, a context manager that is the
    passive end until closed; and `initiate(setting, peer)`, which drives the stage and ends within
    its setting's time plus one I/O timeout. Its first sample is (0.0, 0) and opens the measured
    window, a `Last` closes it: CPU and memory of both hosts are read at those two moments, so
    set-up comes before the first and clean-up after the last. `turns(known)` returns its steps in a
    run, and `fit_setting(setting, facts)` the setting of a step that is settled only at its turn.
    """

    name: str
    """Name in the report and after `bottleneck probe`."""
    measures: str
    """Reason for which a run makes it where no doubt asks for it."""
    usual_seconds: float = 0.0
    """Seconds of all its turns, with the usual budget."""
    needs: Tuple[Need, ...] = ()
    by_agent: bool = False
    """Whether it needs an agent on the server to show anything, or more, of the path between."""
    writes: bool = False
    """Whether it writes files of its own on a disk; a person is asked about that first."""
    explains: bool = True
    """Whether it comes after the copies, to explain them; False: session.py makes it by itself."""
    optional: bool = False
    """Whether a run of several stages merely notes it where it cannot be tried."""
    least_budget_seconds: float = LEAST_BUDGET_SECONDS
    """Budget below which a run uses all its time for the copies."""
    from_budget_seconds: float = 0.0
    """Budget below which a run omits it unless asked: it explains rare causes."""
    speaks_of: Tuple[str, ...] = ()
    """Verdicts (COMPONENT/CAUSE, or COMPONENT of any cause) that it can tell apart."""
    refines: Tuple[str, ...] = ()
    """Verdicts behind which it can find a further cause."""
    varying: Tuple[str, ...] = ()
    """Keys of its Setting that change from run to run of one step."""


@dataclass(frozen=True)
class RunFacts:
    """Facts of a run when a stage's turn comes; the stage chooses its settings by them."""

    address: str
    """The server's IP address; empty: unknown."""
    port: int
    """The server's port of SMB."""
    dialect: str
    """SMB dialect of the run's own session; empty: there is no session."""
    seed: str
    budget_seconds: float
    is_only: bool
    """Whether the run makes nothing but this stage."""
    agent: bool
    """Whether there is an agent on the server too."""
    connect_seconds: float
    """Time that a connection to the share took; 0: not known."""
    bytes_per_second: float = 0.0
    """TCP rate that way (Need "rate")."""
    rtt_seconds: Optional[float] = None
    """RTT of the same transfer."""
    link: str = ""
    """Standard link whose rate that transfer reaches."""
    room_bytes: int = 0
    """Bytes that may be written to the share (Need "share")."""
    source_bytes: int = 0
    """Size of the source file on the share (Need "source")."""

    @property
    def thorough(self) -> bool:
        """Whether there is time for steps that explain a copy less directly."""
        return self.is_only or self.budget_seconds >= 2 * USUAL_BUDGET_SECONDS


@dataclass(frozen=True)
class Turn:
    """One step of a stage, as a run makes it."""

    label: str
    setting: Any
    usual_seconds: float
    """Seconds with the usual budget."""
    parts: float = 1.0
    """Time of this and all later turns over this turn's, where only this stage is made."""
    timed: Tuple[str, float] = ("seconds", 1.0)
    """Key of the setting that gets the turn's time, and the share of it."""
    least_seconds: float = 0.0
    """Least time of a turn that every run makes; 0: omitted where there is no time."""
    most_seconds: float = math.inf
    initiator: str = "client"
    peer: Peer = ""
    grace_seconds: float = 30.0
    """Time beyond its own that the turn may take in all, and that a responder waits."""


@contextmanager
def no_agent(setting: Any) -> Iterator[Endpoint]:
    """Serves as respond() of a stage whose passive end is a file server, or that has none."""
    yield Endpoint()


def module_of(name: str) -> Any:
    """Returns the module of a stage."""
    return importlib.import_module("probes.stages." + name.replace("-", "_"))


def stages_of(names: Iterable[str]) -> List[Stage]:
    """Returns the descriptions of stages, by their names."""
    return [module_of(name).STAGE for name in names]
