"""Two reports of the same path, before and after: what changed, and whether it was foreseen."""

from bottleneck.analysis.changes.compare import compare, stage_key
from bottleneck.analysis.changes.found import Change, CopyChange, FactChange, Lift, RateChange

__all__ = ["Change", "CopyChange", "FactChange", "Lift", "RateChange", "compare", "stage_key"]
