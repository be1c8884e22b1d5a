"""TCP between two hosts, memory to memory, by the receiver's count."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar

from probes.core.field_types import Address, Count, Number, Seconds, Text
from probes.core.records import Details, Endpoint, window_rates
from probes.core.stage import Running, Stage
from probes.net import transfer
from probes.net.transfer import Shape

STAGE = Stage(
    "tcp", measures="what the network carries", explains=False, needs=("server",), by_agent=True
)


@dataclass(frozen=True)
class OneWay:
    """One transfer: seconds is its whole time, warm-up included."""

    copies: ClassVar[bool] = True
    """Shape.copies."""
    verb: Text = "push"
    streams: Count = 1
    buffer_bytes: Count = 256 << 10
    seconds: Seconds = 2.0
    address: Address = ""
    """The responder's address to listen on; empty, or another host's: every address."""
    window_bytes: Count = 0
    """SO_SNDBUF of the sender and SO_RCVBUF of the receiver; 0: autotuned."""
    bytes_per_second: Number = 0.0
    """Rate to which the sender's kernel paces all streams together; 0: unlimited."""

    def __post_init__(self) -> None:
        _ = self.shape

    @property
    def shape(self) -> Shape:
        """The transfer of this setting."""
        return Shape(
            self.verb,
            self.streams,
            self.buffer_bytes,
            self.seconds,
            window_bytes=self.window_bytes,
            bytes_per_second=self.bytes_per_second,
            copies=self.copies,
        )


@dataclass(frozen=True)
class Setting(OneWay):
    """One transfer between two hosts."""

    copies = False
    both_ways: bool = False
    """Whether there is another at the same time, the other way."""


def respond(setting: OneWay) -> AbstractContextManager[Endpoint]:
    """Answers this one kind of transfer."""
    return transfer.respond(setting.address, setting.seconds, setting.window_bytes)


def initiate(setting: OneWay, peer: Endpoint) -> Running:
    """Moves payload for the setting's seconds; samples are the receiver's.

    Returns:
        limits, congestion_control (of the sender), window_rates_bytes_per_second, sender and
        receiver (each end's figures of its window, transfer.Transfer), and, where known,
        rtt_unloaded_seconds, rtt_loaded_seconds (its median under load), retransmitted_segments.
    """
    outcome = yield from transfer.initiate(setting.shape, peer)
    details: Details = {
        "limits": outcome.limits,
        "congestion_control": outcome.congestion_control,
        "window_rates_bytes_per_second": window_rates(outcome.samples),
        "sender": outcome.sender,
        "receiver": outcome.receiver,
    }
    optional = {
        "rtt_unloaded_seconds": outcome.rtt_unloaded_seconds,
        "rtt_loaded_seconds": outcome.limits.get("rtt_seconds_median"),
        "retransmitted_segments": outcome.limits.get("retransmitted_segments"),
    }
    details.update({name: value for name, value in optional.items() if value is not None})
    return details
