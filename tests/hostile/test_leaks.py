"""The scanner for secrets finds what is planted, and nothing in a run of the product."""

from __future__ import annotations

from pathlib import Path

import pytest
from leaks import plant
from secret_plants import SEEN
from secret_runs import RUNS, Place, try_one
from secret_scan import Secret, in_trace


def test_planted_leaks_are_found_in_files_processes_and_what_was_said(tmp_path: Path) -> None:
    """All that needs no strace, in one process; the others are leaks.py's own first step."""
    leaks = {(leak.where, leak.form) for leak in plant(tmp_path, *SEEN).leaks}
    expected = {
        ("arguments of a process", "utf-8"),
        ("arguments of a process", "utf-8 HEX"),
        ("environment of a process", "utf-8"),
        ("file run.log", "utf-8"),
        ("file report.json", "utf-8"),
        ("file page.html", "utf-8"),
        ("file .smbpasswd", "NT hash HEX"),
        ("name of a file", "utf-8"),
        ("file out", "utf-8"),
        ("file out", "URL, each byte"),
        ("file err", "utf-8"),
    }
    assert expected <= leaks
    coded = {(where, form.partition(",")[0]) for where, form in leaks if "base64" in form}
    assert {
        ("environment of a process", "utf-8 base64"),
        ("file ticket.md", "utf-8 base64"),
        ("file state", "utf-8 base64"),
        ("file lock", "utf-16-le base64"),
    } <= coded


def test_a_trace_shows_each_leak_and_forgives_the_hand_over_alone(tmp_path: Path) -> None:
    """Lines as strace -y -v writes them."""
    secret = Secret()
    word, wide = secret.marked, "\\000".join(secret.marked) + "\\000"
    quoted = secret.password.replace('"', '\\\\\\"')
    line = secret.password.replace('"', '\\"')
    allowed = [
        f'execve("/bin/python", ["python"], ["BOTTLENECK_PASSWORD={line}"]) = 0',
        f'write(7<pipe:[11]>, "{{\\"id\\":2,\\"do\\":\\"hold\\",\\"name\\":\\"x\\",\\"peer\\":'
        f'{{\\"host\\":\\"a\\",\\"password\\":\\"{quoted}\\"}}}}\\n", 99) = 99',
        f'write(9<pipe:[12]>, "{line}\\n{line}\\n", 60) = 60',
    ]
    leaks = {
        f'execve("/bin/x", ["x", "{word}"], []) = 0': "execve",
        f'write(7<pipe:[1]>, "{{\\"id\\":2,\\"failed\\":\\"{word}\\"}}\\n", 9)': "write to pipe",
        f'write(1</tmp/out>, "..{wide}", 99) = 99': "write to /tmp/out",
        f'sendto(5<socket:[8]>, "{line}\\n", 30, 0, NULL, 0) = 30': "sendto to socket",
        "+++ killed by SIGABRT (core dumped) +++": "core",
    }
    (tmp_path / "of.1").write_text("\n".join([*allowed, *leaks]) + "\n")
    leaks_found = in_trace(tmp_path, secret.forms(), secret.password, 1)
    assert sorted(leak.where for leak in leaks_found) == sorted(leaks.values())


@pytest.mark.long
def test_a_run_with_every_document_and_a_refused_login_leaks_nothing(samba, tmp_path: Path) -> None:
    """The long trial's runs and its look at system calls are `python tests/hostile/leaks.py`."""
    server, shared = samba
    name = "diagnose, wrong password"
    place = Place(tmp_path, Secret(), server, shared, None)
    ended = try_one(place, name, RUNS[name], traced=False)
    assert ended.leaks == () and ended.code in RUNS[name].codes, ended
