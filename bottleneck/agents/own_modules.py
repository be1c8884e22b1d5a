"""Python finds this program's modules where it is installed, and none in the current folder.

`python -m` and `python -c` look there first, and whoever made the current folder would have his
own `selectors.py` run beside a password. Loaded before anything else, so it imports only what the
interpreter has loaded at its start; `from __future__` would be one more import.
"""

import os
import sys

HOME = os.path.realpath(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
"""The folder that bottleneck and probes lie in."""


def folders() -> list[str]:
    """sys.path without the current folder and without what PYTHONPATH names relative to it.

    Where one of them is the interpreter's or this package's own home it comes last: nothing in it
    can stand in for a module of Python's or of a library's.
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
    """Has this process import from those folders alone, from now on, and our modules from HOME.

    Another installation may stand before it on the way.
    """
    found = folders()
    sys.path[:] = [HOME]
    __import__("probes")
    sys.path[:] = found


def command(module: str, *arguments: str) -> list[str]:
    """The command that runs main(*arguments) of a module of this package, in a Python of its own.

    -I: no variable PYTHON... and no folder of the user's has a say in it.
    """
    ours = f"import sys; sys.path[:] = [{HOME!r}]; import bottleneck, probes"
    start = f"from {module} import main; main(*sys.argv[1:])"
    code = f"{ours}; sys.path[:] = {folders()!r}; {start}"
    return [sys.executable, "-I", "-c", code, *arguments]


def _doubtful() -> set[str]:
    """The current folder, and what PYTHONPATH names from there; an empty name is the folder."""
    try:
        here = os.getcwd()
    except FileNotFoundError:
        return set()  # it was removed: nothing is found there
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    relative = [os.path.join(here, each) for each in named if not os.path.isabs(each)]
    return {os.path.realpath(each) for each in (here, *relative)}


def _is_ours(folder: str) -> bool:
    prefixes = (os.path.join(each, "") for each in (sys.prefix, sys.base_prefix))
    return folder == HOME or folder.startswith(tuple(prefixes))
