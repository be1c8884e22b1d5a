"""What killed runs left on both hosts and on the share: found, and removed when told so.

What is a run's own, and not in use, is for each place to say: probes.files.leftovers of a host,
probes.smb.leftovers of a share. Each looks again before it removes. Here stands who is asked, and
what becomes of a question that nobody answered.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bottleneck.agents import hosts, protocol
from bottleneck.agents.hosts import AgentLost, Host, StageError
from bottleneck.target.target import Target
from probes.core.records import Access
from probes.core.stage import Refused, Unavailable
from probes.files.leftovers import THERE, Leftover, OnShare

LOOK_SECONDS = 90.0
REMOVE_SECONDS = 60.0
SHARE_SECONDS = 90.0
"""More than probes.smb.leftovers.LOOK_SECONDS, and the steps that are under way by then."""
LOST = (StageError, Unavailable, Refused, AgentLost)
"""After these nobody knows how far a removal came."""
REMOVED, LEFT, UNKNOWN = "removed", "left", "unknown"
UNANSWERED = "unknown whether it was removed"


class Found(NamedTuple):
    """A leftover and where it is."""

    where: str
    """client, server, share."""
    leftover: Leftover
    name: str
    """As a person finds it: a path, or //host/share/folder."""


class Cleaned(NamedTuple):
    """What became of it."""

    word: str
    """REMOVED, LEFT; UNKNOWN: whoever was to remove it did not say."""
    found: Found
    why: str = ""


@dataclass
class Cleanup:
    """Both hosts and the share, open for a look and what follows; a context manager."""

    folders: tuple[str, ...]
    """Of this host, beside what its journal names."""
    older_seconds: float
    target: Target | None = None
    """A share, or None."""
    access: Access = field(default_factory=Access)
    agent: str = "none"
    server_folder: str | None = None
    reached: dict[str, Host] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)
    trouble: Exception | None = None
    """Why the share was not looked at; the hosts were all the same."""

    def __enter__(self) -> Cleanup:
        with self.stack as stack:
            self.reached["client"] = stack.enter_context(hosts.start_here())
            if self.agent != "none":
                self.reached["server"] = stack.enter_context(hosts.start_there(self.agent))
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stack.close()

    def look(self) -> list[Found]:
        """All that has the name of a leftover. Raises StageError, AgentLost."""
        at_server = () if self.server_folder is None else (self.server_folder,)
        found: list[Found] = []
        for side, host in self.reached.items():
            folders = self.folders if side == "client" else at_server
            asked = {"folders": list(folders), "older_seconds": self.older_seconds}
            told = host.ask("leftovers", LOOK_SECONDS, **asked)
            if not isinstance(told, list):
                raise StageError(f"{side}: invalid data from the agent")
            known = [protocol.from_plain(Leftover, each) for each in told]
            found += [Found(side, each, each.path) for each in known]
        if self.target is not None:
            try:
                there = self._on_share(self.target)[0]
            except (StageError, Unavailable, Refused) as error:
                self.trouble = error
            else:
                names = {each.leftover.path for each in there}
                found = [e for e in found if not _is_on(self.target, names, e.leftover)] + there
        return found

    def remove(self, chosen: list[Found]) -> list[Cleaned]:
        """Looks at each again and removes it; what became of it is told for each."""
        done = [self._removed(each) for each in chosen if each.where != "share"]
        on_it = [each for each in chosen if each.where == "share"]
        if not on_it or self.target is None:
            return done
        try:
            left, gone = self._on_share(self.target, *(each.leftover.path for each in on_it))
        except LOST as error:
            return [*done, *(_unanswered(each, error) for each in on_it)]
        why = {each.name: each.leftover.why_left for each in left if each.leftover.path not in gone}
        # What is neither there nor removed by us somebody else has removed meanwhile.
        return [*done, *(_cleaned(each, why.get(each.name, "")) for each in on_it)]

    def _removed(self, found: Found) -> Cleaned:
        asked = {"path": found.leftover.path, "older_seconds": self.older_seconds}
        try:
            host = self.reached[found.where]
            return _cleaned(found, str(host.ask("remove-leftover", REMOVE_SECONDS, **asked)))
        except LOST as error:
            return _unanswered(found, error)

    def _on_share(self, target: Target, *remove: str) -> tuple[list[Found], list[str]]:
        """What is still there, and what was removed."""
        peer = target.endpoint(self.access)
        setting = OnShare(self.older_seconds, remove)
        held = self.reached["client"].hold("leftovers", setting, peer, SHARE_SECONDS, SHARE_SECONDS)
        with held as met:
            known = [protocol.from_plain(Leftover, each) for each in met.facts["found"]]
            gone = [str(each) for each in met.facts["removed"]]
        return [Found("share", each, f"{target.name}/{each.path}") for each in known], gone


def _is_on(target: Target, names: set[str], seen: Leftover) -> bool:
    """Whether it is a host's view of what the target has, or had: these names were found there."""
    place = seen.why_left.partition(f"{THERE} ")[2]
    folder = "/".join((target.share, *filter(None, target.folder.split("\\"))))
    if place in (target.name, f"//{target.host}:{target.port}/{folder}"):
        return True
    return bool(place) and re.split(r"[/\\]", seen.path)[-1] in names


def _cleaned(found: Found, why_left: str) -> Cleaned:
    return Cleaned(LEFT if why_left else REMOVED, found, why_left)


def _unanswered(found: Found, error: Exception) -> Cleaned:
    return Cleaned(UNKNOWN, found, f"{UNANSWERED}: {error}")
