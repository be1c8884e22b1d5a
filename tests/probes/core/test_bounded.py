"""JSON and TOML from elsewhere: what they cost is counted before, and told in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from bottleneck.cli import app
from probes.core import bounded
from probes.core.bounded import USUAL, Limits, NotBounded

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples/server-disk-read.json"
MIB = 1 << 20


def join(items: Iterable[str]) -> str:
    return ",".join(items)


BOMBS = {
    "empty arrays": lambda: "[" + "[]," * 400_000 + "[]]",
    "floats": lambda: "[" + "1.5," * (4 * MIB - 10) + "1]",
    "keys": lambda: "{" + join(f'"{n:x}":1' for n in range(400_000)) + "}",
    "strings": lambda: "[" + '"ab",' * (3 * MIB) + '"a"]',
    "quotes": lambda: '"' * (16 * MIB),
    "wide characters": lambda: '"\U0001f600' + "a" * (16 * MIB - 10) + '"',
    "a long number": lambda: '{"a":' + "9" * 5000 + "}",
    "a long fraction": lambda: '{"a":0.' + "9" * 5000 + "}",
    "depth": lambda: "[" * 65 + "]" * 65,
    "escaped quotes": lambda: '{"a":"' + '\\"' * 100 + '\\\\","b":' + "[" * 65 + "]" * 65 + "}",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_in_one_line(bomb: str) -> None:
    with pytest.raises(NotBounded) as refused:
        bounded.loads(BOMBS[bomb]().encode())
    assert len(str(refused.value).splitlines()) == 1
    assert "not JSON" not in str(refused.value)


def test_what_strings_hold_is_not_counted() -> None:
    few = Limits(containers=1, keys=1, values=3, strings=2, levels=1)
    text = json.dumps({'[[{{,,::"\\': '\\"[[[{,,,:::"\\\\'})
    assert bounded.loads(text.encode(), few) == json.loads(text)


def worst() -> str:
    """Returns a report whose details hold as much of everything as a file may."""
    document = json.loads(EXAMPLE.read_text())
    step = next(each for each in document["steps"] if each["outcome"]["kind"] == "measured")
    step["outcome"]["details"]["more"] = "HERE"
    text = json.dumps(document, separators=(",", ":"))
    keys = "{" + join(f'"{n:05x}":{n}.5' for n in range(97_000)) + "}"
    strings = "[" + join(f'"{n:05x}"' for n in range(140_000)) + "]"
    numbers = "[" + join(f"{n}.25" for n in range(120_000)) + "]"
    arrays = "[" + join(["[]"] * 60_000) + "]"
    text = text.replace('"HERE"', f"[{keys},{strings},{numbers},{arrays}]")
    room = USUAL.content_bytes - len(text) - 30
    # One rare character, by its escapes: the text becomes four bytes a letter.
    return text.replace('"steps":', f'"pad":"\\ud83d\\ude00{"a" * room}","steps":', 1)


@pytest.mark.long
def test_the_worst_file_within_the_limits_takes_at_most_200_mib(tmp_path: Path) -> None:
    path = tmp_path / "worst.json"
    path.write_text(worst())
    assert USUAL.content_bytes - 100 < path.stat().st_size <= USUAL.content_bytes
    code = (
        "import sys; from bottleneck.cli import loading; loading.load(sys.argv[1]);"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) <= 200 << 10


@pytest.mark.parametrize(
    "text",
    [
        b"a." * 300 + b"a = 1",
        b"[" + b"a." * 199 + b"a]\n" + b"a=1\n" * 20_000,
        b"a = " + b"[" * 5000,
        b"a = " + b"9" * 5000,
        b"a = 1\na = 2",
        b"#" * (257 << 10),
        b"\xff",
    ],
)
def test_toml_that_costs_more_than_it_says_is_refused(text: bytes) -> None:
    with pytest.raises(NotBounded) as refused:
        bounded.loads_toml(text)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("place", ["notes", "steps"])
def test_more_steps_or_notes_than_a_run_has_are_refused(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Analysis compares steps with each other, and a page lists every note."""
    document = json.loads(EXAMPLE.read_text())
    document[place] = [(document[place] or ["x"])[0]] * 2001
    for step in document["steps"]:
        step["outcome"] = {"kind": "skipped", "reason": "x"}
    path = tmp_path / "many.json"
    path.write_text(json.dumps(document))
    assert app.run(["explain", str(path)]) == 64
    assert f"{place}: 2001 entries" in capsys.readouterr().err


def test_a_configuration_with_a_number_of_5000_digits_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[defaults]\nsize = " + "9" * 5000)
    path.chmod(0o600)
    monkeypatch.setenv("BOTTLENECK_CONFIG", str(path))
    assert app.run(["config"]) == 64
    assert "not TOML" in capsys.readouterr().err


def test_a_lone_surrogate_is_a_name_that_no_format_breaks_at(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A file's name that is no UTF-8 comes back as one, and what is written is UTF-8."""
    path = tmp_path / "surrogate.json"
    path.write_text(EXAMPLE.read_text().replace("10.91.7.2", "\\ud800\\udcff\\udfff"))
    for kind in ("text", "json", "html", "ticket", "junit"):
        assert app.run(["explain", str(path), "--format", kind]) == 0
        assert capfd.readouterr().err == ""


def test_a_pipe_is_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero"), Path("/dev/tty")):
        assert app.run(["explain", str(path)]) == 64
        assert len(capsys.readouterr().err.splitlines()) == 1
