"""Finds the steps of a report that speak of a copy; reads their settings and details with care."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

from bottleneck.analysis.evidence.details import Details, DiskDetails, Setting, Target
from bottleneck.report.report import Report, Step, median_run
from probes.core import lenient
from probes.core.records import DIALECTS, SIDES, Measured, Outcome, Spread, Usage, rates, run_rate

VERBS = ("pull", "push")
CACHES = ("cached", "uncached")
NATIVE = "native"
"""The dialect of copies that the operating system made: what its mount speaks is its own affair."""
OWN, SYSTEM, SMBCLIENT, RUNNING = "own", "system", "smbclient", "running"
"""Who moved the bytes: this tool, the operating system, Samba's client, somebody who was watched.
"""
OF_FILE = "file."
"""Begins the names of copies of the user's own file."""
Key = tuple[str, str, str, str]
"""A copy's name, dialect, initiator and engine."""
OURS = ("impacket",)
"""File servers that this tool itself starts in its own process."""
KEPT_RATIO = 0.9
"""Of a source in the page cache, from which on what is missing is no matter."""
T = TypeVar("T")


@dataclass(frozen=True)
class Found:
    """A step that was measured and moved something."""

    index: int
    step: Step
    outcome: Measured
    rate: Spread

    @cached_property
    def details(self) -> Details:
        """What a transfer told."""
        return lenient.record(Details, self.outcome.details)

    @cached_property
    def disk(self) -> DiskDetails:
        """What a step of the disk told."""
        return lenient.record(DiskDetails, self.outcome.details)

    @cached_property
    def setting(self) -> Setting:
        """What was to be measured."""
        return lenient.record(Setting, self.step.setting)

    @property
    def intact(self) -> bool:
        """Whether nothing shows that the bytes were altered: else their rate means nothing."""
        return self.details.hash_ok is not False

    @property
    def sender(self) -> str:
        """The side that the bytes of a step with a verb come from."""
        return sender(self.setting.verb, self.step.initiator)

    @property
    def moved_bytes(self) -> int:
        """Payload of the median run."""
        run = median_run(self.outcome)
        return run[-1].moved_bytes - run[0].moved_bytes

    @property
    def seconds(self) -> float:
        """Time of the median run."""
        run = median_run(self.outcome)
        return run[-1].elapsed_seconds - run[0].elapsed_seconds

    def usage(self, side: str) -> Usage | None:
        """What a side's host was busy with meanwhile."""
        own = self.step.initiator == side
        return self.outcome.initiator if own else self.outcome.responder


@dataclass(frozen=True)
class Copy:
    """A copy of a report: the step that made it, and its likes that leave one stage out."""

    name: str
    dialect: str
    initiator: str
    outcome: Outcome
    index: int
    step: Found | None
    """None: it was skipped, it failed or nothing moved."""
    memory: Found | None
    """The same without the initiator's disk."""
    twin: Found | None
    """Of an uncached copy the cached one: the same without the sender's disk."""
    engine: str = OWN
    """OWN, SYSTEM, SMBCLIENT, or what the step says."""
    beside: Found | None = None
    """Of the operating system's copy the fastest that this tool made of the same, over SMB."""
    setting: Setting = Setting()

    @property
    def verb(self) -> str:
        """pull or push, as seen by the initiator."""
        return verb_and_cache(self.name)[0]

    @property
    def cache(self) -> str:
        """cached or uncached, at the sender; empty: a running copy of which this is unknown."""
        return verb_and_cache(self.name)[1]

    @property
    def sender(self) -> str:
        """The side that the bytes come from."""
        return sender(self.verb, self.initiator)

    @property
    def receiver(self) -> str:
        """The side that the bytes go to."""
        return other(self.sender)

    @property
    def of_file(self) -> bool:
        """Whether its source is the user's file, and not one of this run."""
        return self.name.startswith(OF_FILE)

    @property
    def native(self) -> bool:
        """Whether the operating system made it."""
        return self.dialect == NATIVE

    @property
    def running(self) -> bool:
        """Whether it was not made for this report, but watched while it ran."""
        return self.engine == RUNNING

    @property
    def on_one_host(self) -> bool:
        """Whether it was watched between two folders of one host."""
        return self.running and self.step is not None and self.step.setting.over == "disk"

    def by_this_tool(self, side: str) -> bool:
        """Whether a side's end of the copy is this tool's own process."""
        if side == self.initiator:
            return self.engine == OWN
        return self.step is not None and self.step.details.engine_server in OURS


def target_of(report: Report) -> Target:
    """What a session told of the share and its server."""
    return lenient.record(Target, report.target)


def with_agent(report: Report, side: str = "server") -> str:
    """The option that has the other host measured too, as a shell takes it: `--agent ssh://nas`."""
    named = re.match(r"//(\[[^]]+\]|[^/:]+)", report.target.get("share") or "")
    peer = str((report.target.get("watched") or {}).get("peer_address") or side.upper())
    host = named[1] if named and side == "server" else f"[{peer}]" if ":" in peer else peer
    return f"--agent 'ssh://{host}'" if host.startswith("[") else f"--agent ssh://{host}"


def fastest(found: Iterable[Found]) -> Found | None:
    """The one with the highest rate; None: there is none."""
    return max(found, key=lambda each: each.rate.median, default=None)


def other(side: str) -> str:
    """The opposite side."""
    return SIDES[1 - SIDES.index(side)]


def sender(verb: str, initiator: str) -> str:
    """The side that sends when the initiator pushes or pulls."""
    return initiator if verb == "push" else other(initiator)


def measured(report: Report, stage: str) -> Iterator[Found]:
    """The measured steps of a stage, in the report's order, that speak of the copies' path."""
    for found in _made(report):
        # A peer of --tcp-peer may run on another host than TARGET.
        asked = found is not None and found.step.stage == stage and undisturbed(found.step)
        if found is not None and asked and found.details.peer_is_target is not False:
            yield found


def undisturbed(step: Step) -> bool:
    """Whether a transfer had the path for itself, and went as fast as that goes."""
    setting = step.setting
    return step.stage != "tcp" or not (setting.get("both_ways") or setting.get("bytes_per_second"))


def found_at(report: Report, index: int) -> Found | None:
    """The step at an index of the report; None: it was not measured, or nothing moved."""
    return _made(report)[index]


def _made(report: Report) -> tuple[Found | None, ...]:
    """Each of its steps, once: a report does not change, and every rule asks for them."""
    kept: dict[str, Any] = vars(report)
    if "_made" not in kept:
        kept["_made"] = tuple(_found(i, *entry) for i, entry in enumerate(report.entries))
    return cast("tuple[Found | None, ...]", kept["_made"])


def _found(index: int, step: Step, outcome: Outcome) -> Found | None:
    if not isinstance(outcome, Measured):
        return None
    try:
        rate = rates(outcome)
    except (ValueError, IndexError):
        return None
    return Found(index, step, outcome, rate) if rate.low > 0 else None


def _intact(report: Report, index: int | None) -> Found | None:
    """What others are measured by; None too where the bytes were altered."""
    found = None if index is None else _made(report)[index]
    return found if found is not None and found.intact else None


def far_off(made: Found) -> tuple[float, ...]:
    """Rates of the runs that its spread leaves out, bytes per second."""
    runs = (run_rate(run) for run in made.outcome.runs)
    return tuple(rate for rate in runs if not made.rate.low <= rate <= made.rate.high)


def alike_sources(first: Found, second: Found) -> bool:
    """Whether both copies' sources lay in the cache, or out of it, with the same proof."""
    return first.details.cache.proven == second.details.cache.proven


def from_ram(found: Found) -> bool:
    """Whether a cached copy's source may have lain in RAM: nothing shows that it did not."""
    told = found.details.cache
    kept = told.cached_ratio_before
    return not (told.proven is False and kept is not None and kept < KEPT_RATIO)


def security(found: Found) -> str | None:
    """plain, signed or encrypted, as a session really was; None: the step does not tell."""
    told = found.outcome.details
    if "signing" not in told or "encryption" not in told:
        return None
    return "encrypted" if told["encryption"] else "signed" if told["signing"] else "plain"


def copies(report: Report) -> tuple[Copy, ...]:
    """Every copy of the report; the operating system's own first, then the newest dialect."""
    memories: dict[Key, int] = {}
    folders: dict[Key, int] = {}
    for index, (step, _) in enumerate(report.entries):
        key = _copy_key(step)
        if key is not None:
            of = memories if step.setting.get("end") == "memory" else folders
            of.setdefault(key, index)
    found = [
        Copy(
            *key[:3],
            outcome=report.entries[index][1],
            index=index,
            step=_made(report)[index],
            memory=_intact(report, memories.get(key)),
            twin=_twin(report, folders, key),
            engine=key[3],
            beside=_beside(report, folders, key),
            setting=lenient.record(Setting, report.entries[index][0].setting),
        )
        for key, index in folders.items()
    ]
    return tuple(sorted(found, key=lambda copy: -age(copy.dialect)))


def made_copies(report: Report) -> dict[tuple[str, str, str, float], Found]:
    """The step behind each copy of a diagnosis, by its name, dialect, initiator and rate."""
    return {
        (each.name, each.dialect, each.initiator, each.step.rate.median): each.step
        for each in copies(report)
        if each.step is not None
    }


def _twin(report: Report, folders: Mapping[Key, int], key: Key) -> Found | None:
    name = key[0].replace(".uncached", ".cached")
    found = None if name == key[0] else _intact(report, folders.get((name, *key[1:])))
    return found if found is not None and from_ram(found) else None


def _beside(report: Report, folders: Mapping[Key, int], key: Key) -> Found | None:
    if key[1] != NATIVE:
        return None
    alike = (key[0], key[2], OWN)
    made = (_intact(report, at) for each, at in folders.items() if (each[0], *each[2:]) == alike)
    return fastest(each for each in made if each is not None)


def verb_and_cache(name: str) -> tuple[str, str]:
    """What the name of a copy holds: `server.pull.cached` is ("pull", "cached")."""
    verb, _, cache = name.removeprefix("server.").removeprefix(OF_FILE).partition(".")
    return verb, cache


def _copy_key(step: Step) -> Key | None:
    name, dialect = step.setting.get("copy"), step.setting.get("dialect")
    engine, initiator = word(step.setting, "engine") or OWN, step.initiator
    if step.stage == "native-copy":
        dialect, engine = NATIVE, SYSTEM
    elif step.stage == "running-copy":
        # Whoever watches, it is the client that asked for the copy.
        engine, initiator = RUNNING, "client"
    elif step.stage != "smb-copy":
        return None
    if not isinstance(name, str) or not isinstance(dialect, str):
        return None
    verb, cache = verb_and_cache(name)
    # Whether the source of a running copy is cached may be unknown.
    known = verb in VERBS and (cache in CACHES or (engine == RUNNING and not cache))
    return (name, dialect, initiator, engine) if known else None


def age(dialect: str) -> int:
    """The place of a dialect in time, the mount's last."""
    # A user with a mounted share copies through the mount.
    later = len(DIALECTS) + (dialect == NATIVE)
    return DIALECTS.index(dialect) if dialect in DIALECTS else later


def dialect_name(dialect: str) -> str:
    """A dialect as a person calls it: "SMB1", "SMB 3.1.1"."""
    return "SMB1" if dialect == "smb1" else f"SMB {dialect}"


def amount(details: Any, *path: str) -> float | None:
    """A finite number, not below zero, at a path in details; None: there is none."""
    return lenient.amount(_at(details, path))


def positive(details: Any, *path: str) -> float | None:
    """An amount that may divide; None: there is none, or it is nothing."""
    return lenient.positive(_at(details, path))


def items(details: Any, *path: str) -> tuple[dict[str, Any], ...]:
    """The objects in a list at a path in details; empty: there are none."""
    return _several(dict, details, path)


def texts(details: Any, *path: str) -> tuple[str, ...]:
    """The texts in a list at a path in details; empty: there are none."""
    return _several(str, details, path)


def word(details: Any, *path: str) -> str | None:
    """A text at a path in details; None: there is none."""
    value = _at(details, path)
    return value if isinstance(value, str) else None


def flag(details: Any, *path: str) -> bool | None:
    """A truth at a path in details; None: there is none."""
    value = _at(details, path)
    return value if isinstance(value, bool) else None


def _several(kind: type[T], details: Any, path: tuple[str, ...]) -> tuple[T, ...]:
    value = _at(details, path)
    listed = value if isinstance(value, (list, tuple)) else ()
    return tuple(each for each in listed if isinstance(each, kind))


def _at(details: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        details = details.get(key) if isinstance(details, dict) else None
    return details


def mtu_bytes(report: Report) -> int | None:
    """The smaller of both interfaces' MTU; None: no host told one."""
    told = [
        host.interface.mtu_bytes
        for host in (report.client, report.server)
        if host is not None and host.interface is not None and host.interface.mtu_bytes
    ]
    return min(told, default=None)


def on_one_host(report: Report) -> bool:
    """Whether the packets never leave the host: its interface is the loopback."""
    hosts = [host for host in (report.client, report.server) if host is not None]
    return any(host.interface is not None and host.interface.name == "lo" for host in hosts)
