"""What nobody told the end of is neither told as removed nor as left."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from bottleneck.cli.cleanup import print_cleaned
from bottleneck.hosts import AgentLost, StageError
from bottleneck.leftovers import LEFT, REMOVED, UNANSWERED, Cleaned, Cleanup, Found
from bottleneck.target import parse
from probes.host.leftovers import THERE, Leftover
from probes.stage import Refused

NAME = "bottleneck-0123456789abcdef"


class Breaking:
    """A host whose agent breaks off."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def ask(self, *_: Any, **__: Any) -> Any:
        raise self.error

    hold = ask


def shown(cleaned: list[Cleaned]) -> list[str]:
    written = io.StringIO()
    print_cleaned(cleaned, Console(file=written, width=300))
    return written.getvalue().splitlines()


@pytest.mark.parametrize(
    "error",
    [StageError("did not end"), AgentLost("client: gone"), Refused("unreachable", "the nas hung")],
)
def test_after_an_error_nobody_knows_what_is_gone(error: Exception) -> None:
    host: Any = Breaking(error)
    cleanup = Cleanup((), 0.0, parse("//nas/media"), reached={"client": host})
    left = Leftover(NAME, "run", "", 1, 100, 9e4)
    chosen = [Found(where, left, NAME) for where in ("client", "share")]
    cleaned = cleanup.remove(chosen)
    assert len(cleaned) == 2
    assert all(UNANSWERED in each.why and str(error) in each.why for each in cleaned)
    for line in shown(cleaned):
        assert line.startswith("unknown")


def test_what_is_known_is_removed_or_left() -> None:
    found = Found("client", Leftover(NAME, "run", "", 1, 100, 9e4), NAME)
    removed, left = shown(
        [Cleaned(REMOVED, found), Cleaned(LEFT, found, "another client has it open")]
    )
    assert removed.startswith("removed")
    assert left.startswith("left") and left.endswith("another client has it open")


@pytest.mark.parametrize("on_it", [[NAME], []])
def test_what_was_found_on_the_share_is_not_told_of_as_left_here_too(
    monkeypatch: pytest.MonkeyPatch, on_it: list[str]
) -> None:
    """The journal names it, a mount shows it; where the share does not, both stay."""
    noted = {"path": f"//nas:445/media/{NAME}", "why_left": f"it is on a share: {THERE} //nas"}
    mounted = {"path": f"/mnt/{NAME}", "why_left": f"on another host: {THERE} //nas/media"}
    own = {"path": f"/tmp/{NAME}", "why_left": "a run uses it"}
    host: Any = SimpleNamespace(ask=lambda *_, **__: [noted, mounted, own])
    cleanup = Cleanup((), 0.0, parse("//nas/media"), reached={"client": host})
    there = [Found("share", Leftover(name, ""), f"//nas/media/{name}") for name in on_it]
    monkeypatch.setattr(cleanup, "_on_share", lambda *_: (there, []))
    here = [each["path"] for each in ([own] if on_it else [noted, mounted, own])]
    assert [each.name for each in cleanup.look()] == [*here, *(each.name for each in there)]
