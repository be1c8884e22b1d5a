"""The figures at the end of a ticket: the least that compares with another ticket.

A copy and a stage is a line of JSON: its setting and `rate`, the lowest, the median and the highest
rate of its runs and how many there were, so that a comparison knows the noise of both tickets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import rtt, steps
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.report import Report
from bottleneck.reports.safe import safe
from probes import STAGES
from probes.records import SIDES, HostFacts

SCHEMA = "copy-bottleneck/ticket/1"
MOST_ROWS = 16
LONGEST_WORD = 80
FIGURES = 4
"""Significant ones of a rate: less than any noise."""
TELLING = (
    *("copy", "verb", "side", "cache", "pattern", "streams", "over", "dialect", "end", "engine"),
    *("security", "file_bytes"),
)
"""What makes a step another one."""
USUAL: dict[str, dict[str, Any]] = {
    "smb-copy": {"end": "folder"},
    "disk": {"pattern": "sequential", "cache": "uncached"},
}
"""What a row leaves out, since most have it."""
WITH_DIALECT = ("smb-copy", "smb-matrix", "small-files", "smb-tax")
"""Stages whose rows leave out the dialect that most have."""
STAGES_TOLD = ("tcp", "disk", "loopback")
"""Of those that are no copy, which a ticket has room for."""


def lines(known: Report, diagnosis: Diagnosis, most_rows: int = MOST_ROWS) -> list[str]:
    """The block's lines, one JSON object in all, in ASCII; a line a copy or stage."""
    pairs: list[dict[str, Any]] = [
        {"schema": SCHEMA, "version": _short(known.tool.get("version"))},
        {"started": known.started, "status": known.status},
        {
            "share": _short(known.target.get("share")),
            **_known(rtt_seconds=_rounded(_rtt_seconds(known, diagnosis), 4)),
        },
    ]
    text = [_dumped(each)[1:-1] for each in pairs]
    for side, host in zip(SIDES, (known.client, known.server), strict=True):
        text += [f'"{side}":null'] if host is None else _host(side, host)
    found = list(_rows(known, diagnosis))[: min(most_rows, MOST_ROWS)]
    dialects = [row.get("dialect") for row in found if row.get("stage") in (None, *WITH_DIALECT)]
    if dialects and None not in dialects:
        usual = max(dialects, key=dialects.count)
        text[2] += f',"dialect":{_dumped(usual)}'
        found = [{k: v for k, v in row.items() if (k, v) != ("dialect", usual)} for row in found]
    rows = [_row_text(row) for row in found]
    listed = [f"  {row}," for row in rows[:-1]] + [f"  {row}" for row in rows[-1:]]
    return ["{", *(f" {each}," for each in text), ' "rows":[', *listed, " ]}"]


def _dumped(value: Any) -> str:
    # A fence inside of a name would end the block.
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("`", "\\u0060")


def _row_text(row: dict[str, Any]) -> str:
    """A row with its rates as short as they can be written: 2.452e7."""
    *rates, runs = row["rate"]
    rest = _dumped({name: value for name, value in row.items() if name != "rate"})
    return f'{rest[:-1]},"rate":[{",".join(map(_rate_text, rates))},{runs}]}}'


def _rate_text(rate: float) -> str:
    short = re.sub(r"\.?0*e\+0*", "e", f"{rate:.{FIGURES - 1}e}")
    plain = f"{rate:.0f}"
    return plain if len(plain) <= len(short) or "e-" in short else short


def _rtt_seconds(known: Report, diagnosis: Diagnosis) -> float | None:
    """Of the headline's own session, where that told one."""
    chosen = diagnosis.chosen
    made = [e.made for e in steps.copies(known) if chosen is not None and is_of(chosen, e)]
    found = rtt.rtt(known, made[0] if made else None)
    return None if found is None else found.seconds


def _short(value: object) -> str:
    return safe(value, LONGEST_WORD) if isinstance(value, str) else ""


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")


def _known(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _host(side: str, host: HostFacts) -> list[str]:
    """Two lines: what it is called, and what it has."""
    link = host.interface
    name = _dumped({"name": _short(host.name)[:32], "system": _short(host.system)[:32]})
    has = _dumped(
        _known(
            cores=host.cores,
            memory_total_bytes=host.memory_total_bytes,
            link_bits_per_second=link.rate_bits_per_second if link else None,
            mtu_bytes=link.mtu_bytes if link else None,
        )
    )
    return [f'"{side}":{name[:-1]}', f" {has[1:]}"]


def _rows(known: Report, diagnosis: Diagnosis) -> Iterator[dict[str, Any]]:
    """The copies, the headline's first, then the stages that bound them."""
    headline = diagnosis.chosen
    copies = sorted(
        steps.copies(known), key=lambda each: headline is None or each.name != headline.copy
    )
    for copy in copies:
        if copy.made is not None and copy.made.rate.low >= 1:
            told = next((each for each in diagnosis.copies if is_of(each, copy)), None)
            cap = {} if told is None else _cap(told)
            yield {**_row(copy.made), **cap}
    copied = {copy.index for copy in steps.copies(known)}
    ceilings = sorted(
        (each for copy in diagnosis.copies for each in copy.ceilings),
        key=lambda each: each.bytes_per_second,
    )
    # First the stages that ceilings were taken from, the lowest one's before all others.
    bounding = [at for each in ceilings for at in each.steps if at < len(known.entries)]
    others = [each.index for stage in STAGES_TOLD for each in steps.measured(known, stage)]
    for at in dict.fromkeys((*bounding, *others)):
        found = steps.found_at(known, at)
        if at in copied or found is None or found.rate.low < 1:
            continue
        if found.step.stage in STAGES:
            yield _row(found)


def is_of(told: CopyDiagnosis, copy: steps.Copy) -> bool:
    """Whether a diagnosis speaks of this copy, of several that may bear one name."""
    made = copy.made
    return (
        (told.copy, told.dialect, told.initiator) == (copy.name, copy.dialect, copy.initiator)
        and made is not None
        and told.bytes_per_second == made.rate.median
    )


def _cap(told: CopyDiagnosis) -> dict[str, Any]:
    named = (told.verdict.component, told.verdict.side, told.verdict.cause)
    return {"cap": "/".join(each for each in named if each)}


def _row(found: steps.Found) -> dict[str, Any]:
    step, rate = found.step, found.rate
    setting = {
        name: safe(value, 40) if isinstance(value, str) else value
        for name in TELLING
        if isinstance(value := step.setting.get(name), (str, int)) and value != ""
    }
    server = {"initiator": "server"} if step.initiator != usual_initiator(setting) else {}
    proven = steps.flag(found.outcome.details, "cache", "proven")
    if step.stage == "disk" and proven is not None:
        setting["proven"] = proven
    figures = [rate.low, rate.median, rate.high]
    for name, usual in USUAL.get(step.stage, {}).items():
        if setting.get(name) == usual:
            del setting[name]
    stage = {} if step.stage == "smb-copy" else {"stage": step.stage}
    return {**stage, **setting, **server, "rate": [*figures, rate.runs]}


def usual_initiator(setting: dict[str, Any]) -> str:
    """Who runs a step, where its row does not say it: of a disk the side that has it."""
    return "server" if setting.get("side") == "server" else "client"
