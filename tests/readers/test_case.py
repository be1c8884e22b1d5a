"""One case of words and of several files."""

from __future__ import annotations

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.cli.loading import TypedFigures, load_case
from bottleneck.readers.case import copy_of
from bottleneck.report.report import ReportError
from probes.core.stage import Refused

WORDS = {
    "pull 38MB/s": ("pull.uncached", 38e6, None, None),
    "push 12 MB/s uncached smb1 robocopy": ("push.uncached", 12e6, "smb1", "robocopy"),
    "server.push 941 Mbits/sec cached smb3": ("server.push.cached", 941e6 / 8, "3.1.1", None),
    "pull 9MB/s server-cpu=98% signed": ("pull.uncached", 9e6, None, None),
    "PULL 112 MBytes/sec": ("pull.uncached", 112 * 2**20, None, None),
    "pull": ("pull.uncached", None, None, None),
}


@pytest.mark.parametrize(("text", "expected"), WORDS.items())
def test_a_copy_in_words(text, expected):
    copy = copy_of(text)
    assert (copy.copy, copy.rate, copy.dialect, copy.tool) == expected
    assert copy_of(f"{text} 10GB").size == 10**10


REFUSED = {
    "38MB/s": "has no direction",
    "pull 38Mbps": "can be read in two ways",
    "pull 295,22 MB/s": "decimal comma: write 295.22",
    "pull client-cpu=fast": "is not a share of a core",
    "pull foo-cpu=95%": "is not known: write for example",
}


@pytest.mark.parametrize(("text", "why"), REFUSED.items())
def test_words_that_cannot_be_read_are_refused_in_a_line(text, why):
    with pytest.raises(ReportError, match=why):
        copy_of(text)


FIO = '{"fio version": "3", "jobs": [{"read": {"io_bytes": 1000, "bw_bytes": 40000000}}]}'
IPERF = "[  5]   0.00-10.04  sec  1.09 GBytes   936 Mbits/sec                  receiver\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fio.json").write_text(FIO)
    (tmp_path / "iperf.txt").write_text(IPERF)
    (tmp_path / "told.toml").write_text('[client]\nmtu = 9000\n[path]\nrtt = "1 ms"\n')
    (tmp_path / "other.json").write_text('{"hosts": [], "ansible": 1}')
    note = '{"schema": "copy-bottleneck/report/1", "notes": ["iperf3: error - refused"]}'
    (tmp_path / "report.json").write_text(note)
    return tmp_path


def test_several_files_and_words_are_one_case(files):
    report = load_case(
        ["server:fio.json", "server:iperf.txt", "told.toml"],
        TypedFigures(("pull 38MB/s",), link="1Gbit/s", rtt="9ms"),
    )
    tcp, disk, copy = (step for step, _ in report.entries)
    assert (tcp.stage, disk.stage, copy.stage) == ("tcp", "disk", "smb-copy")
    assert tcp.setting["verb"] == "pull" and disk.setting["side"] == "server"
    assert report.target["connect_seconds"] == 1e-3
    card = report.client.interface
    assert (card.mtu_bytes, card.rate_bits_per_second) == (9000, 1_000_000_000)
    assert "fio.json" not in repr(report)


def test_typed_rates_are_of_the_copy_s_way_and_what_is_faster_is_ruled_out():
    typed = TypedFigures(
        ("push 38MB/s",), tcp="940Mbit/s", disk_read="160MB/s", disk_write="90MB/s"
    )
    diagnosis = diagnose(load_case([], typed)).summary
    assert "118 MB/s from the client to the server" in diagnosis
    assert "The client's disk is not the bottleneck: it reads 160 MB/s by itself" in diagnosis
    assert "The server's disk is not the bottleneck: it writes 90.0 MB/s by itself" in diagnosis
    assert (
        " (21% each)." in diagnose(load_case([], TypedFigures(("pull 38MB/s",), "1Gbit/s"))).summary
    )


def test_what_cannot_be_known_is_asked_for_at_once(files):
    with pytest.raises(Refused) as refused:
        load_case(["fio.json", "iperf.txt"], TypedFigures(("pull 38MB/s",)))
    assert refused.value.text == (
        "fio.json: on which host was it made? Name it client:fio.json or server:fio.json; "
        "iperf.txt: on which host was it made? Name it client:iperf.txt or server:iperf.txt"
    )
    assert len(load_case(["fio.json", "iperf.txt"], TypedFigures(side="server")).entries) == 2


@pytest.mark.parametrize(("name", "why"), [("other", r".*\(keys"), ("report", "(?!iperf3)")])
def test_another_programs_json_is_named_by_its_keys_and_a_report_is_one(files, name, why):
    with pytest.raises(Refused, match=rf"{name}\.json: {why}"):
        load_case([f"{name}.json"], TypedFigures())


def test_curly_quotes_are_shown_with_their_line(files):
    (files / "mail.toml").write_text("[path]\nrtt = \u201c1 ms\u201d\n")
    with pytest.raises(Refused, match=r"mail\.toml: line 2: curly quotes"):
        load_case(["mail.toml"], TypedFigures())
