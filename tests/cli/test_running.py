"""What an error means that comes up while a run is being interrupted, and how a late one ends."""

import json

import pytest

from bottleneck.cli import interrupts


def unwound():
    """An error of the cleaning up, with the interrupt behind it."""
    try:
        try:
            raise KeyboardInterrupt
        finally:
            raise ValueError("what was being closed broke")
    except ValueError as error:
        return error


def told_otherwise():
    """The same, told as another error that was raised from an older one."""
    older = OSError("broken before")
    try:
        try:
            raise KeyboardInterrupt
        finally:
            raise ValueError("it broke") from older
    except ValueError as error:
        return error


@pytest.mark.parametrize(
    ("error", "interrupted"),
    [(unwound(), True), (told_otherwise(), True), (ValueError("alone"), False)],
)
def test_what_breaks_while_an_interrupt_unwinds_is_an_interruption(error, interrupted):
    assert interrupts.is_behind(error) is interrupted


HANGING = """
import sys, time
from bottleneck import cli
from bottleneck.cli import running
running.LATE_SECONDS, running.CLOSING_SECONDS = -4.5, 0.2
def measure(bench):
    try:
        time.sleep(60)
    finally:
        time.sleep(60)
running.measure = measure
sys.argv[0] = "bottleneck"
cli.main()
"""
"""The program, with a measurement and a closing that know no end; half a second is its time."""


@pytest.mark.long
def test_a_diagnosis_that_knows_no_end_is_stopped_and_is_a_document(begin, watched):
    process = begin(
        *("diagnose", "//nas/x", "--user", "a", "--yes", "--budget", "5", "--json", "-"),
        code=HANGING,
        environment={"BOTTLENECK_PASSWORD": "p"},
    )
    out, complaints = watched.finish(process, 30)
    assert process.returncode == 69
    assert json.loads(out)["status"] == "failed"
    (complaint,) = complaints
    assert "no answer" in complaint and "cleanup" in complaint
