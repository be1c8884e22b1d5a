"""Limits of a mount: the system's own SMB client is slower than its path allows.

This tool's copy of the same shares hosts, disks, network and server, so that the difference is due
to the mount. Its options name the cause: signing, encryption, old dialect, few bytes in flight.
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
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.text.units import rate_text, size_text

SHORT_BYTES = 1 << 20
SIGNING_SECURITIES = ("ntlmi", "ntlmv2i", "ntlmsspi", "krb5i")
"""Login kinds of sessions that sign: the kernel appends an i."""
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
"""Options to mount with, by the option that costs throughput."""
_WITHOUT = {"sec": "signing", "sign": "`sign`", "seal": "`seal`"}
"""Words for the options to mount without, if the server allows it."""


def rule(evidence: Evidence) -> Iterator[Claim]:
    """Yields the rate of the system's own copy, if this tool's copy of the same is clearly faster.

    Nothing if only one of both sources was proven uncached, as they differ, or if no option
    explains it and a core of the client was nearly full, which may be the limit.
    """
    step, beside = evidence.step, evidence.copy.beside
    if beside is None or not steps.has_alike_sources(step, beside):
        return
    if step.rate.median >= beside.rate.median or not differ(step.rate, beside.rate):
        return
    reasons = slow_options(step, evidence.copy.verb)
    if not reasons and is_nearly_full(step.usage("client")):
        return
    listed = f" ({', '.join(text for text, _ in reasons)})" if reasons else ""
    who = "the user's command through the mount" if step.details.command else "the mount"
    yield claim(
        cause(step, beside),
        "client",
        step,
        f"{who}{listed} is slower than this tool, which makes the same copy at "
        f"{rate_text(beside.rate.median)}",
        steps=(step.index, beside.index),
        reached=True,
        # Without an option that explains it, the gap is certain but not its cause.
        trust=SURE if reasons else GAP,
        evidence=option_lines(step, evidence.copy.verb),
        remedy=remedy(step, evidence.copy.verb),
        detail=f"mount option {reasons[0][0]}" if len(reasons) == 1 else "",
    )


def options(step: MeasuredStep) -> dict[str, str]:
    """Returns the options of the mount under a copy; those without a value have an empty one."""
    pairs = (each.partition("=") for each in step.details.mount.options.split(",") if each)
    return {name.strip(): value for name, _, value in pairs}


def request_size(step: MeasuredStep, verb: str) -> tuple[str, int | None]:
    """Returns the mount option for the request size, and its bytes; None: not reported."""
    name = "rsize" if verb == "pull" else "wsize"
    value = options(step).get(name, "")
    return name, int(value) if value.isdecimal() and len(value) < 12 else None


def option_lines(step: MeasuredStep, verb: str) -> tuple[str, ...]:
    """Returns a sentence for each option of the mount that costs throughput."""
    return tuple(f"The mount option {text} {why}." for text, why in slow_options(step, verb))


def slow_options(step: MeasuredStep, verb: str) -> tuple[tuple[str, str], ...]:
    """Returns the mount's options that cost a copy throughput, each with the reason."""
    flags = options(step)
    reasons = []
    size, request_bytes = request_size(step, verb)
    if request_bytes is not None and request_bytes < SHORT_BYTES:
        text = size_text(request_bytes)
        reasons.append(
            (f"{size}={flags[size]}", f"limited requests to {text}; servers support 1 MiB")
        )
    if flags.get("cache") == "none":
        reasons.append(("cache=none", "turned off read-ahead, and each write waited for its reply"))
    if verb == "push" and "sync" in flags:
        reasons.append(("sync", "made each write wait for its reply"))
    version = flags.get("vers", "")
    if version in OLD_VERSIONS:
        why = f"selected {OLD_VERSIONS[version]}, which has short requests and few in flight"
        reasons.append((f"vers={version}", why))
    if "seal" in flags:
        reasons.append(("seal", "made both hosts encrypt and decrypt every byte"))
    elif _has_signing(flags):
        text = "sign" if "sign" in flags else f"sec={flags['sec']}"
        reasons.append((text, "made both hosts sign and check every byte"))
    return tuple(reasons)


def _has_signing(flags: dict[str, str]) -> bool:
    return "sign" in flags or flags.get("sec") in SIGNING_SECURITIES


def cause(step: MeasuredStep, beside: MeasuredStep) -> Cause:
    """Returns the cost that the mount has and this tool's session beside it had not."""
    flags = options(step)
    if "seal" in flags and beside.details.encryption is None:
        return signing.ENCRYPTION
    if _has_signing(flags) and beside.details.algorithm is None:
        return signing.SIGNING
    if flags.get("vers") in OLD_VERSIONS and beside.setting.dialect not in dialect.OLD:
        return dialect.CAUSE
    return round_trips.CAUSE


def remedy(step: MeasuredStep, verb: str) -> str:
    """Returns how to mount instead, or how to find out whether only the command is slow."""
    slow = {text.partition("=")[0] for text, _ in slow_options(step, verb)}
    instead = [text for name, text in _INSTEAD.items() if name in slow]
    unsafe = " and ".join(text for name, text in _WITHOUT.items() if name in slow)
    without = f" without {unsafe} if the network is trusted" if unsafe else ""
    if not slow and step.details.command:
        return "Repeat without --native-command: if cp is faster, the command limits its copies"
    if not (instead or unsafe):
        size, request_bytes = request_size(step, verb)
        is_fuse = step.details.mount.filesystem.startswith("fuse.")
        if is_fuse or (request_bytes or 0) >= DEFAULT_BYTES:
            return "Copy several files at once: no option of the mount explains it"
        instead = [_INSTEAD[size]]
    with_options = f" with `-o {','.join(instead)}`" if instead else ""
    return f"Mount the share{with_options}{' and' if instead and unsafe else ''}{without}"
