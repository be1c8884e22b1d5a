"""Messages are told apart in streams that were kept whole, cut, shifted or encrypted."""

import struct

from bottleneck.captures.framing import NEGOTIATE, READ, WRITE, Framer, message_of

START = 1 << 32


def message(size, command=READ, number=5, flags=0, payload=0, magic=b"\xfeSMB"):
    """A message of a size, with its length field; payload: as a READ asks for it."""
    head = struct.pack(">I", size - 4) + magic + struct.pack("<HHIHHI", 64, 0, 0, command, 1, flags)
    head += struct.pack("<IQ", 0, number) + bytes(32) + struct.pack("<HBBI", 49, 0, 0, payload)
    return head + bytes(max(0, size - len(head)))


def framer(**options):
    reader = Framer(**options)
    reader.boundary = START
    return reader


def fed(reader, *segments):
    """The moments and sizes of messages in segments of (size, kept bytes), one behind another."""
    moments, offset = [], START
    for size, data in segments:
        moments += [(moment, each.size) for moment, each in reader.feed(offset, size, data)]
        offset += size
    return moments


def test_messages_begin_and_end_across_segments():
    first, second = message(300), message(200)
    stream = first + second
    segments = [(len(part), part) for part in (stream[:250], stream[250:390], stream[390:])]
    moments = [("begin", 300), ("end", 300), ("begin", 200), ("end", 200)]
    assert fed(framer(), *segments) == moments
    torn = [(len(part), part) for part in (stream[:302], stream[302:310], stream[310:])]
    assert fed(framer(), *torn) == moments


def test_a_header_that_was_cut_off_is_as_long_as_its_request_asked_for():
    reader = framer(next_reply_bytes=lambda: 9000)
    stream = [(1000, message(500)[:96]), (9000 - 500, b"")]
    assert fed(reader, *stream) == [("begin", 500), ("end", 500), ("begin", 9000), ("end", 9000)]


def test_without_any_size_it_is_back_in_step_at_the_next_message():
    reader = framer()
    cut = [(5000, bytes(96)), (1460, b"\x11" * 60), (100, message(100))]
    assert fed(reader, *cut) == [("begin", 100), ("end", 100)]


def test_large_messages_that_passed_while_no_reply_was_due_are_counted():
    stream = [(10_000, message(10_000)[:96]), (30_000, b""), (200, message(200))]
    sizes = [size for moment, size in fed(framer(next_reply_bytes=lambda: 0), *stream)]
    assert sizes == [10_000] * 8 + [200] * 2


def test_an_interim_reply_and_a_keep_alive_are_passed():
    reader = framer()
    stream = b"\x85\0\0\0" + message(77 + 23, flags=1) + message(150)
    assert fed(reader, (len(stream), stream))[::2] == [("begin", 100), ("begin", 150)]


def test_a_boundary_that_the_other_direction_shows_is_taken_only_if_none_is_known():
    reader = Framer()
    reader.adopt(START, 5000)
    assert (reader.boundary, reader.large_bytes) == (START, 5000)
    reader.adopt(START + 9)
    assert reader.boundary == START


def test_headers_are_parsed_as_far_as_they_were_kept():
    read = message_of(message(120, number=77, flags=8, payload=65536), 120)
    assert (read.protocol, read.command, read.number, read.is_signed) == ("smb2", READ, 77, True)
    assert read.payload_bytes == 65536
    assert message_of(message(120, WRITE, flags=1, payload=9)[:80], 120).payload_bytes == 0
    assert message_of(message(120)[:30], 120).number == 5 | 1 << 80
    assert message_of(message(120)[:6], 120).protocol == ""
    encrypted = message_of(message(120, magic=b"\xfdSMB"), 120)
    assert (encrypted.protocol, encrypted.command) == ("encrypted", None)
    smb1 = message_of(b"\0\0\0\x60\xffSMB\x72" + bytes(60), 100)
    assert (smb1.protocol, smb1.command) == ("smb1", NEGOTIATE)
