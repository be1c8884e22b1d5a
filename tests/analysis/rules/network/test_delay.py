"""A copy's start on a long path: named where the copy is short beside it, told where it matters."""

from __future__ import annotations

import pytest

LINK, DELAY, NOBODY = "network/path/link-rate", "network/path/delay", "unknown/inconclusive"
FAR = {"min_rtt_seconds": 0.3, "rtt_seconds_median": 0.33, "rtt_seconds_high": 0.66}
"""20 Mbit/s at 300 ms: a slow start of 5.6 round trips and one more."""
NEARER = {"min_rtt_seconds": 0.08, "rtt_seconds_median": 0.15, "rtt_seconds_high": 0.16}
"""100 Mbit/s at 80 ms, of which 6 are 0.5 s."""
BURSTS = {
    "send_buffer_bytes": 4 << 20,
    "congestion_window_bytes_median": 3 << 20,
    "in_flight_bytes_high": 4 << 20,
    "unsent_bytes_median": 0,
}
"""A buffer that the kernel tuned and that looks small beside the window."""


def copied(between, sockets, name, rate, link, **told):
    world = between(link, link)
    told = {"by": "network", "segment_bytes": 1448, **told}
    world.copy(name, rate, details={"sockets": sockets(**told)})
    return world


@pytest.mark.parametrize("name", ["pull.cached", "pull.uncached", "push.cached", "push.uncached"])
def test_a_copy_that_ends_soon_after_its_start_is_held_by_the_delay(between, sockets, name, says):
    """2.0 of its 4 seconds; a long one gets what the link carries, which comes next."""
    world = copied(between, sockets, name, 1.15, 2.39, **FAR)
    says(world, DELAY)
    found = world.diagnosed()
    assert found.next is not None and found.next.cause == "link-rate"
    assert any("A long file gets about 2.39 MB/s" in each for each in found.evidence)


@pytest.mark.parametrize("name", ["pull.cached", "push.uncached"])
def test_a_link_that_is_full_once_the_copy_has_started_holds_it(between, sockets, name, says):
    """At 84 % of it: the start took the rest, and both rates are told."""
    world = copied(between, sockets, name, 10.0, 11.95, **NEARER)
    says(world, LINK)
    assert any("A long file gets about 11.9 MB/s" in each for each in world.diagnosed().evidence)


SILENT = {
    "slower than its start explains": (0.5, 2.39, FAR, NOBODY),
    "a LAN": (5.0, 11.95, {"min_rtt_seconds": 0.0003, "rtt_seconds_median": 0.0004}, NOBODY),
    "the sender's buffer kept it waiting": (
        *(1.15, 2.39, {**FAR, "send_buffer_limited_ratio": 0.9, "unsent_bytes_median": 0}),
        "tcp/server/send-buffer",
    ),
}


@pytest.mark.parametrize(("rate", "link", "told", "named"), SILENT.values(), ids=SILENT)
def test_what_a_start_does_not_explain_is_not_the_delays(
    between, sockets, rate, link, told, named, says
):
    says(copied(between, sockets, "pull.cached", rate, link, **told), named)


def test_a_start_is_not_taken_for_a_small_send_buffer(between, sockets, says):
    """500 Mbit/s at 40 ms, 0.38 s of the start: the buffer ran empty while the window grew."""
    told = {**BURSTS, "min_rtt_seconds": 0.04, "rtt_seconds_median": 0.041}
    world = copied(between, sockets, "pull.cached", 48.0, 59.8, **told)
    assert "send-buffer" not in {each.cause for each in world.diagnosed().ceilings}
    says(world, LINK)


@pytest.mark.parametrize(("cell", "blamed"), [(58.0, False), (33.0, True), (900.0, True)])
def test_no_end_is_blamed_for_less_than_the_same_client_moved_over_smb(
    between, sockets, cell, blamed
):
    """What is beyond the path itself refutes nothing."""
    told = {**BURSTS, "min_rtt_seconds": 0.04, "rtt_seconds_median": 0.041}
    world = copied(between, sockets, "pull.cached", 30.0, 59.8, **told)
    world.matrix("pull", {(1 << 20, 8): cell}, 0.04)
    assert ("send-buffer" in {each.cause for each in world.diagnosed().ceilings}) == blamed


def test_what_is_sent_again_is_no_other_traffic(between, sockets):
    """The queue dropped a fifth: the interface counts it twice, and it is the copy's own."""
    again = {**NEARER, "retransmitted_bytes": 10e6, "retransmitted_segments": 6900}
    world = copied(between, sockets, "push.cached", 10.0, 11.95, **again)
    busy = {"interface_sent_bytes": int((40e6 + 10e6) / 0.95)}
    world.copy("push.uncached", 10.0, details={"sockets": sockets(**again)}, client=busy)
    assert "contention" not in {each.cause for each in world.diagnosed(1).ceilings}
