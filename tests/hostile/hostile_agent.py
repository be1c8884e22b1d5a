#!/usr/bin/env python3
"""Put a coordinator before every hostile agent of this file, and print what came of it.

Usage: python tests/hostile/hostile_agent.py [--only TEXT] [--workers N] [--json F]

Each behaviour gets a real `bottleneck probe` in a process of its own, with this program in front of
the server's agent: it passes the stream on and misbehaves at one moment. A coordinator has to end
by itself, LATE_SECONDS after an honest one at the latest, in MOST_BYTES of memory, with an exit
code of the contract, no traceback and a report that can be read. Exit code: 0 all did, 1 one did
not.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import peaks
from peaks import PeakResult

MOST_BYTES = 256 << 20
LATE_SECONDS = 60.0
"""A stage that begins and does not end has 30 s more than its own time, and 5 s to answer."""
GIVE_UP_SECONDS = 180.0
BUDGET_SECONDS = 5
MIB = 1 << 20
CODES = {0, 3, 69, 77}
"""Done, incomplete, not reachable, refused."""
MOST_WORDS_BYTES = 20_000
MOST_REPORT_BYTES = 16 << 20

Chunks = Iterator[bytes]
Instead = Callable[[dict[str, Any]], Chunks]


@dataclass(frozen=True)
class Behaviour:
    """Chunks that an agent sends instead of one of its replies."""

    name: str
    instead: Instead
    key: str = "answer"
    """The key that the reply has; "greeting": the first line."""
    stage: str = "loopback"
    always: bool = False
    """Each such reply, not only the first."""


def line(reply: Any) -> bytes:
    return json.dumps(reply).encode() + b"\n"


def raw(*lines: bytes, first: bool = False, pause_seconds: float | None = None) -> Instead:
    """These lines, after the reply if that comes first, and for ever if there is a pause.

    ID in them is the number of the request.
    """

    def write(reply: dict[str, Any]) -> Chunks:
        chunks = [each.replace(b"ID", str(reply.get("id", 0)).encode()) for each in lines]
        if first:
            yield line(reply)
        yield from chunks
        while pause_seconds is not None:
            time.sleep(pause_seconds)
            yield from chunks

    return write


def endless(chunk: bytes, pause_seconds: float = 0.0, first: bool = False) -> Instead:
    return raw(chunk, first=first, pause_seconds=pause_seconds)


def alter(key: str, value: Any) -> Instead:
    return lambda reply: iter([line({**reply, key: value})])


def ends(reply: dict[str, Any]) -> Chunks:
    os._exit(1)
    yield b""


def samples(reply: dict[str, Any]) -> Chunks:
    """A run without end whose counts grow."""
    for index in range(1 << 40):
        yield b'{"id":%d,"sample":[%d,%d]}\n' % (reply["id"], index, index)


def large_counters(reply: dict[str, Any]) -> Chunks:
    """Counters of almost a line's length with each sample."""
    large = {**reply, "counters": {**reply["counters"], "more": "x" * (MIB - 9000)}}
    while True:
        yield line(large)


def text(size: int) -> bytes:
    return b'"' + b"x" * size + b'"'


def many(kind: bytes, count: int) -> bytes:
    return b"[" + (kind + b",") * count + kind + b"]"


GREETING = b"copy-bottleneck-agent "
MORE = b'{"id":ID,"more":' + text(MIB - 60) + b"}\n"
LISTS = many(b"[]", 340_000)
BEHAVIOURS = (
    Behaviour("honest", raw(first=True), always=True),
    Behaviour("says nothing at all", endless(b"", 1.0), "greeting"),
    Behaviour("noise in lines without end", endless(b"noise\n" * 1000), "greeting"),
    Behaviour("noise in one line without end", endless(b"n" * 65536), "greeting"),
    Behaviour("a banner by drops", endless(b"w", 0.2), "greeting"),
    Behaviour("a greeting of no kind", raw(GREETING + b"[]\n"), "greeting"),
    Behaviour("a greeting of another protocol", raw(GREETING + b'{"protocol":2}\n'), "greeting"),
    Behaviour(
        "a version that is a list", raw(GREETING + b'{"protocol":1,"version":[[[]]]}\n'), "greeting"
    ),
    Behaviour(
        "a refusal that is none",
        raw(GREETING + b'{"protocol":1,"refused":{"kind":5,"text":[]}}\n'),
        "greeting",
    ),
    Behaviour(
        "a refusal of a line's length",
        raw(GREETING + b'{"protocol":1,"refused":{"kind":"login","text":' + text(60_000) + b"}}\n"),
        "greeting",
    ),
    Behaviour("40 replies of 1 MiB at once", raw(*[MORE] * 40)),
    Behaviour(
        "40 replies of 1 MiB of empty lists to what it holds",
        raw(*[b'{"id":ID,"more":' + LISTS + b"}\n"] * 40, first=True),
        "endpoint",
        "tcp",
    ),
    Behaviour(
        "replies of 1 MiB to what it holds, without end",
        endless(MORE, first=True),
        "endpoint",
        "tcp",
    ),
    Behaviour(
        "as many values as a line may have to what it holds, without end",
        endless(b'{"id":ID,"more":' + many(b"{}", 19_000) + b"}\n", first=True),
        "endpoint",
        "tcp",
    ),
    Behaviour("replies of 1 MiB without end", endless(MORE), "sample"),
    Behaviour("1 MiB of empty lists", raw(b'{"id":ID,"answer":' + LISTS + b"}\n")),
    Behaviour("1 MiB of keys", raw(b'{"id":ID,"answer":{' + b'"":{},' * 170_000 + b'"":1}}\n')),
    Behaviour(
        "as many values as a line may have, in each answer",
        lambda reply: iter([line({**reply, "more": [{} for _ in range(19_000)]})]),
        always=True,
    ),
    Behaviour("100,000 lists within lists", raw(b'{"id":ID,"answer":' + b"[" * 100_000 + b"\n")),
    Behaviour(
        "900 lists within lists", raw(b'{"id":ID,"answer":' + b"[" * 900 + b"]" * 900 + b"}\n")
    ),
    Behaviour("a line without end", endless(b"x" * 65536)),
    Behaviour("a number of a million digits", raw(b'{"id":ID,"answer":' + b"9" * 10**6 + b"}\n")),
    Behaviour("a number beyond all", raw(b'{"id":ID,"answer":{"cores":1e999}}\n')),
    Behaviour("NaN", raw(b'{"id":ID,"answer":NaN}\n')),
    Behaviour("a key twice", raw(b'{"id":ID,"answer":1,"answer":2}\n')),
    Behaviour("half a surrogate", raw(b'{"id":ID,"failed":"\\ud800 and \\u001b[2J"}\n')),
    Behaviour("bytes that are no text", raw(b'{"id":ID,"answer":"\xff\xfe"}\n')),
    Behaviour("no message", raw(b"nonsense\n")),
    Behaviour("no object", raw(b"[1,2]\n")),
    Behaviour("empty lines without end", endless(b"\n" * 10_000)),
    Behaviour("an answer to nobody", raw(b'{"id":999999,"answer":1}\n')),
    Behaviour("answers to nobody, after the right one", raw(b'{"id":77,"answer":1}\n', first=True)),
    Behaviour("an answer twice", raw(b'{"id":ID,"answer":1}\n', first=True)),
    Behaviour("an answer without end", endless(b'{"id":ID,"answer":1}\n', first=True)),
    *(
        Behaviour(f"a number that is {number}", raw(b'{"id":' + each + b',"answer":1}\n'))
        for number, each in (
            ("negative", b"-1"),
            ("text", b'"1"'),
            ("true", b"true"),
            ("a fraction", b"1.0"),
            ("null", b"null"),
            ("a list", b"[1]"),
        )
    ),
    *(
        Behaviour(f"each answer is {json.dumps(each)}", alter("answer", each), always=True)
        for each in (5, "text", [], {}, None, True, [[1]], {"path": {}})
    ),
    Behaviour("an answer by drops", endless(b"{", 0.2)),
    Behaviour("silence instead of an answer", endless(b"", 1.0)),
    Behaviour("silence instead of a sample", endless(b"", 1.0), "sample"),
    Behaviour("silence instead of details", endless(b"", 1.0), "details"),
    Behaviour("no answer, but what comes after it", raw()),
    Behaviour("ends instead of an answer", ends),
    Behaviour("ends instead of a sample", ends, "sample"),
    Behaviour("samples without end", samples, "sample"),
    Behaviour("the same sample for ever", endless(b'{"id":ID,"sample":[0,0]}\n'), "sample"),
    Behaviour(
        "a sample each second, for ever", endless(b'{"id":ID,"sample":[0,0]}\n', 1), "sample"
    ),
    Behaviour("large counters with every sample", large_counters, "counters"),
    Behaviour("counters of no kind", alter("counters", [[]]), "counters", always=True),
    Behaviour("samples that run backwards", alter("sample", [5, 5]), "sample"),
    Behaviour("samples of other kinds", alter("sample", [{}, []]), "sample"),
    Behaviour("more than any network", alter("sample", [1e-9, 2**62]), "sample", always=True),
    Behaviour("details of no kind", alter("details", [[]]), "details"),
    Behaviour(
        "details full of values",
        alter("details", {"limits": {str(each): [each] for each in range(9000)}}),
        "details",
    ),
    Behaviour("details of 1 MiB", alter("details", {"limits": "x" * (MIB - 99)}), "details"),
    Behaviour("an endpoint of no kind", alter("endpoint", [5]), "endpoint", "tcp"),
    Behaviour("an endpoint without a place", alter("endpoint", {}), "endpoint", "tcp"),
    Behaviour("a reason of 1 MiB", raw(b'{"id":ID,"failed":' + text(MIB - 60) + b"}\n")),
    Behaviour("a refusal of no kind", raw(b'{"id":ID,"refused":{"kind":"mine","text":"x"}}\n')),
    Behaviour("a wrong login, it says", raw(b'{"id":ID,"refused":{"kind":"login","text":"x"}}\n')),
)


def act(name: str, command: list[str]) -> None:
    """The hostile agent: passes on, and misbehaves at its moment."""
    behaviour = next(each for each in BEHAVIOURS if each.name == name)
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    threading.Thread(target=pass_on_requests, args=(agent,), daemon=True).start()
    assert agent.stdout is not None
    done = False
    for reply_line in agent.stdout:
        greets = reply_line.startswith(GREETING)
        reply: dict[str, Any] = {} if greets else json.loads(reply_line)
        if (greets if behaviour.key == "greeting" else behaviour.key in reply) and not done:
            done = not behaviour.always
            for chunk in behaviour.instead(reply):
                write(chunk)
        else:
            write(reply_line)


def pass_on_requests(agent: subprocess.Popen[bytes]) -> None:
    """Passes on what the coordinator asks; at its end this program ends too, whatever it does."""
    assert agent.stdin is not None
    while chunk := os.read(0, 1 << 16):
        agent.stdin.write(chunk)
        agent.stdin.flush()
    agent.stdin.close()
    agent.wait()
    os._exit(0)


def write(chunk: bytes) -> None:
    while chunk:
        chunk = chunk[os.write(1, chunk) :]


@dataclass(frozen=True)
class Result(PeakResult):
    name: str = ""
    report: str = ""
    """Why its report cannot be used."""

    def faults(self, honest_seconds: float) -> list[str]:
        """Returns what is wrong about it; an honest agent's coordinator took so long."""
        checks = {
            self.report: self.report,
            f"exit code {self.code}": self.code not in CODES,
            f"{self.peak_bytes / MIB:.0f} MiB": self.peak_bytes > MOST_BYTES,
            f"after {self.elapsed_seconds:.0f} s": (
                self.elapsed_seconds > honest_seconds + LATE_SECONDS
            ),
            f"{len(self.err)} bytes of words": "Traceback" in self.err
            or len(self.err) > MOST_WORDS_BYTES,
            "words that a terminal obeys": not all(map(str.isprintable, self.err.splitlines())),
        }
        return [what for what, true in checks.items() if true]


def run_behaviour(behaviour: Behaviour) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        agent = [sys.executable, str(Path(__file__).resolve()), "act", behaviour.name]
        words = ["probe", behaviour.stage, "//127.0.0.1/none", "--quiet", "--folder", folder]
        words += ["--agent", f"exec:{shlex.join(agent)}"]
        words += ["--budget", str(BUDGET_SECONDS), "--json", str(path)]
        ended = peaks.run_program(*words, seconds=GIVE_UP_SECONDS)
        return Result(**vars(ended), name=behaviour.name, report=report_fault(path))


def report_fault(path: Path) -> str:
    """Why a report is none; empty: it is one, or there is none."""
    if not path.exists():
        return ""
    if path.stat().st_size > MOST_REPORT_BYTES:
        return f"a report of {path.stat().st_size} bytes"
    try:
        json.loads(path.read_text())
    except ValueError as error:
        return f"a report that cannot be read: {error}"
    return ""


def trial(behaviours: Sequence[Behaviour], workers: int = 1) -> Iterator[tuple[Result, list[str]]]:
    """Each of them, after an honest agent, and what is wrong."""
    honest = run_behaviour(BEHAVIOURS[0])
    yield honest, honest.faults(honest.elapsed_seconds)
    with ThreadPoolExecutor(workers) as pool:
        for result in pool.map(run_behaviour, behaviours):
            yield result, result.faults(honest.elapsed_seconds)


def main() -> int:
    if sys.argv[1:2] == ["act"]:
        act(sys.argv[2], sys.argv[3:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="those whose name holds this")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--workers", type=int, default=2, help="coordinators at a time")
    options = parser.parse_args()
    results = []
    behaviours = [each for each in BEHAVIOURS[1:] if options.only in each.name]
    for result, faults in trial(behaviours, options.workers):
        results.append({**asdict(result), "faults": faults})
        said = result.err.strip().splitlines()[-1:] or [""]
        print(
            f"{'FAULT ' + ', '.join(faults) if faults else 'ok':8} "
            f"{result.peak_bytes / MIB:6.0f} MiB {result.elapsed_seconds:6.1f} s "
            f"exit {result.code:3}  {result.name}: {said[0][:150]}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    faulty = sum(bool(each["faults"]) for each in results)
    print(f"{len(results)} agents, {faulty} at fault")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
