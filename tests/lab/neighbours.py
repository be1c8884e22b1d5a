"""Decoys: somebody else's traffic on the link, work on a host's core, or I/O on its disk."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import cgroups
from host import Host
from link import CLIENT_ADDRESS, SERVER_ADDRESS, shape_command
from plant import Plant

LONGEST_BYTES = 1 << 17
"""More than a packet that the kernel has not cut yet."""
_SHARES = 1024
"""A group's ordinary weight."""


@contextlib.contextmanager
def neighbours(client: Host, server: Host, plant: Plant, work: Path) -> Iterator[tuple[str, ...]]:
    hogs, later = [], f"sleep {plant.late_seconds};"
    with contextlib.ExitStack() as stack:
        for host, caps in ((client, plant.client), (server, plant.server)):
            if caps.hog_share_ratio is not None:
                hogs.append(stack.enter_context(_hog(host, caps.hog_share_ratio, later, work)))
            if caps.foreign_reader:
                hogs.append(stack.enter_context(_reader(host, later, work)))
        for sender, receiver, address, caps in (
            (client, server, SERVER_ADDRESS, plant.client),
            (server, client, CLIENT_ADDRESS, plant.server),
        ):
            if caps.falls_bits_per_second is not None:
                fall = (
                    f"{later} {' '.join(shape_command(caps.falls_bits_per_second, LONGEST_BYTES))}"
                )
                stack.enter_context(sender.running(["sh", "-c", fall], work / "fall.log"))
            if caps.foreign_bits_per_second is not None:
                words = _udp(caps.foreign_bits_per_second)
                stack.enter_context(_traffic(sender, receiver, address, words, later, work))
            if caps.foreign_streams is not None:
                words = f"--parallel {caps.foreign_streams}"
                stack.enter_context(_traffic(sender, receiver, address, words, later, work))
        yield tuple(hogs)


@contextlib.contextmanager
def _hog(host: Host, share_ratio: float, later: str, work: Path) -> Iterator[str]:
    """A busy loop on the host's core, in a group that outweighs the host's own."""
    group = f"{host.group}-hog"
    with cgroups.cpu_group(group, host.core, None):
        shares = round(_SHARES * share_ratio / (1 - share_ratio))
        (cgroups.ROOT / "cpu" / group / "cpu.shares").write_text(str(shares))
        with host.running(_join_script(group, f"{later} while :; do :; done"), work / "hog.log"):
            yield group


@contextlib.contextmanager
def _reader(host: Host, later: str, work: Path) -> Iterator[str]:
    """Somebody's backup of the host's whole disk, from one end to the other and anew."""
    group = f"{host.group}-reader"
    read = f"{later} exec fio --name=backup --filename={host.device} --readonly --rw=read --bs=1m"
    read += " --direct=1 --ioengine=libaio --iodepth=4 --time_based --runtime=1d"
    with (
        cgroups.cpu_group(group, host.core, None),
        host.running(_join_script(group, read), work / "reader.log") as reader,
    ):
        time.sleep(1)
        if reader.poll() is not None:
            raise RuntimeError(f"no foreign I/O: {(work / 'reader.log').read_text()[-500:]}")
        yield group


def _join_script(group: str, script: str) -> list[str]:
    """The shell script in a group of its own, and not in its host's."""
    joins = [
        f"echo $$ > {cgroups.ROOT / controller / group / 'cgroup.procs'}"
        for controller in cgroups.CONTROLLERS
    ]
    return ["sh", "-c", " && ".join([*joins, script])]


@contextlib.contextmanager
def _traffic(
    sender: Host, receiver: Host, address: str, what: str, later: str, work: Path
) -> Iterator[None]:
    """Sends from one host to the other all the time; what: iperf3's options for it."""
    listen = ["iperf3", "--server", "--port", "5300", "--one-off"]
    send = f"{later} exec iperf3 --client {address} --port 5300 --time 3600 {what}"
    with (
        receiver.running(listen, work / "traffic.log") as listener,
        contextlib.ExitStack() as stack,
    ):
        time.sleep(0.5)
        talker = stack.enter_context(sender.running(["sh", "-c", send], work / "traffic.log"))
        time.sleep(1)
        if listener.poll() is not None or talker.poll() is not None:
            raise RuntimeError(f"no foreign traffic: {(work / 'traffic.log').read_text()[-500:]}")
        yield


def _udp(bits_per_second: int) -> str:
    """A steady UDP stream; the rate counts the Ethernet headers, as the shaper does."""
    payload_bytes, frame_bytes = 1448, 1448 + 42
    rate = round(bits_per_second * payload_bytes / frame_bytes)
    return f"--udp --bitrate {rate} --length {payload_bytes}"
