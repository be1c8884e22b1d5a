"""Shell completion: the words that an option takes, and the scripts that ask for them.

The shell is told, and not guessed from the process that started this one: there is none in a
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


def checked(option: str, word: str, known: Iterable[str]) -> str:
    """The word. Raises Refused, "usage", where it is none of those that an option takes."""
    known = tuple(known)
    if word not in known:
        raise Refused("usage", f"{option} {word!r}: must be one of {', '.join(known)}")
    return word


def one_of(*words: str) -> Completion:
    """Completes one of the words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def list_of(words: Iterable[str]) -> Completion:
    """Completes the last one of a list with commas, of words that it does not have yet."""
    known = tuple(words)

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        left = [word for word in known if word not in before.split(",")]
        return [before + comma + word for word in left if word.startswith(last)]

    return complete


def get_ready() -> None:
    """Has typer know the shells, where one of them asks for candidates."""
    if VARIABLE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()


def script(shell: str) -> str:
    """What a shell has to read to complete `bottleneck`.

    Errors: Refused, "usage": it is none of SHOWN.
    """
    from typer._completion_shared import get_completion_script

    checked("--show-completion", shell, SHOWN)
    return get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell)


def install(shell: str) -> str:
    """Writes the script into a file of its own, where a shell finds it, and returns what was done.

    Errors: Refused, "usage": it is none of INSTALLED; "permission": it cannot be written.
    """
    from bottleneck.report import document_file
    from probes.files import folders

    checked("--install-completion", shell, INSTALLED)
    path = _place(shell)
    try:
        document_file.check(path)
        folders.make_private(str(path.parent))
        document_file.write(path, script(shell) + "\n")
    except OSError as error:
        why = f"{path}: {str(error.strerror).partition(';')[0]}; use --show-completion"
        raise Refused("permission", f"--install-completion: {why}") from None
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
