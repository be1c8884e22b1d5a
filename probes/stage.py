"""What a stage is: a module with a name, a setting and two ends."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Generator, Protocol

from probes.records import Details, Endpoint, Sample


class Last(Sample):
    """The sample that closes the measured window; checks and clean-up may follow it."""


Running = Generator[Sample, None, Details]
"""A stage under way: yields samples, returns its details."""


class Unavailable(Exception):
    """This stage cannot be tried here; the text is the reason and becomes a Skipped."""


class Refused(Exception):
    """The other side said no before anything could be measured; ends the whole run, tried once.

    kind: "unreachable" (name, route, port, no SMB there), "share" (no such share or folder on it),
    "login" (wrong password, locked, guest instead of us), "permission" (no right to write or
    read), "space" (no room), "usage" (a folder that does not exist ...).
    text: one plain line that names host, step and remedy; no secret.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class Stage(Protocol):
    """One measurement between an initiator and a responder.

    The first sample is (0.0, 0) and opens the measured window, a `Last` closes it: CPU and memory
    of both hosts are read at those two moments, so set-up comes before the first and clean-up
    after the last.
    """

    @property
    def NAME(self) -> str:
        """The word in the report and after `bottleneck probe`."""

    @property
    def Setting(self) -> type[Any]:
        """Frozen dataclass of plain values."""

    def respond(self, setting: Any, /) -> AbstractContextManager[Endpoint]:
        """Be the passive end until closed."""

    def initiate(self, setting: Any, peer: Endpoint, /) -> Running:
        """Drive the stage; ends within its setting's time plus one I/O timeout."""
