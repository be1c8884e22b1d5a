"""The cases for "who limits": one stream each, capped by what is planted and by nothing else.

No threshold of probes/host/limits.py was chosen on HELD_OUT; TUNE is for that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from planted_flow import Ends, Path

MBIT = 1_000_000 / 8
MARGIN = 2.0
"""What is planted caps a case only where the path without it carries so many times as much."""
GRANTED_RATIOS = (0.4, 6.0)
"""Least and most that a buffer lets into flight, of the size asked for: tcp(7) doubles it, and the
last write is taken whole."""
PACED_RATIOS = (0.95, 1.1)
RATE_SLACK_RATIO = 1.03
"""What waits on the path comes a moment earlier or later than the looks that count it."""


@dataclass(frozen=True)
class Case:
    """One transfer, and who limits it."""

    name: str
    truth: str
    path: Path
    ends: Ends

    def without_its_plant(self) -> tuple[Path, Ends]:
        """The same without what is planted to cap it."""
        if self.truth == "network":
            free = replace(self.path, bytes_per_second=None, queue_bytes=None, loss_ratio=0.0)
            return free, self.ends
        return self.path, Ends(self.ends.congestion_control)

    def unsuitable(self, rate: float, free_rate: float) -> str:
        """Why its label is not certain, given its rate and that without the plant; empty: it is."""
        if rate * MARGIN > free_rate:
            return f"{rate / 1e6:.1f} MB/s, and {free_rate / 1e6:.1f} without the plant"
        low, high = self._expected()
        if not low <= rate <= high:
            return f"{rate / 1e6:.1f} MB/s, planted for {low / 1e6:.1f} to {high / 1e6:.1f}"
        return ""

    def _expected(self) -> tuple[float, float]:
        """Lowest and highest rate at which it is what is planted that caps the transfer."""
        ends, seconds = self.ends, self.path.rtt_seconds
        paced = ends.source_bytes_per_second or ends.sink_bytes_per_second
        if paced:
            return PACED_RATIOS[0] * paced, PACED_RATIOS[1] * paced
        if self.truth == "network":
            return 0.0, RATE_SLACK_RATIO * (self.path.bytes_per_second or float("inf"))
        buffer = ends.receive_buffer_bytes or ends.send_buffer_bytes
        if buffer and seconds:
            return GRANTED_RATIOS[0] * buffer / seconds, GRANTED_RATIOS[1] * buffer / seconds
        return 0.0, float("inf")


def _name(truth: str, path: Path, what: str, control: str) -> str:
    link = f"{path.bytes_per_second / MBIT:.0f} Mbit/s" if path.bytes_per_second else ""
    words = truth, f"{path.rtt_seconds * 1000:g} ms", link, what, control
    return " ".join(word for word in words if word)


def _windows(truth: str, rows: tuple[tuple[float, int, float | None, str], ...]) -> list[Case]:
    """RTT in ms, buffer in KiB, the link's Mbit/s, congestion control."""
    cases = []
    for rtt, kibibytes, megabits, control in rows:
        size = kibibytes << 10
        window = truth == "receive-window"
        ends = Ends(
            control,
            receive_buffer_bytes=size if window else None,
            send_buffer_bytes=None if window else size,
        )
        path = _path(rtt, megabits)
        cases.append(Case(_name(truth, path, f"{kibibytes} KiB", control), truth, path, ends))
    return cases


def _paced(truth: str, rows: tuple[tuple[float, float, float | None, str], ...]) -> list[Case]:
    """RTT in ms, MB/s of the slow end, the link's Mbit/s, congestion control."""
    cases = []
    for rtt, megabytes, megabits, control in rows:
        rate = megabytes * 1e6
        sends = truth == "sender"
        ends = Ends(
            control,
            source_bytes_per_second=rate if sends else None,
            sink_bytes_per_second=None if sends else rate,
        )
        path = _path(rtt, megabits)
        cases.append(Case(_name(truth, path, f"{megabytes:g} MB/s", control), truth, path, ends))
    return cases


def _capped(rows: tuple[tuple[float, float, str], ...]) -> list[Case]:
    """RTT in ms, the link's Mbit/s, congestion control."""
    cases = []
    for rtt, megabits, control in rows:
        path = _path(rtt, megabits)
        cases.append(Case(_name("network", path, "", control), "network", path, Ends(control)))
    return cases


def _queued(rows: tuple[tuple[float, float, str, int, str], ...]) -> list[Case]:
    """RTT in ms, the link's Mbit/s, whose buffer, its KiB, congestion control.

    The buffer is larger than the path, whose queue takes the rest: it is not what limits.
    """
    cases = []
    for rtt, megabits, whose, kibibytes, control in rows:
        path = replace(_path(rtt, megabits), queue_bytes=None)
        size, receives = kibibytes << 10, whose == "receiver"
        ends = Ends(
            control,
            receive_buffer_bytes=size if receives else None,
            send_buffer_bytes=None if receives else size,
        )
        what = f"{whose} {kibibytes} KiB"
        cases.append(Case(_name("network", path, what, control), "network", path, ends))
    return cases


def _lossy(rows: tuple[tuple[float, float, str], ...]) -> list[Case]:
    """RTT in ms, loss in per cent, congestion control."""
    cases = []
    for rtt, per_cent, control in rows:
        path = replace(_path(rtt, None), loss_ratio=per_cent / 100)
        name = _name("network", path, f"{per_cent:g} % lost", control)
        cases.append(Case(name, "network", path, Ends(control)))
    return cases


def _path(rtt_milliseconds: float, megabits: float | None) -> Path:
    seconds = rtt_milliseconds / 1000
    if megabits is None:
        return Path(seconds, mtu_bytes=9000 if seconds < 0.004 else 1500)
    rate = megabits * MBIT
    # A queue as routers have it: about a round trip, or 10 ms where that is less.
    return Path(seconds, rate, queue_bytes=max(48_000, round(rate * max(seconds, 0.01))))


TUNE = (
    *_windows(
        "receive-window",
        (
            (2, 24, None, "cubic"),
            (2, 48, None, "bbr"),
            (8, 32, None, "reno"),
            (8, 96, None, "cubic"),
            (20, 64, 100, "cubic"),
            (20, 192, None, "bbr"),
            (45, 96, None, "cubic"),
            (45, 256, None, "cubic"),
        ),
    ),
    *_windows(
        "send-buffer",
        (
            (0, 6, None, "cubic"),
            (2, 24, None, "cubic"),
            (2, 32, None, "bbr"),
            (8, 32, None, "reno"),
            (8, 96, None, "cubic"),
            (20, 48, 100, "cubic"),
            (20, 192, None, "bbr"),
            (20, 48, 200, "cubic"),
            (45, 96, None, "cubic"),
            (45, 96, 150, "reno"),
            (45, 128, 150, "cubic"),
            (45, 256, None, "cubic"),
        ),
    ),
    *_paced(
        "sender",
        (
            (8, 8, 150, "cubic"),
            (8, 8, 150, "reno"),
            (20, 9, 200, "cubic"),
            (20, 4, 80, "cubic"),
            (45, 6, 150, "cubic"),
            (0, 5, None, "cubic"),
            (0, 100, None, "bbr"),
            (2, 2, None, "cubic"),
            (2, 30, None, "cubic"),
            (8, 5, 100, "cubic"),
            (8, 15, None, "bbr"),
            (20, 5, None, "reno"),
            (20, 25, None, "cubic"),
            (45, 2, None, "bbr"),
            (45, 15, None, "cubic"),
        ),
    ),
    *_paced(
        "receiver",
        (
            (0, 5, None, "cubic"),
            (0, 100, None, "bbr"),
            (2, 2, None, "cubic"),
            (2, 30, None, "cubic"),
            (8, 5, 100, "cubic"),
            (8, 15, None, "bbr"),
            (20, 5, None, "reno"),
            (20, 15, None, "cubic"),
            (45, 2, None, "bbr"),
            (45, 8, None, "cubic"),
        ),
    ),
    *_capped(
        (
            (2, 20, "cubic"),
            (2, 150, "bbr"),
            (8, 50, "reno"),
            (8, 150, "cubic"),
            (20, 20, "cubic"),
            (20, 80, "bbr"),
            (45, 20, "cubic"),
            (45, 80, "cubic"),
        )
    ),
    *_queued(
        (
            (2, 20, "receiver", 128, "cubic"),
            (2, 100, "sender", 256, "cubic"),
            (8, 50, "receiver", 512, "reno"),
            (8, 50, "sender", 512, "cubic"),
            (20, 80, "receiver", 1024, "cubic"),
            (20, 80, "sender", 768, "reno"),
        )
    ),
    *_lossy(
        (
            (2, 1.5, "reno"),
            (8, 0.3, "reno"),
            (8, 0.8, "cubic"),
            (20, 0.3, "cubic"),
            (20, 1.5, "reno"),
            (45, 0.3, "cubic"),
            (45, 0.8, "reno"),
            (45, 1.5, "cubic"),
        )
    ),
)

HELD_OUT = (
    *_windows(
        "receive-window",
        (
            (1, 24, None, "cubic"),
            (1, 28, None, "bbr"),
            (4, 20, None, "cubic"),
            (4, 56, None, "reno"),
            (12, 40, None, "bbr"),
            (12, 112, None, "cubic"),
            (12, 28, 100, "cubic"),
            (30, 80, None, "reno"),
            (30, 144, 200, "cubic"),
            (30, 224, None, "cubic"),
            (60, 112, None, "bbr"),
            (60, 240, None, "cubic"),
        ),
    ),
    *_windows(
        "send-buffer",
        (
            (0, 5, None, "cubic"),
            (0, 10, None, "bbr"),
            (1, 12, None, "cubic"),
            (4, 20, None, "cubic"),
            (4, 56, None, "reno"),
            (12, 24, None, "bbr"),
            (12, 112, None, "cubic"),
            (12, 20, 100, "cubic"),
            (30, 80, None, "reno"),
            (30, 96, 200, "cubic"),
            (60, 112, None, "bbr"),
            (60, 224, None, "cubic"),
        ),
    ),
    *_paced(
        "sender",
        (
            (0, 4, None, "cubic"),
            (0, 50, None, "bbr"),
            (0, 150, None, "cubic"),
            (1, 4, None, "cubic"),
            (1, 28, None, "cubic"),
            (4, 4, 100, "reno"),
            (4, 18, None, "cubic"),
            (12, 4, None, "bbr"),
            (12, 9, 200, "cubic"),
            (12, 7, 150, "reno"),
            (30, 4, None, "cubic"),
            (30, 18, None, "cubic"),
            (60, 4, None, "bbr"),
            (60, 12, None, "cubic"),
        ),
    ),
    *_paced(
        "receiver",
        (
            (0, 4, None, "cubic"),
            (0, 50, None, "bbr"),
            (0, 150, None, "cubic"),
            (1, 4, None, "cubic"),
            (1, 28, None, "cubic"),
            (4, 4, 100, "reno"),
            (4, 18, None, "cubic"),
            (12, 4, None, "bbr"),
            (12, 9, 200, "cubic"),
            (30, 4, None, "cubic"),
            (30, 12, None, "cubic"),
            (60, 4, None, "bbr"),
        ),
    ),
    *_capped(
        (
            (1, 12, "cubic"),
            (1, 120, "reno"),
            (1, 180, "bbr"),
            (4, 12, "bbr"),
            (4, 120, "cubic"),
            (12, 40, "cubic"),
            (12, 180, "reno"),
            (30, 12, "cubic"),
            (30, 90, "cubic"),
            (60, 40, "bbr"),
            (60, 90, "cubic"),
        )
    ),
    *_queued(
        (
            (1, 30, "sender", 128, "cubic"),
            (4, 40, "receiver", 384, "cubic"),
            (4, 40, "sender", 384, "reno"),
            (12, 60, "receiver", 768, "reno"),
            (12, 60, "sender", 512, "cubic"),
            (30, 30, "receiver", 640, "cubic"),
        )
    ),
    *_lossy(
        (
            (1, 1.8, "reno"),
            (4, 0.6, "reno"),
            (4, 1.8, "cubic"),
            (12, 0.2, "cubic"),
            (12, 1.2, "reno"),
            (30, 0.2, "reno"),
            (30, 1.2, "cubic"),
            (60, 0.1, "cubic"),
            (60, 0.6, "reno"),
            (60, 1.8, "cubic"),
        )
    ),
)
_NAMED = {case.name: case for case in TUNE}
QUICK = tuple(
    _NAMED[name]
    for name in (
        "receive-window 20 ms 100 Mbit/s 64 KiB cubic",
        "send-buffer 8 ms 32 KiB reno",
        "sender 0 ms 5 MB/s cubic",
        "sender 20 ms 5 MB/s reno",
        "receiver 0 ms 5 MB/s cubic",
        "receiver 20 ms 5 MB/s reno",
        "network 8 ms 50 Mbit/s reno",
        "network 8 ms 0.8 % lost cubic",
    )
)
