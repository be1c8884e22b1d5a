"""No file server at all, or one that only begins like one."""

from __future__ import annotations

from behaviour import ACCESS_DENIED, ACCOUNT_LOCKED, LATE, LOGON_FAILURE, NO_SMB, Terms, attacks
from middle import frame
from server import (
    TARGET_INFO,
    again_and_again,
    agrees,
    answers,
    challenge,
    contexts,
    cut,
    demands,
    denies,
    drips,
    echoes,
    floods,
    keeps_alive,
    leaves,
    nt_lm,
    other_number,
    resets,
    shouts,
    silent,
    smb1,
    welcomes,
    wildcards,
)

HTTP = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<html>\x1b[31m</html>"
EITHER = f"{NO_SMB}|{LATE}"
STRANGERS = attacks(
    {
        Terms("stranger: ", NO_SMB, dialect=""): {
            "HTTP": answers(HTTP),
            "SSH, speaking first": shouts(b"SSH-2.0-OpenSSH_9.2\r\n"),
            "silence": (LATE, silent),
            "closes at once": leaves,
            "resets": resets,
            "4 GiB announced": answers(b"\xff" * 4),
            "an unknown dialect": agrees(dialect=0x0999),
            "dialects to choose from, for ever": wildcards,
        },
        Terms("stranger: ", NO_SMB): {
            "FTP with escape codes": shouts(b"220 \x1b]0;owned\x07\x1b[2J ready\r\n"),
            "4 GiB announced, speaking first": shouts(b"\xff\xff\xff\xff" * 8),
            "16 MiB announced": answers(b"\0\xff\xff\xff" + bytes(1000)),
            "empty messages for ever": floods,
            "a byte a second": (LATE, drips),
            "keep-alives for ever": (LATE, keeps_alive),
            "noise": answers(bytes(range(256)) * 64),
            "noise in a frame": answers(frame(bytes(range(1, 255)) * 9)),
            "sends back what it gets": (EITHER, echoes),
            "NetBIOS says no": answers(b"\x83\0\0\x01\x8f"),
            "another dialect than asked": agrees(dialect=0x0202),
            "READs of 4 GiB": (LATE, agrees(max_bytes=0xFFFFFFFF)),
            "READs of 0 bytes": ("invalid answer", agrees(max_bytes=0)),
            "65535 contexts": (EITHER, agrees(context_count=65535)),
            "contexts behind the message": (EITHER, agrees(context_offset=0xFFFFFFF0)),
            "a token behind the message": (EITHER, agrees(blob_offset=0xFFF0, blob_bytes=0xFFFF)),
            "an unknown hash": agrees(listed=contexts(hash_number=9)),
            "an unknown cipher": agrees(listed=contexts(cipher=99)),
            "an unknown signature": agrees(listed=contexts(signature=99)),
            "a negotiation of 40 bytes": cut(40),
            "a negotiation cut in its body": cut(100),
            "answers another message": other_number,
            "2000 answers at once": (f"{NO_SMB}|login", again_and_again),
        },
        Terms("stranger: ", dialect="smb1"): {
            "SMB1 alone, without a dialect": ("SMB1 is off", smb1(b"\xff\xff", b"")),
            "SMB1 with plain passwords": (
                "NTLMv2|SMB1",
                smb1(nt_lm(0x8000E3FC & ~0x80000000, b"12345678"), b"12345678" + b"W\0"),
            ),
            "SMB1 with garbage words": ("SMB1", smb1(b"\xff" * 34, b"\xff" * 4)),
        },
        Terms("login: ", logins=1): {
            "a challenge again and again": (
                "never said that the login was over",
                demands(challenge()),
            ),
            "wrong password": ("wrong user or password", denies(LOGON_FAILURE)),
            "access denied": ("access is denied", denies(ACCESS_DENIED)),
            "locked": ("locked", denies(ACCOUNT_LOCKED)),
            "a status of nobody's": ("0xdeadbeef", denies(0xDEADBEEF)),
            "in without the password, 3.1.1": ("without its signature", welcomes(0x0311)),
            "as a guest, 3.1.1": ("guest", welcomes(0x0311, 1)),
        },
        Terms("login: ", "wrong user or password", dialect="", logins=1): {
            "wrong password, best dialect": denies(LOGON_FAILURE),
            "in without the password, 2.1 as the best": ("signature", welcomes(0x0210)),
        },
        Terms("login: ", dialect="2.1", logins=1): {
            "wrong password, 2.1": ("wrong user or password", denies(LOGON_FAILURE, 0x0210)),
            "as nobody, 2.1": ("guest", welcomes(0x0210, 2)),
            "encrypted with no key agreed, 2.1": ("login", welcomes(0x0210, 4)),
        },
        Terms("login: ", "login"): {
            "a challenge of 900 KiB": demands(b"NTLMSSP\0\x02\0\0\0" + bytes(60000)),
            "a challenge of another kind": demands(challenge(mark=b"KERBEROS")),
            "target info behind the message": demands(challenge(info_offset=0xFFFFFF00)),
            "target info of 65535 bytes": demands(challenge(info_bytes=0xFFFF)),
            "target info without end": demands(
                challenge(target_info=TARGET_INFO[:-4] + b"\x02\0\xff\xff")
            ),
            "no target info, all flags cleared": demands(challenge(flags=0x201, target_info=b"")),
            "a challenge longer than told": ("login|never said", demands(challenge(), size=0xFFFF)),
        },
        Terms("login: ", "login", logins=0): {
            "no challenge": demands(b""),
            "our own first message back": demands(challenge(kind=1)),
            "a challenge of 20 bytes": demands(challenge()[:20]),
            "in without a challenge": welcomes(0x0311, blob=False),
        },
        Terms("login: ", "signature", dialect="3.0", logins=1): {
            "in without the password, 3.0": welcomes(0x0300)
        },
    }
)
