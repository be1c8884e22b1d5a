"""Every input of every corpus, hard to read once, is read; see run.py."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.append(str(HERE))
CORPORA = sorted((HERE / "corpus").iterdir())


@pytest.mark.long
@pytest.mark.parametrize("corpus", CORPORA, ids=lambda path: path.name)
def test_every_input_ends_as_its_target_says_that_it_may(corpus):
    target = importlib.import_module(corpus.name)
    for path in sorted(corpus.iterdir()):
        try:
            target.one_input(path.read_bytes())
        except Exception as error:
            raise AssertionError(f"{corpus.name}/{path.name}") from error


def test_every_target_has_a_corpus():
    source = (HERE / "run.py").read_text(encoding="utf-8")
    targets = {path.stem for path in HERE.glob("*.py") if f'"{path.stem}"' in source}
    assert {each.name for each in CORPORA} == targets
