"""Output of --help: fits on a terminal, speaks plainly, and its examples are real commands."""

import re
import shlex
import subprocess
import sys

import pytest

from bottleneck.cli import app, exits
from bottleneck.cli.app import run, tree
from bottleneck.cli.command_line import commands_of, options_of
from probes import STAGES
from probes.core.stage import module_of

COMMANDS = commands_of(tree())
COLUMNS, MOST_WORDS = 80, 25
METAVARS = {"FILE", "DIR", "N", "SECONDS", "NAME", "SHARE", "RATE", "BYTES", "TIME", "AGE", "LIST"}
METAVARS |= {"SPEC", "URL", "DEV", "DISK", "EXPR", "VERDICT", "4|6", "ADDRESS:PORT"}
METAVARS |= {"link|disk|window|cpu", "on|off", "COMMAND", "sequential|random", "push|pull"}
METAVARS |= {"read|write", "COPY", "SIDE"}
COINED = re.compile(
    r"(?<!-)\b(caps?|capped|ceilings?|ladder|lies|told|tells|so many|nobody|somebody|no right|"
    r"none of|speaks?|coordinator|instrument|left out|give|broke off|rung|alone|blamed?)\b",
    re.IGNORECASE,
)

LOADED = {
    "bottleneck": "agents cli documents target text agents.own_modules documents.formats",
    "bottleneck.login": "credentials target",
    "bottleneck.text": "safe units",
    "bottleneck.cli": "app command_line completion exits interrupts knobs options streams",
    "probes": "core smb system core.field_types core.records core.stage smb.kerberos",
    "probes.system": "accounts child events forked platform proc tools waiting",
}
"""Modules that every start loads, besides the commands; rich alone would double it."""
STARTED = """import sys; from bottleneck.__main__ import main; sys.argv[1:] = ["--help"]
try: main()
finally: print(*sys.modules, file=sys.stderr)"""


def test_a_start_loads_typer_and_these_modules_alone():
    ended = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, check=True)
    loaded = set(ended.stderr.decode().split())
    for package, names in LOADED.items():
        loaded -= {package, *(f"{package}.{name}" for name in names.split())}
    commands = {f"bottleneck.cli.{name}" for name in (*COMMANDS, "fleet_together")}
    assert loaded.isdisjoint(("rich", "ssl", "statistics", "asyncio", "tomllib", "psutil"))
    ours = {each for each in loaded if each.startswith(("bottleneck", "probes"))}
    assert ours <= {"bottleneck.__main__", *commands}


@pytest.fixture
def page(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))

    def helped(name=""):
        words = ["help", *name.split()] if name.isalpha() else [*name.split(), "--help"]
        assert run(words) == exits.DONE
        return capsys.readouterr().out

    return helped


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_on_80_columns_and_cuts_nothing(page, name):
    text = page(name)
    assert max(map(len, text.splitlines())) < COLUMNS
    assert "..." not in re.sub(r"\[OPTION\]\.\.\.|\[ARGS\]\.\.\.|smb://\.\.\.", "", text)
    if name == "probe":  # each option stands in the help of a stage that has it
        text = "".join(page(f"probe {stage}") for stage in STAGES)
    for option in options_of(COMMANDS[name] if name else tree()):
        assert all(re.search(rf"^  .*{flag}\b", text, re.MULTILINE) for flag in option.flags)


def test_the_help_of_probe_is_one_screen_with_a_line_for_each_stage(page):
    text = page("probe")
    assert len(text.splitlines()) <= 32
    assert re.findall(r"^  ([a-z-]+)  +[A-Z]", text, re.MULTILINE) == list(STAGES)


@pytest.mark.parametrize("stage", STAGES)
def test_the_help_of_a_stage_has_what_it_takes_alone(page, stage):
    text = page(f"probe {stage}")
    takes = "TARGET" if module_of(stage).STAGE.needs else "[TARGET]"
    assert text.startswith(f"Usage: bottleneck probe [OPTION]... {stage} {takes}\n")
    assert max(map(len, text.splitlines())) < COLUMNS
    for flag, only in (("--device", "disk"), ("--copy", "smb-copy"), ("--tcp-peer", "tcp")):
        assert (f"  {flag} " in text) == (stage == only), flag


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_each_summary_as_a_whole_sentence(page, name):
    first = (COMMANDS[name].help or "").partition("\n")[0]
    assert first.endswith(".") and f"  {name:<8}  {first}\n" in page()


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_sentences_are_short_and_without_coined_words(page, name):
    text = re.sub(r"^.*\n", "", page(name)).partition("Examples:")[0]
    assert not COINED.findall(text)
    command = COMMANDS[name] if name else tree()
    summaries = [command.help or "", *(each.help for each in options_of(command))]
    for sentence in re.split(r"(?<=\.)\s+|\n\n", " ".join(summaries)):
        assert len(sentence.split()) <= MOST_WORDS, sentence


@pytest.mark.parametrize("name", COMMANDS)
def test_a_value_is_named_as_elsewhere_and_an_option_has_a_sentence(name):
    for option in options_of(COMMANDS[name]):
        assert option.metavar in METAVARS or option.kind is bool, option
        assert option.help.endswith(".") and option.help[0].isupper(), option


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_two_examples_are_commands_that_the_parser_takes(page, name):
    shown_ones = re.findall(r"^    bottleneck (.+)$", page(name).partition("Examples:")[2], re.M)
    assert tuple(shown_ones) == app.EXAMPLES[name] and len(shown_ones) == 2
    for each in shown_ones:
        command, *arguments = shlex.split(each.partition(" > ")[0])
        assert name in ("", command)
        COMMANDS[command].make_context(command, arguments)


def test_the_groups_of_diagnose_are_in_their_order(page):
    headings = re.findall(r"^(\w[\w ]*):$", page("diagnose"), re.MULTILINE)
    expected = "Arguments, Common options, Login, Hosts and agents, Copies, Disk, Time, Output"
    assert headings == [*expected.split(", "), "Options"]
    first = page("diagnose").partition("Common options:")[2].partition("\n\n")[0]
    assert len(re.findall(r"^  --", first, re.MULTILINE)) == 10


@pytest.mark.parametrize("short", ["-h", "--help"])
def test_help_and_version_have_their_short_names(short, capsys):
    for words in ([], ["probe"], ["check"]):
        assert run([*words, short]) == exits.DONE
        assert capsys.readouterr().out.startswith("Usage: bottleneck")
    assert run(["-V"]) == exits.DONE
    assert capsys.readouterr().out.startswith("bottleneck ")
