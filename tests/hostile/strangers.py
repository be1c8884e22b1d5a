"""No file server at all, or one that only begins like one."""

from __future__ import annotations

import server as s
from behaviour import ACCESS_DENIED, ACCOUNT_LOCKED, LATE, LOGON_FAILURE, NO_SMB, Behaviour
from middle import framed

import scripts as p


def _strangers() -> tuple[Behaviour, ...]:
    """No file server at all, or one that only begins like one."""
    http = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<html>\x1b[31m</html>"
    info = s.TARGET_INFO
    return (
        Behaviour("stranger: HTTP", p.answers(http), NO_SMB, dialect=""),
        Behaviour(
            "stranger: SSH, speaking first",
            p.shouts(b"SSH-2.0-OpenSSH_9.2\r\n"),
            NO_SMB,
            dialect="",
        ),
        Behaviour(
            "stranger: FTP with escape codes",
            p.shouts(b"220 \x1b]0;owned\x07\x1b[2J ready\r\n"),
            NO_SMB,
        ),
        Behaviour("stranger: silence", p.silent, LATE, dialect=""),
        Behaviour("stranger: closes at once", p.leaves, NO_SMB, dialect=""),
        Behaviour("stranger: resets", p.resets, NO_SMB, dialect=""),
        Behaviour("stranger: 4 GiB announced", p.answers(b"\xff" * 4), NO_SMB, dialect=""),
        Behaviour(
            "stranger: 4 GiB announced, speaking first", p.shouts(b"\xff\xff\xff\xff" * 8), NO_SMB
        ),
        Behaviour("stranger: 16 MiB announced", p.answers(b"\0\xff\xff\xff" + bytes(1000)), NO_SMB),
        Behaviour("stranger: empty messages for ever", p.floods, NO_SMB),
        Behaviour("stranger: a byte a second", p.drips, LATE),
        Behaviour("stranger: keep-alives for ever", p.keeps_alive, LATE),
        Behaviour("stranger: noise", p.answers(bytes(range(256)) * 64), NO_SMB),
        Behaviour(
            "stranger: noise in a frame", p.answers(framed(bytes(range(1, 255)) * 9)), NO_SMB
        ),
        Behaviour("stranger: sends back what it gets", p.echoes, f"{NO_SMB}|{LATE}"),
        Behaviour("stranger: NetBIOS says no", p.answers(b"\x83\0\0\x01\x8f"), NO_SMB),
        Behaviour(
            "stranger: SMB1 alone, without a dialect",
            p.smb1(b"\xff\xff", b""),
            "SMB1 is off",
            dialect="smb1",
        ),
        Behaviour(
            "stranger: SMB1 with plain passwords",
            p.smb1(p.nt_lm(0x8000E3FC & ~0x80000000, b"12345678"), b"12345678" + b"W\0"),
            "NTLMv2|SMB1",
            dialect="smb1",
        ),
        Behaviour(
            "stranger: SMB1 with garbage words",
            p.smb1(b"\xff" * 34, b"\xff" * 4),
            "SMB1",
            dialect="smb1",
        ),
        Behaviour(
            "stranger: an unknown dialect", p.agrees(dialect=0x0999), f"{NO_SMB}", dialect=""
        ),
        Behaviour("stranger: dialects to choose from, for ever", p.wildcards, NO_SMB, dialect=""),
        Behaviour("stranger: another dialect than asked", p.agrees(dialect=0x0202), NO_SMB),
        Behaviour("stranger: READs of 4 GiB", p.agrees(longest=0xFFFFFFFF), LATE),
        Behaviour("stranger: READs of 0 bytes", p.agrees(longest=0), "no sound answer"),
        Behaviour("stranger: 65535 contexts", p.agrees(count=65535), f"{NO_SMB}|{LATE}"),
        Behaviour(
            "stranger: contexts behind the message",
            p.agrees(context_offset=0xFFFFFFF0),
            f"{NO_SMB}|{LATE}",
        ),
        Behaviour(
            "stranger: a token behind the message",
            p.agrees(blob_offset=0xFFF0, blob_bytes=0xFFFF),
            f"{NO_SMB}|{LATE}",
        ),
        Behaviour("stranger: an unknown hash", p.agrees(listed=s.contexts(hash_number=9)), NO_SMB),
        Behaviour("stranger: an unknown cipher", p.agrees(listed=s.contexts(cipher=99)), NO_SMB),
        Behaviour(
            "stranger: an unknown signature", p.agrees(listed=s.contexts(signature=99)), NO_SMB
        ),
        Behaviour("stranger: a negotiation of 40 bytes", p.cut(40), NO_SMB),
        Behaviour("stranger: a negotiation cut in its body", p.cut(100), NO_SMB),
        Behaviour("stranger: answers another message", p.other_number, NO_SMB),
        Behaviour("stranger: 2000 answers at once", p.again_and_again, f"{NO_SMB}|login"),
        Behaviour(
            "login: a challenge again and again",
            p.challenges_for_ever,
            "never said that the login was over",
            logins=1,
        ),
        Behaviour(
            "login: wrong password", p.denies(LOGON_FAILURE), "wrong user or password", logins=1
        ),
        Behaviour(
            "login: wrong password, best dialect",
            p.denies(LOGON_FAILURE),
            "wrong user or password",
            dialect="",
            logins=1,
        ),
        Behaviour(
            "login: wrong password, 2.1",
            p.denies(LOGON_FAILURE, 0x0210),
            "wrong user or password",
            dialect="2.1",
            logins=1,
        ),
        Behaviour("login: access denied", p.denies(ACCESS_DENIED), "access is denied", logins=1),
        Behaviour("login: locked", p.denies(ACCOUNT_LOCKED), "locked", logins=1),
        Behaviour("login: a status of nobody's", p.denies(0xDEADBEEF), "0xdeadbeef", logins=1),
        Behaviour(
            "login: a challenge of 900 KiB", p.blob(b"NTLMSSP\0\x02\0\0\0" + bytes(60000)), "login"
        ),
        Behaviour("login: no challenge", p.blob(b""), "login", logins=0),
        Behaviour(
            "login: a challenge of another kind", p.blob(s.challenge(mark=b"KERBEROS")), "login"
        ),
        Behaviour(
            "login: our own first message back", p.blob(s.challenge(kind=1)), "login", logins=0
        ),
        Behaviour("login: a challenge of 20 bytes", p.blob(s.challenge()[:20]), "login", logins=0),
        Behaviour(
            "login: target info behind the message",
            p.blob(s.challenge(info_offset=0xFFFFFF00)),
            "login",
        ),
        Behaviour(
            "login: target info of 65535 bytes", p.blob(s.challenge(info_bytes=0xFFFF)), "login"
        ),
        Behaviour(
            "login: target info without end",
            p.blob(s.challenge(target_info=info[:-4] + b"\x02\0\xff\xff")),
            "login",
        ),
        Behaviour(
            "login: no target info, all flags cleared",
            p.blob(s.challenge(flags=0x201, target_info=b"")),
            "login",
        ),
        Behaviour(
            "login: a challenge longer than told",
            p.blob(s.challenge(), size=0xFFFF),
            "login|never said",
        ),
        Behaviour(
            "login: in without a challenge", p.welcomes(0x0311, blob=False), "login", logins=0
        ),
        Behaviour(
            "login: in without the password, 3.1.1",
            p.welcomes(0x0311),
            "without its signature",
            logins=1,
        ),
        Behaviour(
            "login: in without the password, 3.0",
            p.welcomes(0x0300),
            "signature",
            dialect="3.0",
            logins=1,
        ),
        Behaviour(
            "login: in without the password, 2.1 as the best",
            p.welcomes(0x0210),
            "signature",
            dialect="",
            logins=1,
        ),
        Behaviour("login: as a guest, 3.1.1", p.welcomes(0x0311, 1), "guest", logins=1),
        Behaviour("login: as nobody, 2.1", p.welcomes(0x0210, 2), "guest", dialect="2.1", logins=1),
        Behaviour(
            "login: encrypted with no key agreed, 2.1",
            p.welcomes(0x0210, 4),
            "login",
            dialect="2.1",
            logins=1,
        ),
    )


STRANGERS = _strangers()
