"""What a paced run or a transfer for comparison kept busy is no evidence about a copy."""

from __future__ import annotations

from bottleneck.analysis.diagnosis import diagnose

FULL = {
    "core_busy_ratios": (1.0, 1.0),
    "busiest_process_ratio": 1.0,
    "softirq_ratio": 0.3,
    "run_delay_seconds": 3.0,
}
DATAGRAMS = {
    "sent_datagrams": 1000,
    "received_datagrams": 1000,
    "lost_datagrams": 0,
    "loss_ratio": 0.0,
    "sent_bytes_per_second": 9e6,
    "pace_ratio": 1.0,
    "payload_bytes": 1448,
}


def judged(world, of_copy, of_datagrams):
    """Verdicts and ceilings of a run whose hosts were that busy during its copy, and beside it."""
    world.loopback("client", 2000)
    world.loopback("server", 2000)
    world.tcp("pull", 117.6)
    world.copy("pull.cached", 60, client=of_copy, server=of_copy)
    for verb in ("push", "pull"):
        setting = {"verb": verb}
        loads = {"client": of_datagrams, "server": of_datagrams}
        world.add("udp", "client", setting, 9, DATAGRAMS, **loads)
    (found,) = [each for each in diagnose(world.report()).copies if each.copy == "pull.cached"]
    return found.verdict, found.ceilings


def test_a_host_that_pacing_kept_busy_is_no_cpu_cap_of_a_copy(empty_world):
    idle = judged(empty_world(), {}, {})
    assert judged(empty_world(), {}, FULL) == idle
    busy = judged(empty_world(), FULL, {})
    assert busy[0] != idle[0]
