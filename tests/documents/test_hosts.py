"""Lines about the network between the hosts: other paths with what they carry."""

from __future__ import annotations

from pathlib import Path

from bottleneck.documents.disks import disk_points
from bottleneck.documents.hosts import path, share_facts
from bottleneck.report.report import Report, Step
from probes.core.records import Measured, Sample
from tests import stored_reports

ANSWERS = Path(__file__).parents[1] / "data/answers"


def lines(name: str) -> list[str]:
    return [line for points in path(stored_reports.load(ANSWERS / name)) for line in points.lines]


def test_each_path_is_shown_with_what_it_carries():
    paths = [line for line in lines("wrong-path.json") if line.startswith("address-")]
    assert paths == [
        "address-1 by eth0, in use: pull 12.0 MB/s, push 12.0 MB/s",
        "address-2 by eth1: pull 1.50 GB/s, push 1.51 GB/s",
    ]


def test_a_faster_path_than_the_one_in_use_is_said_with_both_rates():
    faster = [line for line in lines("wrong-path.json") if line.startswith("faster than")]
    begin, end = "faster than the path in use: address-2 carries", "sends, and not 12.0 MB/s"
    ways = ("1.51 GB/s of what the client", "1.50 GB/s of what the server")
    assert faster == [f"{begin} {each} {end}" for each in ways]
    assert not [line for line in lines("contention.json") if line.startswith("faster than")]


def test_the_servers_interfaces_are_shown_as_it_tells_them_over_smb():
    card = {"address": "192.0.2.1", "rate_bytes_per_second": 1.25e9, "rss": True, "rdma": False}
    target = {"interfaces": [card, {"address": "fd00::1", "rdma": True}]}
    report = Report("complete", {}, "", 1.0, target, None, None, (), ())
    interfaces = "192.0.2.1 10 Gbit/s RSS, fd00::1 RDMA"
    assert share_facts(report).rows == (("Network interfaces", interfaces),)


def test_a_raid_is_shown_with_its_state_and_members():
    raid = {
        **{"kind": "md", "name": "md0", "raid_level": "raid5", "degraded_disks": 1},
        **{"sync_action": "recover", "sync_bytes_per_second": 3e7, "members": ["sda", "sdb"]},
    }
    run = (Sample(0.0, 0), Sample(1.0, 1))
    outcome = Measured((run,), None, None, {"layers": [raid, {"kind": "disk", "name": "sda"}]})
    entries = ((Step("disk", {"side": "server"}, "server"), outcome),)
    (points,) = disk_points(Report("complete", {}, "", 1.0, {}, None, None, entries, ()))
    state = "raid5, degraded: 1 disk, recover at 30.0 MB/s, of sda and sdb"
    assert points.lines == (f"server: md0 (md) [{state}] on sda",)


def test_that_there_is_no_other_path_is_said():
    (line,) = (line for line in lines("contention.json") if "other path" in line)
    assert line == "no other path: no further address of the server is in a network of this host"
