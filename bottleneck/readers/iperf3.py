"""iperf3: TCP by itself, as JSON (-J) or text, of either end, with -R, -P, -u and --bidir.

Sources: iperf3(1); iperf_api.c and iperf_locale.c of esnet/iperf, 3.1 to 3.19.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bottleneck.estimate.observations import Tcp
from bottleneck.readers.figure import Figure, Output, json_of, number, path, positive, rate
from bottleneck.report.report import ReportError
from bottleneck.text.units import share_text

TOOL = "iperf3"
SEGMENT_BYTES = 1448
"""Payload of a usual packet: what one retransmission repeats."""
_ERROR = re.compile(r"iperf3?: (?:interrupt|error) - (.+)")
_ROW = re.compile(
    r"^\[ *(?P<id>\w+)\](?:\[(?P<way>[TR]X)-[CS]\])? +[\d.,]+- *(?P<end>[\d.,]+) +sec +"
    r"\S+ \w?Bytes +"
    r"(?P<rate>[\d.]+ [KMGT]?(?:bits|Bytes)/sec)(?P<rest>.*)$",
    re.M,
)
_LOST = re.compile(r"(\d+)/ *(\d+) \(")
_VERSION = re.compile(r'"version":\s*"iperf 3|"test_start"')


def recognizes(text: str) -> bool:
    if text.lstrip().startswith("{"):
        return bool(_VERSION.search(text))
    return bool(_ROW.search(text) or _ERROR.search(text))


def read(output: Output) -> Iterator[Figure]:
    """Yields TCP in each direction, and the path's round trip and losses. Errors: ReportError."""
    text = output.text
    if text.lstrip().startswith("{"):
        yield from _json_figures(output, json_of(text, TOOL))
    else:
        yield from _text_figures(output)


def _sender(output: Output, is_client: bool, reverse: bool) -> str:
    """Returns the side that sent: iperf3's client, unless it ran with -R."""
    host = output.host()
    other = "server" if host == "client" else "client"
    return host if is_client != reverse else other


# -- JSON ------------------------------------------------------------------------------------------


def _json_figures(output: Output, document: Any) -> Iterator[Figure]:
    start, end = (_object(document, name) for name in ("start", "end"))
    if isinstance(document, dict) and document.get("error"):
        raise ReportError(f"iperf3 failed: {str(document['error'])[:120]}")
    test = _object(start, "test_start")
    is_client = "accepted_connection" not in start
    if test.get("protocol") == "UDP":
        totals = _object(end, "sum_received") or _object(end, "sum")
        yield from _datagrams(totals.get("lost_packets"), totals.get("packets"))
        return
    reverse, streams = bool(test.get("reverse")), test.get("num_streams")
    ways = [("", reverse)]
    if "sum_received_bidir_reverse" in end:
        ways.append(("_bidir_reverse", not reverse))
    for suffix, is_reverse in ways:
        sent, received = (_object(end, f"sum_{name}{suffix}") for name in ("sent", "received"))
        bits = received.get("bits_per_second") or sent.get("bits_per_second")
        yield Tcp(
            sender=_sender(output, is_client, is_reverse),
            rate=positive(bits, "iperf3's rate") / 8,
            streams=streams if isinstance(streams, int) and streams > 0 else None,
            window=_count(start.get("sock_bufsize")),
            tool=TOOL,
        )
        yield from _losses(sent.get("retransmits"), sent.get("bytes"))
    yield from _trips(end.get("streams"))


def _object(document: Any, name: str) -> Mapping[str, Any]:
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63
    return int(value) if is_count else None


def _losses(retransmits: Any, moved_bytes: Any) -> Iterator[Figure]:
    retransmitted, sent_bytes = _count(retransmits), _count(moved_bytes)
    if retransmitted and sent_bytes:
        yield path(None, retransmitted * SEGMENT_BYTES / sent_bytes)


def _trips(streams: Any) -> Iterator[Figure]:
    senders = [_object(e, "sender") for e in (streams if isinstance(streams, Sequence) else ())]
    trips = [trip for each in senders if (trip := _count(each.get("min_rtt")))]
    if trips:
        yield path(min(trips) / 1e6)


def _datagrams(lost: Any, sent: Any) -> Iterator[Figure]:
    total = _count(sent)
    if total is None or not isinstance(lost, int) or not 0 <= lost <= total:
        raise ReportError("iperf3's UDP test has no count of lost packets: nothing was measured")
    yield path(None, lost / total)
    share = share_text(lost / total)
    yield f"iperf3 -u sends at the rate it is told (-b): {share} lost, and no limit of the path."


# -- text ------------------------------------------------------------------------------------------


def _text_figures(output: Output) -> Iterator[Figure]:
    rows = [each for each in _ROW.finditer(output.text) if "(omitted)" not in each["rest"]]
    finals = [e for e in rows if e["rest"].rstrip().endswith(("sender", "receiver"))]
    if not finals:
        failed = _ERROR.search(output.text)
        why = f": {failed[1][:120]}" if failed else ": paste it to its end"
        raise ReportError(f"iperf3's summary (sender, receiver) is missing{why}")
    lost = [each for row in finals for each in _LOST.findall(row["rest"])]
    if lost:
        yield from _datagrams(*(int(each[-18:]) for each in lost[-1]))
        return
    is_client = "Accepted connection" not in output.text
    for way in dict.fromkeys(each["way"] for each in finals):
        yield from _way(output, [e for e in finals if e["way"] == way], is_client, way)


def _way(
    output: Output, rows: list[re.Match[str]], is_client: bool, way: str | None
) -> Iterator[Figure]:
    """Yields TCP in one direction; way: TX or RX of a test of both at once."""
    streams = {each["id"] for each in rows} - {"SUM"}
    sums = [each for each in rows if each["id"] == "SUM"] or rows
    received = [e for e in sums if e["rest"].rstrip().endswith("receiver")]
    row = (received or sums)[-1]
    bytes_per_second = rate(row["rate"])
    if way is not None:
        reverse = way == "RX"
    elif is_client:
        reverse = "Reverse mode" in output.text
    else:
        reverse = not received
    yield Tcp(
        sender=_sender(output, is_client, reverse),
        rate=bytes_per_second,
        streams=max(1, len(streams)),
        tool=TOOL,
    )
    sent = next((e for e in sums if re.search(r"\d+ +sender$", e["rest"].rstrip())), None)
    if sent is not None:
        again = int(re.findall(r"\d+", sent["rest"])[0][-18:])
        yield from _losses(again, round(bytes_per_second * number(sent["end"])))
