"""`bottleneck doctor` tells what is ready, asks a share and a server, and writes nothing."""

import json
import os

import pytest

from bottleneck.doctor.look import STATES

pytestmark = pytest.mark.long


def checked_document(done):
    document = json.loads(done.out)
    assert document["schema"] == "copy-bottleneck/doctor/1"
    assert all(each["state"] in STATES and each["sentence"] for each in document["checks"])
    assert document["ready"] == all(each["state"] != "missing" for each in document["checks"])
    return document


def checks_of(document, where):
    return {each["name"]: each for each in document["checks"] if each["where"] == where}


def test_this_host_alone_in_words_and_as_json(bottleneck, tmp_path):
    done = bottleneck("doctor", "--folder", tmp_path)
    assert done.code in (0, 3), done.err
    assert "This host" in done.out and "fio" in done.out
    document = checked_document(bottleneck("doctor", "--folder", tmp_path, "--format", "json"))
    assert set(checks_of(document, "client")) == {each["name"] for each in document["checks"]}
    assert document["ready"] == (done.code == 0)
    assert os.listdir(tmp_path) == []


def test_a_share_and_its_server_are_asked_and_nothing_is_written(
    bottleneck, samba, target, auth_file, tmp_path
):
    server, shared = samba
    earlier = sorted(os.listdir(shared))
    (tmp_path / "own").mkdir()
    done = bottleneck(
        *f"doctor {target} --auth-file {auth_file} --agent exec:env --format json".split(),
        *f"--folder {tmp_path}/own --server-folder {shared}".split(),
    )
    document = checked_document(done)
    assert done.code == (0 if document["ready"] else 3), done.err
    share, there = checks_of(document, "share"), checks_of(document, "server")
    assert "2.0.2, 2.1, 3.0, 3.0.2, 3.1.1" in share["dialects"]["sentence"]
    assert "logged in over SMB 3.1.1" in share["login"]["sentence"]
    assert share["room"]["state"] == "ok" and "may write" in share["room"]["sentence"]
    assert there["agent"]["state"] == "ok" and str(shared) in there["folder"]["sentence"]
    assert there["clock"]["state"] == "ok"
    assert there["ports"]["state"] == checks_of(document, "client")["ports"]["state"] == "ok"
    assert sorted(os.listdir(shared)) == earlier
    assert os.listdir(tmp_path / "own") == []
    assert server.password not in done.out + done.err


def test_no_login_is_tried_where_none_was_asked_for(bottleneck, target):
    document = checked_document(bottleneck("doctor", target, "--format", "json"))
    assert "not tested" in checks_of(document, "share")["login"]["sentence"]
    assert checks_of(document, "server")["agent"]["stages"]


def test_a_wrong_password_is_77(bottleneck, samba, target):
    done = bottleneck("doctor", target, "--user", samba[0].username, password="wrong")
    assert done.code == 77
    assert "login" in done.out


@pytest.mark.parametrize("target", ["//127.0.0.1:1/x", "//no-such-host.invalid/x"])
def test_a_server_that_is_not_reached_is_69_and_the_rest_is_told(bottleneck, target):
    done = bottleneck("doctor", target, "--format", "json")
    assert done.code == 69
    document = checked_document(done)
    assert checks_of(document, "share")["server"]["state"] == "missing"
    assert "fio" in checks_of(document, "client")


def test_an_agent_that_does_not_come_is_69_with_its_words(bottleneck, target):
    agent = "exec:sh -c 'echo no such container: nas >&2; exit 1' --"
    done = bottleneck("doctor", target, "--agent", agent, "--format", "json")
    assert done.code == 69
    assert "no such container" in checks_of(checked_document(done), "server")["agent"]["sentence"]


def test_a_folder_that_is_not_there_is_missing(bottleneck, tmp_path):
    done = bottleneck("doctor", "--folder", tmp_path / "none")
    assert done.code == 3
    assert "no such file" in " ".join(done.out.split())


def test_the_words_of_an_agent_are_made_safe(bottleneck):
    agent = "exec:printf 'x\\033[2Jy\\342\\200\\256z\\n'"
    done = bottleneck("doctor", "//127.0.0.1:1/x", "--agent", agent)
    assert "\x1b" not in done.out and "\u202e" not in done.out
