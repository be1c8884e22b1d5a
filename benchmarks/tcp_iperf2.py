"""One transfer of the system's iperf 2, counted as ours is: by the receiver, without the start."""

from __future__ import annotations

import re
import socket
import subprocess

from tcp_ends import Place

PATIENCE_SECONDS = 20.0
_SUM = re.compile(r"^\[SUM-\d+\] ([\d.]+)-([\d.]+) sec +([\d.]+) Bytes", re.M)


def rate(
    client: Place,
    server: Place,
    streams: int,
    buffer_bytes: int,
    seconds: float,
    warm_up_seconds: float,
) -> float:
    """Returns bytes per second that arrived at the server after the warm-up.

    The client sends: it is the server's intervals that are the receiver's. The first one is as long
    as the warm-up and left out, and so is the line of the whole.
    """
    with server.entered():
        with socket.create_server((server.address, 0)) as free:
            port: int = free.getsockname()[1]
        shape = ["-p", str(port), "-l", str(buffer_bytes), "-f", "b"]
        sink = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "stdbuf", "-oL", "iperf", "-s", *shape]
            + ["-B", server.address, "-i", str(warm_up_seconds), "--sum-only"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    try:
        assert sink.stdout
        for line in sink.stdout:
            if "listening" in line:
                break
        else:
            raise RuntimeError("iperf's server does not listen")
        command = ["iperf", "-c", server.address, "-P", str(streams), "-t", str(seconds), *shape]
        with client.entered():
            subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE_SECONDS)
        sink.terminate()
        words, _ = sink.communicate(timeout=5)
    finally:
        sink.kill()
        sink.wait(5)
    rows = [tuple(map(float, each)) for each in _SUM.findall(words)]
    counted = [(end - start, size) for start, end, size in rows if start > 0]
    if not counted:
        raise RuntimeError(f"iperf: {words.strip().splitlines()[-1:]}")
    return sum(size for _, size in counted) / sum(passed for passed, _ in counted)
