"""Where a run's temporary folders lie on this host, and so where a clean-up looks for them.

Source: file-hierarchy(7): TMPDIR takes the place of /tmp and of /var/tmp alike.
"""

from __future__ import annotations

import os
import tempfile
from typing import Tuple

ON_DISK = "/var/tmp"


def on_disk() -> str:
    """For what has to lie on a disk, where /tmp may be memory: /var/tmp, or what TMPDIR names."""
    return tempfile.gettempdir() if os.environ.get("TMPDIR") else ON_DISK


def folders() -> Tuple[str, ...]:
    """All of them."""
    return tuple(dict.fromkeys((on_disk(), tempfile.gettempdir())))
