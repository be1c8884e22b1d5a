"""Malformed fields are read as absent ones: no report makes a view fail."""

import pytest

from bottleneck.analysis import steps
from bottleneck.analysis.evidence.details import Cell, Details, Sockets
from probes.core import lenient


@pytest.mark.parametrize("junk", [None, "text", True, -1, float("nan"), 2**64, [], {}, [1, "x"]])
def test_junk_is_as_if_it_was_not_there(junk):
    fields = {"rtt_seconds": junk, "requests": junk, "flushes": junk, "limits": junk, "cache": junk}
    assert lenient.record(Details, fields) == lenient.record(Details, None) == Details()


def test_what_is_told_is_read_by_name():
    fields = {
        "cells": [{"depth": 8, "more": 1}, "x", {"depth": 0}],
        "failed_runs": ["it broke", 7],
        "limits": {"by": "network", "sender_seen": "yes"},
        "flushes": 0,
        "rtt_seconds": 1e-12,
    }
    record = lenient.record(Details, fields)
    assert record.cells == (Cell(depth=8.0), Cell())
    assert record.failed_runs == steps.texts(fields, "failed_runs") == ("it broke",)
    assert record.limits == Sockets(by="network")
    assert (record.flushes, record.rtt_seconds) == (0.0, None)
