"""A setting without sense or bound is refused by its stage, before anything is opened for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from probes.core.records import Endpoint
from probes.stages import (
    disk,
    latency,
    matrix,
    native_copy,
    small_files,
    smb_copy,
    smb_matrix,
    smb_multichannel,
    smb_tax,
    smbclient_copy,
    sweep,
    udp,
)

NAN = float("nan")
REQUESTS = smb_matrix.Setting("pull", "3.1.1", 1 << 20, 1.0)
COPY = smb_copy.Setting("pull.cached", "3.1.1", "memory", 1 << 20, 1.0)
DISK = disk.Setting("read", "uncached", "/tmp", "client", 1 << 20, 1.0, "ab")


@pytest.mark.parametrize(
    ("stage", "right", "wrongs"),
    [
        (latency, latency.Setting(), {"seconds": (0, -1, NAN)}),
        (sweep, sweep.Setting(), {"over": ["wifi"], "verb": ["both"], "seconds": (0.0, NAN)}),
        (
            matrix,
            matrix.Setting(),
            {"windows": [(), tuple(range(1, 40))], "streams": [(), (0,), (1000,)]}
            | {"verb": ["sideways"], "seconds": [0]},
        ),
        (
            udp,
            udp.Setting(),
            {"verb": ["sideways"], "seconds": (0, 601), "bytes_per_second": (0, 1e15)}
            | {"payload_bytes": (31, 70_000)},
        ),
        *(
            (stage, REQUESTS, {"verb": ["sideways"], "size_bytes": [0], "seconds": [0.0]})
            for stage in (smb_matrix, smb_multichannel)
        ),
        (
            small_files,
            small_files.Setting("pull", 40, 4096, "3.1.1", 1.0),
            {"verb": ["sideways"], "files": [0], "file_bytes": (0, 9 << 20)},
        ),
        (
            smb_tax,
            smb_tax.Setting("pull", "3.1.1", "plain", 1 << 20, 1.0),
            {"verb": ["sideways"], "security": [""]},
        ),
        (
            smb_copy,
            COPY,
            {
                "copy": ["steal.cached"],
                "end": ["nowhere"],
                "size_bytes": [0],
                "fill_source": [True],
            },
        ),
        (
            smbclient_copy,
            smbclient_copy.Setting("pull.cached", "3.1.1", 1 << 20, 1.0, "pushed-0"),
            {"copy": ("push", "pull.warm", "server.push.cached")},
        ),
        (
            native_copy,
            native_copy.Setting("pull.cached", "/tmp", "/tmp", 1 << 20, 1.0),
            {"copy": ["pull"], "size_bytes": [0]},
        ),
        (disk, DISK, {"verb": ["trim"], "pattern": ("none", "synced"), "cache": ["warm"]}),
        (disk, replace(DISK, verb="write"), {"pattern": ["file"]}),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_setting_without_sense_or_bound_is_refused(
    stage: Any, right: Any, wrongs: dict[str, Any]
) -> None:
    for name, values in wrongs.items():
        for value in values:
            with pytest.raises(ValueError, match=r"^no (such|disk stage)|only a push|a small file"):
                next(stage.initiate(replace(right, **{name: value}), Endpoint()))
