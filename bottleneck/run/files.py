"""Files of a run and their places: the state that changes while it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bottleneck.run import plan
from probes.core.records import Endpoint


@dataclass
class Files:
    """Folders and source files of a run."""

    client_folder: str
    share: Endpoint = field(default_factory=Endpoint)
    """This run's folder on the share, once it is open; a new one after the server's restart."""
    server_path: str | None = None
    """Path of that folder on the server, once its agent has found it."""
    agent_folder: str = ""
    """Folder of the agent's files on the same file system, if it may not write to the share's."""
    sources: dict[plan.Side, Endpoint] = field(default_factory=dict)
    """Source file of each side."""
    no_source: dict[plan.Side, str] = field(default_factory=dict)
    """Reason why a side has no source file."""
    source_bytes: int = 0
    """Size of the file on the share that pulls read; 0: not written yet."""
    limit_bytes: int | None = None
    """Upper bound of a file's size after a push filled the share; None: none did."""
    reopen: Callable[[], bool] = lambda: False
    """Creates a new folder if the run's is gone from the share; returns whether it could."""

    @property
    def dialect(self) -> str:
        """Dialect of the session that holds the run's folder."""
        return str(self.share.facts["dialect"])

    def source_bytes_of(self, side: plan.Side) -> int:
        """Returns the size of a side's source file; 0: it has none."""
        source = self.sources.get(side)
        return int(source.facts["size_bytes"]) if source else 0

    def folder(self, side: plan.Side) -> str | None:
        """Returns the folder of a side's copies, as that host's path."""
        return self.client_folder if side == "client" else self.server_path

    def test_folder(self, side: plan.Side) -> str:
        """Returns the folder of this tool's files on a side, on the same file system as the copies;
        empty: it has none."""
        beside = self.agent_folder if side == "server" else ""
        return beside or self.folder(side) or ""
