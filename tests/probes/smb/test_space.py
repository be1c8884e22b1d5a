"""The question for a share's room, and every answer to it."""

from __future__ import annotations

import struct

import pytest

from probes.smb import transfer
from probes.smb.frames import Broken

SIZES = struct.pack("<QQQII", 1000, 300, 400, 8, 512)
ANSWER = struct.pack("<HHI", 9, 72, 32) + SIZES


def test_the_answer_is_free_for_this_user_and_all_in_bytes() -> None:
    assert transfer.parse_room(ANSWER) == (300 * 4096, 1000 * 4096)


def test_the_question_is_40_bytes_and_one_that_stands_for_no_input() -> None:
    body = transfer.room_question(b"f" * 16)
    assert len(body) == 41 and body[:4] == b"\x29\x00\x02\x07" and body[24:40] == b"f" * 16


@pytest.mark.parametrize(
    "body",
    [
        *(b"", ANSWER[:7], ANSWER[:-1]),
        struct.pack("<HHI", 9, 71, 32) + SIZES,
        struct.pack("<HHI", 9, 72, 31) + SIZES,
        struct.pack("<HHI", 9, 65535, 32) + SIZES,
    ],
)
def test_a_garbled_answer_is_told_and_not_believed(body: bytes) -> None:
    with pytest.raises(Broken, match="garbled"):
        transfer.parse_room(body)
