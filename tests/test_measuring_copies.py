"""docs/measuring-copies.md: each line runs as it stands, beside the line that it replaces.

In a world whose link and disk are slow, so that both measure those and not this machine.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bottleneck.cli.app import tree
from bottleneck.cli.command_line import commands_of, options_of
from bottleneck.cli.knobs import KNOBS
from tests import test_measuring

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "lab"))
import world as worlds  # noqa: E402
from plant import Caps, Plant  # noqa: E402

PAGE = (ROOT / "docs/measuring-copies.md").read_text()
LINES = re.findall(r"^\|[^|]+\| `(bottleneck [^`]+)` \| `([^`]+)` \|$", PAGE, re.M)
LINK_BITS_PER_SECOND, DISK_BYTES_PER_SECOND = 100_000_000, 100_000_000
PHOTOS, PHOTO_BYTES = 40, 200_000
SMBCLIENT_AVERAGE = r"^(putting|getting) .*\(average ([\d.]+) [kK]\w*/s"
NOISE_RATIO = 0.1
"""By which two tools may differ that measure the same link or disk: one counts its opening."""


def test_each_row_of_the_page_is_a_line_that_is_tried():
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and "`bottleneck " in line]
    assert rows and len(rows) == len(LINES)


def test_each_knob_and_each_option_of_a_copy_has_its_line():
    lines = [*(ours for ours, _ in LINES), *(each.ours for each in test_measuring.LINES)]
    words = {word for line in lines for word in shlex.split(line)}
    of_copies = {"--dialect", "--signing", "--encryption", "--file", "--tree", "--native-command"}
    assert {f"--{each.name}" for each in KNOBS} | of_copies <= words


@pytest.mark.parametrize("ours", [ours for ours, _ in LINES])
def test_each_option_of_a_line_is_one_of_probe(ours):
    flags = {flag for each in options_of(commands_of(tree())["probe"]) for flag in each.flags}
    assert {each for each in shlex.split(ours) if each.startswith("--")} <= flags


@pytest.fixture(scope="module")
def world() -> Iterator[Any]:
    """A client with a slow disk, and a server behind a slow link; the lines' files lie on both."""
    missing = [*worlds.missing(), *(() if shutil.which("hyperfine") else ("needs hyperfine",))]
    if missing:
        pytest.skip(f"NOT TESTED: {'; '.join(missing)}")
    disk = {f"disk_{verb}_bytes_per_second": DISK_BYTES_PER_SECOND for verb in ("read", "write")}
    client = Caps(sends_bits_per_second=LINK_BITS_PER_SECOND, **disk)
    server = Caps(sends_bits_per_second=LINK_BITS_PER_SECOND)
    with ExitStack() as stack:
        hosts = stack.enter_context(worlds.world(Plant(client, server)))
        files = f"""
            mkdir own own/photos mounted
            for n in $(seq {PHOTOS}); do head -c {PHOTO_BYTES} /dev/urandom >own/photos/$n; done
        """
        hosts.client.run(["sh", "-ec", f"cd {hosts.client.folder}; {files}"])
        on_client(
            hosts, adapt("smbclient //nas/media -U alice -c 'recurse; prompt; mput photos'", hosts)
        )
        yield hosts


def made_file(hosts: Any, line: str) -> None:
    """The file of a row, as long as our line says, or 16 MiB of a file that it names."""
    size = re.search(r"--size (\d+)MiB", f"{line} --size 16MiB" if "testfile" in line else line)
    if size:
        on_client(hosts, f"dd if=/dev/urandom of=testfile bs=1M count={size[1]} conv=fsync")


def adapt(line: str, hosts: Any) -> str:
    """Returns a line with this world's names, and a third of the time."""
    line = line.replace("//nas/media", hosts.share.target).replace("alice", hosts.share.user)
    line = line.replace("/mnt/media", str(hosts.client.folder / "mounted"))
    line = re.sub(r"^smbclient", f"smbclient --password {hosts.share.password}", line)
    return re.sub(r"(--seconds |--runtime=)10\b", r"\g<1>3", line)


def on_client(hosts: Any, line: str) -> str:
    """Returns a line's output, in the folder of its files."""
    folder = str(hosts.client.folder / "own")
    variables = {"BOTTLENECK_PASSWORD": hosts.share.password, "PYTHONPATH": str(ROOT)}
    done = hosts.client.run(
        ["env", "-C", folder, *shlex.split(line)], environment=variables, seconds=120, check=False
    )
    assert done.returncode in {0, 3}, done
    return f"{done.stdout}{'' if '--json' in line else done.stderr}"


def rates(hosts: Any, line: str) -> dict[str, list[float]]:
    """Bytes per second of the runs of our line, by what was copied, or read."""
    words = f"{sys.executable} -m bottleneck {line.partition(' ')[2]}"
    steps = json.loads(on_client(hosts, f"{words} --yes --budget 20 --json -"))["steps"]
    rates_by_copy: dict[str, list[float]] = {}
    for step in steps:
        assert step["outcome"]["kind"] != "failed", step
        if step["outcome"]["kind"] == "measured" and step["setting"].get("end") != "memory":
            name = step["setting"].get("copy") or step["setting"]["verb"]
            runs = [run for run in step["outcome"]["runs"] if run[-1][0] > run[0][0]]
            made_now = [(run[-1][1] - run[0][1]) / (run[-1][0] - run[0][0]) for run in runs]
            rates_by_copy.setdefault(name, []).extend(made_now)
    return rates_by_copy


def smbclient_rates(hosts: Any, line: str) -> dict[str, float]:
    """Returns smbclient's own averages of put and get, the median of three runs."""
    rates_by_verb: dict[str, list[float]] = {}
    for _ in range(3):
        averages = re.findall(SMBCLIENT_AVERAGE, on_client(hosts, line), re.M)
        # the last average of a run is that of all its files
        for verb, rate in dict(averages).items():
            rates_by_verb.setdefault({"putting": "push", "getting": "pull"}[verb], []).append(
                float(rate)
            )
    return {verb: 1024 * statistics.median(rates) for verb, rates in rates_by_verb.items()}


def fio_rates(hosts: Any, line: str) -> dict[str, float]:
    printed = on_client(hosts, f"{line} --output-format=json")
    jobs = json.loads(printed[printed.index("{") :])["jobs"]
    return {"read": float(jobs[0]["read"]["bw_bytes"])}


def hyperfine_rates(hosts: Any, line: str) -> dict[str, float]:
    line = line.replace("hyperfine", "hyperfine --export-json /dev/stdout --style none", 1)
    printed = on_client(hosts, line)
    document = json.loads(printed[printed.index('{\n  "results"') :].partition("\n}\n")[0] + "\n}")
    size_bytes = int(on_client(hosts, "stat -c %s testfile"))
    return {"push": size_bytes / document["results"][0]["median"]}


@pytest.mark.lab
@pytest.mark.parametrize(("ours", "theirs"), LINES, ids=[ours for ours, _ in LINES])
def test_each_line_finds_what_the_other_tool_finds(world, ours, theirs):
    made_file(world, ours)
    tools = {"smbclient": smbclient_rates, "fio": fio_rates, "hyperfine": hyperfine_rates}
    their_rates = tools[theirs.split()[0]](world, adapt(theirs, world))
    our_rates = rates(world, adapt(ours, world))
    assert their_rates
    for verb, other in their_rates.items():
        label = next(
            name for name in (verb, f"file.{verb}.cached", f"{verb}.cached") if name in our_rates
        )
        one = statistics.median(our_rates[label])
        print(
            f"{ours}: {label} {one:.4g}, {theirs.split()[0]} {other:.4g} ({one / other - 1:+.1%})"
        )
        spread = (max(our_rates[label]) - min(our_rates[label])) / max(our_rates[label])
        assert abs(one / other - 1) <= max(NOISE_RATIO, spread), (label, one, other)
