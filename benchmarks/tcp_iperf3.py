"""One transfer of the system's iperf3, counted as ours is: by the receiver, without the start."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tcp_ends import Place

PATIENCE_SECONDS = 20.0


@contextmanager
def serving(place: Place) -> Iterator[int]:
    """Yields the port of a server that serves one run there, until the block ends."""
    with place.entered():
        with socket.create_server((place.address, 0)) as free:
            port: int = free.getsockname()[1]
        server = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "iperf3", "-s", "-1"]
            + ["-p", str(port), "-B", place.address, "--forceflush"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    try:
        assert server.stdout
        for line in server.stdout:
            if "listening" in line:
                break
        else:
            raise RuntimeError("iperf3's server does not listen")
        # A full pipe would stop the server.
        reader = subprocess.Popen(["cat"], stdin=server.stdout, stdout=subprocess.DEVNULL)
        server.stdout.close()
        try:
            yield port
        finally:
            server.terminate()
            server.wait(5)
            reader.wait(5)
    finally:
        server.kill()
        server.wait(5)


def rate(
    client: Place,
    server: Place,
    port: int,
    streams: int,
    buffer_bytes: int,
    seconds: float,
    warm_up_seconds: float,
    zero_copy: bool,
) -> float:
    """Returns bytes per second that arrived at the client after the warm-up.

    The server sends (-R): the client's intervals are then the receiver's. The first one is as long
    as the warm-up and left out.
    """
    command = ["iperf3", "-c", server.address, "-p", str(port), "-R", "-J"]
    command += ["-P", str(streams), "-l", str(buffer_bytes), "-t", str(seconds)]
    command += ["-i", str(warm_up_seconds), *(["-Z"] if zero_copy else [])]
    with client.entered():
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    report = json.loads(done.stdout)
    if done.returncode or "error" in report:
        raise RuntimeError(f"iperf3: {report.get('error', done.stderr)}")
    counted = [each["sum"] for each in report["intervals"][1:]]
    return sum(each["bytes"] for each in counted) / sum(each["seconds"] for each in counted)
