"""`bottleneck demo`: a planted limit, and whether the diagnosis names it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bottleneck.cli import completion, exits, interrupts, options, streams

if TYPE_CHECKING:
    from pathlib import Path

    from bottleneck.analysis.finding import Diagnosis, Words
    from bottleneck.run.demo.plants import Plant

DEFAULT_SECONDS = 25.0
SURE_RATIO = 0.9
"""Least confidence of a verdict that proves the point."""
NAMES = ("link", "disk", "window", "cpu")
WORKED = "The demo worked."
UNSURE = "The limit was found, but not proven: repeat the demo while this host is idle."
FAILED = "The demo failed: repeat it while this host is idle."


@dataclass(frozen=True)
class DemoTime(options.Time):
    """Time limit of the demo."""

    budget: float | None = options.value(
        "SECONDS", f"Time limit for the whole run [default: {DEFAULT_SECONDS:.0f}]."
    )


@dataclass(frozen=True)
class PlantedLimit:
    """Limit that the diagnosis is to find."""

    plant: str | None = options.value(
        "|".join(NAMES),
        "Limit to plant between two network namespaces [default: link, a link of 1 Gbit/s].",
        complete=completion.one_of(*NAMES),
    )


SMB1_TOO = ["server min protocol = NT1"]


def demo(
    planted: PlantedLimit,
    copies: options.Copies,
    limit: DemoTime,
    outputs: options.Documents,
    screen: options.Screen,
) -> int:
    """Diagnose a private share with a known limit, and compare.

    Makes two network namespaces with that limit between them, and removes all at the end.
    """
    with interrupts.defer():
        import secrets

        from bottleneck.cli import documents, measuring
        from bottleneck.run.demo import hosts
        from probes.core.records import Access
        from probes.files import unnamed_file
        from probes.programs.samba import private_samba, vanishing_folder

    begun = time.monotonic()
    output = replace(documents.output(documents.add_report(outputs), screen), keeps=True)
    seconds = measuring.budget_seconds(limit, DEFAULT_SECONDS)
    plant = _choose_plant(planted.plant)
    password = secrets.token_urlsafe(16)
    copies = copies if plant is None else replace(copies, size=copies.size or plant.size)
    last = contextlib.ExitStack()

    def measure(target: str, agent: str, user: str, client_folder: Path, shared: Path) -> int:
        ends = options.Ends(agent, client_folder, str(shared))
        # Removing the hosts takes about as long as making them, within the demo's time.
        rest = max(measuring.LEAST_BUDGET_SECONDS, seconds - 2 * (time.monotonic() - begun))
        setup = replace(measuring.choose(target, rest, ends, copies), server_outlives_run=False)
        judge = None if plant is None else _comparison(plant, last)
        # On loopback both ends share the cores: that no limit stands out is no failure there.
        return measuring.run(setup, Access(user, password), output, plant is None, judge)

    # Not in /tmp: where that is memory there would be no disk to measure.
    name = f"bottleneck-demo-{os.getpid()}-"
    with last, vanishing_folder(name, unnamed_file.on_disk()) as (scratch, _):
        shared, client_folder = scratch / "server", scratch / "client"
        for each in (shared, client_folder):
            each.mkdir()
        if plant is not None:
            with hosts.two(plant, shared, password) as server:
                _tell(f"Test setup: two network namespaces; {plant.words}.")
                return measure(*server, client_folder, shared)
        with private_samba(shared, password=password, options=SMB1_TOO) as samba:
            target = f"//{samba.host}:{samba.port}/{samba.share}"
            return measure(target, "exec:", samba.username, client_folder, shared)


def _choose_plant(name: str | None) -> Plant | None:
    """Returns what to plant; None: nothing, as nobody chose and this host allows none.

    Errors: Unavailable: this host does not allow the chosen plant.
    """
    from bottleneck.run.demo import hosts
    from bottleneck.run.demo.plants import PLANTS, trouble
    from probes.core.stage import Unavailable

    plant = PLANTS[completion.checked_word("--plant:", name or NAMES[0], NAMES)]
    without = hosts.trouble()
    if not without and not trouble(plant):
        return plant
    if name is None:
        _tell(f"No network namespaces on this host ({without}): loopback, and nothing planted.")
        return None
    reason = f"no network namespaces on this host ({without})" if without else trouble(plant)
    others = [each for each in NAMES if not without and not trouble(PLANTS[each])]
    remedy = f"use one of {', '.join(others)}" if others else "leave --plant out for loopback"
    raise Unavailable(f"--plant {name}: {reason}; {remedy}")


def _comparison(plant: Plant, last: contextlib.ExitStack) -> Callable[[Diagnosis], int]:
    """Returns a function that compares a diagnosis with the plant, and gives the exit code.

    last: prints the result when all is removed.
    """

    def compare(diagnosis: Diagnosis) -> int:
        verdict = None if diagnosis.main_copy is None else diagnosis.main_copy.verdict
        answer, end = "nothing", FAILED
        if verdict is not None:
            answer = f"{_cause_text(verdict)}, confidence {verdict.confidence:.2f}"
            if verdict.key == plant.expected.key:
                end = WORKED if verdict.confidence >= SURE_RATIO else UNSURE
        last.callback(_tell, f"Expected: {_cause_text(plant.expected)}. Found: {answer}. {end}")
        return exits.DONE if end == WORKED else exits.INCOMPLETE

    return compare


def _cause_text(words: Words) -> str:
    """Returns `network (link speed)`, `server disk (read)`."""
    from bottleneck.analysis.rules.registry import BY_WORDS

    cause = BY_WORDS.get((words.component, words.cause))
    name = words.component if words.component in ("disk", "network") else words.component.upper()
    if cause is None:
        return f"no bottleneck ({words.cause})"
    place = "" if words.side in (None, "path") else f"{words.side} "
    return f"{place}{name} ({cause.label})"


def _tell(text: str) -> None:
    """Prints a line on stderr."""
    with contextlib.suppress(OSError):
        print(streams.wrapped_text(text), file=sys.stderr, flush=True)
