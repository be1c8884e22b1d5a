"""`bottleneck doctor [TARGET]`: what is ready here and there, and what to do about the rest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bottleneck.cli import exits, interrupts, options

if TYPE_CHECKING:
    from rich.console import Console

    from bottleneck.doctor.look import Check

SCHEMA = "copy-bottleneck/doctor/1"
LONGEST = 600
WORDS = {"ok": "ok", "costs": "warning", "missing": "missing"}
STYLES = {"costs": "yellow", "missing": "bold red"}
HEADINGS = {"client": "This host", "share": "The share", "server": "The server"}
Target = Annotated[
    str | None, typer.Argument(metavar="[TARGET]", help="As for diagnose [default: this host].")
]


def doctor(
    target: Target = None,
    *,
    login: options.Login,
    ends: options.Ends,
    format: options.TextOrJson = "text",
) -> int:
    """Check the requirements here and on TARGET; changes nothing.

    Checks programs, permissions, ports and logins, and names the tests that each problem affects.
    """
    with interrupts.defer():
        import os

        from bottleneck.agents.bootstrap import command_for
        from bottleneck.cli import documents, measuring
        from bottleneck.doctor.checks import all_checks
        from bottleneck.doctor.look import Request, look
        from bottleneck.login import target as targets

    place = None if target is None else targets.parse(target, os.path.isdir)
    if place is not None and place.path:
        place = targets.make_local(str(Path(place.path).absolute()))
    if ends.agent != "none":
        command_for(ends.agent)
    access = None
    if place is not None and (login.user or login.auth_file or login.allow_guest or place.username):
        access = measuring.log_in_as(login, place)
    request = Request(str(ends.folder.absolute()), place, access, ends.agent, ends.server_folder)
    checks = all_checks(look(request))

    if not documents.answer(format, to_json(checks), partial(print_checks, checks)):
        return exits.INCOMPLETE
    for each in checks:
        if each.kind:
            return exits.OF_REFUSAL.get(each.kind, exits.UNREACHABLE)
    return exits.INCOMPLETE if any(each.state == "missing" for each in checks) else exits.DONE


def print_checks(checks: Sequence[Check], console: Console) -> None:
    """Writes the result, then for each host its problems with remedies, and all that is well."""
    from bottleneck.documents import terminal
    from bottleneck.text.safe import safe

    terminal.line(console, summary(checks), "bold")
    for side, title in HEADINGS.items():
        group = [each for each in checks if each.where == side]
        if group:
            terminal.write_heading(console, title)
        for each in group:
            if each.state != "ok":
                _print_problem(each, console)
        for each in group:
            if each.state == "ok":
                terminal.paragraph(console, safe(each.sentence, LONGEST), "", f"  {WORDS['ok']:<9}")


def _print_problem(check: Check, console: Console) -> None:
    from bottleneck.documents import terminal
    from bottleneck.text.safe import safe

    begin = f"  {WORDS[check.state]:<9}"
    terminal.paragraph(console, safe(check.sentence, LONGEST), STYLES[check.state], begin)
    beneath = " " * len(begin)
    if not (check.remedy or check.stages):
        return
    remedy = safe(f"-> {check.remedy}", LONGEST) if check.remedy else ""
    word = "not measured" if check.state == "missing" else "affects"
    stages = f"{word}: {', '.join(check.stages)}" if check.stages else ""
    text = beneath + "; ".join(filter(None, (remedy, stages)))
    if len(text) <= console.width:
        terminal.line(console, text)
        return
    if remedy:
        # Not wrapped: it has commands to be copied.
        terminal.line(console, beneath + remedy)
    terminal.paragraph(console, stages, "", beneath)


def summary(checks: Sequence[Check]) -> str:
    """Returns the result in one line: `Partly ready: 1 requirement missing, 2 warnings`."""
    missing = sum(each.state == "missing" for each in checks)
    costs = sum(each.state == "costs" for each in checks)
    gaps = f"{missing} requirement{'s' * (missing > 1)} missing" if missing else "all tests can run"
    warnings = f", {costs} warning{'s' * (costs > 1)}" if costs else ""
    refused = any(each.kind for each in checks)
    word = "Not ready" if refused else "Partly ready" if missing else "Ready"
    return f"{word}: {gaps}{warnings}"


def to_json(checks: Sequence[Check]) -> dict[str, Any]:
    """Returns the checks as one document; stages of a check that is ok are empty."""
    return {
        "schema": SCHEMA,
        "ready": all(each.state != "missing" for each in checks),
        "checks": [
            {
                **{key: getattr(each, key) for key in ("where", "name", "state", "sentence")},
                "remedy": each.remedy or None,
                "stages": list(each.stages),
            }
            for each in checks
        ],
    }
