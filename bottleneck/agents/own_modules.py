"""Keeps Python from importing modules of the current folder.

`python -m` and `python -c` search it first, so that its owner's `selectors.py` would run beside a
password. Loaded before anything else, this module imports only what the interpreter has loaded at
its start; `from __future__` would be one more import.
"""

import os
import sys

HOME = os.path.realpath(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
"""Folder that contains bottleneck and probes."""


def folders() -> list[str]:
    """Returns sys.path without the current folder and PYTHONPATH's entries relative to it.

    If one of them is the home of the interpreter or of this package it comes last, so that nothing
    in it replaces a module of Python or a library.
    """
    doubtful = _doubtful()
    sure, late = [], []
    for each in sys.path:
        if not os.path.isabs(each):
            continue
        if os.path.realpath(each) not in doubtful:
            sure.append(each)
        elif _is_ours(os.path.realpath(each)):
            late.append(each)
    return [*dict.fromkeys((*sure, *late))]


def search_nowhere_else() -> None:
    """Limits this process's imports to folders(), and imports our modules from HOME.

    Another installation may come earlier in sys.path.
    """
    paths = folders()
    sys.path[:] = [HOME]
    __import__("probes")
    sys.path[:] = paths


def command(module: str, *arguments: str) -> list[str]:
    """Returns the command that runs main(*arguments) of one of our modules in a new Python.

    -I: no variable PYTHON... and no folder of the user's takes effect.
    """
    ours = f"import sys; sys.path[:] = [{HOME!r}]; import bottleneck, probes"
    start = f"from {module} import main; main(*sys.argv[1:])"
    code = f"{ours}; sys.path[:] = {folders()!r}; {start}"
    return [sys.executable, "-I", "-c", code, *arguments]


def _doubtful() -> set[str]:
    """Returns the current folder and PYTHONPATH's relative entries; an empty one is the folder."""
    try:
        here = os.getcwd()
    except FileNotFoundError:
        return set()  # the current folder was removed
    names = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    relative = [os.path.join(here, each) for each in names if not os.path.isabs(each)]
    return {os.path.realpath(each) for each in (here, *relative)}


def _is_ours(folder: str) -> bool:
    prefixes = (os.path.join(each, "") for each in (sys.prefix, sys.base_prefix))
    return folder == HOME or folder.startswith(tuple(prefixes))
