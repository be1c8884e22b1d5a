"""iperf3's transfer in the shape of the tcp stage."""

from probes import tcp_by_iperf3
from probes.drivers.iperf3 import Interval, Result
from probes.records import Endpoint, Sample
from probes.stage import Last

ENDED = Result(
    moved_bytes=900,
    elapsed_seconds=1.0,
    intervals=tuple(Interval(i / 10, i * 100) for i in range(1, 11)),
    retransmitted_segments=3,
    rtt_seconds=0.004,
    congestion_control="cubic",
    buffer_bytes=16384,
    version="iperf 3.12",
)


def test_the_last_sample_is_the_receivers_count(monkeypatch):
    asked = []
    monkeypatch.setattr(tcp_by_iperf3.iperf3, "run", lambda job: (asked.append(job), ENDED)[1])
    running = tcp_by_iperf3.initiate(
        tcp_by_iperf3.Setting("push", 2, seconds=1.0), Endpoint(host="nas")
    )
    samples = []
    while True:
        try:
            samples.append(next(running))
        except StopIteration as end:
            details = end.value
            break
    assert samples[0] == Sample(0.0, 0)
    assert samples[-1] == Last(1.0, 900)
    moved = [each.moved_bytes for each in samples]
    assert moved == sorted(moved)
    assert (asked[0].host, asked[0].port, asked[0].streams) == ("nas", 5201, 2)
    assert details["limits"] == {
        "by": "unknown",
        "retransmitted_segments": 3,
        "rtt_seconds_median": 0.004,
    }
    assert details["congestion_control"] == "cubic"
    assert details["engine"] == "iperf 3.12"


def test_windows_leave_the_start_out():
    first = Interval(0.1, 5)
    rates = tcp_by_iperf3.window_rates((first, *ENDED.intervals[1:], Interval(1.1, 1100)))
    assert [round(each) for each in rates] == [1000, 1000, 1000]
    assert tcp_by_iperf3.window_rates(ENDED.intervals[:5]) == []
