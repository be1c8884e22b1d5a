"""Whatever is wrong, one line names host, step and remedy; the exit code is the contract's."""

import os
import subprocess
from pathlib import Path

import pytest

from bottleneck.analysis import steps
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.report.report import loads
from probes.programs.samba import private_samba
from tests.conftest import PASSWORD, target_of

pytestmark = pytest.mark.long

DATA = Path(__file__).parent.parent / "data"
BEFORE, AFTER = DATA / "report-v1-lab-no-agent.json", DATA / "report-v1-lab-with-agent.json"


def args(target, folder, auth, *extra):
    return ("diagnose", target, "--folder", folder, "--auth-file", auth, "--yes", "--quiet", *extra)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "client"
    path.mkdir()
    return path


def left_behind(*folders):
    return [str(path) for each in folders for path in each.rglob("*")]


def test_a_wrong_password_is_tried_once_and_told_without_itself(
    bottleneck, samba, target, folder, tmp_path
):
    server, shared = samba
    report = tmp_path / "report.json"
    ended = bottleneck(
        *f"diagnose {target} --user {server.username} --folder {folder} --yes".split(),
        *f"--json {report} --quiet".split(),
        password="hunter2-wrong",
    )
    assert ended.code == 77
    assert server.host in ended.complaint and "password" in ended.complaint
    assert "hunter2" not in ended.err + ended.out + report.read_text()
    assert left_behind(folder, shared) == []


@pytest.mark.parametrize(
    ("code", "says", "target", "extra"),
    [
        (69, "nothere", "//{}/nothere", ()),
        (69, "missing", "//{}/share/missing", ()),
        (64, "missing", "//{}/share", ("--folder", "/missing")),
        (69, "no-such-container", "//{}/share", ("--agent", "exec:no-such-container")),
    ],
)
def test_what_is_not_there_is_named(
    bottleneck, samba, folder, auth_file, code, says, target, extra
):
    server = f"{samba[0].host}:{samba[0].port}"
    ended = bottleneck(*args(target.format(server), folder, auth_file, *extra))
    assert ended.code == code
    assert says in ended.complaint


@pytest.fixture
def closed_folder(folder):
    if os.geteuid() == 0:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "closed", folder], check=True)
        yield folder
        subprocess.run(["umount", folder], check=True)
    else:
        folder.chmod(0o500)
        yield folder


def test_of_a_read_only_share_a_file_is_pulled(bottleneck, tmp_path):
    shared, folder = tmp_path / "shared", tmp_path / "folder"
    for each in (shared, folder):
        each.mkdir()
    with (shared / "film").open("wb") as file:
        file.truncate(32 << 20)
    options = {"share_options": ["read only = yes"]}
    with private_samba(str(shared), password=PASSWORD, **options) as server:
        words = ("--user", server.username, "--folder", folder, "--yes", "--quick")
        words = (target_of(server), *words, "--file", "film", "--json", tmp_path / "report.json")
        ended = bottleneck("diagnose", *words, password=PASSWORD)
    report = loads((tmp_path / "report.json").read_bytes())
    assert [each.name for each in steps.copies(report)] == ["file.pull.uncached"], ended.err
    assert [each.copy for each in diagnose(report).copies] == ["file.pull.uncached"]
    assert [each.name for each in shared.iterdir()] == ["film"] and not [*folder.iterdir()]


def test_a_folder_without_the_right_to_write_is_named(bottleneck, target, closed_folder, auth_file):
    ended = bottleneck(*args(target, closed_folder, auth_file))
    assert ended.code == 77
    assert str(closed_folder) in ended.complaint


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("diagnose",), "TARGET"),
        (("diagnose", "//nas/media", "--password=x"), "--auth-file"),
        (("diagnose", "//nas/media", "--user", "a%b", "--yes"), "--auth-file"),
        (("diagnose", "//nas/media", "--dialects", "4.0"), "4.0"),
        (("diagnose", "//nas/media", "--size", "12 apples"), "size"),
        (("diagnose", "//nas/media", "--budget", "1"), "budget"),
        (("diagnose", "//nas/media", "--budget", "nan"), "budget"),
        (("diagnose", "//nas/media", "--quick", "--thorough"), "use only one of"),
        (("probe", "tcp"), "TARGET"),
        (("probe", "latency"), "TARGET"),
        (("probe", "path"), "TARGET"),
        (("probe", "sweep", "--agent", "exec:env"), "TARGET"),
        (("probe", "tcp", "--tcp-peer", "nas"), "--tcp-peer"),
        (("probe", "tcp", "--tcp-peer", "iperf3://"), "--tcp-peer"),
        (("diagnose", "//nas/media", "--metrics", "nas:9100"), "--metrics"),
        (("probe", "disk", "--agent", "exec:", "--yes"), "TARGET"),
        (("nonsense",), "nonsense"),
        (("explain", "my copy is slow"), "No such file or directory; give figures with --copy"),
        (("explain", "/dev/null"), "/dev/null"),
        (("explain", "--tcp", "1Gbit/s"), "use them with one copy (--copy)"),
        # a folder
        (("diagnose", "/no/such/folder", "--yes"), "not found on this host"),
        (("diagnose", "./missing", "--yes"), "not found on this host"),
        (("diagnose", "missing", "--yes"), "not a share or a folder"),
        (("diagnose", "/etc/passwd", "--yes"), "not found on this host"),
        (("diagnose", "/var/tmp"), "--yes"),
        (("probe", "native-copy", "//nas/media", "--yes"), "mounted share"),
        (("probe", "native-copy", "--yes"), "mounted share"),
        (("probe", "smb-copy", "/var/tmp", "--yes"), "//host/share"),
        # reports
        (("compare", AFTER, "/no/such/report.json"), "/no/such/report.json"),
        (("compare", "/dev/null", AFTER), "/dev/null"),
        (("compare", AFTER), "use two reports or more"),
        (("compare", AFTER, BEFORE, "--format", "xml"), "must be one of text, json"),
        (("explain", AFTER, "--target-rate", "100M"), "two ways"),
        (("explain", AFTER, "--target-rate", "1bit/s"), "at least 1 byte/s"),
        (("diagnose", "//127.0.0.1:9/x", "--target-rate", "100M", "--yes"), "two ways"),
        # an estimate
        (("estimate",), "no figures; use --link"),
        (("estimate", "--link", "1G"), "--link: '1G' can be read in two ways"),
        (("estimate", "--rtt", "fast"), "--rtt: 'fast' is not a time"),
        (("estimate", "--loss", "lots"), "--loss: 'lots' is not a share"),
        (("estimate", "--loss", "200%"), "--loss: '200%' is not a share"),
        (("estimate", "--loss", "1e-320"), "--loss: '1e-320' is not a share"),
        (("estimate", "--loss", "nan%"), "--loss: 'nan%' is not a share"),
        (("estimate", "--disk-read", "floppy"), "--disk-read: 'floppy' is not a rate"),
        (("estimate", "--ip", "5"), "--ip '5': must be one of 4, 6"),
        (("estimate", "--mtu", "9"), "--mtu 9: must be from 576"),
        (("estimate", "--streams", "0"), "--streams 0: must be from 1"),
        (("estimate", "--depth", "0", "--rtt", "1ms"), "--depth 0: must be from 1"),
        (("estimate", "--dialect", "9"), "--dialect '9': must be one of"),
        (("estimate", "--format", "xml"), "--format 'xml': must be one of"),
        (("estimate", "sideways"), "'sideways': must be one of pull, push"),
        # the rest
        *(
            (("doctor", *words), "")
            for words in (("--format", "xml"), ("//x",), ("--agent", "nas"))
        ),
        (("doctor", "x", "y"), ""),
        *((("cleanup", *words), "") for words in (("--older-than", "-1"), ("--older-than", "nan"))),
        (("cleanup", "//x"), ""),
    ],
)
def test_wrong_usage_is_one_sentence_and_64(bottleneck, tmp_path, arguments, says):
    ended = bottleneck(*arguments, cwd=tmp_path, password="p")
    assert ended.code == 64 and ended.out == "", ended
    assert says in ended.complaint
    assert list(tmp_path.iterdir()) == []
