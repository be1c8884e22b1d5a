"""Worlds drawn by a seed: kinds of caps with log-uniform parameters, single, in pairs, and late.

Nobody sees them before they are run: who writes rules knows the worlds of worlds/*.txt by heart.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from truth import LabWorld, parsed

WAN = "control=cubic mtu=1500"
CREDITS = "smb: server min protocol = SMB2; smb2 max credits"


class Dice:
    """Draws parameters of one world."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def log(self, low: float, high: float, digits: int = 2) -> float:
        """Log-uniform between two bounds."""
        value = math.exp(self.random.uniform(math.log(low), math.log(high)))
        return float(f"{value:.{digits}g}")

    def count(self, low: float, high: float) -> int:
        return round(self.log(low, high))

    def side(self) -> str:
        return self.random.choice(("client", "server"))


Lines = tuple[str, str]
"""Words behind `plant` and `true` in a world."""


def _socket(dice: Dice, kernel: str, low: int, high: int) -> Lines:
    """A buffer of one host that is too small for the round trip: rmem or wmem."""
    side, kib = dice.side(), dice.count(low, high)
    receives = kernel == "rmem"
    plant = f"sends=100M {WAN} queue=250k rtt={dice.log(0.012, 0.04)}"
    first = kib << 9 if receives else 16384
    touched = "pulls" if receives == (side == "client") else "pushes"
    cause = "receive-window" if receives else "send-buffer"
    plant += f" {side}.{kernel}=4096:{first}:{kib << 10}"
    return plant, f"{touched}=tcp/{side}/{cause} else=link"


def _disk(dice: Dice) -> Lines:
    side, verb = dice.side(), dice.random.choice(("read", "write"))
    writes = "pushes" if side == "server" else "pulls"
    reads = "pull.uncached" if side == "server" else "push.uncached"
    touched = reads if verb == "read" else writes
    return (
        f"sends=1000M {side}.{verb}s={dice.log(6, 80)}M",
        f"{touched}=disk/{side}/{verb} else=gigabit",
    )


def _disk_behind_link(dice: Dice) -> Lines:
    """The link is the cap, or the disk, with a good distance between them."""
    mbits = dice.count(80, 500)
    over = dice.random.choice((0.25, 0.4, 2.5))
    true = "all=link" if over > 1 else "pull.uncached=disk/server/read else=link"
    return f"sends={mbits}M server.reads={mbits / 8 * over:.1f}M", true


def _busy(dice: Dice) -> Lines:
    mbits, side = dice.count(60, 1000), dice.side()
    touched = "pulls" if side == "server" else "pushes"
    others = round(mbits * dice.random.uniform(0.45, 0.8))
    return f"sends={mbits}M {side}.foreign={others}M", f"{touched}=busy-link else=link|cores"


def _streams(dice: Dice) -> Lines:
    side = dice.side()
    touched = "pulls" if side == "server" else "pushes"
    plant = f"sends={dice.count(100, 600)}M {side}.foreign_streams={dice.random.randint(2, 5)}"
    return plant, f"{touched}=busy-link else=link|busy-link"


def _quota(dice: Dice) -> Lines:
    side = dice.side()
    return f"sends=1000M {side}.quota={dice.log(0.04, 0.18)}", f"all=cpu/{side}/quota"


def _neighbour(dice: Dice) -> Lines:
    side = dice.side()
    share = round(dice.random.uniform(0.75, 0.9), 2)
    return f"{side}.hog={share}", f"all=cpu/{side}/contention"


KINDS: dict[str, Callable[[Dice], Lines]] = {
    "link": lambda dice: (f"sends={dice.count(8, 900)}M", "all=link"),
    "one-way": lambda dice: (
        f"client.sends=1000M server.sends={dice.count(20, 400)}M",
        "pulls=link else=gigabit",
    ),
    "far": lambda dice: (
        f"sends={dice.count(80, 500)}M {WAN} queue=2M rtt={dice.log(0.03, 0.09)}",
        "all=link|network/path/delay",
    ),
    "small-queue": lambda dice: (
        f"sends={dice.count(150, 400)}M {WAN} rtt={dice.log(0.006, 0.012)} "
        f"queue={dice.count(18, 32)}k",
        "all=network/path/loss|link",
    ),
    "disk": _disk,
    "disk-and-link": _disk_behind_link,
    "disc": lambda dice: (
        f"sends=1000M server.disc={dice.count(50, 90)}M:30M",
        "pull.uncached=disk/server/read pushes=disk/server/write else=gigabit",
    ),
    "sync": lambda dice: (
        f"sends=1000M server.disc=60M:30M server.flush={dice.log(0.006, 0.02)} "
        "smb: sync always = yes",
        "pull.uncached=disk/server/read pushes=disk/server/sync else=gigabit",
    ),
    "late-reader": lambda dice: (
        f"sends=1000M server.disc=60M:30M server.reader=yes late={dice.count(8, 14)}",
        "pushes=disk/server/write,contention pull.uncached=disk/server/read,contention "
        "else=gigabit",
    ),
    "window": lambda dice: _socket(dice, "rmem", 48, 200),
    "buffer": lambda dice: _socket(dice, "wmem", 40, 120),
    "credits": lambda dice: (
        f"sends=1000M rtt={dice.log(0.004, 0.02)} {CREDITS} = {dice.random.randint(3, 8)}",
        "all=smb/server/round-trips",
    ),
    "loss": lambda dice: (
        f"sends=100M control=reno mtu=1500 queue=1M rtt={dice.log(0.006, 0.02)} "
        f"loss={dice.log(0.005, 0.02)} size=6Mi budget=120",
        "all=network/path/loss",
    ),
    "hole": lambda dice: (
        f"wan rtt=0.005 largest={dice.count(1250, 1400)}",
        "all=network/path/mtu",
    ),
    "busy": _busy,
    "streams": _streams,
    "late-busy": lambda dice: (
        f"sends=200M server.foreign={dice.count(90, 160)}M late={dice.count(8, 14)}",
        "pulls=busy-link|link else=link",
    ),
    "falling": lambda dice: (
        f"sends=1000M falls={dice.count(60, 250)}M late={dice.count(8, 12)}",
        "all=gigabit",
    ),
    "quota": _quota,
    "neighbour": _neighbour,
    "nothing": lambda dice: (dice.random.choice(("", "sends=10000M")), "else=gigabit"),
}


LIFTED = ("reads", "writes", "foreign", "foreign_streams", "quota", "hog", "loss")
NOT_LIFTED = ("hole", "late-reader", "late-busy", "falling", "disk-and-link", "nothing")


def lift(kind: str, plant: str) -> str:
    """Returns what takes a drawn cap away and leaves the rest of its world; empty: not lifted."""
    words, _, samba = plant.partition("smb: ")
    lifted = []
    for word in words.split():
        key = word.partition("=")[0]
        side, _, cap = key.rpartition(".")
        if cap in ("rmem", "wmem"):
            key = f"{side}.sysctls"
        if cap in (*LIFTED, "rmem", "wmem"):
            lifted.append(f"{key}=none")
    if kind == "sync":
        lifted.append("frees=push.cached,push.uncached")
    if samba:
        lifted.append("smb: none")
    return "" if kind in NOT_LIFTED else " ".join(lifted)


def draw_worlds(count: int, seed: str) -> tuple[LabWorld, ...]:
    """So many worlds of a seed; each kind comes before one comes again. More begin with fewer."""
    order = random.Random(seed)
    kinds: list[str] = []
    while len(kinds) < count:
        kinds += order.sample(sorted(KINDS), len(KINDS))
    text = []
    for index, kind in enumerate(kinds[:count]):
        plant, true = KINDS[kind](Dice(f"{seed} {index}"))
        text.append(
            f"{seed}-{index:02}-{kind}: {plant or 'nothing'}\n  plant {plant}\n  true {true}\n"
        )
        text += [f"  lift {lifted}\n"] if (lifted := lift(kind, plant)) else []
    return parsed("".join(text))
