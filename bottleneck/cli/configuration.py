"""Values of options that nobody gives: from the environment, the user's file, the system's.

A flag wins over the environment, that over the user's file, that over the system's, that over what
is built in. No file of the current folder is read: it may come from a stranger, with an unpacked
archive or on the very share that is looked at, and `agent = "exec:..."` starts a program.
"""

from __future__ import annotations

import difflib
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bottleneck.cli.command_line import CommandLine, Option, commands_of, options_of
from bottleneck.documents.formats import KINDS
from bottleneck.login.target import SUCCESSORS
from probes.core import bounded
from probes.core.stage import Refused
from probes.system.platform import os

FILE_VARIABLE = "BOTTLENECK_CONFIG"
PREFIX = "BOTTLENECK_"
DEFAULTS = "defaults"
"""The section that holds for every command."""
LARGEST_BYTES = 64 << 10
SECRETS = frozenset(("password", "passwd", "pass", "pw", "token", "agent-token", "secret"))
ON_THE_LINE = frozenset((*KINDS, "output", "redact"))
"""Options for the command line only: documents are owed even if no configuration is ever read."""
ON_THE_LINE_OF = {
    "cleanup": frozenset(("yes", "older-than")),
    "explain": frozenset(("copy", "link", "rtt", "from", "template")),
}
"""Options for the command line only, by command: removal is asked for each time by its
user, and figures are those of one case."""
OF_ONE_COMMAND = frozenset(("format",))
"""Options that mean something else for each command."""
_BUDGETS = frozenset(("budget", "quick", "thorough"))
_HIDES = {
    **{each: _BUDGETS for each in _BUDGETS},
    # User and password come from one place: no name with the password of another.
    "user": frozenset(("auth-file",)),
    "auth-file": frozenset(("user", "domain")),
}
"""Options that a place hides in the lower ones."""
_TRUTHS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number"}

UNTOUCHED = frozenset(("agent", "config", "demo", "estimate", "schema"))
"""Commands without settings: they do what their arguments say, on every host and for everybody."""

Options = Mapping[str, Option]
"""A command's options by their names without dashes."""
Value = bool | int | float | str | list[str]


@dataclass(frozen=True)
class Setting:
    """Value of an option, and its origin."""

    value: Value
    origin: str


@dataclass(frozen=True)
class Source:
    """A configuration file."""

    path: Path
    explicit: bool
    """Whether BOTTLENECK_CONFIG names it: then it has to exist."""


def sources(environment: Mapping[str, str]) -> tuple[Source, ...]:
    """Returns the files to read, the first one wins; BOTTLENECK_CONFIG names one in place of both.

    Empty, or /dev/null: none is read.
    """
    path = environment.get(FILE_VARIABLE)
    if path is not None:
        return () if path in ("", os.devnull) else (Source(Path(path), True),)
    import platformdirs

    folders = [platformdirs.site_config_dir("copy-bottleneck")]
    with suppress(RuntimeError):  # a user without a home
        folders.insert(0, platformdirs.user_config_dir("copy-bottleneck"))
    # Earlier versions of platformdirs lead to the current folder then, which is anybody's.
    paths = [Path(each) / "config.toml" for each in folders]
    return tuple(Source(each, False) for each in paths if each.is_absolute())


def read(source: Source) -> str | None:
    """Returns a file's text; None: it is not there, or not for this user.

    Errors: Refused, "usage": it is named and cannot be read, or others may write to it.
    """
    try:
        fd = os.open(source.path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        if source.explicit:
            raise Refused("usage", f"{FILE_VARIABLE} {source.path}: {error.strerror}") from None
        return None
    try:
        _check(source.path, os.fstat(fd))
        content = os.read(fd, LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise Refused("usage", f"{source.path}: larger than {LARGEST_BYTES} bytes")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused("usage", f"{source.path}: not UTF-8") from None
    except OSError as error:
        raise Refused("usage", f"{source.path}: {error.strerror}") from None
    finally:
        os.close(fd)


def _check(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Refused("usage", f"{path}: not a regular file")
    if status.st_uid not in {0, os.geteuid()}:
        raise Refused("usage", f"{path}: owned by another user, and it can start programs")
    if status.st_mode & 0o022:
        text = f"writable by other users, and it can start programs; run: chmod go-w {path}"
        raise Refused("usage", f"{path}: {text}")


def commands(root: object) -> dict[str, Options]:
    """Returns the options of every command that may be configured."""
    return {
        name: {option.key: option for option in options_of(command)}
        for name, command in commands_of(root).items()
        if name not in UNTOUCHED
    }


def settings(
    command: str,
    commands: Mapping[str, Options],
    environment: Mapping[str, str],
    typed: Iterable[str] = (),
) -> dict[str, Setting]:
    """Returns the settings of options that the command line does not tell, by their names.

    Args:
        commands: options of every command that may be configured.
        typed: options that the command line tells.

    Errors: Refused, "usage": a file or a variable is not what it has to be, wherever in it.
    """
    options = {key: each for key, each in commands[command].items() if can_set(command, key)}
    places = [_from_environment(options, environment)]
    for source in sources(environment):
        text = read(source)
        if text is not None:
            sections = _sections(source.path, text, commands)
            places += [sections.get(command, {}), sections.get(DEFAULTS, {})]
    merged: dict[str, Setting] = {}
    hidden = _add_hidden(typed)
    for place in places:
        merged.update({key: place[key] for key in place if key in options and key not in hidden})
        hidden |= _add_hidden(place)
    return merged


def default_map(root: object, line: CommandLine) -> dict[str, Value]:
    """Returns the settings of the typed command by its parameters' names: click's default_map.

    Errors: Refused: kind "usage", as settings() does.
    """
    choices = commands(root)
    if line.command not in choices:
        return {}
    merged = settings(line.command, choices, os.environ, line.options)
    return {choices[line.command][key].name: setting.value for key, setting in merged.items()}


def can_set(command: str, key: str) -> bool:
    """Whether an option of a command may be set anywhere but on the command line."""
    return key not in ON_THE_LINE and key not in ON_THE_LINE_OF.get(command, ())


def _add_hidden(keys: Iterable[str]) -> set[str]:
    return {name for key in keys for name in (key, *_HIDES.get(key, ()))}


def _from_environment(options: Options, environment: Mapping[str, str]) -> dict[str, Setting]:
    settings = {}
    for key, option in options.items():
        name = PREFIX + key.upper().replace("-", "_")
        text = environment.get(name, "")
        if text and key not in OF_ONE_COMMAND:
            value = [text] if option.is_repeatable else _parse(option.kind, text, name)
            settings[key] = Setting(value, name)
    return settings


def _parse(kind: type, text: str, name: str) -> Value:
    try:
        if kind is bool:
            return _TRUTHS[text.strip().lower()]
        return kind(text) if kind in (int, float) else text
    except (KeyError, ValueError):
        raise Refused("usage", f"{name} {text[:40]!r}: must be {_WORDS[kind]}") from None


def _sections(
    path: Path, text: str, commands: Mapping[str, Options]
) -> dict[str, dict[str, Setting]]:
    """Returns every section's settings, each checked, also those of other commands."""
    try:
        document = bounded.loads_toml(text.encode("utf-8"), LARGEST_BYTES)
    except bounded.NotBounded as error:
        raise Refused("usage", f"{path}: {error}") from None
    everywhere = {
        key: option
        for command, options in commands.items()
        for key, option in options.items()
        if key not in ON_THE_LINE_OF.get(command, ()) and key not in OF_ONE_COMMAND
    }
    allowed = {DEFAULTS: everywhere, **commands}
    sections: dict[str, dict[str, Setting]] = {}
    for section, entries in document.items():
        if not isinstance(entries, dict):
            where = _where(path, text, "", section)
            _refuse_secret(where, section)
            raise Refused("usage", f"{where}: {section[:40]!r} must be in a section, as [defaults]")
        if section not in allowed:
            where, similar = _where(path, text, section, None), _near(section, allowed)
            what = f"[{section[:40]}] is not a command with settings{similar}"
            raise Refused("usage", f"{where}: {what}")
        sections[section] = {
            key: _to_setting(
                _where(path, text, section, key), section, allowed[section], key, value
            )
            for key, value in entries.items()
        }
    return sections


def _to_setting(where: str, section: str, options: Options, key: str, value: Any) -> Setting:
    _refuse_secret(where, key)
    option = options.get(key)
    lone = section == DEFAULTS and option is None
    if not can_set(section, key) or lone and any(key in each for each in ON_THE_LINE_OF.values()):
        raise Refused("usage", f"{where}: --{key} is only allowed on the command line")
    if option is None:
        if f"--{key}" in SUCCESSORS:
            raise Refused("usage", f"{where}: {SUCCESSORS[f'--{key}']}")
        of = "any command" if section == DEFAULTS else f"bottleneck {section}"
        if section == DEFAULTS and key in OF_ONE_COMMAND:
            raise Refused("usage", f"{where}: {key} must be in the section of a command")
        raise Refused("usage", f"{where}: {key[:40]!r} not an option of {of}{_near(key, options)}")
    if not option.is_repeatable:
        return Setting(_typed_value(where, option, value), where)
    several = value if isinstance(value, list) else [value]
    return Setting([str(_typed_value(where, option, each)) for each in several], where)


def _typed_value(where: str, option: Option, value: Any) -> bool | int | float | str:
    kind = option.kind
    number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    if kind is bool and isinstance(value, bool) or kind is int and number:
        return bool(value) if kind is bool else int(value)
    if kind is float and (number or isinstance(value, float)):
        return float(value)
    if kind not in _WORDS and isinstance(value, str) and "\0" not in value:
        # No shell expands what a file says.
        return os.path.expanduser(value) if value.startswith("~/") else value  # noqa: PTH111 - text stays text
    word = _WORDS.get(kind, "a text in quotes")
    raise Refused("usage", f"{where}: {option.key} must be {word}")


def _refuse_secret(where: str, key: str) -> None:
    if key.lower().replace("_", "-") in SECRETS:
        raise Refused(
            "usage",
            f"{where}: {key[:40]} is not allowed here; use auth-file = a file of mode 0600, or set "
            "BOTTLENECK_PASSWORD",
        )


def _near(word: str, choices: Iterable[str]) -> str:
    matches = difflib.get_close_matches(word.lower().replace("_", "-"), list(choices), 3, 0.5)
    return f"; similar: {', '.join(matches)}" if matches else ""


def _where(path: Path, text: str, section: str, key: str | None) -> str:
    """Returns the file, and the line of a key or else of a section, where it is easily found."""
    inside = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.fullmatch(r"\s*\[\s*[\"']?([^\"'\]]*?)[\"']?\s*\]\s*(#.*)?", line)
        inside = header[1] if header else inside
        name = re.match(r"\s*[\"']?([^\"'=]*?)[\"']?\s*=", line)
        if inside == section and (header if key is None else name and name[1] == key):
            return f"{path}, line {number}"
    return str(path)
