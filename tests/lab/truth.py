"""What is true in a world: of each copy the verdicts that are right, and what lifts its cap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from plant import Caps, Plant

MB = 10**6
G1 = 1000 * MB
Triple = tuple[str, str | None, str]
"""Component, side, cause, as in the report."""
COPIES = ("pull.cached", "pull.uncached", "push.cached", "push.uncached")
PULLS, PUSHES = COPIES[:2], COPIES[2:]
NEEDS_AGENT = frozenset({"pull.uncached", "file.pull.uncached"})
"""Nobody but an agent can empty the server's page cache of the file."""

LINK: Triple = ("network", "path", "link-rate")
BUSY_LINK: Triple = ("network", "path", "contention")
LOSS: Triple = ("network", "path", "loss")
HOLE: Triple = ("network", "path", "mtu")
WRONG_PATH: Triple = ("network", "path", "wrong-path")


def words(component: str, side: str, *causes: str) -> set[Triple]:
    """The verdicts of one part of the way, a cause each."""
    return {(component, side, cause) for cause in causes}


BUSY = words("cpu", "client", "one-core", "all-cores") | words(
    "cpu", "server", "one-core", "all-cores"
)
"""With one core a host, a copy at 1 Gbit/s may also be capped by that core."""
GIGABIT = {LINK} | BUSY


@dataclass(frozen=True)
class Expected:
    """The truth of one copy."""

    copy: str
    right: frozenset[Triple]
    """Verdicts that are true, the side and the cause included."""
    touched: bool
    """Whether the plant caps this copy: here "I do not know" is a miss."""


@dataclass(frozen=True)
class LabWorld:
    """One world and its truth."""

    name: str
    planted: str
    plant: Plant
    expected: tuple[Expected, ...]
    least_budget_seconds: int = 0
    """What its copies need, which are slow or stall."""
    size_bytes: int | None = None
    """Of the files; None: what the product chooses."""
    file: str | None = None
    """A user's own file on the share, which the product is pointed at."""
    lifted: Plant | None = None
    """The same world without a cap; None: not to be lifted."""
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


def planted(
    name: str,
    what: str,
    client: Caps,
    server: Caps,
    touched: dict[str, set[Triple]],
    others: set[Triple],
    *,
    least_budget_seconds: int = 0,
    size_bytes: int | None = None,
    file: str | None = None,
    lift: dict[str, Any] | None = None,
    frees: tuple[str, ...] | None = None,
    tie: bool = False,
    **path: Any,
) -> LabWorld:
    """A world in which the plant caps the touched copies; of the others these verdicts are true.

    lift: what has to change in the plant for a cap to be gone, see lifted; frees: the copies whose
    cap that is, None: all that are touched.
    path: what else Plant knows: a round trip and what belongs to it, options of Samba.
    """
    copies = (*COPIES, *(copy for copy in touched if copy not in COPIES))
    expected = tuple(
        Expected(copy, frozenset(touched.get(copy, others)), copy in touched) for copy in copies
    )
    plant = Plant(client, server, **path)
    return LabWorld(
        name=name,
        planted=what,
        plant=plant,
        expected=expected,
        least_budget_seconds=least_budget_seconds,
        size_bytes=size_bytes,
        file=file,
        lifted=None if lift is None else lifted(plant, **lift),
        freed=() if lift is None else tuple(touched if frees is None else frees),
        tie=tie,
    )


def lifted(
    plant: Plant,
    *,
    client: dict[str, Any] | None = None,
    server: dict[str, Any] | None = None,
    **path: Any,
) -> Plant:
    """The plant with these fields of a host's caps, and of its own, set to something else."""
    return replace(
        plant,
        client=replace(plant.client, **client or {}),
        server=replace(plant.server, **server or {}),
        **path,
    )


def caps(**told: Any) -> Caps:
    """A host on a 1 Gbit/s link, if not told otherwise."""
    return Caps(**{"sends_bits_per_second": G1, **told})
