"""The tcp stage's transfer by the system's iperf3 client.

Its report is JSON (-J), written at its end; the other side influences all of it, and each value is
checked. Source: iperf3(1), src/iperf_api.c.
"""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Tuple

from probes.core.bounded import refuse_constant
from probes.core.field_types import Count, Number, Seconds, Text
from probes.core.records import Details, Endpoint, Sample, window_rates
from probes.core.stage import Last, Running, Unavailable
from probes.system import tools
from probes.system.child import end_with_parent

PORT = 5201
REPORT_LIMIT_BYTES = 8 << 20
CONNECT_SECONDS = 3.0
"""Limit of connecting, and of the report of a client that is stopped."""
GRACE_SECONDS = 8.0
"""Time beside the transfer: the connection, and the exchange of the results."""
BUSY_SECONDS = 5.0
BUSY_PAUSE_SECONDS = 0.3
"""Pause before a retry: a server serves one client at a time."""
WARM_UP_SECONDS = 0.3
LEAST_TIME_RATIO = 0.9
"""Least receiver's time over the sender's: its clock starts and ends later."""
_BUSY, _STOPPED = "the server is busy", "interrupt"
"""First words of the error of a server, and of a client that a signal stopped."""
SILENT = "accepted the connection and did not answer"


class Interrupted(RuntimeError):
    """A transfer began and did not complete; intervals: the samples until then."""

    def __init__(self, text: str, intervals: Tuple[Sample, ...]) -> None:
        super().__init__(text)
        self.intervals = intervals


@dataclass(frozen=True)
class Setting:
    """One transfer; seconds is its total time, which iperf3 takes in full seconds."""

    verb: Text = "push"
    streams: Count = 1
    buffer_bytes: Count = 128 << 10
    seconds: Seconds = 2.0
    peer: Text = ""
    """The server's name as the user wrote it."""
    window_bytes: Count = 0
    bytes_per_second: Number = 0.0
    """Rate of all streams together; 0: unlimited, as is a window of 0."""


@dataclass(frozen=True)
class Result:
    """Result in iperf3's report."""

    moved_bytes: int
    """Payload by the receiver's count."""
    elapsed_seconds: float
    intervals: tuple[Sample, ...]
    """Samples of the client: sent in a push, received in a pull."""
    retransmitted_segments: int | None
    rtt_seconds: float | None
    """Mean of the sender's estimate; None: the client received."""
    congestion_control: str | None
    version: str | None


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Moves payload; yields the samples after the transfer, as iperf3 reports at its end.

    peer: host and port of the iperf3 server. Returns the details of the tcp stage that iperf3
    knows. Raises as run().
    """
    yield Sample(0.0, 0)
    try:
        result = run(setting, replace(peer, port=peer.port or PORT))
    except Interrupted as error:
        yield from error.intervals
        raise
    for each in result.intervals:
        if each.elapsed_seconds < result.elapsed_seconds and each.moved_bytes <= result.moved_bytes:
            yield each
    yield Last(result.elapsed_seconds, result.moved_bytes)
    limits: Details = {"by": "unknown"}
    settled = [each for each in result.intervals if each.elapsed_seconds >= WARM_UP_SECONDS]
    if result.retransmitted_segments is not None:
        limits["retransmitted_segments"] = result.retransmitted_segments
    if result.rtt_seconds is not None:
        limits["rtt_seconds_median"] = result.rtt_seconds
    return {
        "engine": result.version or "iperf3",
        "limits": limits,
        "congestion_control": result.congestion_control,
        "window_rates_bytes_per_second": window_rates(settled, last=-1),
    }


def arguments(setting: Setting, peer: Endpoint) -> list[str]:
    """Returns iperf3's options for a transfer; only host and port are a user's text."""
    options = ["--client", peer.host, "--port", str(peer.port), "--json"]
    options += ["--time", str(max(1, math.ceil(setting.seconds))), "--interval", "0.1"]
    options += ["--parallel", str(setting.streams), "--length", str(setting.buffer_bytes)]
    if setting.window_bytes:
        options += ["--window", str(setting.window_bytes)]
    if setting.bytes_per_second:
        # of each stream, in bits
        each = max(1, round(8 * setting.bytes_per_second / setting.streams))
        options += ["--bitrate", str(each)]
    options += ["--connect-timeout", str(round(CONNECT_SECONDS * 1000))]
    return [*options, "--reverse"] if setting.verb == "pull" else options


def run(setting: Setting, peer: Endpoint) -> Result:
    """Makes the transfer; dies with its starter, and is killed where it does not end in time.

    Raises:
        Unavailable: no iperf3 here, none there, or that one is busy or silent.
        RuntimeError: it broke on the way (Interrupted), or its report makes no sense.
    """
    program = tools.find("iperf3")
    if program is None:
        raise Unavailable(f"iperf3 is not installed on {socket.gethostname()} (apt install iperf3)")
    limit_seconds = math.ceil(setting.seconds) + GRACE_SECONDS
    patience = time.monotonic() + BUSY_SECONDS
    while True:
        text, notes = _run_program(program, setting, peer, limit_seconds)
        error = parse_error(text)
        if error is None:
            return parse(text, setting.verb, notes)
        if not error.startswith(_BUSY):
            raise failure(peer, text, error, limit_seconds)
        if time.monotonic() > patience:
            raise Unavailable(f"iperf3 to {peer.host} port {peer.port}: busy with another test")
        time.sleep(BUSY_PAUSE_SECONDS)


def failure(peer: Endpoint, text: str, error: str, limit_seconds: float) -> Exception:
    """Returns what to raise for a report with an error: Unavailable if no stream was opened."""
    name, is_late = f"iperf3 to {peer.host} port {peer.port}", error.startswith(_STOPPED)
    try:
        report = json.loads(text, parse_constant=refuse_constant)
        streams, intervals = report["start"]["connected"], tuple(_intervals(report["intervals"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        streams, intervals = [], ()
    if streams:
        ending = "did not end in time and was stopped" if is_late else f"was interrupted ({error})"
        return Interrupted(f"{name}: the transfer {ending}", intervals)
    if is_late:
        return Unavailable(f"{name}: {SILENT} in {limit_seconds:g} s; is it an iperf3 server?")
    return Unavailable(f"{name}: {error}; check that `iperf3 -s` runs there")


def _run_program(
    program: str, setting: Setting, peer: Endpoint, limit_seconds: float
) -> tuple[str, str]:
    out, err, parent = b"", b"", os.getpid()
    process = subprocess.Popen(
        [program, *arguments(setting, peer)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
        # In our process group, which the agent ends; and killed when we are killed.
        preexec_fn=lambda: end_with_parent(parent),
    )
    try:
        out, err = process.communicate(timeout=limit_seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):  # it reports how far it came
            out, err = process.communicate(timeout=CONNECT_SECONDS)
    finally:
        process.kill()
        process.wait()
    if len(out) > REPORT_LIMIT_BYTES:
        raise RuntimeError("iperf3 wrote a report without end")
    return out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


def parse_error(text: str) -> str | None:
    """Returns the error in a report, in one line; None: there is none."""
    try:
        report = json.loads(text)
    except ValueError:
        return None
    error = report.get("error") if isinstance(report, dict) else None
    if not isinstance(error, str):
        return None
    plain = "".join(each if each.isprintable() else " " for each in error)[:200].strip()
    return plain.removeprefix("error - ")


def parse(text: str, verb: str, notes: str = "") -> Result:
    """Parses the report of one transfer. Errors: RuntimeError where it makes no sense."""
    try:
        report = json.loads(text, parse_constant=refuse_constant)
        end = report["end"]
        received = end["sum_received"]
        size_bytes, seconds = _amount(received["bytes"]), _amount(received["seconds"])
        intervals = tuple(_intervals(report.get("intervals", [])))
    except (ValueError, KeyError, TypeError, RecursionError):
        note = " ".join(notes.split())[:200]
        raise RuntimeError(f"iperf3 gave no complete report{': ' + note if note else ''}") from None
    if not size_bytes or not seconds:
        raise RuntimeError("iperf3 ended well but nothing arrived at its receiver")
    sent = end.get("sum_sent")
    if verb == "push" and not _is_possible(sent, size_bytes, seconds):
        raise RuntimeError("iperf3's server claims to have received what was not sent")
    return Result(
        moved_bytes=int(size_bytes),
        elapsed_seconds=seconds,
        intervals=intervals,
        retransmitted_segments=_count(sent, "retransmits"),
        rtt_seconds=_mean_rtt(end.get("streams")) if verb == "push" else None,
        congestion_control=_word(end, "sender_tcp_congestion"),
        version=_word(report.get("start"), "version"),
    )


def _is_possible(sent: Any, size_bytes: float, seconds: float) -> bool:
    """Whether a server's count of a push fits the bytes that this end sent, and the time."""
    try:
        sent_bytes, sent_seconds = _amount(sent["bytes"]), _amount(sent["seconds"])
    except (KeyError, TypeError, ValueError):
        return False
    return size_bytes <= sent_bytes and seconds >= LEAST_TIME_RATIO * sent_seconds


def _intervals(values: Any) -> list[Sample]:
    samples: list[Sample] = []
    total = 0
    for each in values:
        total += int(_amount(each["sum"]["bytes"]))
        samples.append(Sample(_amount(each["sum"]["end"]), total))
    return samples


def _amount(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e18:
        raise ValueError(f"{value!r} is not an amount")
    return value


def _count(part: Any, name: str) -> int | None:
    value = part.get(name) if isinstance(part, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _word(part: Any, name: str) -> str | None:
    value = part.get(name) if isinstance(part, dict) else None
    return value[:64] if isinstance(value, str) and value.isprintable() else None


def _mean_rtt(streams: Any) -> float | None:
    """Returns the mean RTT of all streams, seconds; iperf3 reports microseconds."""
    rtts = [
        rtt
        for stream in (streams if isinstance(streams, list) else ())
        if isinstance(stream, dict)
        and (rtt := _count(stream.get("sender"), "mean_rtt")) is not None
    ]
    return sum(rtts) / len(rtts) / 1e6 if rtts and all(rtts) else None
