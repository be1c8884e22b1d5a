"""Whose end a slow link is at: named where told figures show it, and the path's elsewhere."""

from __future__ import annotations

import pytest


def hosts(client: str | None, server: str | None) -> str:
    links = (("client", client), ("server", server))
    return "".join(f'[{side}]\nlink = "{link}"\n' for side, link in links if link)


def tcp(rate: str, client: str = "", sender: str = "client") -> str:
    name = f'client = "{client}"\n' if client else ""
    return f'[[tcp]]\nsender = "{sender}"\nrate = "{rate}"\n{name}'


PUSH = '[[copy]]\ncopy = "push.cached"\n'
PULL = '[[copy]]\ncopy = "pull.cached"\n'
UNEQUAL = hosts("1 Gbit/s", "100 Mbit/s")
LINKS = {
    "two clients get the same": pytest.param(
        "server", hosts("1 Gbit/s", None) + tcp("11 MiB/s", "a") + tcp("11 MiB/s", "b") + PUSH
    ),
    "three do": pytest.param(
        "server", tcp("113 MB/s", "a") + tcp("118 MB/s", "b") + tcp("116 MB/s", "c") + PUSH
    ),
    "of pulls": pytest.param(
        "server", tcp("11.6 MB/s", "a", "server") + tcp("11.7 MB/s", "b", "server") + PULL
    ),
    "the server's link is the slower one": ("server", UNEQUAL + tcp("90 Mbit/s") + PUSH),
    "the client's is": ("client", hosts("100 Mbit/s", "1 Gbit/s") + tcp("94 Mbit/s") + PUSH),
    "by what is claimed alone": ("client", hosts("100 Mbit/s", "10 Gbit/s") + PUSH),
    "of a copy with a rate": pytest.param(
        "server", UNEQUAL + tcp("94 Mbit/s") + PUSH + 'rate = "11.4 MB/s"\n'
    ),
    "one client alone": ("path", tcp("11 MiB/s", "a") + PUSH),
    "the same one twice": ("path", tcp("11 MiB/s", "a") + tcp("11 MiB/s", "a") + PUSH),
    "clients that differ": ("path", tcp("11 MiB/s", "a") + tcp("118 MB/s", "b") + PUSH),
    "a rate of no link": ("path", tcp("30 MB/s", "a") + tcp("30 MB/s", "b") + PUSH),
    "one without a name": ("path", tcp("11 MiB/s", "a") + tcp("11 MiB/s") + PUSH),
    "equal ends": ("path", hosts("1 Gbit/s", "1 Gbit/s") + tcp("94 Mbit/s") + PUSH),
    "a link that is not filled": ("path", UNEQUAL + tcp("40 Mbit/s") + PUSH),
    "one end's is not known": ("path", hosts("1 Gbit/s", None) + tcp("94 Mbit/s") + PUSH),
}


@pytest.mark.parametrize(("side", "text"), LINKS.values(), ids=LINKS)
def test_an_end_is_named_where_the_figures_show_it(load_toml, side, text, expect):
    expect(load_toml(text), f"network/{side}/link-rate")


def test_links_of_measured_reports_stay_the_paths(world, expect):
    world.copy("push.cached", 116)
    expect(world, "network/path/link-rate")
