"""The files of a run, and where they lie: all that changes while it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bottleneck.run import plan
from probes.core.records import Endpoint


@dataclass
class Files:
    """This run's folder on the share, and what its copies and disks read."""

    client_folder: str
    """Of the copies, on the client."""
    share: Endpoint = field(default_factory=Endpoint)
    """This run's folder on the share, once it is open; another one after the server's restart."""
    server_path: str | None = None
    """The same folder as the server's own path, once its agent has found it."""
    agent_folder: str = ""
    """Where the agent's files lie, as it may not write there: on the same file system; or empty."""
    sources: dict[plan.Side, Endpoint] = field(default_factory=dict)
    """Each side's own file to read from."""
    no_source: dict[plan.Side, str] = field(default_factory=dict)
    """Why a side has none."""
    source_bytes: int = 0
    """Size of the file on the share that pulls read; 0: not written yet."""
    limit_bytes: int | None = None
    """Upper bound of a file's bytes, once a push has filled the share; None: none has."""
    reopen: Callable[[], bool] = lambda: False
    """Makes another folder on a share from which the run's is gone; whether that worked."""

    @property
    def dialect(self) -> str:
        """Of the session that holds the run's folder."""
        return str(self.share.facts["dialect"])

    def source_bytes_of(self, side: plan.Side) -> int:
        """Size of a side's own file; 0: it has none."""
        source = self.sources.get(side)
        return int(source.facts["size_bytes"]) if source else 0

    def folder(self, side: plan.Side) -> str | None:
        """The folder of a side's copies, as that host's path."""
        return self.client_folder if side == "client" else self.server_path

    def test_folder(self, side: plan.Side) -> str:
        """Where this tool's own files on a side lie: there, or beside it on its file system; empty:
        it has none."""
        beside = self.agent_folder if side == "server" else ""
        return beside or self.folder(side) or ""
