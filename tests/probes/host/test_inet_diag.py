"""What the kernel tells of TCP connections is read to the byte, and never with harm."""

from __future__ import annotations

import errno
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from probes.host import tcp_info
from probes.host.inet_diag import (
    ERROR,
    SOCK_DIAG_BY_FAMILY,
    Memory,
    Seen,
    messages,
    parse,
    plain_address,
)

RECORDED = Path(__file__).with_name("recorded")


def answers(name: str) -> list[bytes]:
    """What the kernel (6.18) answered to one question, a part a read."""
    parts = (RECORDED / f"sock_diag_{name}.hex").read_text().split("\n\n")
    return [bytes.fromhex(part.replace("\n", "")) for part in parts if part.strip()]


def told(name: str) -> list[Seen | None]:
    sequence = struct.unpack_from("=I", answers(name)[0], 8)[0]
    each = [pair for answer in answers(name) for pair in messages(answer, sequence)]
    return [parse(payload) for kind, payload in each if kind == SOCK_DIAG_BY_FAMILY]


def test_a_recorded_answer_is_read_to_the_byte() -> None:
    (seen,) = told("search_ipv4")
    assert seen is not None
    assert (seen.own, seen.peer) == (("127.0.0.1", 46842), ("127.0.0.1", 37577))
    assert (seen.unread_bytes, seen.unacknowledged_bytes, seen.inode) == (1000, 0, 3281886)
    assert seen.congestion_control == "bbr"
    # the program asked for 8192, which the kernel doubles
    assert seen.memory == Memory(receive_buffer_bytes=131072, send_buffer_bytes=16384)
    assert len(seen.info) == 280
    figures = tcp_info.decode(seen.info, little_endian=True)
    assert figures["received_bytes"] == 1000 and figures["acknowledged_bytes"] == 301


def test_an_ipv4_address_in_an_ipv6_socket_is_told_as_ipv4() -> None:
    ends = [(seen.own, seen.peer) for seen in told("search_ipv6") if seen]
    assert ends == [
        (("::1", 41921), ("::1", 42772)),
        (("127.0.0.1", 41921), ("127.0.0.1", 42434)),
    ]


def test_a_later_look_is_at_the_same_connection() -> None:
    (first,), (later,) = told("search_ipv4"), told("look")
    assert first is not None and later is not None
    assert later.identity == first.identity


def test_the_kernel_says_of_a_connection_that_it_is_gone() -> None:
    (answer,) = answers("gone")
    ((kind, payload),) = messages(answer, struct.unpack_from("=I", answer, 8)[0])
    assert kind == ERROR and struct.unpack_from("=i", payload) == (-errno.ENOENT,)


@pytest.mark.parametrize("name", ["search_ipv4", "search_ipv6", "look", "gone"])
def test_a_truncated_answer_gives_whole_messages_or_none(name: str) -> None:
    for answer in answers(name):
        sequence = struct.unpack_from("=I", answer, 8)[0]
        whole = list(messages(answer, sequence))
        for size in range(len(answer)):
            some = list(messages(answer[:size], sequence))
            assert some == whole[: len(some)]
            for _, payload in some:
                parse(payload)
        for _, payload in whole:
            for size in range(len(payload)):
                parse(payload[:size])


def test_a_garbled_answer_is_read_without_harm() -> None:
    chance = random.Random(47)
    for _ in range(3000):
        answer = bytearray(chance.choice(answers("search_ipv6")))
        for _ in range(chance.randrange(1, 40)):
            answer[chance.randrange(len(answer))] = chance.randrange(256)
        for _, payload in messages(bytes(answer), struct.unpack_from("=I", answer, 8)[0]):
            seen = parse(payload)
            if seen is not None:
                tcp_info.decode(seen.info)
                assert seen.own and seen.peer


def test_an_answer_to_another_question_is_not_taken() -> None:
    answer = answers("search_ipv4")[0]
    assert list(messages(answer, 4711)) == []


def test_a_connection_that_is_over_is_none() -> None:
    payload = bytearray(next(iter(messages_of("look"))))
    for state in (6, 7, 10, 40):  # TIME_WAIT, CLOSE, LISTEN, nonsense
        payload[1] = state
        assert parse(bytes(payload)) is None


def messages_of(name: str) -> Iterator[bytes]:
    for answer in answers(name):
        for _, payload in messages(answer, struct.unpack_from("=I", answer, 8)[0]):
            yield payload


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("nas", "None"),
        ("", "None"),
    ],
)
def test_an_address_is_read_in_each_of_its_forms(text: str, plain: str) -> None:
    assert str(plain_address(text)) == plain
