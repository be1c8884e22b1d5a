"""pull.uncached without an agent: which reads count, which show nothing, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from bottleneck.agents.hosts import AgentLost, PartlyRan, Ran, StageError
from bottleneck.run import plan
from bottleneck.run.log import Repeat
from bottleneck.run.steps import copies, files, past_cache
from probes.core.records import Measured, Sample
from probes.core.stage import Last, Refused, Unavailable
from tests.run.steps.benches import bench_of, knowing

MB = 10**6
SIZE = 64 * plan.MIB
WARM = 100 * MB
LABELS: dict[str, Any] = {"signing": None, "encryption": None}
USED: Any = None
Answer = float | Exception


class Server:
    """Answers each read with a rate, by what is asked for: past the cache or cached."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **rates: Sequence[Answer]) -> None:
        self.bench = bench_of(dialect="3.1.1")
        self.asked: list[str] = []
        self._rates = {name: list(each) for name, each in rates.items()}
        monkeypatch.setattr(self.bench, "run", self.run)
        monkeypatch.setattr(self.bench, "_take", self.take)

    def run(self, step: Any, setting: Any, peer: Any, seconds: float) -> Ran:
        what = "past" if setting.past_cache else "cached"
        self.asked.append(what)
        rate = self._rates[what].pop(0)
        if isinstance(rate, Exception):
            raise rate
        samples = (Sample(0.0, 0), Last(SIZE / rate, SIZE))
        cache: dict[str, Any] = {"side": "server", "requested": "uncached", "proven": False}
        return Ran(samples, {"cache": cache}, ({}, {}), None)

    def take(self, step: Any, why: str, ran: Ran, details: Any = None) -> None:
        known = {**ran.details, **(details or {})}
        self.bench.log.add(step, Repeat(ran.samples, USED, None, known))

    def pull(self) -> dict[str, Any]:
        """What the details of the copy say of its source. Raises Unavailable."""
        bench = self.bench
        twin = copies._step(bench, "3.1.1", "pull.cached", "folder", LABELS)
        samples = (Sample(0.0, 0), Last(SIZE / WARM, SIZE))
        bench.log.add(twin, Repeat(samples, USED, None, {}))
        step = copies._step(bench, "3.1.1", "pull.uncached", "folder", LABELS)
        more = {"end": "folder", "size_bytes": SIZE, **LABELS}
        setting = files.copy_setting(bench, "pull.uncached", "3.1.1", **more)
        past_cache.pull(bench, step, setting, partial(self.take, step, ""))
        (outcome,) = (made for each, made in bench.log.entries() if each == step)
        assert isinstance(outcome, Measured)
        assert outcome.details["cache"]["proven"] is False
        return {**outcome.details["cache"], "runs": len(outcome.runs)}


def test_a_server_that_reads_past_its_cache_is_slow_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server(monkeypatch, past=[25 * MB, 26 * MB], cached=[99 * MB])
    found = server.pull()
    assert (found["cold_source"], found["runs"]) == ("past-cache", 2)
    assert found["cached_bytes_per_second"] == pytest.approx(99 * MB)
    assert server.asked == ["past", "past", "cached"]


@pytest.mark.parametrize(
    ("rates", "why"),
    [
        (
            {"past": [95 * MB]},
            "the test file was read at 95.0 MB/s, a cached file at 100 MB/s: too alike",
        ),
        # What was slow twice by chance: the cached copy is by now as slow.
        ({"past": [45 * MB, 48 * MB], "cached": [47 * MB]}, "read at 48.0 .* at 47.0 MB/s"),
        # Slow once: dropped by then, or by chance.
        ({"past": [25 * MB, 98 * MB]}, "read at 98.0 MB/s, a cached file at 100 MB/s"),
        # Slower by what a busy host takes now and then.
        ({"past": [70 * MB]}, r"too alike .* \(use --agent, or --file"),
        ({"past": [70 * MB], "agent": []}, r"too alike .* \(use --server-folder DIR: "),
    ],
)
def test_what_is_no_slower_than_a_cached_file_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, rates: dict[str, list[Answer]], why: str
) -> None:
    server = Server(monkeypatch, **rates)
    if "agent" in rates:
        knowing(server.bench, hosts={"server": object()})
    with pytest.raises(Unavailable, match=why):
        server.pull()
    assert not any(server._rates.values())


@pytest.mark.parametrize(
    "error",
    [
        StageError("broke"),
        Unavailable("cannot"),
        Refused("unreachable", "nas: STATUS_INVALID_PARAMETER"),
        PartlyRan("broke", (), lost=False),
    ],
)
def test_a_server_that_refuses_to_read_past_its_cache_is_told(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    with pytest.raises(Unavailable, match="page cache cannot be cleared over SMB"):
        Server(monkeypatch, past=[error]).pull()


def test_a_refused_login_and_a_lost_agent_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused):
        Server(monkeypatch, past=[Refused("login", "nas: wrong password")]).pull()
    with pytest.raises(AgentLost):
        Server(monkeypatch, past=[PartlyRan("gone", (), lost=True)]).pull()


def test_it_is_made_once_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, past=[25 * MB, 26 * MB], cached=[99 * MB])
    server.pull()
    copies._copy(server.bench, "3.1.1", LABELS, "pull.uncached", "folder", "again")
    assert server.asked == ["past", "past", "cached"]


def test_a_dialect_beside_the_shares_own_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch)
    bench = server.bench
    step = copies._step(bench, "2.1", "pull.uncached", "folder", LABELS)
    setting = files.copy_setting(bench, "pull.uncached", "2.1", size_bytes=SIZE, **LABELS)
    with pytest.raises(Unavailable):
        past_cache.pull(bench, step, setting, partial(server.take, step, ""))
    assert server.asked == []
