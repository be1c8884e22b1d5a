"""Redaction: no name is left, what is left means the same, and every key has been thought of."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
import typing
from pathlib import Path

import jsonschema
import pytest

import bottleneck.records.redaction as table
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import Diagnosis
from bottleneck.cli.documents import text_of
from bottleneck.records import schema as report_schema
from bottleneck.records.redaction import Redaction
from bottleneck.report import report
from probes import STAGES
from probes.core.records import SIDES, FolderFacts, HostFacts, HostSetting, InterfaceFacts

ROOT = Path(__file__).parents[2]
RECORDED = [
    *sorted((ROOT / "tests/data").glob("report-v1-*.json")),
    ROOT / "examples/server-disk-read.json",
]
SENTENCES = table._keys(
    """
    reason error why remedy value option words refused notes sentence summary evidence advice
    altered unknown not_measured program process tool client title peer url detail command healthy
    """
)
"""Keys of free text, in which known names and shapes are replaced."""
# fmt: off
CLASSIFIED = frozenset().union(
    table.STAY, table.STAYING_TABLES, SENTENCES, table.PATHS,
    table.PLACES, table.DEVICES, table.MOUNTS, table.MODELS, table.TOKENS,
    ("name", "source", "share", "command", "interface", "server_interface"),
)
# fmt: on
"""Every key of texts that was thought of; any other is treated as a sentence."""
KINDS = ("json", "html", "ticket", "junit")


def names_of(path):
    return path.stem


def meaning(diagnosis: Diagnosis):
    """Returns the figures and verdicts of a diagnosis, without its words."""
    return diagnosis.headline, [
        (
            (each.copy, each.dialect, each.initiator, each.bytes_per_second, each.next),
            *dataclasses.astuple(each.verdict)[:5],
            (each.ceilings, each.predicted_bytes_per_second, len(each.ladder)),
        )
        for each in diagnosis.copies
    ]


@pytest.mark.long
@pytest.mark.parametrize("path", RECORDED, ids=names_of)
def test_a_redacted_report_loads_and_means_the_same(path):
    original = report.load(path)
    hidden = Redaction().report(original)
    first, second = diagnose(original), diagnose(hidden)
    assert meaning(first) == meaning(second)
    assert len(first.comparisons) == len(second.comparisons)
    document = report.to_json(hidden, second)
    jsonschema.validate(document, report_schema.schema())
    assert report.from_json(document) == hidden


@pytest.mark.parametrize("path", RECORDED, ids=names_of)
def test_what_is_redacted_twice_is_the_same(path):
    once = Redaction().document(report.to_json(report.load(path), Diagnosis(None, (), "")))
    assert Redaction().document(once) == once


def test_two_runs_of_one_setup_have_the_same_tokens():
    example = report.load(ROOT / "examples/server-disk-read.json")
    later = dataclasses.replace(example, elapsed_seconds=1.0, entries=example.entries[:-1])
    first, second = Redaction().report(example), Redaction().report(later)
    assert first.target == second.target and first.entries[:-1] == second.entries
    assert first.target["share"] == "//address-1/share-1"
    assert (first.client.name, first.server.name) == ("client-host", "server-host")


CANARY = "qvxcanary"
ADDRESSES = ("203.0.113.77", "2001:db8::c0de:77", "02:ca:fe:77:66:55")
FOREIGN = (
    f" {CANARY}host refused {CANARY}user of {CANARY}corp, //{CANARY}host/{CANARY} share is gone,"
    f" at //{CANARY}2/{CANARY}3/{CANARY}4, \\\\{CANARY}2\\{CANARY}3,"
    f" smb://{CANARY}5@{CANARY}2/{CANARY}3 ssh://{CANARY}5@{CANARY}2:22, /home/{CANARY}5/{CANARY}6,"
    f" C:\\{CANARY}7\\x, {ADDRESSES[0]}, [{ADDRESSES[1]}]:445, {ADDRESSES[2]},"
    f" {CANARY}5@{CANARY}2.example.com, '{CANARY}user', {CANARY} film.mkv, {CANARY}host's disk"
)
PARSED = frozenset(("schema", "status", "initiator", "kind", "started", "stage", "copy", "side"))
"""Keys whose texts a reader of the report insists on."""


def planted(value, unchanged_keys, key="", above=""):
    """Returns the value with a canary in every text that is not a system's or a driver's own.

    unchanged_keys: keys whose texts stay as they are."""
    if isinstance(value, dict):
        skipped = key in table.STAYING_TABLES
        return {k: v if skipped else planted(v, unchanged_keys, k, key) for k, v in value.items()}
    if isinstance(value, list):
        return [planted(each, unchanged_keys, key, above) for each in value]
    is_replaced = key != "name" or above in (*table.NAMED_DISKS, *SIDES, "interface", "lower")
    if not isinstance(value, str) or key in unchanged_keys or not is_replaced:
        return value
    if key in table.PATHS:
        return f"/home/{CANARY}user/{CANARY}{value.strip('/')}"
    if key in table.PLACES:
        return ADDRESSES[len(value) % 2]
    if key == "share":
        return f"//{CANARY}host:4445/{CANARY} share/{CANARY}folder"
    if key in table.MOUNTS:
        return f"{value},username={CANARY},addr={ADDRESSES[0]},upperdir=/{CANARY}/x,odd={CANARY}"
    return f"{value}{FOREIGN}" if key in SENTENCES else f"{CANARY}{value}"


def canary_report(path, unchanged_keys=PARSED | table.STAY):
    document = json.loads(path.read_text())
    del document["diagnosis"]
    document = planted(document, unchanged_keys)
    document["tool"]["command"] = [
        *f"bottleneck diagnose --user {CANARY}user".split(),
        f"//{CANARY}host/{CANARY} share",
        *f"--domain={CANARY}corp --agent ssh://{CANARY}a@{CANARY}b --folder {CANARY}/x".split(),
        "--agent",
        f"exec:docker exec -i {CANARY}",
        "--file",
        f"{CANARY} film.mkv",
    ]
    document["notes"] = [FOREIGN]
    document["target"].update(
        novel=FOREIGN, deep=[{"novel": FOREIGN, f"{CANARY}é": 1}], server_guid=f"{CANARY}"
    )
    document["steps"].append(
        {
            **{"stage": "smb-copy", "initiator": "client", "why": FOREIGN},
            "setting": {"copy": "file.pull.uncached", "dialect": "3.1.1", "file": f"a\\{CANARY}.x"},
            "outcome": {"kind": "failed", "error": f"{CANARY}.x: STATUS_ACCESS_DENIED {FOREIGN}"},
        }
    )
    document["steps"].append(
        {
            **{"stage": "tcp", "initiator": "client", "setting": {"peer": f"iperf3://{CANARY}"}},
            "outcome": {"kind": "skipped", "reason": f"{CANARY}host: {FOREIGN}"},
        }
    )
    return document


def assert_no_canary(text):
    folded = text.lower()
    for canary in (CANARY, *ADDRESSES):
        index = folded.find(canary)
        assert index < 0, text[max(0, index - 200) : index + 100]


@pytest.mark.long
@pytest.mark.parametrize("path", RECORDED, ids=names_of)
def test_no_canary_is_left_in_any_document(path):
    original = report.from_json(canary_report(path))
    assert CANARY in text_of("json", original, diagnose(original))
    hidden = Redaction().report(original)
    diagnosis = diagnose(hidden)
    for kind in KINDS:
        assert_no_canary(text_of(kind, hidden, diagnosis))
    document = {**report.to_json(original, diagnose(original))}
    assert_no_canary(json.dumps(Redaction().document(document)))


@pytest.mark.parametrize(
    "hint", [("report-v1-comparisons",), ("report-v1-lab-with-agent",), ("server-disk-read",)]
)
def test_canaries_change_no_verdict(hint):
    (path,) = [each for each in RECORDED if each.stem in hint]
    unchanged_keys = PARSED | table.STAY | table.DEVICES | table.MOUNTS | {"name"}
    original = report.from_json(canary_report(path, unchanged_keys))
    assert meaning(diagnose(Redaction().report(original))) == meaning(diagnose(original))


# -- every key has been thought of -------------------------------------------------------------


def text_keys(value, key=""):
    if isinstance(value, dict):
        for name, each in value.items():
            yield from text_keys(each, key if key in table.STAYING_TABLES else name)
    elif isinstance(value, list):
        for each in value:
            yield from text_keys(each, key)
    elif isinstance(value, str):
        yield key


def test_every_text_of_the_recorded_reports_is_classified():
    keys = set()
    for path in RECORDED:
        document = json.loads(path.read_text())
        del document["diagnosis"]
        keys.update(text_keys(document))
    assert keys - CLASSIFIED == set()


def may_hold_text(kind):
    return kind is str or any(may_hold_text(each) for each in typing.get_args(kind))


@pytest.mark.parametrize("record", [HostFacts, InterfaceFacts, FolderFacts, HostSetting])
def test_every_text_of_a_host_is_classified(record):
    kinds = typing.get_type_hints(record)
    keys = {each.name for each in dataclasses.fields(record) if may_hold_text(kinds[each.name])}
    keyed_by_text = {"pause", "offloads", "counts", "pcie"}
    plain = {"layers", "wifi"}
    assert keys - CLASSIFIED - keyed_by_text - plain == set()


@pytest.mark.parametrize("stage", STAGES)
def test_every_text_of_a_setting_is_classified(stage):
    module = importlib.import_module(f"probes.stages.{stage.replace('-', '_')}")
    kinds = typing.get_type_hints(module.Setting)
    keys = {name for name, kind in kinds.items() if may_hold_text(kind)}
    assert keys - CLASSIFIED - {"seed"} == set()


def schema_texts(schema, key=""):
    for name, each in schema.get("properties", {}).items():
        yield from schema_texts(each, name)
    for name, each in schema.get("$defs", {}).items():
        yield from schema_texts(each, name)
    if isinstance(schema.get("items"), dict):
        yield from schema_texts(schema["items"], key)
    if schema.get("type") == "string" or "text_or_null" in schema.get("$ref", ""):
        yield key


def test_every_text_of_the_schema_is_classified():
    keys = set(schema_texts(report_schema.schema()))
    assert keys - CLASSIFIED - {"text_or_null"} == set()


# -- names that are words, and words that are names --------------------------------------------


def redaction_of(**options):
    document = json.loads((ROOT / "examples/server-disk-read.json").read_text())
    document["target"]["share"] = options.get("share", "//nas/media")
    document["hosts"]["client"]["name"] = options.get("client", "desk")
    document["hosts"]["server"]["name"] = options.get("server", "nas.example.lan")
    redaction = Redaction()
    redaction.arguments(["diagnose", "--user", options.get("user", "data")])
    redaction.document(document)
    return redaction


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("nas: the name cannot be resolved", "server-host: the name cannot be resolved"),
        ("NAS.example.lan refused the login of data", "server-host refused the login of user-1"),
        ("no password for data: set it", "no password for user-1: set it"),
        ("the nasal and the media-nas are slow", "the nasal and the [redacted] are slow"),
        ("the nas's disk is on, on and on", "the server-host's disk is on, on and on"),
        ("//nas/media and \\\\NAS\\media", "//server-host/share-1 and \\\\server-host\\share-1"),
        ("smb://data@nas:4455/media", "smb://user-1@server-host:4455/share-1"),
        ("write //host/share, or --agent ssh://HOST", "write //host/share, or --agent ssh://HOST"),
        ("ssh://data@nas:22 is gone", "ssh://user-1@server-host:22 is gone"),
        ("at 192.168.1.7:445 and fe80::1%eth0", "at address-N:445 and address-N"),
        ("127.0.0.1 and [::1]:445", "127.0.0.1 and [::1]:445"),
        ("a9:b8:c7:d6:e5:f4 answers", "address-N answers"),
        ("put it into /etc/samba/smb.conf", "put it into /etc/samba/smb.conf"),
        ("at 16:22:25 it took 3.5 s, 24.5 MB/s", "at 16:22:25 it took 3.5 s, 24.5 MB/s"),
        ("STATUS_ACCESS_DENIED (0xc0000022)", "STATUS_ACCESS_DENIED (0xc0000022)"),
        ("a 256MiB file, SMB 3.1.1, AES-128-GCM", "a 256MiB file, SMB 3.1.1, AES-128-GCM"),
        ("This host belongs to Brmblfx Ltd.", "This host belongs to Brmblfx Ltd."),
        ("in /etc/samba and /home/anna/x", "in /etc/samba and path-N"),
    ],
)
def test_names_are_replaced_as_whole_words(sentence, expected):
    assert re.sub(r"(address|path)-\d+", r"\1-N", redaction_of().text(sentence)) == expected


@pytest.mark.parametrize("name", ["disk", "read", "server", "client", "cached", "smb"])
def test_a_name_that_is_a_word_of_the_schema_tears_no_sentence(name):
    redaction = redaction_of(share=f"//{name}/{name}", server=name, user=name)
    assert redaction.text("the server's disk reads cached files over smb to the client") == (
        "the server's disk reads cached files over smb to the client"
    )
    assert redaction.text(f"//{name}/{name}: refused") == "//server-host/share-1: refused"
    assert redaction.text(f"smb://{name}@{name}/{name}") == "smb://user-1@server-host/share-1"
    assert redaction.text(f"the share '{name}' is gone") == "the share 'server-host' is gone"


@pytest.mark.parametrize("name", ["disk", "read", "nas", "data", "copy", "pull.cached", "measured"])
def test_structural_words_stay_whatever_the_names_are(name):
    example = report.load(ROOT / "examples/server-disk-read.json")
    original = dataclasses.replace(
        example,
        target={**example.target, "share": f"//{name}/{name}"},
        client=dataclasses.replace(example.client, name=name),
    )
    hidden = Redaction().report(original)
    assert meaning(diagnose(hidden)) == meaning(diagnose(example))
    assert hidden.target["share"].startswith("//client-host/")
    stages = [(step.stage, step.setting.get("cache")) for step, _ in example.entries]
    assert [(step.stage, step.setting.get("cache")) for step, _ in hidden.entries] == stages


def test_the_command_keeps_its_options_and_loses_its_names():
    words = Redaction().arguments(
        [
            *"bottleneck diagnose //nas:4455/media/films --user ann --yes".split(),
            *"--budget 60 --agent ssh://ann@nas --folder=/home/ann/x --quick".split(),
        ]
    )
    assert words == [
        *"bottleneck diagnose //server-host:4455/share-1/path-1 --user user-1".split(),
        *"--yes --budget 60 --agent ssh://user-1@server-host --folder=path-2".split(),
        "--quick",
    ]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("//nas/Media Files: login: denied", "//server-host/share-1: login: denied"),
        ("\\\\nas\\Media Files\\x", "\\\\server-host\\share-1\\path-N"),
        (
            "create Sub Dir\\bottleneck-0123456789abcdef",
            "create path-N\\bottleneck-0123456789abcdef",
        ),
        ("at /srv/Geheim Ordner/x.txt.", "at path-N/path-N."),
        ("/srv/Geheim Ordner: full", "path-N: full"),
        ("./secretdir and secretdir: not found", "path-N and path-N: not found"),
        ("docker exec -i zorkhost python3 -V", "command-N python3 -V"),
        ("zorkhost is gone; use --user NAME", "command-N is gone; use --user NAME"),
    ],
)
def test_names_of_several_words_and_what_was_typed_are_hidden(sentence, expected):
    redaction = redaction_of(share="//nas/Media Files/Sub Dir", server="nas", user="user")
    typed = ["--folder", "/srv/Geheim Ordner", "--file", "./secretdir"]
    redaction.arguments(["diagnose", *typed, "--agent", "exec:docker exec -i zorkhost"])
    text = re.sub(r"(path|command)-\d+", r"\1-N", redaction.text(sentence))
    assert text == expected


def test_a_mount_option_names_nothing_that_a_sentence_could_hold():
    """Overlay's `uuid=on` is in every container."""
    redaction = Redaction()
    options = redaction._mount_options(
        "rw,uuid=on,upperdir=/x/y,username=anna,addr=10.1.2.3,vers=3.1"
    )
    assert options == "rw,uuid=on,upperdir=option-1,username=user-1,addr=address-1,vers=3.1"
    assert redaction.text("on it goes, for anna") == "on it goes, for user-1"


def test_what_only_the_login_and_a_configuration_tell_is_hidden_too():
    redaction = Redaction()
    redaction.options({"user": "CORP\\anna", "server_folder": "/srv/films", "budget": 20})
    redaction.learn("domain", "acme")
    redaction.learn("user", "root")
    redaction.arguments(
        ["diagnose", "--user", "backup", "--agent", "exec:sh -c 'bottleneck agent'"]
    )
    assert redaction.text("backup has no login; use bottleneck cleanup") == (
        "user-2 has no login; use bottleneck cleanup"
    )
    assert redaction.text("anna of corp and acme, /srv/films, run it as root") == (
        "user-1 of domain-1 and domain-2, path-1, run it as root"
    )


def test_a_serial_number_in_a_model_goes_and_the_model_stays():
    model = Redaction()._model("Samsung SSD 870 EVO 1TB_S5Y1NJ0R123456K")
    assert model == "Samsung SSD 870 EVO 1TB_serial-1"
