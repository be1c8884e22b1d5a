"""A foreign name: made safe to show, taken for a target or an agent, and through a document."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sinks

from bottleneck.agents import bootstrap
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import Diagnosis
from bottleneck.records.redaction import Redaction
from bottleneck.report import report
from bottleneck.report.report import Report, ReportError
from bottleneck.target import target as targets
from bottleneck.text.safe import LONGEST, safe
from probes.core.stage import Refused

REPORT = Path(__file__).parents[1] / "data" / "report-v1-strange.json"
NAMING = ("name", "share", "path", "device", "file", "model", "driver", "reason", "error", "why")
"""Keys of a report whose text another host or a user chose."""
DOCUMENT_ONE_IN = 16
"""Of the inputs, of which a document is made: a hundred times as much work as all else."""


def one_input(data: bytes) -> None:
    """The name as a kernel tells it: bytes, mostly UTF-8."""
    name = data.decode("utf-8", "surrogateescape")
    shown = safe(name)
    sinks.plain(shown)
    assert len(shown) <= LONGEST and "\n" not in shown and safe(shown) == shown
    for text in (name, f"//{name}", f"\\\\{name}", f"smb://{name}", f"//host/{name}"):
        place(text)
    for text in (name, f"ssh://{name}", f"ssh://{name}@host", f"exec:{name}"):
        agent(text)
    redaction = Redaction()
    redaction.arguments(["diagnose", f"//{name}/share", "--user", name, f"--folder={name}"])
    redaction.text(f"{name} said no to {name}, at //{name}/{name}")
    if sum(data) % DOCUMENT_ONE_IN == 0:
        document(name, sinks.SINKS[len(data) % len(sinks.SINKS)])


def place(text: str) -> None:
    """A share or a folder, or a refusal in one line."""
    try:
        found = targets.parse(text)
    except Refused as error:
        assert "\n" not in error.text, error.text
        return
    assert 0 < found.port < 65536
    assert found.path or found.host.isascii() and found.share


def agent(spec: str) -> None:
    """A command of which no word of the spec's becomes an option, or a refusal."""
    try:
        command = bootstrap.command_for(spec)
    except Refused as error:
        assert "\n" not in error.text, error.text
        return
    if spec.startswith("ssh://"):
        host = command[command.index("--") + 1]
        assert not host.startswith("-") and host.isprintable(), command


@functools.cache
def recorded() -> str:
    return REPORT.read_text(encoding="utf-8")


def document(name: str, sink: Callable[[Report, Diagnosis], None]) -> None:
    """A report in which everything is called so, through a document."""
    try:
        known = report.from_json(renamed(json.loads(recorded()), name))
    except ReportError as error:
        assert "\n" not in str(error)
        return
    sink(known, diagnose(known))


def renamed(value: Any, name: str, key: str = "") -> Any:
    """The document with the name wherever a foreign one stands."""
    if isinstance(value, dict):
        return {key: renamed(each, name, key) for key, each in value.items()}
    if isinstance(value, list):
        return [renamed(each, name, key) for each in value]
    return name if isinstance(value, str) and key in NAMING else value
