"""The lab's modules stand beside its tests: it is a program (run.py), not a package."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
