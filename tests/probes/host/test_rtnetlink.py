"""Netlink's framing: what is whole is read, what is cut off or malformed ends the reading."""

from probes.host import rtnetlink


def message(kind: int, body: bytes) -> bytes:
    whole = rtnetlink.HEADER.pack(rtnetlink.HEADER.size + len(body), kind, 0, 1, 0) + body
    return whole + bytes(-len(whole) % 4)


def attribute(kind: int, value: bytes) -> bytes:
    whole = rtnetlink.ATTRIBUTE.pack(rtnetlink.ATTRIBUTE.size + len(value), kind) + value
    return whole + bytes(-len(whole) % 4)


def test_messages_and_attributes_are_told_apart_by_their_padded_lengths():
    body = attribute(3, b"eth0\0") + attribute(4, b"\xdc\x05\0\0")
    found = list(rtnetlink.messages(message(16, body) + message(3, b"")))
    assert [kind for kind, _ in found] == [16, 3]
    told = rtnetlink.attributes(found[0][1])
    assert rtnetlink.text(told, 3) == "eth0"
    assert rtnetlink.number(told, 4) == 1500


def test_a_nested_attributes_flag_is_no_part_of_its_type():
    assert rtnetlink.attributes(attribute(0x8000 | 18, b"abcd")) == {18: b"abcd"}


def test_what_is_cut_off_is_left_out():
    whole = message(16, attribute(3, b"eth0\0")) + message(16, attribute(3, b"eth1\0"))
    for length in range(len(whole)):
        found = [rtnetlink.attributes(body) for _, body in rtnetlink.messages(whole[:length])]
        assert found == [{3: b"eth0\0"}] * (length >= len(whole) // 2)


def test_a_length_of_nothing_ends_the_reading():
    assert list(rtnetlink.messages(bytes(64))) == []
    assert rtnetlink.attributes(bytes(64)) == {}


def test_a_number_that_is_too_short_is_none():
    assert rtnetlink.number({4: b"\1\0"}, 4) is None
    assert rtnetlink.number({}, 4) is None
    assert rtnetlink.text({3: b"\0"}, 3) is None
