"""network/delay: a copy ends while TCP still grows its window, on a path with a long round trip."""

from __future__ import annotations

from bottleneck.analysis.claim import Cause

REMEDY = "Copy small files in parallel or as one archive, or shorten the path"
CAUSE = Cause("network", "delay", "delay", stays=True, remedy=REMEDY)
