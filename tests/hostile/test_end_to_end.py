"""The whole program before some of the worst: the contract's exit code, one line, little memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import edits
import pytest
import server
from behaviour import LOGON_FAILURE, first, payload_byte
from middle import Witness, between, framed
from server import playing

import scripts
from probes.drivers.samba import private_samba

SECRET = "Geheim-47-correct-horse"
BUDGET_SECONDS = 14
LATE_SECONDS = 10
"""Start of the program, a step that began last, and closing."""
COORDINATOR_BYTES = 256 << 20
UNREACHABLE, DENIED, MISSING = 69, 77, 3


@dataclass(frozen=True)
class Ended:
    """One run of the program before one hostile peer."""

    code: int
    lines: tuple[str, ...]
    out: str
    elapsed_seconds: float
    peak_bytes: int
    witness: Witness


def _peak_bytes(pid: int) -> int:
    """Of the program itself: wait4's figure would begin with what this process had at the fork."""
    try:
        told = Path(f"/proc/{pid}/status").read_text()
    except ProcessLookupError:
        return 0
    found = re.search(r"VmHWM:\s*(\d+) kB", told)
    return int(found[1]) * 1024 if found else 0


def _diagnosed(port: int, folder: Path, witness: Witness) -> Ended:
    environment = {**os.environ, "BOTTLENECK_PASSWORD": SECRET}
    target = f"//127.0.0.1:{port}/share"
    options = ["--user", "bottleneck", "--folder", str(folder), "--yes", "--dialects", "3.1.1"]
    began = time.monotonic()
    with (folder / "out").open("w+b") as out, (folder / "err").open("w+b") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "bottleneck", "diagnose", target, *options]
            + ["--budget", str(BUDGET_SECONDS)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            env=environment,
        )
        peak_bytes = 0
        while process.poll() is None:
            peak_bytes = max(peak_bytes, _peak_bytes(process.pid))
            time.sleep(0.05)
    said = (folder / "err").read_text()
    return Ended(
        code=process.returncode,
        lines=tuple(line for line in said.splitlines() if line.startswith("bottleneck: ")),
        out=(folder / "out").read_text() + said,
        elapsed_seconds=time.monotonic() - began,
        peak_bytes=peak_bytes,
        witness=witness,
    )


def _waits(link: server.Link) -> None:
    request = link.take()
    link.again(framed(server.interim(request)))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Ended]]:
    """All runs, one after the other: each is held against its own deadline."""
    secret = SECRET.encode()
    found: dict[str, Ended] = {}
    with ExitStack() as stack:
        shared = tmp_path_factory.mktemp("shared")
        options = ("server signing = mandatory",)
        real = stack.enter_context(private_samba(shared, password=SECRET, options=options))
        address = (real.host, real.port)
        stripped = edits.altered(edits.unsigned, payload_byte)
        guest = edits.altered(edits.unsigned, edits.put(66, "H", 1))
        ends = {
            "PENDING for ever": playing(_waits, secret),
            "4 GiB": playing(scripts.answers(b"\xff" * 4), secret),
            "wrong password": playing(scripts.denies(LOGON_FAILURE), secret),
            "guest": between(address, first("logged in", guest), secret),
            "stripped": between(address, first("read", stripped, 1, True), secret),
        }
        for name, end in ends.items():
            port, witness = stack.enter_context(end)
            found[name] = _diagnosed(port, tmp_path_factory.mktemp("client"), witness)
        yield found


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("PENDING for ever", UNREACHABLE, "negotiate: no answer in 10 s"),
        ("4 GiB", UNREACHABLE, "something that is no SMB message"),
        ("wrong password", DENIED, "wrong user or password"),
        ("guest", DENIED, "took this user for a guest"),
    ],
)
def test_the_worst_end_in_one_line(
    name: str, code: int, says: str, ended: dict[str, Ended]
) -> None:
    """With the product's own limits: what is wrong, and the contract's code."""
    run = ended[name]
    assert run.code == code, run.out
    assert len(run.lines) == 1 and says in run.lines[0], run.out
    assert run.out.strip() == run.lines[0], run.out


def test_a_forged_copy_is_a_hole_in_the_report(ended: dict[str, Ended]) -> None:
    """Every READ of the run is forged: nothing is named as the cap of a copy."""
    run = ended["stripped"]
    assert run.code == MISSING, run.out
    said = " ".join(run.out.split())
    assert "without the signature that this session has to have" in said
    copies = [line for line in run.out.splitlines() if line.startswith(("push.", "pull."))]
    assert copies and all("not-measured" in line for line in copies), run.out


@pytest.mark.parametrize(
    "name", ["PENDING for ever", "4 GiB", "wrong password", "guest", "stripped"]
)
def test_it_ends_in_time_in_little_memory_with_nothing_told(
    name: str, ended: dict[str, Ended]
) -> None:
    """One login a session, NTLMv2 alone, no password anywhere, no control codes."""
    run = ended[name]
    assert run.elapsed_seconds < BUDGET_SECONDS + LATE_SECONDS
    assert 0 < run.peak_bytes <= COORDINATOR_BYTES
    assert run.witness.applied and not run.witness.leaks and not run.witness.weak_logins
    assert run.witness.logins <= run.witness.connections
    assert SECRET not in run.out and "Traceback" not in run.out
    assert run.out.replace("\n", "").isprintable()


def test_a_wrong_password_is_tried_once_a_run(ended: dict[str, Ended]) -> None:
    """Accounts lock."""
    assert ended["wrong password"].witness.logins == 1
