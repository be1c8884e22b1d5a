"""With a server's counters (--metrics), the client's view of a copy includes that end as well.

Recorded in worlds of the lab, with node_exporter on the server.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck.analysis import steps
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.facts.counters import disk_counted
from probes.core.records import Measured
from tests import stored_reports

KEPT = Path(__file__).parents[2] / "data" / "lab" / "metrics"
DISK, LINK, CORE = "disk/server/write", "network/path/link-rate", "cpu/client/one-core"
NOT_NAMED = "unknown/inconclusive"


def verdict_of(report, copy):
    (one,) = (c for c in diagnose(report).copies if (c.copy, c.dialect) == (copy, "3.1.1"))
    return one.verdict.words, one.verdict.confidence


def with_server(report, **changes):
    """The report with its server's use of resources changed; none: without it."""
    entries = []
    for step, outcome in report.entries:
        changed = outcome
        if isinstance(outcome, Measured) and outcome.responder is not None:
            usage = replace(outcome.responder, **changes) if changes else None
            changed = replace(outcome, responder=usage)
        entries.append((step, changed))
    return replace(report, entries=tuple(entries))


@pytest.mark.parametrize(
    ("world", "copy", "verdict", "client_verdict"),
    [
        ("disc-outer", "push.uncached", (DISK, 0.9), (DISK, 0.58)),
        ("disc-busy", "push.uncached", ("disk/server/contention", 0.9), (DISK, 0.58)),
        ("busy-server-85", "push.cached", ("cpu/server/contention", 0.58), (NOT_NAMED, 0.0)),
        # The client's own core was nearly full, too: not named with certainty any more.
        ("busy-server-85", "pull.cached", (CORE, 0.58), (CORE, 0.85)),
        ("link-100", "push.cached", (LINK, 0.9), (LINK, 0.9)),
    ],
)
def test_the_servers_counters_name_what_the_client_cannot_see(world, copy, verdict, client_verdict):
    report = stored_reports.load(KEPT / f"{world}.json.gz")
    assert report.server is None
    assert verdict_of(report, copy) == verdict
    assert verdict_of(with_server(report), copy) == client_verdict


def test_a_full_core_of_the_server_is_not_named_with_certainty():
    """Whose work it was is not in the counters: others' may have begun with the copy."""
    report = stored_reports.load(KEPT / "busy-server-85.json.gz")
    cores = {
        "core_busy_ratios": (1.0, 0.05),
        "busiest_process_ratio": 1.0,
        "other_cpu_seconds": 0.0,
    }
    one_core = with_server(report, **cores)
    assert verdict_of(one_core, "pull.cached") == ("cpu/server/one-core", 0.65)
    with_agent = replace(one_core, server=report.client)
    assert verdict_of(with_agent, "pull.cached")[1] > 0.65


@pytest.mark.parametrize(
    ("busy", "waiting", "use"),
    [(0.9, 0.9, 0.9), (0.0, 0.0, 0.0), (0.0, 0.9, None), (0.0, None, None), (None, 0.0, None)],
)
def test_a_disk_without_io_in_flight_is_not_believed_to_be_idle_where_tasks_wait(
    busy, waiting, use
):
    """A limit before the device, as of a cgroup, holds I/O back that is not in flight yet."""
    report = stored_reports.load(KEPT / "disc-outer.json.gz")
    report = with_server(report, device_busy_ratio=busy, io_waiting_ratio=waiting)
    copy = next(each for each in steps.copies(report) if each.step is not None)
    facts = disk_counted(report, copy, "server")
    assert [each.level.median for each in facts] == ([] if use is None else [use])
    assert not disk_counted(report, copy, "client")
    assert not disk_counted(replace(report, server=report.client), copy, "server")
