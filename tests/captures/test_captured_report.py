"""Recorded captures of smbclient's copies in worlds with a planted cap are judged as planted.

tests/data/captures: at either end, cut to 96 or 160 bytes a packet, some encrypted.
"""

import fnmatch
import gzip
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.captures import capture, captured_report
from bottleneck.captures.packets import CaptureError
from bottleneck.captures.turns import MOST_BLOCKS
from bottleneck.estimate import supplied_report
from bottleneck.estimate.observations import Disk
from bottleneck.readers import case
from bottleneck.report import report as reports
from tests.captures.packet_files import CLIENT, SERVER, frame, pcap
from tests.captures.test_turns import Play

DATA = Path(__file__).parents[1] / "data" / "captures"
TRUTH = json.loads((DATA / "truth.json").read_text())


def capture_of(name):
    with (DATA / f"{name}.pcap.gz").open("rb") as file:
        return capture.read(file)


def report_of(name):
    return captured_report.report_of(capture_of(name))


@pytest.mark.parametrize("name", TRUTH)
def test_the_planted_cap_is_named_and_no_host_is_blamed_with_confidence(name):
    (copy,) = diagnose(report_of(name)).copies
    verdict = copy.verdict
    answer = f"{verdict.component}/{verdict.side}/{verdict.cause}"
    assert any(fnmatch.fnmatch(answer, right) for right in TRUTH[name]), (answer, verdict)
    assert copy.copy == name.split(".")[1]
    if verdict.component in ("disk", "cpu"):
        assert verdict.confidence <= 0.65, "packets do not tell a disk from a CPU"
        assert {each.component for each in copy.suspects[:2]} == {"disk", "cpu"}
        assert "Packets do not show" in copy.advice[0]


def test_a_captured_report_is_one_like_any_other():
    report = report_of("server-hdd.pull.server")
    again = reports.loads(reports.dumps(report, diagnose(report)).encode())
    assert diagnose(again) == diagnose(report)


def test_neither_payload_nor_names_are_in_a_report():
    report = report_of("small-files.pull.client")
    text = reports.dumps(report, diagnose(report))
    for secret in ("NTLM", ".bin", ".txt"):
        assert secret not in text


def test_a_capture_without_a_copy_says_so():
    handshake = [(1.0, frame(flags=2)), (1.1, frame(SERVER, CLIENT, flags=18))]
    web = [(2.0, frame(target=(SERVER[0], 80), data=bytes(900)))]
    for records in ([], web, handshake):
        with pytest.raises(CaptureError, match="no SMB connection"):
            captured_report.report_of(capture.read(io.BytesIO(pcap(records))))


def test_ten_thousand_connections_and_times_of_decades_are_bounded():
    records = [
        (86400.0 * index, frame((bytes([10, 1, index >> 8, index & 255]), 9), data=bytes(400)))
        for index in range(10_000)
    ]
    read = capture.read(io.BytesIO(pcap(records)))
    assert len(read.connections) == capture.MOST_CONNECTIONS
    assert len(read.other_bytes) <= capture.MOST_OTHERS
    assert sum(1 for _ in read.blocks) >= MOST_BLOCKS - capture.MOST_CONNECTIONS


def test_progress_is_told_now_and_then():
    calls = []
    content = gzip.compress(pcap([(1.0, frame())] * (2 * capture.PROGRESS_PACKETS)))
    capture.read(io.BytesIO(content), lambda: calls.append(None))
    assert len(calls) == 2


def test_others_share_the_path_on_the_copy_s_way_and_at_its_time_alone():
    read = capture_of("link-10.pull.client")
    ((client, _), (server, _)), connection = next(iter(read.connections.items()))
    during, later = int(connection.first_data) + 1, int(connection.last) + 99
    keys = (server, client, during), (client, server, during), (server, client, later)
    for key, ratio in zip(keys, (0.75, 0, 0), strict=True):
        read.other_bytes = {key: 3 * connection.requests.downward.bytes}
        (_, measured), *_ = captured_report.report_of(read).entries
        assert measured.details["capture"]["others_ratio"] == ratio


def test_two_captures_of_one_connection_are_one_case():
    captures = [capture_of("sndbuf-s.pull.client")] * 2
    report = captured_report.report_of(*captures)
    (copy,) = diagnose(report).copies
    assert copy.view.startswith("2 captures")
    figures = report.entries[0][1].details["capture"]
    single = captured_report.report_of(captures[0]).entries[0][1].details["capture"]
    assert figures["moving_ratio"] == pytest.approx(single["moving_ratio"])


def test_each_connection_that_moves_files_is_a_copy_and_the_slowest_leads():
    first = capture_of("link-10.pull.client")
    first.connections |= capture_of("window-client.pull.client").connections
    diagnosis = diagnose(captured_report.report_of(first))
    rates = [each.bytes_per_second for each in diagnosis.copies]
    assert (len(rates), rates) == (2, sorted(rates))
    assert "1.19 MB/s" in diagnosis.summary


def test_a_disk_rate_beside_a_capture_tells_the_disk_from_the_cpu():
    verdicts = []
    for disk_of in (Disk("server", "read", 54e6), Disk("server", "read", 400e6)):
        disk = supplied_report.entries_of(case.case_of_figures([disk_of], "x"))
        report = report_of("server-hdd.pull.server")
        report = replace(report, entries=(*report.entries, *disk))
        verdicts.append(diagnose(report).copies[0].verdict)
    assert [each.component for each in verdicts] == ["disk", "cpu"]
    assert verdicts[0].confidence > 0.7


@pytest.mark.parametrize(
    ("to_server", "cause", "words"), [(0.0, "inconclusive", "Look at the s"), (0.04, "mtu", "ping")]
)
def test_a_read_without_a_reply_is_dropped_or_the_server_hangs(to_server, cause, words):
    play = Play(to_server, 0.04 - to_server)
    play.send(False, size=900)
    play.send(True)
    play.ask()
    play.wait(to_server)
    play.send(False)
    play.connection.end(play.now + 6)
    read = capture.Capture(connections={(CLIENT, SERVER): play.connection})
    copy = diagnose(captured_report.report_of(read)).copies[0]
    assert copy.verdict.cause == cause and copy.verdict.confidence <= 0.5
    assert words in copy.advice[0]
