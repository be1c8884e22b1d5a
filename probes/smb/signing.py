"""Signatures of SMB messages, computed over pieces that are never joined.

A session that is signed has every reply checked: a reply without a signature is a forgery.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Any, Protocol

from probes.smb.frames import Buffer

_NONCE = struct.Struct("<QI")


class Signer(Protocol):
    """One algorithm with one key."""

    @property
    def name(self) -> str:
        """As reports call it: aes-gmac, aes-cmac, hmac-sha256, md5."""

    def sign(self, number: int, reply: bool, *parts: Buffer) -> bytes:
        """Signature of the message whose signature field is empty.

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
    """SMB 3.1.1: AES-128-GMAC; the nonce is the MessageId and who sends (MS-SMB2 3.1.4.1)."""

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
    """The Signer of an SMB2 or SMB3 session, by its name."""
    if name == HmacSha256.name:
        return HmacSha256(key)
    if name == AesCmac.name:
        return AesCmac(key)
    return AesGmac(key)
