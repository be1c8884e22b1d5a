"""The disk under a folder, or a block device, by the system's fio: one pattern of use a step.

Each pattern is a file of its own in probes/storage/; their common details are added here.
"""

from __future__ import annotations

import importlib
from contextlib import closing

from probes.core.records import Details, Endpoint
from probes.core.stage import Last, Running, Stage, no_agent
from probes.files import folders, layers
from probes.host import cgroup
from probes.programs import fio
from probes.storage import Setting, foreign_io
from probes.system import tools

__all__ = ["STAGE", "Setting", "initiate", "respond"]

STAGE = Stage(
    "disk",
    measures="what limits a disk",
    usual_seconds=3.0,
    writes=True,
    speaks_of=("disk",),
    refines=("disk/read", "disk/write"),
)

ROOMS = {
    "sequential": ("probes.storage.sequential", "measure"),
    "zones": ("probes.storage.zones", "measure"),
    "file": ("probes.storage.named_file", "measure"),
    "synced": ("probes.storage.growing_write", "measure_synced"),
    "sustained": ("probes.storage.growing_write", "measure_sustained"),
}
"""Module and function that measure each pattern."""
CHOSEN = ("probes.storage.user_pattern", "measure")
"""Module and function for requests that the user set, whatever the pattern."""
VERBS = {
    "sequential": ("read", "write"),
    "random": ("read", "write"),
    "zones": ("read", "write"),
    "file": ("read",),
    "synced": ("write",),
    "sustained": ("write",),
}
BY_FIO = ("sequential", "zones", "random")
"""Patterns that fio carries out; the others' loops are our own."""
WITHOUT_FIO = ("probes.storage.unbuffered", "measure")
"""Module and function for the sequential pattern where this tool cannot use fio."""
LOOKED_AT = ("sequential", "zones", "file", "random")
"""Patterns before whose uncached reads others' I/O is measured."""
LOOK_FROM_SECONDS = 1.0
"""Shortest time of a step that includes the measurement of others' I/O."""


respond = no_agent


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Measures the disk by the setting's pattern; samples are payload read, or made durable.

    peer.path is the file to read. The details hold at least stack, layers, device, zones,
    seek_seconds (None where the pattern has none), cache, the device's counts, fio_version
    (None: not measured by fio) and, where a control group sets some, limits.
    Errors: ValueError (no such verb, cache or pattern), Unavailable (fio missing, no room, no file
    to read, no right to the device), Refused (no such folder, no right to write in it),
    fio.FioFailed.
    """
    if setting.verb not in VERBS.get(setting.pattern, ()) or setting.cache not in (
        "uncached",
        "cached",
    ):
        raise ValueError(f"no disk stage {setting.pattern} {setting.verb} {setting.cache}")
    no_fio = setting.pattern == "sequential" and not setting.is_custom and not tools.TAKE_OPEN_FILES
    fio_version = fio.version() if setting.pattern in BY_FIO and not no_fio else None
    if setting.device:
        device = layers.kernel_name(setting.device) or None
        below = layers.device_layers(device) if device else []
        stack = [each["name"] for each in below]
    else:
        device = folders.folder_facts(setting.folder).device
        below = layers.layers(setting.folder)
        stack = folders.stack(setting.folder)
    quiet = None
    looked_at = setting.pattern in LOOKED_AT and setting.seconds >= LOOK_FROM_SECONDS
    if looked_at and (setting.verb, setting.cache) == ("read", "uncached"):
        quiet = foreign_io.quiet(device)
    module, function = CHOSEN if setting.is_custom else ROOMS[setting.pattern]
    module, function = WITHOUT_FIO if no_fio else (module, function)
    measure = getattr(importlib.import_module(module), function)
    details = yield from _count_device(measure(setting, peer), setting.verb, device)
    common: Details = {
        "fio_version": fio_version,
        "stack": stack,
        "layers": below,
        "device": device,
        "seek_seconds": None,
        "cache": None,
    }
    if quiet is not None:
        common["before"] = quiet
    limits = cgroup.io_limits(device)
    if limits is not None:
        common["limits"] = limits
    return {**common, **details}


def _count_device(running: Running, verb: str, device: str | None) -> Running:
    """Yields the pattern's samples; returns its details and the device's counts meanwhile."""
    opened = closed = None
    moved_bytes = 0
    with closing(running):
        while True:
            try:
                each = next(running)
            except StopIteration as end:
                details: Details = end.value
                break
            if opened is None:
                opened = foreign_io.look(device)
            if isinstance(each, Last):
                closed, moved_bytes = foreign_io.look(device), each.moved_bytes
            yield each
    if opened is None or closed is None:
        return details
    payload_bytes = {"written_bytes" if verb == "write" else "read_bytes": moved_bytes}
    return {**foreign_io.counts(device, opened, closed, **payload_bytes), **details}
