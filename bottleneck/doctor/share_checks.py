"""The checks of the file server and its share. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.doctor.packages import SMB1_EXTRA
from bottleneck.doctor.records import CLIENT, MISSING, OK, SHARE, Check, Looked

ALL = ("smb-copy", "smb-matrix", "smb-tax", "small-files")


def of_share(seen: Looked) -> Iterator[Check]:
    """Whether it is reached, what it speaks, and whether it takes the login."""
    target, told = seen.wanted.target, seen.offered
    if target is None:
        return
    if seen.share_trouble is not None:
        trouble = seen.share_trouble
        remedy = "check name, address and firewall; the file server's port is 445"
        yield Check(SHARE, "server", MISSING, trouble.text, remedy, ALL, kind=trouble.kind)
        return
    if told is None:
        return
    where = f"{target.host} port {target.port}"
    milliseconds = 1000 * float(told["connect_seconds"])
    yield Check(SHARE, "server", OK, f"{where} answers in {milliseconds:.1f} ms")
    dialects = [str(each) for each in told["dialects"]]
    if not dialects:
        text = f"{where} speaks no dialect of SMB: is it a file server?"
        yield Check(SHARE, "dialects", MISSING, text, "name its port", ALL, kind="unreachable")
        return
    yield Check(SHARE, "dialects", OK, f"offers {', '.join(dialects)}; {told.get('signing', '')}")
    if "smb1" in dialects and "impacket" not in seen.program.packages:
        text = "the server offers SMB1, and impacket is not installed: SMB1 is left out"
        yield Check(CLIENT, "impacket", MISSING, text, SMB1_EXTRA, ("smb-copy in smb1",))
    yield from _login(seen)


def _login(seen: Looked) -> Iterator[Check]:
    if seen.login_trouble is not None:
        trouble = seen.login_trouble
        yield Check(SHARE, "login", MISSING, trouble.text, "", ALL, kind=trouble.kind)
    elif seen.session is not None:
        facts = seen.session
        kept = facts.get("encryption") or facts.get("signing")
        how = f"protected by {kept}" if kept else "neither signed nor encrypted"
        text = f"logged in by SMB {facts.get('dialect')}, {how}; whether it may be written to, "
        yield Check(SHARE, "login", OK, text + "a run finds out")
    else:
        yield Check(SHARE, "login", OK, "not tried: give --user or --allow-guest for one attempt")
