"""The examples for CI and monitoring: valid to the systems that read them, true to our own CLI."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.cli.app import tree
from bottleneck.documents.openmetrics import FAMILIES, PREFIX
from bottleneck.estimate import observations, supplied_report
from bottleneck.gate import expectation
from bottleneck.gate.judging import judge
from bottleneck.report import report

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PROGRAM = "/usr/local/bin/bottleneck"
METRICS = {PREFIX + name: {*family.labels, "instance"} for name, family in FAMILIES.items()}
UNIT = EXAMPLES / "systemd" / "copy-bottleneck-check.service"
TIMER = UNIT.with_suffix(".timer")
FLEET = UNIT.with_name("bottleneck-fleet.service")
RISK_TENTHS = 25
"""Exposure of ten at most: 1.9 today, the network and the host's /proc are needed."""


def read(name):
    return (EXAMPLES / name).read_text(encoding="utf-8")


def yaml(name):
    return YAML(typ="safe", pure=True).load(read(name))


def ran(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def needs(program):
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    return path


# -- the command lines -------------------------------------------------------------------------


def in_shell(script):
    for line in script.splitlines():
        words = []
        for word in [*shlex.split(line), ";"]:
            if word in ("||", "&&", "|", ";"):
                if words[:1] == ["bottleneck"]:
                    yield words[1:]
                words = []
            else:
                words.append(word)


def github_lines():
    for step in yaml("github-workflow.yml")["jobs"]["bottleneck"]["steps"]:
        yield from in_shell(step.get("run", ""))


def gitlab_lines():
    for line in yaml("gitlab-ci.yml")["file-copies"]["script"]:
        yield from in_shell(line)


def systemd_words():
    """Yields words as systemd splits and fills them in: `${A}` stays a word, `$A` becomes many."""
    text = UNIT.read_text(encoding="utf-8")
    variables = {"CREDENTIALS_DIRECTORY": "/run/credentials", "RUNTIME_DIRECTORY": "/run/copies"}
    variables |= {"STATE_DIRECTORY": "/var/lib/copies", "CACHE_DIRECTORY": "/var/cache/copies"}
    variables["INVOCATION_ID"] = "0f2e"
    for line in re.findall(r"^Environment=(.*)$", text, re.MULTILINE):
        name, _, value = line.strip('"').partition("=")
        variables[name] = value
    for line in re.findall(r"^ExecStart=-?(.*)$", text, re.MULTILINE):
        words = []
        for word in shlex.split(line):
            if re.fullmatch(r"\$\w+", word):
                words += variables[word[1:]].split()
            else:
                words.append(re.sub(r"\$\{(\w+)\}", lambda hit: variables[hit[1]], word))
        assert words[0] == PROGRAM
        yield words[1:]


def nagios_lines():
    text = read("nagios-command.cfg")
    line = re.search(r"command_line\s+(.*)", text)[1]
    name, *arguments = re.search(r"check_command\s+(.*)", text)[1].strip().split("!")
    assert f"command_name  {name}\n" in text
    for index, value in enumerate(arguments, 1):
        line = line.replace(f"$ARG{index}$", value)
    words = shlex.split(line)
    assert words[0] == PROGRAM and "$" not in line
    # NRPE refuses arguments with any of these.
    assert not set("".join(arguments)) & set("|`&><'\\[]{};")
    yield words[1:]


def icinga_words():
    command, arguments, variables = icinga()
    words = command[1:]
    for option, argument in arguments.items():
        value = variables.get(re.search(r'value = "\$(\w+)\$"', argument)[1])
        for each in value if isinstance(value, list) else [value] if value else []:
            words += [option, each]
    assert command[0] == PROGRAM
    yield words


def text_lines():
    for name in ("README.md", "windows.md"):
        for line in re.findall(r"`bottleneck ([^`]+)`", read(name)):
            if " " in line:
                yield shlex.split(line)


LINES = [
    (source.__name__, line)
    for source in (github_lines, gitlab_lines, systemd_words, nagios_lines, text_lines)
    for line in source()
]


def icinga():
    """The command, its arguments' blocks, and what the service gives, of Icinga's file."""
    text = re.sub(r"^\s*//.*$", "", read("icinga2-command.conf"), flags=re.MULTILINE)
    command = re.findall(r'"([^"]*)"', re.search(r"command = \[(.*)\]", text)[1])
    arguments = dict(re.findall(r'"(--[\w-]+)" = \{([^}]*)\}', text))
    variables = {}
    for name, value in re.findall(r"vars\.(\w+) = (.*)", text):
        matches = re.findall(r'"([^"]*)"', value)
        variables[name] = matches if value.startswith("[") else matches[0]
    return command, arguments, variables


def parse_line(line):
    """Parses one command line as our own CLI does. Errors: whatever it refuses."""
    command = tree().commands[line[0]]
    return command.make_context(line[0], list(line[1:])).params


def holds(line):
    """Asserts that a command line is one that we understand, its expectations too."""
    options = parse_line(line)
    for severity, name in (("warning", "warn"), ("critical", "crit")):
        for each in options.get(name) or ():
            expectation.limit(each, severity)
    for each in options.get("expect_cap") or ():
        expectation.cap(each)
    if options.get("max_age"):
        expectation.age(options["max_age"])
    if line[0] == "check":
        assert options["format"] in ("text", "nagios", "junit", "openmetrics", "github", "json")


@pytest.mark.parametrize(("source", "line"), LINES)
def test_each_command_line_is_one_that_the_program_understands(source, line):
    holds(line)


@pytest.mark.parametrize(
    "source",
    [github_lines, gitlab_lines, systemd_words, nagios_lines, icinga_words],
    ids=lambda each: each.__name__,
)
def test_what_is_expected_is_measured_without_an_agent_too(source):
    """Without an agent as in the examples: else their first answer would be UNKNOWN."""
    stored_report = report.load(ROOT / "tests" / "data" / "report-v1-lab-no-agent.json")
    for line in source():
        options = parse_line(line)
        words = [*(options.get("warn") or ()), *(options.get("crit") or ())]
        expected = [expectation.limit(each, "warning") for each in words]
        if expected:
            judged = judge(stored_report, diagnose(stored_report), expected).judged
            assert all(each.value is not None for each in judged), judged


def test_the_examples_measure_without_asking_and_judge_what_they_measured():
    for source in (github_lines, gitlab_lines, systemd_words):
        lines = list(source())
        measured = [parse_line(line) for line in lines if line[0] == "diagnose"]
        judged = [parse_line(line) for line in lines if line[0] == "check"]
        assert len(measured) == 1 and judged, source
        assert measured[0]["yes"]
        written = measured[0]["json"]
        assert {each["report"] for each in judged} <= {written, str(Path(written).parent)}


def test_no_example_has_a_password():
    for path in EXAMPLES.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"password\s*[=:]\s*\S", text.replace("password =,", "")), path


def test_every_example_is_in_the_readme():
    text = read("README.md")
    for path in set(EXAMPLES.iterdir()) - {EXAMPLES / "README.md"}:
        entry = f"{path.name}/" if path.is_dir() else path.name
        assert entry in text or path.suffix == ".toml", path


# -- CI ----------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "schema"),
    [("github-workflow.yml", "github-workflows"), ("gitlab-ci.yml", "gitlab-ci")],
)
def test_ci_files_are_valid_to_the_published_schemas(name, schema):
    transform = ["--data-transform", "gitlab-ci"] if schema == "gitlab-ci" else []
    said = ran(
        *f"{sys.executable} -m check_jsonschema --builtin-schema vendor.{schema}".split(),
        *transform,
        str(EXAMPLES / name),
    )
    assert "ok" in said


def test_the_workflow_keeps_its_reports_and_takes_no_rights():
    workflow = yaml("github-workflow.yml")
    assert workflow["permissions"] == {}
    job = workflow["jobs"]["bottleneck"]
    assert "self-hosted" in job["runs-on"]
    upload = job["steps"][-1]
    assert upload["if"] == "always()"
    assert upload["with"]["path"].split() == ["report.json", "report.html"]
    # What a name in the workflow's context holds would be read as shell.
    assert not any("${{" in step.get("run", "") for step in job["steps"])


def test_the_pipeline_shows_the_junit_document_that_check_writes():
    job = yaml("gitlab-ci.yml")["file-copies"]
    (judged,) = [parse_line(line) for line in gitlab_lines() if line[0] == "check"]
    assert judged["format"] == "junit"
    assert job["artifacts"]["reports"]["junit"] == judged["output"]
    assert job["artifacts"]["when"] == "always"


# -- Nagios and Icinga -------------------------------------------------------------------------


def test_each_argument_of_icingas_file_is_an_option_of_check():
    options = {name for parameter in tree().commands["check"].params for name in parameter.opts}
    _, arguments, variables = icinga()
    assert arguments and set(arguments) <= options
    assert set(variables) == {
        "copy_bottleneck_max_age",
        *(f"copy_bottleneck_{name}" for name in ("report", "warn", "crit")),
    }
    for line in icinga_words():
        holds(line)


def test_monitoring_reads_the_report_that_the_service_leaves():
    text = UNIT.read_text(encoding="utf-8")
    folder = re.search(r"^StateDirectory=(.*)$", text, re.MULTILINE)[1]
    (measured,) = [line for line in systemd_words() if line[0] == "diagnose"]
    name = Path(parse_line(measured)["json"]).parent.name
    for line in (*nagios_lines(), *icinga_words()):
        assert parse_line(line)["report"] == f"/var/lib/{folder}/{name}"
    assert re.search(r"^StateDirectoryMode=0755$", text, re.MULTILINE)
    assert not re.search(r"^DynamicUser", text, re.MULTILINE)


# -- systemd -----------------------------------------------------------------------------------


@pytest.fixture
def units(tmp_path):
    for path in (UNIT, TIMER, FLEET, FLEET.with_suffix(".timer")):
        text = path.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true")
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    return tmp_path


def test_systemd_has_nothing_to_say_of_the_units(units):
    verify = (needs("systemd-analyze"), "verify", "--man=no")
    assert ran(*verify, *map(str, units.iterdir())) == ""


@pytest.mark.long
def test_the_service_is_in_a_sandbox(units):
    analyze = needs("systemd-analyze")
    command = (analyze, "security", "--offline=true", f"--threshold={RISK_TENTHS}")
    for unit in (UNIT, FLEET):
        assert "Overall exposure level" in ran(*command, str(units / unit.name))
    text = UNIT.read_text(encoding="utf-8")
    for each in (
        "ProtectSystem=strict",
        "NoNewPrivileges=yes",
        "PrivateTmp=yes",
        "CapabilityBoundingSet=",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    ):
        assert f"\n{each}\n" in text
    assert re.search(r"^MemoryMax=\d+G$", text, re.MULTILINE)
    assert "RandomizedDelaySec=" in TIMER.read_text(encoding="utf-8")


def test_the_service_reads_the_password_from_a_file_that_only_it_can_read():
    text = UNIT.read_text(encoding="utf-8")
    (measured,) = [line for line in systemd_words() if line[0] == "diagnose"]
    where = str(parse_line(measured)["auth_file"])
    assert where == "/run/copies/auth"
    assert "ExecStartPre=/usr/bin/install -m 0600 ${CREDENTIALS_DIRECTORY}/auth " in text
    assert "\nRuntimeDirectoryMode=0700\n" in text


# -- Prometheus and Grafana --------------------------------------------------------------------


def checked_labels(expression):
    """Asserts that each metric of an expression is one of ours; the labels that they all have."""
    names = re.findall(rf"\b{PREFIX}\w+", expression)
    assert names and set(names) <= set(METRICS), expression
    for name, matchers in re.findall(rf"\b({PREFIX}\w+)\{{([^}}]*)\}}", expression):
        assert set(re.findall(r"(\w+)\s*[=!]", matchers)) <= METRICS[name], expression
    shared = set.intersection(*(METRICS[name] for name in names))
    for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
        assert set(re.split(r",\s*", labels)) <= shared, expression
    return shared


def rules():
    (group,) = yaml("prometheus-alerts.yml")["groups"]
    return group["rules"]


def test_alerts_ask_for_metrics_that_there_are_and_name_labels_that_those_have():
    assert len({rule["alert"] for rule in rules()}) == len(rules()) >= 5
    for rule in rules():
        labels = checked_labels(rule["expr"])
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        text = " ".join(rule["annotations"].values())
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels, rule["alert"]


def test_alerts_fire_when_a_disk_slows_down_and_not_before():
    tests = ROOT / "tests" / "data" / "prometheus-alerts-test.yml"
    assert "SUCCESS" in ran(needs("promtool"), "test", "rules", str(tests))


def test_the_dashboard_asks_for_metrics_that_there_are():
    board = json.loads(read("grafana-dashboard.json"))
    for panel in board["panels"]:
        assert panel["targets"] and panel["description"], panel["title"]
        for target in panel["targets"]:
            labels = checked_labels(target["expr"])
            matches = re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", ""))
            match = re.search(r"\bby \(([^)]*)\)", target["expr"])
            assert set(matches) <= (set(match[1].split(", ")) if match else labels), target
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            checked_labels(variable["definition"])


def test_the_readme_names_every_metric_and_label():
    text = read("README.md")
    for name, family in FAMILIES.items():
        end = name.removeprefix("expectation_")
        assert PREFIX + name in text or f"`..._{end}`" in text, name
        assert all(f"`{label}`" in text for label in family.labels), name


# -- Windows -----------------------------------------------------------------------------------


def test_what_powershell_writes_is_read():
    text = read("windows.md")
    block = text.split("```toml\n")[1].split("```")[0]
    supplied = supplied_report.report_of(observations.loads(block.encode()))
    assert [step.stage for step, _ in supplied.entries] == ["smb-copy"]
    script = text.split("```powershell\n")[1].split("```")[0]
    keys = r"^(\w+) ?=|^\[+(\w+)\]+"
    matches = re.findall(keys, block, re.MULTILINE)
    written = script.split('@"\n')[1].split('\n"@')[0]
    assert re.findall(keys, written, re.MULTILINE) == matches
