"""What lies between the hosts, as lines: other paths with what they carry."""

from __future__ import annotations

from pathlib import Path

from bottleneck.documents.hosts import path
from tests import stored_reports

ANSWERS = Path(__file__).parents[1] / "data/answers"


def lines(name: str) -> list[str]:
    return [line for points in path(stored_reports.load(ANSWERS / name)) for line in points.lines]


def test_each_path_is_shown_with_what_it_carries():
    found = [line for line in lines("wrong-path.json") if line.startswith("address-")]
    assert found == [
        "address-1 by eth0, in use: pull 12.0 MB/s, push 12.0 MB/s",
        "address-2 by eth1: pull 1.50 GB/s, push 1.51 GB/s",
    ]


def test_that_there_is_no_other_path_is_said():
    (line,) = (line for line in lines("contention.json") if "other path" in line)
    assert line == "no other path: no further address of the server is in a network of this host"
