"""Failures of ssh or the other end become one plain sentence, and the command to try."""

import pytest

from bottleneck.agents.bootstrap import explain_failure

SAID = (
    "@@@@\nWARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed.",
    "No ED25519 host key is known for nas and you have requested strict checking.\n"
    "Host key verification failed.",
    "anna@nas: Permission denied (publickey).",
    "ssh: Could not resolve hostname nas: Name or service not known",
    "connect to host nas port 22: Connection refused",
    "connect to host nas port 22: Connection timed out",
    "sh: 1: python3: not found",
    "bash: line 1: python3: command not found",
    'Traceback (most recent call last):\nFile "<string>"\nSyntaxError: invalid syntax',
    "This account is currently not available.",
)


@pytest.mark.parametrize("spec", ["ssh://anna@nas", "ssh://[fe80::1]:2222", "exec:docker exec nas"])
def test_no_agent_comes_for_a_reason_in_plain_words(golden, spec):
    for said in SAID:
        golden(f"# {said.splitlines()[-1]}")
        golden("  {}; {}".format(*explain_failure(spec, "the server's agent did not start", said)))
