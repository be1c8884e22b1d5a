"""`bottleneck agent`: one agent over stdin and stdout."""

from __future__ import annotations


def agent() -> int:
    """Serve one agent over stdin and stdout; it ends when its input closes."""
    from bottleneck import agent as served

    served.main()
    return 0
