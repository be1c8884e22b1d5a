"""Rule smb/client: the operating system's own SMB client is slower than the same path allows.

What this tool copies beside it shares hosts, disks, network and server: what is missing is lost in
the mount. Sources of the options: mount.cifs(8); as the kernel shows them,
fs/smb/client/cifsfs.c:cifs_show_options.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.noise import differ
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import rate_text, size_text

NAMED_TRUST = 0.8
UNNAMED_TRUST = 0.65
"""Where no option of the mount explains it: the gap is sure, its cause is not."""
SHORT_BYTES = 1 << 20
SIGNING_SECURITIES = ("ntlmi", "ntlmv2i", "ntlmsspi", "krb5i")
"""The kernel appends an i to the kind of login of a session that signs."""
OLD_VERSIONS = {"1.0": "SMB1", "2.0": "SMB 2.0.2"}
_OLD_DIALECTS = ("smb1", "2.0.2")


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """The rate of the system's own copy, where this tool's of the same is really faster.

    Silent where the one source was proven uncached and the other was not: they are not the same.
    """
    made, beside = copy.made, copy.beside
    if made is None or beside is None or not steps.alike_sources(made, beside):
        return
    if made.rate.median >= beside.rate.median or not differ(made.rate, beside.rate):
        return
    reasons = slow_options(made, copy.verb)
    named = f" ({', '.join(text for text, _ in reasons)})" if reasons else ""
    yield Claim(
        Ceiling(
            component="smb",
            side="client",
            cause=cause(made, beside),
            bytes_per_second=made.rate.median,
            low_bytes_per_second=made.rate.low,
            high_bytes_per_second=made.rate.high,
            steps=(made.index, beside.index),
            standing="measured",
        ),
        words=(
            f"the mount{named} carries no more, while this tool's own SMB makes the same copy at "
            f"{rate_text(beside.rate.median)}"
        ),
        reached=True,
        trust=NAMED_TRUST if reasons else UNNAMED_TRUST,
        evidence=tuple(f"The mount's {text}: {why}." for text, why in reasons),
        remedy=remedy(made, copy.verb),
    )


def options(made: Found) -> dict[str, str]:
    """The options of the mount under a copy; without a value: an empty one."""
    told = steps.word(made.outcome.details, "mount", "options") or ""
    pairs = (each.partition("=") for each in told.split(",") if each)
    return {name.strip(): value for name, _, value in pairs}


def slow_options(made: Found, verb: str) -> tuple[tuple[str, str], ...]:
    """The mount's options that cost a copy throughput, each with the reason."""
    told = options(made)
    found = []
    size = "rsize" if verb == "pull" else "wsize"
    if told.get(size, "").isdecimal() and len(told[size]) < 12 and int(told[size]) < SHORT_BYTES:
        text = size_text(int(told[size]))
        found.append((f"{size}={told[size]}", f"requests of {text} where servers take 1 MiB to 8"))
    if told.get("cache") == "none":
        found.append(("cache=none", "no reading ahead, and each write waits for its answer"))
    if verb == "push" and "sync" in told:
        found.append(("sync", "each write waits for its answer"))
    version = told.get("vers", "")
    if version in OLD_VERSIONS:
        why = f"{OLD_VERSIONS[version]} has neither long requests nor credits for them"
        found.append((f"vers={version}", why))
    if "seal" in told:
        found.append(("seal", "every byte is encrypted and decrypted"))
    elif _signs(told):
        text = "sign" if "sign" in told else f"sec={told['sec']}"
        found.append((text, "every byte is signed and checked"))
    return tuple(found)


def _signs(told: dict[str, str]) -> bool:
    return "sign" in told or told.get("sec") in SIGNING_SECURITIES


def cause(made: Found, beside: Found) -> str:
    """The contract's word: what the mount does and this tool's session beside it did not."""
    told, details = options(made), beside.outcome.details
    encrypted = steps.word(details, "encryption") is not None
    signed = encrypted or steps.word(details, "signing") is not None
    if "seal" in told and not encrypted:
        return "encryption"
    if _signs(told) and not signed:
        return "signing"
    dialect = steps.word(beside.step.setting, "dialect")
    if told.get("vers") in OLD_VERSIONS and dialect not in _OLD_DIALECTS:
        return "dialect"
    return "round-trips"


def remedy(made: Found, verb: str) -> str:
    """What to mount with instead, as the subject of a sentence."""
    size = "rsize" if verb == "pull" else "wsize"
    named = {text.partition("=")[0] for text, _ in slow_options(made, verb)}
    instead = {
        "rsize": "rsize=4194304",
        "wsize": "wsize=4194304",
        "cache": "cache=strict",
        "sync": "async",
        "vers": "vers=3.1.1",
        "sec": "no signing where the server does not require it",
        "sign": "no sign where the server does not require it",
        "seal": "no seal where the server does not require it",
    }
    wanted = [text for name, text in instead.items() if name in named]
    if not wanted:
        return f"A mount that keeps more in flight ({size}=4194304, cache=strict)"
    return f"A mount with {', '.join(wanted)}"
