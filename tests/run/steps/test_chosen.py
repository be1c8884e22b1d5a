"""Options of every copy, in whole runs against a real Samba."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.execution import Session
from probes.core.records import Measured, Outcome, Skipped
from probes.programs.samba import private_samba
from probes.smb.session import UNENCRYPTED
from tests.run.steps.sessions import PASSWORD, session_of

pytestmark = pytest.mark.long
Ran = tuple[Session, list[tuple[Step, Outcome]]]


@pytest.fixture
def run_copies(tmp_path: Path) -> Callable[..., Ran]:
    """A run of the copies alone, with options, against a Samba of these options; its copies."""

    def run(*options: str, **keywords: Any) -> Ran:
        shared, user_folder = tmp_path / "shared", tmp_path / "own"
        shared.mkdir()
        user_folder.mkdir()
        with private_samba(str(shared), password=PASSWORD, options=options) as server:
            defaults = {"stages": ("smb-copy",), "budget_seconds": 60.0, "size_bytes": 2 << 20}
            session = session_of(server, user_folder, **{**defaults, **keywords})
            session.measure()
            assert list(shared.iterdir()) == list(user_folder.iterdir()) == []
        return session, list(session.log.entries())

    return run


@pytest.mark.parametrize(
    ("security", "used"), [("signed", ("aes-gmac", None)), ("encrypted", (None, "aes-128-gcm"))]
)
def test_every_copy_has_the_security_and_the_requests_that_were_chosen(
    run_copies: Callable[..., Ran], security: str, used: tuple[str | None, str | None]
) -> None:
    session, entries = run_copies(security=security, settings={"request_bytes": 65536, "depth": 2})
    measured = [(step, outcome) for step, outcome in entries if isinstance(outcome, Measured)]
    assert {step.setting["copy"] for step, _ in measured} >= {"push.cached", "pull.cached"}
    for step, outcome in measured:
        for facts in (step.setting, outcome.details, session.report().target):
            assert (facts["signing"], facts["encryption"]) == used
        assert (outcome.details["request_bytes"], outcome.details["depth"]) == (65536, 2)


@pytest.mark.parametrize(
    ("option", "security", "why"),
    [
        ("server signing = mandatory", "plain", "requires signing"),
        ("server smb encrypt = required", UNENCRYPTED, "requires encryption"),
        ("server smb encrypt = off", "encrypted", "offers no supported encryption"),
    ],
)
def test_a_security_that_the_server_does_not_allow_is_a_skipped_copy_with_the_reason(
    run_copies: Callable[..., Ran], option: str, security: str, why: str
) -> None:
    session, entries = run_copies(option, security=security)
    assert {step.setting["copy"] for step, _ in entries} == set(plan.COPY_ORDER)
    for _, outcome in entries:
        assert isinstance(outcome, Skipped) and why in outcome.reason
    assert session.status == "partial"
