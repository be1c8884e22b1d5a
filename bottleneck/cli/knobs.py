"""The knobs of a stage: options of `probe` that set a field of the stage's Setting.

A row of KNOBS is all that a knob takes. A stage has those whose field its Setting has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from bottleneck.text import units
from probes import STAGES
from probes.core.field_types import MANY, keys
from probes.core.stage import USUAL_BUDGET_SECONDS, Refused, module_of

if TYPE_CHECKING:
    from bottleneck.cli.command_line import CommandLine

MOST_TESTS = 8
"""Tests that one stage makes, at most."""
USUAL_TEST_SECONDS = 4.0
MOST_DEPTH = 1024
DIRECTIONS, ACCESSES = ("push", "pull"), ("read", "write")
PANEL = "Settings of the stage"


@dataclass(frozen=True)
class Knob:
    """An option of `probe` that sets a field of a stage's Setting."""

    name: str
    metavar: str
    """Empty: it is a flag, whose word is YES."""
    help: str
    read: Callable[[str], Any]
    """Reads the field's value from the word; for a field that is a list, from each of its words.

    Errors: ValueError, one plain line."""
    keys: tuple[str, ...]
    """Fields of a Setting that it sets: the first that a stage's has."""
    stages: tuple[str, ...] = STAGES
    """Stages that may have it."""

    def key(self, stage: str) -> str | None:
        """Returns the field of a stage's Setting; None: it has none of them."""
        if stage not in self.stages:
            return None
        names = keys(module_of(stage).Setting)
        return next((each for each in self.keys if each in names), None)


YES = "yes"


def _count(word: str) -> int:
    if not (word.isascii() and word.isdigit() and int(word)):
        raise ValueError(f"{word[:40]!r} is not a whole number of 1 or more")
    return int(word)


def _depth(word: str) -> int:
    if (depth := _count(word)) > MOST_DEPTH:
        raise ValueError(f"{depth} is more than {MOST_DEPTH}")
    return depth


def _block_bytes(word: str) -> int:
    from probes.programs import fio_report

    return fio_report.check_block(units.parse_size(word))


def _one_of(words: tuple[str, ...], word: str) -> str:
    if word not in words:
        raise ValueError(f"{word[:40]!r} is none of {', '.join(words)}")
    return word


KNOBS = (
    Knob("streams", "N", "TCP connections at once, as iperf3 -P.", _count, ("streams",)),
    Knob(
        "seconds",
        "SECONDS",
        "Duration of each test; its first seconds (2 or fewer) are not counted [default: "
        "automatic].",
        lambda word: units.parse_seconds(word if word[-1:].isalpha() else f"{word}s"),
        ("seconds",),
    ),
    Knob(
        "rate",
        "RATE",
        "Send at RATE at most, all connections together (iperf3 -b: each): 100MB/s, 50Mbit/s "
        "[default: TCP without limit; UDP at 80% of TCP].",
        units.parse_rate,
        ("bytes_per_second",),
    ),
    Knob(
        "both-ways",
        "",
        "After a push and a pull, also both at the same time.",
        lambda word: word == YES,
        ("both_ways",),
    ),
    Knob(
        "window",
        "BYTES",
        "Socket buffers of both ends, as 64KiB [default: the system's].",
        units.parse_size,
        ("window_bytes", "windows"),
    ),
    Knob(
        "buffer",
        "BYTES",
        "Bytes of each send and receive call, or of a datagram.",
        units.parse_size,
        ("buffer_bytes", "payload_bytes"),
    ),
    Knob(
        "request-size",
        "BYTES",
        "Bytes of each SMB READ or WRITE, as 1MiB [default: automatic].",
        units.parse_size,
        ("request_bytes",),
    ),
    Knob("depth", "N", "Requests in flight at once [default: automatic].", _depth, ("depth",)),
    Knob(
        "block-size",
        "BYTES",
        "Bytes of each request to the disk, as fio --bs; for example 4KiB.",
        _block_bytes,
        ("block_bytes",),
    ),
    Knob(
        "pattern",
        "sequential|random",
        "Order of the requests: fio's read and write, or randread and randwrite [default: "
        "sequential].",
        partial(_one_of, ("sequential", "random")),
        ("pattern",),
    ),
    Knob(
        "direction",
        "push|pull",
        "Only from this host (push), or only to it (pull, as iperf3 -R) [default: both in turn].",
        partial(_one_of, DIRECTIONS),
        ("verb",),
        ("tcp", "udp"),
    ),
    Knob(
        "access",
        "read|write",
        "Only read or only write the test file [default: both in turn].",
        partial(_one_of, ACCESSES),
        ("verb",),
        ("disk",),
    ),
)


OF_COPIES = tuple(each for each in KNOBS if each.name in ("request-size", "depth"))
"""Knobs of `diagnose`: they hold for its copies over SMB alone."""


def stage_knobs(stage: str) -> tuple[Knob, ...]:
    return tuple(each for each in KNOBS if each.key(stage))


def stages_with(key: str) -> tuple[str, ...]:
    """Returns the stages whose Setting has the field with a default."""

    def has(stage: str) -> bool:
        members = fields(module_of(stage).Setting)
        return any(each.name == key and each.default is not MISSING for each in members)

    return tuple(filter(has, STAGES))


LOGIN = frozenset(("user", "domain", "auth_file", "allow_guest", "server_folder"))
OF_STAGES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("file",), ("disk", "smb-copy")),
    **dict.fromkeys(("device", "zones"), ("disk",)),
    **dict.fromkeys(("tree", "copy", "client_share"), ("smb-copy",)),
    "tcp_peer": ("tcp",),
    "native_command": ("native-copy",),
}
"""Parameters of `probe` that only these stages use."""


def stage_of(line: CommandLine) -> str | None:
    """Returns the stage of `probe STAGE`; None: another command, or no such stage."""
    stage = next((each.value for each in line.words if each.option is None and each.value), None)
    return stage if line.command == "probe" and stage in STAGES else None


def useless_parameters(line: CommandLine) -> set[str]:
    """Returns parameters that the help of `probe STAGE` leaves out: its stage has no use for them.

    They are those that `probe` refuses, and those that its stage does not read.
    """
    stage = stage_of(line)
    if stage is None:
        return set()
    description = module_of(stage).STAGE
    left_out = {each.name.replace("-", "_") for each in KNOBS if not each.key(stage)}
    left_out |= {name for name, stages in OF_STAGES.items() if stage not in stages}
    if "share" not in description.needs:
        left_out |= {"dialects"} | (set() if stage == "disk" else LOGIN)
    if stage not in stages_with("security"):
        left_out |= {"signing", "encryption"}
    return left_out if description.writes else left_out | {"folder", "size", "yes"}


def budget_seconds(settings: Mapping[str, Any], runs: int = 0) -> float:
    """Returns the time limit of as many runs whose tests take what was chosen."""
    usual = USUAL_TEST_SECONDS if runs else 0.0
    each = MOST_TESTS * float(settings.get("seconds", usual))
    return USUAL_BUDGET_SECONDS + (runs + 1) * each


def settings(stage: str, words: Mapping[str, str]) -> dict[str, Any]:
    """Returns the values that the given knobs set, by the Setting's fields.

    Raises Refused, "usage", for a knob that the stage has not, and for a value that is none.
    """
    setting = module_of(stage).Setting
    values: dict[str, Any] = {}
    for knob in KNOBS:
        word, key = words.get(knob.name), knob.key(stage)
        if word is None:
            continue
        if key is None:
            names = ", ".join(f"--{each.name}" for each in stage_knobs(stage)) or "no such options"
            raise Refused("usage", f"probe {stage}: --{knob.name} not allowed here; it has {names}")
        try:
            is_list = keys(setting)[key].endswith(MANY)
            values[key] = tuple(map(knob.read, word.split(","))) if is_list else knob.read(word)
        except ValueError as error:
            raise Refused("usage", f"--{knob.name}: {error}") from None
    if all(each.default is not MISSING for each in fields(setting)):
        try:
            setting(**values)
        except ValueError as error:
            raise Refused("usage", f"probe {stage}: {error}") from None
    return values
