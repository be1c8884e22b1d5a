"""The latency stage: every way of a message timed, its line fitted or refused, in its time."""

import socket
import time

import pytest

from probes.net import exchange, warm
from probes.stages import latency
from tests import living

HERE = "127.0.0.1"
SHORT = latency.Setting(0.5, HERE)


@pytest.fixture
def fake_time(monkeypatch):
    """The stage's time passes as it looks at its clock, and not while this host is kept waiting."""
    clock = living.FakeClock(living.deadline_in(0.0), step=0.001)
    for module in (latency, warm):
        monkeypatch.setattr(module, "time", clock)


def check(samples, details):
    """Checks what holds on every path."""
    assert samples[-1].elapsed_seconds > 0
    moved_bytes = [each.moved_bytes for each in samples]
    assert moved_bytes == sorted(moved_bytes) and moved_bytes[-1] > 0
    for row in details["table"]:
        assert row["message_bytes"] in exchange.DECADES
        assert row["count"] >= 5
        assert row["low_seconds"] <= row["seconds"] <= row["high_seconds"]
        assert ("p95_seconds" in row) == (row["count"] >= 20)
    ways = [(r["message_bytes"], r["connection"], r["round_trips"]) for r in details["table"]]
    assert len(set(ways)) == len(ways)
    assert {(1, "cold", trips) for trips in (0, 1, 2)} <= set(ways)
    assert (1, "warm", 1) in ways
    facts = details["percentiles"]
    times = [facts[f"p{n}_seconds"] for n, count in exchange.PERCENTILES if facts["count"] >= count]
    assert times and times == sorted(times)
    assert details["nagle"]["ratio"] == pytest.approx(
        details["nagle"]["seconds"] / details["nagle"]["plain_seconds"]
    )
    fitted = details["fit"]
    if "refused" in fitted:
        assert "latency_seconds" not in fitted
    else:
        product = fitted["latency_seconds"] * fitted["bandwidth_bytes_per_second"]
        # Of two lines, half of the second's rate may lie on either.
        assert fitted["n_half_bytes"] == pytest.approx(product) or "pieces" in fitted
        assert fitted["worst_residual_ratio"] <= 0.15


@pytest.mark.long
def test_on_one_host_all_of_the_table_is_there(run_stage):
    with latency.respond(latency.Setting(2.0, HERE)) as peer:
        samples, details = run_stage(latency, latency.Setting(2.0, HERE), peer)
    check(samples, details)
    ways = {(r["message_bytes"], r["connection"], r["round_trips"]) for r in details["table"]}
    assert {(size, "warm", trips) for size in exchange.DECADES for trips in (1, 2)} <= ways
    assert {each[0] for each in ways if each[1] == "cold"} >= {1, 1_000_000}
    assert details["congestion_control"]
    assert "cold_trouble" not in details


@pytest.mark.long
def test_on_a_long_path_the_planted_delay_is_in_every_time(lab_path, respond_at, run_stage):
    """And a fit, where there is one, is of that path; benchmarks/latency_fit.py holds it to it."""
    setting = latency.Setting(2.0, "10.91.8.2")
    with (
        lab_path(0.01, 12.5e6, mtu_bytes=1500) as between,
        respond_at(latency, between.server, setting) as peer,
        between.client.entered(),
    ):
        began = time.monotonic()
        samples, details = run_stage(latency, setting, peer)
        elapsed = time.monotonic() - began
    check(samples, details)
    assert elapsed < setting.seconds + warm.GRACE_SECONDS
    for row in details["table"]:
        trips = row["round_trips"] + (row["connection"] == "cold")
        carried = row["round_trips"] * max(0, row["message_bytes"] - 65_536) / 12.5e6
        assert row["low_seconds"] >= 0.02 * trips + carried
    # Held back until the head is acknowledged: one round trip more, whoever delays that.
    assert details["nagle"]["seconds"] >= 0.04
    assert details["segment_bytes"] == 1448


@pytest.mark.long
def test_sizes_that_a_slow_path_has_no_time_for_are_left_out_and_the_stage_ends(
    lab_path, respond_at, run_stage
):
    setting = latency.Setting(0.5, "10.91.8.2")
    with (
        lab_path(0.01, 0.3e6, mtu_bytes=1500) as between,
        respond_at(latency, between.server, setting) as peer,
        between.client.entered(),
    ):
        _, details = run_stage(latency, setting, peer)
    sizes = {row["message_bytes"] for row in details["table"]}
    assert {1, 1000} <= sizes
    assert 1_000_000 not in sizes  # five of them would take 17 s


@pytest.mark.usefixtures("fake_time")
def test_without_the_second_port_the_warm_times_are_kept(monkeypatch, run_stage):
    def blocked(self, sent, round_trips):
        raise TimeoutError("timed out")

    monkeypatch.setattr(warm.Cold, "seconds", blocked)
    with latency.respond(SHORT) as peer:
        _, details = run_stage(latency, SHORT, peer)
    assert details["cold_trouble"].endswith("timed out")
    assert {row["connection"] for row in details["table"]} == {"warm"}
    assert "cold_fit" not in details
    assert details["percentiles"]["count"] >= 5


def test_an_end_that_stops_answering_fails_the_stage_and_does_not_hang_it(monkeypatch):
    answered = []

    def tiring(connection):
        while len(answered) < 8:
            size = exchange.LENGTH.unpack(connection.recv(8, socket.MSG_WAITALL))[0]
            connection.recv(size, socket.MSG_WAITALL)
            connection.sendall(exchange.ANSWER)
            answered.append(size)

    monkeypatch.setattr(exchange, "answer", tiring)
    with latency.respond(SHORT) as peer, pytest.raises(RuntimeError, match="the messages failed"):
        list(latency.initiate(SHORT, peer))
    assert len(answered) == 8


def test_the_sizes_that_are_afforded_are_the_decades_first():
    expected = {1: 0.01, 10_000: 0.011, 100_000: 0.02, 1_000_000: 0.1}
    decades_first = [300_000, 100_000, 30_000, 10_000, 3000, 1000, 100, 10]
    assert warm.choose_sizes(1_000_000, expected, 10.0) == decades_first
    assert warm.choose_sizes(1_000_000, expected, 0.26) == [100_000, 10_000, 1000, 100]
    assert len(warm.choose_sizes(1_000_000, expected, 0.0)) == 2


def test_percentiles_are_told_of_enough_times_alone():
    assert exchange.percentiles([0.1] * 5) == {"count": 5, "p50_seconds": 0.1}
    spread = exchange.percentiles([each / 1000 for each in range(1, 101)])
    assert spread == {"count": 100, "p50_seconds": 0.05, "p90_seconds": 0.09, "p99_seconds": 0.099}


SLOW_SECONDS = 1000.0


def slow_start(self, sent, round_trips):
    """Slows cold connections as slow start does: the longer the message the more."""
    return SLOW_SECONDS * (1 + round_trips) + len(sent)


@pytest.mark.usefixtures("fake_time")
def test_however_slow_cold_connections_are_no_other_figure_changes(monkeypatch, run_stage):
    fitted = []
    monkeypatch.setattr(warm.Cold, "seconds", slow_start)
    monkeypatch.setattr(latency.fit, "fit", lambda points, *options: fitted.extend(points) or {})
    with latency.respond(SHORT) as peer:
        samples, details = run_stage(latency, SHORT, peer)
    cold = [row for row in details["table"] if row["connection"] == "cold"]
    assert cold and all(row["seconds"] >= SLOW_SECONDS for row in cold)
    others = [row for row in details["table"] if row["connection"] == "warm"]
    assert others and all(row["high_seconds"] < SLOW_SECONDS for row in others)
    assert details["percentiles"]["p50_seconds"] < SLOW_SECONDS
    assert len(fitted) > 1 and all(seconds < SLOW_SECONDS for _, seconds in fitted)
    assert samples[-1].elapsed_seconds // SLOW_SECONDS == 0
    if "cold_fit" in details:
        assert details["cold_fit"]["latency_seconds"] == pytest.approx(2 * SLOW_SECONDS, rel=0.1)
