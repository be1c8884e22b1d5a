"""The link between the two hosts: a veth pair, each direction shaped where it leaves.

With a delay planted it is a pair of TUN devices instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cgroups import call
from delay import MTU_BYTES, Line, join_hosts
from host import Host
from plant import PAYLOAD_RATIO, Plant

CLIENT_ADDRESS = "10.91.7.1"
SERVER_ADDRESS = "10.91.7.2"
NETWORK = "10.91.7.0/24"
INTERFACE = "eth0"
BESIDE = "eth1", "10.91.8.1", "10.91.8.2"
"""A second link, which nothing shapes: its name and its addresses."""
QUEUE_SECONDS = 0.02


@contextmanager
def link_hosts(client: Host, server: Host, plant: Plant) -> Iterator[None]:
    """A link between the hosts until the block ends, as planted; then their kernels' settings."""
    with _join(client, server, plant):
        if plant.beside:
            connect(client, server, *BESIDE)
        for host, caps in ((client, plant.client), (server, plant.server)):
            for name, value in caps.sysctls:
                host.run(["sh", "-c", f"echo {value} > /proc/sys/{name.replace('.', '/')}"])
            # By the route: a namespace's own default may be none that others must not use.
            route = ["ip", "route", "change", NETWORK, "dev", INTERFACE]
            limit = caps.congestion_window_segments
            clamp = [] if limit is None else ["cwnd", "lock", str(limit)]
            host.run([*route, "congctl", caps.congestion_control, *clamp])
        yield


@contextmanager
def _join(client: Host, server: Host, plant: Plant) -> Iterator[None]:
    if plant.round_trip_seconds is None:
        connect(client, server, INTERFACE, CLIENT_ADDRESS, SERVER_ADDRESS)
        for host, caps in ((client, plant.client), (server, plant.server)):
            if caps.sends_bits_per_second is not None:
                shape(host, caps.sends_bits_per_second)
        yield
        return
    # Its packets are long: what a frame's headers cost is taken off here.
    ratio = PAYLOAD_RATIO if plant.mtu_bytes is None else 1.0
    ends = (client.pid, INTERFACE, CLIENT_ADDRESS), (server.pid, INTERFACE, SERVER_ADDRESS)
    out, back = (
        Line(
            plant.round_trip_seconds / 2,
            caps.sends_bits_per_second and ratio * caps.sends_bits_per_second / 8,
            loss_ratio=plant.loss_ratio,
            queue_bytes=plant.queue_bytes,
            largest_bytes=caps.largest_bytes,
        )
        for caps in (plant.client, plant.server)
    )
    # A far path beside a plain link is an overlay on it.
    with join_hosts(ends, out, back, plant.mtu_bytes or MTU_BYTES, tunnel=plant.beside):
        yield


def connect(client: Host, server: Host, name: str, *addresses: str) -> None:
    """Join the hosts by a link of a name, the client's address first.

    The link ends with either host's namespace.
    """
    call(
        *f"ip link add {name} netns {client.pid} type veth".split(),
        *f"peer name {name} netns {server.pid}".split(),
    )
    for host, address in zip((client, server), addresses, strict=True):
        host.run(["ip", "address", "add", f"{address}/24", "dev", name])
        # veth hands packets over on the sender's core: steer them to the core of this host.
        steer = f"/sys/class/net/{name}/queues/rx-0/rps_cpus"
        host.run(["sh", "-c", f"echo {1 << host.core:x} > {steer}"])
        host.run(["ip", "link", "set", name, "up"])


def shape(host: Host, bits_per_second: int) -> None:
    """Limit what a host sends, by a token bucket of about a millisecond."""
    host.run(shape_command(bits_per_second))


def shape_command(bits_per_second: int, least_bytes: int = 16_384) -> list[str]:
    """The command for that; a second one takes the first one's place.

    least_bytes: of the bucket; a packet that waits there already has to fit the new one.
    """
    burst = max(least_bytes, round(bits_per_second / 8 * 0.001))
    limit = burst + round(bits_per_second / 8 * QUEUE_SECONDS)
    tbf = ["tc", "qdisc", "replace", "dev", INTERFACE, "root", "tbf"]
    return [*tbf, "rate", f"{bits_per_second}bit", "burst", str(burst), "limit", str(limit)]
