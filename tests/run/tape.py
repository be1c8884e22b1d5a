"""A run whose hosts are scripted: who asks for what, in which order, by a clock that they move.

The order of a run is what a report cannot show, as it gathers the runs of a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from bottleneck.agents import hosts
from bottleneck.agents.hosts import AgentLost, Observation, PartlyRan, Result
from bottleneck.login.target import parse
from bottleneck.run import plan
from bottleneck.run.execution import Session
from bottleneck.run.log import Event
from probes.core import typed
from probes.core.records import Access, Endpoint, Sample
from probes.core.stage import Refused
from probes.host.counters import Counters
from tests.analysis.conftest import host as facts_of
from tests.living import FakeClock

MB = 1e6
SHARE_FACTS = {
    "dialect": "3.1.1",
    **{"signing": "aes-gmac", "encryption": None, "connect_seconds": 4e-4},
    **{"free_bytes": 200 << 30, "total_bytes": 500 << 30},
}
MOUNT = {
    **{"path": "/mnt/media", "point": "/mnt/media", "filesystem": "cifs", "source": "//nas/media"},
    **{"options": "vers=3.1.1", "remote": True, "server": "127.0.0.1", "address": "127.0.0.1"},
    **{"share": "media", "folder": "", "dialect": "3.1.1", "signing": None, "encryption": None},
}
OF_FILE = {"cached_ratio": 0.0, "device": "sdb1"}
ASK_SECONDS, HOLD_SECONDS, START_SECONDS = 0.01, 0.1, 0.05
UNTOLD = ("seed", "run", "seconds", "most_seconds", "address", "signing", "encryption", "folder")
UNTOLD += ("flushed", "checked", "buffer_bytes", "zones", "cache", "target_folder", "name")


@dataclass
class Script:
    rates: Mapping[str, float] = field(default_factory=dict)
    """MB/s by stage, by stage and verb, or by a copy's name: the longest name that fits."""
    breaks: Callable[[str, int], Exception | None] = lambda what, number: None
    """Error that ends a started stage; number: of those that were started before it."""
    mount: Mapping[str, Any] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    clock: FakeClock = field(default_factory=FakeClock)
    lines: list[str] = field(default_factory=list)
    started: int = 0

    def rate(self, names: tuple[str, ...]) -> float:
        """Bytes per second of the first of these names that has one."""
        return MB * next((self.rates[name] for name in names if name in self.rates), 118.0)


class ScriptedHost:
    """An agent that does nothing, for as long as it would take."""

    is_remote = False

    def __init__(self, side: str, script: Script) -> None:
        self.side, self.script = side, script
        self.banner: list[str] = []
        self.unclosed: list[str] = []

    def __enter__(self) -> ScriptedHost:
        return self

    def __exit__(self, *_: object) -> None:
        self.script.lines.append(f"close {self.side}")

    def ask(self, name: str, seconds: float = 10.0, **arguments: Any) -> Any:
        self.script.clock.time += ASK_SECONDS
        folder = arguments.get("folder")
        cache = {"side": self.side, "requested": arguments.get("requested"), "proven": True}
        answers: dict[str, Any] = {
            "facts": typed.to_plain(facts_of(self.side)),
            "mount": self.script.mount if str(folder).startswith("/mnt") else None,
            "locate": f"/srv/media/{arguments.get('folder_name')}",
            "writable-folder": folder,
            "usable-bytes": 100 << 30,
            "set-cache": {**cache, "cached_ratio_before": 0.0},
            **{"readable-device": True, "samba-config": [], "smbclient": "4.17", "reach": None},
            **{"served-flush": 0.1, "served-intact": True, "served-remove": None},
            "served-resize": arguments.get("size_bytes"),
            "user-file": {"path": "/srv/film", "size_bytes": 4 << 30, **OF_FILE},
        }
        return answers[name]

    def start_ask(self, *question: Any, **arguments: Any) -> Callable[[], Any]:
        return partial(self.ask, *question, **arguments)

    def start_tell(self, do: str, **fields: Any) -> Callable[[], Any]:
        return partial(self.tell, do, **fields)

    def tell(self, do: str, **fields: Any) -> Any:
        return self._counters() if do == "counters" else None

    def watch(self, *_: Any, **__: Any) -> None:
        """Nobody is."""

    @contextmanager
    def hold(
        self, name: str, setting: Any, peer: Endpoint, seconds: float, opening_seconds: float = 15.0
    ) -> Iterator[Endpoint]:
        self.script.clock.time += HOLD_SECONDS
        self.script.lines.append(f"  hold {self.side} {name}")
        facts: dict[str, Any] = dict(SHARE_FACTS)
        facts |= {"engine_server": "samba", "local_path": "/tmp/served", "on_folder_disk": True}
        if name == "visit":
            facts["dialect"] = setting.dialect
        if hasattr(setting, "size_bytes"):
            facts |= {"size_bytes": setting.size_bytes, "seconds": 1.0}
            facts |= {"free_bytes": 200 << 30, "total_bytes": 500 << 30}
        there = {"path": "/proc/1/fd/3", "folder": f"bottleneck-{'0' * 32}"}
        yield Endpoint(host="127.0.0.1", port=4455, share="media", facts=facts, **there)

    @contextmanager
    def start_hold(self, *arguments: Any) -> Iterator[Callable[[], Endpoint]]:
        with self.hold(*arguments) as resource:
            yield lambda: resource

    @contextmanager
    def observe(self, name: str, setting: Any, seconds: float) -> Iterator[Observation]:
        yield Observation(lambda _: None)

    def initiate(
        self,
        name: str,
        setting: Any,
        peer: Endpoint,
        seconds: float,
        watch_too: ScriptedHost | None = None,
        progress: Callable[[Sample], None] | None = None,
        *_: Any,
    ) -> Result:
        """A stage at its rate, until its size is moved or its time is over."""
        script, values = self.script, typed.to_plain(setting)
        verb, copy = (str(values.get(each, "")) for each in ("verb", "copy"))
        side = str(values.get("side", ""))
        names = (copy, f"{side} {verb}", f"{name} {verb}", name)
        words = (f"{key}={values[key]}" for key in values if key not in UNTOLD and values[key])
        label = f"  start {self.side} {name} {' '.join(words)} limit={seconds:.3g}"
        script.lines.append(label)
        number, script.started = script.started, script.started + 1
        first = self._counters()
        script.clock.time += START_SECONDS
        if error := script.breaks(copy or name, number):
            raise error
        size, rate = values.get("size_bytes") or math.inf, script.rate(names)
        limit = values.get("most_seconds") or values.get("seconds") or seconds
        lasted = max(1e-3, min(limit, size / rate))
        byte_count = max(1, int(rate * lasted))
        script.clock.time += lasted
        samples = (Sample(0.0, 0), Sample(lasted / 2, byte_count // 2), Sample(lasted, byte_count))
        if progress is not None:
            progress(samples[-1])
        cache = {"side": "server", "requested": copy.rpartition(".")[2]}
        details = {**({"cache": cache} if copy else {}), **script.details.get(name, {})}
        pair = first, self._counters()
        return Result(samples, details, pair, pair if watch_too else None)

    def _counters(self) -> Any:
        return typed.to_plain(Counters(self.script.clock.now(), (), (), ()))


def play(script: Script, monkeypatch: pytest.MonkeyPatch, **keywords: Any) -> list[str]:
    """The lines of a run: what was begun, what was started for it, its end; then its report."""
    monkeypatch.setattr(hosts, "start_here", lambda: ScriptedHost("client", script))
    monkeypatch.setattr(hosts, "start_there", lambda spec: ScriptedHost("server", script))
    target = keywords.pop("target", "//127.0.0.1/media")
    options = plan.Options(parse(target, lambda path: True), folder="/tmp", **keywords)

    def watch(event: Event) -> None:
        if event.sample is None:
            moment = f"{event.elapsed_seconds:5.1f}"
            script.lines.append(f"{moment} {event.step}{event.outcome and ': '}{event.outcome}")

    clock: Any = script.clock
    session = Session(options, Access("ann", "secret"), watch, lambda report: None, clock)
    with suppress(AgentLost, Refused, PartlyRan):
        session.measure()
    report = session.report()
    for step, outcome in report.entries:
        name = step.setting.get("copy") or step.setting.get("verb") or ""
        kind = f"{type(outcome).__name__} x{len(getattr(outcome, 'runs', ()))}"
        script.lines.append(f"{step.stage} {name} {step.initiator}: {kind}; why: {step.why}")
    script.lines += [f"note: {each}" for each in report.notes] + [f"status: {report.status}"]
    return script.lines
