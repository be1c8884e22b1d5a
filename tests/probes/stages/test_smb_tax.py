"""Copies of equal bytes plain, signed and encrypted, on real servers."""

from __future__ import annotations

from typing import Any

import pytest

from probes.stages import smb_tax

MIB = 1 << 20
SIZE = 3 * MIB


def setting(verb: str, security: str, dialect: str = "3.1.1") -> smb_tax.Setting:
    return smb_tax.Setting(verb, dialect, security, SIZE, 60.0, "00ff11")


@pytest.mark.long
@pytest.mark.parametrize(
    ("dialect", "names"),
    [
        ("3.1.1", {"plain": None, "signed": "aes-gmac", "encrypted": "aes-128-gcm"}),
        ("3.0", {"plain": None, "signed": "aes-cmac", "encrypted": "aes-128-ccm"}),
        ("2.1", {"plain": None, "signed": "hmac-sha256"}),
    ],
)
def test_the_same_bytes_go_with_each_security_and_nothing_waits_for_a_disk(
    run_folder: Any, run_stage: Any, dialect: str, names: dict[str, str | None]
) -> None:
    with run_folder(source_bytes=SIZE) as (peer, folder, _):
        for verb in smb_tax.VERBS:
            for security, name in names.items():
                samples, details = run_stage(smb_tax, setting(verb, security, dialect), peer)
                assert samples[-1].moved_bytes == SIZE
                assert details["hash_ok"] is True
                assert (details["signing"] or details["encryption"]) == name
                assert (details["encryption"] is not None) == (security == "encrypted")
                assert details["flushes"] == 0
        assert [path.name for path in folder.rglob("*")] == ["bottleneck-0abc", "source-0abc"]
    assert list(folder.iterdir()) == []


def test_smb1_can_be_signed(run_folder: Any, run_stage: Any) -> None:
    with run_folder(source_bytes=SIZE) as (peer, _, _):
        for verb in smb_tax.VERBS:
            assert run_stage(smb_tax, setting(verb, "signed", "smb1"), peer)[1]["signing"] == "md5"
