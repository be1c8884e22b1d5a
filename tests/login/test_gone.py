"""Removed commands and options are refused by one line that names their successor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bottleneck.cli import exits
from bottleneck.cli.app import run
from bottleneck.login.target import SUCCESSORS


@pytest.mark.parametrize(
    ("typed", "successor"),
    [
        (["agent", "--listen", "127.0.0.1:0"], "--agent ssh://[user@]host"),
        (["agent", "--idle", "60"], "together with --listen"),
        (["diagnose", "//nas/x", "--history", "default"], "bottleneck compare FOLDER"),
        (["history"], "bottleneck compare FOLDER"),
        (["agent", "--any-address"], "together with --listen"),
        (["diagnose", "//nas/media", "--cold-from", "old"], "use --file FILE to pull a file that"),
        (["probe", "tcp", "--tcp-peer", "ttcp://nas"], "use iperf3://host[:port]"),
        (["probe", "disk", "--job", "my.fio"], "run fio JOBFILE itself"),
        (["probe", "smb-copy", "//nas/media", "--cold-from=old"], "--cold-from was removed"),
        (
            ["diagnose", "//127.0.0.1:9/share", "--allow-guest", "--yes", "--agent", "tcp://nas:5"],
            "use ssh://[user@]host, or exec:COMMAND",
        ),
    ],
)
def test_what_went_names_its_successor_in_one_line(typed, successor, capsys):
    assert run(typed) == exits.USAGE
    said = capsys.readouterr().err
    assert successor in said and said.count("\n") == 1
    assert any(each in said for each in SUCCESSORS.values())


def test_what_went_is_still_explained_in_a_report_that_has_it(tmp_path, capsys):
    path = Path(__file__).parents[1] / "data" / "report-v1-no-agent.json"
    document = json.loads(path.read_text())
    pull = {"copy": "pull.uncached", "dialect": "3.1.1", "end": "folder"}
    document["steps"] = [each for each in document["steps"] if each["setting"] != pull]
    outcome = document["steps"][-1]["outcome"]
    cache = {"side": "server", "requested": "uncached", "proven": False, "files": 3}
    cache |= {"cold_source": "idle-files", "idle_seconds": 4e7, "cached_bytes_per_second": 117e6}
    tcp = {"verb": "push", "streams": 1, "peer": "ttcp://nas", "engine": "ttcp"}
    disk = {"side": "client", "verb": "read", "cache": "uncached", "pattern": "job"}
    row = {"name": "readers", "verb": "randread", "bytes_per_second": 4e6, "ios_per_second": 1e3}
    for stage, setting, details in (
        ("smb-copy", pull, {"cache": cache}),
        ("tcp", tcp, {"engine": "ttcp", "peer_is_target": True}),
        ("disk", disk, {"jobs": [row]}),
    ):
        step = {"stage": stage, "initiator": "client", "setting": setting}
        document["steps"].append({**step, "outcome": {**outcome, "details": details}})
    old = tmp_path / "old.json"
    old.write_text(json.dumps(document))
    assert run(["explain", str(old), "--verbose"]) == exits.INCOMPLETE
    assert "A cached file was read at 117 MB/s or more" in capsys.readouterr().out
    assert run(["explain", str(old), "--section", "measurements"]) == exits.INCOMPLETE
    said = capsys.readouterr().out
    assert "\ntcp push  " in said and "client: readers" in said
