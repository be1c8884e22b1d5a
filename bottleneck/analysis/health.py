"""Whether nothing is wrong: all four copies fill a link that is as fast as its interfaces."""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck.analysis import steps
from bottleneck.analysis.finding import OWN_COPIES, CopyDiagnosis
from bottleneck.analysis.interface_facts import interfaces
from bottleneck.analysis.model import looks_like
from bottleneck.report import Report
from bottleneck.units import link_text

LEAST_BITS_PER_SECOND = 1e9
"""Of a link that nobody has to excuse today."""
LEAST_CONFIDENCE = 0.7
OFFERS_RATIO = 1.1
"""An interface above this share of the link offers more than the path gives."""


def healthy(report: Report, headline: CopyDiagnosis, found: Sequence[CopyDiagnosis]) -> str:
    """That all four copies use the whole link; empty: they do not, or that is unknown."""
    own = {each.copy: each for each in reversed(found) if each.dialect == headline.dialect}
    if any(name not in own for name in OWN_COPIES):
        return ""
    mtu = steps.mtu_bytes(report)
    links = set()
    for name in OWN_COPIES:
        verdict = own[name].verdict
        limit = verdict.ceiling_bytes_per_second
        if verdict.named != ("network", "path", "link-rate") or limit is None:
            return ""
        match = looks_like(limit, mtu)
        if match is None or verdict.confidence < LEAST_CONFIDENCE:
            return ""
        links.add(match.bits_per_second)
    offered = [link.rate_bits_per_second or 0 for _, link in interfaces(report) if not link.virtual]
    bits = max(links)
    fits = len(links) == 1 and bits >= LEAST_BITS_PER_SECOND
    if not fits or max(offered, default=0) > OFFERS_RATIO * bits:
        return ""
    details = {own[name].verdict.detail for name in OWN_COPIES}
    shaped = f", {min(details).partition(' on ')[0]}" if all(details) else ""
    return f"all four copies use the full {link_text(bits)} link{shaped}"
