"""How an interface's own queue is ordered, and to which rate it is shaped on its way out.

Source: include/uapi/linux/pkt_sched.h; tc-tbf(8), tc-htb(8), tc-netem(8), tc-cake(8).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Optional

from probes.host import rtnetlink

RTM_NEWQDISC, RTM_GETQDISC = 36, 38
RTM_NEWTCLASS, RTM_GETTCLASS = 40, 42
BODY = struct.Struct("=BxxxiIII")
"""tcmsg: family, interface, handle, parent, info."""
TCA_KIND, TCA_OPTIONS = 1, 2
ROOT = 0xFFFFFFFF
RATE_AT = 8
"""Of the rate in tc_ratespec, bytes per second."""
CEIL_AT = 12 + RATE_AT
"""Of the ceiling's in tc_htb_opt, after the rate's own tc_ratespec."""
NETEM_FIXED_BYTES = 24
"""tc_netem_qopt, in front of netem's attributes."""
HTB_GLOBAL, HTB_DEFAULT_AT = 2, 8
"""tc_htb_glob: its attribute, and where the default class stands in it."""
NO_RATE_32 = 0xFFFFFFFF
"""A rate above it stands in the 64-bit attribute."""


@dataclass(frozen=True)
class Queue:
    """One qdisc or class of an interface."""

    interface: int
    handle: int
    parent: int
    kind: str
    rate_bytes_per_second: Optional[int]
    """What it lets out; None: it does not shape."""
    default: bool = False
    """Of an htb: whether what no filter classifies has a class too, and is not let past."""


def read_shaping(index: int) -> tuple[str | None, int | None]:
    """An interface's root qdisc and the rate that it shapes to, bytes per second.

    None: none told; it does not shape, or not all of what leaves. Errors: OSError.
    """
    body = BODY.pack(0, index, 0, 0, 0)
    queues = parse_queues(rtnetlink.dump(RTM_GETQDISC, body), index)
    classes = parse_queues(rtnetlink.dump(RTM_GETTCLASS, body), index)
    return shaping(queues, classes)


def shaping(queues: list[Queue], classes: list[Queue]) -> tuple[str | None, int | None]:
    """The root qdisc's kind, and the lowest rate that everything on its way out passes."""
    root = next((each for each in queues if each.parent == ROOT), None)
    if root is None:
        return None, None
    rates = []
    at: Queue | None = root
    seen: set[int] = set()
    while at is not None and at.handle not in seen:
        seen.add(at.handle)
        if at.kind == "htb":
            rates.append(_htb_rate(at, classes))
            break
        if at.kind not in _SHAPERS:
            break
        rates.append(at.rate_bytes_per_second)
        major = at.handle & 0xFFFF0000
        at = next((each for each in queues if each.parent & 0xFFFF0000 == major), None)
    return root.kind, min((each for each in rates if each), default=None)


def parse_queues(answer: bytes, interface: int) -> list[Queue]:
    """An interface's qdiscs, or its classes, in what a dump of them answered."""
    found = []
    for kind, body in rtnetlink.messages(answer):
        if kind not in (RTM_NEWQDISC, RTM_NEWTCLASS) or len(body) < BODY.size:
            continue
        _, index, handle, parent, _ = BODY.unpack_from(body)
        told = rtnetlink.attributes(body[BODY.size :])
        name = rtnetlink.text(told, TCA_KIND)
        if index == interface and name is not None:
            options = told.get(TCA_OPTIONS, b"")
            rate = _rate(name, options)
            found.append(Queue(index, handle, parent, name, rate, _has_default(name, options)))
    return found


_SHAPERS = {
    # parameters with the 32-bit rate, where it stands in them, the 64-bit rate
    "tbf": (1, RATE_AT, 4),
    "htb": (1, CEIL_AT, 7),
    "netem": (6, 0, 8),
    "cake": (None, 0, 2),
}
"""By kind: attribute and offset of the 32-bit rate, attribute of the 64-bit one."""


def _rate(kind: str, options: bytes) -> int | None:
    if kind not in _SHAPERS:
        return None
    narrow, offset, wide = _SHAPERS[kind]
    told = rtnetlink.attributes(options[NETEM_FIXED_BYTES:] if kind == "netem" else options)
    rate = rtnetlink.number(told, wide, "=Q")
    if rate is None and narrow is not None:
        raw = told.get(narrow, b"")
        if len(raw) >= offset + 4:
            rate = int(struct.unpack_from("=I", raw, offset)[0])
    return None if rate in (None, 0, NO_RATE_32) else rate


def _has_default(kind: str, options: bytes) -> bool:
    raw = rtnetlink.attributes(options).get(HTB_GLOBAL, b"") if kind == "htb" else b""
    return len(raw) >= HTB_DEFAULT_AT + 4 and any(raw[HTB_DEFAULT_AT : HTB_DEFAULT_AT + 4])


def _htb_rate(root: Queue, classes: list[Queue]) -> int | None:
    """What the top classes let out in sum; None: unclassified packets pass unshaped, or none."""
    top = [each for each in classes if each.parent in (ROOT, root.handle)]
    rates = [each.rate_bytes_per_second for each in top]
    if not rates or None in rates or not root.default:
        return None
    return sum(each for each in rates if each is not None)
