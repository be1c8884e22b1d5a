"""Signatures over pieces are those over the whole, as the standards have them."""

from __future__ import annotations

import hashlib
import hmac
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from probes.smb.signing import Md5, signer

KEY = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
MESSAGE = bytes.fromhex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411"
)


def test_cmac_is_that_of_rfc_4493() -> None:
    expected = bytes.fromhex("dfa66747de9ae63030ca32611497c827")
    assert signer("aes-cmac", KEY).sign(7, True, MESSAGE[:3], MESSAGE[3:]) == expected


def test_gmac_has_the_message_id_and_the_sender_in_its_nonce() -> None:
    for reply in (False, True):
        nonce = struct.pack("<QI", 77, int(reply))
        expected = AESGCM(KEY).encrypt(nonce, b"", MESSAGE)
        assert signer("aes-gmac", KEY).sign(77, reply, MESSAGE[:9], MESSAGE[9:]) == expected


def test_hmac_is_cut_to_16_bytes() -> None:
    expected = hmac.digest(KEY, MESSAGE, "sha256")[:16]
    assert signer("hmac-sha256", KEY).sign(1, False, MESSAGE[:20], MESSAGE[20:]) == expected


def test_md5_takes_the_key_first_and_8_bytes() -> None:
    expected = hashlib.md5(KEY + MESSAGE).digest()[:8]
    assert Md5(KEY).sign(3, False, MESSAGE[:20], MESSAGE[20:]) == expected
