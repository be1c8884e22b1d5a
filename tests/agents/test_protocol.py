"""Lines in, records out: strict in both directions, and silent about secrets."""

import pytest

from bottleneck.agents import protocol
from probes.core import typed
from probes.core.records import Access, Endpoint, FolderFacts, InterfaceFacts, Sample
from probes.stages.tcp import Setting
from probes.system.events import one_line


def test_a_message_survives_the_wire():
    message = {"id": 7, "do": "ask", "arguments": {"text": "naïve \udcff"}}
    assert protocol.decode(protocol.encode(message)) == message


def test_a_message_is_one_line_whatever_its_text_holds():
    assert protocol.encode({"text": "a\nb\r\u2028"}).count(b"\n") == 1


@pytest.mark.parametrize(
    "line",
    [b"", b"junk", b"[]", b"{", b'{"a":NaN}', b'{"a":Infinity}', b"[" * 5000, b'"text"', b"null"],
)
def test_what_is_no_message_is_refused(line):
    with pytest.raises(protocol.WireError):
        protocol.decode(line)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"a":[' + b"[]," * 300_000 + b"[]]}", "too many arrays"),
        (b'{"a":' + b"[" * 900 + b"]" * 900 + b"}", "nested more than 32"),
        (b'{"a":' + b"9" * 500_000 + b"}", "a number of"),
        (b'{"a":1e999}', "out of range"),
        (b" " * (protocol.MAX_LINE_BYTES + 1), "larger than"),
        (b'{"a":{"b":1,"b":2}}', "twice"),
    ],
)
def test_a_line_that_would_cost_more_than_it_tells_is_refused(line, says):
    with pytest.raises(protocol.WireError, match=says):
        protocol.decode(line)


@pytest.mark.parametrize(
    "record",
    [
        Sample(0.5, 1024),
        Setting("pull", 4, 65536, 1.5, "::1"),
        FolderFacts("/x", "ext4", None, None, None, 10, None),
    ],
)
def test_a_record_survives_the_wire(record):
    assert protocol.from_plain(type(record), typed.to_plain(record)) == record


@pytest.mark.parametrize(
    ("plain", "says"),
    [
        ({"elapsed_seconds": 1.0}, "moved_bytes is missing"),
        ({"elapsed_seconds": 1.0, "moved_bytes": 1.5}, "must be a whole number"),
        ({"elapsed_seconds": 1.0, "moved_bytes": True}, "must be a whole number"),
        ({"elapsed_seconds": "1", "moved_bytes": 1}, "must be a number"),
        ({"elapsed_seconds": 10**400, "moved_bytes": 1}, "out of range"),
        ({"elapsed_seconds": 1.0, "moved_bytes": 1, "extra": 0}, "unknown key .extra"),
        ([1, 2], "must be an object"),
    ],
)
def test_a_record_of_another_shape_is_refused(plain, says):
    with pytest.raises(protocol.WireError, match=says):
        protocol.from_plain(Sample, plain)


@pytest.mark.parametrize("levels", [40, 300])
def test_interfaces_upon_interfaces_without_end_are_refused(levels):
    plain = {"name": "eth0", "address": "192.0.2.1"}
    plain.update(
        dict.fromkeys(("rate_bits_per_second", "duplex", "mtu_bytes", "driver", "virtual"))
    )
    for _ in range(levels):
        plain = {**plain, "lower": [plain]}
    with pytest.raises(protocol.WireError, match="nested too deep"):
        protocol.from_plain(InterfaceFacts, plain)


def test_credentials_have_no_plain_form_and_no_repr():
    access = Access("user", "hunter2", "dom")
    with pytest.raises(TypeError):
        typed.to_plain({"access": access})
    with pytest.raises(TypeError):
        typed.to_plain(Endpoint(access=access))
    assert "hunter2" not in repr(access) + repr(Endpoint(access=access, nonce="hunter2"))


def test_an_endpoint_tells_its_secrets_to_its_own_pipe_alone():
    plain = protocol.endpoint_to_plain(Endpoint(host="nas", access=Access("user", "hunter2")))
    assert plain["access"]["password"] == "hunter2"
    assert protocol.endpoint_to_plain(Endpoint())["access"] is None


def test_a_login_is_not_sent_back_to_whom_it_came_from():
    account, fresh = Access("user", "hunter2"), Access("bottleneck", "thrown away")
    assert protocol.endpoint_to_plain(Endpoint(access=account), account)["access"] is None
    assert protocol.endpoint_to_plain(Endpoint(access=fresh), account)["access"]["password"]


def test_a_greeting_is_found_behind_what_a_banner_left_on_its_line():
    line = b"\x1b[0mWelcome! " + protocol.greeting("0.1.0", "3.9.2", "nas")
    assert protocol.read_greeting(line) == {
        "protocol": protocol.PROTOCOL,
        "version": "0.1.0",
        "python": "3.9.2",
        "host": "nas",
    }
    assert protocol.read_greeting(b"Last login: today\n") is None


def test_another_protocol_is_refused_with_both_numbers():
    line = protocol.MARK + b'{"protocol":99}\n'
    with pytest.raises(protocol.WireError, match=f"99.*{protocol.PROTOCOL}"):
        protocol.read_greeting(line)


def test_an_error_is_told_in_one_line():
    assert "\n" not in one_line(ValueError("two\nlines"))
    assert one_line(KeyError()) == "KeyError"
