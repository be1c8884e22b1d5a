"""An observations file: TOML or JSON, checked strictly, one line of complaint."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from bottleneck import report, typed
from bottleneck.observations.records import SCHEMA, Observations
from bottleneck.report import ReportError

_MARK = re.compile(
    rb"""^[ \t{]*["']?schema["']?\s*[=:]\s*["']copy-bottleneck/observations/""", re.M
)
LARGEST_FILE_BYTES = 1 << 20


def is_one(content: bytes) -> bool:
    """Whether a document says that it is one, in JSON or in TOML."""
    return _MARK.search(content) is not None


def loads(content: bytes) -> Observations:
    """The observations in a document. Errors: ReportError, one line that says where and what."""
    if len(content) > LARGEST_FILE_BYTES:
        raise ReportError(f"larger than {LARGEST_FILE_BYTES} bytes")
    document = _document(content)
    if document.get("schema") != SCHEMA:
        told = str(document.get("schema"))[:80]
        raise ReportError(f"schema is {told!r}, this program reads {SCHEMA!r}")
    try:
        return typed.record(Observations, document, "observations", exact=True)
    except typed.NotTyped as error:
        raise ReportError(str(error)) from None


def _document(content: bytes) -> dict[str, Any]:
    if content.lstrip().startswith(b"{"):
        return report.document(content)
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise ReportError(f"not TOML: {reason.splitlines()[0][:160]}") from None
