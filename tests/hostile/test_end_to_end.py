"""The whole program before some of the worst: the contract's exit code, one line, little memory."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack

import edits
import pytest
import server
from behaviour import LOGON_FAILURE, alter
from middle import run_middle
from peaks import run_program

from probes.programs.samba import private_samba

SECRET = "Geheim-47-correct-horse"
BUDGET_SECONDS = 14
COORDINATOR_BYTES = 256 << 20
MISSING = 3
pytestmark = pytest.mark.long
NAMES = ("PENDING for ever", "4 GiB", "wrong password", "guest", "stripped")


def complaints(ended):
    return [line for line in ended.err.splitlines() if line.startswith("bottleneck: ")]


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """All runs, one after the other: each is held against its own deadline."""
    secret, endings = SECRET.encode(), {}
    with ExitStack() as stack:
        shared = tmp_path_factory.mktemp("shared")
        options = ("server signing = mandatory",)
        real = stack.enter_context(private_samba(shared, password=SECRET, options=options))
        guest = alter("logged in", edits.unsigned, edits.put(66, "H", 1))
        stripped = alter("read", edits.unsigned, edits.payload_byte, every=True)
        ends = (
            server.play(server.waits, secret),
            server.play(server.answers(b"\xff" * 4), secret),
            server.play(server.denies(LOGON_FAILURE), secret),
            run_middle((real.host, real.port), guest, secret),
            run_middle((real.host, real.port), stripped, secret),
        )
        for name, end in zip(NAMES, ends, strict=True):
            port, witness = stack.enter_context(end)
            folder = str(tmp_path_factory.mktemp("client"))
            words = ["diagnose", f"//127.0.0.1:{port}/share", "--user", "bottleneck", "--yes"]
            words += ["--folder", folder, "--dialects", "3.1.1", "--budget", str(BUDGET_SECONDS)]
            environment = {**os.environ, "BOTTLENECK_PASSWORD": SECRET}
            endings[name] = run_program(*words, seconds=120, environment=environment), witness
        yield endings


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("PENDING for ever", 69, "negotiate: no answer in 10 s"),
        ("4 GiB", 69, "something that is not an SMB message"),
        ("wrong password", 77, "wrong user or password"),
        ("guest", 77, "treated bottleneck as a guest"),
    ],
)
def test_the_worst_end_in_one_line(name, code, says, ended):
    """With the product's own limits: what is wrong, and the contract's code."""
    run, _ = ended[name]
    assert run.code == code, run
    (line,) = complaints(run)
    assert says in line and (run.out + run.err).strip() == line, run


def test_a_forged_copy_is_a_hole_in_the_report(ended):
    """Every READ of the run is forged: nothing is named as the cap of a copy."""
    run, _ = ended["stripped"]
    assert run.code == MISSING, run
    said = " ".join((run.out + run.err).split())
    assert "without the signature that this session has to have" in said
    assert run.out.startswith("Bottleneck: not identified (no copy was made)\n"), run.out
    forged = "a reply came without the signature"
    assert f"push.uncached failed while the copy was checked: {forged}" in said
    assert re.search(rf"push\.cached 3\.1\.1: failed: //\S+ read \S+source-\w+: {forged}", said)
    for copy in ("push.cached", "pull.uncached", "pull.cached"):
        assert re.search(rf"Not measured: [a-z., ]*{copy}[,:]", said), said


@pytest.mark.parametrize("name", NAMES)
def test_it_ends_in_little_memory_with_nothing_told(name, ended):
    """One login a session, NTLMv2 alone, no password anywhere, no control codes."""
    run, witness = ended[name]
    said = run.out + run.err
    assert 0 < run.peak_bytes <= COORDINATOR_BYTES
    assert witness.misbehaved and not witness.leaks and not witness.weak_logins
    assert witness.logins <= witness.connections
    assert SECRET not in said and "Traceback" not in said
    assert said.replace("\n", "").isprintable()


def test_a_wrong_password_is_tried_once_a_run(ended):
    """Accounts lock."""
    assert ended["wrong password"][1].logins == 1
