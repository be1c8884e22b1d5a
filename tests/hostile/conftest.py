"""The hostile ends stand beside their tests: they are programs, not a package."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
