"""Measures the cost of security: a copy plain, signed and encrypted, from and to memory.

The copy is that of smb-copy, without FLUSH: the disk's time would hide the CPU's. Runs on the
client only (Python 3.11).
"""

from __future__ import annotations

from dataclasses import dataclass

from probes.core.field_types import Seconds, Size, Text
from probes.core.records import Endpoint
from probes.core.stage import Running, Stage, no_agent
from probes.smb.session import SECURITIES
from probes.stages import smb_copy

STAGE = Stage(
    "smb-tax",
    measures="the cost of signing and encryption",
    usual_seconds=3.0,
    needs=("share",),
    writes=True,
    optional=True,
    speaks_of=("smb/signing", "smb/encryption", "cpu"),
    refines=("cpu/one-core", "cpu/all-cores", "network/inferred"),
    varying=("size_bytes", "seconds"),
)

VERBS = ("pull", "push")


@dataclass(frozen=True)
class Setting:
    """Direction, dialect and security of the copy."""

    verb: Text
    """pull: the run's source file; push: a new file, removed at the end."""
    dialect: Text
    security: Text
    """One of probes.smb.session.SECURITIES."""
    size_bytes: Size
    seconds: Seconds
    """Deadline of this one run, from the opening of its window."""
    seed: Text = ""
    """Seed of the payload, hex."""


respond = no_agent


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Makes the copy once with that security and yields its samples.

    peer as in smb-copy. Returns smb-copy's details; signing and encryption are those really
    used. Raises Unavailable where the server does not allow the security, Refused, SmbError, and
    ValueError for a setting that makes no sense.
    """
    if setting.verb not in VERBS or setting.security not in SECURITIES:
        raise ValueError(f"no such copy: {setting.verb}, {setting.security}")
    copy = smb_copy.Setting(
        copy=f"{setting.verb}.cached",
        dialect=setting.dialect,
        end="memory",
        size_bytes=setting.size_bytes,
        seconds=setting.seconds,
        seed=setting.seed,
        security=setting.security,
        flushed=False,
    )
    return (yield from smb_copy.initiate(copy, peer))
