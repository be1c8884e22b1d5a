"""Runs one input through its target, as it would end without a fuzzer: `replay.py TARGET FILE`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]


def main() -> None:
    """Runs inputs through a target; its exceptions reach the terminal."""
    name, file = sys.argv[1:]
    importlib.import_module(name).one_input(Path(file).read_bytes())


if __name__ == "__main__":
    main()
