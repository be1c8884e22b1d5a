"""Whether a further look at a disk can explain a copy: else its time is the copies' own."""

from __future__ import annotations

from bottleneck import plan
from bottleneck.bench import Bench
from bottleneck.steps import bounds

NEAR_RATIO = 0.6
"""Of what its disk gives, from which on a copy may be held by it."""


def explains(bench: Bench, step: plan.DiskStep) -> bool:
    """Whether a step of the disk beyond its rate is worth its time in this run."""
    if plan.has_time_to_write(bench.options, alone=False):
        return True
    match step.pattern:
        case "file":
            return True
        case "zones":
            named = (bench.options.device, bench.options.file)
            if any(each is not None and each.side == step.side for each in named):
                return True
            return _near(bench, step.side)
        case "synced":
            return _forced(bench, step.side)
    return False


def _near(bench: Bench, side: plan.Side) -> bool:
    """Whether a copy ran near what the disk of a side reads or writes."""
    known = bounds.of_stages(bench)
    for step, rate in bounds.measured(bench):
        name = str(step.setting.get("copy", ""))
        if step.stage not in ("smb-copy", "native-copy") or step.setting.get("end") == "memory":
            continue
        if name.startswith("server."):
            continue
        verb, _, cache = name.rpartition(".")
        sender = "client" if verb.endswith("push") else "server"
        does = "write" if sender != side else "read"
        disk = known.get(f"{side}.{does}")
        if disk is not None and rate >= NEAR_RATIO * disk and (does, cache) != ("read", "cached"):
            return True
    return False


def _forced(bench: Bench, side: plan.Side) -> bool:
    """Whether a host is known to force each write to its disk."""
    config = (bench.samba_config or []) if side == "server" else []
    if any(each.get("option") == "sync always" for each in config):
        return True
    facts = bench.facts.get(side)
    options = facts.folder.mount_options if facts is not None and facts.folder is not None else None
    return "sync" in (options or "").split(",")
