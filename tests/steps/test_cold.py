"""pull.uncached without an agent: which source counts, which shows nothing, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bottleneck import plan
from bottleneck.hosts import AgentLost, PartlyRan, Ran, StageError
from bottleneck.ledger import Repeat
from bottleneck.steps import cold, copies, files
from probes.records import Measured, Sample
from probes.stage import Last, Refused, Unavailable
from tests.steps.benches import bench_of

MB = 10**6
SIZE = 64 * plan.MIB
WARM = 100 * MB
LABELS: dict[str, Any] = {"signing": None, "encryption": None}
USED: Any = None
Answer = float | Exception


class Server:
    """Answers each read with a rate, by what is asked for: own, idle or cached."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **rates: Sequence[Answer]) -> None:
        self.bench = bench_of(dialect="3.1.1")
        self.asked: list[str] = []
        self._rates = {name: list(each) for name, each in rates.items()}
        monkeypatch.setattr(self.bench, "run", self.run)
        monkeypatch.setattr(self.bench, "take", self.take)

    def run(self, step: Any, setting: Any, peer: Any, seconds: float) -> Ran:
        what = "idle" if setting.cold_from else "own" if setting.past_cache else "cached"
        self.asked.append(what)
        rate = self._rates[what].pop(0)
        if isinstance(rate, Exception):
            raise rate
        samples = (Sample(0.0, 0), Last(SIZE / rate, SIZE))
        cache: dict[str, Any] = {"side": "server", "requested": "uncached", "proven": False}
        if what == "idle":
            cache |= {"files": 3, "idle_seconds": 86400.0 * 400}
        return Ran(samples, {"cache": cache}, ({}, {}), None)

    def take(self, step: Any, ran: Ran, details: Any = None) -> None:
        known = {**ran.details, **(details or {})}
        self.bench.ledger.add(step, Repeat(ran.samples, USED, None, known))

    def pull(self, cold_from: str = "") -> dict[str, Any]:
        """What the details of the copy say of its source. Raises Unavailable."""
        bench = self.bench
        bench.options = replace(bench.options, cold_from=cold_from)
        twin = copies._step(bench, "3.1.1", "pull.cached", "folder", LABELS)
        samples = (Sample(0.0, 0), Last(SIZE / WARM, SIZE))
        bench.ledger.add(twin, Repeat(samples, USED, None, {}))
        step = copies._step(bench, "3.1.1", "pull.uncached", "folder", LABELS)
        more = {"end": "folder", "size_bytes": SIZE, **LABELS}
        setting = files.copy_setting(bench, "pull.uncached", "3.1.1", **more)
        cold.pull(bench, step, setting)
        (outcome,) = (made for each, made in bench.ledger.entries() if each == step)
        assert isinstance(outcome, Measured)
        assert outcome.details["cache"]["proven"] is False
        return {**outcome.details["cache"], "runs": len(outcome.runs)}


def test_a_server_that_reads_past_its_cache_is_slow_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server(monkeypatch, own=[25 * MB, 26 * MB], cached=[99 * MB])
    found = server.pull("archive")
    assert (found["cold_source"], found["runs"]) == ("past-cache", 2)
    assert found["cached_bytes_per_second"] == pytest.approx(99 * MB)
    assert server.asked == ["own", "own", "cached"]


def test_a_file_that_the_server_had_dropped_is_slow_once(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, own=[25 * MB, 98 * MB], cached=[99 * MB])
    found = server.pull()
    assert (found["cold_source"], found["runs"]) == ("dropped", 1)


def test_old_files_come_after_what_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, own=[97 * MB], idle=[25 * MB], cached=[99 * MB])
    found = server.pull("archive")
    assert (found["cold_source"], found["files"]) == ("idle-files", 3)
    assert found["idle_seconds"] == pytest.approx(400 * 86400)
    assert server.asked == ["own", "idle", "cached"]


@pytest.mark.parametrize(
    ("cold_from", "rates", "why"),
    [
        (
            "",
            {"own": [95 * MB]},
            "the test file was read at 95.0 MB/s, a cached file at 100 MB/s: disk",
        ),
        ("a", {"own": [95 * MB], "idle": [96 * MB]}, "3 files of --cold-from were read at 96.0 MB"),
        # What was slow once or twice by chance: the cached copy is by now as slow.
        ("", {"own": [45 * MB, 48 * MB], "cached": [47 * MB]}, "look the same"),
        ("a", {"own": [95 * MB], "idle": [50 * MB], "cached": [55 * MB]}, "look the same"),
        # Slow once, but not so slow that one read alone shows it.
        ("", {"own": [45 * MB, 85 * MB]}, "look the same"),
        # Slower by what a busy host takes now and then.
        ("", {"own": [70 * MB]}, "look the same"),
    ],
)
def test_what_is_no_slower_than_a_cached_file_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, cold_from: str, rates: dict[str, list[Answer]], why: str
) -> None:
    server = Server(monkeypatch, **rates)
    with pytest.raises(Unavailable, match=why):
        server.pull(cold_from)
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
def test_a_server_that_refuses_to_read_past_its_cache_leaves_the_old_files(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    rates: dict[str, list[Answer]] = {"own": [error], "idle": [25 * MB], "cached": [99 * MB]}
    assert Server(monkeypatch, **rates).pull("a")["cold_source"] == "idle-files"
    with pytest.raises(Unavailable, match="page cache cannot be cleared over SMB"):
        Server(monkeypatch, own=[error]).pull()


def test_a_refused_login_and_a_lost_agent_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused):
        Server(monkeypatch, own=[Refused("login", "nas: wrong password")]).pull("a")
    with pytest.raises(AgentLost):
        Server(monkeypatch, own=[PartlyRan("gone", (), lost=True)]).pull("a")


def test_each_file_is_read_once_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, own=[25 * MB, 26 * MB], cached=[99 * MB])
    server.pull()
    copies._copy(server.bench, "3.1.1", LABELS, "pull.uncached", "folder")
    assert server.asked == ["own", "own", "cached"]


def test_a_dialect_beside_the_shares_own_reads_no_old_file(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch)
    bench = server.bench
    step = copies._step(bench, "2.1", "pull.uncached", "folder", LABELS)
    setting = files.copy_setting(bench, "pull.uncached", "2.1", size_bytes=SIZE, **LABELS)
    with pytest.raises(Unavailable):
        cold.pull(bench, step, setting)
    assert server.asked == []
