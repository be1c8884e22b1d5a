"""What went is refused by one line that names its successor."""

from __future__ import annotations

import pytest

from bottleneck.cli import exits
from bottleneck.cli.app import run
from bottleneck.gone import SUCCESSORS


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["agent", "--listen", "127.0.0.1:0"], "--agent ssh://[user@]host"),
        (["agent", "--idle", "60"], "together with --listen"),
        (["diagnose", "//nas/x", "--history", "default"], "bottleneck compare FOLDER"),
        (["history"], "bottleneck compare FOLDER"),
        (["agent", "--any-address"], "together with --listen"),
        (["diagnose", "//nas/media", "--cold-from", "old"], "use --file FILE to pull a file that"),
        (["probe", "disk", "--job", "my.fio"], "run fio JOBFILE itself"),
        (["probe", "smb-copy", "//nas/media", "--cold-from=old"], "--cold-from was removed"),
        (
            ["diagnose", "//127.0.0.1:9/share", "--allow-guest", "--yes", "--agent", "tcp://nas:5"],
            "use ssh://[user@]host, or exec:COMMAND",
        ),
    ],
)
def test_what_went_names_its_successor_in_one_line(typed, told, capsys):
    assert run(typed) == exits.USAGE
    said = capsys.readouterr().err
    assert told in said and said.count("\n") == 1
    assert any(each in said for each in SUCCESSORS.values())
