"""Shell completion: the words that an option takes, and the scripts that ask for them.

The user names the shell. It is not guessed from the parent process, which is no shell in a
package's build or a configuration tool.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from probes.core.stage import Refused

PROGRAM, VARIABLE = "bottleneck", "_BOTTLENECK_COMPLETE"
SHOWN = ("bash", "zsh", "fish", "powershell")
INSTALLED = ("bash", "zsh", "fish")
"""Shells that read completions from files of their own."""

Completion = Callable[[str], list[str]]


def checked_word(option: str, word: str, words: Iterable[str]) -> str:
    """Returns the word. Raises Refused, "usage", where it is none of those that an option takes."""
    words = tuple(words)
    if word not in words:
        raise Refused("usage", f"{option} {word!r}: must be one of {', '.join(words)}")
    return word


def one_of(*words: str) -> Completion:
    """Returns a completion of one of the words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def list_of(words: Iterable[str]) -> Completion:
    """Returns a completion of the last item of a list with commas, without those it has already."""
    choices = tuple(words)

    def complete(incomplete: str) -> list[str]:
        head, comma, last = incomplete.rpartition(",")
        rest = [word for word in choices if word not in head.split(",")]
        return [head + comma + word for word in rest if word.startswith(last)]

    return complete


def get_ready() -> None:
    """Makes typer know the shells, where one of them asks for candidates."""
    if VARIABLE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()


def script(shell: str) -> str:
    """Returns the script that completes `bottleneck` in a shell.

    Errors: Refused, "usage": it is none of SHOWN.
    """
    from typer._completion_shared import get_completion_script

    checked_word("--show-completion", shell, SHOWN)
    return get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell)


def install(shell: str) -> str:
    """Writes the script into a file of its own, where a shell finds it, and returns what was done.

    Errors: Refused, "usage": it is none of INSTALLED; "permission": it cannot be written.
    """
    from bottleneck.report import document_file
    from probes.files import folders

    checked_word("--install-completion", shell, INSTALLED)
    path = _place(shell)
    try:
        document_file.check(path)
        folders.make_private(str(path.parent))
        document_file.write(path, script(shell) + "\n")
    except OSError as error:
        reason = f"{path}: {str(error.strerror).partition(';')[0]}; use --show-completion"
        raise Refused("permission", f"--install-completion: {reason}") from None
    if shell != "zsh":
        return f"installed {path}; open a new {shell} to use it"
    sentence = f"installed {path}; add this line to ~/.zshrc:\n"
    return f"{sentence}fpath+=('{path.parent}'); autoload -Uz compinit; compinit"


def _place(shell: str) -> Path:
    """Returns the file that a shell reads for completions of this program, in this user's home."""

    def folder(variable: str, usual: str) -> Path:
        path = Path(os.environ.get(variable, ""))
        return path if path.is_absolute() else Path.home() / usual

    data = folder("XDG_DATA_HOME", ".local/share")
    if shell == "fish":
        return folder("XDG_CONFIG_HOME", ".config") / "fish/completions" / f"{PROGRAM}.fish"
    if shell == "zsh":
        return data / "copy-bottleneck/zsh" / f"_{PROGRAM}"
    return data / "bash-completion/completions" / PROGRAM
