"""`explain` reads packet captures from files and pipes, and refuses others in one line."""

import gzip
import io
from pathlib import Path

import pytest

from bottleneck.cli import app, loading

DATA = Path(__file__).parents[1] / "data" / "captures"
WINDOW = DATA / "window-client.pull.client.pcap.gz"


def explained(*names, capsys):
    code = app.run(["explain", *map(str, names)])
    return code, *capsys.readouterr()


def test_a_capture_is_answered_on_one_screen(capsys):
    code, out, err = explained(WINDOW, capsys=capsys)
    assert (code, err) == (0, "")
    assert out.startswith("Bottleneck: client TCP (receive window)")
    assert "(seen from a capture at the client" in out
    assert len(out.splitlines()) <= 30
    assert "Not measured" not in out, "packets are all that there is"


def test_a_capture_is_read_from_a_pipe(capsys, monkeypatch):
    stdin = io.BufferedReader(io.BytesIO(gzip.decompress(WINDOW.read_bytes())))
    stdin.seekable = lambda: False
    monkeypatch.setattr(loading.sys, "stdin", io.TextIOWrapper(stdin))
    assert explained("-", capsys=capsys)[1].startswith("Bottleneck: client TCP")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (gzip.compress(b"GIF89a", mtime=0), "neither pcap nor pcapng"),
        (gzip.compress(b"\xd4\xc3\xb2\xa1" + bytes(999), mtime=0)[:-9], "gzip data that cannot be"),
        (b"\xd4\xc3\xb2\xa1" + bytes(20), "no SMB connection (port 445 or 139) in it moves a file"),
    ],
)
def test_what_holds_no_copy_is_refused_in_one_line(content, why, tmp_path, capsys):
    file = tmp_path / "x.pcap"
    file.write_bytes(content)
    code, out, err = explained(file, capsys=capsys)
    assert (code, out) == (64, "")
    assert err.startswith(f"bottleneck: {file}: {why}")
    assert err.count("\n") == 1


def test_progress_of_a_long_file_is_shown_on_a_terminal_alone(capsys, monkeypatch):
    with WINDOW.open("rb") as content:
        reading = loading.Reading(WINDOW, content)
        content.seek(0, io.SEEK_END)
        reading()
        monkeypatch.setattr(loading, "QUIET_SECONDS", -1.0)
        reading()
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(loading.sys.stderr, "isatty", lambda: True)
        reading()
        reading.clear()
        assert capsys.readouterr().err == "\rreading the capture: 100%\r\x1b[K"


@pytest.mark.parametrize("option", [("--copy", "pull 38MB/s"), ("--link", "1Gbit/s")])
def test_what_the_capture_has_itself_is_refused_beside_it(option, capsys):
    code, out, err = explained(WINDOW, *option, capsys=capsys)
    assert (code, out) == (64, "")
    assert "the capture itself has these" in err


def test_a_report_tells_the_disk_from_the_cpu_beside_a_capture_alone(capsys):
    disk, run = DATA / "server-hdd.pull.server.pcap.gz", DATA.parent / "report-v1-server-quota.json"
    assert explained(disk, run, capsys=capsys)[1].startswith("Bottleneck: server CPU")
    assert "or beside a packet capture" in explained(run, run, capsys=capsys)[2]


def test_captures_without_a_common_connection_are_refused(capsys):
    code, _, err = explained(WINDOW, DATA / "hole-1400.push.client.pcap.gz", capsys=capsys)
    assert code == 64
    assert "explain each by itself" in err
