"""Listing a folder: whether programs that ask for each file are the slow ones, or the server is."""

import pytest

from bottleneck.analysis.diagnosis import diagnose

SETTING = {"entries": 1000, "dialect": "3.1.1"}
TRIPS = {"query": 12.0, "each": 2000.0}


@pytest.mark.parametrize(
    ("query", "each", "copied", "sentence"),
    [
        (0.3, 40.0, 0.06, "133x as long, which is 40% of a copy of small files: such a"),
        (0.3, 40.0, None, "133x as long: such a program lists slowly over this path."),
        (0.02, 0.3, None, "needs 300 ms, 15x as long."),
        (30.0, 40.0, None, "one by one in 40 s: the listing itself is slow at the server."),
    ],
)
def test_one_query_for_each_file_is_held_against_one_for_all(hosts, query, each, copied, sentence):
    seconds = {"query": query, "each": each}
    details = {"entries": 1000, "seconds_per_thousand": seconds, "round_trips_per_thousand": TRIPS}
    hosts.add("listing", "client", SETTING, 1.0, {**details, "rtt_seconds": 0.02})
    if copied:
        files = {"files": 500, "seconds_per_file": copied, "hash_ok": True}
        pull = {"verb": "pull", "files": 500, "file_bytes": 16384, "dialect": "3.1.1"}
        hosts.add("small-files", "client", pull, 1.0, files)
    (listed,) = (c for c in diagnose(hosts.report()).comparisons if c.about == "listing")
    assert sentence in listed.sentence


def test_without_figures_nothing_is_told(hosts):
    hosts.add("listing", "client", SETTING, 1.0, {"entries": 1000})
    assert not diagnose(hosts.report()).comparisons
