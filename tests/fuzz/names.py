"""Fuzzes a foreign name: shown, parsed as target and agent, redacted, and in a document."""

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
from bottleneck.login import target as targets
from bottleneck.records.redaction import Redaction
from bottleneck.report import report
from bottleneck.report.report import Report, ReportError
from bottleneck.text.safe import LONGEST, safe
from probes.core.stage import Refused

REPORT = Path(__file__).parents[1] / "data" / "report-v1-strange.json"
NAMING = ("name", "share", "path", "device", "file", "model", "driver", "reason", "error", "why")
"""Keys of a report whose text another host or a user chose."""
DOCUMENT_ONE_IN = 16
"""One input in so many becomes a document: a hundred times as much work as all else."""


def one_input(data: bytes) -> None:
    """Passes one foreign name through all that parses, redacts or shows it."""
    name = data.decode("utf-8", "surrogateescape")
    safe_name = safe(name)
    sinks.plain(safe_name)
    assert len(safe_name) <= LONGEST and "\n" not in safe_name and safe(safe_name) == safe_name
    for text in (name, f"//{name}", f"\\\\{name}", f"smb://{name}", f"//host/{name}"):
        check_target(text)
    for text in (name, f"ssh://{name}", f"ssh://{name}@host", f"exec:{name}"):
        agent(text)
    redaction = Redaction()
    redaction.arguments(["diagnose", f"//{name}/share", "--user", name, f"--folder={name}"])
    redaction.text(f"{name} said no to {name}, at //{name}/{name}")
    if sum(data) % DOCUMENT_ONE_IN == 0:
        document(name, sinks.SINKS[len(data) % len(sinks.SINKS)])


def check_target(text: str) -> None:
    """Parses a target: a share, a folder, or a refusal in one line."""
    try:
        share = targets.parse(text)
    except Refused as error:
        assert "\n" not in error.text, error.text
        return
    assert 0 < share.port < 65536
    assert share.path or share.host.isascii() and share.share


def agent(spec: str) -> None:
    """Checks an agent's command: no word of its spec becomes an option; or a refusal."""
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
    """Writes a document from a report in which everything has this name."""
    try:
        run_report = report.from_json(renamed(json.loads(recorded()), name))
    except ReportError as error:
        assert "\n" not in str(error)
        return
    sink(run_report, diagnose(run_report))


def renamed(value: Any, name: str, key: str = "") -> Any:
    """Returns the document with the name in place of each foreign one."""
    if isinstance(value, dict):
        return {key: renamed(each, name, key) for key, each in value.items()}
    if isinstance(value, list):
        return [renamed(each, name, key) for each in value]
    return name if isinstance(value, str) and key in NAMING else value
