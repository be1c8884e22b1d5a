"""Windows and streams side by side: the knee, the product, what the tuning of the system gets."""

from dataclasses import replace

import pytest

ABOUT = ("windows",)

KIB, MIB = 1 << 10, 1 << 20
TRIP = 0.149


def cell(window, streams, rate, **extra):
    bound = None if not window else streams * window / TRIP
    fields = {
        "window_bytes": window,
        "granted_bytes": 2 * window or 8 * MIB,
        "streams": streams,
        "bytes_per_second": rate * 1e6,
        "rtt_unloaded_seconds": TRIP,
        "rtt_loaded_seconds": TRIP,
        "bound_bytes_per_second": bound,
        **extra,
    }
    return {name: value for name, value in fields.items() if value is not None}


LONG_PATH = [
    cell(0, 1, 11.2),
    cell(16 * KIB, 1, 0.1),
    cell(16 * KIB, 8, 0.85),
    cell(256 * KIB, 1, 1.7),
    cell(256 * KIB, 8, 11.3),
    cell(4 * MIB, 1, 11.4),
]


def add_cells(world, cells, verb="push", knee=(256 * KIB, 8), details=None, **loads):
    fields = {
        "cells": cells,
        "knee": {"window_bytes": knee[0], "streams": knee[1]},
        "rtt_seconds": TRIP,
        "bdp_bytes": 11.4e6 * TRIP,
        **(details or {}),
    }
    world.add("matrix", "client", {"verb": verb}, 11.4, fields, **loads)
    return world


KNOWN = {
    "the knee, the product and what the smallest window gets": (LONG_PATH, {}),
    "the system's tuning gets much less: a finding": pytest.param(
        [cell(0, 1, 2.8), *LONG_PATH[1:]], {"verb": "pull"}
    ),
    "the system's tuning is the knee, not spoken of twice": (
        [cell(0, 1, 11.4), cell(16 * KIB, 1, 0.1), cell(64 * KIB, 1, 0.4)],
        {"knee": (0, 1)},
    ),
    "a window that is not granted": (
        [
            cell(0, 1, 11.2),
            cell(64 * KIB, 1, 0.4),
            cell(256 * KIB, 1, 1.4, granted_bytes=425_984),
            cell(MIB, 1, 1.4, granted_bytes=425_984),
        ],
        {},
    ),
    "round trips that grow under load are a queue": pytest.param(
        [*LONG_PATH[:-1], cell(4 * MIB, 1, 11.4, rtt_loaded_seconds=0.45)], {}
    ),
    "a small window that something else holds is not held by it": pytest.param(
        [cell(0, 1, 11.4), cell(16 * KIB, 1, 0.02), cell(4 * MIB, 1, 11.4)], {}
    ),
    "without the system's own tuning there is nothing to compare it with": (LONG_PATH[1:], {}),
    "a smallest window that gets what all get is no limit": pytest.param(
        [cell(0, 1, 11.2), cell(256 * KIB, 8, 11.3), cell(4 * MIB, 8, 11.4)], {}
    ),
}


@pytest.mark.parametrize(("cells", "extra"), KNOWN.values(), ids=KNOWN)
def test_windows_and_streams_side_by_side(hosts, cells, extra, store):
    store(add_cells(hosts, cells, **extra))


def test_what_time_or_this_tool_left_out_is_said(empty_world, store):
    store(
        add_cells(
            empty_world(),
            LONG_PATH,
            details={"left_out": True},
            client={"core_busy_ratios": (0.97, 0.2), "busiest_process_ratio": 0.97},
        )
    )


def test_a_host_that_was_full_is_not_told_as_bad_tuning(hosts, store):
    cells = [cell(0, 1, 2.8), *LONG_PATH[1:]]
    full = {"core_busy_ratios": (1.0, 1.0), "busiest_process_ratio": 1.0}
    store(add_cells(hosts, cells, client=full))


def test_packets_that_never_left_the_host_have_no_product(hosts, store):
    hosts.client = replace(hosts.client, interface=replace(hosts.client.interface, name="lo"))
    store(add_cells(hosts, LONG_PATH))


def test_a_figure_that_is_not_known_stays_unknown(hosts, store):
    cells = [
        {"window_bytes": window, "streams": 1, "bytes_per_second": rate}
        for window, rate in ((0, 1e6), (16 * KIB, 2e6))
    ]
    fields = {"rtt_seconds": None, "bdp_bytes": "much", "knee": None}
    store(add_cells(hosts, cells, details=fields))


@pytest.mark.parametrize(
    "cells", ["many", [7, {"streams": 0}], [], LONG_PATH[:1], [LONG_PATH[0]] * 3]
)
def test_strange_cells_and_one_alone_tell_nothing(hosts, cells, store):
    store(add_cells(hosts, cells))


def test_a_rate_beyond_the_link_is_not_believed(hosts, store):
    for side in ("client", "server"):
        host = getattr(hosts, side)
        slow = replace(host.interface, rate_bits_per_second=10**7)
        setattr(hosts, side, replace(host, interface=slow))
    store(add_cells(hosts, [cell(0, 1, 2.8), *LONG_PATH[1:]]))


@pytest.mark.parametrize(
    "broken",
    [
        [{"window_bytes": 0, "streams": 8, "reason": "nothing\narrived"}],
        [{"reason": "nothing arrived"}, {"reason": "gone"}],
    ],
)
def test_cells_that_broke_are_said_with_the_first_reason(hosts, broken, store):
    store(add_cells(hosts, LONG_PATH, details={"broken": broken}))


@pytest.mark.parametrize("broken", [5, "x", [5], {"reason": "x"}])
def test_what_is_told_of_broken_cells_otherwise_is_left_aside(hosts, broken, store):
    store(add_cells(hosts, LONG_PATH, details={"broken": broken}))
