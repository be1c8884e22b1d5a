"""The copies that the server starts: the same bytes the same way, begun by the other host.

The server's agent pushes to and pulls from a share of the client's: with our own path where this
product is installed there, else with its smbclient.
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any

from bottleneck import plan
from bottleneck.bench import NEEDS_AGENT, Bench
from bottleneck.hosts import AgentLost, StageError
from bottleneck.report import Step
from bottleneck.steps import allowance, served
from bottleneck.steps.meeting import LABEL, SMBCLIENT, Meeting, meet
from probes import smb_copy, smbclient_copy
from probes.host.free_space import beyond_reserve_bytes
from probes.records import Details, Failed, Skipped
from probes.smb import run_folder
from probes.stage import Refused, Unavailable

SET_UP_SECONDS = 1.2
"""To open the client's share and to find out what the server copies with."""
SHARE_OF_LEFT = 0.45
LEAST_COPY_SECONDS = 0.4
LEAST_SECONDS = 1.5
GRACE_SECONDS = 12.0
FLUSH_SECONDS = 30.0
WORST_RATIO = 2.0
"""How much longer than meant the slower of two copies of one size may take."""


def measure_initiators(bench: Bench) -> None:
    """All four copies once, as the server makes them; left out with a note in a short run."""
    if "dialect" not in bench.share.facts:
        return  # a mounted folder: there are no copies of ours to be compared with
    if bench.server is None:
        bench.note(f"{LABEL}: {NEEDS_AGENT}")
        return
    left = list(plan.COPIES)
    each = _seconds_each(bench, len(left))
    if each is None:
        bench.note(
            f"{LABEL}: left out, so that the client's get their time: give a larger --budget"
        )
        return
    with ExitStack() as stack:
        bench.tell("opening a share on the client")
        try:
            meeting = meet(bench, stack, each)
            while left:
                _copy(meeting, left.pop(0))
        except Unavailable as error:
            _end(bench, left, Skipped(str(error)))
        except (StageError, Refused) as error:
            # A login that was refused is not tried again for the copies that are left.
            _end(bench, left, Failed(str(error)))
        except AgentLost as error:
            if any(host.lost for host in bench.reached.values()):
                raise
            # Only the installed agent went: what the run is made with is still there.
            _end(bench, left, Failed(str(error)))


def _seconds_each(bench: Bench, copies: int) -> float | None:
    """Seconds for each of so many copies; None: too few in this run."""
    seconds = (SHARE_OF_LEFT * bench.left() - SET_UP_SECONDS) / copies
    if bench.options.budget_seconds < allowance.LEAST_BUDGET_SECONDS:
        return None
    return min(seconds, bench.times.copy) if seconds >= LEAST_COPY_SECONDS else None


def _end(bench: Bench, copies: list[str], outcome: Skipped | Failed) -> None:
    for copy in copies:
        step = _step(bench, copy, allowance.dialect(bench), SMBCLIENT, bench.share.facts)
        bench.ledger.end(step, outcome)
    bench.save(bench.report())


def _step(bench: Bench, copy: str, dialect: str, engine: str, agreed: Details) -> Step:
    """The step of a copy, without what changes from run to run; agreed: facts of its session."""
    setting = smb_copy.Setting(
        copy=f"server.{copy}",
        dialect=dialect,
        end="folder",
        size_bytes=0,
        seconds=0.0,
        folder=bench.server_path or "",
        signing=agreed.get("signing"),
        encryption=agreed.get("encryption"),
    )
    plain = asdict(setting)
    for varying in ("seed", "size_bytes", "seconds", "fill_source", "file", "file_seconds"):
        plain.pop(varying)
    return Step(smb_copy.NAME, {**plain, "engine": engine}, "server")


def _copy(meeting: Meeting, copy: str) -> None:
    bench = meeting.bench
    step = _step(bench, copy, meeting.dialect, meeting.engine, meeting.share.facts)
    with bench.outcome(step, f"server.{copy} {meeting.dialect}"):
        if bench.left() < LEAST_SECONDS:
            raise Unavailable("no time left in the budget: give a larger --budget")
        verb = copy.partition(".")[0]
        size = _size(meeting, verb)
        if size < plan.MIB:
            raise Unavailable("no source file, or no room for a copy of 1 MiB")
        if verb == "push":
            _push(meeting, step, copy, size)
        else:
            _pull(meeting, step, copy, size)


def _size(meeting: Meeting, verb: str) -> int:
    """Bytes of both copies of a verb, by what others the same way have shown, whoever began."""
    bench = meeting.bench
    same_way = ("pull." if verb == "push" else "push.", f"server.{verb}.")
    known = [
        rate
        for step in bench.ledger.steps
        if step.stage == smb_copy.NAME
        and step.setting["end"] == "folder"
        and step.setting["copy"].startswith(same_way)
        and step.setting["dialect"] == meeting.dialect
        and (rate := bench.ledger.rate(step)) is not None
    ]
    rate = min(max(known), WORST_RATIO * min(known)) if known else None
    seconds = min(meeting.seconds, max(LEAST_SECONDS / 2, bench.left() / WORST_RATIO))
    return plan.copy_bytes(rate, seconds, _room(meeting, verb), bench.options.size_bytes)


def _room(meeting: Meeting, verb: str) -> int:
    bench, facts = meeting.bench, meeting.share.facts
    # One file that was pushed or is to be pulled, and one more while it is replaced.
    free = beyond_reserve_bytes(int(facts["free_bytes"]), int(facts["total_bytes"])) // 2
    if verb == "push":
        source = bench.sources.get("server")
        return min(free, int(source.facts["size_bytes"]) if source else 0)
    assert bench.server is not None
    there = int(bench.server.ask("usable-bytes", folder=bench.server_path))
    return min(there, max(free, meeting.good_bytes), plan.LARGEST_COPY_BYTES)


def _push(meeting: Meeting, step: Step, copy: str, size: int) -> None:
    bench, first = meeting.bench, not meeting.good_bytes
    if meeting.by is not None:
        setting = _own_setting(meeting, copy, size, fill_source=first)
        peer = replace(meeting.share, path=bench.sources["server"].path)
        ran = bench.run(step, setting, peer, setting.seconds + GRACE_SECONDS, by=meeting.by)
        cache = {**ran.details["cache"], "side": "server"}
        bench.take(step, ran, {"cache": cache, **_about(meeting)})
        if first and ran.details["hash_ok"]:
            meeting.name, meeting.good_bytes = run_folder.SOURCE, size
        return
    size, path = served.whole_source(meeting, size)
    name = f"pushed-{secrets.token_hex(8)}"
    known: dict[str, Any] = {}

    def finish() -> float:
        """smbclient flushes nothing; the client's agent does, where it sees the file."""
        if not meeting.path:
            return 0.0
        place = {"path": meeting.path, "file_name": name}
        try:
            seconds = float(bench.client.ask("served-flush", FLUSH_SECONDS, **place))
        except (StageError, Refused, Unavailable) as error:
            bench.note(f"{step.setting['copy']}: not flushed: {error}")
            return 0.0
        known.update(flushed=True, flush_seconds=seconds)
        return seconds

    ran = bench.run(
        step,
        _smbclient_setting(meeting, copy, size, name),
        replace(meeting.share, path=path),
        max(LEAST_SECONDS, bench.left()) + GRACE_SECONDS,
        engine="smbclient-copy",
        finish=finish,
    )
    intact = known["hash_ok"] = served.looked_at(meeting, name, size)
    bench.take(step, ran, {**known, **_about(meeting)})
    if intact is not False:
        served.replace_source(meeting, name, size)


def _pull(meeting: Meeting, step: Step, copy: str, size: int) -> None:
    bench = meeting.bench
    size = served.source_of(meeting, size)
    if size < plan.MIB:
        raise Unavailable("there is no source file on the client's share")
    about = {"cache": served.client_cache(meeting, copy, size), **_about(meeting)}
    if meeting.by is not None:
        setting = _own_setting(meeting, copy, size)
        seconds = setting.seconds + GRACE_SECONDS
        ran = bench.run(step, setting, meeting.share, seconds, by=meeting.by)
    else:
        ran = bench.run(
            step,
            _smbclient_setting(meeting, copy, size, meeting.name),
            meeting.share,
            max(LEAST_SECONDS, bench.left()) + GRACE_SECONDS,
            engine="smbclient-copy",
        )
    bench.take(step, ran, about)


def _own_setting(
    meeting: Meeting, copy: str, size: int, fill_source: bool = False
) -> smb_copy.Setting:
    bench = meeting.bench
    return smb_copy.Setting(
        copy=copy,
        dialect=meeting.dialect,
        end="folder",
        size_bytes=size,
        seconds=max(LEAST_SECONDS, bench.left()),
        folder=bench.server_path or "",
        seed=bench.seed,
        fill_source=fill_source,
    )


def _smbclient_setting(meeting: Meeting, copy: str, size: int, name: str) -> smbclient_copy.Setting:
    bench, facts = meeting.bench, meeting.share.facts
    return smbclient_copy.Setting(
        copy=copy,
        dialect=meeting.dialect,
        size_bytes=size,
        seconds=max(LEAST_SECONDS, bench.left()),
        name=name,
        folder=bench.server_path or "",
        seed=bench.seed,
        signing=facts.get("signing"),
        encryption=facts.get("encryption"),
    )


def _about(meeting: Meeting) -> dict[str, Any]:
    facts = meeting.share.facts
    return {
        "engine": meeting.engine,
        "engine_server": facts["engine_server"],
        "on_folder_disk": facts["on_folder_disk"],
    }
