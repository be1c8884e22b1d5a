"""Several clients at once: what the judgement makes of their rates, and what is said of it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck.analysis.finding import Words
from bottleneck.cli import fleet as commands
from bottleneck.cli.fleet_together import checked_fleet
from bottleneck.documents import fleet as documents
from bottleneck.documents import fleet_rows, fleet_together
from bottleneck.fleet.collected import AT_ONCE, FleetRates, collect
from bottleneck.fleet.records import Fleet, Node, Pair, Rate, Segment, Suspect
from bottleneck.fleet.result import judge_pairs
from bottleneck.fleet.together import LINK, Track, _level, judge, single_rates, track
from bottleneck.report import report
from probes.core.stage import Refused

LINK_RATE = Words("network", "path", "link-rate")
DISK, CPU = Words("disk", "server", "read"), Words("cpu", "server", "all-cores")
OWN = Words("network", "client", "link-rate")
WINDOW = Words("tcp", "server", "receive-window")
CLIENTS = ("pc1", "pc2", "pc3")
MB = 1e6
FLEET = Fleet(CLIENTS, ("nas1",))


def steady(rate, opened=0.0, closed=10.0):
    """A copy of that rate between two moments."""
    count = round((closed - opened) * 10)
    moments = tuple(opened + index / 10 for index in range(count + 1))
    return Track(moments, tuple(round(rate * index / 10) for index in range(count + 1)))


def together(single, at_once, verdict=None, fleet=FLEET, later=None, votes=(), copy="pull.cached"):
    """The judgement of clients whose rates are told in MB/s, each by itself and at once."""
    verdicts = verdict if isinstance(verdict, list) else [verdict] * 3
    rates = [
        Rate(Pair(client, "nas1"), rate * MB, words, 0.95 if words else 0.0)
        for client, rate, words in zip(fleet.clients, single, verdicts, strict=False)
    ]
    tracks = {
        Pair(client, "nas1"): steady(rate * MB, *(later or {}).get(client, ()))
        for client, rate in zip(fleet.clients, at_once, strict=False)
    }
    voted = [Rate(Pair("pc1", "nas1"), MB, words, 0.9) for words in votes]
    return judge(fleet, copy, rates, tracks, voted)


def names(group):
    return [(each.node.name, each.verdict) for each in group.suspects]


def test_the_link_that_one_alone_fills_limits_the_sum():
    group = together([11.8] * 3, [3.9] * 3, LINK_RATE)
    assert group.kind == "shared" and names(group) == [("nas1", LINK)] and group.is_decided
    assert group.confidence > 0.9 and group.link_bits_per_second == 100_000_000
    first, second, *_ = fleet_together.sentences(group)
    assert first == (
        "3 clients at once pull 11.7 MB/s in all, 3.90 MB/s each, because the link of server nas1 "
        "(100 Mbit/s) limits the sum."
    )
    assert second.startswith("One by itself gets 11.8 MB/s.")
    assert fleet_together.headline(group).startswith(
        "Bottleneck: server nas1 (server network: link"
    )


def test_what_one_of_several_names_is_sure_only_if_the_sum_looks_like_it():
    group = together([11.8] * 3, [3.9] * 3, [LINK_RATE, None, LINK_RATE])
    assert names(group) == [("nas1", LINK)] and group.confidence > 0.8
    assert names(together([11.8] * 3, [3.9] * 3)) == [("nas1", LINK)]
    assert len(together([11.8] * 3, [3.9] * 3, OWN).suspects) == 3
    group = together([30] * 3, [10] * 3, [DISK, None, None])
    assert len(group.suspects) == 3 and group.suspects[0].verdict == DISK and not group.is_decided


@pytest.mark.parametrize("words", [DISK, CPU])
def test_what_the_server_has_once_is_named_by_those_that_reach_the_sum(words):
    group = together([50, 52, 20], [16, 17, 16], [words, words, OWN])
    assert (group.kind, names(group)) == ("shared", [("nas1", words)])


def test_clients_that_get_what_they_get_by_themselves_reach_no_shared_limit():
    group = together([5, 5, 2], [5, 4.9, 2], [OWN, OWN, OWN])
    assert group.kind == "none" and group.suspects == () and group.is_decided
    assert fleet_together.headline(group) == "No fault found: no shared limit up to 11.9 MB/s"


def test_a_limit_that_none_reaches_by_itself_is_the_sum():
    group = together([60, 60, 60], [39.2, 39.2, 39.2], OWN, votes=(None, None, None))
    assert group.kind == "shared" and group.link_bits_per_second == 1_000_000_000
    assert names(group) == [("nas1", LINK)] and group.confidence == pytest.approx(0.8)
    of_agents = together([60, 60, 60], [39.2, 39.2, 39.2], OWN, votes=(CPU, CPU, None))
    assert names(of_agents) == [("nas1", CPU)], "a verdict says more than what the sum looks like"


def test_without_any_verdict_all_that_clients_share_is_told_and_nothing_named():
    group = together([30, 30, 30], [14, 14, 14])
    assert group.kind == "shared" and not group.is_decided and group.confidence == 0
    assert {each.verdict.component for each in group.suspects} == {"network", "disk", "cpu"}
    assert fleet_together.headline(group).startswith("Bottleneck: not identified, server nas1 (")
    pushed = together([30, 30, 30], [14, 14, 14], copy="push.cached")
    assert Words("disk", "server", "write") in {each.verdict for each in pushed.suspects}


@pytest.mark.parametrize("words", [WINDOW, Words("network", "path", "loss"), OWN])
def test_what_limits_each_connection_is_not_what_they_share(words):
    group = together([30, 30, 30], [10, 10, 10], words)
    assert words not in {each.verdict for each in group.suspects} and not group.is_decided


def test_verdicts_that_disagree_leave_it_undecided_between_two():
    group = together([50, 50, 50], [17, 17, 17], [DISK, CPU, DISK])
    assert [words for _, words in names(group)] == [DISK, CPU] and not group.is_decided
    assert "the disk of server nas1 or the CPU of server nas1" in " ".join(
        fleet_together.sentences(group)
    )


def test_an_uplink_that_all_pass_is_as_likely_as_the_servers_link():
    site = Segment(Node("uplink", "east"), frozenset(CLIENTS))
    group = together([11.8] * 3, [3.9] * 3, LINK_RATE, replace(FLEET, segments=(site,)))
    assert [each.node for each in group.suspects] == [Node("server", "nas1"), site.node]
    assert group.confidence < 0.7 and not group.is_decided
    some = Segment(Node("uplink", "east"), frozenset(CLIENTS[:2]))
    group = together([11.8] * 3, [3.9] * 3, LINK_RATE, replace(FLEET, segments=(some,)))
    assert group.is_decided


def test_a_sum_that_is_hardly_less_is_in_doubt():
    group = together([10, 10, 10], [8, 8, 8], LINK_RATE)
    assert group.kind == "undecided" and not group.suspects
    assert "hardly less" in fleet_together.headline(group)


def test_a_starved_client_is_told_beside_the_limit():
    group = together([11.8] * 3, [5.6, 5.6, 0.6], LINK_RATE)
    assert [each.is_starved for each in group.clients] == [False, False, True]
    assert group.kind == "shared" and names(group) == [("nas1", LINK)]
    assert list(fleet_together.sentences(group))[-1].startswith("pc3 is starved: it gets 600 kB/s")
    assert fleet_together.state(group) == "critical"


def test_where_only_one_gets_less_it_is_undecided_between_it_and_the_server():
    group = together([10, 10, 10], [10, 10, 1], LINK_RATE)
    assert group.suspects == (Suspect(Node("client", "pc3")), Suspect(Node("server", "nas1")))
    assert group.kind == "undecided" and not group.is_decided


def test_a_slow_client_that_gets_all_that_it_can_is_not_starved():
    group = together([11.8, 11.8, 1.0], [5.3, 5.4, 1.0], LINK_RATE)
    assert not any(each.is_starved for each in group.clients)
    assert [round(e.fair_bytes_per_second / MB, 2) for e in group.clients] == [5.35, 5.35, 1.0]


def test_where_a_copy_was_not_made_alone_the_uncached_one_stands_for_it():
    pairs = [Pair(client, "nas1") for client in CLIENTS]
    cached = [Rate(pairs[0], 9.0), Rate(pairs[1], 5.0, at_most=True)]
    uncached = [Rate(pairs[0], 7.0), Rate(pairs[1], 6.0), Rate(pairs[2], 6.0, at_most=True)]
    copies = {"push.cached": cached, "push.uncached": uncached}
    assert single_rates(copies, "push.cached") == [cached[0], uncached[1]]


@pytest.mark.parametrize(
    ("wishes", "total", "level"),
    [((10, 10), 10, 5), ((1, 10, 10), 11, 5), ((1, 1), 2, float("inf")), ((4, 8), 8, 4)],
)
def test_a_sum_is_shared_equally_among_those_that_can_use_it(wishes, total, level):
    assert _level(wishes, total) == level


def test_rates_count_only_while_all_copy():
    later = {"pc1": (0.0, 6.0), "pc2": (3.0, 9.0), "pc3": (1.0, 8.0)}
    group = together([9, 9, 9], [3, 3, 3], LINK_RATE, later=later)
    assert group.seconds == pytest.approx(2.0)
    assert [e.bytes_per_second for e in group.clients] == pytest.approx([3 * MB] * 3, rel=0.01)


def test_a_copy_is_put_on_the_clock_of_its_answer_without_its_ends(report_of):
    pulled = report_of("pc1", "nas1")
    pulled["elapsed_seconds"] = 50.0
    (step,) = (
        each
        for each in pulled["steps"]
        if (each["setting"].get("copy"), each["setting"].get("end")) == ("pull.cached", "folder")
    )
    outcome = step["outcome"]
    samples = [[0.0, 0], [1.0, 10], [2.0, 20], [3.0, 30], [3.1, 60], [3.2, 60]]
    outcome["runs"] = [samples]
    outcome["samples"] = samples
    outcome["bytes_per_second"] = dict.fromkeys(("median", "low", "high"), 60 / 3.2) | {"runs": 1}
    outcome["details"].pop("window_rates_bytes_per_second", None)
    assert track(report.from_json(pulled), "pull.cached", 1000.0) is None, "it does not say when"
    outcome["details"]["opened_after_seconds"] = 40.0
    assert track(report.from_json(pulled), "pull.cached", 1000.0) == Track(
        (991.0, 992.0, 993.0), (10, 20, 30)
    )


def test_copies_that_do_not_overlap_conclude_nothing():
    later = {"pc1": (0.0, 4.0), "pc2": (3.0, 9.0)}
    group = together([9, 9, 9], [3, 3, 3], LINK_RATE, later=later)
    assert (group.kind, group.suspects, group.clients) == ("undecided", (), ())
    (only,) = fleet_together.sentences(group)
    assert "did not overlap" in only and not group.is_decided


def test_a_client_that_is_missing_costs_itself():
    group = together([11.8, 11.8], [5.9, 5.9], LINK_RATE)
    assert names(group) == [("nas1", LINK)] and not group.is_decided
    assert next(fleet_together.sentences(group)).startswith("2 of 3 clients at once pull 11.8 MB/s")
    group = together([11.8], [5.9], LINK_RATE)
    assert fleet_together.headline(group).endswith("(1 of 3 clients were measured)")


def test_two_clients_that_differ_in_a_sign_are_two_in_a_table_too():
    pairs = [Pair(name, "@nas") for name in ("=pc", "pc", "+pc")]
    rates = {"pull.cached": [Rate(each, 11.8 * MB) for each in pairs]}
    fleet = Fleet(tuple(each.client for each in pairs), ("@nas",))
    text = fleet_rows.table_csv(judge_pairs(rates, fleet))
    names = [line.split(",")[1:3] for line in text.splitlines()[1:]]
    assert names == [["'+pc", "'@nas"], ["'=pc", "'@nas"], ["pc", "'@nas"]]


def test_every_document_has_what_each_client_gets():
    group = together([11.8] * 3, [5.6, 5.6, 0.6], LINK_RATE)
    rates = {"pull.cached": [Rate(e.pair, e.alone_bytes_per_second) for e in group.clients]}
    result = replace(judge_pairs(rates, FLEET), together=group)
    plain = json.loads(fleet_rows.to_json(result))
    assert plain["schema"] == fleet_rows.SCHEMA
    assert [each["starved"] for each in plain["together"]["taken"]] == [False, False, True]
    assert plain["together"]["sum_bytes_per_second"] == pytest.approx(11.8 * MB, rel=0.01)
    assert ",pc3,nas1,together.pull.cached,600000\n" in fleet_rows.table_csv(result)
    judged = documents.judgement(result)
    assert judged.state == "critical"
    assert [each.state for each in judged.judged[:3]] == ["ok", "ok", "critical"]
    for text in (documents.page(result), documents.ticket(result)):
        assert "pc3" in text and "3 clients at once" in text
    without = json.loads(fleet_rows.to_json(replace(result, together=None)))
    assert "together" not in without


def test_reports_of_copies_at_once_are_no_runs_of_their_pairs(tmp_path, report_of):
    usual = json.dumps(report_of("pc1", "nas1"))
    (tmp_path / "pc1@nas1.json").write_text(usual)
    for name in (f"pc1@nas1{AT_ONCE}.json", f"pc1@nas1{AT_ONCE}.run2.json"):
        (tmp_path / name).write_text(usual)
    assert collect(tmp_path).tests == {Pair("pc1", "nas1"): 1}


def test_redacted_names_hold_for_the_copies_at_once_too():
    pair, hidden = Pair("pc1", "nas1"), Pair("client-1", "server-1")
    reports = FleetRates(at_once=FleetRates(report_files={pair: (Path("kept"), 3.0)}))
    reports.at_once.rates["pull.cached"] = [Rate(pair, 1.0)]
    reports.rename({pair: hidden}, str)
    assert reports.at_once.report_files == {hidden: (Path("kept"), 3.0)}
    assert reports.at_once.pairs() == {hidden}


HOSTS = "pc1\npc2\npc3\n"


ALL = {"all": True, "resume": True, "reports": Path()}


@pytest.mark.parametrize(
    ("count", "options", "why"),
    [
        (4, {}, "--together 4: must be from 2 to 3, all clients"),
        (1, {}, "--together 1: must be from 2 to 3, all clients"),
        *((2, {key: value}, "--together: not allowed with --all") for key, value in ALL.items()),
        (None, {"direction": "push"}, "--direction: not allowed without --together"),
        (2, {"direction": "up"}, "--direction 'up': must be one of pull, push"),
    ],
)
def test_what_makes_no_sense_is_refused(count, options, why):
    with pytest.raises(Refused) as refused:
        checked_fleet(FLEET, commands.Tests(together=count, **options))
    assert (refused.value.kind, refused.value.text[: len(why)]) == ("usage", why)


def test_the_first_clients_are_those_that_copy_at_once_each_pair_once():
    fleet, tests = checked_fleet(FLEET, commands.Tests(together=2))
    assert fleet.clients == CLIENTS[:2] and tests.all
    assert checked_fleet(FLEET, commands.Tests()) == (FLEET, commands.Tests())


@pytest.mark.long
def test_more_than_one_share_is_wrong_usage(bottleneck, tmp_path):
    (tmp_path / "hosts").write_text(HOSTS)
    words = ("fleet", "hosts", "--share", "//nas1/x", "--share", "//nas2/x", "--together", "2")
    ended = bottleneck(*words, cwd=tmp_path)
    assert ended.code == 64
    why = "--together: needs INVENTORY and one --share, found 2"
    assert ended.complaint.strip() == f"bottleneck: {why}"


@pytest.mark.long
def test_a_plan_says_what_would_be_moved_and_runs_nothing(bottleneck, tmp_path):
    (tmp_path / "hosts").write_text(HOSTS)
    words = ("fleet", "hosts", "--share", "//nas1/x", "--together", "2", "--plan")
    ended = bottleneck(*words, cwd=tmp_path)
    assert ended.code == 0, ended.complaint
    assert "Then 2 clients at once: pull.cached, about 10 s each" in ended.out
    assert "at most 8.25 GiB in all" in " ".join(ended.out.split())
    group = json.loads(bottleneck(*words, "--direction", "push", "--json", "-", cwd=tmp_path).out)
    assert group["clients"] == ["pc1", "pc2"] and group["tests"] == 2
    assert group["together"] == {
        "clients": 2,
        "copy": "push.cached",
        "copy_seconds": 10.0,
        "bytes_at_most": 2 << 30,
    }
    assert sorted(each.name for each in tmp_path.iterdir()) == ["hosts"]
