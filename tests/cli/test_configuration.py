"""Options that nobody gives: who wins, what is refused, which commands heed it, and `config`."""

import json
import os
import re
import tomllib
from pathlib import Path

import pytest

from bottleneck.cli.app import tree
from bottleneck.cli.configuration import Setting, commands, settings, sources
from probes.core.stage import Refused

COMMANDS = commands(tree())
NOWHERE = "//127.0.0.1:9/share"


class Files:
    """The user's and the system's file, and an environment that leads to them."""

    def __init__(self, folder: Path) -> None:
        self.environment = {
            "XDG_CONFIG_HOME": str(folder / "user"),
            "XDG_CONFIG_DIRS": str(folder / "system"),
        }
        self.user = folder / "user/copy-bottleneck/config.toml"
        self.system = folder / "system/copy-bottleneck/config.toml"

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)
        return path

    def values(self, *arguments: str, command: str = "diagnose", **words: str) -> dict[str, object]:
        applied = settings(command, COMMANDS, {**self.environment, **words}, arguments)
        return {key: setting.value for key, setting in applied.items()}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    new_files = Files(tmp_path)
    for name, value in new_files.environment.items():
        monkeypatch.setenv(name, value)
    return new_files


def test_the_environment_wins_over_the_user_s_file_and_that_over_the_system_s(files: Files) -> None:
    files.write(files.system, '[defaults]\nuser = "s"\nagent = "s"\nunits = "si"\nzones = 4\n')
    files.write(files.user, '[defaults]\nuser = "u"\nagent = "u"\nunits = "iec"\n')
    applied = settings("diagnose", COMMANDS, {**files.environment, "BOTTLENECK_USER": "e"})
    assert applied == {
        "user": Setting("e", "BOTTLENECK_USER"),
        "agent": Setting("u", f"{files.user}, line 3"),
        "units": Setting("iec", f"{files.user}, line 4"),
        "zones": Setting(4, f"{files.system}, line 5"),
    }


def test_a_command_s_own_section_wins_over_the_common_one(files: Files) -> None:
    files.write(files.user, '[diagnose]\nunits = "bits"\n[defaults]\nunits = "iec"\nzones = 5\n')
    assert files.values() == {"units": "bits", "zones": 5}
    assert files.values(command="check") == {"units": "iec"}


@pytest.mark.parametrize("option", ["budget", "quick"])
def test_a_budget_of_a_higher_place_leaves_no_other_one(files: Files, option: str) -> None:
    """They exclude each other: a file's `quick = true` must not forbid `--budget 300`."""
    files.write(files.user, "[defaults]\nquick = true\n")
    files.write(files.system, "[defaults]\nbudget = 90\n")
    assert files.values(option) == {}
    assert files.values() == {"quick": True}


def test_who_logs_in_is_not_put_together_from_two_places(files: Files) -> None:
    files.write(files.user, '[defaults]\nauth-file = "/etc/alice"\ndomain = "CORP"\n')
    assert files.values("user") == {"domain": "CORP"}
    assert files.values("auth-file") == {}
    files.write(files.user, '[defaults]\nuser = "alice"\ndomain = "CORP"\n')
    assert files.values(BOTTLENECK_AUTH_FILE="/f") == {"auth-file": "/f"}


def test_no_file_of_the_current_folder_is_read(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may come from a stranger, and `agent` starts programs."""
    here = tmp_path / "here"
    for name in ("bottleneck.toml", ".bottleneck.toml", "config.toml"):
        files.write(here / name, '[defaults]\nagent = "exec:evil"\n')
    monkeypatch.chdir(here)
    assert files.values() == {}


def test_a_named_file_stands_in_place_of_both(files: Files, tmp_path: Path) -> None:
    files.write(files.user, "[defaults]\nzones = 5\n")
    path = files.write(tmp_path / "named.toml", "[defaults]\nbudget = 30\n")
    assert files.values(BOTTLENECK_CONFIG=str(path)) == {"budget": 30.0}
    for nothing in ("", os.devnull):
        assert files.values(BOTTLENECK_CONFIG=nothing) == {}
        assert sources({"BOTTLENECK_CONFIG": nothing}) == ()
    with pytest.raises(Refused, match="none.toml: No such file"):
        files.values(BOTTLENECK_CONFIG=str(tmp_path / "none.toml"))


def test_values_have_the_types_of_their_options(files: Files) -> None:
    files.write(files.user, '[defaults]\nbudget = 30\nfolder = "~/x"\n[check]\nwarn = ["a", "b"]\n')
    assert files.values() == {"budget": 30.0, "folder": f"{Path.home()}/x"}
    assert files.values(command="check")["warn"] == ["a", "b"]
    variables = {"BOTTLENECK_QUICK": "Yes", "BOTTLENECK_ZONES": "7", "BOTTLENECK_AGENT": ""}
    assert files.values(**variables)["quick"] is True
    assert files.values(**variables)["zones"] == 7
    assert "agent" not in files.values(**variables)
    assert files.values(command="check", BOTTLENECK_WARN="c")["warn"] == ["c"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[defaults]\nagnet = "x"', "line 2: 'agnet' not an option of any command; similar: agent"),
        ('[diagnose]\n\nauth_file = "x"', "line 3: 'auth_file' not an option of bottleneck diag"),
        ('[explain]\nagent = "x"', "line 2: 'agent' not an option of bottleneck explain"),
        ('[diagnose]\nhistory = "default"', "line 2: --history was removed"),
        ("# x\n[diagnos]", "line 2: [diagnos] is not a command with settings; similar: diag"),
        ('agent = "x"', "line 1: 'agent' must be in a section"),
        ('[defaults]\nzones = "4"', "line 2: zones must be a whole number"),
        ("[defaults]\nzones = true", "line 2: zones must be a whole number"),
        ("[defaults]\nquick = 1", "line 2: quick must be true or false"),
        ("[defaults]\nbudget = 1" + "0" * 400, "line 2: budget must be a number"),
        ("[defaults]\nagent = 5", "line 2: agent must be a text in quotes"),
        ('[defaults]\nagent = "\\u0000"', "line 2: agent must be a text"),
        ('[diagnose]\njson = "x"', "line 2: --json is only allowed on the command line"),
        ('[defaults]\nformat = "x"', "line 2: format must be in the section of a command"),
        ("[defaults]\nagent =", "not TOML"),
        ("[defaults]\nzones = 1\nzones = 2\nquick = true", "(at line 3"),
        ("[" * 5000, "not TOML"),
    ],
)
def test_a_mistake_is_one_sentence_with_file_and_line(files: Files, text: str, words: str) -> None:
    files.write(files.user, text)
    with pytest.raises(Refused) as caught:
        files.values()
    assert words in caught.value.text
    assert str(files.user) in caught.value.text
    assert "\n" not in caught.value.text
    assert caught.value.kind == "usage"


@pytest.mark.parametrize("key", ["password", "PASSWORD", "pass", "token", "agent_token"])
@pytest.mark.parametrize("section", ["", "[defaults]\n", "[check]\n"])
def test_a_password_is_refused_and_not_repeated(files: Files, key: str, section: str) -> None:
    files.write(files.user, f'{section}{key} = "canary"\n')
    with pytest.raises(Refused) as caught:
        files.values()
    assert "auth-file" in caught.value.text
    assert "canary" not in caught.value.text


@pytest.mark.parametrize(
    ("make", "why"),
    [
        *(
            (lambda path, mode=mode: path.chmod(mode), "writable by other users.*chmod go-w")
            for mode in (0o620, 0o602, 0o666)
        ),
        pytest.param(
            lambda path: os.chown(path, 65534, 65534),
            "owned by another user",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: only root can do that"),
        ),
        (lambda path: (path.unlink(), os.mkfifo(path, 0o600)), "not a regular file"),
        (lambda path: (path.unlink(), path.mkdir(mode=0o700)), "not a regular file"),
        (lambda path: path.write_text("#" * (65 << 10)), "larger than"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "not UTF-8"),
    ],
    ids=["group", "others", "all", "another-user", "pipe", "folder", "large", "no-text"],
)
def test_a_file_that_could_be_anybody_s_or_is_no_text_is_refused(files: Files, make, why) -> None:
    """It can start programs: `agent = "exec:..."`; and none of it hangs."""
    make(files.write(files.user, "[defaults]\nzones = 4\n"))
    with pytest.raises(Refused, match=why):
        files.values()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("BOTTLENECK_QUICK", "maybe", "'maybe': must be true or false"),
        ("BOTTLENECK_ZONES", "9.5", "'9.5': must be a whole number"),
        ("BOTTLENECK_BUDGET", "soon", "'soon': must be a number"),
    ],
)
def test_a_variable_that_is_none_of_its_kind_is_named(
    files: Files, name: str, value: str, words: str
) -> None:
    with pytest.raises(Refused) as caught:
        files.values(**{name: value})
    assert caught.value.text == f"{name} {words}"


def test_a_document_is_not_asked_for_by_a_variable(files: Files) -> None:
    assert files.values(BOTTLENECK_JSON="/tmp/x", BOTTLENECK_FORMAT="json") == {}


def test_what_removes_is_told_on_the_command_line_alone(files: Files) -> None:
    files.write(files.user, "[defaults]\nyes = true\n")
    variables = {**files.environment, "BOTTLENECK_YES": "1", "BOTTLENECK_OLDER_THAN": "0"}
    variables["BOTTLENECK_FOLDER"] = "/x"
    assert set(settings("cleanup", COMMANDS, variables)) == {"folder"}
    assert set(settings("diagnose", COMMANDS, files.environment)) == {"yes"}
    for text in ("[cleanup]\nyes = true\n", "[defaults]\nolder-than = 0\n"):
        files.write(files.user, text)
        for command in ("cleanup", "diagnose"):
            with pytest.raises(Refused, match="only allowed on the command line"):
                settings(command, COMMANDS, files.environment)


def test_without_a_home_the_current_folder_configures_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for each in ("XDG_CONFIG_HOME", "HOME"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert all(each.path.is_absolute() for each in sources({}))


# -- from outside ------------------------------------------------------------------------------


@pytest.fixture
def configuration(tmp_path):
    """Writes a file; the environment that names it."""

    def write(text):
        path = tmp_path / "config.toml"
        path.write_text(text)
        path.chmod(0o600)
        return {"BOTTLENECK_CONFIG": str(path)}

    return write


def test_every_kind_of_option_is_taken_by_the_parser(bottleneck, configuration):
    table = configuration("[diagnose]\nzones = 1\n")
    done = bottleneck("diagnose", NOWHERE, "--allow-guest", "--yes", environment=table)
    assert (done.code, "--zones" in done.complaint) == (64, True)
    variables = {"BOTTLENECK_CONFIG": "", "BOTTLENECK_BUDGET": "1", "BOTTLENECK_YES": "1"}
    done = bottleneck("diagnose", NOWHERE, "--allow-guest", environment=variables)
    assert (done.code, "--budget" in done.complaint) == (64, True)


def test_a_mistake_is_a_usage_error_and_the_report_is_still_one_document(bottleneck, configuration):
    table = configuration("[defaults]\nfoldr = 1\n")
    done = bottleneck("diagnose", NOWHERE, "--json", "-", environment=table)
    assert done.code == 64
    assert "line 2: 'foldr' not an option of any command; similar: folder" in done.complaint
    assert json.loads(done.out)["status"] == "failed"


@pytest.mark.parametrize(
    "command",
    ["schema", "--version", "estimate --link 1Gbit/s --rtt 1ms", "--help", "diagnose --help"],
)
def test_what_reads_no_settings_does_not_mind_a_broken_file(bottleneck, configuration, command):
    done = bottleneck(*command.split(), environment=configuration("broken"))
    assert done.code == 0 and done.out, done.err


def test_config_shows_each_value_with_its_origin(bottleneck, configuration):
    table = configuration('[defaults]\nagent = "ssh://nas"\n[diagnose]\nquick = true\n')
    done = bottleneck("config", environment={**table, "BOTTLENECK_UNITS": "iec"})
    assert done.code == 0
    path = table["BOTTLENECK_CONFIG"]
    lines = done.out.splitlines()
    assert lines[0] == f"# {path}: read"
    section = lines[lines.index("[diagnose]") :]
    assert f'agent = "ssh://nas"  # {path}, line 2' in section
    assert f"quick = true  # {path}, line 4" in section
    assert 'units = "iec"  # BOTTLENECK_UNITS' in section
    one = bottleneck("config", "diagnose", environment=table)
    assert "zones = 9  # built in" in one.out
    assert "# user is not set" in one.out


def test_config_names_the_commands_that_take_settings(bottleneck):
    done = bottleneck("config", "demo", environment={"BOTTLENECK_CONFIG": ""})
    assert done.code == 64
    assert "diagnose" in done.complaint


def test_config_moves_no_cursor(bottleneck, configuration):
    table = configuration('[defaults]\nagent = "\\u001b[2J\\u202e"\n')
    done = bottleneck("config", environment=table)
    assert done.code == 0
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out


def test_the_example_of_the_documentation_is_taken(tmp_path):
    page = (Path(__file__).parents[2] / "docs/configuration.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "config.toml"
    path.write_text(example, encoding="utf-8-sig")  # as Notepad writes it
    path.chmod(0o600)
    for command, values in tomllib.loads(example).items():
        if command != "defaults":
            variables = {"BOTTLENECK_CONFIG": str(path)}
            assert set(values) <= set(settings(command, COMMANDS, variables))
