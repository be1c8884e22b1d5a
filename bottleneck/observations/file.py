"""An observations file: TOML or JSON, checked strictly, one line of complaint."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from bottleneck import report, typed
from bottleneck.observations.records import SCHEMA, Observations
from bottleneck.report import ReportError

_KIND = "copy-bottleneck/observations/"
_MARK = re.compile(rf"""^[ \t]*["']?schema["']?\s*=\s*["']{_KIND}""".encode(), re.M)
LARGEST_FILE_BYTES = 256 << 10
MOST_DOTS = 200
"""In a line of TOML: each part of a dotted key costs its parser a walk through all before it."""


def is_one(document: dict[str, Any]) -> bool:
    """Whether a JSON document says that it is one, of any version."""
    schema = document.get("schema")
    return isinstance(schema, str) and schema.startswith(_KIND)


def is_toml(content: bytes) -> bool:
    """Whether a file that is no JSON object says that it is one, of any version."""
    return not _is_json(content) and _MARK.search(content) is not None


def loads(content: bytes, document: dict[str, Any] | None = None) -> Observations:
    """The observations in a file.

    document: what the file holds, where it was parsed already.
    Errors: ReportError, one line that says where and what.
    """
    if len(content) > LARGEST_FILE_BYTES:
        raise ReportError(f"larger than {LARGEST_FILE_BYTES} bytes")
    document = _document(content) if document is None else document
    schema = document.get("schema")
    if schema != SCHEMA:
        # By its type alone: a number may be too long to be made text.
        told = repr(schema[:80]) if isinstance(schema, str) else type(schema).__name__
        raise ReportError(f"schema is {told}, this program reads {SCHEMA!r}")
    try:
        return typed.record(Observations, document, "observations", exact=True)
    except typed.NotTyped as error:
        raise ReportError(str(error)) from None


def _is_json(content: bytes) -> bool:
    return content.lstrip().startswith(b"{")


def _document(content: bytes) -> dict[str, Any]:
    if _is_json(content):
        return report.document(content)
    if any(line.count(b".") > MOST_DOTS for line in content.split(b"\n")):
        raise ReportError(f"not TOML: a line has more than {MOST_DOTS} dots")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise ReportError(f"not TOML: {reason.splitlines()[0][:160]}") from None
