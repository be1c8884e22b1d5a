"""The sweep: each buffer size counted by the receiver, with what its calls cost at both ends."""

import pytest

from probes.net import transfer
from probes.stages import sweep

HERE = "127.0.0.1"
KIB = 1 << 10


@pytest.mark.long
@pytest.mark.parametrize(
    ("over", "verb"), [("loopback", "push"), ("loopback", "pull"), ("tcp", "push"), ("tcp", "pull")]
)
def test_every_size_has_its_rate_calls_and_cpu_at_both_ends(run_stage, over, verb):
    setting = sweep.Setting(over, verb, 0.2, HERE)
    with sweep.respond(setting) as peer:
        samples, details = run_stage(sweep, setting, peer)
    assert samples[-1].moved_bytes > 0
    points = details["points"]
    assert [each["buffer_bytes"] for each in points] == list(sweep.BUFFERS)
    for each in points:
        assert each["passes"] == 1
        assert each["calls"] > 0
        low, high = each["low_bytes_per_second"], each["high_bytes_per_second"]
        assert 0 < low <= each["bytes_per_second"] <= high
        assert each["seconds_per_call"] == pytest.approx(1 / each["calls_per_second"])
    # A transfer of a few ticks of the kernel's clock may not know its CPU time.
    for name in ("cpu_seconds", "sender_cpu_seconds_per_byte", "receiver_cpu_seconds_per_byte"):
        assert any(each.get(name, 0) > 0 for each in points)
    assert details["knee_bytes"] in sweep.BUFFERS
    assert details["congestion_control"]
    assert details["limits"]["by"]
    assert ("rtt_seconds" in details) == (over == "tcp")


def test_the_passes_of_a_size_are_apart_and_their_median_is_told(
    run_stage, payload_clock, monkeypatch
):
    tried = []

    def counted(shape, peer):
        tried.append(shape)
        return (yield from real(shape, peer))

    real = transfer.initiate
    monkeypatch.setattr(transfer, "initiate", counted)
    monkeypatch.setattr(sweep, "BUFFERS", (16 * KIB, 256 * KIB))
    setting = sweep.Setting("loopback", "push", 0.45)
    with sweep.respond(setting) as peer:
        _, details = run_stage(sweep, setting, peer)
    small, large = 16 * KIB, 256 * KIB
    sizes = [shape.buffer_bytes for shape in tried]
    best = max(details["points"], key=lambda each: each["bytes_per_second"])["buffer_bytes"]
    assert sizes == [small, large, large, small, small, large, best]
    assert [shape.seconds for shape in tried] == [pytest.approx(0.15)] * 6 + [0.45]
    assert [each["passes"] for each in details["points"]] == [3, 3]


def test_a_transfer_that_breaks_costs_its_own_pass_alone(run_stage, payload_clock, monkeypatch):
    tried = []

    def failing(shape, peer):
        tried.append(shape.buffer_bytes)
        if shape.buffer_bytes == 64 * KIB or tried.count(16 * KIB) == 1:
            raise RuntimeError("nothing arrived after the warm-up")
        return (yield from real(shape, peer))

    real = transfer.initiate
    monkeypatch.setattr(transfer, "initiate", failing)
    monkeypatch.setattr(sweep, "BUFFERS", (16 * KIB, 64 * KIB))
    setting = sweep.Setting("loopback", "push", 0.3)
    with sweep.respond(setting) as peer:
        _, details = run_stage(sweep, setting, peer)
        (point,) = details["points"]
        assert (point["buffer_bytes"], point["passes"]) == (16 * KIB, 1)
        monkeypatch.setattr(sweep, "BUFFERS", (64 * KIB,))
        with pytest.raises(RuntimeError, match="nothing arrived"):
            run_stage(sweep, setting, peer)


def test_a_short_path_gets_every_size_three_times():
    assert sweep.plan_passes(0.45, 0.0002) == (sweep.BUFFERS, 3, pytest.approx(0.15))


def test_a_longer_path_gets_fewer_passes_then_fewer_sizes_and_never_too_few():
    assert sweep.plan_passes(0.45, 0.01) == (sweep.BUFFERS, 1, 0.45)
    sizes, passes, seconds = sweep.plan_passes(0.45, 0.02)
    assert (passes, seconds) == (1, 0.6)
    assert set(sizes) < set(sweep.BUFFERS) and list(sizes) == sorted(sizes)
    assert len(sizes) * seconds <= len(sweep.BUFFERS) * 0.45
    fewest, _, longest = sweep.plan_passes(0.1, 1.0)
    assert fewest == (512, 8 * KIB, 64 * KIB, 256 * KIB)
    assert longest == sweep.LONGEST_SECONDS


@pytest.mark.parametrize("seconds", [0.01, 0.15, 0.45, 3.0, 60.0])
@pytest.mark.parametrize("trip", [0.0, 0.003, 0.04, 0.3])
def test_no_transfer_is_longer_than_the_responder_lets_it_be(seconds, trip):
    _, passes, each = sweep.plan_passes(seconds, trip)
    assert passes >= 1
    assert sweep.SHORTEST_SECONDS <= each <= sweep.LONGEST_SECONDS


def test_a_loopback_sweep_is_open_to_this_host_alone():
    with sweep.respond(sweep.Setting("loopback", address="192.0.2.1")) as peer:
        assert peer.host == HERE
