"""Strangers on full cores blur a comparison: it is told with that, and never as significant."""

import pytest

from tests.analysis.comparisons.conftest import plan

ABOUT = ("security", "small-files")

CROWD = {"core_busy_ratios": (0.99, 0.98), "other_cpu_seconds": 5.0, "run_delay_seconds": 3.0}
PLAIN, SIGNED = ("tax", "pull", "plain", [100]), ("tax", "pull", "signed", [50])
PLANTED = {
    "at the client": (PLAIN, (*SIGNED, {"client": CROWD})),
    "at the server": (PLAIN, (*SIGNED, {"server": CROWD})),
    "beside another step it is none of its business": plan(
        ("tcp", "pull", 1000, {"client": CROWD}), PLAIN, SIGNED
    ),
    "small files name it in their verdict": (
        ("small_files", "pull", 0.03, 0.01, {"server": CROWD}),
    ),
}


@pytest.mark.parametrize("steps", PLANTED.values(), ids=PLANTED)
def test_what_was_measured_in_a_crowd_is_not_relied_on(hosts, plant, steps, store):
    store(plant(hosts, *steps))
