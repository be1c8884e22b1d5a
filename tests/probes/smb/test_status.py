"""A server's refusal becomes one line that names host, step and remedy."""

from __future__ import annotations

import pytest

from probes.smb import status


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (0xC000006D, "login", "wrong user or password"),
        (0xC0000234, "login", "locked"),
        (0xC00000CC, "share", "share not found"),
        (0xC00000A2, "permission", "read-only"),
        (0xC000007F, "space", "disk is full"),
        (0xC0DEC0DE, "login", "0xc0dec0de"),
    ],
)
def test_refusals_are_sorted_and_said_plainly(code: int, kind: str, words: str) -> None:
    refused = status.refusal("nas", "login", code)
    assert refused.kind == kind
    assert refused.text.startswith("nas: login: ")
    assert words in refused.text
    assert "\n" not in refused.text


def test_a_denied_login_is_not_taken_for_a_denied_write() -> None:
    assert "encryption" in status.refusal("nas", "login", status.ACCESS_DENIED).text
    assert "write" in status.refusal("//nas/s", "create x", status.ACCESS_DENIED).text
