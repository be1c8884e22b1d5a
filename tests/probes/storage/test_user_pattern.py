"""The disk as somebody chose to use it, with the real fio; never a figure."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

from bottleneck.cli import exits
from bottleneck.cli.app import run as run_command
from probes.core.records import Endpoint
from probes.core.stage import Unavailable
from probes.files import folders, source_file
from probes.programs import fio
from probes.stages import disk
from tests.devices import loop_device

MIB = 1 << 20


@pytest.fixture
def on_disk(tmp_path):
    if folders.folder_facts(str(tmp_path)).filesystem == "tmpfs":
        pytest.skip("NOT RUN: needs a folder that is not on tmpfs")
    return tmp_path


@pytest.fixture
def measure(run_stage, on_disk):
    """The samples and details of a setting, on a source of 4 MiB."""
    setting = source_file.Setting(str(on_disk), 4 * MIB, 30.0, "ab")
    usual = ("uncached", str(on_disk), "client", 4 * MIB, 1.0, "ab")

    def go(verb="read", **options):
        with source_file.hold(setting, Endpoint()) as peer:
            outcome = run_stage(disk, disk.Setting(verb, *usual, **options), peer)
        assert os.listdir(on_disk) == []
        json.dumps(outcome[1], allow_nan=False)
        return outcome

    return go


@pytest.fixture
def words(measure, monkeypatch):
    """Returns the arguments of fio for a setting; it measures nothing."""

    def arguments_of(*choices, **options):
        fio_jobs = []

        def running(jobs, until):
            fio_jobs.extend(jobs)
            raise Unavailable("this is all")

        monkeypatch.setattr(fio, "run_jobs", running)
        with pytest.raises(Unavailable, match="this is all"):
            measure(*choices, **options)
        return fio.arguments(*fio_jobs)

    return arguments_of


@pytest.mark.parametrize("verb", ["read", "write"])
@pytest.mark.parametrize(
    ("options", "called"),
    [
        ({"pattern": "random"}, "rand"),
        ({"pattern": "random", "block_bytes": 65536, "depth": 16}, "rand"),
        ({"depth": 32}, ""),
        ({"block_bytes": 4096}, ""),
    ],
)
def test_the_disk_is_used_as_it_was_chosen(words, verb, options, called):
    arguments = words(verb, **options)
    block = options.get("block_bytes", 4096 if called else MIB)
    assert f"--bs={block}" in arguments and f"--iodepth={options.get('depth', 4)}" in arguments
    assert f"--rw={called}{verb}" in arguments


@pytest.mark.long
@pytest.mark.parametrize("verb", ["read", "write"])
def test_what_was_done_as_it_was_chosen_is_told(measure, verb):
    samples, details = measure(verb, pattern="random", block_bytes=65536, depth=16)
    (job,) = details["jobs"]
    assert (job["name"], job["verb"]) == (f"rand{verb}",) * 2
    assert samples[-1].moved_bytes > 0 and details["direct"] is True
    assert job["ios_per_second"] > 0 and job["latency_seconds"]["p99"] > 0


def test_a_block_that_no_disk_has_is_refused(measure):
    with pytest.raises(ValueError, match="no multiple of 512"):
        measure(block_bytes=1000)


@pytest.fixture
def on_image(tmp_path):
    """A block device of our own, and the content below it."""
    image = tmp_path / "image"
    image.write_bytes(os.urandom(8 * MIB))
    with loop_device(image) as node:
        yield str(node), image


@pytest.mark.long
def test_a_device_is_read(run_stage, on_image):
    node, image = on_image
    content = image.read_bytes()
    run = partial(disk.Setting, "read", "uncached", "", "client", MIB, 1.0, "ab", device=node)
    for options in ({"pattern": "random"}, {"depth": 8}):
        samples, details = run_stage(disk, run(**options), Endpoint())
        assert samples[-1].moved_bytes > 0
        assert details["size_bytes"] == 8 * MIB
    assert image.read_bytes() == content


def test_a_device_is_never_written(run_stage, on_image):
    node, image = on_image
    content = image.read_bytes()
    writing = disk.Setting("write", "uncached", "", "client", MIB, 0.3, "ab", depth=4)
    with pytest.raises(ValueError, match="opened for reading only"):
        run_stage(disk, disk.Setting(**{**vars(writing), "device": node}), Endpoint())
    assert image.read_bytes() == content


@pytest.mark.parametrize(
    ("line", "why"),
    [
        *(
            (f"--file FILE {each}", "--file: not allowed with --block-size, --depth, --pattern or")
            for each in ("--pattern random", "--block-size 4KiB", "--depth 8")
        ),
        ("--block-size 1000B", "--block-size: a block of 1000 bytes is no multiple of 512"),
        ("--block-size 0B", "--block-size: "),
        ("--block-size 4096TiB", "--block-size: a block has from 512 to 16777216 bytes"),
        ("--block-size 2MiB --size 1MiB", "--block-size: larger than --size"),
        ("--pattern zig", "--pattern: 'zig' is none of sequential, random"),
    ],
)
def test_what_cannot_be_chosen_is_wrong_usage_before_anything_is_written(
    capsys, tmp_path, line, why
):
    (tmp_path / "film").write_bytes(b"x")
    words = line.replace("FILE", f"{tmp_path}/film").split()
    assert run_command(["probe", "disk", "--folder", str(tmp_path), *words]) == exits.USAGE
    err = capsys.readouterr().err
    assert err.startswith(f"bottleneck: {why}") and err.count("\n") == 1
    assert os.listdir(tmp_path) == ["film"]


@pytest.mark.long
def test_a_whole_run_shows_requests_a_second_and_leaves_nothing(bottleneck, on_disk):
    folder = on_disk / "folder"
    folder.mkdir()
    ended = bottleneck(
        *"probe disk --pattern random --block-size 4KiB --depth 8 --seconds 0.5 --yes".split(),
        *"--size 16MiB --section measurements".split(),
        *f"--folder {folder} --json {folder.parent}/told.json".split(),
    )
    assert ended.code == exits.DONE, ended
    assert "Disk requests" in ended.out and "client: randread" in ended.out
    report = json.loads(Path(folder.parent / "told.json").read_text())
    assert [each["setting"]["verb"] for each in report["steps"]] == ["read", "write"]
    for each in report["steps"]:
        setting = each["setting"]
        assert (setting["pattern"], setting["block_bytes"], setting["depth"]) == ("random", 4096, 8)
    assert list(folder.iterdir()) == []
