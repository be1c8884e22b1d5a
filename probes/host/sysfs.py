"""The files of /proc and /sys that hold a few words; some are kept from some users."""

from __future__ import annotations

from pathlib import Path


def text(path: Path | str) -> str:
    """A file's text; empty where it is not there or cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


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
