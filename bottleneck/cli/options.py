"""The options that several commands share, with the same names everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bottleneck.cli import completion
from bottleneck.reports.units import STYLES
from probes.records import DIALECTS

User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Who logs in.")]
Domain = Annotated[str | None, typer.Option("--domain", metavar="D", help="Domain of the user.")]
AuthFile = Annotated[
    Path | None,
    typer.Option(
        "--auth-file",
        metavar="F",
        help="username =, password =, domain = as smbclient's; mode 0600.",
    ),
]
AllowGuest = Annotated[
    bool, typer.Option("--allow-guest", help="A guest session will do where nobody is named.")
]
Agent = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="SPEC",
        help="The server's end: ssh://[user@]host[:port], exec:PREFIX, tcp://host:port, or none.",
    ),
]
Folder = Annotated[
    Path, typer.Option("--folder", metavar="DIR", help="Where this host reads and writes copies.")
]
ServerFolder = Annotated[
    str | None,
    typer.Option("--server-folder", metavar="DIR", help="The share's folder as the server's path."),
]
ClientShare = Annotated[
    str | None,
    typer.Option(
        "--client-share",
        metavar="//CLIENT/SHARE",
        help="This host's own share, for copies that the server starts; default: a private one.",
    ),
]
TcpPeer = Annotated[
    str | None,
    typer.Option(
        "--tcp-peer",
        metavar="PEER",
        help="iperf3://host[:port] or ttcp://host[:port], for TCP where no agent can run.",
    ),
]
File = Annotated[
    str | None,
    typer.Option(
        "--file",
        metavar="F",
        help="Also look at this file, and pull it: below TARGET, or as ./F or /F on this host.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEV",
        help="Read this block device zone by zone, and nothing else; server:DEV at the agent.",
    ),
]
Zones = Annotated[
    int, typer.Option("--zones", metavar="N", help="Into so many zones a disk is divided.")
]
Dialects = Annotated[
    str | None,
    typer.Option(
        "--dialects",
        metavar="LIST",
        help="Of smb1,2.0.2,2.1,3.0,3.0.2,3.1.1; default: the best offered, and smb1 where on.",
        autocompletion=completion.list_of(DIALECTS),
    ),
]
Size = Annotated[
    str | None,
    typer.Option("--size", metavar="BYTES", help="File size, as 256MiB or 1GB; default: fitting."),
]
Budget = Annotated[
    float | None,
    typer.Option("--budget", metavar="SECONDS", help="Time of the whole run; default 60."),
]
Quick = Annotated[bool, typer.Option("--quick", help="A budget of 20 s.")]
Thorough = Annotated[bool, typer.Option("--thorough", help="A budget of 300 s.")]
TargetRate = Annotated[
    str | None,
    typer.Option(
        "--target-rate",
        metavar="RATE",
        help="Also say what it would take to reach RATE, as 100MB/s or 1Gbit/s.",
    ),
]
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="F", help="Also write the report there; - is stdout alone."),
]
Html = Annotated[
    str | None,
    typer.Option("--html", metavar="F", help="Also write the report as one page for a browser."),
]
Ticket = Annotated[
    str | None,
    typer.Option("--ticket", metavar="F", help="Also write one page of Markdown for a ticket."),
]
Junit = Annotated[
    str | None,
    typer.Option("--junit", metavar="F", help="Also write the copies as JUnit XML."),
]
Units = Annotated[
    str,
    typer.Option(
        "--units",
        metavar="U",
        help="Rates in si (MB/s), iec (MiB/s) or bits (Mbit/s).",
        autocompletion=completion.one_of(*STYLES),
    ),
]
Redact = Annotated[
    bool,
    typer.Option(
        "--redact",
        help="Host names, users, addresses and paths as stable tokens in everything written.",
    ),
]
History = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="F",
        help="Keep the run's figures there, and show how they went: a file, default or none.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before writing test files.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, the verdict alone.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="The evidence of every copy.")]
