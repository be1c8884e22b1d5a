"""What killed runs left on both hosts and on the share: found, shown, and removed when told so."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from bottleneck import hosts, wire
from bottleneck.hosts import AgentLost, Host, StageError
from bottleneck.target import Target
from probes.host.leftovers import Leftover
from probes.records import Access, Endpoint
from probes.smb import leftovers as on_share
from probes.stage import Refused, Unavailable

LOOK_SECONDS = 90.0
REMOVE_SECONDS = 60.0
SHARE_SECONDS = 90.0
"""More than on_share.LOOK_SECONDS, and the steps that are under way by then."""
LOST = (StageError, Unavailable, Refused, AgentLost)
"""After these nobody knows how far a removal came."""
UNKNOWN = "not known whether it is gone"


@dataclass(frozen=True)
class Wanted:
    """Where to look, and for what."""

    folders: tuple[str, ...]
    """Of this host, beside those for temporary files."""
    older_seconds: float
    target: Target | None = None
    """A share, or None."""
    access: Access = field(default_factory=Access)
    agent: str = "none"
    server_folder: str | None = None


@dataclass(frozen=True)
class Found:
    """A leftover and where it is."""

    where: str
    """client, server, share."""
    leftover: Leftover
    name: str
    """As a person finds it: a path, or //host/share/folder."""

    @property
    def removable(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.leftover.why_left


@dataclass(frozen=True)
class Cleaned:
    """What became of it."""

    found: Found
    why_left: str
    """Empty: it is removed."""
    known: bool = True
    """False: whoever was to remove it did not say what became of it; why_left says why."""


@dataclass
class Cleanup:
    """Both hosts and the share, open for a look and what follows; a context manager."""

    wanted: Wanted
    reached: dict[str, Host] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)
    trouble: Exception | None = None
    """Why the share was not looked at; the hosts were all the same."""

    def __enter__(self) -> Cleanup:
        with self.stack as stack:
            self.reached["client"] = stack.enter_context(hosts.start_here())
            if self.wanted.agent != "none":
                self.reached["server"] = stack.enter_context(hosts.start_there(self.wanted.agent))
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stack.close()

    def look(self) -> list[Found]:
        """All that has the name of a leftover. Raises StageError, AgentLost."""
        wanted = self.wanted
        found = self._on_host("client", wanted.folders)
        if "server" in self.reached:
            there = () if wanted.server_folder is None else (wanted.server_folder,)
            found += self._on_host("server", there)
        if wanted.target is not None:
            try:
                found += self._on_share(())[0]
            except (StageError, Unavailable, Refused) as error:
                self.trouble = error
        return found

    def remove(self, chosen: list[Found]) -> list[Cleaned]:
        """Looks at each again and removes it; what became of it is told for each."""
        done = [self._removed(each) for each in chosen if each.where != "share"]
        on_it = [each for each in chosen if each.where == "share"]
        if not on_it:
            return done
        try:
            left, gone = self._on_share(tuple(each.leftover.path for each in on_it))
        except LOST as error:
            return [*done, *(_unknown(each, error) for each in on_it)]
        why = {each.name: each.leftover.why_left for each in left}
        for each in on_it:
            # What is neither there nor removed by us somebody else has removed meanwhile.
            known = "" if each.leftover.path in gone else why.get(each.name, "")
            done.append(Cleaned(each, known))
        return done

    def _removed(self, found: Found) -> Cleaned:
        asked = {"path": found.leftover.path, "older_seconds": self.wanted.older_seconds}
        try:
            told = self.reached[found.where].ask("remove-leftover", REMOVE_SECONDS, **asked)
        except LOST as error:
            return _unknown(found, error)
        return Cleaned(found, str(told))

    def _on_host(self, side: str, folders: tuple[str, ...]) -> list[Found]:
        asked = {"folders": list(folders), "older_seconds": self.wanted.older_seconds}
        told = self.reached[side].ask("leftovers", LOOK_SECONDS, **asked)
        if not isinstance(told, list):
            raise StageError(f"{side}: its agent tells what cannot be")
        known = [wire.from_plain(Leftover, each) for each in told]
        return [Found(side, each, each.path) for each in known]

    def _on_share(self, remove: tuple[str, ...]) -> tuple[list[Found], list[str]]:
        """What is still there, and what was removed."""
        target = self.wanted.target
        assert target is not None
        peer = Endpoint(
            host=target.host,
            port=target.port,
            share=target.share,
            folder=target.folder,
            access=self.wanted.access,
        )
        setting = on_share.Setting(self.wanted.older_seconds, remove)
        held = self.reached["client"].hold("leftovers", setting, peer, SHARE_SECONDS, SHARE_SECONDS)
        with held as met:
            known = [wire.from_plain(Leftover, each) for each in met.facts["found"]]
            gone = [str(each) for each in met.facts["removed"]]
        return [Found("share", each, f"{target.name}/{each.path}") for each in known], gone


def _unknown(found: Found, error: Exception) -> Cleaned:
    return Cleaned(found, f"{UNKNOWN}: {error}", known=False)
