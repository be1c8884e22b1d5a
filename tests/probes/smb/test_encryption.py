"""Encrypted messages: what the other side can read, and that nothing altered is believed."""

from __future__ import annotations

import hashlib
import hmac
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM
from smbprotocol.header import SMB2HeaderRequest

from probes.smb import smbprotocol_connection
from probes.smb.frames import SmbError
from probes.smb.protection import HEADER_BYTES, Md5, Sealer, Signer, signer

NAMES = ["aes-128-gcm", "aes-256-gcm", "aes-128-ccm", "aes-256-ccm"]
SESSION = 0x1122334455667788
HEAD = bytes([1]) * 66 + bytes([80, 0]) + struct.pack("<I", 5000) + bytes(8)
PAYLOAD = bytes(range(250)) * 20


def keys(name: str) -> tuple[bytes, bytes]:
    size = 32 if "256" in name else 16
    return bytes(range(size)), bytes(range(100, 100 + size))


def aead(name: str, key: bytes) -> AESGCM | AESCCM:
    return AESGCM(key) if name.endswith("gcm") else AESCCM(key)


def sealed_by_server(name: str, plain: bytes, session: int = SESSION) -> bytearray:
    """A reply, encrypted in one piece by the cryptography library."""
    nonce = bytes(range(12 if name.endswith("gcm") else 11))
    aad = nonce.ljust(16, b"\0") + struct.pack("<IHHQ", len(plain), 0, 1, session)
    both = aead(name, keys(name)[1]).encrypt(nonce, plain, aad)
    return bytearray(b"\xfdSMB" + both[-16:] + aad + both[:-16])


def unseal(name: str, frame: bytearray, target: memoryview | None) -> bytes:
    sealer = Sealer(name, *keys(name), SESSION)
    room = memoryview(bytearray(len(frame) + 16))
    room[: len(frame)] = frame
    return bytes(sealer.unseal(room, len(frame), lambda head, length: target))


@pytest.mark.parametrize("name", NAMES)
def test_a_sealed_request_is_what_the_standard_says(name: str) -> None:
    sealer = Sealer(name, *keys(name), SESSION)
    nonces = set()
    for _ in range(3):
        header, secret = sealer.seal(b"h" * 112, memoryview(PAYLOAD))
        size = 12 if name.endswith("gcm") else 11
        nonce = header[20 : 20 + size]
        nonces.add(nonce)
        plain = aead(name, keys(name)[0]).decrypt(
            nonce, bytes(secret) + header[4:20], header[20:HEADER_BYTES]
        )
        assert plain == b"h" * 112 + PAYLOAD
    assert len(nonces) == 3


@pytest.mark.parametrize("start", [80, 88])
@pytest.mark.parametrize("name", NAMES)
def test_a_payload_lands_in_its_own_buffer_wherever_it_starts(name: str, start: int) -> None:
    head = HEAD[:66] + bytes([start]) + HEAD[67:]
    target = memoryview(bytearray(len(PAYLOAD)))
    plain = head + bytes(start - 80) + PAYLOAD + b"tail"
    head_read = unseal(name, sealed_by_server(name, plain), target)
    assert target == PAYLOAD
    assert head_read[:80] == head


@pytest.mark.parametrize("name", NAMES)
def test_one_flipped_bit_anywhere_is_found(name: str) -> None:
    frame = sealed_by_server(name, HEAD + PAYLOAD)
    for place in (4, 19, 20, HEADER_BYTES, HEADER_BYTES + 90, len(frame) - 1):
        altered = bytearray(frame)
        altered[place] ^= 1
        with pytest.raises(SmbError):
            unseal(name, altered, memoryview(bytearray(len(PAYLOAD))))


@pytest.mark.parametrize(
    "frame",
    [
        b"\xfeSMB" + bytes(200),
        b"\xfdSMB" + bytes(30),
        bytes(sealed_by_server("aes-128-gcm", HEAD + PAYLOAD, session=5)),
        bytes(sealed_by_server("aes-128-gcm", HEAD + PAYLOAD))[:-10],
    ],
)
def test_plain_short_and_foreign_messages_are_refused(frame: bytes) -> None:
    with pytest.raises(SmbError):
        unseal("aes-128-gcm", bytearray(frame), None)


KEY = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
MESSAGE = bytes.fromhex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411"
)


def gmac(reply: bool) -> bytes:
    """Signs with AES-GMAC; the nonce holds the message's id and the sender."""
    return AESGCM(KEY).encrypt(struct.pack("<QI", 77, int(reply)), b"", MESSAGE)


@pytest.mark.parametrize(
    ("key", "reply", "expected"),
    [
        # RFC 4493
        (signer("aes-cmac", KEY), True, bytes.fromhex("dfa66747de9ae63030ca32611497c827")),
        (signer("aes-gmac", KEY), False, gmac(False)),
        (signer("aes-gmac", KEY), True, gmac(True)),
        (signer("hmac-sha256", KEY), False, hmac.digest(KEY, MESSAGE, "sha256")[:16]),
        (Md5(KEY), False, hashlib.md5(KEY + MESSAGE).digest()[:8]),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_a_signature_is_that_of_the_whole_message(
    key: Signer, reply: bool, expected: bytes
) -> None:
    assert key.sign(77, reply, MESSAGE[:9], MESSAGE[9:]) == expected


OPEN, TREE = 5, 9
REPLY, ASYNC = 1, 2


@pytest.mark.parametrize(
    ("flags", "command", "tree", "following", "complaint"),
    [
        (REPLY, OPEN, TREE, 0, ""),
        (REPLY | ASYNC, OPEN, 0, 0, ""),
        (0, OPEN, TREE, 0, "no reply"),
        (REPLY, OPEN + 1, TREE, 0, "something else"),
        (REPLY, OPEN, TREE, 64, "something else"),
        (REPLY, OPEN, 0, 0, "another share"),
    ],
)
def test_a_server_that_has_the_key_answers_what_was_asked_too(
    monkeypatch: pytest.MonkeyPatch,
    flags: int,
    command: int,
    tree: int,
    following: int,
    complaint: str,
) -> None:
    """The library checks only the tag of an encrypted reply."""
    fields = (64, 1, 0, command, 1, flags, following, 5, 0, tree, SESSION, b"")
    plain = struct.pack("<4sHHIHHIIQIIQ16s", b"\xfeSMB", *fields)
    monkeypatch.setattr(smbprotocol_connection.Connection, "_decrypt", lambda *_: plain)
    transport: Any = SimpleNamespace(server="nas", port=445)
    connection = smbprotocol_connection.GuardedConnection(transport)
    request = SMB2HeaderRequest()
    request["command"], request["tree_id"] = OPEN, TREE
    connection.outstanding_requests[5] = SimpleNamespace(message=request)
    if complaint:
        with pytest.raises(SmbError, match=complaint):
            connection._decrypt(None)
    else:
        assert connection._decrypt(None) == plain
