"""Each command of the README runs as it is written there, against a real Samba and a real sshd.

So does each `probe` of the page on how it decides.
"""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from probes.programs.samba import private_samba
from tests.devices import loop_device

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
DECIDES = (ROOT / "docs/how-it-decides.md").read_text()
READING = (ROOT / "docs/reading-the-result.md").read_text()
FIRST_SCREEN = 40
EXAMPLE = ROOT / "examples" / "server-disk-read.json"
COMMANDS = list(
    dict.fromkeys(
        line.removeprefix("$ ")
        for block in re.findall(r"```console\n(.*?)```", README + DECIDES, re.DOTALL)
        for line in block.splitlines()
        if line.startswith("$ ")
    )
)
PASSWORD = "anna's password"


def commands_of(program):
    return [each for each in COMMANDS if each.split()[0] == program]


def test_every_command_is_run_here():
    assert set(COMMANDS) == {*commands_of("bottleneck"), "./demo", "./test"}


@pytest.fixture(scope="module")
def nas(tmp_path_factory):
    """The share that the README calls //nas/media."""
    shared = tmp_path_factory.mktemp("media")
    with private_samba(str(shared), share="media", username="anna", password=PASSWORD) as server:
        yield server


@pytest.fixture
def disk(tmp_path):
    """Node of the block device that the README calls /dev/sdb."""
    image = tmp_path / "image"
    image.write_bytes(os.urandom(32 << 20))
    with loop_device(image, "--read-only") as node:
        yield str(node)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Returns the folder of all commands; a file of one may be read by the next."""
    return tmp_path_factory.mktemp("here")


@pytest.mark.long
@pytest.mark.parametrize("command", commands_of("bottleneck"))
def test_a_command_runs_as_written(
    command, nas, iperf3_port, here, ssh_on_path, bottleneck, request
):
    words = shlex.split(command)[1:]
    if "/mnt/media" in words:
        mount = str(request.getfixturevalue("smb_mount").folder)
        words = [mount if each == "/mnt/media" else each for each in words]
    words = [each.replace("//nas/media", f"//{nas.host}:{nas.port}/media") for each in words]
    words = [each.replace("iperf3://nas", f"iperf3://127.0.0.1:{iperf3_port}") for each in words]
    (here / "film.mkv").write_bytes(os.urandom(4 << 20))
    if "/dev/sdb" in words:
        words = [request.getfixturevalue("disk") if each == "/dev/sdb" else each for each in words]
    if words[0] in {"diagnose", "demo", "probe"} and "--quick" not in words:
        words += ["--budget", "9"]
    words = [str(ROOT / each) if each.startswith("examples/") else each for each in words]
    if "report.json" in words and words[0] != "diagnose" and not (here / "report.json").exists():
        pytest.fail("the README explains a report that no command before has written")
    ended = bottleneck(*words, password=PASSWORD, cwd=here)
    assert ended.code in {0, 3}, ended
    # Where nothing copies there is nothing to watch, which is said on stderr.
    assert ended.out.strip() or words[0] == "watch" and ended.err.strip()
    if words[0] == "schema":
        assert json.loads(ended.out)["$id"]


@pytest.mark.long
def test_the_demo_shows_a_verdict_and_ends_with_0(tmp_path):
    command = [ROOT / "demo", "--json", tmp_path / "report.json"]
    for _ in range(3):  # what else this machine does may be the bottleneck
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200
        )
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    assert "Expected: " in done.stderr or "loopback" in done.stderr
    assert "Copies" in done.stdout
    document = json.loads((tmp_path / "report.json").read_text())
    assert document["diagnosis"]["headline"] in {c["copy"] for c in document["diagnosis"]["copies"]}


def test_the_first_screen_has_the_answer_the_trial_and_the_uses():
    first = "\n".join(README.splitlines()[:FIRST_SCREEN])
    assert re.search(r"^Bottleneck: ", first, re.MULTILINE)
    assert "## Try it" in first
    assert [each in first for each in ("terminal", "ticket", "monitoring")] == [True] * 3


@pytest.mark.long
def test_the_verdict_shown_first_is_one_that_the_program_gives(bottleneck):
    """It is made of lines that the console prints for a recorded run of the lab."""
    block = README.split("```console\n", 1)[1].split("```", 1)[0].splitlines()[1:]
    example_lines = [line for line in block if line != "..."]
    printed = bottleneck("explain", EXAMPLE).out
    flat = " ".join(printed.split())
    for line in example_lines:
        assert " ".join(line.split()) in flat, line


@pytest.mark.long
def test_the_screen_that_is_explained_is_the_one_that_the_program_prints(bottleneck):
    screen = READING.split("```\n", 1)[1].split("```", 1)[0]
    printed = bottleneck("explain", EXAMPLE, environment={"COLUMNS": "100"}).out
    assert [line.rstrip() for line in printed.splitlines()] == screen.splitlines()
