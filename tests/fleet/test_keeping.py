"""Runs and files on the controller, with a program in the place of Ansible."""

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from bottleneck.fleet import inventory, run
from bottleneck.fleet.records import Fleet, Pair
from probes.core.records import Access
from probes.core.stage import Refused

PLAYBOOK = """#!{python}
import json, os, signal, sys
told = json.load(open(next(each[1:] for each in sys.argv if each.startswith("@"))))
seen = {{**told, "cwd": os.getcwd(), "environment": dict(os.environ)}}
seen["blocking"] = os.get_blocking(1) and os.get_blocking(2)
json.dump(seen, open({folder!r} + "/seen.json", "w"))
for client in told["bottleneck_round"]:
    if {answer!r} is not None:
        open(os.environ["BOTTLENECK_ANSWERS"] + "/" + client + ".json", "w").write({answer!r})
{then}
"""
INTERRUPT = "os.kill(os.getppid(), signal.SIGINT), signal.pause()"
PAIR = Pair("pc1", "nas1")


@pytest.fixture
def run_pair(monkeypatch, tmp_path):
    """Runs a fleet of one pair; what its client answers; gives what is known then."""
    hosts = tmp_path / "hosts"
    hosts.write_text("pc1\n")
    keep = tmp_path / "kept"

    def measure(answer=None, resume=False, then=""):
        script = tmp_path / "playbook"
        facts = {"python": sys.executable, "folder": str(tmp_path), "answer": answer, "then": then}
        script.write_text(PLAYBOOK.format(**facts))
        script.chmod(0o700)
        monkeypatch.setattr(run, "program", lambda name: str(script))
        fleet = Fleet(("pc1",), ("nas1",))
        with run.prepare_folder(keep, resume) as (progress, log):
            shares = {"nas1": "//nas1/media"}
            access = Access("anna", "a secret")
            settings = run.Run(fleet, shares, hosts, keep, log, access, 20.0, every=True)
            run.measure_pairs(settings, progress, [PAIR], lambda text: None)
        return progress

    return measure


def answer_json(report=None, reason="", code=None):
    return json.dumps({"report": report or {}, "reason": reason, "exit_code": code})


def test_ansible_starts_beside_the_inventory_and_shows_no_secret(run_pair, monkeypatch, tmp_path):
    monkeypatch.setenv("ANSIBLE_VERBOSITY", "5")
    monkeypatch.setenv("ANSIBLE_DEBUG", "1")
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", "/srv/mine")
    config = tmp_path / "mine.cfg"
    config.touch()
    monkeypatch.setenv("ANSIBLE_CONFIG", str(config))
    run_pair()
    document = json.loads((tmp_path / "seen.json").read_text())
    assert document["blocking"], "Ansible refuses others"
    assert document["cwd"] == str(tmp_path)
    environment = document["environment"]
    assert environment["ANSIBLE_CONFIG"] == str(config)
    ours, _, theirs = environment["ANSIBLE_COLLECTIONS_PATH"].partition(":")
    assert theirs == "/srv/mine" and not Path(ours).exists(), "it is gone when the run is"
    variables = {"ANSIBLE_VERBOSITY": "0", "ANSIBLE_DEBUG": "0", "ANSIBLE_KEEP_REMOTE_FILES": "0"}
    # Without it, Ansible leaves a file with the password where it is killed.
    assert {**variables, "ANSIBLE_PIPELINING": "1"}.items() <= environment.items()


@pytest.mark.long
def test_the_configuration_of_the_current_folder_is_not_read(bottleneck, tmp_path):
    program = tmp_path / "secret.sh"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\necho x\n")
    program.chmod(0o755)
    (tmp_path / "ansible.cfg").write_text(f"[defaults]\nvault_password_file = {program}\n")
    (tmp_path / "hosts").write_text("pc1\n")
    words = ("fleet", "hosts", "--share", "//nas1/media", "--plan")
    assert bottleneck(*words, cwd=tmp_path).code == 0
    assert not (tmp_path / "ran").exists()
    variables = {"ANSIBLE_CONFIG": "ansible.cfg"}
    assert bottleneck(*words, cwd=tmp_path, environment=variables).code == 0
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["hosts", "mine.cfg", "group_vars/all.yml", "."])
def test_what_others_can_change_is_not_given_to_ansible(monkeypatch, tmp_path, name):
    monkeypatch.setenv("ANSIBLE_CONFIG", str(tmp_path / "mine.cfg"))
    (tmp_path / "group_vars").mkdir()
    for each in ("hosts", "mine.cfg", "group_vars/all.yml"):
        (tmp_path / each).touch()
    assert inventory.environment(tmp_path / "hosts")
    (tmp_path / name).chmod(0o777)
    with pytest.raises(Refused, match="writable by other users") as refused:
        inventory.environment(tmp_path / "hosts")
    assert refused.value.kind == "usage"


def test_the_log_and_the_folder_are_this_users_alone(run_pair, tmp_path):
    run_pair()
    keep = tmp_path / "kept"
    assert [each.name for each in keep.iterdir()] == [run.LOG]
    assert keep.stat().st_mode & 0o777 == 0o700
    assert (keep / run.LOG).stat().st_mode & 0o777 == 0o600


def is_file(keep):
    keep.write_text("mine")


def is_open_to_others(keep):
    keep.mkdir()
    keep.chmod(0o777)


def has_a_link_as_log(keep):
    keep.mkdir()
    (keep / run.LOG).symlink_to(keep.parent / "victim")


def has_a_folder_as_log(keep):
    (keep / run.LOG).mkdir(parents=True)


@pytest.mark.long
@pytest.mark.parametrize(
    "make", [is_file, is_open_to_others, has_a_link_as_log, has_a_folder_as_log]
)
def test_a_folder_that_reports_cannot_be_kept_in_is_wrong_usage(bottleneck, tmp_path, make):
    make(tmp_path / "kept")
    (tmp_path / "hosts").write_text("pc1\n")
    words = ("fleet", "hosts", "--share", "//nas1/media", "--keep", "kept", "--yes")
    ended = bottleneck(*words, "--allow-guest", cwd=tmp_path)
    assert ended.code == 64 and ended.complaint.startswith("bottleneck: --keep kept: ")
    assert not (tmp_path / "victim").exists()


def test_below_a_folder_of_everybodys_nothing_is_made(tmp_path):
    tmp_path.chmod(0o777)
    with (
        pytest.raises(Refused, match=f"{tmp_path} is writable by other users"),
        run.prepare_folder(tmp_path / "a" / "b", resume=False),
    ):
        pytest.fail("others can change it")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [0o700, 0o1777])
def test_new_folders_of_reports_are_this_users_alone_under_any_umask(tmp_path, mode):
    tmp_path.chmod(mode)
    umask = os.umask(0)
    try:
        with run.prepare_folder(tmp_path / "a" / "b", resume=False):
            folders = tmp_path / "a", tmp_path / "a" / "b"
            assert [each.stat().st_mode & 0o777 for each in folders] == [0o700] * 2
    finally:
        os.umask(umask)


def test_a_folder_is_used_by_one_run_at_a_time(tmp_path):
    with (
        run.prepare_folder(tmp_path / "kept", resume=True),
        pytest.raises(Refused, match="another run is using it"),
        run.prepare_folder(tmp_path / "kept", resume=True),
    ):
        pytest.fail("both have it")
    with run.prepare_folder(tmp_path / "kept", resume=False) as (progress, _):
        assert progress.tests == Counter()


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (answer_json(reason="cannot log in"), "cannot log in"),
        (answer_json(reason="what\nis this " + "x" * 9000), "what is this " + "x" * 287),
        (answer_json(report="strange"), "; skipped"),
        (answer_json({"schema": "strange"}), "; skipped"),
        ("what is this", "what it answered cannot be read"),
        ("[]", "what it answered cannot be read"),
    ],
    ids=["told", "long", "no report", "strange", "no JSON", "no answer"],
)
def test_whatever_a_failed_client_says_costs_its_own_pair(run_pair, reply, reason):
    report = run_pair(reply)
    assert reason in report.missing[PAIR]
    assert list(report.missing) == [PAIR] and not report.pairs()


def test_what_a_client_answered_before_an_interrupt_is_kept(run_pair, report_of, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_pair(answer_json(report_of(*PAIR)), then=INTERRUPT)
    assert (tmp_path / "kept" / "pc1@nas1.json").exists()


@pytest.mark.parametrize("earlier", [(), ("pc1", "nas2")], ids=["first", "resumed"])
def test_a_refused_login_is_tried_once(run_pair, report_of, monkeypatch, tmp_path, earlier):
    (tmp_path / "kept").mkdir(mode=0o700)
    if earlier:
        (tmp_path / "kept" / "pc1@nas2.json").write_text(json.dumps(report_of(*earlier)))
    monkeypatch.setattr(run.timetable, "rounds", lambda fleet, pairs: [(PAIR,)] * 3)
    rounds = []
    usual = run._round
    monkeypatch.setattr(run, "_round", lambda *args: rounds.append(args) or usual(*args))
    report = run_pair(answer_json(reason="wrong password", code=77), resume=True)
    assert len(rounds) == 1 and report.refused == {PAIR}


def test_a_report_that_cannot_be_kept_leaves_its_pair_missing(run_pair, report_of, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run.document_file, "write", full)
    report = run_pair(answer_json(report_of(*PAIR)))
    assert report.missing[PAIR].endswith("kept: No space left on device")


def test_no_earlier_report_counts_as_a_new_one_or_is_written_over(run_pair, report_of, tmp_path):
    assert run_pair(answer_json({"schema": "strange"})).tests == Counter()
    keep = tmp_path / "kept"
    strange = (keep / "pc1@nas1.json").read_text()
    assert run_pair(resume=True).missing[PAIR].startswith("no report; see ")
    assert run_pair(answer_json(report_of(*PAIR)), resume=True).tests == {PAIR: 1}
    assert (keep / "pc1@nas1.json").read_text() == strange
    assert (keep / "pc1@nas1.run2.json").exists()
    assert run._new_name(keep, PAIR) == "pc1@nas1.run3.json"


@pytest.mark.long
@pytest.mark.parametrize(("options", "code"), [((), 69), (("--format", "nagios"), 3)])
def test_where_no_pair_was_measured_a_plugin_says_unknown(bottleneck, tmp_path, options, code):
    dead = {"ansible_host": "127.0.0.1", "ansible_port": 1}
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"pc1": dead}}}))
    words = ("fleet", "hosts.yml", "--share", "//nas1/media", "--yes", "--allow-guest")
    ended = bottleneck(*words, *options, cwd=tmp_path)
    assert ended.code == code
    assert ended.complaint.startswith("bottleneck: no pair was measured; Task failed: Failed to")
    assert bool(options) == ended.out.startswith("BOTTLENECK UNKNOWN"), ended.out
