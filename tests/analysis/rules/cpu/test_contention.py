"""Other processes on a CPU, as one end sees them: the client's in doubt, the server's by pauses."""

from __future__ import annotations

import pytest

CLIENT, SERVER, NOBODY = "cpu/client/contention", "cpu/server/contention", "unknown/inconclusive"
CROWDED = {
    "core_busy_ratios": (1.0,),
    "busiest_process_ratio": 0.25,
    "copy_cpu_seconds": 1.1,
    "other_cpu_seconds": 2.6,
    "run_delay_seconds": 3.7,
}
"""The host's load in a copy beside two busy loops, as its kernel counted it: all threads' waits."""
SMALL = ((65536, 1), (65536, 2), (65536, 4), (262144, 1))


def pausing_cells(*ratios):
    """Returns cells of small requests by mean over median time; and one that stood in a queue."""
    return [
        {
            "request_bytes": size,
            "depth": depth,
            "bytes_per_second": size * depth / (ratio * 115e-6),
            "request_seconds_median": 115e-6,
        }
        for (size, depth), ratio in (*zip(SMALL, ratios, strict=False), ((1 << 23, 8), 1.0))
    ]


def matrix(world, cells, rtt_seconds=7e-5, **loads):
    details = {"cells": cells, "rtt_seconds": rtt_seconds, "dialect": "3.1.1", "hash_ok": True}
    setting = {"verb": "pull", "dialect": "3.1.1", "size_bytes": 64 << 20, "security": ""}
    world.add("smb-matrix", "client", setting, 500, details, **loads)


def test_a_client_whose_cores_others_take_is_named_in_doubt_without_an_agent(no_agent, expect):
    no_agent.copy("pull.cached", (160, 166, 170), dialect="NT1", client=CROWDED)
    expect(no_agent, CLIENT)
    assert no_agent.diagnosis_of().verdict.confidence < 0.7


def test_with_an_agent_that_saw_the_server_rest_it_is_as_sure_as_limits_say(world, expect):
    world.copy("pull.cached", (160, 166, 170), client=CROWDED)
    expect(world, CLIENT)
    assert world.diagnosis_of().verdict.confidence == 0.85


TAKEN = (2.7, 5.0, 3.9, 3.2)
PAUSES = {
    "a neighbour on the server's core": (SERVER, TAKEN, 7e-5),
    "one shape in a queue already": (SERVER, (3.8, 6.8, 1.3, 4.9), 7e-5),
    "one late reply in the first shape": (NOBODY, (2.8, 1.0, 1.0, 1.0), 7e-5),
    "a file server that stands still": (NOBODY, (91.2, 15.0, 17.9, 18.2), 7e-5),
    "a far path": (NOBODY, TAKEN, 0.02),
    "two shapes alone": (NOBODY, (2.7, 5.0), 7e-5),
}


@pytest.mark.parametrize(("cap", "ratios", "rtt"), PAUSES.values(), ids=PAUSES)
def test_a_server_that_answers_at_once_or_after_pauses_has_neighbours(
    no_agent, cap, ratios, rtt, expect
):
    no_agent.copy("pull.cached", (250, 260, 269))
    matrix(no_agent, pausing_cells(*ratios), rtt)
    expect(no_agent, cap)
    assert no_agent.diagnosis_of().verdict.confidence < 0.7


def test_the_pauses_scatter_the_runs_and_stay_their_cause(no_agent, expect):
    no_agent.copy("pull.cached", (150, 260, 300))
    matrix(no_agent, pausing_cells(*TAKEN))
    expect(no_agent, SERVER)


def test_pauses_of_a_client_that_waits_itself_tell_nothing_of_the_server(no_agent, expect):
    no_agent.copy("pull.cached", (250, 260, 269))
    matrix(no_agent, pausing_cells(*TAKEN), client=CROWDED)
    expect(no_agent, NOBODY)


@pytest.mark.parametrize(("resent", "cap"), [(11e3, SERVER), (2e7, NOBODY)])
def test_lost_packets_pause_a_copy_too_and_packets_sent_twice_do_not(no_agent, resent, cap, expect):
    no_agent.copy("push.cached", (240, 250), details={"sockets": {"retransmitted_bytes": resent}})
    matrix(no_agent, pausing_cells(*TAKEN))
    expect(no_agent, cap)
