"""A folder is listed as a whole and file by file on real servers; nothing of it stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from probes.core.stage import Unavailable
from probes.stages import listing

SETTING = listing.Setting(entries=60, dialect="3.1.1", seconds=20.0)


@pytest.mark.parametrize(("dialect", "security"), [("2.1", "signed"), ("3.1.1", "encrypted")])
def test_all_files_are_listed_and_each_is_asked_for(
    run_folder: Any, run_stage: Any, monkeypatch: Any, dialect: str, security: str
) -> None:
    monkeypatch.setattr(listing, "LISTING_SHARE", 0.0)
    with run_folder() as (peer, folder, _):
        one = replace(SETTING, dialect=dialect, security=security)
        samples, details = run_stage(listing, one, peer)
        assert samples[-1].moved_bytes > 3 * 60 * 80
        assert details["entries"] == 60 and details["dialect"] == dialect
        seconds, trips = details["seconds_per_thousand"], details["round_trips_per_thousand"]
        assert min(seconds.values()) > 0
        assert trips["each"] == 2000 and 3 < trips["query"] < 12
        assert [path.name for path in folder.rglob("*")] == ["bottleneck-0abc", "source-0abc"]
    assert list(folder.iterdir()) == []


def test_a_recycle_bin_would_keep_the_names(run_folder: Any, run_stage: Any) -> None:
    with run_folder() as (peer, _, _), pytest.raises(Unavailable, match="recycle bin"):
        run_stage(listing, SETTING, replace(peer, facts={**peer.facts, "bin": ".recycle"}))
    with pytest.raises(ValueError, match="no such listing"):
        next(listing.initiate(replace(SETTING, entries=0), peer))
