"""Log: the runs of a step as one outcome, with nothing lost that went wrong in any of them."""

import pytest

from bottleneck.report.report import Step
from bottleneck.run.log import Log, Repeat
from probes.core.records import Failed, Measured, Sample, Skipped, Usage

COPY = Step("smb-copy", {"copy": "pull.uncached"}, "client")
IDLE = Usage(1.0, (0.1,), 0.1, 0.0, 0.0, 0.1, 0.1, 0.0, *(None,) * 12)


def run_of(rate, **details):
    return Repeat((Sample(0.0, 0), Sample(1.0, rate)), IDLE, None, details)


def outcome(*passes, ends=()):
    """The outcome of the passes, and of the ends after them."""
    log = Log()
    for each in passes:
        log.add(COPY, each)
    for end in ends:
        log.add(COPY, end)
    ((_, last),) = log.entries()
    return last


def proof(proven, ratio_before=0.0):
    return {"side": "server", "requested": "uncached", "proven": proven, "before": ratio_before}


@pytest.mark.parametrize("unproven", [0, 1, 2])
def test_a_cache_is_proven_only_where_each_run_proved_it(unproven):
    passes = [run_of(10 * index, cache=proof(index != unproven, index)) for index in range(3)]
    pooled = outcome(*passes)
    assert pooled.details["cache"] == proof(False, 1)
    assert passes[1].details["cache"]["proven"] is (unproven != 1), "a pass stays as it was"


def test_a_stage_without_a_cache_gets_none():
    both = outcome(run_of(1, cache=proof(True)), run_of(2, cache=proof(True)))
    assert both.details["cache"]["proven"]
    assert not outcome(run_of(1, cache=proof(True)), run_of(2)).details["cache"]["proven"]
    assert outcome(run_of(1)).details == {}
    assert outcome(run_of(1, cache=None)).details == {"cache": None}
    mixed = outcome(run_of(1, cache=proof(True)), run_of(2, cache=None))
    assert mixed.details["cache"]["proven"] is False


def test_hashes_are_right_only_where_each_is():
    assert outcome(run_of(1, hash_ok=True), run_of(2, hash_ok=False)).details["hash_ok"] is False
    assert outcome(run_of(1, hash_ok=None), run_of(2, hash_ok=False)).details["hash_ok"] is False
    # nobody could look at it: neither right nor altered
    assert outcome(run_of(1, hash_ok=None), run_of(2, hash_ok=True)).details["hash_ok"] is None


def test_runs_that_failed_beside_measured_ones_are_told():
    pooled = outcome(run_of(1), ends=(Failed("nas: reset"), Failed("nas: gone")))
    assert isinstance(pooled, Measured)
    assert pooled.details["failed_runs"] == ["nas: reset", "nas: gone"]
    assert outcome(run_of(1), ends=(Skipped("no time"),)).details == {}
    assert outcome(ends=(Failed("nas: reset"), Failed("nas: gone"))) == Failed("nas: reset")


def test_a_step_says_why_it_was_made_and_why_again():
    log = Log()
    log.add(COPY, run_of(10), "the copy as a user makes it")
    log.add(COPY, run_of(11), "the copy as a user makes it")
    log.add(COPY, run_of(30), "its runs vary widely")
    ((step, _),) = log.entries()
    assert step.why == "the copy as a user makes it; then its runs vary widely"
    assert step == COPY, "the reason is no part of what a step is"


def test_the_latest_run_of_a_step_is_the_one_that_was_made_last():
    log = Log()
    assert log.latest(COPY) is None
    log.add(COPY, Failed("broke"))
    assert log.latest(COPY) is None
    for rate in (30, 10, 20):
        log.add(COPY, run_of(rate))
    latest = log.latest(COPY)
    assert latest is not None and latest.run[-1].moved_bytes == 20
