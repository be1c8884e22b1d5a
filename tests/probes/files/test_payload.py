"""The payload: the same from the same seed, incompressible, every block one slice."""

import zlib

import pytest

from probes.files import payload, removal

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def ring():
    return payload.make_ring(b"seed")


def test_it_does_not_compress(ring):
    assert len(zlib.compress(ring[:MIB], 1)) > 0.99 * MIB


@pytest.mark.parametrize("offset", [0, 1, payload.PERIOD_BYTES - 1, 3 * payload.PERIOD_BYTES + 7])
def test_blocks_join_to_one_stream_without_a_copy(ring, offset):
    block = payload.block(ring, offset, 8 * MIB)
    assert block.obj is ring.obj
    assert len(block) == 8 * MIB
    assert payload.block(ring, offset + MIB, MIB) == block[MIB : 2 * MIB]


def test_aligned_blocks_do_not_come_back_within_a_gigabyte(ring):
    beginnings = {bytes(payload.block(ring, offset, 64)) for offset in range(0, 1024 * MIB, MIB)}
    assert len(beginnings) == 1024


def test_a_longer_block_is_refused(ring):
    with pytest.raises(ValueError, match="at most"):
        payload.block(ring, 0, 8 * MIB + 1)
    with pytest.raises(ValueError, match="at most"):
        payload.matches(ring, 0, memoryview(bytes(8 * MIB + 1)))


def test_a_changed_byte_and_a_shifted_block_are_seen(ring):
    offset = 123_456_789
    copied = bytearray(payload.block(ring, offset, MIB))
    assert payload.matches(ring, offset, memoryview(copied))
    assert not payload.matches(ring, offset + 1, memoryview(copied))
    copied[-1] ^= 1
    assert not payload.matches(ring, offset, memoryview(copied))


M = removal.MAGIC
HEADS = [
    ([], True),
    ([M], True),
    ([b"", M[:1], M[:15]], True),
    ([b"", b"x", M], True),
    ([b"x" * 16, b""], False),
    ([M[1:] + b"x"], False),
    ([b"", b"", b"", b""], False),
    ([b"x", b"x", b"x", b"x", M], False),
]


@pytest.mark.parametrize(("heads", "ours"), HEADS)
def test_a_run_s_files_are_known_by_what_they_begin_with(heads, ours):
    """Only the first files of a folder with many are looked into."""
    assert payload.proves(iter(heads)) == ours


def test_every_payload_begins_with_the_magic():
    for seed in (b"seed", b"another"):
        assert payload.block(payload.make_ring(seed), 0, len(M)) == M
    assert len(M) == 16


def test_a_killed_run_of_small_files_is_proven_by_the_first_of_them() -> None:
    """Its source is empty, and the others begin further on in the payload."""
    ring = payload.make_ring(b"seed")
    heads = {f"small-{number}-0a-0b": bytes(ring[number * 16384 :][:16]) for number in range(300)}
    heads["source-0a"] = b""
    assert payload.proves(heads[name] for name in sorted(heads, key=payload.proof_order))
    others = {name: head for name, head in heads.items() if not name.startswith("small-0-")}
    assert not payload.proves(others[name] for name in sorted(others, key=payload.proof_order))
