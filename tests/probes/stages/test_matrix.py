"""The matrix stage: what windows and streams carry follows window over round trip, to the link."""

import socket
from dataclasses import replace
from functools import partial

import pytest

from probes.core.records import Sample
from probes.core.stage import Last
from probes.net import transfer
from probes.net.transfer import Shape, Transfer
from probes.net.windows import AUTOTUNED
from probes.stages import matrix

KIB = 1 << 10
SHORT = matrix.Setting(
    seconds=1.0,
    windows=(AUTOTUNED, 16 * KIB),
    streams=(1, 2),
    most_seconds=30.0,
    address="127.0.0.1",
)
"""Long enough that no cell breaks where others keep the cores busy."""
REQUIRED = {
    "window_bytes",
    "granted_bytes",
    "streams",
    "bytes_per_second",
    "rtt_unloaded_seconds",
    "rtt_loaded_seconds",
}
"""Keys of each cell that its readers need."""


@pytest.fixture
def run(run_stage):
    return partial(run_stage, matrix)


@pytest.mark.long
@pytest.mark.parametrize("verb", ["push", "pull"])
def test_every_cell_is_told_and_the_best_one_is_the_stages_rate(run, verb):
    setting = replace(SHORT, verb=verb)
    with matrix.respond(setting) as peer:
        samples, details = run(setting, peer)
    assert samples[-1].moved_bytes > 0
    places = [(cell["window_bytes"], cell["streams"]) for cell in details["cells"]]
    assert places == [(0, 1), (0, 2), (16 * KIB, 1), (16 * KIB, 2)]
    for cell in details["cells"]:
        assert set(cell) >= REQUIRED
        assert cell["bytes_per_second"] > 0
        assert cell["rtt_unloaded_seconds"] > 0
        assert cell["granted_bytes"] > 0
    best = max(details["cells"], key=lambda cell: cell["bytes_per_second"])
    assert (details["window_bytes"], details["streams"]) == (best["window_bytes"], best["streams"])
    assert (details["knee"]["window_bytes"], details["knee"]["streams"]) in places
    assert details["bdp_bytes"] == best["bytes_per_second"] * details["rtt_seconds"]
    assert details["left_out"] is False
    assert "broken" not in details
    assert details["limits"]["by"]


def test_cells_that_the_time_does_not_allow_are_left_out_and_that_is_told(run, monkeypatch):
    transfers(monkeypatch)
    setting = replace(SHORT, streams=(1, 2, 4, 8), most_seconds=2.0)
    with matrix.respond(setting) as peer:
        samples, details = run(setting, peer)
    assert details["left_out"] is True
    assert 1 <= len(details["cells"]) < 8


def test_the_ports_are_closed_with_the_session():
    with matrix.respond(SHORT) as peer:
        ports = peer.facts["ports"]
        assert len(set(ports)) == len(SHORT.windows)
    for each in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", each)).close()


@pytest.mark.long
def test_a_window_that_the_session_was_not_opened_for_is_not_served(run):
    setting = replace(SHORT, windows=(AUTOTUNED, 64 * KIB))
    with matrix.respond(SHORT) as peer:
        _, details = run(setting, peer)
        assert {cell["window_bytes"] for cell in details["cells"]} == {AUTOTUNED}
        assert {cell["window_bytes"] for cell in details["broken"]} == {64 * KIB}
        with pytest.raises(RuntimeError, match="error from the responder"):
            run(replace(SHORT, windows=(64 * KIB, 64 * KIB)), peer)


def transfers(monkeypatch, broken=()):
    """Ends transfers at once, with a result or an error; returns their (window, streams)."""
    tried = []

    def initiate(shape, peer):
        tried.append((shape.window_bytes, shape.streams))
        if tried[-1] in broken:
            raise RuntimeError("nothing arrived after the warm-up")
        samples = (Sample(0.0, 0), Sample(0.5, shape.streams * 50), Last(1.0, shape.streams * 100))
        yield from samples
        ends = {"granted_bytes": 2 * shape.window_bytes}
        return Transfer(samples, ends, ends, {"by": "receiver"}, "cubic", 0.001)

    monkeypatch.setattr(transfer, "initiate", initiate)
    return tried


def test_a_cell_that_breaks_costs_itself_alone_and_is_told_with_its_reason(run, monkeypatch):
    tried = transfers(monkeypatch, [(AUTOTUNED, 1)])
    with matrix.respond(SHORT) as peer:
        samples, details = run(SHORT, peer)
    places = [(cell["window_bytes"], cell["streams"]) for cell in details["cells"]]
    assert places == [(AUTOTUNED, 2), (16 * KIB, 1), (16 * KIB, 2)]
    why = "nothing arrived after the warm-up"
    assert details["broken"] == [{"window_bytes": AUTOTUNED, "streams": 1, "reason": why}]
    assert tried.count((AUTOTUNED, 1)) == 1


def test_where_every_cell_breaks_the_stage_does_with_the_reason(run, monkeypatch):
    transfers(monkeypatch, [(window, many) for window in SHORT.windows for many in SHORT.streams])
    with matrix.respond(SHORT) as peer, pytest.raises(RuntimeError, match="nothing arrived"):
        run(SHORT, peer)


@pytest.mark.long
@pytest.mark.parametrize("verb", ["push", "pull"])
def test_on_a_long_path_a_cell_gets_its_windows_per_round_trip_until_the_link_is_full(
    lab_path, respond_at, run, verb
):
    link, trip = 30e6, 0.01
    setting = matrix.Setting(
        verb, 1.0, windows=(AUTOTUNED, 16 * KIB, 64 * KIB), streams=(1, 8), most_seconds=60.0
    )
    with lab_path(trip / 2, link) as up:
        setting = replace(setting, address=up.server.address)
        with respond_at(matrix, up.server, setting) as peer, up.client.entered():
            _, details = run(setting, peer)
    cells = {(cell["window_bytes"], cell["streams"]): cell for cell in details["cells"]}
    rates = {place: cell["bytes_per_second"] for place, cell in cells.items()}
    assert rates[16 * KIB, 8] > 3 * rates[16 * KIB, 1]
    assert rates[64 * KIB, 1] > 2 * rates[16 * KIB, 1]
    assert rates[64 * KIB, 8] > 2 * rates[64 * KIB, 1]
    assert rates[AUTOTUNED, 1] > 2 * rates[64 * KIB, 1]
    assert max(rates.values()) < 1.02 * link
    for (window, _), cell in cells.items():
        assert cell["rtt_unloaded_seconds"] >= trip
        assert cell["rtt_loaded_seconds"] >= trip
        if window:
            assert cell["bytes_per_second"] < 1.2 * cell["bound_bytes_per_second"]
            assert window / 2 < cell["peer_window_bytes"] < 2 * window
    enough = rates[details["knee"]["window_bytes"], details["knee"]["streams"]]
    assert enough > 0.7 * max(rates.values())
    assert details["bdp_bytes"] > 0.5 * link * trip


def test_a_cells_rate_is_that_after_the_slow_start_of_a_long_path():
    samples = tuple(
        Sample(tick / 10, total) for tick, total in enumerate((0, 1, 3, 7, 15, 31, 41, 51, 61, 71))
    )
    transfer = Transfer((*samples, Last(1.0, 81)), {}, {}, {}, None, None)
    shape = Shape(seconds=1.0)
    assert matrix._settled_rate(transfer, shape, 0.0) == pytest.approx(81)
    assert matrix._settled_rate(transfer, shape, 0.03) == pytest.approx(81)
    assert matrix._settled_rate(transfer, shape, 0.085) == pytest.approx(100)
    assert matrix._settled_rate(transfer, shape, 9.0) == pytest.approx(100)
    short = Transfer((Sample(0.0, 0), Last(0.2, 20)), {}, {}, {}, None, None)
    assert matrix._settled_rate(short, shape, 9.0) == pytest.approx(100)
