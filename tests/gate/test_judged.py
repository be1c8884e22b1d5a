"""A judgement as text and as JSON."""

import json
from dataclasses import replace

from bottleneck.gate.expectation import limit
from bottleneck.gate.judged import text, to_json
from bottleneck.gate.judging import nothing_to_judge


def test_the_text_is_the_sentence_and_a_line_for_each_expectation(gate, recorded):
    limits = [limit(f"{m} < 80MB/s", "warning") for m in ("pull.uncached", "pull.cached")]
    judgement = gate(recorded, *limits)
    lines = text(judgement).splitlines()
    assert lines[0] == f"BOTTLENECK WARNING - {judgement.sentence}"
    assert [line.split()[0] for line in lines[1:]] == ["WARNING", "OK"]
    assert "pull.uncached >= 80MB/s: " in lines[1]


def test_json_tells_what_was_found_and_nothing_that_was_not(gate, recorded):
    limits = (limit("pull.uncached < 80MB/s", "warning"), limit("latency > 5ms", "critical"))
    document = json.loads(to_json(gate(recorded, *limits, age_seconds=60.0)))
    assert document["schema"] == "copy-bottleneck/check/1"
    assert (document["state"], document["exit_code"]) == ("unknown", 3)
    first, second = document["judged"]
    assert first["value"] > 24e6 and first["warning"] == "80000000:" and "critical" not in first
    assert "value" not in second and second["unit"] == "seconds"
    assert document["age_seconds"] == 60.0
    assert document["report"]["share"] == recorded.target["share"]
    assert document["headline"]["cap"] == "disk/server/read"


def test_nothing_to_judge_is_a_document_too():
    document = json.loads(to_json(nothing_to_judge("no \ud800 such file")))
    assert document["exit_code"] == 3 and "report" not in document
    assert text(nothing_to_judge("no such file")) == "BOTTLENECK UNKNOWN - no such file\n"


def test_foreign_names_move_no_cursor_and_begin_no_line(gate, build):
    report = build()
    hostile = "\x1b[31m\n\u202e|evil"
    judgement = gate(
        build(target={**report.target, "share": hostile}, status="failed", notes=(hostile,)),
        baselines=(replace(report, client=replace(report.client, name=hostile)),),
    )
    output = text(judgement)
    assert not {"\x1b", "\u202e"} & set(output)
    assert len(output.splitlines()) == 1 + len(judgement.judged)
    to_json(judgement).encode("ascii")
