"""Faults of the network between client and server: rows 1 to 8 and 32."""

from __future__ import annotations

import signal
from pathlib import Path

from fault_world import BEFORE, Row, World, usual

NAME = "nas.example"
GONE = frozenset({69})


def kill_server(world: World) -> None:
    """All of smbd."""
    world.signal_server(signal.SIGKILL)


def kill_session(world: World) -> None:
    """The process of smbd that serves the run; before the run there is none."""
    for pid in world.sessions():
        if world.server is not None and pid != world.server.process_id:
            world.call("kill", "-9", pid, check=False)


def reset(world: World) -> None:
    """Each connection with the server ends with a RST; before the run each try does."""
    assert world.server is not None
    if world.moment == BEFORE:
        world.packets(f"tcp dport {world.server.port} reject with tcp reset")
    else:
        world.call("ss", "-K", "dport", "=", f":{world.server.port}", check=False)


def stop_server(world: World) -> None:
    """It holds its connections and answers no more."""
    world.signal_server(signal.SIGSTOP)
    world.undo(world.signal_server, signal.SIGCONT)


def drop(world: World) -> None:
    """Nothing comes through to the server any more."""
    assert world.server is not None
    world.packets(f"tcp dport {world.server.port} drop")


def lose(world: World) -> None:
    """Two of a hundred packets."""
    assert world.server is not None
    world.packets(f"tcp dport {world.server.port} numgen random mod 100 < 2 drop")


def hole(world: World) -> None:
    """Small packets go through, large ones do not."""
    assert world.server is not None
    world.packets(f"tcp dport {world.server.port} meta length > 1000 drop")


def named(world: World) -> None:
    """The server has a name, in a file of hosts of the cell's own."""
    hosts = world.own / "hosts"
    hosts.write_text(f"127.0.0.1 {NAME}\n")
    world.mount(Path("/etc/hosts"), "--bind", hosts)
    world.host = NAME


def dead_resolver(world: World) -> None:
    """The name is known no more, and whoever resolves names does not answer."""
    (world.own / "hosts").write_text("")
    resolver = world.own / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.53\n")
    world.mount(Path("/etc/resolv.conf"), "--bind", resolver)
    world.packets("udp dport 53 drop")


def by_six(world: World) -> None:
    """IPv6 alone."""
    world.address = "::1"
    world.call("ip", "address", "del", "127.0.0.1/8", "dev", "lo", check=False)


def lose_six(world: World) -> None:
    """The server's address goes."""
    world.call("ip", "-6", "address", "del", "::1/128", "dev", "lo")
    world.undo(world.call, "ip", "-6", "address", "add", "::1/128", "dev", "lo")


def both(world: World) -> None:
    """The name has an IPv6 address in front of the other."""
    named(world)
    (world.own / "hosts").write_text(f"::1 {NAME}\n127.0.0.1 {NAME}\n")


def dead_six(world: World) -> None:
    """Whatever goes by IPv6 is lost."""
    world.packets("ip6 daddr ::1 drop")


def firewall(world: World) -> None:
    """Every port but the server's is firewalled."""
    assert world.server is not None
    world.packets(f"tcp flags & (syn|ack) == syn tcp dport != {world.server.port} reject")


UNAWARE = "the server does not know yet that the client is gone"
ROWS = (
    Row(
        *("1", "smbd killed", kill_server),
        before=GONE,
        during=usual(69),
        says="refused|listens",
        kept="the server that would have removed them is gone",
    ),
    Row("1b", "smbd's session killed", kill_session),
    Row("2", "connections reset", reset, before=GONE, during=usual(69)),
    Row(
        *("3", "server stopped, half open", stop_server),
        before=GONE,
        during=usual(69),
        kept="nobody can tell the run that they are gone: its note waits",
    ),
    Row("4", "black hole", drop, before=GONE, during=usual(69), kept=UNAWARE),
    Row("5", "2% of packets lost", lose),
    Row("6", "MTU black hole", hole, before=usual(69), during=usual(69)),
    Row("7", "dead resolver", dead_resolver, prepare=named, before=GONE, says="resolv"),
    Row(
        *("8", "IPv6 only, address gone", lose_six),
        prepare=by_six,
        before=GONE,
        during=usual(69),
        kept=UNAWARE,
    ),
    Row("8b", "two addresses, IPv6 dead", dead_six, prepare=both),
    Row("32", "all other ports firewalled", firewall),
)
