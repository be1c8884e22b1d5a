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

from typer.core import TyperCommand  # noqa: E402

from bottleneck import __version__, credentials  # noqa: E402
from bottleneck.cli import command_line, configuration  # noqa: E402
from bottleneck.cli.app import tree  # noqa: E402

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
"""As groff_char(7) has them: otherwise a terminal would show typographic ones."""

TARGET = r"""A share, as //host[:port]/share[/folder], \\host\share[\folder] or
smb://[user@]host[:port]/share[/folder]; or a folder, where a share is mounted."""

ENVIRONMENT = (
    (
        credentials.PASSWORD_VARIABLE,
        "The password of --user. There is no option for it: everybody "
        "on the host can read a program's arguments.",
    ),
    (
        credentials.TOKEN_VARIABLE,
        "The token that bottleneck agent --listen shows, for --agent tcp://.",
    ),
    (credentials.TOKEN_FILE_VARIABLE, "The name of a file of mode 0600 with that token."),
    (
        configuration.FILE_VARIABLE,
        "One configuration file in place of the user's and the system's; empty: none is read.",
    ),
    (
        f"{configuration.PREFIX}OPTION",
        "What an option is when it is not given, as BOTTLENECK_AGENT or BOTTLENECK_TARGET_RATE; 1 "
        "or 0 for one without a value. Those for documents, --redact and --format are given on "
        "the command line alone.",
    ),
    ("BOTTLENECK_DEBUG", "Where it is set, an internal error shows its traceback."),
    ("NO_COLOR", "Where it is set, nothing is coloured."),
)

CONFIGURATION = """Options that are not given are looked for in the environment, then in the user's
file, then in the system's. A section [defaults] holds for every command, one named as a command,
such as [diagnose], for that one and wins; keys are the options without their dashes. A name that
is no option is an error that tells the line. bottleneck config shows every value with its origin.

No file of the current folder is read, and none that others may write to: it may come from a
stranger, and agent = "exec:..." starts a program. A password is refused: name a file of mode 0600
with auth-file."""

CONFIGURATION_EXAMPLE = """[defaults]
units = "iec"
history = "default"

[diagnose]
user = "alice"
auth-file = "~/.config/nas.auth"
agent = "ssh://nas"
"""

FILES = (
    ("~/.config/copy-bottleneck/config.toml", "The user's configuration ($XDG_CONFIG_HOME)."),
    ("/etc/xdg/copy-bottleneck/config.toml", "The system's configuration ($XDG_CONFIG_DIRS)."),
    (
        "~/.local/state/copy-bottleneck/history.sqlite",
        "What --history default keeps: the figures of each run, and no password "
        "($XDG_STATE_HOME). Another program's file is refused and stays as it is. Runs with "
        "--redact are kept by their tokens; they are listed, and give no trend, for another "
        "server has the same ones.",
    ),
)

EXAMPLES = (
    ("See it work on this host alone:", "bottleneck demo"),
    (
        "Which component caps copies to and from a share, measured at both ends:",
        "bottleneck diagnose //nas/media --user alice --agent ssh://nas",
    ),
    (
        "A page for a browser, a ticket without names, and the trend of all runs so far:",
        "bottleneck diagnose //nas/media --user alice --yes --redact \\\n"
        "    --html report.html --ticket ticket.md --history default",
    ),
    ("Diagnose a report again, offline:", "bottleneck explain report.json --verbose"),
    ("Complete commands and options in this bash:", "source <(bottleneck --show-completion bash)"),
)

EXIT_STATUS = (
    ("0", "Done, however slow the copy was."),
    ("3", "Done, but a stage is missing or the verdict is inconclusive."),
    ("64", "Wrong usage."),
    ("69", "A host or its agent is not reachable."),
    ("70", "An internal error."),
    ("77", "The login or a permission was refused."),
    ("130", "Interrupted."),
)
CHECK_STATUS = (
    "bottleneck check ends as monitoring plugins do: 0 OK, 1 WARNING, 2 CRITICAL, "
    "3 UNKNOWN, which is all else, wrong usage included."
)


def page() -> str:
    """The whole page as roff for the man macros; ends in a line feed."""
    known = command_line.commands_of(tree())
    parts = [
        ['.\\" Made by scripts/manpage.py from the commands: change those, and run it again.'],
        [f'.TH BOTTLENECK 1 "" "copy\\-bottleneck {roff(__version__)}" "User Commands"'],
        # Neither a broken option nor a stretched line: they are copied into shells.
        [".nh", ".ad l"],
        [".SH NAME", "bottleneck \\- names the component that caps an SMB file copy"],
        [".SH SYNOPSIS", *_synopsis(known)],
        [".SH DESCRIPTION", *paragraphs(str(tree().help))],
        [".SH TARGET", *paragraphs(TARGET)],
        [".SH COMMANDS"],
        *(list(_command(*each, known[LIKE])) for each in known.items()),
        [".SH OTHER OPTIONS", *_options(command_line.options_of(tree()))],
        _tagged("--help", "Show a command's usage and exit."),
        [".SH EXIT STATUS", *_all_tagged(EXIT_STATUS)],
        [".PP", *text(CHECK_STATUS)] if "check" in known else [],
        [".SH ENVIRONMENT", *_all_tagged(ENVIRONMENT)],
        [".SH CONFIGURATION", *paragraphs(CONFIGURATION), *example(CONFIGURATION_EXAMPLE)],
        _untouched(known),
        [".SH FILES", *_all_tagged(FILES)],
        [".SH EXAMPLES", *(line for each in EXAMPLES for line in _shown(*each))],
        [".SH SEE ALSO", *_see_also()],
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def roff(words: str) -> str:
    """Text with everything escaped that roff would take for a request or set otherwise."""
    escaped = words.translate(_ESCAPES)
    plain = "".join(each if each < "\x7f" else f"\\[u{ord(each):04X}]" for each in escaped)
    return f"\\&{plain}" if plain.startswith(".") else plain


def text(words: str) -> list[str]:
    """A paragraph in lines, none of which roff takes for a request."""
    lines = textwrap.wrap(" ".join(words.split()), WIDTH, break_on_hyphens=False)
    return [roff(line) for line in lines]


def paragraphs(words: str) -> list[str]:
    """Paragraphs that blank lines part."""
    blocks = [text(each) for each in words.split("\n\n")]
    return [line for at, block in enumerate(blocks) for line in ([".PP"] if at else []) + block]


def example(words: str) -> list[str]:
    """Lines as they are, indented."""
    return [".PP", ".RS 4", ".EX", *(roff(line) for line in words.splitlines()), ".EE", ".RE"]


def _shown(words: str, command: str) -> Iterator[str]:
    yield ".PP"
    yield from text(words)
    yield from example(command)


def _synopsis(known: dict[str, TyperCommand]) -> Iterator[str]:
    for at, (name, command) in enumerate(known.items()):
        if at:
            yield ".br"
        yield f".B bottleneck {roff(name)}"
        words = [each.metavar or "" for each in command_line.arguments_of(command)]
        if command_line.options_of(command):
            words.append("[OPTION]...")
        if words:
            yield f".I {roff(' '.join(words))}"


def _command(name: str, command: TyperCommand, like: TyperCommand) -> Iterator[str]:
    arguments = command_line.arguments_of(command)
    named = " ".join((name, *(each.metavar or "" for each in arguments)))
    yield f'.SS "bottleneck {roff(named)}"'
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
        default = option.default
        # None and False: nothing is there until it is given.
        shown = "the current folder" if default == Path() else default
        told = "" if default in (None, False, "") else f" Default: {shown}."
        again = " May be given more than once." if option.many else ""
        stop = "" if not told + again or option.help.endswith(".") else "."
        help_text = f"{option.help}{stop}{told}{again}"
        yield from _tagged(", ".join(f"{flag}{value}" for flag in option.flags), help_text)


def _tagged(tag: str, words: str) -> list[str]:
    return [".TP", f".B {roff(tag)}", *text(words or "See above.")]


def _all_tagged(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for pair in pairs:
        yield from _tagged(*pair)


def _untouched(known: Iterable[str]) -> list[str]:
    names = ", ".join(each for each in known if each in configuration.UNTOUCHED)
    return [".PP", *text(f"These commands take no settings: {names}.")]


def _see_also() -> Iterator[str]:
    pages = ("fio(1)", "iperf3(1)", "smbclient(1)", "ssh(1)", "mount.cifs(8)")
    for at, each in enumerate(pages):
        name, _, section = each.partition("(")
        yield f".BR {roff(name)} ({section}{',' if at < len(pages) - 1 else ''}"


def main() -> None:
    """Writes the page, or shows it."""
    if sys.argv[1:] == ["-"]:
        sys.stdout.write(page())
        return
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="ascii")


if __name__ == "__main__":
    main()
