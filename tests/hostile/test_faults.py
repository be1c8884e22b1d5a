"""The cheapest rows of the fault matrix: a refused run leaves a document and nothing else."""

from concurrent.futures import ThreadPoolExecutor

import faults
import pytest

ROWS = ("1", "12", "20", "29", "31c", "38")


@pytest.mark.long
@pytest.mark.skipif(bool(faults.lacks()), reason=f"NOT RUN: needs {', '.join(faults.lacks())}")
def test_a_fault_before_the_start_is_told_in_a_document_and_leaves_nothing() -> None:
    with ThreadPoolExecutor(len(ROWS)) as pool:
        ends = list(pool.map(lambda row: faults.cell(row, "before", 20), ROWS))
    late = [each for each in ends if any(not fault.startswith("it took") for fault in each.faults)]
    assert not late, [(each.row, each.faults, each.summary) for each in late]
    assert all("exit 69" in each.summary or "exit 77" in each.summary for each in ends)


def test_a_broken_promise_is_marked_and_ends_with_1() -> None:
    broken = faults.Record("1", "early", ["a traceback"], "exit 0, complete")
    assert faults.mark(broken) == "X"
    assert "early: a traceback" in faults.row_lines("smbd killed", [broken])
