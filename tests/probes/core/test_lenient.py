"""What is malformed is as if it was not there: no report makes a view fail."""

import pytest

from bottleneck.analysis import steps
from bottleneck.analysis.evidence.details import Cell, Details, Sockets
from probes.core import lenient


@pytest.mark.parametrize("junk", [None, "text", True, -1, float("nan"), 2**64, [], {}, [1, "x"]])
def test_junk_is_as_if_it_was_not_there(junk):
    told = {"rtt_seconds": junk, "requests": junk, "flushes": junk, "limits": junk, "cache": junk}
    assert lenient.record(Details, told) == lenient.record(Details, None) == Details()


def test_what_is_told_is_read_by_name():
    told = {
        "cells": [{"depth": 8, "more": 1}, "x", {"depth": 0}],
        "failed_runs": ["it broke", 7],
        "limits": {"by": "network", "sender_seen": "yes"},
        "flushes": 0,
        "rtt_seconds": 1e-12,
    }
    found = lenient.record(Details, told)
    assert found.cells == (Cell(depth=8.0), Cell())
    assert found.failed_runs == steps.texts(told, "failed_runs") == ("it broke",)
    assert found.limits == Sockets(by="network")
    assert (found.flushes, found.rtt_seconds) == (0.0, None)
