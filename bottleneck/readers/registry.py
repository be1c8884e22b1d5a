"""All formats of other tools that are read; the first that knows a text reads it."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from types import ModuleType

from bottleneck.readers import dd, diskspd, fio, iperf3, ping, robocopy, rsync, smbclient, ss
from bottleneck.readers.figure import Figure, Output
from bottleneck.report.report import ReportError

FORMATS: tuple[ModuleType, ...] = (
    *(iperf3, fio, robocopy, diskspd, smbclient, rsync, dd, ss, ping),
)
NAMES = ", ".join(each.__name__.rpartition(".")[2] for each in FORMATS)
KNOWN = f"known are reports, observations (--template) and the outputs of {NAMES}"
LARGEST_BYTES = 4 << 20
LONGEST_LINE = 2000
"""Characters of a line that are read: what tools print for people is shorter."""
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def text_of(content: bytes) -> str:
    """Returns a file's text as systems write it: UTF-8, UTF-16 with its mark, Windows' code page.

    Lines end with a line feed; of those of a text that is no JSON the beginning counts.
    """
    encoding = "utf-16" if content.startswith(UTF16) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _is_json(text):
        return text
    return "\n".join(line[:LONGEST_LINE] for line in text.split("\n"))


def _is_json(text: str) -> bool:
    return text[:LONGEST_LINE].lstrip().startswith("{")


def reader_of(text: str) -> Callable[[Output], Iterator[Figure]] | None:
    """Returns what reads a text; None: no format that is known."""
    formats = (iperf3, fio) if _is_json(text) else FORMATS
    known = (each for each in formats if len(text) <= LARGEST_BYTES and each.recognizes(text))
    found = next(known, None)
    return None if found is None else found.read


def figures(output: Output) -> tuple[Figure, ...]:
    """Returns what an output tells. Errors: ReportError, one line; NotTold: what it cannot tell."""
    read = reader_of(output.text)
    if read is None:
        raise ReportError(KNOWN)
    return tuple(read(output))
