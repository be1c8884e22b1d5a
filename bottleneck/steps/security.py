"""The same bytes plain, signed and encrypted: what security costs (stage smb-tax)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import product

from bottleneck import plan
from bottleneck.bench import Bench
from bottleneck.report import Step
from bottleneck.steps import files
from bottleneck.steps.turns import seconds_for
from probes import smb_tax
from probes.records import Skipped
from probes.smb.session import SECURITIES
from probes.stage import NO_ROOM, Unavailable

MOST_ROUNDS = 3
COPIES_A_ROUND = 2 * len(SECURITIES)
LOGIN_SECONDS = 0.1
"""Login, open, and the look at what arrived: what a copy costs beside its transfer."""
LEAST_SECONDS = 0.1
MOST_BYTES = 256 * plan.MIB
DEADLINE_TIMES = 8.0
"""How many times the time that was planned a copy may take: encryption may cost so much."""
LEAST_DEADLINE_SECONDS = 3.0
GRACE_SECONDS = 30.0


@dataclass
class _Taxed:
    """What the copies so far have taught."""

    copy_seconds: float
    sizes: dict[str, int] = field(default_factory=dict)
    """By verb, the same for every security."""
    denied: dict[str, str] = field(default_factory=dict)
    """By security, why the server does not allow it."""


def measure_security(bench: Bench) -> None:
    """Rounds of all six copies, forth and back in turn: what drifts hits each security alike.

    What the server does not allow is a note; it is a Skipped step where this stage is all that
    was asked for.
    """
    seconds = seconds_for(bench, smb_tax.STAGE, smb_tax.STAGE.usual_seconds, parts=2)
    if seconds is None:
        return
    if files.room_bytes(bench) < files.FIRST_BYTES:
        for security, verb in product(SECURITIES, smb_tax.VERBS):
            bench.ledger.end(_step(bench, verb, security), Skipped(NO_ROOM))
        return
    until = time.monotonic() + seconds
    taxed = _Taxed(max(LEAST_SECONDS, seconds / COPIES_A_ROUND / 2 - LOGIN_SECONDS))
    for number in range(MOST_ROUNDS):
        began = time.monotonic()
        for security in SECURITIES if number % 2 == 0 else SECURITIES[::-1]:
            for verb in smb_tax.VERBS:
                if security not in taxed.denied:
                    _copy(bench, verb, security, taxed)
                elif bench.alone(smb_tax.STAGE.name):
                    reason = taxed.denied[security]
                    bench.ledger.end(_step(bench, verb, security), Skipped(reason))
        now = time.monotonic()
        if now + (now - began) > until:
            return


def _setting(bench: Bench, verb: str, security: str) -> smb_tax.Setting:
    return smb_tax.Setting(verb, str(bench.share.facts["dialect"]), security, 0, 0.0, bench.seed)


def _step(bench: Bench, verb: str, security: str) -> Step:
    """The step of a copy, without what is chosen on the way."""
    return bench.step(smb_tax.STAGE.name, _setting(bench, verb, security), "client")


def _copy(bench: Bench, verb: str, security: str, taxed: _Taxed) -> None:
    """One run of one copy."""
    step = _step(bench, verb, security)
    deadline = max(LEAST_DEADLINE_SECONDS, DEADLINE_TIMES * taxed.copy_seconds)
    # a server that insists on its security is well kept: that is no stage missing
    optional = not bench.alone(smb_tax.STAGE.name)
    with bench.outcome(step, f"security {security} {verb}", optional):
        if verb not in taxed.sizes:
            taxed.sizes[verb] = _size(bench, verb, taxed.copy_seconds)
        setting = replace(
            _setting(bench, verb, security), size_bytes=taxed.sizes[verb], seconds=deadline
        )
        peer = replace(bench.share, path="")
        try:
            bench.initiate(step, setting, peer, deadline + GRACE_SECONDS)
        except Unavailable as error:
            taxed.denied[security] = str(error)
            raise


def _size(bench: Bench, verb: str, seconds: float) -> int:
    """Bytes that a plain copy moves in about that time; what file and share have room for."""
    spoken = str(bench.share.facts["dialect"])
    held = files.ready_bytes(bench, spoken)
    rate = held / files.FILL_SECONDS
    for step in bench.ledger.steps:
        setting = step.setting
        if step.stage == "smb-copy" and (setting["end"], setting["dialect"]) == ("memory", spoken):
            told = bench.ledger.rate(step)
            if told is not None and setting["copy"].startswith(verb):
                rate = told
    most = held if verb == "pull" else files.room_bytes(bench)
    size = min(most, MOST_BYTES, max(plan.MIB, int(rate * seconds)))
    return size // plan.MIB * plan.MIB or size
