"""A fleet's tests, round by round, through ansible-playbook; what each round brings is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bottleneck.fleet import adaptive, timetable
from bottleneck.fleet.collected import Collected, collect
from bottleneck.fleet.inventory import program
from bottleneck.fleet.records import Fleet, Pair
from bottleneck.fleet.result import of_pairs
from probes.records import Access
from probes.stage import Refused

PLAYBOOK = "copy_bottleneck.smb.fleet"
SLACK_SECONDS = 180.0
"""That a round may take longer than its tests: logins, and copying the module there."""
STOP_SECONDS = 30.0
WORK = ".fleet"
"""Folder below that of the reports, for what a round is told."""


@dataclass(frozen=True)
class Run:
    """What is measured, and how."""

    fleet: Fleet
    shares: Mapping[str, str]
    """By server."""
    inventory: Path
    keep: Path
    """Folder of the reports."""
    access: Access
    budget_seconds: float
    every: bool = False
    usual_bytes_per_second: float | None = None


def prepared(keep: Path, resume: bool) -> Collected:
    """What the folder of the reports holds. Raises Refused, "usage", unless that is wanted."""
    keep.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = collect(keep)
    if found.made and not resume:
        text = f"--keep {keep}: has {found.made.total()} reports; use --resume or another directory"
        raise Refused("usage", text)
    return found


def measured(run: Run, found: Collected, first: Sequence[Pair], say: Callable[[str], None]) -> None:
    """Makes the first pairs that are not there yet, then those that decide; adds to found.

    Errors: KeyboardInterrupt, when ansible-playbook has ended; found has what is known by then.
    """
    made = Counter(found.made)
    pairs = [pair for pair in first if not made[pair]]
    with _collection(run.keep) as environment:
        while pairs:
            rounds = timetable.rounds(run.fleet, pairs)
            for at, each in enumerate(rounds, 1):
                names = ", ".join(f"{pair.client} with {pair.server}" for pair in each[:4])
                say(f"round {at} of {len(rounds)}: {len(each)} tests: {names}")
                _round(run, each, made, found, environment)
                made.update(each)
            judged = of_pairs(found.seen, run.fleet, run.usual_bytes_per_second)
            left = 0 if run.every else run.fleet.most_tests - made.total()
            dead = adaptive.dead_hosts(made, found.reported())
            pairs = adaptive.next_pairs(run.fleet, judged.found, made, left, dead)


def _round(
    run: Run,
    pairs: Sequence[Pair],
    made: Counter[Pair],
    found: Collected,
    environment: Mapping[str, str],
) -> None:
    """One round: all its pairs at the same time; a host that is not reached costs its own."""
    files = {
        pair: f"{pair.client}@{pair.server}" + (f".run{made[pair] + 1}" if made[pair] else "")
        for pair in pairs
    }
    told = {
        "bottleneck_keep": str(run.keep.absolute()),
        "bottleneck_budget": run.budget_seconds,
        "bottleneck_user": run.access.username,
        "bottleneck_domain": run.access.domain,
        "bottleneck_allow_guest": run.access.allow_guest,
        "bottleneck_round": {
            pair.client: {
                "share": run.shares[pair.server],
                "server": pair.server,
                "file": files[pair],
            }
            for pair in pairs
        },
    }
    variables = run.keep / WORK / "round.json"
    variables.write_text(json.dumps(told))
    command = [program("ansible-playbook"), "--inventory", str(run.inventory.absolute())]
    command += ["--forks", str(len(pairs)), "--extra-vars", f"@{variables.absolute()}", PLAYBOOK]
    log = run.keep / WORK / "ansible.log"
    last = _played(command, environment, run, log)
    for pair in pairs:
        _take(run.keep, pair, files[pair], found, last)


def _played(command: list[str], environment: Mapping[str, str], run: Run, log: Path) -> str:
    """Runs the playbook to its end; its last words. A signal to us is one to all that it runs."""
    secret = {"BOTTLENECK_PASSWORD": run.access.password} if run.access.password else {}
    with log.open("ab") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment, **secret},
            start_new_session=True,
        )
    try:
        process.wait(run.budget_seconds + SLACK_SECONDS)
    except subprocess.TimeoutExpired:
        return "ansible-playbook did not end in time"
    finally:
        _stop(process)
    return f"no report; see {log}"


def _stop(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                continue


def _take(keep: Path, pair: Pair, name: str, found: Collected, last: str) -> None:
    """Adds what a pair's file says, or why there is none."""
    failed = keep / f"{name}.failed"
    if (keep / f"{name}.json").exists():
        found.read(keep / f"{name}.json")
    elif pair not in found.reported():
        reason: Any = last
        if failed.is_file():
            told = json.loads(failed.read_bytes()[:4096])
            reason = told.get("reason", last)
        found.missing[pair] = " ".join(str(reason).split())[:300]
    failed.unlink(missing_ok=True)


@contextmanager
def _collection(keep: Path) -> Iterator[dict[str, str]]:
    """The environment in which ansible-playbook finds the collection that this program brings."""
    here = Path(__file__).parent
    source = here / "collection" if (here / "collection").is_dir() else here.parents[1] / "ansible"
    place = keep / WORK / "ansible_collections" / "copy_bottleneck"
    place.mkdir(parents=True, exist_ok=True)
    link = place / "smb"
    link.unlink(missing_ok=True)
    link.symlink_to(source)
    try:
        yield {"ANSIBLE_COLLECTIONS_PATH": str((keep / WORK).absolute()), "ANSIBLE_NOCOLOR": "1"}
    finally:
        link.unlink()
        place.rmdir()
        place.parent.rmdir()
