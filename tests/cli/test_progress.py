"""Progress of a run on the screen: a line a step, and a terminal left as it was."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from bottleneck.cli import progress
from bottleneck.cli.progress import OwnLoad
from bottleneck.documents import terminal
from bottleneck.report import report as reports
from bottleneck.run.log import Event
from bottleneck.text import units
from probes.core.records import Measured, Sample
from tests import living

DATA = Path(__file__).parents[1] / "data"
HOSTILE = "nas\x1b[2J\r\n\u202e[red]"


@pytest.fixture(scope="module")
def usage():
    report = reports.load(DATA / "report-v1-server-disk.json")
    return next(outcome.initiator for _, outcome in report.entries if isinstance(outcome, Measured))


def end_event(usage=None, **options):
    fields = {"outcome": "measured", "bytes_per_second": 118e6, "client": usage, "server": usage}
    return Event("tcp push", 3.2, 20.0, **{**fields, **options})


def plain_lines(capsys, *events, style: units.Style = "si"):
    """Returns the lines on stderr where it is no terminal."""
    with progress.show_progress(False, style) as tell:
        for event in events:
            tell(event)
    return capsys.readouterr().err.splitlines()


# -- without a terminal ------------------------------------------------------------------------


def test_a_step_that_ended_is_one_plain_line_with_both_hosts_and_the_time_left(capsys, usage):
    running = Event("tcp push", 1.0, 20.0, sample=Sample(1.0, 10**8))
    assert plain_lines(capsys, Event("tcp push", 0.0, 20.0), running, end_event(usage)) == [
        "  3.2 s  tcp push: 118 MB/s; client CPU 100%, RAM 1.17 GiB; server CPU 100%, RAM 1.17 GiB"
        "  (17 s left)"
    ]


def test_what_could_not_be_measured_says_why_and_acts_on_nothing(capsys):
    (line,) = plain_lines(capsys, end_event(outcome=f"failed: {HOSTILE}", bytes_per_second=None))
    assert "failed: nas\\x1b[2J\\x0d\\x0a\\u202e[red]" in line


def test_rates_are_in_the_style_that_is_asked_for_and_no_others_are(capsys):
    with progress.show_progress(False, "bits") as tell:
        tell(end_event())
        assert units.rate_text(1e6) == "1.00 MB/s"
    assert "944 Mbit/s" in capsys.readouterr().err


def test_an_interval_is_a_line_with_its_time_its_bytes_and_its_rate(capsys):
    lines = io.StringIO()
    bytes_over_time = [(0.0, 0), (0.5, 5 << 20), (0.98, 10 << 20), (1.6, 10 << 20), (2.0, 40 << 20)]
    with progress.show_progress(False, "si", progress.Intervals(1.0, lines)) as tell:
        for _ in range(2):
            tell(Event("tcp push", 0.0, 20.0))
            for each in bytes_over_time:
                tell(Event("tcp", 1.0, 20.0, sample=Sample(*each)))
            tell(end_event())
    assert lines.getvalue().splitlines() == 2 * [
        "   0.0 to    1.0 s  tcp push  10 MiB  10.7 MB/s",
        "   1.0 to    2.0 s  tcp push  30 MiB  30.8 MB/s",
    ]
    assert capsys.readouterr().err.count("tcp push: 118 MB/s") == 2


def test_quiet_says_nothing(capsys):
    with progress.show_progress(True) as tell:
        tell(end_event())
    assert capsys.readouterr() == ("", "")


# -- on a terminal -----------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def output(*events, width=80, encoding=None, **options):
    """All that was written to a terminal, its lines still there at the end."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding or "utf-8", write_through=True)
    console = Console(file=file, width=width, force_terminal=True, **options)
    with progress._board(console) as tell:
        for event in events:
            tell(event)
    return raw.getvalue().decode(encoding or "utf-8")


def lines_of(text):
    """Lines that stay: without those that are erased, and without control sequences."""
    remaining = re.sub(r"[^\n\r]*(?=\r\x1b\[2K|\n(?:\x1b\[\?25h)?\r\x1b\[1A\x1b\[2K)", "", text)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", remaining)
    return [line for line in plain.replace("\r", "\n").split("\n") if line.strip()]


@pytest.mark.parametrize("width", [60, 71])
def test_on_a_narrow_terminal_the_first_host_keeps_its_title(usage, width):
    title = progress.titles(width)
    line = progress.finished_line(end_event(usage, server=None), terminal.UNICODE, width)
    assert "server" not in title and max(len(title), len(line)) < width
    assert line.endswith("100% 1.17 GiB")
    assert title.index("client CPU RAM") == line.index("100% 1.17 GiB")


@pytest.mark.parametrize("width", [80, 120, 200])
def test_finished_steps_are_lines_in_columns_that_fit(usage, width):
    text = output(
        end_event(usage), end_event(usage, bytes_per_second=2.1e9, server=None), width=width
    )
    lines = lines_of(text)
    title = next(line for line in lines if line.startswith("step"))
    first = next(line for line in lines if line.startswith("tcp push") and "118" in line)
    assert max(map(len, lines)) < width
    assert title.index("server CPU RAM") == first.rindex("100% 1.17 GiB")
    assert title.index("client CPU RAM") == first.index("100% 1.17 GiB")
    assert sum(line.startswith("step") for line in lines) == 1


def test_the_bars_have_one_logarithmic_scale():
    bars = [
        progress.finished_line(end_event(bytes_per_second=rate), terminal.UNICODE, 200).count("█")
        for rate in (1e5, 1e6, 1e7, 1e8, 1e9, 1e10)
    ]
    assert bars == [0, 0, 12, 24, 36, 48]
    assert "1 MB/s to 10 GB/s, logarithmic" in progress.titles(200)


def test_a_reason_is_told_whole_and_hangs_below_itself(usage):
    why = "failed: " + "the server closed the connection " * 5
    lines = lines_of(output(end_event(outcome=why.strip(), bytes_per_second=None)))
    assert " ".join(" ".join(lines).split()).count("the server closed the connection") == 5
    assert lines[0].startswith("tcp push  ") and len(lines) == 4
    assert all(line.startswith(" " * 29) for line in lines[1:])


def test_hostile_text_neither_moves_the_cursor_nor_is_markup():
    refused = end_event(outcome=f"failed: {HOSTILE}", bytes_per_second=None)
    plain = output(refused, Event(HOSTILE, 1.0, 20.0), width=120)
    text = re.sub(r"\x1b\[(?:[0-9;]*m|\?25[hl]|2K|1A|1B|J)", "", plain)
    assert "\x1b" not in text and "\u202e" not in text
    assert "nas\\x1b[2J\\x0d\\x0a\\u202e[red]" in text


def test_a_rate_is_of_its_own_step_alone():
    board = progress.Board(terminal.ASCII, load=FixedLoad())
    board.take(Event("tcp push", 1.0, 20.0))
    board.take(Event("tcp", 1.0, 20.0, sample=Sample(1.0, 118 * 10**6)))
    board.take(Event("logging in", 2.0, 20.0))
    assert "MB/s" not in board_text(board, 120)
    board.take(end_event())
    assert board_text(board, 120).lstrip().startswith("#")


@pytest.mark.parametrize("width", range(20, 210, 10))
def test_the_live_line_is_shorter_than_any_terminal(width):
    """By what a terminal echoes of Ctrl-C behind it."""
    board = progress.Board(terminal.UNICODE, load=FixedLoad())
    board.take(Event("a step whose name is longer than its column", 30.0, 20.0))
    board.take(Event("tcp", 30.0, 20.0, sample=Sample(1.0, 10**12)))
    line = board_text(board, width)
    assert len(line) + len("^C") < width
    assert width < 60 or line.endswith("0 s left")


@pytest.mark.parametrize("signs", [terminal.UNICODE, terminal.ASCII], ids=["utf-8", "ascii"])
@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_the_table_under_way(golden, monkeypatch, usage, width, signs):
    """Titles, a step of both hosts, one of each alone, and the live line."""
    monkeypatch.setattr(progress, "time", living.FakeClock())
    board = progress.Board(signs, load=FixedLoad())
    golden(progress.titles(width))
    for step, rate, hosts in (
        ("push.cached 3.1.1", 118e6, {}),
        ("loopback client", 2.46e9, {"server": None}),
        ("disk server read uncached", 25.7e6, {"client": None}),
    ):
        event = replace(end_event(usage, bytes_per_second=rate, **hosts), step=step)
        golden(progress.finished_line(event, signs, width))
    board.take(Event("tcp push 4 connections", 10.0, 20.0))
    board.take(Event("tcp", 10.0, 20.0, sample=Sample(1.0, 118 * 10**6)))
    golden(board_text(board, width))


def test_a_dumb_terminal_has_the_same_lines_and_no_live_one(monkeypatch, usage):
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_INTERACTIVE", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "dumb", "COLUMNS": "80"}.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    with progress.show_progress(False) as tell:
        tell(Event("tcp push", 1.0, 20.0))
        tell(end_event(usage))
    lines = stream.getvalue().splitlines()
    assert lines == [
        progress.titles(80),
        progress.finished_line(end_event(usage), terminal.UNICODE, 80),
    ]


class FixedLoad(OwnLoad):
    def text(self):
        return "31% 1 GiB"


def board_text(board, width):
    file = io.StringIO()
    console = Console(file=file, width=width)
    console.print(board)
    return file.getvalue()


def test_a_terminal_that_became_narrower_keeps_no_wrapped_rest():
    """A line of 79 on 30 columns has three rows to erase: two more than one that fits."""
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    board = progress.Board(terminal.ASCII, load=FixedLoad(), budget_seconds=20.0)
    live = progress._Live(board, console=console, auto_refresh=False, transient=True)
    console.print(board)
    wide = live.process_renderables([])[0]
    console.width = 30
    narrow = live.process_renderables([])[0]
    count = str(narrow).count("\x1b[1A")
    assert str(wide).count("\x1b[1A") == 0
    assert count == -(-board.characters // 30) - 1 == 2


def screen_of(text, rows=24):
    """Returns a terminal's last rows, by the control sequences that we use."""
    screen, row = [""], 0
    for token in re.findall(r"\x1b\[[0-9;?]*[a-zA-Z]|[\r\n]|[^\x1b\r\n]+", text):
        if token == "\n":
            row += 1
            screen += [""] * (row + 1 - len(screen))
        elif token.endswith("A") and token.startswith("\x1b"):
            row = max(row - int(token[2:-1] or 1), len(screen) - rows, 0)
        elif token == "\x1b[J":
            screen[row:] = [""] * (len(screen) - row)
        elif token == "\x1b[2K":
            screen[row] = ""
        elif not token.startswith(("\x1b", "\r")):
            screen[row] += token
    return screen[-rows:]


@pytest.mark.parametrize("steps", [0, 3, 60])
def test_at_the_end_nothing_of_it_is_on_the_screen(usage, steps):
    """Nor is anything lost that stood there before, unless it was scrolled away."""
    events = [end_event(usage), end_event(outcome="too slow " * 20)] * steps
    screen = screen_of("$ bottleneck diagnose\n" + output(*events) + "the answer\n")
    earlier = ["$ bottleneck diagnose"] if steps < 10 else []
    assert [line for line in screen if line.strip()] == [*earlier, "the answer"]
    assert "118 MB/s" in output(*events) or not steps


def test_a_terminal_that_goes_away_ends_no_run(usage):
    class Gone(Terminal):
        encoding = "utf-8"

        def write(self, text):
            raise OSError(5, "Input/output error")

    with progress._board(Console(file=Gone(), width=80, force_terminal=True)) as tell:
        tell(end_event(usage))


def test_ctrl_c_leaves_a_cursor_and_no_half_line():
    raw = io.StringIO()
    with (
        pytest.raises(KeyboardInterrupt),
        progress._board(Console(file=raw, width=80, force_terminal=True)) as tell,
    ):
        # All the while the cursor can be seen: whoever is killed or stopped leaves one.
        assert raw.getvalue().rfind("\x1b[?25h") > raw.getvalue().rfind("\x1b[?25l")
        tell(Event(HOSTILE, 1.0, 20.0))
        raise KeyboardInterrupt
    assert "s left" in raw.getvalue()
    assert not any(line.strip() for line in screen_of(raw.getvalue()))
    assert raw.getvalue().rfind("\x1b[?25h") > raw.getvalue().rfind("\x1b[?25l")


# -- this host ---------------------------------------------------------------------------------


def test_the_first_reading_knows_no_core_and_the_next_a_share():
    load = OwnLoad()
    first = load.text()
    assert "%" not in first
    load.last_text = "kept"
    assert load.text() == "kept", "read again within its second"
    load.read_at -= 2.0
    assert re.fullmatch(r"(\d+% ?)?(\S+ [KMGT]iB)?", load.text())
