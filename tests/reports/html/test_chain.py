"""The chain of components: the cap is marked where it is, and what is not known is no figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck import report as reports
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import Verdict
from bottleneck.analysis.rules.registry import CAUSES, PLACES
from bottleneck.reports.chain import NARROWEST, PARTS, WIDEST, chain, segments

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def copy():
    """A pull that the server's disk caps."""
    return diagnose(reports.load(DATA / "report-v1-lab-with-agent.json")).chosen


def test_the_cap_is_the_narrowest_part_and_is_marked(copy):
    found = segments(copy)
    (cap,) = [each for each in found if each.capped]
    assert cap is found[-1]
    assert (cap.part.name, cap.part.under) == ("Disk", "server")
    known = [each for each in found if each.ceiling is not None]
    assert min(known, key=lambda each: each.width) is cap
    assert all(NARROWEST <= each.width <= WIDEST for each in found)


def test_a_wider_part_has_the_higher_ceiling(copy):
    known = [each for each in segments(copy) if each.ceiling is not None]
    by_width = sorted(known, key=lambda each: each.width)
    assert by_width == sorted(known, key=lambda each: each.ceiling.bytes_per_second)


def test_every_component_that_can_be_a_cap_has_its_place(copy):
    for component in CAUSES.keys() - {"unknown"}:
        for side in PLACES.get(component, {"client", "server"}):
            cause = min(CAUSES[component])
            capped = replace(copy, verdict=Verdict(component, side, cause, 0.9, None, ""))
            places = [each for each in segments(capped) if each.capped]
            assert len(places) == (2 if (component, side) == ("smb", "path") else 1)


def test_a_part_that_nothing_is_known_of_says_so_and_shows_no_figure(copy):
    bare = replace(copy, ceilings=())
    assert all(each.ceiling is None for each in segments(bare))
    told = [each.told for each in chain(bare).parts]
    assert told.count("not measured") == len(PARTS) - 1
    assert "bottleneck" in told


def test_a_copy_that_was_not_made_has_no_stream(copy):
    idle = replace(
        copy,
        bytes_per_second=None,
        verdict=Verdict("unknown", None, "not-measured", 0.0, None, "it was left out"),
    )
    assert not chain(idle).flows
    assert not any(each.capped for each in chain(idle).parts)


def test_what_this_tool_alone_showed_is_no_part_of_the_way(copy):
    tools = [each for each in copy.ceilings if each.tool]
    assert tools
    shown = [each.ceiling for each in segments(copy)]
    assert not set(map(id, tools)) & set(map(id, shown))


@pytest.mark.parametrize(
    ("name", "initiator", "way"),
    [
        ("pull.cached", "client", "from the server to the client"),
        ("push.cached", "client", "from the client to the server"),
        ("server.push.cached", "server", "from the server to the client"),
        ("server.pull.cached", "server", "from the client to the server"),
    ],
)
def test_the_way_of_the_bytes_is_told(copy, name, initiator, way):
    told = chain(replace(copy, copy=name, initiator=initiator)).sentence
    assert f"The data goes {way} at 24.5 MB/s" in told
