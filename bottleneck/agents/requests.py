"""Closed list of an agent's requests, each with the function or record that carries it out.

All others are refused, whoever asks (bottleneck/agents/request_checks.py). The keys of a request
are those of its record or function, each with its meaning (probes/core/field_types.py); a stage
describes its own request. Runs on Python 3.9 with the standard library alone.
"""

from __future__ import annotations

import contextlib
import importlib
from dataclasses import dataclass
from typing import Any, Dict, Tuple

from bottleneck.agents import protocol
from probes import STAGES
from probes.core import typed
from probes.core.field_types import Keys, keys
from probes.core.records import Endpoint
from probes.core.stage import Last, Running, module_of
from probes.net import peers
from probes.system.events import Event, Tell, Work
from probes.system.platform import os
from probes.system.waiting import select, signal


@dataclass(frozen=True)
class Takes:
    """Function or record that a request takes."""

    module: str
    function: str = "Setting"
    """Function that answers an `ask`; for other requests the record of the setting."""
    record: str = ""
    """Module of the record, if `module` cannot be imported without an SMB library."""

    @property
    def keys(self) -> Keys:
        """Keys of its arguments or setting, each with its meaning."""
        return keys(self.carries_out)

    @property
    def carries_out(self) -> Any:
        """Function or record; the agent's own process loads it without SMB libraries."""
        return getattr(importlib.import_module(self.record or self.module), self.function)

    def import_module(self) -> Any:
        """Imports the module with all its libraries: for a child. Errors: ImportError."""
        return importlib.import_module(self.module)


ASKS = {
    "facts": Takes("probes.host.facts", "host_facts"),
    "samba-config": Takes("probes.programs.samba_config", "settings"),
    # Finds only a folder with the name of a run, so the hint may be any place.
    "locate": Takes("probes.programs.served_folder", "locate"),
    "set-cache": Takes("probes.files.served_file", "set_cache"),
    "mount": Takes("probes.files.folders", "read_mount"),
    "writable-folder": Takes("probes.files.unnamed_file", "writable_folder"),
    "usable-bytes": Takes("probes.files.free_space", "usable_bytes"),
    "user-file": Takes("probes.storage.named_file", "look"),
    "readable-device": Takes("probes.storage.zones", "readable"),
    "reach": Takes("probes.net.peers", "reach"),
    "readiness": Takes("probes.host.facts", "readiness"),
    "offered": Takes("probes.smb.server_query", "query_dialects"),
    "leftovers": Takes("probes.files.leftovers", "find"),
    "remove-leftover": Takes("probes.files.leftovers", "remove"),
    "smbclient": Takes("probes.programs.smbclient", "version"),
    "running-copies": Takes("probes.watch.running_copies", "find"),
    "served-flush": Takes("probes.files.served_file", "flush"),
    "served-intact": Takes("probes.files.served_file", "intact"),
    "served-resize": Takes("probes.files.served_file", "resize"),
    "served-remove": Takes("probes.files.served_file", "remove"),
}
HOLDS = {
    "mounted-folder": Takes("probes.files.created_folder"),
    "source-file": Takes("probes.files.source_file"),
    "run-folder": Takes("probes.smb.run_folder"),
    "client-share": Takes("probes.smb.client_share"),
    "visit": Takes("probes.smb.server_query"),
    "leftovers": Takes("probes.smb.leftovers", "OnShare", record="probes.files.leftovers"),
}
"""Resources that a host can hold for a run, beside the responders of its stages."""
OBSERVERS = {"sockets": Takes("probes.watch.socket_watch")}
"""Observers of a host beside a stage, or of a copy by others; they reply at the end."""
ENGINES = {
    "smbclient-copy": Takes("probes.stages.smbclient_copy"),
    "iperf3": Takes("probes.programs.iperf3"),
}
"""Engines that run a stage by a program of the host."""
LISTED = {"ask": ASKS, "hold": HOLDS, "initiate": ENGINES, "observe": OBSERVERS, "preload": ENGINES}
OF_STAGES = ("hold", "initiate", "preload")
"""Requests that may name a stage."""
ENVELOPES: Dict[str, Tuple[str, ...]] = {
    "ask": ("name", "arguments", "seconds"),
    "hold": ("name", "setting", "peer", "seconds"),
    "initiate": ("name", "setting", "peer", "seconds"),
    "observe": ("name", "setting", "seconds"),
    "watch": ("watched",),
    "counters": (),
    "preload": ("name",),
    "close": ("window",),
    "continue": (),
}


def is_known(do: str, name: str) -> bool:
    """Whether the request exists."""
    return name in LISTED[do] or do in OF_STAGES and name in STAGES


def takes(do: str, name: str) -> Takes:
    """Returns the entry of an existing request. Errors: ImportError: this host lacks a library."""
    return LISTED[do][name] if name in LISTED[do] else Takes(module_of(name).__name__)


# -- the work of a child, for each kind of request ------------------------------------------------


def ask(request: protocol.Message, takes: Takes) -> Work:
    """Returns work that calls a function and sends its result."""

    def work(tell: Tell, control_fd: int) -> None:
        tell({"answer": typed.to_plain(takes.carries_out(**request["arguments"]))})

    return work


def _peer(request: protocol.Message) -> Endpoint:
    return protocol.from_plain(Endpoint, request["peer"])


def hold(request: protocol.Message, takes: Takes) -> Work:
    """Returns work that holds a resource until it is closed."""

    def work(tell: Tell, control_fd: int) -> None:
        peer, module = _peer(request), takes.import_module()
        holder = module.hold(protocol.from_plain(module.Setting, request["setting"]), peer)
        _keep(holder, peer, tell, control_fd)

    return work


def respond(request: protocol.Message, takes: Takes) -> Work:
    """Returns work that serves a stage's passive end until it is closed."""

    def work(tell: Tell, control_fd: int) -> None:
        peer, module = _peer(request), takes.import_module()
        peers.expect(peer.host)
        responder = module.respond(protocol.from_plain(module.Setting, request["setting"]))
        _keep(responder, peer, tell, control_fd)

    return work


def _keep(holder: Any, peer: Endpoint, tell: Tell, control_fd: int) -> None:
    signal.signal(signal.SIGTERM, _end)
    with holder as endpoint:
        tell({"endpoint": protocol.endpoint_to_plain(endpoint, peer.access)})
        os.read(control_fd, 1)
    tell({"closed": True})


def observe(request: protocol.Message, takes: Takes) -> Work:
    """Returns work that observes until it is closed, then sends its observations."""

    def work(tell: Tell, control_fd: int) -> None:
        module = takes.import_module()
        setting = protocol.from_plain(module.Setting, request["setting"])

        def window() -> Any:
            """Returns the copy's time; None: the observations are not needed."""
            line = os.read(control_fd, select.PIPE_BUF)
            return protocol.decode(line)["window"] if line else None

        tell({"observed": typed.to_plain(module.observe(setting, control_fd, window))})

    return work


def initiate(request: protocol.Message, takes: Takes) -> Work:
    """Returns work that runs a stage and sends its samples and details."""

    def work(tell: Tell, control_fd: int) -> None:
        module = takes.import_module()
        setting = protocol.from_plain(module.Setting, request["setting"])
        signal.signal(signal.SIGTERM, _end)
        with contextlib.closing(module.initiate(setting, _peer(request))) as running:
            _drive(running, tell, control_fd)

    return work


def _end(*_: Any) -> None:
    """Ends a stage, so that its context managers remove what it created."""
    raise SystemExit


def _drive(running: Running, tell: Tell, control_fd: int) -> None:
    opened = False
    while True:
        try:
            sample = next(running)
        except StopIteration as end:
            tell({"details": typed.to_plain(end.value)})
            return
        event: Event = {"sample": [sample.elapsed_seconds, sample.moved_bytes]}
        if isinstance(sample, Last):
            event["last"] = True
        tell(event)
        if opened and "last" not in event:
            continue
        opened = True
        # Both ends of the window wait until both hosts' counters were read, so that later work is
        # not counted, and a file server's process does not end before.
        if not os.read(control_fd, 1):
            return
