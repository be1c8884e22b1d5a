"""node_exporter on a lab's server, whose text is cut to what is that host's own.

The hosts share one kernel: each would see all cores and disks of the machine. Interfaces are those
of the server's namespace anyway.
"""

from __future__ import annotations

import contextlib
import http.server
import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from link import SERVER_ADDRESS
from world import World

PROGRAM = "prometheus-node-exporter"
INNER, OUTER = 9110, 9100
OPTIONS = ("--collector.diskstats.device-exclude=^$", "--log.level=error")


def is_own(line: str, core: int, disk: str) -> bool:
    """Whether a line of the text is of the host with that core and disk, or of none."""
    other_core = re.match(r'node_cpu\w*\{.*cpu="(\d+)"', line)
    other_disk = re.match(r'node_disk\w*\{.*device="([^"]+)"', line)
    return not (
        (other_core and other_core[1] != str(core)) or (other_disk and other_disk[1] != disk)
    )


@contextlib.contextmanager
def exporter(lab: World) -> Iterator[str]:
    """Yields the address of the server's counters, as --metrics takes it."""
    inner = [PROGRAM, f"--web.listen-address=127.0.0.1:{INNER}", *OPTIONS]
    outer: list[str | Path] = [sys.executable, Path(__file__), lab.server.device.name]
    log = lab.work / "exporter.log"
    address = f"http://{SERVER_ADDRESS}:{OUTER}/metrics"
    with lab.server.running(inner, log), lab.server.running(outer, log):
        lab.client.run(["sh", "-c", f"until curl -sf {address} >/dev/null; do sleep 0.1; done"])
        yield address


class Filter(http.server.BaseHTTPRequestHandler):
    """Passes the inner text on, without the other host's lines."""

    disk = ""

    def do_GET(self) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{INNER}{self.path}") as reply:
            lines = reply.read().decode().splitlines(keepends=True)
        text = "".join(line for line in lines if is_own(line, 1, self.disk)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Writes nothing."""


if __name__ == "__main__":
    Filter.disk = sys.argv[1]
    http.server.HTTPServer((SERVER_ADDRESS, OUTER), Filter).serve_forever()
