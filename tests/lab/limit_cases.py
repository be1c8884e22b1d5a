"""The cases for "who limits": one stream each, capped by what is planted and by nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planted_flow import Ends, Path

MBIT = 1_000_000 / 8
MARGIN = 2.0
"""Ratio: a plant caps a case only where the path without it carries so many times as much."""
GRANTED_RATIOS = (0.4, 6.0)
"""Least and most that a buffer lets into flight, of the size asked for: tcp(7) doubles it, and the
last write is taken whole."""
PACED_RATIOS = (0.95, 1.1)
RATE_SLACK_RATIO = 1.03
"""Slack of a rate: what waits on the path comes earlier or later than the looks at it."""


@dataclass(frozen=True)
class Case:
    name: str
    truth: str
    path: Path
    ends: Ends

    def without_its_plant(self) -> tuple[Path, Ends]:
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


def _case(truth: str, text: str) -> Case:
    """20ms,100Mbit,64KiB,cubic: the round trip, and what else there is of link, buffer, pace, loss.

    The network is the cap of a link, which may have more of somebody's buffer behind it in a queue
    without end (640KiB@receiver), or by its loss.
    """
    *parts, control = text.split(",")
    figures = {part.lstrip("0123456789."): part for part in parts}
    number = {unit: float(part.removesuffix(unit)) for unit, part in figures.items()}
    whose = next((unit for unit in number if unit.startswith("KiB")), "")
    size = round(number[whose] * 1024) if whose else None
    rate = number["MB/s"] * 1e6 if "MB/s" in number else None
    receives = truth in ("receive-window", "receiver") or whose.endswith("receiver")
    ends = Ends(
        control,
        receive_buffer_bytes=size if receives else None,
        send_buffer_bytes=None if receives else size,
        source_bytes_per_second=None if receives else rate,
        sink_bytes_per_second=rate if receives else None,
    )
    path = _path(number["ms"], number.get("Mbit"))
    path = replace(path, loss_ratio=number.get("%", 0.0) / 100)
    what = f"{number['%']:g} % lost" if "%" in number else ""
    what = f"{number['MB/s']:g} MB/s" if rate else what
    if size:
        what = f"{whose[4:]} {size >> 10} KiB".strip()
        if truth == "network":
            path = replace(path, queue_bytes=None)
    link = f"{number['Mbit']:.0f} Mbit/s" if "Mbit" in number else ""
    words = truth, f"{number['ms']:g} ms", link, what, control
    return Case(" ".join(filter(None, words)), truth, path, ends)


def _path(rtt_milliseconds: float, megabits: float | None) -> Path:
    seconds = rtt_milliseconds / 1000
    if megabits is None:
        return Path(seconds, mtu_bytes=9000 if seconds < 0.004 else 1500)
    rate = megabits * MBIT
    # A queue as routers have it: about a round trip, or 10 ms where that is less.
    return Path(seconds, rate, queue_bytes=max(48_000, round(rate * max(seconds, 0.01))))


def _cases(text: str) -> tuple[Case, ...]:
    rows, truth = [], ""
    for word in text.split():
        if word.endswith(":"):
            truth = word[:-1]
        else:
            rows.append(_case(truth, word))
    return tuple(rows)


CASES = _cases(
    """
    receive-window: 1ms,24KiB,cubic 1ms,28KiB,bbr 4ms,20KiB,cubic 4ms,56KiB,reno 12ms,40KiB,bbr
        12ms,112KiB,cubic 12ms,100Mbit,28KiB,cubic 30ms,80KiB,reno 30ms,200Mbit,144KiB,cubic
        30ms,224KiB,cubic 60ms,112KiB,bbr 60ms,240KiB,cubic
    send-buffer: 0ms,5KiB,cubic 0ms,10KiB,bbr 1ms,12KiB,cubic 4ms,20KiB,cubic 4ms,56KiB,reno
        12ms,24KiB,bbr 12ms,112KiB,cubic 12ms,100Mbit,20KiB,cubic 30ms,80KiB,reno
        30ms,200Mbit,96KiB,cubic 60ms,112KiB,bbr 60ms,224KiB,cubic
    sender: 0ms,4MB/s,cubic 0ms,50MB/s,bbr 0ms,150MB/s,cubic 1ms,4MB/s,cubic 1ms,28MB/s,cubic
        4ms,100Mbit,4MB/s,reno 4ms,18MB/s,cubic 12ms,4MB/s,bbr 12ms,200Mbit,9MB/s,cubic
        12ms,150Mbit,7MB/s,reno 30ms,4MB/s,cubic 30ms,18MB/s,cubic 60ms,4MB/s,bbr
        60ms,12MB/s,cubic
    receiver: 0ms,4MB/s,cubic 0ms,50MB/s,bbr 0ms,150MB/s,cubic 1ms,4MB/s,cubic 1ms,28MB/s,cubic
        4ms,100Mbit,4MB/s,reno 4ms,18MB/s,cubic 12ms,4MB/s,bbr 12ms,200Mbit,9MB/s,cubic
        30ms,4MB/s,cubic 30ms,12MB/s,cubic 60ms,4MB/s,bbr
    network: 1ms,12Mbit,cubic 1ms,120Mbit,reno 1ms,180Mbit,bbr 4ms,12Mbit,bbr 4ms,120Mbit,cubic
        12ms,40Mbit,cubic 12ms,180Mbit,reno 30ms,12Mbit,cubic 30ms,90Mbit,cubic 60ms,40Mbit,bbr
        60ms,90Mbit,cubic 1ms,30Mbit,128KiB@sender,cubic 4ms,40Mbit,384KiB@receiver,cubic
        4ms,40Mbit,384KiB@sender,reno 12ms,60Mbit,768KiB@receiver,reno
        12ms,60Mbit,512KiB@sender,cubic 30ms,30Mbit,640KiB@receiver,cubic 1ms,1.8%,reno
        4ms,0.6%,reno 4ms,1.8%,cubic 12ms,0.2%,cubic 12ms,1.2%,reno 30ms,0.2%,reno
        30ms,1.2%,cubic 60ms,0.1%,cubic 60ms,0.6%,reno 60ms,1.8%,cubic
    """
)
QUICK = _cases(
    """
    receive-window: 20ms,100Mbit,64KiB,cubic
    send-buffer: 8ms,32KiB,reno
    sender: 0ms,5MB/s,cubic 20ms,5MB/s,reno
    receiver: 0ms,5MB/s,cubic 20ms,5MB/s,reno
    network: 8ms,50Mbit,reno 8ms,0.8%,cubic
    """
)
