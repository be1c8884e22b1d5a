"""Nobody without the token sends a line, or moves one to another place."""

import pytest

from bottleneck import seals
from bottleneck.seals import Forged, Meeting


def meeting(token="abcd-efgh"):
    return Meeting(seals.normal(token), b"1" * 64, b"2" * 64)


def test_lines_pass_in_their_order():
    out, back = meeting().seal("requests"), meeting().seal("requests")
    for line in (b"", b"{}", b"{}", b"\xff" * 1000):
        frame = out.sealed(line)
        assert frame.endswith(b"\n")
        assert back.opened(frame[:-1]) == line


def frames(direction="requests", **about):
    seal = meeting(**about).seal(direction)
    return [seal.sealed(b"line %d" % at)[:-1] for at in range(3)]


@pytest.mark.parametrize(
    "sent",
    [
        [frames()[0][:-1] + b"9"],
        [b"0" * 64 + b" line 0"],
        [frames()[0].replace(b" ", b"", 1)],
        [b"line 0"],
        [b""],
        [frames()[0], frames()[0]],
        [frames()[1]],
        [frames()[0], frames()[2]],
        frames("replies"),
        frames(token="abcd-efgi"),
    ],
    ids=lambda sent: str(len(sent)),
)
def test_whatever_is_not_the_next_line_is_forged(sent):
    seal = meeting().seal("requests")
    with pytest.raises(Forged):
        for frame in sent:
            seal.opened(frame)


def test_another_connection_has_other_proofs():
    one, other = meeting(), Meeting(seals.normal("abcd-efgh"), b"3" * 64, b"2" * 64)
    assert one.proof("caller") != other.proof("caller")
    assert one.proof("caller") != one.proof("listener")
    assert one.seal("requests").key not in (one.seal("replies").key, other.seal("requests").key)


def test_a_token_may_be_typed_as_a_person_does():
    token = seals.new_token()
    assert seals.normal(token) == seals.normal(f" {token.upper().replace('-', ' ')}\n")
    assert token != seals.new_token()
    assert len(seals.normal(token)) * 5 >= 120


@pytest.mark.parametrize("line", [b"", b"SSH-2.0-x", seals.MARK + b"1" * 63, b"1" * 64])
def test_what_is_no_first_line_is_none(line):
    assert seals.read_hello(line) is None
    assert seals.read_answer(line) is None
    assert seals.read_hello(seals.MARK + b"1" * 64) == b"1" * 64
