#!/usr/bin/env python3
"""Writes docs/man/bottleneck.1 from the commands themselves; with `-` on stdout.

Run it in the project's environment after any change of a command or an option:
`.venv/bin/python scripts/manpage.py`.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# E402: the project is found only now.
from typer.core import TyperArgument, TyperCommand  # noqa: E402

from bottleneck import __version__  # noqa: E402
from bottleneck.cli import command_line, configuration  # noqa: E402
from bottleneck.cli.app import tree  # noqa: E402
from bottleneck.login import credentials  # noqa: E402

PAGE = ROOT / "docs/man/bottleneck.1"
WIDTH = 78
LIKE = "diagnose"
"""The command whose options the others share."""

_ESCAPES = {
    ord("\\"): "\\e",
    ord("-"): "\\-",
    ord("'"): "\\(aq",
    ord("`"): "\\(ga",
    ord('"'): "\\(dq",
    ord("^"): "\\(ha",
    ord("~"): "\\(ti",
}
"""Escapes of groff_char(7): without them a terminal shows typographic characters."""

TARGET = r"""A share, as //host[:port]/share[/folder], \\host\share[\folder] or
smb://[user@]host[:port]/share[/folder]; or a folder, where a share is mounted."""

ENVIRONMENT = (
    (
        credentials.PASSWORD_VARIABLE,
        "Password of --user. No option has it: other users of the host can read the arguments of a "
        "program.",
    ),
    (
        configuration.FILE_VARIABLE,
        "Configuration file to read instead of those of the user and the system; empty: none.",
    ),
    (
        f"{configuration.PREFIX}OPTION",
        "Value of an option that is not on the command line, as BOTTLENECK_AGENT or "
        "BOTTLENECK_TARGET_RATE; 1 or 0 for an option without a value. Options for documents, "
        "--redact and --format are only allowed on the command line.",
    ),
    ("BOTTLENECK_DEBUG", "If set, an internal error prints its traceback."),
    ("NO_COLOR", "If set, the output has no colours."),
)

CONFIGURATION = """The value of an option comes from the command line, else the environment, else
the user's file, else the system's file. The section [defaults] applies to every command. A section
named after a command, such as [diagnose], overrides [defaults]. Keys are the names of the options
without dashes. An unknown key is an error. bottleneck config shows each value with its origin.

A file in the current directory, or a file that other users can write, is never read, because
agent = "exec:..." starts a program. Passwords are not allowed; use auth-file."""

CONFIGURATION_EXAMPLE = """[defaults]
units = "iec"

[diagnose]
user = "alice"
auth-file = "~/.config/nas.auth"
agent = "ssh://nas"
"""

FILES = (
    ("~/.config/copy-bottleneck/config.toml", "Configuration of the user ($XDG_CONFIG_HOME)."),
    ("/etc/xdg/copy-bottleneck/config.toml", "Configuration of the system ($XDG_CONFIG_DIRS)."),
    (
        "~/.local/state/copy-bottleneck/last.json",
        "Report of the last diagnosis, which explain reads ($XDG_STATE_HOME).",
    ),
)

EXAMPLES = (
    ("Try it on this host:", "bottleneck demo"),
    (
        "Find the bottleneck of copies to and from a share, measured on both hosts:",
        "bottleneck diagnose //nas/media --user alice --agent ssh://nas",
    ),
    (
        "Also write a report, an HTML page and a ticket without names:",
        "bottleneck diagnose //nas/media --user alice --yes --redact \\\n"
        "    --json report.json --html report.html --ticket ticket.md",
    ),
    ("Show how the copies changed over the reports of a folder:", "bottleneck compare runs/"),
    ("Diagnose a report again, offline:", "bottleneck explain report.json --verbose"),
    ("Complete commands and options in bash:", "source <(bottleneck --show-completion bash)"),
)

EXIT_STATUS = (
    ("0", "Done, even if the copy is slow."),
    ("3", "Done, but a test is missing or the verdict is inconclusive."),
    ("64", "Wrong usage."),
    ("69", "A host or its agent cannot be reached."),
    ("70", "Internal error."),
    ("77", "No login or no permission."),
    ("130", "Interrupted."),
)
CHECK_STATUS = (
    "bottleneck check has the exit status of monitoring plugins: 0 OK, 1 WARNING, 2 CRITICAL, "
    "3 UNKNOWN (all else, wrong usage included)."
)


def page() -> str:
    """Returns the whole page as roff for the man macros; it ends in a line feed."""
    commands = command_line.commands_of(tree())
    parts = [
        ['.\\" Made by scripts/manpage.py from the commands: change those, and run it again.'],
        [f'.TH BOTTLENECK 1 "" "copy\\-bottleneck {roff(__version__)}" "User Commands"'],
        # Neither a broken option nor a stretched line: they are copied into shells.
        [".nh", ".ad l"],
        [".SH NAME", "bottleneck \\- find out why an SMB file copy is slow"],
        [".SH SYNOPSIS", *_synopsis(commands)],
        [".SH DESCRIPTION", *paragraphs(str(tree().help))],
        [".SH TARGET", *paragraphs(TARGET)],
        [".SH COMMANDS"],
        *(list(_command(*each, commands[LIKE])) for each in commands.items()),
        [".SH OTHER OPTIONS", *_options(command_line.options_of(tree()))],
        _tagged("--help", "Show the help of a command and exit."),
        [".SH EXIT STATUS", *_all_tagged(EXIT_STATUS)],
        [".PP", *text(CHECK_STATUS)] if "check" in commands else [],
        [".SH ENVIRONMENT", *_all_tagged(ENVIRONMENT)],
        [".SH CONFIGURATION", *paragraphs(CONFIGURATION), *example(CONFIGURATION_EXAMPLE)],
        _untouched(commands),
        [".SH FILES", *_all_tagged(FILES)],
        [".SH EXAMPLES", *(line for each in EXAMPLES for line in _example(*each))],
        [".SH SEE ALSO", *_see_also()],
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def roff(words: str) -> str:
    """Returns text with everything escaped that roff takes for a request or sets otherwise."""
    escaped = words.translate(_ESCAPES)
    plain = "".join(each if each < "\x7f" else f"\\[u{ord(each):04X}]" for each in escaped)
    return f"\\&{plain}" if plain.startswith(".") else plain


def text(words: str) -> list[str]:
    """Returns a paragraph in lines, none of which roff takes for a request."""
    lines = textwrap.wrap(" ".join(words.split()), WIDTH, break_on_hyphens=False)
    return [roff(line) for line in lines]


def paragraphs(words: str) -> list[str]:
    """Returns the lines of a text whose paragraphs are separated by blank lines."""
    blocks = [text(each) for each in words.split("\n\n")]
    return [
        line for index, block in enumerate(blocks) for line in ([".PP"] if index else []) + block
    ]


def example(words: str) -> list[str]:
    """Returns lines unchanged, indented."""
    return [".PP", ".RS 4", ".EX", *(roff(line) for line in words.splitlines()), ".EE", ".RE"]


def _example(words: str, command: str) -> Iterator[str]:
    yield ".PP"
    yield from text(words)
    yield from example(command)


def _arguments(command: TyperCommand) -> list[TyperArgument]:
    """Returns the positional arguments of a command."""
    return [each for each in command.params if isinstance(each, TyperArgument)]


def _synopsis(commands: dict[str, TyperCommand]) -> Iterator[str]:
    for index, (name, command) in enumerate(commands.items()):
        if index:
            yield ".br"
        yield f".B bottleneck {roff(name)}"
        words = [each.metavar or "" for each in _arguments(command)]
        if command_line.options_of(command):
            words.append("[OPTION]...")
        if words:
            yield f".I {roff(' '.join(words))}"


def _command(name: str, command: TyperCommand, like: TyperCommand) -> Iterator[str]:
    arguments = _arguments(command)
    usage = " ".join((name, *(each.metavar or "" for each in arguments)))
    yield f'.SS "bottleneck {roff(usage)}"'
    yield from paragraphs(command.help or "")
    for argument in arguments:
        yield from _tagged((argument.metavar or "").strip("[]"), argument.help or "")
    options = command_line.options_of(command)
    likewise = () if name == LIKE else command_line.options_of(like)
    shared = [each for each in options if each in likewise]
    yield from _options(each for each in options if each not in shared)
    if shared:
        flags = ", ".join(each.flags[0] for each in shared)
        yield ".PP"
        yield from text(f"As for {LIKE}: {flags}.")


def _options(several: Iterable[command_line.Option]) -> Iterator[str]:
    for option in several:
        value = f" {option.metavar}" if option.metavar else ""
        yield from _tagged(", ".join(f"{flag}{value}" for flag in option.flags), option.help)


def _tagged(tag: str, words: str) -> list[str]:
    return [".TP", f".B {roff(tag)}", *text(words or "See above.")]


def _all_tagged(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for pair in pairs:
        yield from _tagged(*pair)


def _untouched(commands: Iterable[str]) -> list[str]:
    names = ", ".join(each for each in commands if each in configuration.UNTOUCHED)
    return [".PP", *text(f"These commands have no settings: {names}.")]


def _see_also() -> Iterator[str]:
    pages = ("fio(1)", "iperf3(1)", "smbclient(1)", "ssh(1)", "mount.cifs(8)")
    for index, each in enumerate(pages):
        name, _, section = each.partition("(")
        yield f".BR {roff(name)} ({section}{',' if index < len(pages) - 1 else ''}"


def main() -> None:
    """Writes the page, or shows it."""
    if sys.argv[1:] == ["-"]:
        sys.stdout.write(page())
        return
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="ascii")


if __name__ == "__main__":
    main()
