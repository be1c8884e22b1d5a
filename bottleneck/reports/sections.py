"""The names of a diagnosis' sections, for options: what shows them is in console.py."""

from __future__ import annotations

ALL = "all"
NAMES = (
    *("copies", "limits", "evidence", "disks", "network", "smb", "small-files", "settings"),
    *("measurements", "skipped", ALL),
)
