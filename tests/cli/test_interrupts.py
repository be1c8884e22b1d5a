"""What an error means that comes up while a run is being interrupted."""

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
