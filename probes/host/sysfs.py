"""The files of /sys, each of which holds one value; some are kept from some users."""

from __future__ import annotations

from pathlib import Path


def word(path: Path) -> str | None:
    """A file's only word; None: not there, or the driver refuses (EINVAL without a link)."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None


def there(path: Path) -> bool:
    """Whether a file or folder is there and may be seen."""
    try:
        return path.exists()
    except OSError:
        return False
