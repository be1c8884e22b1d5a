"""Report to Diagnosis, by pure functions: the same report always gives the same words."""

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import Diagnosis

__all__ = ["Diagnosis", "diagnose"]
