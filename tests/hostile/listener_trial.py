#!/usr/bin/env python3
"""Put a listening agent before a crowd of hostile peers while a good client works with it.

Usage: python tests/hostile/listener_trial.py [--peers 1000] [--sessions 20] [--json F]

Needs root: all of it happens in a network namespace of its own, whose route to any other host is
counted. Exit code: 0 every promise was kept, 1 one was not, and it says which: the listener's
memory, the good client's seconds to its greeting and to its data port, descriptors that stay, a
packet to a third host.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import logging
import math
import multiprocessing
import os
import secrets
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from peaks import peak_bytes

from bottleneck import credentials, dialling, hosts, tls
from bottleneck.credentials import Token
from probes import tcp
from probes.net import port
from probes.records import Endpoint

MOST_RESIDENT_BYTES = 64 << 20
MOST_SECONDS = 1.0
HERE = "127.0.0.1"
DATA_STRANGERS_A_SECOND = 50
WRONG_BEFORE = 5
"""Wrong tokens from the good client's own address just before each of its sessions."""
QUIET_SECONDS = 8.0
"""For descriptors after the crowd has gone: longer than an unproven caller is kept."""
INSIDE = "LISTENER_TRIAL_INSIDE"
NAMESPACE = (
    "set -e; ip link set lo up; ip link add third type veth peer name wire; "
    "for each in third wire; do echo 1 > /proc/sys/net/ipv6/conf/$each/disable_ipv6; "
    "ip link set $each up; done; ip address add 192.0.2.1/32 dev third; "
    'ip route add default dev third; exec "$@"'
)

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter
Peer = Callable[[Reader, Writer], Awaitable[object]]


@dataclass
class Result:
    quiet_seconds: float = 0.0
    """To the greeting before the crowd came."""
    greeting_seconds: list[float] = field(default_factory=list)
    answer_seconds: list[float] = field(default_factory=list)
    """From a right token's call to the listener's word, without the start of any process."""
    data_seconds: list[float] = field(default_factory=list)
    hostile_connections: int = 0
    elapsed_seconds: float = 0.0
    resident_bytes: int = 0
    descriptors_before: int = 0
    descriptors_after: int = 0
    third_host_packets: int = 0
    ended_by: int = 0
    complaints: list[str] = field(default_factory=list)

    def faults(self, most_seconds: float = MOST_SECONDS) -> list[str]:
        waits = {
            "greeting": self.greeting_seconds,
            "answer": self.answer_seconds,
            "data port": self.data_seconds,
        }
        found = [
            f"{name}: {max(seconds, default=math.inf):.2f} s"
            for name, seconds in waits.items()
            if not seconds or max(seconds) > most_seconds
        ]
        if self.resident_bytes > MOST_RESIDENT_BYTES:
            found.append(f"memory: {self.resident_bytes >> 20} MiB")
        if self.descriptors_after > self.descriptors_before:
            found.append(f"descriptors: {self.descriptors_before} to {self.descriptors_after}")
        if self.third_host_packets:
            found.append(f"{self.third_host_packets} packets to a third host")
        if self.ended_by != 130:
            found.append(f"the listener ended with {self.ended_by}")
        return [*found, *self.complaints]


def hello(name: str) -> bytes:
    """The first bytes of a caller that asks for a name."""
    outgoing = ssl.MemoryBIO()
    made = tls.calling().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        made.do_handshake()
    return outgoing.read()


def peers(token: Token) -> tuple[Peer, ...]:
    ours, others = hello(token.name), hello("another.bottleneck")
    context = tls.calling()

    def says(words: bytes, tells: bool = False) -> Peer:
        """Words, as they are or inside TLS, and then as long as it is let."""

        async def run(reader: Reader, writer: Writer) -> None:
            if tells:
                await writer.start_tls(context, server_hostname=token.name)
            writer.write(words)
            await reader.read(4096)

        return run

    async def drips(reader: Reader, writer: Writer) -> None:
        for at in range(len(ours)):
            writer.write(ours[at : at + 1])
            await asyncio.sleep(0.2)

    async def leaves(reader: Reader, writer: Writer) -> None:
        writer.close()

    async def resets(reader: Reader, writer: Writer) -> None:
        made = writer.get_extra_info("socket")
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def half_open(reader: Reader, writer: Writer) -> None:
        writer.write_eof()
        await reader.read(1)

    wrong = secrets.token_hex(len(token.secret)).encode() + b"\n"
    return (
        *(says(b""), drips, leaves, resets, half_open, says(secrets.token_bytes(4096))),
        *(says(b"GET / HTTP/1.1\r\n\r\n"), says(b"\x16\x03\x01\xff\xff" + bytes(1 << 20))),
        *(says(others), says(ours), says(ours[:100]), says(ours + bytes(1 << 16))),
        *(says(wrong, True), says(b"x" * (1 << 20), True), says(b"", True)),
    )


def crowd(place: tuple[str, int], token: Token, count: int, met: object) -> None:
    """So many peers, each from an address of its own, again and again until it is killed."""
    # They would be on hosts of their own.
    os.nice(10)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # it warns of each that is hung up on
    kinds = peers(token)

    async def one(number: int) -> None:
        own = f"127.{1 + number % 200}.{number // 200 % 250}.{1 + number % 250}"
        for turn in itertools.count():
            with contextlib.suppress(OSError, EOFError, asyncio.TimeoutError):
                async with asyncio.timeout(10):
                    pair = await asyncio.open_connection(*place, local_addr=(own, 0))
                    met.value += 1  # type: ignore[attr-defined]
                    with contextlib.closing(pair[1]):
                        await kinds[(number + turn) % len(kinds)](*pair)
            await asyncio.sleep(0.01)

    async def all_of_them() -> None:
        await asyncio.gather(*(one(number) for number in range(count)))

    asyncio.run(all_of_them())


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@contextlib.contextmanager
def strangers_at(place: tuple[str, int]) -> Iterator[threading.Event]:
    """Silent connections to a data port, so many a second, from many addresses.

    Yields what is set once there are some.
    """
    ended, there = threading.Event(), threading.Event()

    def call() -> None:
        with contextlib.ExitStack() as stack:
            for number in itertools.count():
                if ended.wait(1 / DATA_STRANGERS_A_SECOND):
                    return
                own = (f"127.9.{number // 250 % 250}.{1 + number % 250}", 0)
                with contextlib.suppress(OSError):
                    made = socket.create_connection(place, 1, source_address=own)
                    stack.enter_context(made)
                if number == WRONG_BEFORE:
                    there.set()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    try:
        yield there
    finally:
        ended.set()
        thread.join(10)


def answered(place: tuple[str, int], token: Token) -> float:
    """The seconds until somebody who knows the token too is told that it has to wait."""
    began = time.monotonic()
    stream = dialling.meet(*place, token)
    with stream.connection as connection:
        stream.flush()
        while b"another client" not in stream.plain:
            assert select.select([connection], [], [], 30)[0] and not stream.ended
            stream.hear()
            stream.decrypt()
    return time.monotonic() - began


def session(place: tuple[str, int], token: Token, result: Result) -> None:
    """A good client's: the greeting, an answer, and a meeting at a data port among strangers."""
    began = time.monotonic()
    with hosts.start_there(f"tcp://{HERE}:{place[1]}") as host:
        result.greeting_seconds.append(time.monotonic() - began)
        result.answer_seconds.append(answered(place, token))
        assert host.tell("counters")
        setting = tcp.Setting(seconds=0.2, address=HERE)
        with (
            host.hold("tcp", setting, Endpoint(), 20) as held,
            strangers_at((HERE, held.port)) as there,
        ):
            assert there.wait(20)
            began = time.monotonic()
            port.meet(held, asdict(setting.shape), 1).close()
            result.data_seconds.append(time.monotonic() - began)


def guess_wrongly(place: tuple[str, int], token: Token) -> None:
    """From the good client's own address."""
    context = tls.calling()
    for _ in range(WRONG_BEFORE):
        with (
            socket.create_connection(place, 5) as made,
            contextlib.suppress(OSError),
            context.wrap_socket(made, server_hostname=token.name) as inside,
        ):
            inside.sendall(b"0" * 30 + b"\n")


def run(count: int, sessions: int) -> Result:
    result, began = Result(), time.monotonic()
    command = [sys.executable, "-P", "-m", "bottleneck", "agent", "--listen", f"{HERE}:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as listener:
        assert listener.stdout is not None
        place = HERE, int(listener.stdout.readline().decode().split(":")[-1].split()[0])
        token = credentials.parse_token(listener.stdout.readline().decode().removeprefix("token: "))
        credentials._taken[credentials.TOKEN_VARIABLE] = token.text
        session(place, token, result)
        result.quiet_seconds = result.greeting_seconds.pop()
        result.descriptors_before = descriptors(listener.pid)
        met = multiprocessing.get_context("spawn").Value("L", 0, lock=False)
        around = multiprocessing.get_context("spawn").Process(
            target=crowd, args=(place, token, count, met), daemon=True
        )
        around.start()
        try:
            until = time.monotonic() + 60
            while met.value < count and time.monotonic() < until:
                time.sleep(0.05)
            for _ in range(sessions):
                guess_wrongly(place, token)
                try:
                    session(place, token, result)
                except Exception as error:
                    result.complaints.append(f"a good client: {error}")
        finally:
            around.kill()
            around.join()
        result.hostile_connections = met.value
        until, few = time.monotonic() + QUIET_SECONDS, False
        while not few and time.monotonic() < until:
            time.sleep(0.1)
            result.descriptors_after = descriptors(listener.pid)
            few = result.descriptors_after <= result.descriptors_before
        result.resident_bytes = peak_bytes(listener.pid)
        listener.send_signal(signal.SIGINT)
        result.ended_by = listener.wait(20)
    sent = Path("/sys/class/net/third/statistics/tx_packets").read_text()
    result.third_host_packets = int(sent)
    result.elapsed_seconds = time.monotonic() - began
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=int, default=1000)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=MOST_SECONDS, help="a good client's")
    parser.add_argument("--json", help="write what was seen there")
    chosen = parser.parse_args()
    if os.geteuid() != 0:
        print("not run: a network namespace needs root", file=sys.stderr)
        return 1
    if INSIDE not in os.environ:
        # sysfs shows the devices of the namespace that it was mounted in.
        inside = f"mount -t sysfs sysfs /sys; {NAMESPACE}"
        again = ["unshare", "--net", "--mount", "sh", "-c", inside, "sh", sys.executable]
        return subprocess.run([*again, *sys.argv], env={**os.environ, INSIDE: "1"}).returncode
    result = run(chosen.peers, chosen.sessions)
    faults = result.faults(chosen.seconds)
    if chosen.json:
        Path(chosen.json).write_text(json.dumps({**asdict(result), "faults": faults}, indent=1))
    print(
        f"{chosen.peers} hostile peers, {result.hostile_connections} connections in "
        f"{result.elapsed_seconds:.0f} s: the listener took {result.resident_bytes >> 20} MiB at "
        f"most, {result.descriptors_before} descriptors before and {result.descriptors_after} "
        f"after, {result.third_host_packets} packets to a third host\n"
        f"a good client's greeting, alone: {result.quiet_seconds:.2f} s; in the crowd: "
        f"{' '.join(f'{each:.2f}' for each in result.greeting_seconds)} s\n"
        f"a right token's answer: {' '.join(f'{each:.2f}' for each in result.answer_seconds)} s\n"
        f"its data port, with {DATA_STRANGERS_A_SECOND} strangers a second: "
        f"{' '.join(f'{each:.2f}' for each in result.data_seconds)} s"
    )
    print(*[f"not kept: {each}" for each in faults] or ["every promise was kept"], sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main())
