"""The configuration from outside: which commands heed it, `bottleneck config`, exit codes."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from bottleneck.cli import configured
from bottleneck.cli.app import app
from bottleneck.configuration import settings

NOWHERE = "//127.0.0.1:9/share"


@pytest.fixture
def configuration(tmp_path):
    """Writes a file; the environment that names it."""

    def write(text):
        path = tmp_path / "config.toml"
        path.write_text(text)
        path.chmod(0o600)
        return {"BOTTLENECK_CONFIG": str(path)}

    return write


def test_a_setting_reaches_the_command(bottleneck, configuration):
    told = configuration('[diagnose]\nyes = true\nfolder = "/nonexistent"\n')
    done = bottleneck("diagnose", NOWHERE, "--allow-guest", environment=told)
    assert done.code == 64
    assert "--folder /nonexistent" in done.complaint


def test_the_command_line_wins(bottleneck, configuration, tmp_path):
    told = configuration('[defaults]\nfolder = "/nonexistent"\nquick = true\n')
    command = ("diagnose", NOWHERE, "--allow-guest", "--yes", "--budget", 5)
    done = bottleneck(*command, "--folder", tmp_path, environment=told)
    assert done.code == 69, done.err
    assert "127.0.0.1" in done.complaint


def test_every_kind_of_option_is_taken_by_the_parser(bottleneck, configuration):
    told = configuration("[diagnose]\nzones = 1\n")
    done = bottleneck("diagnose", NOWHERE, "--allow-guest", "--yes", environment=told)
    assert (done.code, "--zones" in done.complaint) == (64, True)
    variables = {"BOTTLENECK_CONFIG": "", "BOTTLENECK_BUDGET": "1", "BOTTLENECK_YES": "1"}
    done = bottleneck("diagnose", NOWHERE, "--allow-guest", environment=variables)
    assert (done.code, "--budget" in done.complaint) == (64, True)


def test_a_mistake_is_a_usage_error_and_the_report_is_still_one_document(bottleneck, configuration):
    told = configuration("[defaults]\nfoldr = 1\n")
    done = bottleneck("diagnose", NOWHERE, "--json", "-", environment=told)
    assert done.code == 64
    assert "line 2: 'foldr' is no option of any command; near it: folder" in done.complaint
    assert json.loads(done.out)["status"] == "failed"


@pytest.mark.parametrize("command", ["schema", "--version", "estimate", "--help"])
def test_what_reads_no_settings_does_not_mind_a_broken_file(bottleneck, configuration, command):
    more = {"estimate": ("--link", "1Gbit/s", "--rtt", "1ms")}.get(command, ())
    done = bottleneck(command, *more, environment=configuration("broken"))
    assert done.code == 0, done.err


def test_help_of_a_command_does_not_mind_either(bottleneck, configuration):
    done = bottleneck("diagnose", "--help", environment=configuration("broken"))
    assert done.code == 0
    assert "--agent" in done.out


def test_config_shows_each_value_with_its_origin(bottleneck, configuration):
    told = configuration('[defaults]\nagent = "ssh://nas"\n[diagnose]\nquick = true\n')
    done = bottleneck("config", environment={**told, "BOTTLENECK_UNITS": "iec"})
    assert done.code == 0
    path = told["BOTTLENECK_CONFIG"]
    lines = done.out.splitlines()
    assert lines[0] == f"# {path}: read"
    section = lines[lines.index("[diagnose]") :]
    assert f'agent = "ssh://nas"  # {path}, line 2' in section
    assert f"quick = true  # {path}, line 4" in section
    assert 'units = "iec"  # BOTTLENECK_UNITS' in section
    one = bottleneck("config", "diagnose", environment=told)
    assert "zones = 9  # built in" in one.out
    assert "# user is not set" in one.out


def test_config_names_the_commands_that_take_settings(bottleneck):
    done = bottleneck("config", "demo", environment={"BOTTLENECK_CONFIG": ""})
    assert done.code == 64
    assert "diagnose" in done.complaint


def test_config_moves_no_cursor(bottleneck, configuration):
    told = configuration('[defaults]\nagent = "\\u001b[2J\\u202e"\n')
    done = bottleneck("config", environment=told)
    assert done.code == 0
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out


def test_the_example_of_the_documentation_is_taken(tmp_path):
    page = (Path(__file__).parents[2] / "docs/configuration.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "config.toml"
    path.write_text(example)
    path.chmod(0o600)
    for command, told in tomllib.loads(example).items():
        if command != "defaults":
            named = {"BOTTLENECK_CONFIG": str(path)}
            assert set(told) <= set(settings(command, configured.kinds(app), named))
