"""Signatures and encryption of SMB messages.

Signatures are computed over separate parts; in a signed session every reply is checked: one without
a signature is a forgery. SMB3 encrypts messages inside a TRANSFORM_HEADER (MS-SMB2 2.2.41,
3.1.4.3): GCM streams, so a reply's payload is decrypted straight into its final buffer; CCM needs
the whole message and uses a staging buffer.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from collections.abc import Callable
from typing import Any, Protocol

from probes.smb.frames import Buffer, SmbError

_NONCE = struct.Struct("<QI")


class Signer(Protocol):
    """One algorithm with one key."""

    @property
    def name(self) -> str:
        """Name in reports: aes-gmac, aes-cmac, hmac-sha256, md5."""

    def sign(self, number: int, reply: bool, *parts: Buffer) -> bytes:
        """Returns the signature of the message whose signature field is empty.

        number is the MessageId (SMB2) or the sequence number (SMB1); reply: sent by the server.
        """


class HmacSha256:
    """SMB 2.0.2 and 2.1: the first 16 bytes of HMAC-SHA256 (MS-SMB2 3.1.4.1)."""

    name = "hmac-sha256"

    def __init__(self, key: bytes) -> None:
        self._keyed = hmac.new(key, digestmod=hashlib.sha256)

    def sign(self, number: int, reply: bool, *parts: Buffer) -> bytes:
        mac = self._keyed.copy()
        for part in parts:
            mac.update(part)
        return mac.digest()[:16]


class AesCmac:
    """SMB 3.0, 3.0.2 and 3.1.1 where it was agreed: AES-128-CMAC (RFC 4493)."""

    name = "aes-cmac"

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives import cmac
        from cryptography.hazmat.primitives.ciphers import algorithms

        self._cmac: Any = cmac.CMAC
        self._aes = algorithms.AES(key)

    def sign(self, number: int, reply: bool, *parts: Buffer) -> bytes:
        mac = self._cmac(self._aes)
        for part in parts:
            mac.update(part)
        return bytes(mac.finalize())


class AesGmac:
    """SMB 3.1.1: AES-128-GMAC; the nonce is MessageId and sender (MS-SMB2 3.1.4.1)."""

    name = "aes-gmac"

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._cipher: Any = Cipher
        self._gcm: Any = modes.GCM
        self._aes = algorithms.AES(key)

    def sign(self, number: int, reply: bool, *parts: Buffer) -> bytes:
        mac = self._cipher(self._aes, self._gcm(_NONCE.pack(number, int(reply)))).encryptor()
        for part in parts:
            mac.authenticate_additional_data(part)
        mac.finalize()
        return bytes(mac.tag)


class Md5:
    """SMB1: the first 8 bytes of MD5 over key and message (MS-CIFS 3.1.4.1).

    The message's signature field holds the sequence number while this is computed.
    """

    name = "md5"

    def __init__(self, key: bytes) -> None:
        self._keyed = hashlib.md5(key, usedforsecurity=False)

    def sign(self, number: int, reply: bool, *parts: Buffer) -> bytes:
        digest = self._keyed.copy()
        for part in parts:
            digest.update(part)
        return digest.digest()[:8]


def signer(name: str, key: bytes) -> Signer:
    """Returns the Signer of an SMB2 or SMB3 session, by its name."""
    if name == HmacSha256.name:
        return HmacSha256(key)
    return AesCmac(key) if name == AesCmac.name else AesGmac(key)


HEADER_BYTES = 52
_HEADER = struct.Struct("<4s16s16sIHHQ")
_PROTOCOL = b"\xfdSMB"
_ENCRYPTED = 1

HEAD_BYTES = 80
"""SMB2 header and the body of a READ reply, which determine the place of its payload."""

Place = Callable[[memoryview, int], memoryview | None]
"""Function from a reply's first bytes and whole length to the buffer of its payload, if any."""


class Sealer:
    """Encrypts requests and decrypts replies of one session."""

    def __init__(self, name: str, encrypt_key: bytes, decrypt_key: bytes, session_id: int) -> None:
        """name: aes-128-gcm, aes-128-ccm, aes-256-gcm or aes-256-ccm."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
        from cryptography.hazmat.primitives.ciphers.aead import AESCCM

        self.name = name
        self._streams = name.endswith("gcm")
        self._nonce_bytes = 12 if self._streams else 11
        self._session_id = session_id
        self._forged = InvalidTag
        self._cipher: Any = Cipher
        self._gcm: Any = modes.GCM
        if self._streams:
            self._encrypt: Any = algorithms.AES(encrypt_key)
            self._decrypt: Any = algorithms.AES(decrypt_key)
        else:
            self._encrypt = AESCCM(encrypt_key)
            self._decrypt = AESCCM(decrypt_key)
        # A nonce must never repeat: a random part per connection, then a counter.
        self._nonce_prefix = os.urandom(4)
        self._nonce_count = 0
        self._staging = memoryview(bytearray(0))
        self._plain = memoryview(bytearray(0))

    def seal(self, head: Buffer, payload: Buffer) -> tuple[bytes, memoryview]:
        """Returns transform header and ciphertext of a request; the latter until the next call."""
        length = len(head) + len(payload)
        self._grow(length)
        self._nonce_count += 1
        count = struct.pack("<Q", self._nonce_count)
        nonce = (self._nonce_prefix + count)[: self._nonce_bytes]
        sealed_as = _HEADER.pack(_PROTOCOL, b"", nonce, length, 0, _ENCRYPTED, self._session_id)
        aad = sealed_as[20:]
        if self._streams:
            encryptor = self._cipher(self._encrypt, self._gcm(nonce)).encryptor()
            encryptor.authenticate_additional_data(aad)
            done = encryptor.update_into(head, self._staging)
            if payload:
                encryptor.update_into(payload, self._staging[done:])
            encryptor.finalize()
            tag = encryptor.tag
        else:
            self._plain[: len(head)] = head
            self._plain[len(head) : length] = payload
            both = self._staging[: length + 16]
            self._encrypt.encrypt_into(nonce, self._plain[:length], aad, both)
            tag = bytes(both[length:])
        return sealed_as[:4] + tag + aad, self._staging[:length]

    def unseal(self, frame: memoryview, length: int, place: Place) -> memoryview:
        """Decrypts a reply of length bytes at the start of frame, which has 16 bytes to spare.

        Returns the plain message without the payload, which goes to the buffer from place. Raises
        SmbError where the reply is not encrypted, not of this session, or was tampered with.
        """
        if length < HEADER_BYTES + 66 or frame[:4] != _PROTOCOL:
            raise SmbError("the server answered without the encryption that was agreed")
        _, tag, nonce, size, _, flags, session_id = _HEADER.unpack_from(frame)
        inner = length - HEADER_BYTES
        if size != inner or flags != _ENCRYPTED or session_id != self._session_id:
            raise SmbError("the server sent an encrypted message that is not of this session")
        self._grow(inner)
        aad = frame[20:HEADER_BYTES]
        nonce = nonce[: self._nonce_bytes]
        try:
            if self._streams:
                return self._unseal_gcm(frame[HEADER_BYTES:length], nonce, tag, aad, place)
            frame[length : length + 16] = tag
            plain = self._plain[:inner]
            self._decrypt.decrypt_into(nonce, frame[HEADER_BYTES : length + 16], aad, plain)
        except self._forged:
            raise SmbError("an encrypted reply was altered on its way") from None
        target = place(plain[:HEAD_BYTES], inner)
        if target is not None:
            start = plain[66]
            target[:] = plain[start : start + len(target)]
        return plain

    def _unseal_gcm(
        self, sealed: memoryview, nonce: bytes, tag: bytes, aad: memoryview, place: Place
    ) -> memoryview:
        inner = len(sealed)
        plain = self._plain
        decryptor = self._cipher(self._decrypt, self._gcm(nonce, tag)).decryptor()
        decryptor.authenticate_additional_data(aad)
        done = min(inner, HEAD_BYTES)
        decryptor.update_into(sealed[:done], plain)
        target = place(plain[:done], inner)
        start = plain[66] if target is not None else 0
        if target is not None and start == HEAD_BYTES:
            decryptor.update_into(sealed[done : done + len(target)], target)
            done += len(target)
            target = None
        if done < inner:
            decryptor.update_into(sealed[done:], plain[done:])
        decryptor.finalize()
        if target is not None:
            target[:] = plain[start : start + len(target)]
        return plain[:inner]

    def _grow(self, length: int) -> None:
        if len(self._staging) < length + 64:
            self._staging = memoryview(bytearray(length + 4096))
            self._plain = memoryview(bytearray(length + 4096))
