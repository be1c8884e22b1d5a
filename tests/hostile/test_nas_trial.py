"""A few of the cases of nas.py, drawn by a fixed seed: nobody is harmed there."""

from __future__ import annotations

import re

import nas
import pytest

HARM = re.compile(r"^left|failed logins|processes left|password was printed|a traceback")


@pytest.mark.long
@pytest.mark.skipif(bool(nas.list_lacks()), reason=f"NOT RUN: needs {nas.list_lacks()}")
def test_a_nas_is_not_harmed() -> None:
    for case in nas.draw("", 6, 61):
        faults = nas.judge(case, verbose=False)
        assert not [each for each in faults if HARM.search(each)], case.name
