"""One world and one run of the product in it: what it found, and how that is told."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from disc_files import PLANTED
from disturbance import TOO_MUCH_CORES, watch_machine
from exporter import exporter
from host import SHARE, USER
from judge import MISSED, NOT_COUNTED, WRONG, JudgedCopy, Ratio, rates, verdicts
from law import broken_laws
from prove import iperf3
from truth import MB, LabWorld
from world import World, world

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.report.report import ReportError, from_json, load, to_json

AS_USER = f" setpriv --reuid={USER} --regid={pwd.getpwnam(USER).pw_gid} --clear-groups --"
"""Command before smbd, which serves the share as this user."""
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Terms:
    budget_seconds: int = 60
    """The least; a world may need more."""
    agent: bool = True
    """Whether it may have one on the server."""
    ordinary: bool = False
    """Whether that one has no rights there but the share's user's."""
    metrics: bool = False
    """Whether the server tells its counters, in place of an agent."""
    beside: bool = True
    """Whether iperf3 is run too."""
    reports: Path | None = None

    def budget_of(self, case: LabWorld) -> int:
        return max(self.budget_seconds, case.least_budget_seconds)


@dataclass(frozen=True)
class Result:
    world: str
    planted: str = ""
    clear: bool = True
    """Whether the world has one clear cap."""
    exit_code: int | None = None
    """None: it did not end in time, or was made before."""
    elapsed_seconds: float = 0.0
    """Seconds of the whole command, its start included; of a saved report, its own."""
    allowed_seconds: float = 60
    iperf3_bytes_per_second: dict[str, float] = field(default_factory=dict)
    """By verb; empty where it was not run."""
    verdicts: tuple[JudgedCopy, ...] = ()
    rates: tuple[Ratio, ...] = ()
    headline: str | None = None
    """The copy that the summary speaks of."""
    left_behind: tuple[str, ...] = ()
    """Files of the run that are still on either host."""
    foreign_peak_cores: float = 0.0
    """CPU that processes outside of the lab took in the worst second, in cores."""
    disturbed: bool = False
    """Whether that was enough to be a true cap by itself."""
    unlawful: tuple[str, ...] = ()
    """Sentences of the diagnosis that its own report refutes (law.py)."""
    message: str = ""
    """The end of stderr where the run broke."""

    @property
    def broke(self) -> bool:
        """Whether there is no report to judge."""
        return not self.verdicts

    @property
    def clean(self) -> bool:
        """Whether every verdict is as it should be."""
        return not self.broke and not {row.grade for row in self.verdicts} & {WRONG, MISSED}

    @property
    def counted(self) -> tuple[JudgedCopy, ...]:
        """The verdicts of copies that could be made at all."""
        return tuple(row for row in self.verdicts if row.grade != NOT_COUNTED)


def run_undisturbed(case: LabWorld, attempts: int, run: Callable[[LabWorld], Result]) -> Result:
    """The experiment, again where somebody else on the machine spoilt it; the last one counts.

    Only a disturbance that was measured apart from the product is a reason to repeat.
    """
    for _ in range(attempts - 1):
        ran = run(case)
        if ran.clean or not ran.disturbed:
            return ran
        show(ran)
        print("  not counted: the lab was not alone on this machine; once more", flush=True)
    return run(case)


def experiment(case: LabWorld, terms: Terms) -> Result:
    """Build the world, run the product in it, judge its report."""
    budget_seconds = terms.budget_of(case)
    with world(case.plant) as lab:
        verbs = ("push", "pull") if terms.beside else ()
        references = {verb: iperf3(lab, verb, 3) for verb in verbs}
        file = lab.work / "report.json"
        counted = exporter(lab) if terms.metrics else contextlib.nullcontext("")
        with counted as address, watch_machine(lab.groups) as foreign:
            words = ["diagnose", *size_options(case), *(["--metrics", address] if address else [])]
            code, elapsed, message = product(
                lab, words, file, budget_seconds, agent=terms.agent, ordinary=terms.ordinary
            )
        text = file.read_text() if file.exists() else ""
        remaining = tuple(left_behind(lab))
    if terms.reports is not None and text:
        terms.reports.mkdir(parents=True, exist_ok=True)
        (terms.reports / f"{case.name}.json").write_text(text)
    return judge_run(
        case,
        json.loads(text) if text else None,
        terms,
        exit_code=code,
        elapsed_seconds=elapsed,
        iperf3_bytes_per_second=references,
        left_behind=remaining,
        foreign_peak_cores=foreign.peak_cores,
        disturbed=foreign.disturbed,
        message=message,
    )


def judge_run(
    case: LabWorld, report: dict[str, Any] | None, terms: Terms, **keywords: Any
) -> Result:
    """Returns what a report says of a world, and what else was seen of its run."""
    references = keywords.get("iperf3_bytes_per_second", {})
    parsed = from_json(report) if report else None
    return Result(
        world=case.name,
        planted=case.planted,
        clear=case.clear,
        allowed_seconds=terms.budget_of(case),
        verdicts=tuple(verdicts(case, report, agent=terms.agent)) if report else (),
        rates=tuple(rates(case, report, references)) if report else (),
        headline=report["diagnosis"]["headline"] if report else None,
        unlawful=broken_laws(parsed, diagnose(parsed)) if parsed else (),
        **keywords,
    )


def judged_again(folder: Path, worlds: Sequence[LabWorld], terms: Terms) -> Iterator[Result]:
    """Yields what each world's saved report (WORLD.json) says with today's analysis: no measuring.

    A world without one is left out; a file that is no report counts as a run that broke.
    """
    for case in worlds:
        file = folder / f"{case.name}.json"
        if file.exists():
            try:
                document = rediagnose(file)
            except ReportError as error:
                yield judge_run(case, None, terms, message=str(error))
            else:
                yield judge_run(case, document, terms, elapsed_seconds=document["elapsed_seconds"])


def rediagnose(file: Path) -> dict[str, Any]:
    """CONTRACT's document of a saved report, its diagnosis anew. Errors: ReportError."""
    report = load(file)
    return to_json(report, diagnose(report))


def size_options(case: LabWorld) -> list[str]:
    size = [] if case.size_bytes is None else ["--size", str(case.size_bytes)]
    return size + ([] if case.file is None else ["--file", case.file])


def product(
    lab: World,
    words: Sequence[str],
    file: Path,
    budget_seconds: int,
    *,
    agent: bool = True,
    ordinary: bool = False,
) -> tuple[int | None, float, str]:
    """Run the product on the client, as a user does: exit code, seconds, the end of stderr.

    words: the command, and options of its own; file: where its report goes.
    """
    command: list[str | Path] = [lab.client.script, sys.executable, "-m", "bottleneck"]
    command += [*words, lab.share.target, "--user", lab.share.user]
    there = f"exec:{lab.server.script}{AS_USER if ordinary else ''}"
    command += ["--agent", there if agent else "none"]
    command += ["--server-folder", lab.server.folder / SHARE] if ordinary else []
    command += ["--folder", str(lab.client.folder), "--json", str(file), "--yes", "--quiet"]
    command += ["--budget", str(budget_seconds)]
    environment = {**os.environ, "BOTTLENECK_PASSWORD": lab.share.password, "PYTHONPATH": str(ROOT)}
    began = time.monotonic()
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=3 * budget_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, time.monotonic() - began, f"did not end within {3 * budget_seconds} s"
    return done.returncode, time.monotonic() - began, done.stderr[-2000:]


def left_behind(lab: World) -> list[str]:
    """Files of a run that are still on either host."""
    remaining = []
    for host in (lab.client, lab.server):
        search: list[str | Path] = ["find", host.folder, "-mindepth", "1", "("]
        search += ["-name", "bottleneck*", "-o", "-type", "f", ")"]
        search += ["-not", "-name", f"{PLANTED}*", "-print"]
        outcome = host.run(search)
        remaining += [f"{host.name}: {line}" for line in outcome.stdout.splitlines()]
    return remaining


def show(ran: Result) -> None:
    """One world's rows: planted, found, and how the rates compare."""
    late = " LATE" if ran.elapsed_seconds > ran.allowed_seconds else ""
    print(f"\n{ran.world}: {ran.planted}")
    others = f"others took up to {ran.foreign_peak_cores:.2f} cores"
    others += f" (DISTURBED: more than {TOO_MUCH_CORES})" if ran.disturbed else ""
    print(f"  {ran.elapsed_seconds:.1f} s{late}, exit {ran.exit_code}, {others}")
    for row in ran.verdicts:
        rate = "" if row.bytes_per_second is None else f"{row.bytes_per_second / MB:8.2f} MB/s"
        doubt = "" if row.confidence is None else f"{row.confidence:.2f}"
        name = f"{row.copy} {row.dialect or ''}"
        print(f"  {row.grade.upper():11} {name:20} {rate:>14}  {row.verdict} {doubt}")
        if row.grade in (WRONG, MISSED):
            print(f"              true would be: {' | '.join(row.right)}")
    _show_rates(ran.rates)
    for line in ran.left_behind:
        print(f"  LEFT BEHIND on {line}")
    for line in ran.unlawful:
        print(f"  AGAINST ITS OWN REPORT {line}")
    if ran.broke or ran.exit_code not in (0, 3, None):
        print(f"  {ran.message.strip()}")
    sys.stdout.flush()


def _show_rates(compared: Iterable[Ratio]) -> None:
    for each in compared:
        off = "" if each.within else f"  OFF by more than {each.tolerance or 0:.0%}"
        print(f"  {each.ratio:6.3f}  {each.what}{off}")
