"""Meaning of each key of a request to the host that carries it out.

The fields of a Setting and the parameters of a question are annotated with these types, and an
agent checks each value by them (bottleneck/agents/request_checks.py): a key without a meaning is
refused to everybody. Runs on Python 3.9 with the standard library alone.
"""

from __future__ import annotations

import dataclasses
import inspect
from functools import cache
from typing import Annotated, Any, Callable, Dict, get_args, get_origin
from typing import get_type_hints as hints_of

MAYBE, MANY = "?", "*"
"""Suffixes of a meaning: the value may be null or empty; it is a list of such values."""
TRUTH, ANY = "truth", "any"

Text = Annotated[str, "text"]
"""Text that names no file, host or device."""
Number = Annotated[float, "number"]
Count = Annotated[int, "count"]
Size = Annotated[int, "size"]
"""Bytes that are written or read."""
Seconds = Annotated[float, "seconds"]
"""A time that a request may take."""
Port = Annotated[int, "port"]
Address = Annotated[str, "address"]
"""IP address; not a host's name, which would be looked up."""
Folder = Annotated[str, "folder"]
FolderOrNone = Annotated[str, "folder?"]
File = Annotated[str, "file"]
Device = Annotated[str, "device"]
Handed = Annotated[str, "handed"]
"""A file whose content may leave this host: one that the agent itself made."""
LeftoverPath = Annotated[str, "leftover"]
Name = Annotated[str, "name"]
"""One step of a path, downwards."""
Hex = Annotated[str, "hex"]
"""A run's id, part of a folder's name."""

Keys = Dict[str, str]


@cache
def keys(target: Callable[..., Any]) -> Keys:
    """Returns the keys that a record or a function takes, each with its meaning.

    Errors: TypeError for a key whose annotation gives no meaning.
    """
    hints = hints_of(target, include_extras=True)
    if dataclasses.is_dataclass(target):
        names = [field.name for field in dataclasses.fields(target)]
    else:
        names = list(inspect.signature(target).parameters)
    return {name: _meaning(hints[name], f"{target.__qualname__}.{name}") for name in names}


def _meaning(hint: Any, where: str) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return str(hint.__metadata__[0])
    if hint is bool:
        return TRUTH
    if type(None) in arguments:
        return _meaning(arguments[0], where) + MAYBE
    if origin in (tuple, list):
        return _meaning(arguments[0], where) + MANY
    raise TypeError(f"{where} has no meaning: see probes/core/field_types.py")
