"""Builds the report's JSON Schema, draft 2020-12, from the records of a report.

Types and names come from the records. This module adds forms that only the document has, keys
that were added later, and descriptions.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from itertools import chain
from typing import Any

from bottleneck.analysis import finding
from bottleneck.analysis.model import Band
from bottleneck.analysis.rules.registry import CAUSES
from bottleneck.report.report import SCHEMA, STATUSES
from probes.core.records import SIDES, FolderFacts, HostFacts, InterfaceFacts, Spread, Usage

Schema = dict[str, Any]
NULL = {"type": "null"}
NAMED: dict[type, str] = {
    HostFacts: "host",
    InterfaceFacts: "interface",
    FolderFacts: "folder",
    Usage: "usage",
    finding.CopyDiagnosis: "copy",
    finding.Comparison: "comparison",
    finding.Ceiling: "ceiling",
    Band: "predicted",
    finding.Rung: "rung",
    finding.Target: "target",
}
"""Records with a definition of their own; others are inlined."""
LATER: dict[type, tuple[str, ...]] = {
    finding.Diagnosis: ("summary", "comparisons", "altered", "healthy"),
    finding.CopyDiagnosis: ("ladder", "target", "time", "view", "suspects"),
    finding.Verdict: ("detail", "rival"),
    finding.Ceiling: ("low_bytes_per_second", "high_bytes_per_second", "standing"),
    finding.Rung: ("assumed_link_bytes_per_second",),
}
"""Keys that an older diagnosis may lack."""
OF_EVERY_RECORD: dict[str, Schema] = {
    "component": {"$ref": "#/$defs/component"},
    "side": {"$ref": "#/$defs/place"},
    "cause": {"$ref": "#/$defs/cause"},
    "initiator": {"$ref": "#/$defs/side"},
}
"""Keys with a closed set of words, which are plain text in the records."""
OF_ONE: dict[str, Schema] = {
    "layers.items": {"type": "object", "required": ["name", "kind"]},
    "about": {"enum": list(finding.ABOUTS)},
    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    "copy": {"type": "string", "pattern": r"^(server\.|file\.)?(pull|push)(\.(cached|uncached))?$"},
    "headline": {"type": ["string", "null"]},
}
"""Other keys whose form is narrower than their type."""
WORDS: dict[str, str] = {
    "host": "A host before the first test.",
    "host.tcp_settings": "Settings of the host that reduce throughput; absent in old reports.",
    "host.disk_settings": "What reduces throughput below the folder; absent in old reports.",
    "host.smb_client": "What the system's own SMB client reports; absent in old reports.",
    "host.smb_settings": "What reduces throughput of that client; absent in old reports.",
    "HostSetting.tested": "False: read by a parser that was not tested on a host of that system.",
    "interface": "The interface that sends packets to the peer.",
    "interface.kind": "ethernet, wifi, loopback, bond, vlan, bridge, veth, wireguard, tun ...",
    "interface.lower": "Right below: a VLAN's real interface, the ports of a bond or a bridge.",
    "interface.pause": "Flow control: autonegotiated, receives, sends.",
    "interface.counts": "Since the interface came up, with the names of kernel and driver.",
    "interface.pcie": "lanes, transfers_per_second, bytes_per_second after coding; able_: at most.",
    "interface.wifi": "bits_per_second, received_bits_per_second, signal_dbm (below zero).",
    "folder": "A folder that copies are read from or written to, and its storage.",
    "folder.layers": "The layers below it, top first; absent in old reports.",
    "usage": "Load of a host during the median run; null where its system does not report it.",
    "usage.memory_dirty_limit_bytes": "Dirty data that makes writers wait; absent in old reports.",
    "Diagnosis": "Computed from the rest of the document; a reader may compute it again.",
    "Diagnosis.headline": "The copy of the summary; null: no copy was tried.",
    "Diagnosis.altered": "Tests whose received bytes differ from the sent bytes.",
    "comparison": "Measurements compared with each other; absent in old reports.",
    "comparison.rows": "The figures; each name ends in its unit.",
    "comparison.ratio": "The larger over the smaller of the two compared values.",
    "comparison.significant": "Whether the difference is significant.",
    "comparison.steps": "Indices of the steps that it comes from.",
    "copy.ceilings": "Lowest first.",
    "copy.predicted_bytes_per_second": "Without the bottleneck; null: not enough was measured.",
    "copy.ladder": "The bottleneck and the limits after it; empty where no bottleneck is named.",
    "copy.time": "Where its time went; they sum to 1. Absent where nothing watched it.",
    "copy.view": "Hosts that watched it: both hosts; both hosts, without the server's threads; "
    "client alone or server alone.",
    "copy.target": "What target_rate_bytes_per_second needs; null: none was given.",
    "rung": "A limit, and the copy's rate once all limits before it are removed.",
    "rung.assumed_link_bytes_per_second": "Rate of the next standard link, or null.",
    "target.needs": "Limits that are too low for it, lowest first.",
    "target.unknown": "What is unknown.",
    "ceiling.steps": "Indices of the steps that it comes from.",
    "ceiling.standing": "measured; inferred from a copy; estimated from the load; at-least: "
    "something else limited that test.",
}
"""Descriptions by name of definition or record, and key."""


def schema() -> Schema:
    host = _either("host")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:copy-bottleneck:report:1",
        "title": SCHEMA,
        "description": "One run: what was measured and what it means. Bytes, seconds, ratios and "
        "bytes per second only; keys may be added, never renamed.",
        **_object(
            {
                "schema": {"const": SCHEMA},
                "status": {"enum": list(STATUSES)},
                "tool": _tool(),
                "started": {"type": "string", "format": "date-time"},
                "elapsed_seconds": _ref("amount"),
                "target": {"type": "object"},
                "hosts": _object(
                    {
                        "client": host,
                        "server": {"description": "null without an agent there", **host},
                    }
                ),
                "steps": _list(_ref("step")),
                "notes": _list({"type": "string"}),
                "target_rate_bytes_per_second": {
                    "description": "The rate given with --target-rate; absent without the option.",
                    "type": "number",
                    "minimum": 1,
                },
                "diagnosis": _ref("diagnosis"),
            },
            "notes",
            "target_rate_bytes_per_second",
        ),
        "$defs": {
            "amount": {"type": "number", "minimum": 0},
            "amount_or_null": {"type": ["number", "null"], "minimum": 0},
            "count_or_null": {"type": ["integer", "null"], "minimum": 0},
            "text_or_null": {"type": ["string", "null"]},
            "side": {"enum": list(SIDES)},
            "component": {"enum": list(CAUSES)},
            "cause": {"enum": list(dict.fromkeys(chain(*CAUSES.values())))},
            "place": {"enum": [*SIDES, "path", None]},
            **{name: _record(kind) for kind, name in NAMED.items()},
            **_outcomes(),
            "diagnosis": _record(finding.Diagnosis),
        },
    }


def _tool() -> Schema:
    command = {
        "description": "Command line that repeats the run, without secrets; absent in old reports.",
        **_list({"type": "string"}),
    }
    return {
        "description": "Versions of this tool and of the programs that it used.",
        **_object({"version": {"type": "string"}, "command": command}, "command"),
    }


def _outcomes() -> Schema:
    """Returns the definitions of a step: outcomes by kind, runs as pairs of figures."""
    run, text = _ref("run"), {"type": "string"}
    outcomes = [_ref(each) for each in ("measured", "skipped", "failed")]
    step = {"stage": text, "setting": {"type": "object"}, "initiator": _ref("side")}
    why = {"description": "What the step was made for.", **text}
    count = {"type": "integer", "minimum": 0}
    rates = _record(Spread)
    rates["properties"]["runs"] = {"type": "integer", "minimum": 1}
    rate_words = "Payload; derived from the runs. Absent where a test moves none."
    measured = {
        "kind": {"const": "measured"},
        "bytes_per_second": {"description": rate_words, **rates},
        "samples": {**run, "description": "The median run's."},
        "runs": {**_list(run), "minItems": 1},
        "usage": _object({side: _either("usage") for side in SIDES}),
        "details": {
            "description": "What only this test knows; the unit is the last word of each name.",
            "type": "object",
            "properties": {"window_rates_bytes_per_second": _list(_ref("amount"))},
        },
    }
    return {
        "step": _object({**step, "why": why, "outcome": {"oneOf": outcomes}}, "why"),
        "run": {
            "description": "[seconds since the run began, bytes moved until then], both never "
            "falling.",
            **_list(
                {
                    "type": "array",
                    "prefixItems": [_ref("amount"), count],
                    "items": False,
                    "minItems": 2,
                }
            ),
        },
        "skipped": {
            "description": "It cannot be tried here.",
            **_object({"kind": {"const": "skipped"}, "reason": text}),
        },
        "failed": {
            "description": "It was tried and failed; the samples end at the failure.",
            **_object({"kind": {"const": "failed"}, "error": text, "samples": run}, "samples"),
        },
        "measured": _object(measured, "bytes_per_second", "runs"),
    }


def _record(kind: type) -> Schema:
    """Returns a record's object; nullable facts and the findings in LATER may be missing."""
    name = NAMED.get(kind, kind.__name__)
    hints = typing.get_type_hints(kind)
    facts = not kind.__module__.startswith(finding.__name__)
    properties, missing = {}, list(LATER.get(kind, ()))
    for field in dataclasses.fields(kind):
        form = _field(field.name, hints[field.name])
        words = WORDS.get(f"{name}.{field.name}")
        properties[field.name] = form if words is None else {"description": words, **form}
        has_default = (field.default, field.default_factory) != (dataclasses.MISSING,) * 2
        if facts and (has_default or type(None) in typing.get_args(hints[field.name])):
            missing.append(field.name)
    schema_object = _object(properties, *missing)
    return {"description": WORDS[name], **schema_object} if name in WORDS else schema_object


def _field(name: str, kind: Any) -> Schema:
    if name in OF_EVERY_RECORD:
        return OF_EVERY_RECORD[name]
    if name in OF_ONE:
        return OF_ONE[name]
    inner = [each for each in typing.get_args(kind) if each not in (type(None), Ellipsis)]
    if typing.get_origin(kind) is tuple:
        return _list(OF_ONE.get(f"{name}.items") or _field("", inner[0]))
    if typing.get_origin(kind) is dict:
        values = _field("", inner[1])
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    if typing.get_origin(kind) is typing.Literal:
        return {"enum": list(typing.get_args(kind))}
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return _or_null(inner[0])
    if dataclasses.is_dataclass(kind):
        assert isinstance(kind, type)
        return _ref(NAMED[kind]) if kind in NAMED else _record(kind)
    return {
        float: _ref("amount"),
        int: {"type": "integer", "minimum": 0},
        str: {"type": "string"},
        bool: {"type": "boolean"},
    }.get(kind, {})


def _or_null(kind: Any) -> Schema:
    if not dataclasses.is_dataclass(kind):
        names = {float: "amount_or_null", int: "count_or_null", str: "text_or_null"}
        return _ref(names[kind]) if kind in names else {"type": ["boolean", "null"]}
    form = _field("", kind)
    return {"anyOf": [form, NULL] if kind in (InterfaceFacts, FolderFacts) else [NULL, form]}


def _object(properties: Schema, *missing: str) -> Schema:
    """Returns an object with these keys; those in `missing` are optional."""
    required = [each for each in properties if each not in missing]
    return {"type": "object", "required": required, "properties": properties}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _either(name: str) -> Schema:
    return {"anyOf": [_ref(name), NULL]}
