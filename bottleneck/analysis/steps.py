"""Finds the steps of a report that concern a copy; parses their settings and details."""

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
"""Dialect of the operating system's copies, whatever its mount speaks."""
OWN, SYSTEM, SMBCLIENT, RUNNING = "own", "system", "smbclient", "running"
"""Programs that copy: this tool, the operating system, Samba's client, one that is watched."""
OF_FILE = "file."
"""Prefix of the names of copies of the user's own file."""
Key = tuple[str, str, str, str]
"""A copy's name, dialect, initiator and engine."""
OURS = ("impacket",)
"""File servers that this tool itself starts in its own process."""
KEPT_RATIO = 0.9
"""Least share of a source in the page cache that counts as cached."""
T = TypeVar("T")


@dataclass(frozen=True)
class MeasuredStep:
    """A step that was measured and moved something."""

    index: int
    plan: Step
    outcome: Measured
    rate: Spread

    @cached_property
    def details(self) -> Details:
        return lenient.record(Details, self.outcome.details)

    @cached_property
    def disk(self) -> DiskDetails:
        return lenient.record(DiskDetails, self.outcome.details)

    @cached_property
    def setting(self) -> Setting:
        return lenient.record(Setting, self.plan.setting)

    @property
    def is_intact(self) -> bool:
        """Whether nothing shows that the bytes were altered, which would void their rate."""
        return self.details.hash_ok is not False

    @property
    def sender(self) -> str:
        """Side that the bytes of a step with a verb come from."""
        return sender(self.setting.verb, self.plan.initiator)

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
        """Returns the load of a side's host during the step; None: not measured."""
        return self.outcome.initiator if self.plan.initiator == side else self.outcome.responder


@dataclass(frozen=True)
class Copy:
    """A copy of a report: the step that made it, and similar steps that lack one stage."""

    name: str
    dialect: str
    initiator: str
    outcome: Outcome
    index: int
    step: MeasuredStep | None
    """None: it was skipped, it failed or nothing moved."""
    memory: MeasuredStep | None
    """Same copy without the initiator's disk."""
    twin: MeasuredStep | None
    """Cached copy of an uncached one: without the sender's disk."""
    engine: str = OWN
    """OWN, SYSTEM, SMBCLIENT, or the step's own word."""
    beside: MeasuredStep | None = None
    """This tool's fastest copy of the same source over SMB, for the operating system's copy."""
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
        return sender(self.verb, self.initiator)

    @property
    def receiver(self) -> str:
        return other(self.sender)

    @property
    def is_of_file(self) -> bool:
        """Whether the source is the user's file, and not one of this run."""
        return self.name.startswith(OF_FILE)

    @property
    def is_native(self) -> bool:
        """Whether the operating system made the copy."""
        return self.dialect == NATIVE

    @property
    def is_running(self) -> bool:
        """Whether the copy was not made for this report, but watched while it ran."""
        return self.engine.startswith(RUNNING) and not self.is_captured

    @property
    def is_captured(self) -> bool:
        """Whether its packets were captured, and nothing else of the copy was observed."""
        return self.step is not None and self.step.details.capture is not None

    @property
    def on_one_host(self) -> bool:
        """Whether the copy was watched between two folders of one host."""
        return self.is_running and self.step is not None and self.step.setting.over == "disk"

    def is_by_this_tool(self, side: str) -> bool:
        """Whether a side's end of the copy is this tool's own process."""
        if side == self.initiator:
            return self.engine == OWN
        return self.step is not None and self.step.details.engine_server in OURS


def target_of(report: Report) -> Target:
    """Returns the facts that a session reported of the share and its server."""
    return lenient.record(Target, report.target)


def agent_option(report: Report, side: str = "server") -> str:
    """Returns the option to measure the other host, too, for a shell: `--agent ssh://nas`."""
    match = re.match(r"//(\[[^]]+\]|[^/:]+)", report.target.get("share") or "")
    peer = str((report.target.get("watched") or {}).get("peer_address") or side.upper())
    host = match[1] if match and side == "server" else f"[{peer}]" if ":" in peer else peer
    return f"--agent 'ssh://{host}'" if host.startswith("[") else f"--agent ssh://{host}"


def fastest(candidates: Iterable[MeasuredStep]) -> MeasuredStep | None:
    """Returns the step with the highest rate; None: there is none."""
    return max(candidates, key=lambda each: each.rate.median, default=None)


def other(side: str) -> str:
    return SIDES[1 - SIDES.index(side)]


def sender(verb: str, initiator: str) -> str:
    """Returns the side that sends when the initiator pushes or pulls."""
    return initiator if verb == "push" else other(initiator)


def measured_steps(report: Report, stage: str) -> Iterator[MeasuredStep]:
    """Yields the measured steps of a stage that concern the copies' path, in order."""
    for step in _measured_steps(report):
        # A peer of --tcp-peer may run on another host than TARGET.
        is_of_stage = step is not None and step.plan.stage == stage and is_undisturbed(step.plan)
        if step is not None and is_of_stage and step.details.peer_is_target is not False:
            yield step


def is_undisturbed(step: Step) -> bool:
    """Whether a transfer had the path for itself, without a rate limit of its own."""
    setting = step.setting
    return step.stage != "tcp" or not (setting.get("both_ways") or setting.get("bytes_per_second"))


def found_at(report: Report, index: int) -> MeasuredStep | None:
    """Returns the step at an index of the report; None: not measured, or nothing moved."""
    return _measured_steps(report)[index]


def _measured_steps(report: Report) -> tuple[MeasuredStep | None, ...]:
    """Returns a report's steps, cached: a report does not change, and every rule needs them."""
    cache: dict[str, Any] = vars(report)
    if "_measured_steps" not in cache:
        cache["_measured_steps"] = tuple(
            _measured_step(i, *entry) for i, entry in enumerate(report.entries)
        )
    return cast("tuple[MeasuredStep | None, ...]", cache["_measured_steps"])


def _measured_step(index: int, step: Step, outcome: Outcome) -> MeasuredStep | None:
    if not isinstance(outcome, Measured):
        return None
    try:
        rate = rates(outcome)
    except (ValueError, IndexError):
        return None
    return MeasuredStep(index, step, outcome, rate) if rate.low > 0 else None


def _intact(report: Report, index: int | None) -> MeasuredStep | None:
    """Returns a step for comparison; None as well if its bytes were altered."""
    step = None if index is None else _measured_steps(report)[index]
    return step if step is not None and step.is_intact else None


def far_off(step: MeasuredStep) -> tuple[float, ...]:
    """Returns the rates of the runs that its spread leaves out, bytes per second."""
    runs = (run_rate(run) for run in step.outcome.runs)
    return tuple(rate for rate in runs if not step.rate.low <= rate <= step.rate.high)


def has_alike_sources(first: MeasuredStep, second: MeasuredStep) -> bool:
    """Whether both copies' sources have the same proof of their place in or out of the cache."""
    return first.details.cache.proven == second.details.cache.proven


def may_be_from_ram(step: MeasuredStep) -> bool:
    """Whether a cached copy's source may have come from RAM: nothing shows the contrary."""
    cache = step.details.cache
    cached = cache.cached_ratio_before
    return not (cache.proven is False and cached is not None and cached < KEPT_RATIO)


def security(step: MeasuredStep) -> str | None:
    """Returns a session's actual security: plain, signed or encrypted; None: not reported."""
    details = step.outcome.details
    if "signing" not in details or "encryption" not in details:
        return None
    return "encrypted" if details["encryption"] else "signed" if details["signing"] else "plain"


def copies(report: Report) -> tuple[Copy, ...]:
    """Returns every copy of the report; the operating system's first, then the newest dialect."""
    memories: dict[Key, int] = {}
    folders: dict[Key, int] = {}
    for index, (step, _) in enumerate(report.entries):
        key = _copy_key(step)
        if key is not None:
            of = memories if step.setting.get("end") == "memory" else folders
            of.setdefault(key, index)
    entries = [
        Copy(
            *key[:3],
            outcome=report.entries[index][1],
            index=index,
            step=_measured_steps(report)[index],
            memory=_intact(report, memories.get(key)),
            twin=_twin(report, folders, key),
            engine=key[3],
            beside=_own_copy_beside(report, folders, key),
            setting=lenient.record(Setting, report.entries[index][0].setting),
        )
        for key, index in folders.items()
    ]
    return tuple(sorted(entries, key=lambda copy: -age(copy.dialect)))


def made_copies(report: Report) -> dict[tuple[str, str, str, float], MeasuredStep]:
    """Returns the step behind each copy, by its name, dialect, initiator and rate."""
    return {
        (each.name, each.dialect, each.initiator, each.step.rate.median): each.step
        for each in copies(report)
        if each.step is not None
    }


def _twin(report: Report, folders: Mapping[Key, int], key: Key) -> MeasuredStep | None:
    name = key[0].replace(".uncached", ".cached")
    step = None if name == key[0] else _intact(report, folders.get((name, *key[1:])))
    return step if step is not None and may_be_from_ram(step) else None


def _own_copy_beside(report: Report, folders: Mapping[Key, int], key: Key) -> MeasuredStep | None:
    if key[1] != NATIVE:
        return None
    same = (key[0], key[2], OWN)
    indices = (index for each, index in folders.items() if (each[0], *each[2:]) == same)
    candidates = (_intact(report, index) for index in indices)
    return fastest(each for each in candidates if each is not None)


def verb_and_cache(name: str) -> tuple[str, str]:
    """Parses the name of a copy: `server.pull.cached` gives ("pull", "cached")."""
    verb, _, cache = name.removeprefix("server.").removeprefix(OF_FILE).partition(".")
    return verb, cache


def _copy_key(step: Step) -> Key | None:
    name, dialect = step.setting.get("copy"), step.setting.get("dialect")
    engine, initiator = word(step.setting, "engine") or OWN, step.initiator
    if step.stage == "native-copy":
        dialect, engine = NATIVE, SYSTEM
    elif step.stage == "running-copy":
        # The client asked for the copy, whichever host watches.
        engine, initiator = engine if engine.startswith(RUNNING) else RUNNING, "client"
    elif step.stage != "smb-copy":
        return None
    if not isinstance(name, str) or not isinstance(dialect, str):
        return None
    verb, cache = verb_and_cache(name)
    # Whether the source of a running copy is cached may be unknown.
    is_known = verb in VERBS and (cache in CACHES or (engine.startswith(RUNNING) and not cache))
    return (name, dialect, initiator, engine) if is_known else None


def age(dialect: str) -> int:
    """Returns the rank of a dialect in time, the mount's last."""
    # A user with a mounted share copies through the mount.
    later = len(DIALECTS) + (dialect == NATIVE)
    return DIALECTS.index(dialect) if dialect in DIALECTS else later


def dialect_name(dialect: str) -> str:
    """Returns a dialect's usual name: "SMB1", "SMB 3.1.1"."""
    return "SMB1" if dialect == "smb1" else f"SMB {dialect}"


def amount(details: Any, *path: str) -> float | None:
    """Returns a finite number >= 0 at a path in details; None: there is none."""
    return lenient.amount(_value_at(details, path))


def positive(details: Any, *path: str) -> float | None:
    """Returns an amount above 0; None: there is none."""
    return lenient.positive(_value_at(details, path))


def items(details: Any, *path: str) -> tuple[dict[str, Any], ...]:
    """Returns the objects in a list at a path in details; empty: there are none."""
    return _items_of_kind(dict, details, path)


def texts(details: Any, *path: str) -> tuple[str, ...]:
    """Returns the texts in a list at a path in details; empty: there are none."""
    return _items_of_kind(str, details, path)


def word(details: Any, *path: str) -> str | None:
    """Returns the text at a path in details; None: there is none."""
    value = _value_at(details, path)
    return value if isinstance(value, str) else None


def flag(details: Any, *path: str) -> bool | None:
    """Returns the bool at a path in details; None: there is none."""
    value = _value_at(details, path)
    return value if isinstance(value, bool) else None


def _items_of_kind(kind: type[T], details: Any, path: tuple[str, ...]) -> tuple[T, ...]:
    value = _value_at(details, path)
    listed = value if isinstance(value, (list, tuple)) else ()
    return tuple(each for each in listed if isinstance(each, kind))


def _value_at(details: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        details = details.get(key) if isinstance(details, dict) else None
    return details


def mtu_bytes(report: Report) -> int | None:
    """Returns the smaller of both interfaces' MTU; None: not known."""
    sizes = [
        host.interface.mtu_bytes
        for host in (report.client, report.server)
        if host is not None and host.interface is not None and host.interface.mtu_bytes
    ]
    return min(sizes, default=None)


def on_one_host(report: Report) -> bool:
    """Whether the packets never leave the host: its interface is the loopback."""
    hosts = [host for host in (report.client, report.server) if host is not None]
    return any(host.interface is not None and host.interface.name == "lo" for host in hosts)
