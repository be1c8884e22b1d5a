"""`watch --live`: lines on a screen of its own or in a log, keys, and all as it was afterwards."""

import io
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import threading
from collections import deque
from pathlib import Path

import pytest
from rich.console import Console

from bottleneck.analysis.finding import TimeShare
from bottleneck.cli import live
from bottleneck.cli.live import View
from bottleneck.documents.terminal import show
from bottleneck.run.live import Feed, Line
from tests.cli.test_watch import transfer

ROOT = Path(__file__).parents[2]
WENT = (TimeShare("network", "path", 0.71), TimeShare("disk", "client", 0.22))
LINES = [
    Line("pull from 10.0.0.2, smbclient 4711", 21e6, WENT),
    Line("push to 10.0.0.3, rsync 4712", 98e6, (TimeShare("disk", "client", 1.0),)),
    Line("push to 10.0.0.4, port 40001", 2e6, ()),
]


def screen_text(lines=LINES, width=80, **keywords):
    feed = Feed(None, used=deque([(0.0, 1.0), (10.0, 1.09)]))
    view = View(**keywords)
    file = io.StringIO()
    console = Console(file=file, width=width, height=24, highlight=False)
    show(console, live._blocks(feed, view, view.ordered_lines(lines)))
    return file.getvalue()


def test_the_fastest_copy_comes_first_or_they_are_sorted_by_name():
    assert [*re.findall(r"smbclient|rsync|port", screen_text())] == ["rsync", "smbclient", "port"]
    by_name = re.findall(r"smbclient|rsync|port", screen_text(by_name=True))
    assert by_name == ["smbclient", "rsync", "port"]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_lines_fit_and_show_as_many_components_as_there_is_room_for(width):
    text = screen_text(width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "3 copies, 121 MB/s. This watch takes 0.9% of a core." in text
    assert ("22% client disk" in text) == (width >= 100)
    assert "71% network" in text
    assert "q: quit" in text


def test_nothing_that_moves_is_said():
    assert live.NOTHING in screen_text([])
    assert "0 copies" in screen_text([])


def test_keys():
    view = View()
    view.press(b"s ")
    assert (view.by_name, view.frozen, view.over) == (True, True, False)
    view.press(b" xQ")
    assert (view.by_name, view.frozen, view.over) == (True, False, True)


def test_a_log_has_a_line_for_each_copy(capsys):
    live._print(LINES)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(
        "  pull from 10.0.0.2, smbclient 4711: 21.0 MB/s, 71% network, 22% client disk"
    )
    assert lines[2].endswith("  push to 10.0.0.4, port 40001: 2.00 MB/s")


def test_what_is_drawn_covers_what_was_there():
    file = io.StringIO()
    console = Console(file=file, width=80, height=3, force_terminal=True, color_system=None)
    feed = Feed(None, used=deque([(0.0, 1.0), (10.0, 1.09)]))
    live._draw(console, live._blocks(feed, View(), LINES))
    drawn = file.getvalue()
    assert drawn.startswith("\x1b[H") and drawn.endswith("\x1b[K\n\x1b[J")
    assert drawn.count("\n") == 2


def on_terminal(do, *arguments):
    """Runs the program on a terminal; all that it writes, its code, the terminal before and after.

    do: called with what was written so far, until it returns True.
    """
    main, side = pty.openpty()
    earlier = termios.tcgetattr(side)
    process = subprocess.Popen(
        [sys.executable, "-m", "bottleneck", "watch", "--live", *arguments],
        stdin=side,
        stdout=side,
        stderr=side,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
        start_new_session=True,
    )
    written, ended = [], threading.Event()

    def read():
        done = False
        while not ended.is_set():
            written.append(os.read(main, 4096).decode(errors="replace"))
            done = done or bool(do("".join(written), process, main))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        code = process.wait(60)
    finally:
        process.kill()
    attributes = termios.tcgetattr(side)
    ended.set()
    os.write(side, b"end")
    thread.join(10)
    os.close(side)
    os.close(main)
    return "".join(written), code, earlier, attributes


def interrupt(written, process, main):
    if copying := "copy, " in written:
        process.send_signal(signal.SIGINT)
    return copying


def press_q(written, process, main):
    if copying := "copy, " in written:
        os.write(main, b"q")
    return copying


@pytest.mark.long
@pytest.mark.parametrize(("do", "code"), [(press_q, 0), (interrupt, 130)])
def test_the_terminal_is_as_it_was(do, code):
    with transfer() as sender:
        written, ended, earlier, later = on_terminal(do, str(sender.pid))
    assert ended == code
    assert earlier == later
    assert written.count("\x1b[?1049h") == written.count("\x1b[?1049l") == 1
    assert written.index("\x1b[?25l") < written.rindex("\x1b[?25h")
    assert "push to 127.0.0.1, python" in written


@pytest.mark.long
def test_without_a_terminal_there_are_plain_lines_until_the_time_is_over(begin, helpers):
    with transfer() as sender:
        process = begin("watch", sender.pid, "--live", "--seconds", "4")
        out, complaints = helpers.finish(process)
    assert (process.returncode, complaints) == (0, [])
    assert re.search(r"^\d\d:\d\d:\d\d  push to 127.0.0.1, python\S* \d+: .* [kMG]B/s", out, re.M)
    assert "\x1b" not in out


@pytest.mark.long
@pytest.mark.parametrize("options", [("--agent", "exec:"), ("--json", "x.json"), ("--redact",)])
def test_what_a_live_watch_cannot_do_is_refused(begin, helpers, options, tmp_path):
    process = begin("watch", "--live", *options, cwd=tmp_path)
    _, (complaint,) = helpers.finish(process)
    assert process.returncode == 64
    assert "--live: use it without" in complaint


@pytest.mark.long
def test_a_process_that_is_none_is_one_line(begin, helpers):
    process = begin("watch", "--live", 2**22 + 1)
    _, (complaint,) = helpers.finish(process)
    assert process.returncode == 69
    assert "not found on this host" in complaint
