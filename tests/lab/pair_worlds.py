"""Two caps at once: the lower one is right, and the other is what a copy runs into without it."""

from __future__ import annotations

from truth import COPIES, GIGABIT, LINK, MB, PULLS, PUSHES, LabWorld, caps, planted, words
from wan import ORDINARY, usual, wan

M100, M200, M300 = 100 * MB, 200 * MB, 300 * MB
_READ, _WRITE = "disk_read_bytes_per_second", "disk_write_bytes_per_second"
_BITS = "sends_bits_per_second"
_NO_LINK = {"client": {_BITS: 1000 * MB}, "server": {_BITS: 1000 * MB}}


def _tie(name: str, what: str, client: int, server: int) -> LabWorld:
    """The server's disk reads about what the client's writes."""
    return planted(
        name,
        what,
        caps(disk_write_bytes_per_second=client),
        caps(disk_read_bytes_per_second=server),
        {
            "pull.uncached": words("disk", "server", "read") | words("disk", "client", "write"),
            "pull.cached": words("disk", "client", "write"),
        },
        GIGABIT,
        tie=True,
    )


PAIR_WORLDS = (
    planted(
        "link-200-server-read",
        "link 200 Mbit/s; behind it the server's disk reads 40 MB/s",
        caps(sends_bits_per_second=M200),
        caps(sends_bits_per_second=M200, disk_read_bytes_per_second=40 * MB),
        {copy: {LINK} for copy in COPIES},
        set(),
        lift=_NO_LINK,
    ),
    planted(
        "link-100-disks",
        "link 100 Mbit/s; behind it both disks read and write 30 MB/s",
        caps(sends_bits_per_second=M100, **{_READ: 30 * MB, _WRITE: 30 * MB}),
        caps(sends_bits_per_second=M100, **{_READ: 30 * MB, _WRITE: 30 * MB}),
        {copy: {LINK} for copy in COPIES},
        set(),
        lift=_NO_LINK,
    ),
    planted(
        "server-read-link-300",
        "the server's disk reads 15 MB/s; behind it a link of 300 Mbit/s",
        caps(sends_bits_per_second=M300),
        caps(sends_bits_per_second=M300, disk_read_bytes_per_second=15 * MB),
        {"pull.uncached": words("disk", "server", "read")},
        {LINK},
        lift={"server": {_READ: None}},
    ),
    planted(
        "server-write-link-200",
        "the server's disk writes 12 MB/s; behind it a link of 200 Mbit/s",
        caps(sends_bits_per_second=M200),
        caps(sends_bits_per_second=M200, disk_write_bytes_per_second=12 * MB),
        {copy: words("disk", "server", "write") for copy in PUSHES},
        {LINK},
        lift={"server": {_WRITE: None}},
    ),
    planted(
        "client-write-link-300",
        "the client's disk writes 15 MB/s; behind it a link of 300 Mbit/s",
        caps(sends_bits_per_second=M300, disk_write_bytes_per_second=15 * MB),
        caps(sends_bits_per_second=M300),
        {copy: words("disk", "client", "write") for copy in PULLS},
        {LINK},
        lift={"client": {_WRITE: None}},
    ),
    planted(
        "client-read-link-200",
        "the client's disk reads 10 MB/s; behind it a link of 200 Mbit/s",
        caps(sends_bits_per_second=M200, disk_read_bytes_per_second=10 * MB),
        caps(sends_bits_per_second=M200),
        {"push.uncached": words("disk", "client", "read")},
        {LINK},
        lift={"client": {_READ: None}},
    ),
    planted(
        "pull-two-disks",
        "the server's disk reads 20 MB/s, the client's writes 50",
        caps(disk_write_bytes_per_second=50 * MB),
        caps(disk_read_bytes_per_second=20 * MB),
        {
            "pull.uncached": words("disk", "server", "read"),
            "pull.cached": words("disk", "client", "write"),
        },
        GIGABIT,
        lift={"server": {_READ: None}},
        frees=("pull.uncached",),
    ),
    planted(
        "push-two-disks",
        "the client's disk reads 15 MB/s, the server's writes 40",
        caps(disk_read_bytes_per_second=15 * MB),
        caps(disk_write_bytes_per_second=40 * MB),
        {
            "push.uncached": words("disk", "client", "read"),
            "push.cached": words("disk", "server", "write"),
        },
        GIGABIT,
        lift={"client": {_READ: None}},
        frees=("push.uncached",),
    ),
    planted(
        "window-server-read",
        "16 ms RTT, the client's receive buffer ends at 256 KiB; the server's disk reads 2.5 MB/s",
        wan(rmem="4096 131072 262144"),
        wan(more={_READ: 2_500_000}),
        {
            "pull.uncached": words("disk", "server", "read"),
            "pull.cached": words("tcp", "client", "receive-window"),
        },
        {LINK},
        round_trip_seconds=0.016,
        lift={"server": {_READ: None}},
        frees=("pull.uncached",),
        **ORDINARY,
    ),
    planted(
        "window-server-write",
        "20 ms RTT, the server's receive buffer ends at 128 KiB; behind it its disk writes 8 MB/s",
        wan(),
        wan(rmem="4096 65536 131072", more={_WRITE: 8 * MB}),
        {copy: words("tcp", "server", "receive-window") for copy in PUSHES},
        {LINK},
        round_trip_seconds=0.02,
        lift=usual("server"),
        **ORDINARY,
    ),
    planted(
        "quota-client-write",
        "the client's disk writes 4 MB/s; server CPU quota 12 %",
        caps(disk_write_bytes_per_second=4 * MB),
        caps(quota_ratio=0.12),
        {
            **{copy: words("disk", "client", "write") for copy in PULLS},
            **{copy: words("cpu", "server", "quota") for copy in PUSHES},
        },
        set(),
    ),
    _tie("tie-disks", "the server's disk reads 30 MB/s, the client's writes 31", 31 * MB, 30 * MB),
    planted(
        "tie-link-read",
        "link 200 Mbit/s (23.9 MB/s of payload), the server's disk reads 24 MB/s",
        caps(sends_bits_per_second=M200),
        caps(sends_bits_per_second=M200, disk_read_bytes_per_second=24 * MB),
        {
            "pull.uncached": {LINK} | words("disk", "server", "read"),
            "pull.cached": {LINK},
            **{copy: {LINK} for copy in PUSHES},
        },
        set(),
        tie=True,
    ),
)
