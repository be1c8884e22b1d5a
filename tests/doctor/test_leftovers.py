"""A removal without an answer counts neither as removed nor as left."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from bottleneck.agents.hosts import AgentLost, StageError
from bottleneck.cli.cleanup import print_cleaned
from bottleneck.doctor.leftovers import (
    LEFT,
    REMOVED,
    UNANSWERED,
    Cleanup,
    FoundLeftover,
    RemovalResult,
)
from bottleneck.login.target import parse
from probes.core.stage import Refused
from probes.files.leftovers import THERE, Leftover

NAME = "bottleneck-0123456789abcdef"


class Breaking:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def ask(self, *_: Any, **__: Any) -> Any:
        raise self.error

    hold = ask


def lines_of(cleaned: list[RemovalResult]) -> list[str]:
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
    leftover = Leftover(NAME, "run", "", 1, 100, 9e4)
    matches = [FoundLeftover(where, leftover, NAME) for where in ("client", "share")]
    cleaned = cleanup.remove(matches)
    assert len(cleaned) == 2
    assert all(UNANSWERED in each.why and str(error) in each.why for each in cleaned)
    for line in lines_of(cleaned):
        assert line.startswith("unknown")


def test_what_is_known_is_removed_or_left() -> None:
    match = FoundLeftover("client", Leftover(NAME, "run", "", 1, 100, 9e4), NAME)
    removed, remaining = lines_of(
        [RemovalResult(REMOVED, match), RemovalResult(LEFT, match, "another client has it open")]
    )
    assert removed.startswith("removed")
    assert remaining.startswith("left") and remaining.endswith("another client has it open")


NOTES = {
    "//nas/media": ("//nas/media", "//nas:445/media"),
    "//nas:1445/media": ("//nas:1445/media",),
    "//nas/media/a/b": ("//nas/media/a/b", "//nas:445/media/a/b"),
    "//fe80::1/media": ("//[fe80::1]/media", "//fe80::1:445/media"),
}


@pytest.mark.parametrize("target", NOTES)
def test_no_note_tells_to_run_the_command_that_runs(
    monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """The share itself was searched: what a journal or a mount has to say of it is old."""
    others = ["//nas/other", "//other/media", "//nas/media/below", "//nas:446/media"]
    notes = [
        {"path": f"{place}/{NAME}", "why_left": f"it is on a share: {THERE} {place}"}
        for place in (*NOTES[target], *others)
    ]
    host: Any = SimpleNamespace(ask=lambda *_, **__: notes)
    peer = parse(target.replace("fe80::1", "[fe80::1]"))
    cleanup = Cleanup((), 0.0, peer, reached={"client": host})
    monkeypatch.setattr(cleanup, "_on_share", lambda *_: ([], []))
    assert [each.name for each in cleanup.look()] == [f"{place}/{NAME}" for place in others]


@pytest.mark.parametrize("on_it", [[NAME], []])
def test_what_was_found_on_the_share_is_not_told_of_as_left_here_too(
    monkeypatch: pytest.MonkeyPatch, on_it: list[str]
) -> None:
    """By another name of the server, too; where the share does not have it, that stays."""
    noted = {
        "path": f"//n:445/media/{NAME}",
        "why_left": f"it is on a share: {THERE} //n:445/media",
    }
    mounted = {"path": f"/mnt/{NAME}", "why_left": f"on another host: {THERE} //192.0.2.1/media"}
    local = {"path": f"/tmp/{NAME}", "why_left": "a run uses it"}
    host: Any = SimpleNamespace(ask=lambda *_, **__: [noted, mounted, local])
    cleanup = Cleanup((), 0.0, parse("//nas/media"), reached={"client": host})
    there = [FoundLeftover("share", Leftover(name, ""), f"//nas/media/{name}") for name in on_it]
    monkeypatch.setattr(cleanup, "_on_share", lambda *_: (there, []))
    here = [each["path"] for each in ([local] if on_it else [noted, mounted, local])]
    assert [each.name for each in cleanup.look()] == [*here, *(each.name for each in there)]
