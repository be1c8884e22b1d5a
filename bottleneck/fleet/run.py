"""Runs a fleet's tests, round by round, through ansible-playbook, and keeps the reports."""

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
from bottleneck.fleet.collected import AT_ONCE, FleetRates, collect
from bottleneck.fleet.inventory import environment, folder_of, program
from bottleneck.fleet.records import Fleet, Pair
from bottleneck.fleet.result import judge_pairs
from bottleneck.fleet.together import LEAST_AT_ONCE
from bottleneck.login.credentials import DESCRIPTOR_VARIABLE
from bottleneck.report import document_file
from probes.core import bounded
from probes.core.records import Access
from probes.core.stage import Refused
from probes.files import folders
from probes.files.created_folder import CreatedFolder
from probes.programs.samba import vanishing_folder
from probes.system.child import detached_arguments
from probes.system.platform import os
from probes.system.tools import TAKE_OPEN_FILES, others_can_change
from probes.system.waiting import fcntl, signal

PLAYBOOK = "copy_bottleneck.smb.fleet"
SLACK_SECONDS = 180.0
"""Time of a round beside its tests: logins, and copying the module to the hosts."""
STOP_SECONDS = 30.0
COLLECTIONS = "~/.ansible/collections:/usr/share/ansible/collections"
"""Ansible's default search path of collections."""
CALLBACK, ANSWERS = "copy_bottleneck.smb.answers", "answers"
"""Callback that keeps the clients' answers, and its folder."""
AT_ONCE_SHARE = 0.5
"""Share of a test's time that a copy takes while other clients copy."""
REFUSED = 77
"""Exit code of the program if the login or a permission was refused."""
LONGEST_REASON = 300
LOG = "ansible.log"
"""Ansible's output, beside the reports; also the lock of their folder."""


@dataclass(frozen=True)
class Run:
    """Order of a fleet's run."""

    fleet: Fleet
    shares: Mapping[str, str]
    """Share of each server."""
    inventory: Path
    keep: Path
    """Folder of the reports."""
    log: int
    """Descriptor of Ansible's output."""
    access: Access
    budget_seconds: float
    every: bool = False
    usual_bytes_per_second: float | None = None


@contextmanager
def prepare_folder(keep: Path, resume: bool) -> Iterator[tuple[FleetRates, int]]:
    """Locks the folder of the reports; yields its reports and its open log.

    Raises Refused, "usage": the folder is in use or unsafe, or has reports without `resume`.
    """
    where, collected, log = keep.absolute(), FleetRates(), -1
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
            # Ansible inherits the lock, which lasts while a playbook runs.
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            collected = collect(where)
    except BlockingIOError:
        why = "another run is using it"
    except OSError as error:
        why = f"{error.strerror}"
    if collected.tests and not resume:
        why = f"has {collected.tests.total()} reports; use --resume or another directory"
    try:
        if why:
            raise Refused("usage", f"--keep {keep}: {why}")
        yield collected, log
    finally:
        if log >= 0:
            os.close(log)


def measure_pairs(
    run: Run, collected: FleetRates, first: Sequence[Pair], say: Callable[[str], None]
) -> None:
    """Tests the first pairs without a report, then pairs that decide; adds to collected.

    A login that all refuse is tried only once: more would lock the account.
    Errors: KeyboardInterrupt, after ansible-playbook has ended; collected has the results so far.
    """
    tests, reported_before = Counter(collected.tests), collected.pairs()
    pairs = [pair for pair in first if not tests[pair]]
    with _ansible_folder() as (work, own_folder):
        while pairs:
            rounds = timetable.rounds(run.fleet, pairs)
            for number, each in enumerate(rounds, 1):
                names = ", ".join(f"{pair.client} with {pair.server}" for pair in each[:4])
                say(f"round {number} of {len(rounds)}: {len(each)} tests: {names}")
                _round(run, each, collected, work, own_folder)
                tests.update(each)
                if collected.pairs() == reported_before and collected.refused.issuperset(each):
                    return
            judged = judge_pairs(collected.rates, run.fleet, run.usual_bytes_per_second)
            remaining = 0 if run.every else run.fleet.most_tests - tests.total()
            dead = adaptive.dead_hosts(tests, collected.pairs())
            pairs = adaptive.next_pairs(run.fleet, judged.findings, tests, remaining, dead)


def at_once_seconds(budget_seconds: float) -> float:
    """Returns the intended duration of each client's copy while others copy."""
    return AT_ONCE_SHARE * budget_seconds


def at_once(run: Run, collected: FleetRates, copy: str, say: Callable[[str], None]) -> None:
    """Has all clients with a report copy at the same time; adds to collected.at_once.

    Errors: KeyboardInterrupt, after ansible-playbook has ended.
    """
    pairs = sorted(collected.pairs())
    collected.at_once = FleetRates()
    if len(pairs) < LEAST_AT_ONCE:
        return
    say(f"{len(pairs)} clients at once: {copy}")
    # The time determines the size, not the inventory.
    variables = {
        "bottleneck_stage": "smb-copy",
        "bottleneck_copy": copy,
        "bottleneck_seconds": at_once_seconds(run.budget_seconds),
        "bottleneck_budget": run.budget_seconds + at_once_seconds(run.budget_seconds),
        "bottleneck_size": "",
    }
    with _ansible_folder() as (work, own_folder):
        _round(run, pairs, collected.at_once, work, own_folder, variables, AT_ONCE)


def _round(
    run: Run,
    pairs: Sequence[Pair],
    collected: FleetRates,
    work: Path,
    own_folder: CreatedFolder,
    extra: Mapping[str, Any] = MappingProxyType({}),
    mark: str = "",
) -> None:
    """Runs one round, all its pairs at the same time; an unreachable host costs only its own pair.

    extra: further variables of the playbook; mark: ending of the reports' names.
    """
    values = {
        "bottleneck_budget": run.budget_seconds,
        "bottleneck_user": run.access.username,
        "bottleneck_domain": run.access.domain,
        "bottleneck_allow_guest": run.access.allow_guest,
        "bottleneck_round": {
            pair.client: {"share": run.shares[pair.server], "server": pair.server} for pair in pairs
        },
        **extra,
    }
    variables = work / "round.json"
    variables.write_text(json.dumps(_mark_unsafe(values)))
    command = [program("ansible-playbook"), "--inventory", str(run.inventory.absolute())]
    command += ["--forks", str(len(pairs)), "--extra-vars", f"@{variables}", PLAYBOOK]
    last = "interrupted"
    try:
        last = _run_playbook(command, run, work, own_folder)
    finally:
        for pair in pairs:
            file = work / ANSWERS / f"{pair.client}.json"
            reason = _add_answer(run.keep, pair, file, collected, mark) if file.exists() else last
            if pair not in collected.pairs():
                collected.missing[pair] = " ".join(str(reason).split())[:LONGEST_REASON]


def _mark_unsafe(value: Any) -> Any:
    """Marks all texts of a value, so that Ansible expands no template in them."""
    if isinstance(value, Mapping):
        return {key: _mark_unsafe(each) for key, each in value.items()}
    return {"__ansible_unsafe": value} if isinstance(value, str) else value


@contextmanager
def _secret_file(text: str) -> Iterator[int]:
    """Yields a descriptor of an unnamed file that each process of Ansible reads."""
    memory = os.fdopen(os.memfd_create("bottleneck"), "wb", 0) if TAKE_OPEN_FILES else None
    with memory or TemporaryFile(buffering=0) as file:
        file.write(text.encode())
        yield file.fileno()


def _new_name(keep: Path, pair: Pair, mark: str = "") -> str:
    usual = f"{pair.client}@{pair.server}{mark}"
    names = chain((f"{usual}.json",), (f"{usual}.run{number}.json" for number in count(2)))
    return next(each for each in names if not (keep / each).exists())


def _run_playbook(command: list[str], run: Run, work: Path, own_folder: CreatedFolder) -> str:
    """Runs the playbook to its end; returns why there may be no report.

    own_folder: folder of this run; the playbook is ended if this process is killed.
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
            **detached_arguments(signal.SIGTERM),
        )
    try:
        own_folder.ends_first(process.pid)
        process.wait(run.budget_seconds + SLACK_SECONDS)
    except subprocess.TimeoutExpired:
        return "ansible-playbook did not end in time"
    finally:
        _stop(process)
    return f"no report; see {run.keep / LOG}"


def _ours(work: Path) -> dict[str, str]:
    """Returns variables for Ansible: our collection, the folder for answers, pipelining.

    A module that is piped to its host leaves no file with the password there.
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


def _add_answer(keep: Path, pair: Pair, file: Path, collected: FleetRates, mark: str) -> Any:
    """Adds the answer of a pair's client, and keeps its report; returns why it has no rate."""
    try:
        answer = bounded.loads(file.read_bytes())
        file.unlink()
        if answer["exit_code"] == REFUSED:
            collected.refused.add(pair)
        if not answer["report"]:
            return answer["reason"]
        path = keep / _new_name(keep, pair, mark)
        document_file.write(path, json.dumps(answer["report"]), 0o600)
        if mark:
            collected.report_files[pair] = path, float(answer["answered_seconds"])
        collected.read(path, pair)
        return collected.skipped.get(path.name) or collected.missing.get(pair)
    except OSError as error:
        return f"{keep}: {error.strerror}"
    except bounded.NotBounded as error:
        return f"what it answered cannot be read: {error}"
    except (ValueError, KeyError, TypeError):
        return "what it answered cannot be read"


@contextmanager
def _ansible_folder() -> Iterator[tuple[Path, CreatedFolder]]:
    """Yields a folder for Ansible with this program's collection."""
    here = Path(__file__).parent
    source = here / "collection" if (here / "collection").is_dir() else here.parents[1] / "ansible"
    with vanishing_folder("bottleneck-") as (work, own_folder):
        place = work / "ansible_collections" / "copy_bottleneck"
        place.mkdir(parents=True)
        (place / "smb").symlink_to(source)
        (work / ANSWERS).mkdir()
        yield work, own_folder
