"""Each application's rate: measured where there is a cell, else by the fit, else nothing."""

import pytest

ABOUT = ("requests",)

KIB, MIB = 1 << 10, 1 << 20
CELLS = {(64 * KIB, 1): 6.1, (MIB, 1): 55, (MIB, 8): 117, (4 * MIB, 4): 116}


def test_the_sentence_names_the_best_shape_and_what_a_player_gets(hosts, store):
    hosts.matrix("pull", CELLS, 0.01, (117, 0.0107))
    store(hosts)


def test_this_tools_row_is_what_its_own_copies_asked_for(hosts, store):
    hosts.matrix("push", CELLS, 0.01, (117, 0.0107))
    details = {"request_bytes": MIB, "depth": 4}
    hosts.copy("pull.cached", 100, details={"request_bytes": 4 * MIB, "depth": 4})
    hosts.copy("push.cached", 100, details={})
    store(hosts)
    hosts.copy("push.uncached", 100, details=details)
    store(hosts)


def test_a_copy_in_another_dialect_is_not_this_tools_row(hosts, store):
    hosts.matrix("pull", CELLS, 0.01)
    hosts.copy("pull.cached", 20, dialect="smb1", details={"request_bytes": 64 * KIB, "depth": 1})
    store(hosts)


def test_where_this_tool_filled_a_core_that_is_said(hosts, store):
    hosts.busy["client"] = {"core_busy_ratios": (0.97, 0.2), "busiest_process_ratio": 0.97}
    hosts.matrix("pull", CELLS, 0.01)
    store(hosts)


@pytest.mark.parametrize(
    ("fit", "details"),
    [
        (None, {}),
        ((117, 0.0107), {"fit": {"ceiling_bytes_per_second": 1e8, "rtt_seconds": 0.01}}),
        (
            None,
            {
                "fit": {
                    "ceiling_bytes_per_second": 1e8,
                    "rtt_seconds": 0.01,
                    "worst_residual_ratio": 0.9,
                }
            },
        ),
        ((None, None), {}),
    ],
    ids=["none", "without its error", "a bad one", "an empty one"],
)
def test_without_a_good_fit_only_what_was_measured_is_told(hosts, fit, details, store):
    hosts.matrix("pull", {(MIB, 1): 55, (MIB, 8): 117}, 0.01, fit, details)
    store(hosts)


@pytest.mark.parametrize("fit", [(None, 0.0107), (117, None)])
def test_half_a_fit_holds_among_the_cells_and_not_beyond_them(hosts, fit, store):
    hosts.matrix("pull", {(64 * KIB, 1): 6.1, (256 * KIB, 1): 24}, 0.01, fit)
    store(hosts)


def test_a_fitted_figure_is_told_as_about(hosts, store):
    hosts.matrix("pull", {(32 * KIB, 1): 3, (MIB, 8): 117}, 0.01, (117, 0.0107))
    store(hosts)


def test_cells_that_follow_no_curve_are_told_as_such(hosts, store):
    fit = {"ceiling_bytes_per_second": 1e9, "rtt_seconds": 1e-4, "worst_residual_ratio": 2.3}
    hosts.matrix("pull", CELLS, 0.0001, details={"fit": fit})
    store(hosts)


def test_strange_cells_altered_bytes_and_one_cell_tell_nothing(hosts, store):
    strange = [7, {"request_bytes": "1"}, {"request_bytes": 4096, "depth": 0}, {}]
    hosts.matrix("pull", CELLS, 0.01, details={"cells": strange})
    hosts.matrix("pull", CELLS, 0.01, details={"cells": "many"})
    hosts.matrix("pull", CELLS, 0.01, details={"hash_ok": False})
    hosts.matrix("pull", {(MIB, 8): 117}, 0.01)
    store(hosts)


def test_a_cell_may_leave_out_what_follows_from_it(hosts, store):
    cells = [
        {"request_bytes": size, "depth": depth, "bytes_per_second": rate * 1e6}
        for (size, depth), rate in CELLS.items()
    ]
    hosts.matrix("sideways", CELLS, 0.01, details={"cells": cells, "rtt_seconds": "soon"})
    store(hosts)
