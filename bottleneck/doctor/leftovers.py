"""Finds the leftovers of killed runs on both hosts and on the share, and removes chosen ones.

Each place decides what is ours and unused: probes.files.leftovers on a host, probes.smb.leftovers
on a share. Each checks again before it removes. This module asks them, and reports requests
without an answer.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bottleneck.agents import hosts, protocol
from bottleneck.agents.hosts import AgentLost, Host, StageError
from bottleneck.login.target import Target
from probes.core.records import Access
from probes.core.stage import Refused, Unavailable
from probes.files.leftovers import THERE, Leftover, OnShare

LOOK_SECONDS = 90.0
REMOVE_SECONDS = 60.0
SHARE_SECONDS = 90.0
"""More than probes.smb.leftovers.LOOK_SECONDS and the steps that are running by then."""
LOST = (StageError, Unavailable, Refused, AgentLost)
"""Errors that leave the result of a removal unknown."""
REMOVED, LEFT, UNKNOWN = "removed", "left", "unknown"
UNANSWERED = "unknown whether it was removed"


class FoundLeftover(NamedTuple):
    where: str
    """client, server, share."""
    leftover: Leftover
    name: str
    """Path for a person, or //host/share/folder."""


class RemovalResult(NamedTuple):
    word: str
    """REMOVED, LEFT; UNKNOWN: no answer."""
    item: FoundLeftover
    why: str = ""


@dataclass
class Cleanup:
    """Agents on both hosts, for the search and the removal; a context manager."""

    folders: tuple[str, ...]
    """Folders of this host to search, beside those in its journal."""
    older_seconds: float
    target: Target | None = None
    """A share, or None."""
    access: Access = field(default_factory=Access)
    agent: str = "none"
    server_folder: str | None = None
    reached: dict[str, Host] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)
    trouble: Exception | None = None
    """Error that prevented the search of the share; the hosts were searched all the same."""

    def __enter__(self) -> Cleanup:
        with self.stack as stack:
            self.reached["client"] = stack.enter_context(hosts.start_here())
            if self.agent != "none":
                self.reached["server"] = stack.enter_context(hosts.start_there(self.agent))
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stack.close()

    def look(self) -> list[FoundLeftover]:
        """Returns all folders and files named like a leftover. Raises StageError, AgentLost."""
        at_server = () if self.server_folder is None else (self.server_folder,)
        items: list[FoundLeftover] = []
        for side, host in self.reached.items():
            folders = self.folders if side == "client" else at_server
            arguments = {"folders": list(folders), "older_seconds": self.older_seconds}
            reply = host.ask("leftovers", LOOK_SECONDS, **arguments)
            if not isinstance(reply, list):
                raise StageError(f"{side}: invalid data from the agent")
            listed = [protocol.from_plain(Leftover, each) for each in reply]
            items += [FoundLeftover(side, each, each.path) for each in listed]
        if self.target is not None:
            try:
                on_share = self._on_share(self.target)[0]
            except (StageError, Unavailable, Refused) as error:
                self.trouble = error
            else:
                names = {each.leftover.path for each in on_share}
                items = [e for e in items if not _is_on(self.target, names, e.leftover)] + on_share
        return items

    def remove(self, items: list[FoundLeftover]) -> list[RemovalResult]:
        """Checks each again and removes it; returns the result of each."""
        results = [self._remove(each) for each in items if each.where != "share"]
        on_share = [each for each in items if each.where == "share"]
        if not on_share or self.target is None:
            return results
        try:
            paths = [each.leftover.path for each in on_share]
            remaining, removed = self._on_share(self.target, *paths)
        except LOST as error:
            return [*results, *(_unanswered_result(each, error) for each in on_share)]
        rest = (each for each in remaining if each.leftover.path not in removed)
        why = {each.name: each.leftover.why_left for each in rest}
        # A leftover that is neither there nor removed by us was removed by somebody else.
        return [*results, *(_removal(each, why.get(each.name, "")) for each in on_share)]

    def _remove(self, item: FoundLeftover) -> RemovalResult:
        arguments = {"path": item.leftover.path, "older_seconds": self.older_seconds}
        try:
            host = self.reached[item.where]
            return _removal(item, str(host.ask("remove-leftover", REMOVE_SECONDS, **arguments)))
        except LOST as error:
            return _unanswered_result(item, error)

    def _on_share(self, target: Target, *remove: str) -> tuple[list[FoundLeftover], list[str]]:
        """Returns the remaining leftovers, and the removed paths."""
        peer = target.endpoint(self.access)
        setting = OnShare(self.older_seconds, remove)
        client = self.reached["client"]
        with client.hold("leftovers", setting, peer, SHARE_SECONDS, SHARE_SECONDS) as met:
            remaining = [protocol.from_plain(Leftover, each) for each in met.facts["found"]]
            removed = [str(each) for each in met.facts["removed"]]
        return [FoundLeftover("share", e, f"{target.name}/{e.path}") for e in remaining], removed


def _is_on(target: Target, names: set[str], leftover: Leftover) -> bool:
    """Whether a host's leftover is one of the target: its place, or one of these names there."""
    place = leftover.why_left.partition(f"{THERE} ")[2]
    folder = "/".join((target.share, *filter(None, target.folder.split("\\"))))
    if place in (target.name, f"//{target.host}:{target.port}/{folder}"):
        return True
    return bool(place) and re.split(r"[/\\]", leftover.path)[-1] in names


def _removal(item: FoundLeftover, why_left: str) -> RemovalResult:
    return RemovalResult(LEFT if why_left else REMOVED, item, why_left)


def _unanswered_result(item: FoundLeftover, error: Exception) -> RemovalResult:
    return RemovalResult(UNKNOWN, item, f"{UNANSWERED}: {error}")
