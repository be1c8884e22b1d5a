"""Cold connections are told beside the fit and never used for it: slow start would be in it."""

from __future__ import annotations

import pytest

from probes import latency

SETTING = latency.Setting(0.6, "127.0.0.1")
SLOW_SECONDS = 1000.0


def slowed(self, sent, round_trips):
    """A cold connection on which slow start takes for ever, the longer the message the more."""
    return SLOW_SECONDS * (1 + round_trips) + len(sent)


def test_however_slow_cold_connections_are_no_other_figure_changes(monkeypatch, run_stage):
    from probes.net.warm import Cold

    fitted = []
    monkeypatch.setattr(Cold, "seconds", slowed)
    monkeypatch.setattr(latency.fit, "fit", lambda points, *more: fitted.extend(points) or {})
    with latency.respond(SETTING) as peer:
        samples, details = run_stage(latency, SETTING, peer)
    cold = [row for row in details["table"] if row["connection"] == "cold"]
    assert cold and all(row["seconds"] >= SLOW_SECONDS for row in cold)
    warm = [row for row in details["table"] if row["connection"] == "warm"]
    assert warm and all(row["high_seconds"] < SLOW_SECONDS for row in warm)
    assert details["percentiles"]["p50_seconds"] < SLOW_SECONDS
    assert len(fitted) > 1 and all(seconds < SLOW_SECONDS for _, seconds in fitted)
    assert samples[-1].elapsed_seconds < SLOW_SECONDS
    if "cold_fit" in details:
        assert details["cold_fit"]["latency_seconds"] == pytest.approx(2 * SLOW_SECONDS, rel=0.1)
