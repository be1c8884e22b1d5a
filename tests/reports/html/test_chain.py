"""The chain of parts: the bottleneck is marked where it is, and what is unknown is no figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck.analysis.finding import Verdict
from bottleneck.analysis.rules.registry import CAUSES, PLACES
from bottleneck.reports.copies import NARROWEST, WIDEST, flow
from tests import stored_reports
from tests.stored_reports import diagnose

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def known():
    """A report of a pull that the server's disk caps."""
    return stored_reports.load(DATA / "report-v1-lab-with-agent.json")


@pytest.fixture
def places(known):
    """Of its headline as it is, or with other fields."""
    diagnosis = diagnose(known)

    def of(**fields):
        found = list(flow(known, diagnosis, replace(diagnosis.chosen, **fields)))
        return found[0].places if found else ()

    return of


def test_the_bottleneck_is_the_narrowest_part_and_is_marked(places):
    (cap,) = [each for each in places() if each.mark == "bottleneck"]
    assert cap.name == "server disk"
    known = [each for each in places() if each.width is not None]
    assert min(each.width for each in known) == cap.width
    assert all(NARROWEST <= each.width <= WIDEST for each in known)


def test_every_component_that_can_be_a_cap_has_its_place(known, places):
    limits = diagnose(known).chosen.ceilings
    for component in CAUSES.keys() - {"unknown"}:
        for side in PLACES.get(component, {"client", "server"}):
            cause = min(CAUSES[component])
            limit = replace(limits[0], component=component, side=side, cause=cause)
            verdict = Verdict(component, side, cause, 0.9, limit.bytes_per_second, "")
            found = places(verdict=verdict, ceilings=(limit, *limits))
            assert [each.mark for each in found].count("bottleneck") == 1, (component, side)


def test_a_part_that_nothing_is_known_of_shows_no_figure(known, places):
    (one,) = [each for each in diagnose(known).chosen.ceilings if each.component == "network"]
    bare = places(ceilings=(one,))
    values = {each.name: each.value for each in bare}
    assert values["client disk"] == "?"
    assert values["client CPU"] == values["server CPU"] == "-"
    assert all(each.width is None for each in bare if each.value in "?-")


def test_a_copy_that_was_not_made_has_no_chain(places):
    assert places(bytes_per_second=None) == ()
    assert places(ceilings=()) == ()


def test_what_this_tool_alone_showed_is_no_part_of_the_way(known, places):
    assert any(each.tool for each in diagnose(known).chosen.ceilings)
    assert not any("this tool" in each.name for each in places())


@pytest.mark.parametrize(
    ("name", "initiator", "first", "last"),
    [
        ("pull.cached", "client", "server cache", "client disk"),
        ("push.uncached", "client", "client disk", "server disk"),
        ("server.push.cached", "server", "server cache", "client disk"),
        ("server.pull.uncached", "server", "client disk", "server disk"),
    ],
)
def test_the_places_stand_in_the_order_of_the_data(places, name, initiator, first, last):
    found = [each.name for each in places(copy=name, initiator=initiator)]
    assert (found[0], found[-1]) == (first, last)
