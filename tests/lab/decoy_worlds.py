"""Decoys: what looks like a cap and caps nothing, beside what does."""

from __future__ import annotations

from truth import COPIES, LINK, LOSS, MB, PUSHES, caps, planted, words
from wan import ORDINARY, wan

M100, M300 = 100 * MB, 300 * MB
_ENCRYPTED = ("server min protocol = SMB3", "server smb encrypt = required")
_SIGNED = ("server signing = mandatory",)
_ALL_LINK = {copy: {LINK} for copy in COPIES}
_READ, _WRITE = words("disk", "server", "read"), words("disk", "server", "write")

DECOY_WORLDS = (
    planted(
        "far-server-read",
        "20 ms RTT, 300 Mbit/s, good windows; the server's disk reads 8 MB/s",
        caps(sends_bits_per_second=M300),
        caps(sends_bits_per_second=M300, disk_read_bytes_per_second=8 * MB),
        {"pull.uncached": _READ},
        {LINK},
        round_trip_seconds=0.02,
    ),
    planted(
        "far-server-write",
        "20 ms RTT, 300 Mbit/s, good windows; the server's disk writes 10 MB/s",
        caps(sends_bits_per_second=M300),
        caps(sends_bits_per_second=M300, disk_write_bytes_per_second=10 * MB),
        {copy: _WRITE for copy in PUSHES},
        {LINK},
        round_trip_seconds=0.02,
    ),
    planted(
        "encrypted-link-100",
        "everything encrypted, link 100 Mbit/s",
        caps(sends_bits_per_second=M100),
        caps(sends_bits_per_second=M100),
        _ALL_LINK,
        set(),
        samba_options=_ENCRYPTED,
    ),
    planted(
        "signed-link-100",
        "everything signed, link 100 Mbit/s",
        caps(sends_bits_per_second=M100),
        caps(sends_bits_per_second=M100),
        _ALL_LINK,
        set(),
        samba_options=_SIGNED,
    ),
    planted(
        "encrypted-server-read",
        "everything encrypted, link 300 Mbit/s; the server's disk reads 15 MB/s",
        caps(sends_bits_per_second=M300),
        caps(sends_bits_per_second=M300, disk_read_bytes_per_second=15 * MB),
        {"pull.uncached": _READ},
        {LINK},
        samba_options=_ENCRYPTED,
        lift={"server": {"disk_read_bytes_per_second": None}},
    ),
    planted(
        "busy-core-link-100",
        "a neighbour takes 20 % of the server's core, link 100 Mbit/s",
        caps(sends_bits_per_second=M100),
        caps(sends_bits_per_second=M100, hog_share_ratio=0.2),
        _ALL_LINK,
        set(),
    ),
    planted(
        "busy-core-server-write",
        "a neighbour takes 20 % of the client's core, link 300 Mbit/s; server disk writes 15 MB/s",
        caps(sends_bits_per_second=M300, hog_share_ratio=0.2),
        caps(sends_bits_per_second=M300, disk_write_bytes_per_second=15 * MB),
        {copy: _WRITE for copy in PUSHES},
        {LINK},
    ),
    planted(
        "quota-loose-link-100",
        "server CPU quota 50 %, link 100 Mbit/s",
        caps(sends_bits_per_second=M100),
        caps(sends_bits_per_second=M100, quota_ratio=0.5),
        _ALL_LINK,
        set(),
    ),
    planted(
        "loss-server-write",
        "4 ms RTT, 0.1 % of the packets lost, reno; the server's disk writes 3 MB/s",
        wan("reno"),
        wan("reno", more={"disk_write_bytes_per_second": 3 * MB}),
        {copy: _WRITE for copy in PUSHES},
        {LOSS, LINK},
        round_trip_seconds=0.004,
        loss_ratio=0.001,
        **ORDINARY,
    ),
    planted(
        "small-buffers-near",
        "buffers that end at 128 KiB on a link of 100 Mbit/s without a delay",
        caps(sends_bits_per_second=M100, sysctls=(("net.ipv4.tcp_rmem", "4096 65536 131072"),)),
        caps(sends_bits_per_second=M100, sysctls=(("net.ipv4.tcp_wmem", "4096 16384 131072"),)),
        _ALL_LINK,
        set(),
    ),
    planted(
        "credits-near",
        "the server grants 16 credits on a link of 100 Mbit/s without a delay",
        caps(sends_bits_per_second=M100),
        caps(sends_bits_per_second=M100),
        _ALL_LINK,
        set(),
        samba_options=("server min protocol = SMB2", "smb2 max credits = 16"),
    ),
    planted(
        "foreign-server-read",
        "200 Mbit/s of others' traffic on a link of 1 Gbit/s; the server's disk reads 20 MB/s",
        caps(),
        caps(foreign_bits_per_second=200 * MB, disk_read_bytes_per_second=20 * MB),
        {"pull.uncached": _READ},
        {LINK, ("network", "path", "contention")}
        | words("cpu", "server", "one-core", "all-cores")
        | words("cpu", "client", "one-core", "all-cores"),
    ),
)
