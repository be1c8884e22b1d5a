"""What a mount does to a copy: the system's own SMB client is slower than its path allows.

What this tool copies beside it shares hosts, disks, network and server: what is missing is lost in
the mount, and its options name the cause: signing, encryption, an old dialect, few bytes in flight.
Sources of the options: mount.cifs(8); as the kernel shows them,
fs/smb/client/cifsfs.c:cifs_show_options.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.claim import GAP, SURE, Cause, claim
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.load import is_nearly_full
from bottleneck.analysis.noise import differ
from bottleneck.analysis.rules.smb import dialect, round_trips, signing
from bottleneck.analysis.steps import Found
from bottleneck.text.units import rate_text, size_text

SHORT_BYTES = 1 << 20
SIGNING_SECURITIES = ("ntlmi", "ntlmv2i", "ntlmsspi", "krb5i")
"""The kernel appends an i to the kind of login of a session that signs."""
OLD_VERSIONS = {"1.0": "SMB1", "2.0": "SMB 2.0.2"}
DEFAULT_BYTES = 4 << 20
"""rsize and wsize of a mount that names none (SMB3_DEFAULT_IOSIZE, fs/smb/client/smb2pdu.h)."""
_INSTEAD = {
    "rsize": f"rsize={DEFAULT_BYTES}",
    "wsize": f"wsize={DEFAULT_BYTES}",
    "cache": "cache=strict",
    "sync": "async",
    "vers": "vers=3.1.1",
}
"""What to mount with, by the option that costs."""
_WITHOUT = {"sec": "signing", "sign": "`sign`", "seal": "`seal`"}
"""What to mount without, where the server allows it."""


def rule(given: Evidence) -> Iterator[Claim]:
    """The rate of the system's own copy, where this tool's of the same is really faster.

    Silent where the one source was proven uncached and the other was not: they are not the same;
    and where no option explains it and a core of the client was nearly full: that may be the limit.
    """
    made, beside = given.step, given.copy.beside
    if beside is None or not steps.alike_sources(made, beside):
        return
    if made.rate.median >= beside.rate.median or not differ(made.rate, beside.rate):
        return
    reasons = slow_options(made, given.copy.verb)
    if not reasons and is_nearly_full(made.usage("client")):
        return
    named = f" ({', '.join(text for text, _ in reasons)})" if reasons else ""
    who = "the user's command through the mount" if made.details.command else "the mount"
    yield claim(
        cause(made, beside),
        "client",
        made,
        f"{who}{named} is slower than this tool, which makes the same copy at "
        f"{rate_text(beside.rate.median)}",
        steps=(made.index, beside.index),
        reached=True,
        # Where no option explains it the gap is sure, and its cause is not.
        trust=SURE if reasons else GAP,
        evidence=option_lines(made, given.copy.verb),
        remedy=remedy(made, given.copy.verb),
        detail=f"mount option {reasons[0][0]}" if len(reasons) == 1 else "",
    )


def options(made: Found) -> dict[str, str]:
    """The options of the mount under a copy; without a value: an empty one."""
    pairs = (each.partition("=") for each in made.details.mount.options.split(",") if each)
    return {name.strip(): value for name, _, value in pairs}


def request_size(made: Found, verb: str) -> tuple[str, int | None]:
    """The mount option for the size of a request, and its value in bytes; None: not reported."""
    name = "rsize" if verb == "pull" else "wsize"
    value = options(made).get(name, "")
    return name, int(value) if value.isdecimal() and len(value) < 12 else None


def option_lines(made: Found, verb: str) -> tuple[str, ...]:
    """A sentence for each option of the mount that costs throughput."""
    return tuple(f"The mount option {text} {why}." for text, why in slow_options(made, verb))


def slow_options(made: Found, verb: str) -> tuple[tuple[str, str], ...]:
    """The mount's options that cost a copy throughput, each with the reason."""
    told = options(made)
    found = []
    size, request_bytes = request_size(made, verb)
    if request_bytes is not None and request_bytes < SHORT_BYTES:
        text = size_text(request_bytes)
        found.append((f"{size}={told[size]}", f"limited requests to {text}; servers support 1 MiB"))
    if told.get("cache") == "none":
        found.append(("cache=none", "turned off read-ahead, and each write waited for its reply"))
    if verb == "push" and "sync" in told:
        found.append(("sync", "made each write wait for its reply"))
    version = told.get("vers", "")
    if version in OLD_VERSIONS:
        why = f"selected {OLD_VERSIONS[version]}, which has short requests and few in flight"
        found.append((f"vers={version}", why))
    if "seal" in told:
        found.append(("seal", "made both hosts encrypt and decrypt every byte"))
    elif _signs(told):
        text = "sign" if "sign" in told else f"sec={told['sec']}"
        found.append((text, "made both hosts sign and check every byte"))
    return tuple(found)


def _signs(told: dict[str, str]) -> bool:
    return "sign" in told or told.get("sec") in SIGNING_SECURITIES


def cause(made: Found, beside: Found) -> Cause:
    """What the mount does and this tool's session beside it did not."""
    told = options(made)
    if "seal" in told and beside.details.encryption is None:
        return signing.ENCRYPTION
    if _signs(told) and beside.details.algorithm is None:
        return signing.SIGNING
    if told.get("vers") in OLD_VERSIONS and beside.setting.dialect not in dialect.OLD:
        return dialect.CAUSE
    return round_trips.CAUSE


def remedy(made: Found, verb: str) -> str:
    """How to mount instead; where nothing but the command may be slow, how to tell."""
    named = {text.partition("=")[0] for text, _ in slow_options(made, verb)}
    wanted = [text for name, text in _INSTEAD.items() if name in named]
    unsafe = " and ".join(text for name, text in _WITHOUT.items() if name in named)
    without = f" without {unsafe} if the network is trusted" if unsafe else ""
    if not named and made.details.command:
        return "Repeat without --native-command: if cp is faster, the command limits its copies"
    if not (wanted or unsafe):
        size, request_bytes = request_size(made, verb)
        is_fuse = made.details.mount.filesystem.startswith("fuse.")
        if is_fuse or (request_bytes or 0) >= DEFAULT_BYTES:
            return "Copy several files at once: no option of the mount explains it"
        wanted = [_INSTEAD[size]]
    with_options = f" with `-o {','.join(wanted)}`" if wanted else ""
    return f"Mount the share{with_options}{' and' if wanted and unsafe else ''}{without}"
