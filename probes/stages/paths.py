"""Measures other paths to the server than the one in use.

A server with several addresses may be reached by a slower card than it has, or through a tunnel
over a faster network. Its agent reports its addresses; one that is in a network of this host, and
where the same file server answers, is another path, whose rate is measured as for the one in use.
An agent may lie: an address first gets nothing but a request that identifies its file server.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, Iterator, List, Tuple

from probes.core.field_types import Address, Port, Seconds, Text
from probes.core.records import Details, Endpoint, Sample, run_rate
from probes.core.stage import Last, RunFacts, Running, Stage, Turn, Unavailable
from probes.net import peers, port, transfer
from probes.net.port import Meeting
from probes.net.transfer import Shape
from probes.system import rtnetlink

STAGE = Stage(
    "paths",
    measures="whether another path to the server is faster",
    usual_seconds=3.0,
    needs=("server",),
    by_agent=True,
    optional=True,
    refines=("network/link-rate", "network/loss", "network/delay", "network/contention"),
)
MOST_ADDRESSES = 64
MOST_WAYS = 3
"""Paths that are measured, the one in use among them: each takes its share of the time."""
LEAST_SECONDS = 0.4
"""Shortest transfer."""
NONCE_BYTES = 16
ANSWER_SECONDS = 1.0
RTM_NEWADDR, RTM_GETADDR = 20, 22
IFADDRMSG = struct.Struct("=BBBBI")
"""Family, prefix length, flags, scope, interface (rtnetlink(7))."""
IFA_ADDRESS, IFA_LOCAL = 1, 2
NEAR_SCOPES = (253, 254)
"""RT_SCOPE_LINK, RT_SCOPE_HOST: addresses that cannot be called without an interface's name."""


@dataclass(frozen=True)
class Setting:
    """The share's address, and the time for all paths together."""

    host: Text
    """The share's host as the client reaches it, an IP address."""
    port: Port
    seconds: Seconds = 3.0


def turns(facts: RunFacts) -> Iterator[Turn]:
    """Yields a turn from the client to each address of the server."""
    yield Turn(STAGE.name, Setting(facts.address, facts.port), STAGE.usual_seconds, peer="agent")


@dataclass(frozen=True)
class Own:
    """One address of a host's own."""

    address: Address
    prefix_bits: int
    """Prefix length of its network."""
    interface: str
    kind: str
    """The interface's kind by ip-link(8); empty: an Ethernet card."""


def own_addresses() -> List[Own]:
    """Reads this host's addresses that others may call. Errors: OSError."""
    links = {each.index: each for each in rtnetlink.read_links()}
    answer = rtnetlink.dump(RTM_GETADDR, IFADDRMSG.pack(0, 0, 0, 0, 0))
    return [
        Own(address, bits, links[index].name, links[index].kind or "")
        for address, bits, index in parse_addresses(answer)
        if index in links
    ]


def parse_addresses(answer: bytes) -> List[Tuple[str, int, int]]:
    """Parses a dump of RTM_GETADDR: address, prefix length and interface index of each."""
    addresses = []
    for kind, body in rtnetlink.messages(answer):
        if kind != RTM_NEWADDR or len(body) < IFADDRMSG.size:
            continue
        family, bits, _, scope, index = IFADDRMSG.unpack_from(body)
        attributes = rtnetlink.attributes(body[IFADDRMSG.size :])
        # A point-to-point link's IFA_ADDRESS is its other end.
        raw = attributes.get(IFA_LOCAL, attributes.get(IFA_ADDRESS, b""))
        if scope not in NEAR_SCOPES and len(raw) == {socket.AF_INET: 4, socket.AF_INET6: 16}.get(
            family
        ):
            addresses.append((str(ipaddress.ip_address(raw)), bits, index))
    return addresses


@contextmanager
def respond(setting: Setting) -> Iterator[Endpoint]:
    """Reports this host's addresses, and answers transfers at each of them."""
    with ExitStack() as stack:

        def serve(meeting: Meeting) -> None:
            peers.expect_also(str(each) for each in meeting.request["callers"])
            responder = stack.enter_context(transfer.respond("", setting.seconds))
            addresses = [asdict(each) for each in own_addresses()]
            meeting.tell({"port": responder.port, "nonce": responder.nonce, "addresses": addresses})
            meeting.wait_for_close(port.STALL_SECONDS)

        yield stack.enter_context(port.listen(setting.host, serve))


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Moves payload by each path, both directions of each, one after the other.

    Returns:
        ways: the one in use first, each with address (the server's), interface (this host's),
            server_interface, server_kind (by ip-link(8)), in_use, and either
            push_bytes_per_second and pull_bytes_per_second, or missing, the reason.

    Raises Unavailable where the data port cannot be reached, or a host's addresses not be read.
    """
    began = time.monotonic()
    yield Sample(0.0, 0)
    try:
        local = own_addresses()
        meeting = port.meet(peer, {"callers": [each.address for each in local]}, 0)
        try:
            reply = meeting.hear(ANSWER_SECONDS + port.CONNECT_SECONDS)
            ways = _list_ways(setting.host, local, reply["addresses"])
        finally:
            meeting.close()
    except OSError as error:
        raise Unavailable(f"the addresses of a host cannot be read: {error}") from None
    responder = replace(peer, port=int(reply["port"]), nonce=_check_nonce(reply["nonce"]))
    if len(ways) > 1:
        # Imported here: the other end runs on Python 3.9.
        from probes.smb.server_query import identity

        server = identity(Endpoint(host=setting.host, port=setting.port))
        seconds = max(LEAST_SECONDS, setting.seconds / (2 * len(ways)))
        for way in ways:
            if server and identity(Endpoint(host=way["address"], port=setting.port)) == server:
                way.update(_measure_way(replace(responder, host=way["address"]), seconds))
            else:
                way["missing"] = f"port {setting.port} there may belong to another server"
    yield Last(time.monotonic() - began, 0)
    return {"ways": ways}


def _list_ways(host: str, local: List[Own], addresses: List[Details]) -> List[Details]:
    """Returns the paths to those of a server's addresses that are in this host's networks.

    The agent may report any address: only those next to this host are called.
    """
    networks = [ipaddress.ip_network(f"{each.address}/{each.prefix_bits}", False) for each in local]
    ours = {each.address for each in local}
    names = {each.index: each.name for each in rtnetlink.read_links()}
    ways: Dict[str, Details] = {}
    for each in sorted(addresses[:MOST_ADDRESSES], key=lambda one: str(one["address"]) != host):
        address = str(ipaddress.ip_address(each["address"]))
        in_use = address == host
        if not in_use and (
            address in ours or not any(ipaddress.ip_address(address) in one for one in networks)
        ):
            continue
        way = {
            "address": address,
            "interface": names.get(rtnetlink.outgoing_index(address) or 0, ""),
            "server_interface": str(each["interface"])[:15],
            "server_kind": str(each["kind"])[:15],
            "in_use": in_use,
        }
        # A second address of the same two cards is the same path.
        ways.setdefault(f"{way['interface']} {way['server_interface']}", way)
    return list(ways.values())[:MOST_WAYS]


def _check_nonce(text: Any) -> str:
    """Checks the form of a nonce, since it is sent to whoever listens at an address.

    Errors: ValueError.
    """
    if not isinstance(text, str) or len(bytes.fromhex(text)) != NONCE_BYTES:
        raise ValueError("the responder's nonce is none")
    return text


def _measure_way(peer: Endpoint, seconds: float) -> Details:
    """Measures the rate of one path in each direction."""
    rates: Details = {}
    try:
        for verb in transfer.VERBS:
            samples = tuple(transfer.initiate(Shape(verb, seconds=seconds), peer))
            rates[f"{verb}_bytes_per_second"] = run_rate(samples)
    except (Unavailable, RuntimeError) as error:
        return {"missing": str(error)}
    return rates
