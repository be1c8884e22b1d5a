"""Conditions that alarm, Nagios' ranges of what is well, and caps that are expected."""

import math

import pytest

from bottleneck.gate import expectation
from bottleneck.gate.expectation import cap, limit
from bottleneck.gate.metrics import ExpectationError


@pytest.mark.parametrize(
    ("text", "alarm", "quiet", "nagios"),
    [
        ("pull.uncached < 80MB/s", 79.9e6, 80e6, "80000000:"),
        ("pull.uncached <= 80MB/s", 80e6, 80.1e6, "80000000:"),
        ("path.rtt > 5ms", 0.0051, 0.005, "~:0.005"),
        ("path.rtt>=5ms", 0.005, 0.0049, "~:0.005"),
        ("loss > 1%", 0.011, 0.01, "~:0.01"),
        ("loss > 0.01", 0.011, 0.01, "~:0.01"),
        ("  tcp.push<1Gbit/s ", 124e6, 125e6, "125000000:"),
        ("pull.uncached=80MB/s:", 79e6, 80e6, "80000000:"),
        ("pull.uncached=80000000:", 79e6, 1e12, "80000000:"),
        ("path.rtt=~:5ms", 0.006, 0.001, "~:0.005"),
        ("path.rtt=5ms", 0.006, 0.001, "0.005"),
        ("cpu.server=@0.9:1", 0.95, 0.5, "@0.9:1"),
        ("cpu.server=@90%:100%", 0.95, 0.5, "@0.9:1"),
        ("pull.cached@smb1 = 10MB/s:20MB/s", 21e6, 15e6, "10000000:20000000"),
    ],
)
def test_a_limit_alarms_where_it_says(text, alarm, quiet, nagios):
    expected = limit(text, "warning")
    assert expected.alarms(alarm) and not expected.alarms(quiet)
    assert expected.range == nagios


def test_the_words_tell_what_holds_and_what_broke():
    expected = limit("pull.uncached < 80MB/s", "critical")
    assert (expected.words, expected.broken) == (">= 80MB/s", "below 80MB/s")
    expected = limit("pull.uncached=80MB/s:", "critical")
    assert (expected.words, expected.broken) == ("in 80MB/s:", "not in 80MB/s:")


@pytest.mark.parametrize("text", ["pull.uncached=80MB/s:", "path.rtt=~:5ms", "cpu.server=@0.9:1"])
def test_a_range_means_what_nagiosplugin_says(text):
    from nagiosplugin import Range

    expected = limit(text, "warning")
    reference = Range(expected.range)
    for value in (0.0, 0.001, 0.005, 0.0051, 0.9, 0.95, 1.0, 2.0, 79e6, 80e6, 1e12):
        assert expected.alarms(value) is not reference.match(value), value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a condition"),
        ("pull.uncached", "not a condition"),
        ("pull.uncached=", "not a condition"),
        ("< 80MB/s", "not a condition"),
        ("pull.uncached < 80", "two ways"),
        ("pull.uncached < 80MB", "not a rate"),
        ("pull.uncached < 5ms", "not a rate"),
        ("pull.uncached < 100Mbps", "two ways"),
        ("path.rtt > 5", "not a time"),
        ("loss > 5ms", "not a share"),
        ("pul.uncached < 80MB/s", "similar: pull.uncached"),
        ("pull.uncached=20:10", "not a range"),
        ("pull.uncached=a:b", "not a rate"),
        ("pull.uncached=1:2:3", "not a rate"),
        ("pull.uncached=1e999:", "not a rate"),
        ("pull.uncached < " + "9" * 5000, "two ways|not a rate"),
    ],
)
def test_what_is_no_limit_is_refused_in_one_line(text, why):
    with pytest.raises(ExpectationError, match=why) as caught:
        limit(text, "warning")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 900


def test_infinity_is_no_figure_of_a_report_s_range():
    assert limit("pull.uncached=:", "warning").high == math.inf


def test_a_cap_is_a_component_with_or_without_side_and_cause():
    assert cap("network") == expectation.Cap("network", "network", None, None)
    expected = cap("push.cached = disk/server/write")
    assert (expected.copy, expected.side, expected.cause) == ("push.cached", "server", "write")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must be one of disk, "),
        ("networking", "must be one of disk, "),
        ("unknown", "must be one of disk, "),
        ("disk/path", "of disk: must be one of client, server"),
        ("disk/read", "use disk/SIDE/read"),
        ("disk/server/loss", "of disk: must be one of "),
        ("disk/server/read/more", "of disk: must be one of "),
        ("tcp.pull=network", "is not a copy"),
        ("pull.unached=network", "similar"),
    ],
)
def test_what_is_no_cap_is_refused(text, why):
    with pytest.raises(ExpectationError, match=why):
        cap(text)


def test_ages_and_shares():
    assert [expectation.age(text) for text in ("26h", "90min", "7d", "600s", "1.5 h")] == [
        26 * 3600,
        5400,
        7 * 86400,
        600,
        5400,
    ]
    assert [expectation.share(text) for text in ("10%", "0.1", "0")] == [0.1, 0.1, 0]
    for text in ("26", "h", "-1h", "0s", "1e9d", "99999999999d"):
        with pytest.raises(ExpectationError):
            expectation.age(text)
    for text in ("100%", "1", "-1%", "ten", "nan"):
        with pytest.raises(ExpectationError):
            expectation.share(text)
    ages = [expectation.age_text(each) for each in (40, 720, 93600, 432000)]
    assert ages == ["40 s", "12 min", "26 h", "5 days"]
