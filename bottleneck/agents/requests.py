"""What an agent may be asked for: each request, what carries it out and what it may lead to.

The closed list: what is not in it is refused, whoever asks (bottleneck/agents/checks.py). The keys
of a request are those of the record or function that carries it out, each with its meaning
(probes/core/meaning.py); a stage's entry is its own description. Runs on Python 3.9 with the
standard library alone.
"""

from __future__ import annotations

import contextlib
import importlib
from dataclasses import dataclass
from typing import Any, Dict, Tuple

from bottleneck.agents import protocol
from probes import STAGES
from probes.core import typed
from probes.core.meaning import Keys, keys
from probes.core.records import Endpoint
from probes.core.stage import Last, Running, module_of
from probes.net import callers
from probes.system.child import Event, Tell, Work
from probes.system.platform import os
from probes.system.waiting import select, signal


@dataclass(frozen=True)
class Takes:
    """One request."""

    module: str
    function: str = "Setting"
    """That carries a question out; of all else the record of what is wanted."""
    record: str = ""
    """Where its record stands, if its module cannot be imported without an SMB library."""

    @property
    def keys(self) -> Keys:
        """Of its arguments or its setting, each with its meaning."""
        return keys(self.carries_out)

    @property
    def carries_out(self) -> Any:
        """The function, or the record; the agent's own process knows it, without SMB libraries."""
        return getattr(importlib.import_module(self.record or self.module), self.function)

    def imported(self) -> Any:
        """The module, with all that it takes: for a child. Errors: ImportError."""
        return importlib.import_module(self.module)


ASKS = {
    "facts": Takes("probes.host.facts", "host_facts"),
    "samba-config": Takes("probes.programs.samba_config", "settings"),
    # Finds nothing but a folder of a run's name, so the hint may be any place.
    "locate": Takes("probes.programs.served_folder", "locate"),
    "set-cache": Takes("probes.files.served_file", "set_cache"),
    "mount": Takes("probes.files.folders", "read_mount"),
    "writable-folder": Takes("probes.files.nameless", "writable_folder"),
    "usable-bytes": Takes("probes.files.free_space", "usable_bytes"),
    "user-file": Takes("probes.storage.named_file", "look"),
    "readable-device": Takes("probes.storage.zones", "readable"),
    "reach": Takes("probes.net.callers", "reach"),
    "readiness": Takes("probes.host.facts", "readiness"),
    "offered": Takes("probes.smb.offered", "offered"),
    "leftovers": Takes("probes.files.leftovers", "find"),
    "remove-leftover": Takes("probes.files.leftovers", "remove"),
    "smbclient": Takes("probes.programs.smbclient", "version"),
    "running-copies": Takes("probes.watch.running_copies", "find"),
    "served-flush": Takes("probes.files.served_file", "flush"),
    "served-intact": Takes("probes.files.served_file", "intact"),
    "served-resize": Takes("probes.files.served_file", "resize"),
    "served-remove": Takes("probes.files.served_file", "remove"),
}
"""Questions."""
HOLDS = {
    "mounted-folder": Takes("probes.files.own_folder"),
    "source-file": Takes("probes.files.source_file"),
    "run-folder": Takes("probes.smb.run_folder"),
    "client-share": Takes("probes.smb.client_share"),
    "visit": Takes("probes.smb.offered"),
    "leftovers": Takes("probes.smb.leftovers", "OnShare", record="probes.files.leftovers"),
}
"""What a host can hold for a run beside the responders of its stages."""
OBSERVERS = {"sockets": Takes("probes.watch.socket_watch")}
"""What can watch a host beside a stage, or a copy that others made; asked for it at the end."""
ENGINES = {
    "smbclient-copy": Takes("probes.stages.smbclient_copy"),
    "iperf3": Takes("probes.programs.iperf3"),
}
"""Other ways to run a stage, by programs that a host has."""
LISTED = {"ask": ASKS, "hold": HOLDS, "initiate": ENGINES, "observe": OBSERVERS, "preload": ENGINES}
OF_STAGES = ("hold", "initiate", "preload")
"""What may be asked for with a stage's name; of a responder nothing in its setting is called."""
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
    """Whether there is such a request."""
    return name in LISTED[do] or do in OF_STAGES and name in STAGES


def takes(do: str, name: str) -> Takes:
    """What is known of a request that there is.

    Errors: ImportError, this host has not what it takes.
    """
    if name in LISTED[do]:
        return LISTED[do][name]
    return Takes(module_of(name).__name__)


# -- what a child does: one piece of work for each kind of request --------------------------------


def ask(request: protocol.Message, takes: Takes) -> Work:
    """A function's answer."""

    def work(tell: Tell, control_fd: int) -> None:
        tell({"answer": typed.to_plain(takes.carries_out(**request["arguments"]))})

    return work


def _peer(request: protocol.Message) -> Endpoint:
    return protocol.from_plain(Endpoint, request["peer"])


def hold(request: protocol.Message, takes: Takes) -> Work:
    """Something that is there until it is closed."""

    def work(tell: Tell, control_fd: int) -> None:
        peer, module = _peer(request), takes.imported()
        held = module.hold(protocol.from_plain(module.Setting, request["setting"]), peer)
        _keep(held, peer, tell, control_fd)

    return work


def respond(request: protocol.Message, takes: Takes) -> Work:
    """A stage's passive end, until it is closed."""

    def work(tell: Tell, control_fd: int) -> None:
        told, module = _peer(request), takes.imported()
        callers.expect(told.host)
        held = module.respond(protocol.from_plain(module.Setting, request["setting"]))
        _keep(held, told, tell, control_fd)

    return work


def _keep(held: Any, peer: Endpoint, tell: Tell, control_fd: int) -> None:
    signal.signal(signal.SIGTERM, _end)
    with held as endpoint:
        tell({"endpoint": protocol.endpoint_to_plain(endpoint, peer.access)})
        os.read(control_fd, 1)
    tell({"closed": True})


def observe(request: protocol.Message, takes: Takes) -> Work:
    """What was seen until it was closed."""

    def work(tell: Tell, control_fd: int) -> None:
        module = takes.imported()
        setting = protocol.from_plain(module.Setting, request["setting"])

        def window() -> Any:
            """The copy's time, or None: nobody wants to know."""
            line = os.read(control_fd, select.PIPE_BUF)
            return protocol.decode(line)["window"] if line else None

        tell({"observed": typed.to_plain(module.observe(setting, control_fd, window))})

    return work


def initiate(request: protocol.Message, takes: Takes) -> Work:
    """A stage's samples and details."""

    def work(tell: Tell, control_fd: int) -> None:
        module = takes.imported()
        setting = protocol.from_plain(module.Setting, request["setting"])
        signal.signal(signal.SIGTERM, _end)
        with contextlib.closing(module.initiate(setting, _peer(request))) as running:
            _drive(running, tell, control_fd)

    return work


def _end(*_: Any) -> None:
    """Ends a stage where it is: what it created goes in order."""
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
        # The window's ends wait until both hosts were read: what follows would be in it, and a
        # file server's process that ended before would not.
        if not os.read(control_fd, 1):
            return
