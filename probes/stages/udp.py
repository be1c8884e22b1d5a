"""Sends datagrams at a steady pace between two hosts; counts losses, duplicates and jitter.

The pace is the caller's and is never exceeded: below TCP's rate, a loss is the path's own and not
caused by us. The receiver counts; drops of its own socket, and datagrams that the sender could not
send in time, are counted separately.
"""

from __future__ import annotations

import secrets
import select
import socket
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import Iterator, List, Optional

from probes.core.field_types import Address, Count, Number, Seconds, Text
from probes.core.records import Details, Endpoint, Sample, window_rates
from probes.core.stage import LONG_BUDGET_SECONDS, Last, RunFacts, Running, Stage, Turn, Unavailable
from probes.net import datagrams, port
from probes.net.datagrams import HEADER, MOST_DATAGRAMS
from probes.net.paced import MOST_PAYLOAD_BYTES, SILENCE_SECONDS, Pace, Receiver, Sender
from probes.net.port import Meeting

STAGE = Stage(
    "udp",
    measures="loss and jitter of UDP at a given rate",
    usual_seconds=4.0,
    needs=("server", "rate"),
    by_agent=True,
    optional=True,
    from_budget_seconds=LONG_BUDGET_SECONDS,
)
USUAL_SECONDS = 1.5
SHARE_OF_TCP = 0.8
"""Pace as a share of TCP's rate: below it our own datagrams cause no losses."""
LEAST_DATAGRAMS = 20
MOST_BYTES_PER_SECOND = 100e6
"""Rate up to which this tool can send datagrams of one packet each on every host."""

VERBS = ("push", "pull")
HELLO_SECONDS = 2.0
"""Wait for the first datagram."""
MOST_SECONDS = 600.0


@dataclass(frozen=True)
class Setting:
    """One run at one pace."""

    verb: Text = "push"
    """push: the initiator sends; pull: it receives."""
    bytes_per_second: Number = 1e6
    """Payload rate; never exceeded."""
    payload_bytes: Count = 1448
    """Payload of a datagram, our 32-byte header included; less where the sender's MTU is small.
    1448 fit into 1500 bytes with IPv6 too."""
    seconds: Seconds = 2.0
    address: Address = ""
    """The responder's address to listen on; empty, or another host's: every address."""

    def __post_init__(self) -> None:
        if self.verb not in VERBS or not 0 < self.seconds <= MOST_SECONDS:
            raise ValueError(f"no such run: {self.verb} for {self.seconds} s")
        if not HEADER.size <= self.payload_bytes <= MOST_PAYLOAD_BYTES:
            raise ValueError(f"no such datagram: {self.payload_bytes} bytes")
        if not 0 < self.pace.planned_datagrams(self.payload_bytes) <= MOST_DATAGRAMS:
            raise ValueError(f"no such pace: {self.bytes_per_second} bytes/s")

    @property
    def pace(self) -> Pace:
        """Limits of the sender."""
        return Pace(self.bytes_per_second, self.payload_bytes, self.seconds)


def turns(facts: RunFacts) -> Iterator[Turn]:
    for index, verb in enumerate(VERBS):
        setting, parts = Setting(verb, address=facts.address), len(VERBS) - index + 1
        yield Turn(f"datagrams {verb}", setting, USUAL_SECONDS, parts, peer="agent")


def fit_setting(setting: Setting, facts: RunFacts) -> Setting:
    """Sets a pace below TCP's rate in that direction. Raises Unavailable where TCP is too slow."""
    pace = min(MOST_BYTES_PER_SECOND, SHARE_OF_TCP * facts.bytes_per_second)
    if pace * setting.seconds < LEAST_DATAGRAMS * setting.payload_bytes:
        raise Unavailable("TCP is too slow in that direction for a test with datagrams")
    return replace(setting, bytes_per_second=pace)


def respond(setting: Setting) -> AbstractContextManager[Endpoint]:
    """Answers runs of this one kind; sends nothing to a peer without the session's nonce."""

    agreed = asdict(setting)

    def serve(meeting: Meeting) -> None:
        request = dict(meeting.request)
        token = bytes.fromhex(str(request["token"]))
        if len(token) != 16 or any(request[name] != value for name, value in agreed.items()):
            raise ValueError("another run than this session's")
        _respond(meeting, setting, token)

    return port.listen(setting.address, serve)


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Has datagrams sent for the setting's seconds; samples are the receiver's, of new payload.

    Returns the figures of probes.net.datagrams.account, and payload_bytes, sent_bytes_per_second
    (as really sent), pace_ratio (that over the setting's), receive_buffer_bytes (as granted),
    window_rates_bytes_per_second.

    Raises Unavailable where a firewall lets TCP pass and UDP not, RuntimeError where it breaks.
    """
    token = secrets.token_bytes(16)
    meeting = port.meet(peer, {**asdict(setting), "token": token.hex()}, 0)
    udp: Optional[socket.socket] = None
    try:
        reply = meeting.hear(port.CONNECT_SECONDS)
        udp = datagrams.open_beside(meeting.control)
        datagrams.connect(udp, meeting.control, int(reply["port"]))
        greeting = _greet(meeting, udp, token)
        if not greeting["heard"]:
            raise Unavailable(
                f"{peer.host} UDP port {reply['port']}: no datagram arrives there, though TCP "
                "connects: a firewall blocks UDP"
            )
        samples: List[Sample] = []
        if setting.verb == "push":
            sender = Sender(meeting, setting.pace, udp, token)
            sender.agree()
            yield Sample(0.0, 0)
            meeting.tell(sender.run())
            details = meeting.hear(SILENCE_SECONDS + port.STALL_SECONDS)
            samples = [Sample(float(e), int(m)) for e, m in details.pop("samples")]
            yield from samples[1:-1]
            yield Last(samples[-1].elapsed_seconds, samples[-1].moved_bytes)
        else:
            receiver = Receiver(meeting, setting.pace, udp, token, greeting)
            meeting.tell({"ready": True})
            for sample in receiver.watch():
                samples.append(sample)
                yield sample
            details = receiver.describe()
    except (EOFError, ConnectionResetError, BrokenPipeError):
        raise RuntimeError(f"{peer.host}: the control connection was closed too early") from None
    finally:
        meeting.close()
        if udp is not None:
            udp.close()
    return {**details, "window_rates_bytes_per_second": window_rates(tuple(samples))}


def _respond(meeting: Meeting, setting: Setting, token: bytes) -> None:
    """Does the responder's half; the receiver's figures go over the control connection."""
    with datagrams.open_beside(meeting.control) as udp:
        meeting.tell({"port": udp.getsockname()[1]})
        client_port = datagrams.hear_hello(udp, meeting.control, token, HELLO_SECONDS)
        if client_port is None:
            meeting.tell({"heard": False})
            return
        datagrams.connect(udp, meeting.control, client_port)
        if setting.verb == "pull":
            sender = Sender(meeting, setting.pace, udp, token)
            sender.agree({"heard": True})
            meeting.tell(sender.run())
            return
        meeting.tell({"heard": True})
        receiver = Receiver(meeting, setting.pace, udp, token, meeting.hear(port.CONNECT_SECONDS))
        meeting.tell({"ready": True})
        samples = [[each.elapsed_seconds, each.moved_bytes] for each in receiver.watch()]
        meeting.tell({**receiver.describe(), "samples": samples})


def _greet(meeting: Meeting, udp: socket.socket, token: bytes) -> Details:
    """Sends hellos until the responder reports whether it received one."""
    until = time.monotonic() + HELLO_SECONDS + port.CONNECT_SECONDS
    while time.monotonic() < until:
        datagrams.send(udp, bytearray(datagrams.hello(token)))
        if select.select([meeting.control], [], [], datagrams.HELLO_INTERVAL_SECONDS)[0]:
            return meeting.hear(port.CONNECT_SECONDS)
    raise EOFError("no word of the hello")
