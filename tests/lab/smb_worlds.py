"""Worlds of SMB itself: crypto on a CPU without instructions for it, an old dialect, a file server
that stands still."""

from __future__ import annotations

from plant import Caps
from truth import COPIES, LINK, MB, LabWorld, caps, planted, words

M300 = 300 * MB
_ENCRYPTED = ("server min protocol = SMB3", "server smb encrypt = required")
_CCM = (*_ENCRYPTED, "server smb3 encryption algorithms = AES-128-CCM")
_SIGNED = (
    *("server min protocol = SMB3", "server signing = mandatory"),
    "server smb3 signing algorithms = AES-128-CMAC",
)
_ENCRYPTION, _SIGNING = words("smb", "server", "encryption"), words("smb", "server", "signing")
_SOFTWARE = words("smb", "server", "server-software")
_CPU = words("cpu", "server", "one-core", "all-cores")
_DIALECT = words("smb", "client", "dialect")

SMB_WORLDS: tuple[LabWorld, ...] = (
    planted(
        "encrypted-slow-aes",
        "no link, everything encrypted, a server without instructions for AES",
        Caps(),
        Caps(),
        {copy: _ENCRYPTION for copy in COPIES},
        set(),
        samba_options=_ENCRYPTED,
        slow_crypto=True,
    ),
    planted(
        "encrypted-slow-ccm",
        "no link, everything encrypted with AES-CCM, a server without instructions for AES",
        Caps(),
        Caps(),
        {copy: _ENCRYPTION for copy in COPIES},
        set(),
        samba_options=_CCM,
        slow_crypto=True,
    ),
    planted(
        "signed-slow-aes",
        "no link, everything signed with AES-CMAC, a server without instructions for AES",
        Caps(),
        Caps(),
        # what a push to the disk costs beside the signature may be the greater half
        {copy: _SIGNING | (_CPU if copy == "push.uncached" else set()) for copy in COPIES},
        set(),
        samba_options=_SIGNED,
        slow_crypto=True,
    ),
    planted(
        "encrypted-slow-link-300",
        "everything encrypted, a server without instructions for AES, link 300 Mbit/s",
        caps(sends_bits_per_second=M300),
        caps(sends_bits_per_second=M300),
        {copy: {LINK} for copy in COPIES},
        set(),
        samba_options=_ENCRYPTED,
        slow_crypto=True,
    ),
    planted(
        "rtt-20-smb1",
        "20 ms RTT, SMB1 beside SMB3, ten of its requests at a time",
        caps(),
        caps(),
        {copy: _DIALECT for copy in COPIES},
        set(),
        round_trip_seconds=0.02,
        samba_options=("max mux = 10",),
        least_budget_seconds=110,
    ),
    planted(
        "server-stalls",
        "the file server stands still for 150 ms of every 160, its host at rest",
        caps(),
        caps(),
        {copy: _SOFTWARE for copy in COPIES},
        set(),
        stop_seconds=0.15,
        lift={"stop_seconds": 0.0},
    ),
    planted(
        "server-stalls-long",
        "the file server stands still for 400 ms of every 410, its host at rest",
        caps(),
        caps(),
        {copy: _SOFTWARE for copy in COPIES},
        set(),
        stop_seconds=0.4,
        size_bytes=24 << 20,
        least_budget_seconds=110,
    ),
)
