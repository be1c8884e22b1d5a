"""Whose end a slow link is at: named where told figures show it, and the path's elsewhere."""

from __future__ import annotations

import pytest

from bottleneck import observations
from bottleneck.analysis import diagnose
from bottleneck.observations import SCHEMA


def told(text: str):
    head = f'schema = "{SCHEMA}"\ntitle = "A ticket"\ndate = "2026-11-20"\n'
    return observations.told_report(observations.loads((head + text).encode()))


def hosts(client: str | None, server: str | None) -> str:
    links = (("client", client), ("server", server))
    return "".join(f'[{side}]\nlink = "{link}"\n' for side, link in links if link)


def tcp(rate: str, client: str = "", sender: str = "client") -> str:
    name = f'client = "{client}"\n' if client else ""
    return f'[[tcp]]\nsender = "{sender}"\nrate = "{rate}"\n{name}'


PUSH = '[[copy]]\ncopy = "push.cached"\n'
PULL = '[[copy]]\ncopy = "pull.cached"\n'


def side(text: str) -> str | None:
    (found,) = diagnose(told(text)).copies
    assert (found.verdict.component, found.verdict.cause) == ("network", "link-rate")
    return found.verdict.side


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (hosts("1 Gbit/s", None) + tcp("11 MiB/s", "a") + tcp("11 MiB/s", "b") + PUSH, "server"),
        (tcp("113 MB/s", "a") + tcp("118 MB/s", "b") + tcp("116 MB/s", "c") + PUSH, "server"),
        (tcp("11.6 MB/s", "a", "server") + tcp("11.7 MB/s", "b", "server") + PULL, "server"),
        (hosts("1 Gbit/s", "100 Mbit/s") + tcp("90 Mbit/s") + PUSH, "server"),
        (hosts("100 Mbit/s", "1 Gbit/s") + tcp("94 Mbit/s") + PUSH, "client"),
        (hosts("100 Mbit/s", "10 Gbit/s") + PUSH, "client"),
    ],
)
def test_an_end_is_named_where_the_figures_show_it(text, end):
    assert side(text) == end


@pytest.mark.parametrize(
    "text",
    [
        tcp("11 MiB/s", "a") + PUSH,
        tcp("11 MiB/s", "a") + tcp("11 MiB/s", "a") + PUSH,
        tcp("11 MiB/s", "a") + tcp("118 MB/s", "b") + PUSH,
        tcp("30 MB/s", "a") + tcp("30 MB/s", "b") + PUSH,
        tcp("11 MiB/s", "a") + tcp("11 MiB/s") + PUSH,
        hosts("1 Gbit/s", "1 Gbit/s") + tcp("94 Mbit/s") + PUSH,
        hosts("1 Gbit/s", "100 Mbit/s") + tcp("40 Mbit/s") + PUSH,
        hosts("1 Gbit/s", None) + tcp("94 Mbit/s") + PUSH,
    ],
)
def test_elsewhere_it_is_the_path(text):
    """One client alone, clients that differ, a rate of no link, equal ends, a link not filled."""
    assert side(text) == "path"


def test_the_advice_is_for_that_end():
    text = hosts("1 Gbit/s", None) + tcp("11 MiB/s", "a") + tcp("11 MiB/s", "b") + PUSH
    (found,) = diagnose(told(text)).copies
    assert "2 clients get the same" in found.verdict.sentence
    assert found.advice[0].startswith("A 1 Gbit/s link at the server's end")


def test_a_copy_with_a_rate_gets_the_end_too():
    text = hosts("1 Gbit/s", "100 Mbit/s") + tcp("94 Mbit/s") + PUSH + 'rate = "11.4 MB/s"\n'
    assert side(text) == "server"


def test_links_of_measured_reports_stay_the_paths(world):
    world.copy("push.cached", 116)
    assert diagnose(world.report()).copies[0].verdict.side == "path"
