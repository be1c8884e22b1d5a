"""An observations file: TOML or JSON, checked strictly, one line of complaint."""

from __future__ import annotations

import dataclasses
import re
import typing
from typing import Any

from bottleneck import bounded_toml, report, typed
from bottleneck.observations.records import SCHEMA, Observations
from bottleneck.report import ReportError

_KIND = "copy-bottleneck/observations/"
_MARK = re.compile(rf"""^[ \t]*["']?schema["']?\s*=\s*["']{_KIND}""".encode(), re.M)


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
    if len(content) > bounded_toml.LARGEST_BYTES:
        raise ReportError(f"larger than {bounded_toml.LARGEST_BYTES} bytes")
    document = _document(content) if document is None else document
    schema = document.get("schema")
    if schema != SCHEMA:
        # By its type alone: a number may be too long to be made text.
        told = repr(schema[:80]) if isinstance(schema, str) else type(schema).__name__
        raise ReportError(f"schema is {told}, this program reads {SCHEMA!r}")
    try:
        return typed.record(Observations, _read(Observations, document), "observations", True)
    except typed.NotTyped as error:
        raise ReportError(str(error)) from None


def _is_json(content: bytes) -> bool:
    return content.lstrip().startswith(b"{")


def _document(content: bytes) -> dict[str, Any]:
    if _is_json(content):
        return report.document(content)
    try:
        return bounded_toml.loads(content)
    except bounded_toml.NotBounded as error:
        raise ReportError(str(error)) from None


def _read(kind: Any, document: dict[str, Any], where: str = "") -> dict[str, Any]:
    """An object whose texts are the figures and words that its record asks for."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        key: _figure(hints[key], value, f"{where}{key}") if key in hints else value
        for key, value in document.items()
    }


def _figure(hint: Any, value: Any, where: str) -> Any:
    """A value as a field asks for it; what is of another type is left to the check of types."""
    arguments = typing.get_args(hint)
    if type(None) in arguments:
        return None if value is None else _figure(arguments[0], value, where)
    if typing.get_origin(hint) is tuple and isinstance(value, list):
        return [_figure(arguments[0], each, f"{where}[{at}]") for at, each in enumerate(value)]
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return _read(hint, value, f"{where}.")
    if not hasattr(hint, "__metadata__"):
        return value
    accepted, read = hint.__metadata__
    if not isinstance(value, accepted):
        raise ReportError(f"observations.{where} must be text")
    try:
        return read(value)
    except ValueError as error:
        raise ReportError(f"{where}: {error}") from None
