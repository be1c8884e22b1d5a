"""A fleet's tests, round by round, through ansible-playbook; what each round brings is kept."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import Any

from bottleneck.fleet import adaptive, timetable
from bottleneck.fleet.collected import AT_ONCE, Collected, collect
from bottleneck.fleet.inventory import environment, folder_of, program
from bottleneck.fleet.records import Fleet, Pair
from bottleneck.fleet.result import of_pairs
from bottleneck.fleet.together import LEAST_AT_ONCE
from bottleneck.report import document_file
from bottleneck.target.credentials import DESCRIPTOR_VARIABLE
from probes.core import bounded
from probes.core.records import Access
from probes.core.stage import Refused
from probes.files import folders
from probes.files.own_folder import OwnFolder
from probes.programs.samba import vanishing_folder
from probes.system.child import apart
from probes.system.platform import os
from probes.system.tools import TAKE_OPEN_FILES, others_can_change
from probes.system.waiting import fcntl, signal

PLAYBOOK = "copy_bottleneck.smb.fleet"
SLACK_SECONDS = 180.0
"""That a round may take longer than its tests: logins, and copying the module there."""
STOP_SECONDS = 30.0
COLLECTIONS = "~/.ansible/collections:/usr/share/ansible/collections"
"""Where Ansible looks for them if nothing else is said."""
CALLBACK, ANSWERS = "copy_bottleneck.smb.answers", "answers"
"""The callback that keeps what the clients answer, and the folder for it."""
AT_ONCE_SHARE = 0.5
"""Of a test's time, which the copy of a client takes that is made while others copy."""
REFUSED = 77
"""Exit code of the program where the login or a permission was refused."""
LONGEST_REASON = 300
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
        nearest = next(each for each in (where, *where.parents) if each.exists())
        why = others_can_change(f"{nearest}/.", sticky=True)
        if not why:
            folders.make_private(str(where))
            why = others_can_change(str(where), sticky=True)
        if why:
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

    A login that all refuse is tried once: more would lock the account.
    Errors: KeyboardInterrupt, when ansible-playbook has ended; found has what is known by then.
    """
    made, before = Counter(found.made), found.reported()
    pairs = [pair for pair in first if not made[pair]]
    with _started() as (work, own):
        while pairs:
            rounds = timetable.rounds(run.fleet, pairs)
            for at, each in enumerate(rounds, 1):
                names = ", ".join(f"{pair.client} with {pair.server}" for pair in each[:4])
                say(f"round {at} of {len(rounds)}: {len(each)} tests: {names}")
                _round(run, each, found, work, own)
                made.update(each)
                if found.reported() == before and found.refused.issuperset(each):
                    return
            judged = of_pairs(found.seen, run.fleet, run.usual_bytes_per_second)
            left = 0 if run.every else run.fleet.most_tests - made.total()
            dead = adaptive.dead_hosts(made, found.reported())
            pairs = adaptive.next_pairs(run.fleet, judged.found, made, left, dead)


def at_once_seconds(budget_seconds: float) -> float:
    """How long the copy of each client is meant to last that is made while others copy."""
    return AT_ONCE_SHARE * budget_seconds


def at_once(run: Run, found: Collected, copy: str, say: Callable[[str], None]) -> None:
    """Has all clients that have a report make one copy at the same time; adds to found.at_once.

    Errors: KeyboardInterrupt, when ansible-playbook has ended.
    """
    pairs = sorted(found.reported())
    found.at_once = Collected()
    if len(pairs) < LEAST_AT_ONCE:
        return
    say(f"{len(pairs)} clients at once: {copy}")
    # Its size is what the time takes, not what the inventory says.
    told = {
        "bottleneck_stage": "smb-copy",
        "bottleneck_copy": copy,
        "bottleneck_seconds": at_once_seconds(run.budget_seconds),
        "bottleneck_budget": run.budget_seconds + at_once_seconds(run.budget_seconds),
        "bottleneck_size": "",
    }
    with _started() as (work, own):
        _round(run, pairs, found.at_once, work, own, told, AT_ONCE)


def _round(
    run: Run,
    pairs: Sequence[Pair],
    found: Collected,
    work: Path,
    own: OwnFolder,
    more: Mapping[str, Any] = MappingProxyType({}),
    mark: str = "",
) -> None:
    """One round: all its pairs at the same time; a host that is not reached costs its own.

    more: further variables of the playbook; mark: what the names of the reports end with.
    """
    told = {
        "bottleneck_budget": run.budget_seconds,
        "bottleneck_user": run.access.username,
        "bottleneck_domain": run.access.domain,
        "bottleneck_allow_guest": run.access.allow_guest,
        "bottleneck_round": {
            pair.client: {"share": run.shares[pair.server], "server": pair.server} for pair in pairs
        },
        **more,
    }
    variables = work / "round.json"
    variables.write_text(json.dumps(_mark_unsafe(told)))
    command = [program("ansible-playbook"), "--inventory", str(run.inventory.absolute())]
    command += ["--forks", str(len(pairs)), "--extra-vars", f"@{variables}", PLAYBOOK]
    last = "interrupted"
    try:
        last = _played(command, run, work, own)
    finally:
        for pair in pairs:
            file = work / ANSWERS / f"{pair.client}.json"
            reason = _taken(run.keep, pair, file, found, mark) if file.exists() else last
            if pair not in found.reported():
                found.missing[pair] = " ".join(str(reason).split())[:LONGEST_REASON]


def _mark_unsafe(value: Any) -> Any:
    """Marks all texts of a value, so that Ansible takes none for a template."""
    if isinstance(value, Mapping):
        return {key: _mark_unsafe(each) for key, each in value.items()}
    return {"__ansible_unsafe": value} if isinstance(value, str) else value


@contextmanager
def _secret_file(text: str) -> Iterator[int]:
    """Yields a descriptor of a file without a name: each process of Ansible reads it by itself."""
    memory = os.fdopen(os.memfd_create("bottleneck"), "wb", 0) if TAKE_OPEN_FILES else None
    with memory or TemporaryFile(buffering=0) as file:
        file.write(text.encode())
        yield file.fileno()


def _new_name(keep: Path, pair: Pair, mark: str = "") -> str:
    """Of a file that is not there: no report is taken for another one."""
    usual = f"{pair.client}@{pair.server}{mark}"
    names = chain((f"{usual}.json",), (f"{usual}.run{at}.json" for at in count(2)))
    return next(each for each in names if not (keep / each).exists())


def _played(command: list[str], run: Run, work: Path, own: OwnFolder) -> str:
    """Runs the playbook to its end; its last words. A signal to us is one to all that it runs.

    own: the folder to work in. The playbook ends where this process is killed.
    """
    with _secret_file(run.access.password) as secret:
        ours = {**_ours(work), DESCRIPTOR_VARIABLE: str(secret)}
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=run.log,
            stderr=subprocess.STDOUT,
            cwd=folder_of(run.inventory),
            env={**environment(run.inventory), **ours},
            pass_fds=(secret,),
            **apart(signal.SIGTERM),
        )
    try:
        own.ends_first(process.pid)
        process.wait(run.budget_seconds + SLACK_SECONDS)
    except subprocess.TimeoutExpired:
        return "ansible-playbook did not end in time"
    finally:
        _stop(process)
    return f"no report; see {run.keep / LOG}"


def _ours(work: Path) -> dict[str, str]:
    """Where Ansible finds the collection that this program brings, and what it does with answers.

    A module that is piped to its host leaves no file there, which would have the password.
    """
    theirs = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or COLLECTIONS
    callbacks = [os.environ.get("ANSIBLE_CALLBACKS_ENABLED"), CALLBACK]
    return {
        "ANSIBLE_COLLECTIONS_PATH": f"{work}:{theirs}",
        "ANSIBLE_CALLBACKS_ENABLED": ",".join(filter(None, callbacks)),
        "ANSIBLE_PIPELINING": os.environ.get("ANSIBLE_PIPELINING", "1"),
        "BOTTLENECK_ANSWERS": str(work / ANSWERS),
    }


def _stop(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                continue


def _taken(keep: Path, pair: Pair, file: Path, found: Collected, mark: str) -> Any:
    """Adds what a pair's client answered, and keeps its report; returns why it has no rate."""
    try:
        told = bounded.loads(file.read_bytes())
        file.unlink()
        if told["exit_code"] == REFUSED:
            found.refused.add(pair)
        if not told["report"]:
            return told["reason"]
        kept = keep / _new_name(keep, pair, mark)
        document_file.write(kept, json.dumps(told["report"]), 0o600)
        if mark:
            found.kept[pair] = kept, float(told["answered_seconds"])
        found.read(kept, pair)
        return found.skipped.get(kept.name) or found.missing.get(pair)
    except OSError as error:
        return f"{keep}: {error.strerror}"
    except bounded.NotBounded as error:
        return f"what it answered cannot be read: {error}"
    except (ValueError, KeyError, TypeError):
        return "what it answered cannot be read"


@contextmanager
def _started() -> Iterator[tuple[Path, OwnFolder]]:
    """A folder of ours for Ansible, with the collection that this program brings."""
    here = Path(__file__).parent
    source = here / "collection" if (here / "collection").is_dir() else here.parents[1] / "ansible"
    with vanishing_folder("bottleneck-") as (work, own):
        place = work / "ansible_collections" / "copy_bottleneck"
        place.mkdir(parents=True)
        (place / "smb").symlink_to(source)
        (work / ANSWERS).mkdir()
        yield work, own
