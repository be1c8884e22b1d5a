"""What was seen of both hosts and of the share, and what it means for a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from bottleneck.target import Target
from probes.host.facts import Place, Readiness
from probes.records import Access, Details

OK, COSTS, MISSING = "ok", "costs", "missing"
"""All is well; a run knows less without it; a stage cannot be measured without it."""
STATES = (OK, COSTS, MISSING)
CLIENT, SERVER, SHARE = "client", "server", "share"


@dataclass(frozen=True)
class Wanted:
    """What the run would be."""

    folder: str
    target: Target | None = None
    """None: this host alone."""
    access: Access | None = None
    """Who would log in; None: no login is tried."""
    agent: str = "none"
    server_folder: str | None = None


@dataclass(frozen=True)
class Trouble:
    """Why something was not reached."""

    kind: str
    """One of probes.stage.Refused's."""
    text: str


@dataclass(frozen=True)
class Program:
    """This program and what it runs on."""

    version: str
    python: str
    packages: dict[str, str]
    """Versions of smbprotocol, impacket ... where installed."""
    terminal: bool
    encoding: str
    """Of stdout."""


@dataclass(frozen=True)
class Looked:
    """All that was seen; None: not asked, or not reached."""

    wanted: Wanted
    program: Program
    client: Readiness
    mount: Place | None = None
    """TARGET where it is a folder."""
    offered: Details | None = None
    """probes.smb.offered.offered() of the file server."""
    share_trouble: Trouble | None = None
    session: Details | None = None
    """What was agreed in the one login."""
    login_trouble: Trouble | None = None
    server: Readiness | None = None
    agent_trouble: Trouble | None = None
    installed: bool | None = None
    """Whether this product answers at the server, where it was asked for."""
    ahead_seconds: float = 0.0
    """How far the server's clock is ahead of this host's, at least; below zero: behind."""
    there: str | None = None
    """Why a port that the server's agent opens is not reached from here; empty: it is; None: that
    was not found out."""
    here: str | None = None
    """The same of a port here, from the server."""


@dataclass(frozen=True)
class Check:
    """One line of the result."""

    where: str
    """CLIENT, SERVER or SHARE."""
    name: str
    state: str
    """One of STATES."""
    sentence: str
    remedy: str = ""
    stages: tuple[str, ...] = field(default=())
    """What is not measured without it, or knows less."""
    kind: str = ""
    """Of a refusal, where that is what it was."""
