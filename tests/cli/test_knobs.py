"""The knobs of `probe`: which stage has which, what their words set, and what a run makes of it."""

from __future__ import annotations

import pytest

from bottleneck.cli import exits, knobs
from bottleneck.cli.app import run
from probes import STAGES
from probes.core.field_types import keys
from probes.core.stage import Refused, module_of

KIB = 1 << 10


@pytest.mark.parametrize(
    ("stage", "words", "fields"),
    [
        ("tcp", {"streams": "8", "seconds": "10"}, {"streams": 8, "seconds": 10.0}),
        (
            "tcp",
            {"rate": "80Mbit/s", "seconds": "500ms"},
            {"bytes_per_second": 1e7, "seconds": 0.5},
        ),
        ("tcp", {"direction": "pull"}, {"verb": "pull"}),
        ("disk", {"access": "write"}, {"verb": "write"}),
        ("loopback", {"window": "64KiB"}, {"window_bytes": 64 * KIB}),
        (
            "udp",
            {"rate": "2MB/s", "buffer": "512B"},
            {"bytes_per_second": 2e6, "payload_bytes": 512},
        ),
        ("matrix", {"streams": "1,4", "window": "64KiB"}, {"streams": (1, 4), "windows": (65536,)}),
        (
            "smb-copy",
            {"request-size": "1MiB", "depth": "4"},
            {"request_bytes": 1 << 20, "depth": 4},
        ),
    ],
)
def test_a_word_sets_the_field_that_the_stages_setting_has(stage, words, fields):
    assert knobs.settings(stage, words) == fields


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_has_the_knobs_whose_field_its_setting_has(stage):
    field_names = keys(module_of(stage).Setting)
    for knob in knobs.KNOBS:
        has = stage in knob.stages and any(each in field_names for each in knob.keys)
        assert (knob in knobs.stage_knobs(stage)) == has


@pytest.mark.parametrize(
    ("stage", "words", "why"),
    [
        ("path", {"streams": "2"}, "probe path: --streams not allowed here; it has --seconds"),
        ("tcp", {"streams": "0"}, "--streams: '0' is not a whole number of 1 or more"),
        ("tcp", {"streams": "65"}, "probe tcp: no such transfer: push, 65 streams"),
        ("tcp", {"window": "64K"}, "--window: '64K' can be read in two ways: write 64kB or 64KiB"),
        ("udp", {"rate": "10"}, "--rate: '10' can be read in two ways: write 10MB/s or 10Mbit/s"),
        ("udp", {"direction": "read"}, "--direction: 'read' is none of push, pull"),
        ("sweep", {"direction": "push"}, "probe sweep: --direction not allowed here; it has"),
        ("latency", {"seconds": "soon"}, "--seconds: 'soon' is not a time: write for example"),
        ("matrix", {"streams": "1,x"}, "--streams: 'x' is not a whole number of 1 or more"),
    ],
)
def test_a_knob_that_the_stage_has_not_and_a_word_that_is_none_are_refused(stage, words, why):
    with pytest.raises(Refused) as refused:
        knobs.settings(stage, words)
    assert (refused.value.kind, refused.value.text[: len(why)]) == ("usage", why)


def test_the_help_of_one_stage_shows_its_own_knobs_alone(capsys):
    assert run(["probe", "udp", "--help"]) == exits.DONE
    of_udp = capsys.readouterr().out
    assert "--rate RATE" in of_udp and "--streams" not in of_udp
