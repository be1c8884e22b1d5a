"""Formats of other tools; the first that recognizes a text reads it."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from types import ModuleType

from bottleneck.readers import dd, diskspd, fio, iperf3, ping, robocopy, rsync, smbclient, ss
from bottleneck.readers.figure import Figure, Output
from bottleneck.report.report import ReportError

FORMATS: tuple[ModuleType, ...]
FORMATS = (iperf3, fio, robocopy, diskspd, smbclient, rsync, dd, ss, ping)
NAMES = ", ".join(each.__name__.rpartition(".")[2] for each in FORMATS)
KNOWN = f"known are reports, observations (--template) and the outputs of {NAMES}"
LARGEST_BYTES = 4 << 20
LONGEST_LINE = 2000
"""Characters of a line that are read: lines that tools print for people are shorter."""
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def text_of(content: bytes) -> str:
    """Decodes a file: UTF-8, UTF-16 with its byte order mark, else Windows-1252.

    Lines end with a line feed, and are cut to LONGEST_LINE unless the text is JSON.
    """
    encoding = "utf-16" if content.startswith(UTF16) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if _is_json(text) else "\n".join(line[:LONGEST_LINE] for line in text.split("\n"))


def _is_json(text: str) -> bool:
    return text[:LONGEST_LINE].lstrip().startswith("{")


def reader_of(text: str) -> Callable[[Output], Iterator[Figure]] | None:
    """Returns the reader of a text; None: its format is unknown."""
    formats = (iperf3, fio) if _is_json(text) else FORMATS
    matching = (each for each in formats if len(text) <= LARGEST_BYTES and each.recognizes(text))
    chosen_format = next(matching, None)
    return None if chosen_format is None else chosen_format.read


def figures(output: Output) -> tuple[Figure, ...]:
    """Reads the figures of an output. Errors: ReportError, one line; NotTold."""
    read = reader_of(output.text)
    if read is None:
        raise ReportError(KNOWN)
    return tuple(read(output))
