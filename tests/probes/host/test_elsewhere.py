"""Counters without /proc: through psutil, or a reason why not."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="operator"

import importlib
import os
import subprocess
import sys

import pytest

from probes.host import elsewhere
from probes.host.counters import Watched
from probes.host.usage import usage
from probes.stage import Unavailable


def test_two_readings_through_psutil_become_a_usage():
    pytest.importorskip("psutil")
    watched = Watched("lo", file_server=False)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        before = elsewhere.read_counters(watched, os.getpid())
        after = elsewhere.read_counters(watched, os.getpid())
        child.communicate(b"\n")
    told = usage(before, after)
    assert child.pid in {each.pid for each in after.processes}
    assert len(told.core_busy_ratios) == os.cpu_count()
    assert told.run_delay_seconds is None
    assert told.memory_total_bytes > 0


def test_without_psutil_the_remedy_is_told(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(Unavailable, match="install psutil"):
        elsewhere.read_counters(Watched(), os.getpid())
