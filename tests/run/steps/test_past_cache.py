"""pull.uncached without an agent: which reads count, which show nothing, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bottleneck.agents.hosts import AgentLost, PartlyRan, Result, StageError
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.execution import carried_out
from bottleneck.run.log import Repeat, Task
from bottleneck.run.steps.copies import PastCache
from bottleneck.run.steps.sources import copy_setting
from probes.core.records import Sample
from probes.core.stage import Last, Refused, Unavailable
from tests.run.steps.sessions import copies_of, order_of, session_of, update_world

MB = 10**6
SIZE = 64 * plan.MIB
WARM = 100 * MB
LABELS: dict[str, Any] = {"signing": None, "encryption": None}
USED: Any = None
Answer = float | Exception


class Server:
    """Answers each read with a rate, by what is asked for: past the cache or cached."""

    def __init__(self, **rates: Sequence[Answer]) -> None:
        self.session = session_of(dialect="3.1.1")
        self.asked: list[str] = []
        self._rates = {name: list(each) for name, each in rates.items()}

    def answer(self, task: Task) -> Result:
        what = "past" if task.setting.past_cache else "cached"
        self.asked.append(what)
        rate = self._rates[what].pop(0)
        if isinstance(rate, Exception):
            raise rate
        samples = (Sample(0.0, 0), Last(SIZE / rate, SIZE))
        cache: dict[str, Any] = {"side": "server", "requested": "uncached", "proven": False}
        return Result(samples, {"cache": cache}, ({}, {}), None)

    def read(self, dialect: str) -> tuple[Step, dict[str, Any]]:
        """The copy of a dialect, and what its details say of its source. Raises Unavailable."""
        copies, log = copies_of(order_of(self.session), dialect, **LABELS), self.session.log
        step = copies.step("pull.uncached", "folder")
        setting = copy_setting(copies.world, "pull.uncached", dialect, size_bytes=SIZE, **LABELS)
        trial = PastCache(copies, step, setting)
        sources: list[dict[str, Any]] = []

        def take(ran: Result, details: dict[str, Any]) -> None:
            sources.append({**ran.details, **details})
            log.add(step, Repeat(ran.samples, USED, None, sources[-1]))

        carried_out(trial.pull(take), self.answer)
        return step, {**sources[0]["cache"], "runs": len(sources)}

    def pull(self) -> dict[str, Any]:
        """Returns the details of the copy's source. Raises Unavailable."""
        twin = copies_of(order_of(self.session), **LABELS).step("pull.cached", "folder")
        samples = (Sample(0.0, 0), Last(SIZE / WARM, SIZE))
        self.session.log.add(twin, Repeat(samples, USED, None, {}))
        _, details = self.read("3.1.1")
        assert details["proven"] is False
        return details


def test_a_server_that_reads_past_its_cache_is_slow_each_time() -> None:
    server = Server(past=[25 * MB, 26 * MB], cached=[99 * MB])
    details = server.pull()
    assert (details["cold_source"], details["runs"]) == ("past-cache", 2)
    assert details["cached_bytes_per_second"] == pytest.approx(99 * MB)
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
    rates: dict[str, list[Answer]], why: str
) -> None:
    server = Server(**rates)
    if "agent" in rates:
        update_world(server.session, hosts={"server": object()})
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
def test_a_server_that_refuses_to_read_past_its_cache_is_told(error: Exception) -> None:
    with pytest.raises(Unavailable, match="page cache cannot be cleared over SMB"):
        Server(past=[error]).pull()


def test_a_refused_login_and_a_lost_agent_end_it() -> None:
    with pytest.raises(Refused):
        Server(past=[Refused("login", "nas: wrong password")]).pull()
    with pytest.raises(AgentLost):
        Server(past=[PartlyRan("gone", (), lost=True)]).pull()


def test_it_is_made_once_in_a_run() -> None:
    server = Server(past=[25 * MB, 26 * MB], cached=[99 * MB])
    server.pull()
    copies = copies_of(order_of(server.session), **LABELS)
    carried_out(copies.copy("pull.uncached", "folder", "again"), server.answer)
    assert server.asked == ["past", "past", "cached"]


def test_a_dialect_beside_the_shares_own_is_not_tried() -> None:
    server = Server()
    with pytest.raises(Unavailable):
        server.read("2.1")
    assert server.asked == []
