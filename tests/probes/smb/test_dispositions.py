"""Every CREATE request of a run, as it leaves this host: what it may create, change or delete."""

from __future__ import annotations

import re
import struct
from collections import deque
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import pytest

from probes.files.leftovers import OnShare
from probes.smb import leftovers, run_folder
from probes.smb.frames import Wire
from probes.stages import small_files, smb_copy, smb_matrix

RUN, SEED, MIB = "0123456789abcdef" * 2, "5eed", 1 << 20
NT1 = "server min protocol = NT1"
OPEN, CREATE = 1, 2
WRITES = 0x40000000 | 0x10000000 | 0x02000000 | 0x0006
"""GENERIC_WRITE, GENERIC_ALL, MAXIMUM_ALLOWED, FILE_WRITE_DATA and FILE_APPEND_DATA."""
DELETES, DELETE_ON_CLOSE = 0x00010000, 0x1000
SHARE_DELETE = 0x4


@dataclass(frozen=True)
class OpenRequest:
    """One CREATE (MS-SMB2 2.2.13) or NT_CREATE_ANDX (MS-CIFS 2.2.4.64)."""

    name: str
    access: int
    sharing: int
    disposition: int
    options: int


def parse(message: bytes) -> OpenRequest | None:
    if message[:4] == b"\xfeSMB" and message[12:14] == b"\x05\0":
        access, _, sharing, disposition, options, offset, size = struct.unpack_from(
            "<IIIIIHH", message, 88
        )
        name = message[offset : offset + size].decode("utf-16-le")
        return OpenRequest(name, access, sharing, disposition, options)
    if message[:5] == b"\xffSMB\xa2":
        access, _, _, sharing, disposition, options = struct.unpack_from("<IQIIII", message, 48)
        # In UTF-16 or not, padded or not: none of ours has a sign beyond ASCII.
        name = message[83:].replace(b"\0", b"").decode("ascii")
        return OpenRequest(name, access, sharing, disposition, options)
    return None


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> list[OpenRequest]:
    """Every open that leaves this host from now on."""
    opens: list[OpenRequest] = []
    send = Wire.send

    def recorded(wire: Wire, parts: Any) -> None:
        opens.extend(filter(None, [parse(b"".join(map(bytes, parts)))]))
        send(wire, parts)

    monkeypatch.setattr(Wire, "send", recorded)
    return opens


@pytest.mark.parametrize("dialect", ["3.1.1", "smb1"])
def test_no_open_of_a_run_can_create_over_or_empty_what_is_there(
    share: Any, opens: list[OpenRequest], dialect: str
) -> None:
    usual: dict[str, Any] = {"dialect": dialect, "end": "memory", "seconds": 20.0, "seed": SEED}
    push = smb_copy.Setting("push.cached", size_bytes=MIB, **usual)
    steps: list[tuple[ModuleType, Any]] = [
        (smb_copy, replace(push, fill_source=True)),
        (smb_copy, push),
        (smb_copy, replace(push, copy="pull.cached")),
        (small_files, small_files.Setting("push", 5, 4096, dialect, 1.0, SEED)),
        (small_files, small_files.Setting("pull", 5, 4096, dialect, 1.0, SEED)),
        (smb_matrix, smb_matrix.Setting("push", dialect, MIB, 0.2, seed=SEED)),
    ]
    with share(NT1) as (peer, _, _):
        with run_folder.hold(run_folder.Setting(RUN, dialect, seed=SEED), peer) as endpoint:
            for module, setting in steps:
                deque(module.initiate(setting, endpoint), maxlen=0)
        with leftovers.hold(OnShare(0.0), peer):
            pass
    creates = [each for each in opens if each.disposition == CREATE]
    assert {each.disposition for each in opens} == {OPEN, CREATE}
    assert len(creates) >= 13 and all(RUN in each.name.rpartition("\\")[2] for each in creates)
    by_name = {each.name for each in opens if each.disposition == OPEN and each.access & WRITES}
    # The source is proven by its mark, a small file by its identity.
    assert all(re.search(rf"\\(source-|small-.*-){RUN}$", name) for name in by_name)
    deletes = [each for each in opens if each.access & DELETES or each.options & DELETE_ON_CLOSE]
    assert all(RUN in each.name.rpartition("\\")[2] for each in deletes)
    (folder,) = [each for each in creates if each.name.endswith(f"bottleneck-{RUN}")]
    assert not folder.sharing & SHARE_DELETE
