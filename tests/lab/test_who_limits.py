"""It is told rightly who limits a stream, and only surely planted cases count."""

from __future__ import annotations

import pytest
import who_limits
from delay import missing
from limit_cases import CASES, QUICK, Case
from planted_flow import Ends, Looks, Path

from probes.sockets.limits import Glimpse


@pytest.mark.lab
def test_clear_cases_on_real_tcp_are_told_rightly() -> None:
    """All but one at most: other work on the machine can be a true cap."""
    if lacks := missing():
        pytest.skip("not run: " + "; ".join(lacks))
    judged = who_limits.measure_cases(QUICK, who_limits.QUICK_SECONDS, print)
    right, used = who_limits.right_and_used(judged)
    assert used >= len(QUICK) - 2
    assert right >= used - 1


def test_there_are_enough_cases_of_each_limit_and_each_is_another() -> None:
    assert len(CASES) >= who_limits.LEAST_CASES + 10
    assert len({case.name for case in CASES}) == len(CASES)
    assert {case.truth for case in CASES} == set(who_limits.TRUTHS)


def test_a_case_counts_only_where_its_plant_alone_explains_the_rate() -> None:
    case = next(each for each in QUICK if each.name.startswith("sender 20 ms 5 MB/s"))
    assert case.unsuitable(5e6, 40e6) == ""
    assert "without the plant" in case.unsuitable(5e6, 9e6)
    assert "planted for" in case.unsuitable(1e6, 40e6)
    window = next(each for each in CASES if each.name.startswith("receive-window 4 ms 20 KiB"))
    assert window.unsuitable(20 * 1024 / 0.004, 80e6) == ""
    assert "planted for" in window.unsuitable(20 * 1024 / 0.04, 80e6)


def test_without_its_plant_a_case_has_nothing_else_taken_away() -> None:
    for case in QUICK + CASES:
        path, ends = case.without_its_plant()
        if case.truth == "network":
            assert ends == case.ends, case.name
            assert path == Path(case.path.rtt_seconds, mtu_bytes=case.path.mtu_bytes)
            assert path != case.path
        else:
            assert path == case.path and ends != case.ends, case.name
            assert ends == Ends(case.ends.congestion_control)


def _case_result(truth: str, queue: int, free: float) -> who_limits.CaseResult:
    """5 MB/s; the writer waits where the queue has as much as the buffer, 100 kB."""
    figures = {
        **{"busy_seconds": 0.0, "receive_window_limited_seconds": 0.0},
        **{"send_buffer_limited_seconds": 0.0, "segment_bytes": 1448},
        **{"send_buffer_bytes": 100_000, "send_queue_bytes": queue},
    }
    looks = tuple(
        Glimpse(0.02 * i, {**figures, "received_bytes": 100_000 * i}, 0, queue) for i in range(20)
    )
    ends = Ends(source_bytes_per_second=5e6) if truth == "sender" else Ends()
    case = Case(truth, truth, Path(0.02, loss_ratio=0.01), ends)
    return who_limits.CaseResult(case, Looks(looks, looks), free)


def test_the_matrix_has_planted_against_told_of_the_cases_that_count() -> None:
    judged = [
        _case_result("sender", 0, 50e6),
        _case_result("network", 0, 50e6),
        _case_result("network", 100_000, 50e6),
        _case_result("network", 100_000, 6e6),
    ]
    assert [bool(each.why_not) for each in judged] == [False, False, False, True]
    assert who_limits.right_and_used(judged) == (2, 3)
    rows = {line.split()[0]: line.split()[1:] for line in who_limits.matrix(judged)[1:]}
    assert rows["sender"] == [".", ".", "1", ".", ".", "."]
    assert rows["network"] == ["1", ".", "1", ".", ".", "."]
