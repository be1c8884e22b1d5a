"""The gate: a report held against expectations and an earlier report; pure."""

from bottleneck.gate.judging import judge, nothing_to_judge

__all__ = ["judge", "nothing_to_judge"]
