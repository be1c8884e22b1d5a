"""Which application gets what: measured where there is a cell, else by the fit, else nothing."""

import pytest

from bottleneck.analysis import diagnose

KIB, MIB = 1 << 10, 1 << 20
CELLS = {(64 * KIB, 1): 6.1, (MIB, 1): 55, (MIB, 8): 117, (4 * MIB, 4): 116}


def compared(world):
    found = diagnose(world.report()).comparisons
    return [each for each in found if each.about == "requests"]


def told(found, application):
    return next((each for each in found.rows if each["application"] == application), None)


def test_the_sentence_names_the_best_shape_and_what_a_player_gets(empty_world):
    world = empty_world()
    world.matrix("pull", CELLS, 0.01, (117, 0.0107))
    (found,) = compared(world)
    assert found.sentence == (
        "No shape reads much faster than 1 MiB, 8 at once, over a round trip of 10 ms: 117 MB/s "
        "with 8 MiB in flight. 64 KiB, one at a time, as some players do: 6.1 MB/s here."
    )
    assert found.ratio == pytest.approx(117 / 6.1)
    assert found.significant
    player = told(found, "some media players")
    assert (player["bytes_per_second"], player["source"]) == (6.1e6, "measured")
    old = told(found, "SMB1 clients of old")
    assert old["source"] == "fit"
    assert old["bytes_per_second"] == pytest.approx(60 * KIB / 0.0107)
    assert sum(each["application"] is None for each in found.rows) == len(CELLS)


def test_this_tools_row_is_what_its_own_copies_asked_for(empty_world):
    world = empty_world()
    world.matrix("push", CELLS, 0.01, (117, 0.0107))
    details = {"request_bytes": MIB, "depth": 4}
    world.copy("pull.cached", 100, details={"request_bytes": 4 * MIB, "depth": 4})
    world.copy("push.cached", 100, details={})
    assert told(compared(world)[0], "this tool")["depth"] == 8
    world.copy("push.uncached", 100, details=details)
    (found,) = compared(world)
    own = told(found, "this tool")
    assert (own["request_bytes"], own["depth"], own["source"]) == (MIB, 4, "fit")
    assert "No shape writes much faster than" in found.sentence


def test_a_copy_in_another_dialect_is_not_this_tools_row(empty_world):
    world = empty_world()
    world.matrix("pull", CELLS, 0.01)
    world.copy("pull.cached", 20, dialect="smb1", details={"request_bytes": 64 * KIB, "depth": 1})
    assert told(compared(world)[0], "this tool")["depth"] == 8


def test_where_this_tool_filled_a_core_that_is_said(empty_world):
    world = empty_world()
    world.busy["client"] = {"core_busy_ratios": (0.97, 0.2), "busiest_process_ratio": 0.97}
    world.matrix("pull", CELLS, 0.01)
    assert "This tool itself filled a core of the client there" in compared(world)[0].sentence


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
def test_without_a_good_fit_only_what_was_measured_is_told(empty_world, fit, details):
    world = empty_world()
    world.matrix("pull", {(MIB, 1): 55, (MIB, 8): 117}, 0.01, fit, details)
    (found,) = compared(world)
    assert {each["application"] for each in found.rows} == {"simple libraries", "this tool", None}
    assert "player" not in found.sentence
    assert found.ratio is None
    assert not found.significant


@pytest.mark.parametrize(("fit", "known"), [((None, 0.0107), True), ((117, None), True)])
def test_half_a_fit_holds_among_the_cells_and_not_beyond_them(empty_world, fit, known):
    world = empty_world()
    world.matrix("pull", {(64 * KIB, 1): 6.1, (256 * KIB, 1): 24}, 0.01, fit)
    (found,) = compared(world)
    assert (told(found, "SMB1 clients of old") is not None) is known
    assert told(found, "simple libraries") is None
    assert told(found, "this tool") is None


def test_a_fitted_figure_is_told_as_about(empty_world):
    world = empty_world()
    world.matrix("pull", {(32 * KIB, 1): 3, (MIB, 8): 117}, 0.01, (117, 0.0107))
    assert "as some players do: about 6.12 MB/s here" in compared(world)[0].sentence


def test_cells_that_follow_no_curve_are_told_as_such(empty_world):
    world = empty_world()
    fit = {"ceiling_bytes_per_second": 1e9, "rtt_seconds": 1e-4, "worst_residual_ratio": 2.3}
    world.matrix("pull", CELLS, 0.0001, details={"fit": fit})
    assert "(230 % off at worst): something else decides here." in compared(world)[0].sentence


def test_strange_cells_altered_bytes_and_one_cell_tell_nothing(empty_world):
    world = empty_world()
    strange = [7, {"request_bytes": "1"}, {"request_bytes": 4096, "depth": 0}, {}]
    world.matrix("pull", CELLS, 0.01, details={"cells": strange})
    world.matrix("pull", CELLS, 0.01, details={"cells": "many"})
    world.matrix("pull", CELLS, 0.01, details={"hash_ok": False})
    world.matrix("pull", {(MIB, 8): 117}, 0.01)
    assert compared(world) == []


def test_a_cell_may_leave_out_what_follows_from_it(empty_world):
    world = empty_world()
    bare = [
        {"request_bytes": size, "depth": depth, "bytes_per_second": rate * 1e6}
        for (size, depth), rate in CELLS.items()
    ]
    world.matrix("sideways", CELLS, 0.01, details={"cells": bare, "rtt_seconds": "soon"})
    (found,) = compared(world)
    assert found.sentence.startswith("No shape moves much faster than 1 MiB, 8 at once: 117 ")
