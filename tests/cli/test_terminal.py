"""Who decides about colours and width: the conventions that users set in their environment."""

from __future__ import annotations

import io
import sys

import pytest

from bottleneck.cli import progress, streams
from bottleneck.documents import terminal

NAMES = (
    *"NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE TTY_COMPATIBLE".split(),
    *"TTY_INTERACTIVE COLUMNS TERM COLORTERM".split(),
)


class Stream(io.StringIO):
    encoding = "utf-8"

    def __init__(self, tty):
        super().__init__()
        self.tty = tty

    def isatty(self):
        return self.tty


@pytest.fixture
def console_on(monkeypatch):
    """Makes a console in an environment, on a terminal or a pipe."""

    def go(tty, stderr=False, **environment):
        for name in NAMES:
            monkeypatch.delenv(name, raising=False)
        for name, value in {"TERM": "xterm", **environment}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.stderr" if stderr else "sys.stdout", Stream(tty))
        return terminal.console(stderr)

    return go


def prints_colour(console):
    console.print("x", style="red")
    return "\x1b[31m" in console.file.getvalue()


@pytest.mark.parametrize(
    ("tty", "environment", "colours"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"CLICOLOR": "0"}, False),
        (True, {"CLICOLOR": "1"}, True),
        (False, {"CLICOLOR": "1"}, False),
        (False, {"CLICOLOR_FORCE": "1"}, True),
        (False, {"CLICOLOR_FORCE": "0"}, False),
        (True, {"CLICOLOR_FORCE": "1", "CLICOLOR": "0"}, True),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (False, {"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False),
        (True, {"TTY_COMPATIBLE": "0"}, False),
        (False, {"TTY_COMPATIBLE": "1"}, True),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_colours_are_where_the_environment_wants_them(console_on, tty, environment, colours):
    assert prints_colour(console_on(tty, **environment)) is colours


@pytest.mark.parametrize(
    ("tty", "environment", "moves"),
    [
        (True, {}, True),
        (False, {"FORCE_COLOR": "1"}, False),
        (False, {"TTY_COMPATIBLE": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": "unknown"}, False),
        (True, {"TTY_INTERACTIVE": "0"}, False),
        (True, {"TTY_COMPATIBLE": "0"}, False),
        (True, {"NO_COLOR": "1"}, True),
    ],
)
def test_lines_are_drawn_anew_on_a_real_terminal_alone(console_on, tty, environment, moves):
    assert progress.moves(console_on(tty, stderr=True, **environment)) is moves


def test_a_pipe_is_as_wide_as_the_user_says_or_as_a_log_is(console_on):
    assert console_on(False).width == 100
    assert console_on(False, COLUMNS="132").width == 132
    assert console_on(False, TERM="dumb").width == 100


@pytest.mark.parametrize(
    ("environment", "encoding"),
    [
        ({}, "utf-8"),
        ({"LANG": "C.UTF-8"}, "utf-8"),
        ({"LANG": "C"}, "ascii"),
        ({"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, "ascii"),
        ({"LC_ALL": "de_DE.UTF-8", "LANG": "C"}, "utf-8"),
        ({"LC_ALL": "C", "PYTHONIOENCODING": "utf-8"}, "utf-8"),
        ({"LC_ALL": "C", "PYTHONUTF8": "1"}, "utf-8"),
    ],
)
def test_the_c_locale_is_ascii_where_the_user_chose_it(monkeypatch, environment, encoding):
    for name in ("LC_ALL", "LC_CTYPE", "LANG", "PYTHONIOENCODING", "PYTHONUTF8"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    streams.obey_locale()
    assert sys.stdout.encoding == sys.stderr.encoding == encoding
