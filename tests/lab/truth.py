"""A world: what is planted, and of each copy the verdicts that are true; read from worlds/*.txt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plant import Caps, Plant, Spinning
from platter import Disc

MB = 10**6
Triple = tuple[str, str | None, str]
"""Component, side, cause, as in the report."""
COPIES = ("pull.cached", "pull.uncached", "push.cached", "push.uncached")
PULLS, PUSHES = COPIES[:2], COPIES[2:]
NEEDS_AGENT = frozenset({"pull.uncached", "file.pull.uncached"})
"""Nobody but an agent can empty the server's page cache of the file."""

LINK: Triple = ("network", "path", "link-rate")
BUSY_LINK: Triple = ("network", "path", "contention")
WRONG_PATH: Triple = ("network", "path", "wrong-path")
CORES = frozenset(
    ("cpu", side, cause) for side in ("client", "server") for cause in ("one-core", "all-cores")
)
"""With one core a host, a copy at 1 Gbit/s may also be capped by that core."""
NAMED = {"link": {LINK}, "busy-link": {BUSY_LINK}, "cores": CORES, "gigabit": CORES | {LINK}}
"""Short names of verdicts."""
GROUPS_OF_COPIES = {"all": COPIES, "pulls": PULLS, "pushes": PUSHES}

CAPS = {
    "sends": "sends_bits_per_second",
    "foreign": "foreign_bits_per_second",
    "foreign_streams": "foreign_streams",
    "falls": "falls_bits_per_second",
    "reads": "disk_read_bytes_per_second",
    "writes": "disk_write_bytes_per_second",
    "quota": "quota_ratio",
    "hog": "hog_share_ratio",
    "reader": "foreign_reader",
    "control": "congestion_control",
    "segments": "congestion_window_segments",
    "memory": "memory_bytes",
    "dirty": "dirty_bytes",
    "largest": "largest_bytes",
}
KERNEL = {"rmem": "net.ipv4.tcp_rmem", "wmem": "net.ipv4.tcp_wmem"}
KERNEL |= {"probing": "net.ipv4.tcp_mtu_probing", "scaling": "net.ipv4.tcp_window_scaling"}
PATH = {
    "rtt": "round_trip_seconds",
    "mtu": "mtu_bytes",
    "loss": "loss_ratio",
    "queue": "queue_bytes",
    "slow_crypto": "slow_crypto",
    "beside": "beside",
    "stop": "stop_seconds",
    "late": "late_seconds",
}
"""Words of a planting; those of a host for both, or behind "client." or "server."."""
WORLD = {"budget": "least_budget_seconds", "size": "size_bytes", "file": "file", "tie": "tie"}
WAN = "sends=100M control=cubic mtu=1500 queue=250k"
"""Words that `wan` stands for: ordinary frames, a queue of 20 ms at 100 Mbit/s."""
_UNITS = {"k": 10**3, "M": 10**6, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
_NAMES: dict[str, Any] = {"none": None, "yes": True, "no": False}


@dataclass(frozen=True)
class ExpectedCap:
    copy: str
    right: frozenset[Triple]
    """Verdicts that are true, the side and the cause included."""
    touched: bool
    """Whether the plant caps this copy: here "I do not know" is a miss."""


@dataclass(frozen=True)
class LabWorld:
    name: str
    planted: str
    plant: Plant
    expected: tuple[ExpectedCap, ...]
    least_budget_seconds: int = 0
    """Budget that its copies need, which are slow or stall."""
    size_bytes: int | None = None
    """Size of the files; None: what the product chooses."""
    file: str | None = None
    """A user's own file on the share, which the product is pointed at."""
    lifted: Plant | None = None
    """World without a cap; None: not to be lifted."""
    freed: tuple[str, ...] = ()
    """The copies whose cap that was."""
    tie: bool = False
    """Whether two caps lie so close together that either is a right answer."""

    @property
    def clear(self) -> bool:
        """Whether there is one cap to be found, so that a run should end early."""
        return not self.tie and any(each.touched for each in self.expected)

    def slowest_bytes_per_second(self) -> float | None:
        """Lowest planted rate; None: nothing is planted that has one."""
        rates: list[float | None] = [
            rate
            for caps in (self.plant.client, self.plant.server)
            for rate in (caps.disk_read_bytes_per_second, caps.disk_write_bytes_per_second)
        ]
        rates += [self.plant.payload_bytes_per_second(verb) for verb in ("push", "pull")]
        spinning = (self.plant.client.spinning, self.plant.server.spinning)
        rates += [each.disc.bytes_per_second(each.room[1]) for each in spinning if each]
        return min((rate for rate in rates if rate is not None), default=None)


def worlds(file: Path) -> tuple[LabWorld, ...]:
    """The worlds of a file: a name and what is planted, then `plant`, `true` and `lift` lines.

    true: the copies that the plant caps, each with its verdicts, and `else` of all others. lift:
    what has to change in the plant for a cap to be gone; frees: which copies had it, not all that
    are touched. A line that is indented further goes on with the one above it.
    """
    return parsed(file.read_text())


def parsed(text: str) -> tuple[LabWorld, ...]:
    parts = []
    text = text.replace("\n    ", " ")
    for line in filter(None, text.splitlines()):
        if not line.startswith(" "):
            parts.append({"name": line})
        else:
            key, _, rest = line.strip().partition(" ")
            parts[-1][key] = rest
    return tuple(_world(each) for each in parts)


def _world(part: dict[str, str]) -> LabWorld:
    name, _, what = part["name"].partition(": ")
    plant, settings = planting(part["plant"], Plant())
    truth = dict(word.split("=") for word in part["true"].split())
    others = verdicts(truth.pop("else", ""))
    touched = {
        copy: verdicts(right)
        for copies, right in truth.items()
        for copy in GROUPS_OF_COPIES.get(copies, (copies,))
    }
    copies = (*COPIES, *(copy for copy in touched if copy not in COPIES))
    expected = (ExpectedCap(copy, touched.get(copy, others), copy in touched) for copy in copies)
    world = LabWorld(name, what, plant, tuple(expected), **settings)
    if "lift" not in part:
        return world
    lifted, settings = planting(part["lift"], plant)
    return replace(
        world, lifted=lifted, freed=tuple(settings.get("frees", ",".join(touched)).split(","))
    )


def verdicts(text: str) -> frozenset[Triple]:
    """Returns the verdicts of COMPONENT/SIDE/CAUSE,CAUSE|...; an empty side is none."""
    right: set[Triple] = set()
    for part in filter(None, text.split("|")):
        component, _, rest = part.partition("/")
        side, _, causes = rest.partition("/")
        right |= NAMED.get(part) or {(component, side or None, each) for each in causes.split(",")}
    return frozenset(right)


def planting(text: str, plant: Plant) -> tuple[Plant, dict[str, Any]]:
    """The plant with more in it, or less, and what is told of the world. Errors: KeyError."""
    words, has_samba, samba = text.partition("smb: ")
    if has_samba:
        options = () if samba == "none" else tuple(samba.split("; "))
        plant = replace(plant, samba_options=options)
    settings: dict[str, Any] = {}
    for word in words.replace("wan", WAN).split():
        key, _, value = word.partition("=")
        side, _, cap = key.rpartition(".")
        if key in PATH:
            plant = replace(plant, **{PATH[key]: number(value)})
        elif key in WORLD or key == "frees":
            settings[WORLD.get(key, key)] = number(value)
        else:
            for host in (side,) if side else ("client", "server"):
                changed: dict[str, Any] = {host: _add_cap(getattr(plant, host), cap, value)}
                plant = replace(plant, **changed)
    return plant, settings


def _add_cap(caps: Caps, key: str, value: str) -> Caps:
    """A host with one cap more, or with another."""
    spinning = caps.spinning
    if key in KERNEL:
        return replace(caps, sysctls=(*caps.sysctls, (KERNEL[key], value.replace(":", " "))))
    if key == "sysctls":
        return replace(caps, sysctls=())
    if key == "disc":
        return replace(caps, spinning=Spinning(Disc(*map(number, value.split(":")))))
    if key in CAPS:
        return replace(caps, **{CAPS[key]: number(value)})
    if spinning is None:
        raise KeyError(key)
    if key in ("seek", "flush"):
        disc = replace(spinning.disc, **{f"{key}_seconds": number(value)})
        return replace(caps, spinning=replace(spinning, disc=disc))
    figures: Any = tuple(map(float, value.split(":"))) if key == "room" else number(value)
    return replace(caps, spinning=replace(spinning, **{key: figures}))


def number(text: str) -> Any:
    """8M, 160Mi, 0.02; none, yes, no; any other word is one."""
    digits = "".join(each for each in text if each.isdigit() or each == ".")
    unit = text[len(digits) :]
    if not digits or unit not in ("", *_UNITS):
        return _NAMES.get(text, text)
    if unit:
        return round(float(digits) * _UNITS[unit])
    return float(digits) if "." in digits else int(digits)


GROUPS = {file.stem: worlds(file) for file in sorted(Path(__file__).parent.glob("worlds/*.txt"))}
"""By what is planted; a group is a file, and new worlds go into one of them."""
WORLDS = {each.name: each for group in GROUPS.values() for each in group}
