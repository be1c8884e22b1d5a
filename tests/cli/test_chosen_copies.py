"""--signing, --encryption, --request-size, --depth and --dialect, which smbclient's users know."""

import json

import pytest

from bottleneck.cli import exits
from bottleneck.cli.app import run
from tests.conftest import PASSWORD, target_of


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["smb-copy", "//192.0.2.1/x", "--signing", "yes"], "--signing 'yes': must be one of on"),
        (["tcp", "//192.0.2.1/x", "--signing", "on"], "probe tcp: --signing not allowed"),
        (["smb-tax", "//192.0.2.1/x", "--encryption", "on"], "probe smb-tax: --encryption not"),
        (["native-copy", ".", "--encryption", "on"], "probe native-copy: --encryption not"),
        (["small-files", ".", "--encryption", "on"], "--encryption: TARGET must be //host/share"),
        (
            ["small-files", "//192.0.2.1/x", "--copy", "pull.cached"],
            "probe small-files: --copy not",
        ),
        (["smb-copy", "//192.0.2.1/x", "--copy", "pull"], "--copy 'pull': must be one of pull.c"),
        (["smb-copy", "//192.0.2.1/x", "--copy", "file"], "--copy file: use it with --file FILE"),
        (["smb-copy", "//192.0.2.1/x", "--tree", "./none"], "--tree './none': no such file or"),
        (["smb-copy", "//192.0.2.1/x", "--tree", "/dev/null"], "--tree '/dev/null': not a folder"),
        (["smb-copy", "//192.0.2.1/x", "--tree", "a/../b"], "--tree 'a/../b': not a name below"),
        (["small-files", "//192.0.2.1/x", "--tree", "."], "probe small-files: --tree not allowed"),
        (
            ["smb-matrix", "//192.0.2.1/x", "--depth", "999999999"],
            "--depth: 999999999 is more than",
        ),
        (["smb-copy", "//192.0.2.1/x", "--request-size", "1M"], "--request-size: '1M' can be read"),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(capsys, arguments, why):
    assert run(["probe", *arguments]) == exits.USAGE
    assert capsys.readouterr().err.startswith(f"bottleneck: {why}")


@pytest.mark.long
def test_the_copies_of_a_probe_are_as_they_were_chosen(bottleneck, samba, tmp_path):
    server, _ = samba
    ended = bottleneck(
        *f"probe smb-copy {target_of(server)} --user {server.username} --yes".split(),
        *"--dialect 3.0 --encryption on --request-size 64KiB --depth 3".split(),
        *f"--size 2MiB --budget 8 --folder {tmp_path} --json -".split(),
        password=PASSWORD,
    )
    assert ended.code == exits.INCOMPLETE, "pull.uncached needs an agent"
    document = json.loads(ended.out)
    assert document["target"]["encryption"] == "aes-128-ccm"
    measured = [each for each in document["steps"] if each["outcome"]["kind"] == "measured"]
    assert len(measured) >= 4
    for each in measured:
        details = each["outcome"]["details"]
        assert (details["dialect"], details["encryption"]) == ("3.0", "aes-128-ccm")
        assert (details["request_bytes"], details["depth"]) == (65536, 3)
        assert each["setting"]["encryption"] == "aes-128-ccm"


@pytest.mark.long
@pytest.mark.parametrize(
    ("copy", "copies"),
    [("pull.cached", ["push.cached", "pull.cached"]), ("push.cached", ["push.cached"])],
)
def test_one_copy_is_made_alone_and_says_when(bottleneck, samba, tmp_path, copy, copies):
    server, shared = samba
    ended = bottleneck(
        *f"probe smb-copy {target_of(server)} --user {server.username} --yes".split(),
        *f"--copy {copy} --seconds 0.5 --folder {tmp_path} --json -".split(),
        password=PASSWORD,
    )
    assert ended.code == exits.DONE
    document = json.loads(ended.out)
    assert [each["setting"]["copy"] for each in document["steps"]] == copies
    last = document["steps"][-1]["outcome"]
    assert last["bytes_per_second"]["runs"] == 1
    began, seconds = last["details"]["opened_after_seconds"], last["samples"][-1][0]
    assert 0 < began < began + seconds < document["elapsed_seconds"]
    assert not [*shared.glob("bottleneck-*"), *tmp_path.iterdir()]


@pytest.mark.parametrize("pushed", [True, False])
def test_a_file_of_the_users_is_copied_alone(bottleneck, samba, tmp_path, pushed):
    server, shared = samba
    file = (tmp_path if pushed else shared) / "alone.bin"
    file.write_bytes(bytes(3 << 20))
    ended = bottleneck(
        *f"probe smb-copy {target_of(server)} --user {server.username} --yes".split(),
        *f"--copy file --file {'./' if pushed else ''}{file.name} --json told.json".split(),
        password=PASSWORD,
        cwd=tmp_path,
    )
    assert ended.code == exits.DONE
    (step,) = json.loads((tmp_path / "told.json").read_text())["steps"]
    assert step["setting"]["copy"].startswith(f"file.{'push' if pushed else 'pull'}.")
    assert step["outcome"]["samples"][-1][1] == 3 << 20
    if not pushed:
        assert "Pulling a file that is perhaps in the server's cache runs at" in ended.out
    assert file.read_bytes() == bytes(3 << 20)
    assert not [*shared.glob("bottleneck-*")]
    file.unlink()


@pytest.mark.long
@pytest.mark.parametrize("pushed", [True, False])
def test_files_and_folders_of_the_users_are_copied_and_stay(bottleneck, samba, tmp_path, pushed):
    server, shared = samba
    folder = shared / f"own-{pushed}"
    top = tmp_path if pushed else folder
    (top / "film").mkdir(parents=True)
    (top / "film" / "one.bin").write_bytes(bytes(3 << 20))
    (top / "film" / "two.txt").write_bytes(b"two")
    (top / "film" / "link").symlink_to("/etc/hostname")
    begin = "./" if pushed else f"{folder.name}/"
    ended = bottleneck(
        *f"probe smb-copy {target_of(server)} --user {server.username} --yes".split(),
        *f"--size 2MiB --budget 12 --json {tmp_path}/told.json".split(),
        *f"--tree {begin}film --file {begin}film/one.bin".split(),
        password=PASSWORD,
        cwd=tmp_path,
    )
    assert ended.code in {exits.DONE, exits.INCOMPLETE}
    steps = {
        each["setting"].get("copy", each["stage"]): each
        for each in json.loads((tmp_path / "told.json").read_text())["steps"]
    }
    assert "\nThe 2 files of the folder, " in ended.out
    tree = steps["small-files"]
    assert tree["setting"]["verb"] == ("push" if pushed else "pull")
    assert tree["outcome"]["details"]["files"] == 2, "the link leads out"
    verb = "push" if pushed else "pull"
    (file,) = [each for name, each in steps.items() if name.startswith(f"file.{verb}.")]
    assert file["outcome"]["samples"][-1][1] == 3 << 20
    assert sorted(path.name for path in (top / "film").iterdir()) == ["link", "one.bin", "two.txt"]
    assert not [*shared.glob("bottleneck-*")]


@pytest.mark.long
def test_a_matrix_of_one_cell_is_what_was_chosen_and_quiet_prints_its_rate(bottleneck, samba):
    server, _ = samba
    common = (target_of(server), "--user", server.username, "--yes", "--budget", "8")
    options = ("--request-size", "64KiB", "--depth", "3")
    ended = bottleneck("probe", "smb-matrix", *common, *options, "--json", "-", password=PASSWORD)
    steps = json.loads(ended.out)["steps"]
    cells = [cell for each in steps for cell in each["outcome"]["details"]["cells"]]
    assert {(cell["request_bytes"], cell["depth"]) for cell in cells} == {(65536, 3)}
    quiet = bottleneck("probe", "smb-matrix", *common, *options, "--quiet", password=PASSWORD)
    lines = quiet.out.splitlines()
    assert [each.partition(": ")[0] for each in lines] == ["smb-matrix pull", "smb-matrix push"]
    assert all(each.endswith("B/s") for each in lines) and not quiet.err
    too_deep = ("--request-size", "8MiB", "--depth", "1024", "--json", "-")
    ended = bottleneck("probe", "smb-matrix", *common, *too_deep, password=PASSWORD)
    reasons = {each["outcome"].get("reason", "") for each in json.loads(ended.out)["steps"]}
    assert all("use a smaller --depth" in each for each in reasons)


@pytest.mark.long
def test_the_copies_of_diagnose_take_the_requests_that_were_chosen(bottleneck, samba, tmp_path):
    server, _ = samba
    ended = bottleneck(
        *f"diagnose {target_of(server)} --user {server.username} --yes --quick".split(),
        *f"--request-size 128KiB --depth 2 --json - --folder {tmp_path}".split(),
        password=PASSWORD,
    )
    steps = json.loads(ended.out)["steps"]
    outcomes = [each["outcome"] for each in steps if each["stage"] == "smb-copy"]
    shapes = {
        (e["details"]["request_bytes"], e["details"]["depth"]) for e in outcomes if "details" in e
    }
    assert shapes == {(131072, 2)}
    assert not [
        each for each in steps if each["stage"] == "disk" and each["setting"].get("depth") == 2
    ]


@pytest.mark.long
def test_both_directions_at_once_print_their_intervals(bottleneck):
    ended = bottleneck(
        *"probe tcp //127.0.0.1/x --agent exec:env --streams 1".split(),
        *"--seconds 1 --both-ways --interval 0.3".split(),
    )
    lines = [each for each in ended.out.splitlines() if " s  tcp both ways " in each]
    assert {each.split(" s  ")[1].split("  ")[0] for each in lines} == {
        "tcp both ways push",
        "tcp both ways pull",
    }
