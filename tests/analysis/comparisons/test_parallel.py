"""Several files at once: the command and its time, or that more gain nothing."""

import pytest

from bottleneck.analysis.diagnosis import diagnose

CELLS = [{"files_at_once": n, "bytes_per_second": 1e6 * n} for n in (1, 4, 16)]
COMMAND = {"files": 1000, "files_at_once": 16, "seconds": 4.1, "one_at_a_time_seconds": 65.5}


def compared(hosts, verb, command):
    setting = {"verb": verb, "file_bytes": 65536, "dialect": "3.1.1"}
    core_ratio = 0.93 if verb == "push" else 0.4
    details = {"cells": CELLS, "command": command, "hash_ok": True, "core_ratio": core_ratio}
    hosts.add("parallel", "client", setting, 1.0, details)
    return [c for c in diagnose(hosts.report()).comparisons if c.about == "parallel"]


@pytest.mark.parametrize(
    ("verb", "command", "sentence"),
    [
        (
            "pull",
            {"text": "rclone copy --transfers 16 SRC DST", "at_least": False},
            "16 files at once are faster: `rclone copy --transfers 16 SRC DST` pulls 1,000 files "
            "of 64 KiB in about 4.1 s if both disks keep up; one at a time, they take 1 min 6 s.",
        ),
        (
            "push",
            {"text": "robocopy SRC DST /E", "files_at_once": 1, "at_least": True},
            "More files at once gain nothing: `robocopy SRC DST /E` pushes 1,000 files of 64 KiB "
            "in at least 4.1 s if both disks keep up. This tool used a full core of the client: "
            "other programs may be faster.",
        ),
    ],
)
def test_the_command_is_named_with_its_time(hosts, verb, command, sentence):
    (one,) = compared(hosts, verb, {**COMMAND, **command})
    assert one.sentence == sentence
    assert (one.rows[0]["one_bytes_per_second"], one.rows[0]["times"]) == (1e6, 65.5 / 4.1)


@pytest.mark.parametrize("command", [None, {}, {**COMMAND, "text": 7}, {**COMMAND, "seconds": 0}])
def test_without_a_command_or_its_time_nothing_is_said(hosts, command):
    assert not compared(hosts, "pull", command)
