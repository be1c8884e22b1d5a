"""The first small copy of a run, by which the sizes of the others are chosen."""

from __future__ import annotations

from typing import Any

import pytest

from bottleneck import plan
from bottleneck.bench import Bench
from bottleneck.hosts import AgentLost, PartlyRan, StageError
from bottleneck.steps import copies
from bottleneck.target import parse
from probes.records import Access, Endpoint
from probes.stage import Refused, Unavailable


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets each run of a step end with an error; how often one was tried."""

    def go(error: Exception) -> tuple[int, Exception | None]:
        options = plan.Options(target=parse("//nas/media"), folder="/tmp")
        bench = Bench(options, Access("anna", "p"), lambda event: None, lambda report: None)
        bench.share = Endpoint(facts={"dialect": "3.1.1"})
        runs = []

        def run(*arguments: Any, **more: Any) -> None:
            runs.append(arguments)
            raise error

        monkeypatch.setattr(bench, "run", run)
        try:
            copies._calibrate(bench, "3.1.1")
        except (Refused, AgentLost) as ended:
            return len(runs), ended
        return len(runs), None

    return go


def test_a_login_that_is_refused_is_not_tried_again(tried: Any) -> None:
    """Each further try would be one more wrong login: accounts lock."""
    runs, ended = tried(Refused("login", "nas: wrong password"))
    assert runs == 1
    assert isinstance(ended, Refused) and ended.kind == "login"


def test_an_agent_that_is_gone_ends_the_run(tried: Any) -> None:
    assert isinstance(tried(PartlyRan("gone", (), lost=True))[1], AgentLost)


@pytest.mark.parametrize(
    "error",
    [
        StageError("broke"),
        Unavailable("cannot"),
        Refused("space", "full"),
        PartlyRan("broke", (), lost=False),
    ],
)
def test_what_the_copy_itself_will_say_is_left_to_it(tried: Any, error: Exception) -> None:
    assert tried(error) == (1, None)
