"""`bottleneck fleet --reports DIR` and --plan, as a user runs them."""

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema

from bottleneck.fleet import collected, inventory
from probes.core.stage import Refused

DATA = Path(__file__).parents[1] / "data"


def slow_nas2(client, server):
    return 4.0 if server == "nas2" else 1.0


@pytest.fixture
def fleet(bottleneck):
    return lambda *arguments, **options: bottleneck("fleet", *arguments, **options)


@pytest.mark.parametrize("at_sign", [False, True], ids=["as-they-say", "by-file-name"])
def test_the_server_that_slow_pairs_share_is_named(fleet, reports, at_sign):
    ended = fleet("--reports", reports(slow_nas2, at_sign))
    lines = ended.out.splitlines()
    assert ended.code == 0 and not ended.err
    assert lines[0] == "Bottleneck: server nas2 (server disk: read)"
    assert "6 of 6 measured pairs of server nas2" in lines[1]
    assert len(lines) <= 30 and max(map(len, lines)) <= 100


@pytest.mark.long
def test_all_formats_hold_it(fleet, reports, tmp_path):
    files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "html", "ticket", "junit", "csv")}
    options = [word for kind, file in files.items() for word in (f"--{kind}", file)]
    folder = reports(slow_nas2)
    for _ in range(2):  # an earlier document of its own is replaced
        assert fleet("--reports", folder, *options).code == 0
    tree = json.loads(files["json"].read_text())
    assert tree["schema"] == "copy-bottleneck/fleet/1" and tree["status"] == "complete"
    (culprit,) = tree["culprits"]
    assert (culprit["kind"], culprit["name"], culprit["slow_pairs"]) == ("server", "nas2", 6)
    assert culprit["verdict"]["component"] == "disk"
    explained = [each for each in tree["pairs"] if each["explained_by"]]
    assert {each["server"] for each in explained} == {"nas2"} and len(explained) == 6
    page = files["html"].read_text()
    assert 'class="heat"' in page and "heat-4" in page and "<script" not in page
    assert files["ticket"].read_text().startswith("# Bottleneck: server nas2")
    xmlschema.XMLSchema(DATA / "junit-10.xsd").validate(files["junit"])
    suite = ElementTree.parse(files["junit"]).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("18", "6")
    assert len(files["csv"].read_text().splitlines()) > 18


def test_nagios_has_its_line_and_its_code(fleet, reports):
    ended = fleet("--reports", reports(slow_nas2), "--format", "nagios")
    assert ended.code == 2
    assert ended.out.startswith("BOTTLENECK CRITICAL - Bottleneck: server nas2")


def test_a_healthy_fleet_names_no_host_and_what_all_pairs_say(fleet, reports):
    ended = fleet("--reports", reports(), "--json", "-")
    tree = json.loads(ended.out)
    assert ended.code == 0 and tree["culprits"] == [] == tree["undecided"]
    assert tree["sentence"] == "Bottleneck: server disk: read, the same for 18 of 18 pairs"


def test_a_rate_that_is_expected_shows_what_all_share(fleet, reports):
    folder = reports(slow_nas2)
    for file in folder.iterdir():
        if "nas2" not in file.name:
            file.unlink()
    tree = json.loads(fleet("--reports", folder, "--target-rate", "24MB/s", "--json", "-").out)
    assert [each["name"] for each in tree["culprits"]] == ["nas2"]


def test_files_that_are_no_report_are_told_in_a_line_and_skipped(fleet, reports, tmp_path):
    folder = reports(slow_nas2)
    (folder / "list.json").write_text("[1]")
    (folder / "broken.json").write_text('{"schema": "copy-bottle')
    (folder / "other.json").write_text('{"schema": "copy-bottleneck/fleet/1"}')
    (folder / "notes.txt").write_text("not looked at")
    (folder / "empty.json").touch()
    (folder / "folder.json").mkdir()
    ended = fleet("--reports", folder)
    assert ended.code == 0
    assert len(ended.err.splitlines()) == 5 and ended.err.count("; skipped") == 5
    assert "server nas2" in ended.out.splitlines()[0]


def test_redacted_reports_are_told_apart_by_the_names_of_their_files(fleet, reports, tmp_path):
    from bottleneck.records.redaction import Redaction

    folder = reports(slow_nas2, at_sign=True)
    for file in folder.iterdir():
        file.write_text(json.dumps(Redaction().document(json.loads(file.read_text()))))
    assert "server nas2" in fleet("--reports", folder).out.splitlines()[0]
    (folder / "pc0@nas0.json").rename(folder / "pc0.json")
    assert "names are redacted; name the file CLIENT@SERVER.json" in fleet("--reports", folder).err


def test_names_are_hidden_where_that_is_asked_for(fleet, reports, tmp_path):
    folder = reports(slow_nas2)
    (folder / "nas1-notes.json").write_text("[1]")
    page = tmp_path / "page.html"
    ended = fleet("--reports", folder, "--redact", "--html", page)
    assert "server server-3" in ended.out.splitlines()[0]
    for text in (ended.out, ended.err, page.read_text()):
        assert "nas" not in text and "pc1" not in text


def test_a_report_without_a_copy_is_a_pair_that_is_missing(fleet, reports, report_of):
    folder = reports(slow_nas2)
    report = report_of("pc6", "nas0")
    report["steps"], report["notes"], report["status"] = [], ["cannot log in"], "failed"
    (folder / "lost.json").write_text(json.dumps(report))
    ended = fleet("--reports", folder, "--json", "-")
    tree = json.loads(ended.out)
    assert ended.code == 3
    assert tree["missing"] == [{"client": "pc6", "server": "nas0", "reason": "cannot log in"}]


@pytest.mark.parametrize("name", ["pc5@nas0.json", "pc5-nas0.json"])
def test_no_fleet_is_whole_without_a_report_that_cannot_be_read(fleet, reports, name):
    folder = reports(at_sign=True)
    lost = (folder / "pc5@nas0.json").rename(folder / name)
    lost.write_text(lost.read_text()[:5000])
    ended = fleet("--reports", folder)
    assert ended.code == 3
    assert "cannot be read: not JSON" in " ".join(ended.out.split())
    ended = fleet("--reports", folder, "--format", "nagios")
    assert ended.code == 3 and "[UNKNOWN] " in ended.out


def test_a_further_run_that_cannot_be_read_costs_its_pair_nothing(fleet, reports):
    folder = reports(slow_nas2, at_sign=True)
    (folder / "pc0@nas0.run2.json").write_text("{")
    assert fleet("--reports", folder).code == 0


def test_a_fleet_without_a_readable_report_is_no_wrong_usage(fleet, tmp_path):
    (tmp_path / "pc0@nas0.json").touch()
    ended = fleet("--reports", tmp_path)
    assert ended.code == 3 and ended.out.startswith("Bottleneck: not identified (no copy")
    assert "pc0 with nas0: its report cannot be read: empty" in ended.out


def test_a_folder_that_cannot_be_listed_is_told(tmp_path, monkeypatch):
    def denied(top, onerror):
        onerror(PermissionError(13, "Permission denied", str(tmp_path / "site")))
        return iter(())

    monkeypatch.setattr(collected.os, "walk", denied)
    reports = collected.collect(tmp_path)
    assert reports.unread == {"site": "cannot be listed: Permission denied"}


def test_a_client_with_two_slow_pairs_and_a_fast_one_is_suspected(fleet, reports):
    slow = {("pc0", "nas0"), ("pc0", "nas1")}
    ended = fleet("--reports", reports(lambda *pair: 4.0 if pair in slow else 1.0))
    lines = ended.out.splitlines()
    assert ended.code == 3
    assert lines[0] == "Bottleneck: not identified, client pc0 is suspected"
    assert "All are pairs of client pc0" in lines[1]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "use --reports DIR"),
        (("--reports", "nowhere"), "--reports nowhere: not a directory"),
        (("--reports", "."), "no report of a pair found"),
        (("--plan",), "needs INVENTORY and --share"),
        (("nowhere.yml", "--plan"), "INVENTORY nowhere.yml: not found"),
        (("--reports", ".", "--budget", "1"), "--budget: must be from 5"),
    ],
)
def test_wrong_usage_is_one_line(fleet, tmp_path, arguments, text):
    ended = fleet(*arguments, cwd=tmp_path)
    assert ended.code == 64 and text in ended.complaint


INVENTORY = """
[clients]
pc[1:6].example.org

[attic]
pc1.example.org
nas2

[storage]
nas1
nas2
"""


@pytest.fixture
def hosts(tmp_path):
    if shutil.which("ansible-inventory") is None:
        pytest.fail("ansible-core is not installed: run ./test, which installs it")
    path = tmp_path / "inventory.ini"
    path.write_text(INVENTORY)
    return path


@pytest.mark.long
def test_the_plan_is_a_timetable_in_which_no_two_tests_meet(fleet, hosts):
    shares = ["--share", "//nas1/media", "--share", "//nas2/media"]
    ended = fleet(hosts, *shares, "--uplink", "attic", "--plan", "--json", "-")
    tree = json.loads(ended.out)
    assert ended.code == 0 and tree["status"] == "planned"
    assert tree["clients"] == [f"pc{index}.example.org" for index in range(1, 7)]
    assert tree["servers"] == ["nas1", "nas2"]
    assert tree["tests"] == 12 <= tree["most_tests"] == 16
    for each in tree["rounds"]:
        ends = [host for pair in each for host in (pair["client"], pair["server"])]
        assert len(ends) == len(set(ends))
    plan = fleet(hosts, *shares, "--plan")
    assert plan.code == 0 and plan.out.startswith("12 tests in 6 rounds, up to 16 tests in all")
    assert fleet(hosts, *shares, "--plan").out == plan.out


@pytest.mark.long
def test_a_plan_hides_names_and_takes_a_group_that_is_named_twice_once(fleet, hosts):
    words = (hosts, "--share", "//nas1/media", *("--uplink", "attic") * 2, "--plan")
    tree = json.loads(fleet(*words, "--json", "-").out)
    ended = fleet(*words, "--json", "-", "--redact")
    hidden = json.loads(ended.out)
    for text in (ended.out, ended.err, fleet(*words, "--redact").out):
        assert not re.search("example|nas1|attic", text)
    assert len(hidden["segments"]) == len(tree["segments"]) == 1
    names = {name: f"client-{index}" for index, name in enumerate(tree["clients"], 1)}
    rounds = [[names[pair["client"]] for pair in each] for each in tree["rounds"]]
    assert rounds == [[pair["client"] for pair in each] for each in hidden["rounds"]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--share", "nas1"), "is not //SERVER/SHARE"),
        (("--share", "//nas1/a", "--share", "//nas1/b"), "is the second share of its server"),
        (("--share", "//nas1/a", "--uplink", "cellar"), "--uplink cellar: no hosts of that group"),
        (("--share", "//nas1/a", "--clients", "cellar"), "--clients cellar: no hosts"),
    ],
)
def test_what_the_inventory_does_not_have_is_told(fleet, hosts, arguments, text):
    ended = fleet(hosts, *arguments, "--plan")
    assert ended.code == 64 and text in ended.complaint


@pytest.mark.long
def test_a_file_that_is_no_inventory_is_told_in_ansibles_words(fleet, tmp_path):
    path = tmp_path / "bad.yml"
    path.write_text("a: [")
    ended = fleet(path, "--share", "//nas1/a", "--plan")
    assert ended.code == 64 and ended.complaint.startswith("bottleneck: INVENTORY")


def test_groups_within_themselves_end():
    tree = {"a": {"children": ["b"], "hosts": ["x"]}, "b": {"children": ["a"], "hosts": ["y"]}}
    assert inventory.groups_of(tree) == {"a": ("x", "y"), "b": ("y", "x")}
    assert inventory.groups_of(["strange"]) == {}
    assert inventory.groups_of({"a": "strange", "_meta": {}}) == {"a": ()}


@pytest.mark.parametrize("name", ["{{ x }}", "pc{# 1 #}", "../pc", ".pc", "pc@nas"])
def test_a_client_whose_name_is_a_template_or_a_path_is_refused(name):
    with pytest.raises(Refused, match="cannot be the name of a report's file"):
        inventory.fleet(inventory.Inventory({"all": (name,)}), None, ["nas"], {})


def test_a_pair_that_had_time_for_a_copy_to_memory_alone_is_slow(fleet, reports):
    folder = reports(slow_nas2)
    for file in folder.glob("*nas2*"):
        tree = json.loads(file.read_text())
        for step in tree["steps"]:
            if step["stage"] == "smb-copy" and step["setting"].get("end") != "memory":
                step["outcome"] = {"kind": "skipped", "reason": "out of time"}
        file.write_text(json.dumps(tree))
    tree = json.loads(fleet("--reports", folder, "--json", "-").out)
    assert [each["name"] for each in tree["culprits"]] == ["nas2"], tree
    assert tree["missing"] == [] and any("6 slow pairs had" in each for each in tree["evidence"])
