"""Reports of drawn worlds that are kept: today's analysis is held against what is true of them."""

from __future__ import annotations

import keep
import pytest


def test_each_row_has_its_report_and_each_report_a_row() -> None:
    rows = {tuple(line.split("\t")[:2]) for line in keep.ROWS.read_text().splitlines()}
    files = {
        (path.parent.name, path.stem.removesuffix(".json")) for path in keep.KEPT.rglob("*.gz")
    }
    assert rows == files and len(files) >= 20


def test_no_kept_copy_that_was_named_rightly_is_named_wrongly(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert keep.judge(is_stripped=False) == 0, capsys.readouterr().out
