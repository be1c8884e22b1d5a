"""Request size x depth: what other clients would get on this path (stage smb-matrix)."""

from __future__ import annotations

from dataclasses import replace

from bottleneck.bench import Bench
from bottleneck.steps import source
from bottleneck.steps.allowance import dialect, seconds_for, thorough
from probes import smb_matrix
from probes.smb.pipe import IN_FLIGHT_LIMIT_BYTES
from probes.stage import Unavailable

USUAL_SECONDS = 2.5
GRACE_SECONDS = 20.0
"""Login, what is in flight when the time is over, and the look at what was written."""
LEAST_BYTES = 1 << 20


def measure_requests(bench: Bench) -> None:
    """Pulls; pushes too where there is time for both."""
    verbs = ("pull", "push") if thorough(bench, smb_matrix.NAME) else ("pull",)
    for verb in verbs:
        seconds = seconds_for(bench, smb_matrix.NAME, USUAL_SECONDS, parts=2 * len(verbs))
        if seconds is None:
            return
        _measure(bench, verb, seconds)


def _measure(bench: Bench, verb: str, seconds: float) -> None:
    wanted = smb_matrix.Setting(verb, dialect(bench), 0, seconds, bench.seed)
    step = bench.step(smb_matrix.NAME, wanted, "client")
    # how much of the file is used is not chosen before there is one
    step.setting.pop("size_bytes")
    with bench.outcome(step, f"requests {verb} {wanted.dialect}"):
        if verb == "pull":
            size = source.ready_bytes(bench, wanted.dialect)
        else:
            size = min(IN_FLIGHT_LIMIT_BYTES, source.room_bytes(bench))
        if size < LEAST_BYTES:
            raise Unavailable(source.NO_ROOM)
        peer = replace(bench.share, path="")
        setting = replace(wanted, size_bytes=size)
        bench.initiate(step, setting, peer, seconds + GRACE_SECONDS)
