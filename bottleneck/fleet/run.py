"""A fleet's tests, round by round, through ansible-playbook; what each round brings is kept."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

from bottleneck import bounded
from bottleneck.fleet import adaptive, timetable
from bottleneck.fleet.collected import Collected, collect
from bottleneck.fleet.inventory import environment, program
from bottleneck.fleet.records import Fleet, Pair
from bottleneck.fleet.result import of_pairs
from probes.host.system import os
from probes.host.tools import others_can_change
from probes.host.waiting import fcntl, signal
from probes.records import Access
from probes.stage import Refused

PLAYBOOK = "copy_bottleneck.smb.fleet"
SLACK_SECONDS = 180.0
"""That a round may take longer than its tests: logins, and copying the module there."""
STOP_SECONDS = 30.0
COLLECTIONS = "~/.ansible/collections:/usr/share/ansible/collections"
"""Where Ansible looks for them if nothing else is said."""
MOST_REASON_BYTES = 4096
LOG = "ansible.log"
"""What Ansible said, beside the reports; also the lock of their folder."""


@dataclass(frozen=True)
class Run:
    """What is measured, and how."""

    fleet: Fleet
    shares: Mapping[str, str]
    """By server."""
    inventory: Path
    keep: Path
    """Folder of the reports."""
    log: int
    """Descriptor of what Ansible says."""
    access: Access
    budget_seconds: float
    every: bool = False
    usual_bytes_per_second: float | None = None


@contextmanager
def prepared(keep: Path, resume: bool) -> Iterator[tuple[Collected, int]]:
    """What the folder of the reports holds, and its open log; the folder is this run's alone.

    Raises Refused, "usage", unless that is wanted.
    """
    where, found, log = keep.absolute(), Collected(), -1
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        if why := others_can_change(str(where), sticky=True):
            why = f"{why} is writable by other users; use a folder of your own"
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            log = os.open(where / LOG, flags, 0o600)
            # Ansible inherits the lock: it holds as long as a playbook still runs.
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = collect(where)
    except BlockingIOError:
        why = "another run is using it"
    except OSError as error:
        why = f"{error.strerror}"
    if found.made and not resume:
        why = f"has {found.made.total()} reports; use --resume or another directory"
    try:
        if why:
            raise Refused("usage", f"--keep {keep}: {why}")
        yield found, log
    finally:
        if log >= 0:
            os.close(log)


def measured(run: Run, found: Collected, first: Sequence[Pair], say: Callable[[str], None]) -> None:
    """Makes the first pairs that are not there yet, then those that decide; adds to found.

    Errors: KeyboardInterrupt, when ansible-playbook has ended; found has what is known by then.
    """
    made = Counter(found.made)
    pairs = [pair for pair in first if not made[pair]]
    with _started() as work:
        while pairs:
            rounds = timetable.rounds(run.fleet, pairs)
            for at, each in enumerate(rounds, 1):
                names = ", ".join(f"{pair.client} with {pair.server}" for pair in each[:4])
                say(f"round {at} of {len(rounds)}: {len(each)} tests: {names}")
                _round(run, each, found, work)
                made.update(each)
            judged = of_pairs(found.seen, run.fleet, run.usual_bytes_per_second)
            left = 0 if run.every else run.fleet.most_tests - made.total()
            dead = adaptive.dead_hosts(made, found.reported())
            pairs = adaptive.next_pairs(run.fleet, judged.found, made, left, dead)


def _round(
    run: Run,
    pairs: Sequence[Pair],
    found: Collected,
    work: Path,
) -> None:
    """One round: all its pairs at the same time; a host that is not reached costs its own."""
    files = {pair: _new_name(run.keep, pair) for pair in pairs}
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
    variables = work / "round.json"
    variables.write_text(json.dumps(told))
    command = [program("ansible-playbook"), "--inventory", str(run.inventory.absolute())]
    command += ["--forks", str(len(pairs)), "--extra-vars", f"@{variables}", PLAYBOOK]
    last = _played(command, run, work)
    for pair in pairs:
        _take(run.keep, pair, files[pair], found, last)


def _new_name(keep: Path, pair: Pair) -> str:
    """Of a file that is not there, with any ending: no report is taken for another one."""
    usual = f"{pair.client}@{pair.server}"
    names = chain((usual,), (f"{usual}.run{at}" for at in count(2)))
    endings = (".json", ".failed")
    return next(
        each for each in names if not any((keep / f"{each}{end}").exists() for end in endings)
    )


def _played(command: list[str], run: Run, work: Path) -> str:
    """Runs the playbook to its end; its last words. A signal to us is one to all that it runs."""
    secret = {"BOTTLENECK_PASSWORD": run.access.password} if run.access.password else {}
    theirs = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or COLLECTIONS
    found = {"ANSIBLE_COLLECTIONS_PATH": f"{work}:{theirs}"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=run.log,
        stderr=subprocess.STDOUT,
        cwd=work,
        env={**environment(run.inventory), **found, **secret},
        start_new_session=True,
    )
    try:
        process.wait(run.budget_seconds + SLACK_SECONDS)
    except subprocess.TimeoutExpired:
        return "ansible-playbook did not end in time"
    finally:
        _stop(process)
    return f"no report; see {run.keep / LOG}"


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
    file, failed = keep / f"{name}.json", keep / f"{name}.failed"
    reason: Any = last
    if file.exists():
        found.read(file)
        reason = found.skipped.get(file.name) or found.missing.get(pair, last)
    elif failed.is_file():
        with failed.open("rb") as told:
            text = told.read(MOST_REASON_BYTES)
        try:
            reason = bounded.loads(text)["reason"]
        except (ValueError, KeyError, TypeError):
            reason = text.decode("utf-8", "replace")
    if pair not in found.reported():
        found.missing[pair] = " ".join(str(reason).split())[:300]
    failed.unlink(missing_ok=True)


@contextmanager
def _started() -> Iterator[Path]:
    """A folder of ours to run Ansible in, with the collection that this program brings."""
    here = Path(__file__).parent
    source = here / "collection" if (here / "collection").is_dir() else here.parents[1] / "ansible"
    with tempfile.TemporaryDirectory(prefix="bottleneck-") as work:
        place = Path(work, "ansible_collections", "copy_bottleneck")
        place.mkdir(parents=True)
        (place / "smb").symlink_to(source)
        yield Path(work)
