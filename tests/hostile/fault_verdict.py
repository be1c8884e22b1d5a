"""Promises C1 to C6 that a cell of the fault matrix may not break, each checked."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import jsonschema
from fault_world import (
    BEFORE,
    MORE_SECONDS,
    PASSWORD,
    PATIENCE_SECONDS,
    Row,
    Run,
    World,
    command_of,
    descendants,
    wait_for,
)

USAGE = 64
NOTICED_SECONDS = 60.0
"""Until a server knows of a connection that it has waited for in vain."""
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069]")


def run_faults(world: World, row: Row, run: Run, elapsed: float, out: str) -> list[str]:
    """The promises on time, exit code, document and words."""
    code, text = run.process.returncode, "".join(run.lines)
    allowed = row.at_start if world.moment == BEFORE else row.during
    late = elapsed - world.excused_seconds - world.budget_seconds - MORE_SECONDS
    checks = {
        "the run ended before the fault": not run.applied,
        f"it took {elapsed:.0f} s": late > 0,
        f"exit code {code}, not of {sorted(allowed)}": code not in allowed,
        "a traceback": "Traceback (most" in text + out,
        "the password is told": PASSWORD in text + out,
        "a control character is told": CONTROLS.search(text + out) is not None,
        f"nothing is said like {row.says}": world.moment == BEFORE
        and re.search(row.says, text + out) is None,
    }
    wrong = [what for what, true in checks.items() if true] + world.wrong
    return wrong + _document_faults(out, code)


def _document_faults(out: str, code: int) -> list[str]:
    try:
        report = json.loads(out)
    except ValueError:
        # What never came to a report has none: wrong usage.
        return [] if code == USAGE and not out else [f"stdout is no document: {out[:80]!r}"]
    shape = subprocess.run(
        [sys.executable, "-m", "bottleneck", "schema"], capture_output=True, text=True, check=True
    )
    validator = jsonschema.Draft202012Validator(json.loads(shape.stdout))
    error = next(validator.iter_errors(report), None)
    if error is not None:
        return [f"not by the schema: {error.message[:120]} at {list(error.path)}"]
    return _cap_faults(report)


def _cap_faults(report: dict[str, Any]) -> list[str]:
    """No cap for a copy that was not measured, none by a step that failed."""
    steps, wrong = report["steps"], []
    failed = {index for index, each in enumerate(steps) if each["outcome"]["kind"] == "failed"}
    measured = {
        each["setting"].get("copy") for each in steps if each["outcome"]["kind"] == "measured"
    }
    for copy in (report.get("diagnosis") or {}).get("copies", []):
        name = copy["copy"]
        is_measured = copy["bytes_per_second"] is not None
        if is_measured and name.removeprefix("server.") not in measured:
            wrong.append(f"{name} has a rate, and no step measured it")
        if copy["verdict"]["component"] != "unknown" and not is_measured:
            wrong.append(f"{name} was not measured, and {copy['verdict']['component']} is named")
        cited = {index for each in copy["ceilings"] for index in each["steps"]}
        if cited & failed:
            wrong.append(f"{name}: a limit by the failed step {sorted(cited & failed)}")
    return wrong


def leftovers(world: World, row: Row, outsiders: frozenset[int]) -> tuple[list[str], bool]:
    """The promises on processes and files; whether `cleanup` had to remove something."""
    wrong = []
    wait_for(lambda: not _others(outsiders), PATIENCE_SECONDS)
    for pid in _others(outsiders):
        wrong.append(f"a process is left: {command_of(pid)[:80]}")
        os.kill(pid, signal.SIGKILL)
    files = wait_for(lambda: not _changed(world), PATIENCE_SECONDS) or _changed(world)
    if files is True:
        return wrong, False
    if row.reason:
        # What a server still takes for open stays, until it has noticed that its client is gone.
        if wait_for(lambda: _clean_up(world) or not _changed(world), NOTICED_SECONDS):
            return wrong, True
        files = _changed(world)
    return [*wrong, f"files: {files[:3]}"], False


def _others(outsiders: frozenset[int]) -> set[int]:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return descendants(os.getpid(), outsiders)


def _changed(world: World) -> list[str]:
    now = world.files()
    names = sorted(set(now) ^ set(world.baseline))
    other = [each for each in set(now) & set(world.baseline) if now[each] != world.baseline[each]]
    return [each.replace(str(world.folder), "") for each in [*names, *sorted(other)]]


def _clean_up(world: World) -> None:
    """Runs `cleanup` as documented: same target, folder and agent, once the server is back."""
    words = [each for each in world.command() if each not in {"--json", "-", "probe"}]
    words[words.index(world.job)] = "cleanup"
    index = words.index("--budget")
    words[index : index + 2] = ["--older-than", "0", "--server-folder", str(world.share)]
    with _serve(world):
        how = {"stdin": subprocess.DEVNULL, "capture_output": True, "env": world.variables()}
        subprocess.run(words, timeout=120, check=False, **how)


@contextlib.contextmanager
def _serve(world: World) -> Iterator[None]:
    """A server where the run's was, if that is gone."""
    family = socket.AF_INET6 if ":" in world.smbd.host else socket.AF_INET
    with ExitStack() as stack, socket.socket(family) as attempt:
        if attempt.connect_ex((world.smbd.host, world.smbd.port)):
            stack.enter_context(world.served(world.smbd.port))
        yield


def summary(out: str, lines: list[str]) -> str:
    """In a few words: the report's state, its copies, and the first complaint."""
    words = []
    try:
        report = json.loads(out)
        kinds = [each["outcome"]["kind"] for each in report["steps"]]
        measured, failed = kinds.count("measured"), kinds.count("failed")
        words.append(f"{report['status']}, {measured} measured, {failed} failed")
        errors = [each["outcome"].get("error", "") for each in report["steps"]]
        words += [each for each in errors if each][:1]
    except (ValueError, KeyError, TypeError):
        words.append("no report")
    words += [each.strip() for each in lines if each.startswith("bottleneck: ")][:1]
    return "; ".join(words)[:200]
