"""What was seen, as checks: what is well, what costs something, what is missing. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.doctor import host_checks, share_checks
from bottleneck.doctor.packages import SMB1_EXTRA
from bottleneck.doctor.records import CLIENT, COSTS, OK, Check, Looked


def judged(seen: Looked) -> tuple[Check, ...]:
    """Every check, this host's first."""
    return (
        *_program(seen),
        *host_checks.of_client(seen),
        *share_checks.of_share(seen),
        *host_checks.of_server(seen),
    )


def _program(seen: Looked) -> Iterator[Check]:
    program = seen.program
    packages = program.packages
    yield Check(
        CLIENT,
        "program",
        OK,
        f"copy-bottleneck {program.version} on Python {program.python}, smbprotocol "
        f"{packages.get('smbprotocol', '?')}; no numeric Bottleneck beside it",
    )
    offers = seen.offered is not None and "smb1" in seen.offered["dialects"]
    if "impacket" in packages:
        yield Check(CLIENT, "impacket", OK, f"impacket {packages['impacket']}: SMB1 is measured")
    elif not offers:
        yield Check(
            CLIENT,
            "impacket",
            COSTS,
            "impacket is not installed: SMB1 is left out, which few servers still offer",
            SMB1_EXTRA,
            ("smb-copy in smb1",),
        )
    if program.encoding.lower().replace("-", "") == "utf8":
        yield Check(CLIENT, "encoding", OK, "text is UTF-8")
    else:
        yield Check(
            CLIENT,
            "encoding",
            COSTS,
            f"text is {program.encoding}: bars and foreign names are drawn in ASCII",
            "export LC_ALL=C.UTF-8",
        )
    shows = "a terminal" if program.terminal else "no terminal: progress is a plain line a stage"
    yield Check(CLIENT, "terminal", OK, shows)
