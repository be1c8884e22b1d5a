"""`compare` and `--target-rate`, as a user's shell runs them."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

DATA = Path(__file__).parent.parent / "data"
BEFORE, AFTER = DATA / "report-v1-lab-no-agent.json", DATA / "report-v1-lab-with-agent.json"
OTHER = DATA / "report-v1-server-disk.json"


def test_the_json_is_one_document_in_the_units_of_a_report(bottleneck):
    ended = bottleneck("compare", BEFORE, AFTER, "--format", "json")
    document = json.loads(ended.out)
    assert document["schema"] == "copy-bottleneck/compare/1"
    copy = next(each for each in document["copies"] if each["copy"] == "pull.cached")
    earlier, later = (copy[f"{when}_bytes_per_second"]["median"] for when in ("before", "after"))
    assert copy["ratio"] == pytest.approx(later / earlier)
    assert copy["significant"] is False


def test_a_folder_of_reports_shows_the_trend_and_names_what_it_skips(bottleneck, tmp_path):
    document = json.loads(AFTER.read_text())
    for day in (1, 2, 3):
        document["started"] = f"2026-11-0{day}T02:00:00+00:00"
        (tmp_path / f"{day}.json").write_text(json.dumps(document))
    ended = bottleneck("compare", tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("Nothing unusual") and "3 reports since 2026-11-01" in ended.out
    (tmp_path / "4.json").write_text("{}")
    ended = bottleneck("compare", tmp_path, "--format", "json")
    assert (ended.code, json.loads(ended.out)["reports"]) == (3, 3)
    assert "skipped: " in ended.complaint and "4.json" in ended.complaint
    assert bottleneck("compare", tmp_path / "1.json").code == 64


def test_reports_without_a_common_copy_are_incomplete(bottleneck, tmp_path):
    document = json.loads(AFTER.read_text())
    document["steps"] = [each for each in document["steps"] if each["stage"] != "smb-copy"]
    (tmp_path / "none.json").write_text(json.dumps(document))
    ended = bottleneck("compare", AFTER, tmp_path / "none.json")
    assert ended.code == 3
    assert "share no copy" in ended.out


def test_a_wanted_rate_is_explained_and_kept_in_the_report(bottleneck, tmp_path):
    ended = bottleneck("explain", OTHER, "--target-rate", "200MB/s", "--format", "json")
    document = json.loads(ended.out)
    assert document["target_rate_bytes_per_second"] == 200e6
    copy = next(e for e in document["diagnosis"]["copies"] if e["copy"] == "pull.uncached")
    assert copy["target"]["reached"] is False
    assert [each["component"] for each in copy["target"]["needs"]][:2] == ["disk", "network"]
    (tmp_path / "kept.json").write_text(ended.out)
    again = bottleneck("explain", tmp_path / "kept.json")
    assert "Needed for 200 MB/s: pull.uncached (3.1.1)" in again.out
    other = bottleneck("explain", tmp_path / "kept.json", "--target-rate", "20MB/s")
    assert "pull.uncached (3.1.1) reaches 20.0 MB/s" in other.out
