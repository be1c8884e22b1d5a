"""Exit codes, and how an error becomes one."""

from __future__ import annotations

import sys

DONE = 0
INCOMPLETE = 3
"""Done, but a stage is missing or the verdict is inconclusive."""
USAGE = 64
UNREACHABLE = 69
INTERNAL = 70
REFUSED = 77
"""Login or permission."""
INTERRUPTED = 130

OF_REFUSAL = {
    "usage": USAGE,
    "unreachable": UNREACHABLE,
    "share": UNREACHABLE,
    "login": REFUSED,
    "permission": REFUSED,
    "space": INCOMPLETE,
}
"""Exit code of each kind of probes.stage.Refused."""


def complain(text: str) -> None:
    """One line on stderr, safe for a terminal."""
    from bottleneck.reports.safe import safe

    print(f"bottleneck: {safe(text)}", file=sys.stderr)
