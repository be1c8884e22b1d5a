"""The dialects of a server are found without a login, whatever it answers."""

import socket
import struct
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from probes.core.records import Endpoint
from probes.core.stage import Refused
from probes.programs.samba import private_samba
from probes.smb import server_query


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "dialects", "signing"),
    [
        (
            ["server min protocol = NT1"],
            ["smb1", "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"],
            "signing enabled",
        ),
        (
            ["server min protocol = SMB3_00", "server signing = mandatory"],
            ["3.0", "3.0.2", "3.1.1"],
            "signing required",
        ),
        (["server min protocol = NT1", "server max protocol = NT1"], ["smb1"], "signing enabled"),
    ],
)
def test_samba_tells_what_it_is_told_to_offer(tmp_path, options, dialects, signing):
    with private_samba(str(tmp_path), password="x y", options=options) as server:
        offer = server_query.query_dialects(server.host, server.port)
    assert offer["dialects"] == dialects
    assert offer["connect_seconds"] > 0
    if dialects != ["smb1"]:
        assert offer["signing"] == signing


@contextmanager
def answer_with(words):
    """A server that says these bytes, whatever it is asked."""
    with socket.create_server(("127.0.0.1", 0)) as waiting:

        def serve():
            while True:
                try:
                    caller = waiting.accept()[0]
                except OSError:
                    return
                with caller:
                    caller.recv(4096)
                    caller.sendall(words)

        threading.Thread(target=serve, daemon=True).start()
        yield waiting.getsockname()[1]


@pytest.mark.parametrize(
    "words",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"\0\0\0\x04\xfeSMB",
        b"\0\0\0\x20" + b"\xffSMB" + bytes(28),
        b"\0\0\0\x60" + b"\xfeSMB" + bytes(range(92)),
        b"\0\xff\xff\xff" + bytes(100),
    ],
)
def test_what_is_no_answer_offers_nothing(words):
    with answer_with(words) as port:
        offer = server_query.query_dialects("127.0.0.1", port)
    assert offer["dialects"] == [] and "signing" not in offer


def test_nobody_there_is_refused():
    with pytest.raises(Refused):
        server_query.query_dialects("127.0.0.1", 1)


def test_cut_replies_are_none():
    for length in range(80):
        assert server_query.parse(b"\xfeSMB" + bytes(length), "3.1.1") is None
        assert server_query.parse_1(b"\xffSMB" + bytes(length)) is None


BODY = bytes.fromhex((Path(__file__).parent / "recorded" / "negotiate_reply.hex").read_text())
"""Body of a NEGOTIATE reply of Samba 4.17, 3.1.1, with three contexts."""
HEADER = struct.pack("<4sHHIHHIIQIIQ16s", b"\xfeSMB", 64, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, bytes(16))
NEGOTIATE_STATUS_AT = 8


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        HEADER,
        (HEADER + BODY)[:127],
        b"HTTP" + (HEADER + BODY)[4:],
        HEADER[:NEGOTIATE_STATUS_AT] + b"\xbb\0\0\xc0" + HEADER[12:] + BODY,
        HEADER + BODY[:4] + b"\x02\x03" + BODY[6:],
    ],
    ids=["nothing", "header", "short", "http", "refused", "3.0.2"],
)
def test_what_is_no_reply_of_3_1_1_tells_nothing(reply: bytes) -> None:
    assert server_query.parse(HEADER + BODY, "3.1.1") == "signing enabled"
    assert server_query.parse(reply, "3.1.1") is None


def test_no_answer_costs_no_more_than_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_query, "ANSWER_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        peer = Endpoint(host="127.0.0.1", port=silent.getsockname()[1])
        assert server_query.identity(peer) == b""
    assert server_query.identity(peer) == b""
