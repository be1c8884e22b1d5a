"""docs/measuring-copies.md: each line runs as it stands, and so does the line that it replaces."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from bottleneck.cli.app import tree
from bottleneck.cli.command_line import commands_of, options_of
from tests.conftest import PASSWORD, target_of

PAGE = (Path(__file__).parents[1] / "docs/measuring-copies.md").read_text()
LINES = re.findall(r"^\|[^|]+\| `(bottleneck [^`]+)` \| `([^`]+)` \|$", PAGE, re.M)
RATE_BYTES = 8 << 20
JOB = f"""[global]
ioengine=psync
bs=64k
size=8m
runtime=2s
time_based
[reader]
rw=read
rate={RATE_BYTES}
"""
"""Shaped by its own rate: both programs measure that, and not this machine."""
NOISE_RATIO = 0.1


def test_each_row_of_the_page_is_a_line_that_is_tried():
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and "`bottleneck " in line]
    assert rows and len(rows) == len(LINES)


@pytest.mark.parametrize("ours", [ours for ours, _ in LINES])
def test_each_option_of_a_line_is_one_of_probe(ours):
    known = {flag for each in options_of(commands_of(tree())["probe"]) for flag in each.flags}
    assert {each for each in shlex.split(ours) if each.startswith("--")} <= known


@pytest.mark.long
@pytest.mark.parametrize(("ours", "theirs"), LINES, ids=[ours for ours, _ in LINES])
def test_both_lines_run_and_measure_what_they_say(bottleneck, samba, tmp_path, ours, theirs):
    server, shared = samba
    mounted, own = tmp_path / "mounted", tmp_path / "own"
    mounted.mkdir()
    own.mkdir()
    (own / "my.fio").write_text(JOB)
    (own / "testfile").write_bytes(bytes(16 << 20))
    for folder in (own / "photos", shared / "photos"):
        folder.mkdir(exist_ok=True)
        for number in range(50):
            (folder / f"{number}").write_bytes(bytes(20_000))

    def placed(line):
        line = line.replace("//nas/media", target_of(server)).replace("alice", server.username)
        line = line.replace("/mnt/media", str(mounted))
        return re.sub(r"(--seconds |--runtime=)10\b", r"\g<1>1", line)

    words = [*shlex.split(placed(ours))[1:], "--yes", "--json", own / "told.json"]
    ended = bottleneck(*words, *("--budget", "15"), password=PASSWORD, cwd=own)
    assert ended.code in {0, 3}, ended
    steps = json.loads((own / "told.json").read_text())["steps"]
    measured = [each for each in steps if each["outcome"]["kind"] == "measured"]
    assert measured and not [each for each in steps if each["outcome"]["kind"] == "failed"]

    program, *rest = shlex.split(placed(theirs))
    if shutil.which(program) is None:
        pytest.skip(f"ours ran, NOT COMPARED: {program} is not installed")
    if program == "smbclient":
        share = f"//{server.host}/{server.share}"
        rest = [share, "-p", str(server.port), *rest[1:], "--password", PASSWORD]
    done = subprocess.run(
        [program, *rest, *(["--output-format=json"] if program == "fio" else [])],
        capture_output=True,
        text=True,
        cwd=own,
        timeout=100,
    )
    assert done.returncode == 0, done
    if "my.fio" in ours:
        (step,) = measured
        rate = step["outcome"]["bytes_per_second"]["median"]
        peer = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]["bw_bytes"]
        assert abs(rate / peer - 1) <= NOISE_RATIO, (rate, peer)
