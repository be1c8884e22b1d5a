"""Copies by a command of the user's: intact, told how it failed, and nothing of it left."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest

from bottleneck.agents.request_checks import AllowedPaths, Session, check
from bottleneck.cli import exits
from bottleneck.cli.app import run as run_command
from probes.core.records import OWN_COPIES, Endpoint
from probes.core.stage import Refused
from probes.files import created_folder
from probes.files.served_file import source_name
from probes.programs import copy_program
from probes.stages import native_copy
from probes.stages.native_copy import Setting
from tests import living

MIB = 1 << 20
SIZE = 5 * MIB + 12_345
SEED = "00ff11"
RSYNC = pytest.param(
    ("/usr/bin/rsync", "-a", "{source}", "{target}"),
    id="rsync",
    marks=pytest.mark.skipif(not Path("/usr/bin/rsync").exists(), reason="NOT RUN: no rsync"),
)
RCLONE = pytest.param(
    ("/usr/bin/rclone", "copyto", "--local-no-check-updated", "{source}", "{target}"),
    id="rclone",
    marks=pytest.mark.skipif(not Path("/usr/bin/rclone").exists(), reason="NOT RUN: no rclone"),
)
COMMANDS = [
    RCLONE,
    RSYNC,
    pytest.param(("/bin/cp", "{source}", "{target}"), id="cp"),
    pytest.param(("/bin/dd", "if={source}", "of={target}", "bs=64K"), id="dd"),
    pytest.param(
        ("/bin/sh", "-c", 'cat "$0" | cat > "$1"', "{source}", "{target}"), id="two processes"
    ),
]


@pytest.fixture
def ends(tmp_path):
    """Both folders, each with the run's own in it: the peer to copy with."""
    with ExitStack() as stack:
        folders = []
        for name, run in (("client", "0123abcd"), ("target", "4567abcd")):
            (tmp_path / name).mkdir()
            setting = created_folder.Setting(str(tmp_path / name), run, 8 * MIB, 30.0, SEED)
            folders.append(stack.enter_context(created_folder.hold(setting, Endpoint())).folder)
        yield Endpoint(folder=folders[1], path=folders[0])
        for each in folders:
            assert os.listdir(each) == [source_name(each)]
    for name in ("client", "target"):
        assert list((tmp_path / name).iterdir()) == []


@pytest.fixture
def setting(tmp_path):
    def build(copy, command, seconds=60.0):
        folders = (str(tmp_path / each) for each in ("client", "target"))
        return Setting(copy, *folders, SIZE, seconds, SEED, tuple(command))

    return build


@pytest.fixture
def run(run_stage):
    return partial(run_stage, native_copy)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("copy", OWN_COPIES)
def test_what_a_command_copied_is_intact_and_durable(run, ends, setting, copy, command):
    samples, details = run(setting(copy, command), ends)
    assert samples[-1].moved_bytes == SIZE
    assert details["hash_ok"] is True and details["checked_bytes"] == SIZE
    assert details["flush_seconds"] >= 0 and details["command"] is True
    assert details["cache"]["requested"] == copy.partition(".")[2]


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ('cat "$0/x" "$0/y"; exit 23', "it ended with 23: .*/source-[0-9a-f]+/y: Not a directory"),
        ("exit 5", "it ended with 5: no message"),
        (  # by base64, as no word of the command is repeated
            "echo c291cmNlIGZpbGUgaXMgYmVpbmcgdXBkYXRlZA== | base64 -d >&2; exit 6",
            r"updated; use 'rclone copyto --local-no-check-updated \{source\} \{target\}'$",
        ),
        ("kill -9 $$", "it ended with -9: no message"),
        ("true", r"it ended well, but made no file at \{target\}"),
        ('mkdir "$1"; cp "$0" "$1"', r"it ended well, but made no file at \{target\}"),
        ('head -c 1000 "$0" > "$1"', "the copy has 1000 bytes"),
        ('ln -f "$0" "$1"', "the command linked the file and copied nothing"),
        ('ln "$0" "$1"; rm "$0"; cp "$1" "$0"', "the command linked the file and copied nothing"),
    ],
)
def test_how_a_command_failed_is_told_with_its_code_and_last_line(run, ends, setting, script, text):
    command = ("/bin/sh", "-c", script, "{source}", "{target}")
    for copy in ("push.cached", "pull.cached"):
        with pytest.raises(RuntimeError, match=text) as caught:
            run(setting(copy, command), ends)
        assert f"{copy} by sh -c ... {{source}} {{target}} failed" in str(caught.value)


def test_a_complaint_repeats_no_word_of_the_command(run, ends, setting):
    script = 'printf "%s\\033[2J " "$@" >&2; exit 3'
    secrets = ("-e", "--key=s3cret", "rsync://me:hunter2@nas/x", "-p", "ab cd")
    command = ("/bin/sh", "-c", script, "{source}", "{target}", *secrets, "--key")
    with pytest.raises(RuntimeError, match="it ended with 3: ") as caught:
        run(setting("push.cached", command), ends)
    message = str(caught.value).partition("ended with")[2]
    assert message.isprintable() and "--key" in message
    assert not any(each in message for each in ("s3cret", "hunter2", "nas", "ab cd", "rsync"))


def test_a_command_that_writes_zeros_is_a_copy_that_is_not_intact(run, ends, setting):
    command = ("/bin/sh", "-c", f'head -c {SIZE} /dev/zero > "$1"', "{source}", "{target}")
    for copy in ("push.cached", "pull.cached"):
        assert run(setting(copy, command), ends)[1]["hash_ok"] is False


@pytest.mark.parametrize("planted", ["symlink", "hard link", "other content"])
def test_another_file_at_the_sources_name_is_not_cut(run, ends, setting, tmp_path, planted):
    other, source = tmp_path / "film", Path(ends.folder) / source_name(ends.folder)
    content = os.urandom(9 * MIB)
    other.write_bytes(content)
    source.unlink()
    if planted == "symlink":
        source.symlink_to(other)
    elif planted == "hard link":
        source.hardlink_to(other)
    else:
        source.write_bytes(content)
    with pytest.raises(Exception, match="not a file of this run|symbolic links"):
        run(setting("pull.cached", ("/bin/cp", "{source}", "{target}")), ends)
    assert (source if planted == "other content" else other).read_bytes() == content


def _runs(word):
    """Whether a program is there that stays until somebody ends it, with that last word."""
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if each.read_text(errors="replace").split("\0")[:3] == [*living.STAYS[:2], word]:
                return True
        except OSError:
            continue
    return False


@pytest.mark.parametrize("end", ["deadline", "closed", "left running"])
def test_all_that_a_command_started_ends_with_its_copy(ends, setting, end, tmp_path):
    word = str(tmp_path / "stays")
    Path(word).touch()
    wait = " & exit 7" if end == "left running" else " & wait"
    command = ("/bin/sh", "-c", f"tail -f {word}{wait}", "{source}", "{target}")
    limit = 0.5 if end == "deadline" else living.GENEROUS_SECONDS
    with closing(native_copy.initiate(setting("push.cached", command, limit), ends)) as running:
        next(running)
        if end == "closed":
            next(running)
            assert living.until(lambda: _runs(word))
        if end != "closed":
            with pytest.raises(RuntimeError, match="no end within its time|it ended with 7"):
                list(running)
    assert living.until(lambda: not _runs(word))


def test_no_password_of_ours_is_in_a_commands_environment(run, ends, setting, monkeypatch):
    monkeypatch.setenv("BOTTLENECK_PASSWORD", "secret 47")
    script = 'env | grep -c BOTTLENECK_ >&2; cp "$0" "$1"; exit 3'
    command = ("/bin/sh", "-c", script, "{source}", "{target}")
    with pytest.raises(RuntimeError, match="it ended with 3: 0$"):
        run(setting("push.cached", command), ends)


def test_the_words_are_as_a_shell_split_them_and_braces_are_replaced_once():
    program = copy_program.user_program(("/x/rsync", "--log={target}", "a b", "{source}{target}"))
    assert program.words("/s {target}", "/t")[-3:] == ["--log=/t", "a b", "/s {target}/t"]
    assert program.name == "rsync ... ... ..."
    plain = copy_program.user_program(("/usr/bin/rsync", "-a", "{source}", "{target}"))
    assert plain.name == "rsync -a {source} {target}"
    hidden = copy_program.user_program(("/x/send", "--key=s3cret", "{source}", "{target}"))
    assert hidden.name == "send ... {source} {target}"


def test_an_installed_agent_runs_no_command():
    request = {"id": 1, "do": "initiate", "name": "native-copy", "seconds": 5.0}
    with pytest.raises(Refused, match="does not initiate native-copy"):
        check({**request, "setting": {}, "peer": {}}, Session(AllowedPaths(("/",))))


@pytest.mark.parametrize(
    ("target", "command", "why"),
    [
        (".", "cp a {target}", "the command lacks {source} or {target}"),
        (".", "cp '{source} {target}", "no closing quotation; as in"),
        (".", "", "the command lacks"),
        *(
            (".", f"cp {each} {{source}} {{target}}", "the command is longer than 4096 characters")
            for each in ("x" * 4096, "a\0b")
        ),
        (".", "no-such-program-47 {source} {target}", "no-such-program-47: not found on this host"),
        ("//192.0.2.1/x", "cp {source} {target}", "TARGET must be a folder of a mounted share"),
        (
            ".",
            "smbclient //nas/x -c 'put {source}'",
            "smbclient uses no mount; use `bottleneck dia",
        ),
    ],
)
def test_a_command_that_cannot_copy_is_wrong_usage(capsys, target, command, why):
    assert run_command(["diagnose", target, "--native-command", command]) == exits.USAGE
    assert capsys.readouterr().err.startswith(f"bottleneck: --native-command: {why}")


@pytest.mark.long
def test_a_whole_run_with_a_command_names_it_and_leaves_nothing(bottleneck, smb_mount, tmp_path):
    client, report_path = tmp_path / "client", tmp_path / "told.json"
    client.mkdir()
    ended = bottleneck(
        *"probe native-copy --yes --size 4MiB --budget 120 --agent exec:".split(),
        *f"{smb_mount.folder} --folder {client} --json {report_path} --native-command".split(),
        "dd if={source} of={target} bs=1M",
    )
    assert ended.code == exits.DONE, ended
    report = json.loads(report_path.read_text())
    assert {each["setting"]["copy"] for each in report["steps"]} == set(OWN_COPIES)
    for each in report["steps"]:
        details = each["outcome"]["details"]
        assert details["program"] == "dd if={source} of={target} ..."
        assert details["hash_ok"] is True
    assert list(client.iterdir()) == list(smb_mount.shared.iterdir()) == []
