"""`estimate` and `explain` of observations, as a user's shell runs them."""

import json
from pathlib import Path

import pytest

from bottleneck.estimate.observations import SCHEMA
from bottleneck.report import report

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_an_estimate_shows_its_ceilings_their_rules_and_what_it_does_not_know(bottleneck):
    ended = bottleneck(
        *"estimate --link 1Gbit/s --rtt 0.5ms --disk-read hdd-inner".split(),
        *"--disk-write 500MB/s --size 10GB".split(),
    )
    assert ended.code == 0 and ended.err == ""
    for each in ("105 MB/s", "1448/1538", "RFC 6349", "inner tracks", "need 9 round trips"):
        assert each in " ".join(ended.out.split())
    assert "the client's TCP: use --window" in ended.out
    first, second, third, *_ = ended.out.splitlines()
    assert first == "Expected: 49.9\u2013105 MB/s, limited by the server's disk (read)"
    assert second.startswith("Confidence: ") and not third


def test_a_full_estimate_is_one_screen(bottleneck):
    ended = bottleneck(
        *"estimate --link 1Gbit/s --rtt 0.4ms --window 64KiB".split(),
        "--loss",
        "0.01%",
        *"--disk-read hdd --disk-write nvme --size 10GB".split(),
    )
    assert len(ended.out.splitlines()) <= 30
    assert max(map(len, ended.out.splitlines())) <= 100
    first = "Expected: 64.5\u2013118 MB/s, limited by the network (1 Gbit/s link)"
    assert ended.out.splitlines()[0] == first


def test_an_estimate_as_json_is_one_document_in_bytes_and_seconds(bottleneck):
    ended = bottleneck(
        *"estimate push --link 100Mbit/s --rtt 149ms --window 64KiB".split(),
        *"--loss 0.1% --format json".split(),
    )
    assert ended.code == 0
    document = json.loads(ended.out)
    assert document["schema"] == "copy-bottleneck/estimate/1"
    assert document["given"]["rtt_seconds"] == 0.149 and document["given"]["loss_ratio"] == 0.001
    assert document["verdict"]["cause"] == "loss"
    rates = [each["bytes_per_second"] for each in document["ceilings"]]
    assert rates == sorted(rates)
    assert {"component": "disk", "side": "server", "needs": "--disk-write"} in document["unknown"]


@pytest.mark.parametrize("loss", ["0", "0%", "1e-12", "99.9%"])
@pytest.mark.parametrize(("link", "rtt"), [("0.001B/s", "0.001us"), ("1000TB/s", "1000000min")])
def test_the_extremes_that_are_read_have_an_estimate(bottleneck, loss, link, rtt):
    figures = ("--link", link, "--rtt", rtt, "--window", "1B", "--loss", loss, "--disk-read", link)
    for form in ("text", "json"):
        ended = bottleneck("estimate", *figures, "--size", "1000000TB", "--format", form)
        assert ended.code == 0 and ended.err == ""


def test_observations_are_explained_as_a_report_is(bottleneck):
    ended = bottleneck("explain", EXAMPLES / "gige-file-sharing.toml")
    assert ended.code == 0 and ended.err == ""
    assert "because the server's disk" in " ".join(ended.out.split())
    ended = bottleneck("explain", EXAMPLES / "ticket.toml", "--format", "json")
    document = json.loads(ended.out)
    assert report.loads(ended.out.encode()).tool["observations"] == SCHEMA
    assert document["schema"] == "copy-bottleneck/report/1"
    assert document["diagnosis"]["copies"][0]["verdict"]["cause"] == "inconclusive"
