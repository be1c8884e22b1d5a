"""A copy that smbclient makes is watched in worlds with a planted cap, and the cap is named."""

from __future__ import annotations

import pytest
from watched import CASES, watch_case
from world import missing

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("name", ["link-100-alone", "server-read", "smbget-10ms"])
def test_the_planted_cap_of_a_running_copy_is_named(name: str) -> None:
    """One end alone is enough, too, but never as sure."""
    if lacks := missing():
        pytest.skip("not run: " + "; ".join(lacks))
    case = CASES[name]
    ran = watch_case(case)
    assert ran.exit_code == 0, ran.message
    assert ran.answer in case.right and ran.copy["copy"] == f"{case.verb}.uncached"
    confidence = ran.copy["verdict"]["confidence"]
    assert confidence >= 0.85 if case.agent else confidence <= 0.8
