"""The checks that both hosts have alike, and those of one of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bottleneck.doctor.packages import install
from bottleneck.doctor.records import CLIENT, COSTS, MISSING, OK, SERVER, Check, Looked
from bottleneck.reports.units import size_text
from probes.host.readiness import Place, Readiness

OLDEST_FIO = (3, 0)
LEAST_BYTES = 4 << 20
SMALL_BYTES = 256 << 20
CLOCK_SECONDS = 60.0
KERBEROS_SECONDS = 300.0
BETWEEN_HOSTS = ("tcp", "sweep", "latency", "matrix", "udp", "path")
STARTED_THERE = "copies that the server starts"
SSH_WORDS = (
    (
        "IDENTIFICATION HAS CHANGED|HOST IDENTIFICATION",
        "ask its admin whether the key was changed; then ssh-keygen -R {known}",
    ),
    ("Host key verification failed", "once by hand, to see and take its key: ssh {place}"),
    ("Permission denied", "let it take this user's key: ssh-copy-id {place} (or ssh-add)"),
    ("Could not resolve", "check the host's name, or give an address"),
    ("refused", "start sshd there, or name its port: ssh://host:port"),
    ("timed out|No route", "check that the host is up and that its firewall lets port 22 through"),
    (
        "python3: (command )?not found|python3: No such file",
        "python3, 3.9 or newer, is missing there: install it",
    ),
    (
        "SyntaxError|TypeError|AttributeError|ImportError",
        "its python3 is older than 3.9: install a newer one there",
    ),
)
"""What ssh or the other end says, and what to do about it."""


def of_client(seen: Looked) -> Iterator[Check]:
    """Of the host that this runs on."""
    ready = seen.client
    yield from _common(CLIENT, ready)
    yield from _place(CLIENT, ready.place, ("disk", "smb-copy"), "--folder DIR")
    if seen.mount is not None:
        yield from _place(CLIENT, seen.mount, ("native-copy",), "another TARGET", "mount")
    if seen.wanted.agent.startswith("ssh://") or seen.wanted.agent == "none":
        yield from _ssh(ready)
    if seen.wanted.agent != "none" and "smbd" not in ready.programs:
        yield Check(
            CLIENT,
            "smbd",
            COSTS,
            "no Samba here to open a share of our own for the server: impacket's slow one is "
            "taken, where that is installed",
            install("smbd", ready.families) + ", or --client-share //CLIENT/SHARE",
            (STARTED_THERE,),
        )


def of_server(seen: Looked) -> Iterator[Check]:
    """Of the other host, or why it was not reached."""
    wanted = seen.wanted
    if wanted.agent == "none":
        if wanted.target is not None and wanted.target.host:
            yield Check(
                SERVER,
                "agent",
                MISSING,
                "no agent: the network's stages and all that lies within the server are left out",
                f"--agent ssh://{wanted.target.host}",
                (*BETWEEN_HOSTS, "disk of the server", STARTED_THERE),
            )
        return
    ready, trouble = seen.server, seen.agent_trouble
    if trouble is not None:
        yield Check(
            SERVER,
            "agent",
            MISSING,
            trouble.text,
            _agent_remedy(wanted.agent, trouble.text),
            (*BETWEEN_HOSTS, "disk of the server", STARTED_THERE),
            kind=trouble.kind,
        )
    if ready is None:
        return
    about = f"{ready.name}, {ready.distribution or ready.system}, Python {ready.python}"
    yield Check(SERVER, "agent", OK, f"answers: {about}")
    yield from _common(SERVER, ready)
    if ready.place is not None:
        yield from _place(SERVER, ready.place, ("disk of the server",), "--server-folder DIR")
    elif wanted.target is not None and wanted.target.share:
        yield Check(
            SERVER,
            "folder",
            COSTS,
            "smb.conf does not tell the share's folder: the run looks for its own file there",
            "--server-folder DIR, if the run does not find it",
            ("disk of the server",),
        )
    yield from _ports(seen)
    yield from _copies_there(seen, ready)
    yield _clock(seen.ahead_seconds)


def _common(where: str, ready: Readiness) -> Iterator[Check]:
    yield _fio(where, ready)
    yield _root(where, ready)
    if "smartctl" in ready.programs:
        yield Check(where, "smartctl", OK, f"smartctl {ready.programs['smartctl']}")
    else:
        text = "no smartctl: a disk's health and the rate of its link stay unknown"
        yield Check(
            where, "smartctl", COSTS, text, install("smartctl", ready.families), _disk(where)
        )
    yield _cache(where, ready)
    if ready.sockets:
        text = f"{ready.sockets}: who limits the connection of an SMB copy stays unknown"
        yield Check(where, "sockets", COSTS, text, "Linux with sock_diag", ("smb-copy",))
    else:
        yield Check(where, "sockets", OK, "the kernel tells of every connection (sock_diag)")
    if not ready.proc and ready.psutil is None:
        text = "neither /proc nor psutil: CPU and memory of this host stay unknown"
        yield Check(where, "usage", COSTS, text, "python3 -m pip install psutil", ("all",))
    else:
        by = f"psutil {ready.psutil}" if ready.psutil else "/proc"
        yield Check(where, "usage", OK, f"CPU and memory are read by {by}")
    if ready.quotas:
        yield Check(where, "cgroup", OK, "a CPU quota would be seen")
    else:
        text = "no cgroup file system is to be seen: nor would a CPU quota be"
        yield Check(where, "cgroup", COSTS, text, "mount /sys/fs/cgroup, in a container read-only")
    if ready.interface is not None and ready.interface != "lo":
        yield _driver(where, ready)


def _disk(where: str) -> tuple[str, ...]:
    return ("disk",) if where == CLIENT else ("disk of the server",)


def _fio(where: str, ready: Readiness) -> Check:
    version = ready.programs.get("fio")
    remedy = install("fio", ready.families)
    if version is None:
        text = "fio is not installed: the disk is not measured"
        return Check(where, "fio", MISSING, text, remedy, _disk(where))
    numbers = tuple(int(word) for word in re.findall(r"\d{1,4}", version)[:2])
    if version == "?":
        text = "fio is there and does not start: the disk is not measured"
        return Check(where, "fio", MISSING, text, remedy, _disk(where))
    if numbers < OLDEST_FIO:
        text = f"fio {version} is too old; 3.0 or newer is needed"
        return Check(where, "fio", MISSING, text, remedy, _disk(where))
    if "libaio" not in ready.engines:
        text = f"fio {version} has no libaio: direct reads keep no depth of requests"
        remedy = "install a fio that was built with libaio"
        return Check(where, "fio", MISSING, text, remedy, _disk(where))
    return Check(where, "fio", OK, f"fio {version} with {' and '.join(ready.engines)}")


def _root(where: str, ready: Readiness) -> Check:
    if ready.privileged:
        return Check(where, "rights", OK, "root: disks and other users' programs can be looked at")
    as_root = "as root: sudo bottleneck ..."
    if where == SERVER:
        as_root = "--agent ssh://root@HOST, or exec: with a command that ends in sudo -n"
    return Check(
        where,
        "rights",
        COSTS,
        "not root: --device, a disk's SMART, and other users' sockets and files stay closed",
        as_root,
        ("disk zones of --device", "watch"),
    )


def _cache(where: str, ready: Readiness) -> Check:
    if ready.cache == "cachestat":
        return Check(where, "page cache", OK, "cached and uncached are proven by cachestat(2)")
    if ready.cache:
        text = "this kernel has no cachestat(2) (Linux 6.5): mincore(2) proves what we own"
        return Check(where, "page cache", OK, text)
    text = "what the page cache holds cannot be proven here: `uncached` stays unproven"
    return Check(where, "page cache", COSTS, text, "run it on Linux", ("*.uncached",))


def _driver(where: str, ready: Readiness) -> Check:
    name = ready.interface
    if ready.driver:
        return Check(where, "interface", OK, f"{name}: its driver {ready.driver} answers ethtool")
    return Check(
        where,
        "interface",
        COSTS,
        f"{name}: no driver answers ethtool: its link rate, duplex and flow control stay unknown",
        "run it on the host itself, not in a container or virtual machine",
        ("link-rate and duplex",),
    )


def _place(
    where: str, place: Place | None, stages: tuple[str, ...], remedy: str, name: str = "folder"
) -> Iterator[Check]:
    if place is None:
        return
    if place.trouble:
        yield Check(where, name, MISSING, f"{place.path}: {place.trouble}", remedy, stages)
        return
    usable = place.usable_bytes
    if usable is not None and usable < LEAST_BYTES:
        text = f"{place.path} has no room: a tenth of it, and at least 2 GiB, stay free"
        yield Check(where, name, MISSING, text, f"make room, or {remedy}", stages)
        return
    on = f" ({place.filesystem})" if place.filesystem else ""
    room = "room is not told" if usable is None else f"a run may write {size_text(usable)}"
    if usable is not None and usable < SMALL_BYTES:
        text = f"{place.path}{on}: {room} only: copies stay small, and their rates doubtful"
        yield Check(where, name, COSTS, text, f"make room, or {remedy}", stages)
    elif not place.nameless and name == "folder":
        text = f"{place.path}{on} knows no nameless files: a run that is killed may leave one"
        yield Check(where, name, COSTS, text, "bottleneck cleanup, should that happen")
    else:
        yield Check(where, name, OK, f"{place.path}{on}: {room}")


def _ssh(ready: Readiness) -> Iterator[Check]:
    if "ssh" in ready.programs:
        yield Check(CLIENT, "ssh", OK, f"ssh {ready.programs['ssh']}")
        return
    text = "no ssh: the agent reaches a server by exec: or tcp:// alone"
    yield Check(CLIENT, "ssh", COSTS, text, install("ssh", ready.families), BETWEEN_HOSTS)


def _copies_there(seen: Looked, ready: Readiness) -> Iterator[Check]:
    name, stages = "smbclient", (STARTED_THERE,)
    if not seen.confidential:
        text = "the agent listens on tcp://, and no login is sent over that"
        yield Check(SERVER, name, MISSING, text, "--agent ssh://HOST or exec:PREFIX", stages)
    elif "smbclient" in ready.programs:
        yield Check(SERVER, name, OK, f"smbclient {ready.programs['smbclient']}")
    elif seen.installed:
        yield Check(SERVER, name, OK, "copy-bottleneck is installed there: it makes the copies")
    else:
        text = "the server has nothing to start copies with"
        remedy = f"there: {install('smbclient', ready.families)}, or install copy-bottleneck"
        yield Check(SERVER, name, MISSING, text, remedy, stages)


def _ports(seen: Looked) -> Iterator[Check]:
    """Whether each host reaches what the other one opens for a run."""
    ways = (
        (SERVER, seen.there, "from here", "the server's", BETWEEN_HOSTS),
        (CLIENT, seen.here, "from the server", "this host's", (STARTED_THERE,)),
    )
    for where, why, whence, whose, stages in ways:
        if why == "":
            text = f"a port that its agent opens is reached {whence}"
            yield Check(where, "ports", OK, text)
        elif why is not None:
            yield Check(
                where,
                "ports",
                MISSING,
                f"a port that {whose} agent opens is not reached {whence} ({why})",
                f"let the other host through {whose} firewall, to TCP ports of "
                "net.ipv4.ip_local_port_range, for the time of a run",
                stages,
            )


def _clock(ahead_seconds: float) -> Check:
    off = abs(ahead_seconds)
    if off < CLOCK_SECONDS:
        return Check(SERVER, "clock", OK, "both clocks agree within a minute")
    way = "ahead of" if ahead_seconds > 0 else "behind"
    more = "; Kerberos refuses that" if off > KERBEROS_SECONDS else ""
    text = f"its clock is {off:.0f} s {way} this host's{more}"
    return Check(SERVER, "clock", COSTS, text, "set both by NTP")


def _agent_remedy(agent: str, text: str) -> str:
    if not agent.startswith("ssh://"):
        return "try the command by hand" if agent.startswith("exec:") else ""
    place, colon, port = agent.removeprefix("ssh://").rstrip("/").rpartition(":")
    if not colon or not port.isdigit():
        place, port = agent.removeprefix("ssh://").rstrip("/"), ""
    host = place.rpartition("@")[2].strip("[]")
    place = place.replace("[", "").replace("]", "")
    known = f"'[{host}]:{port}'" if port else host
    place = f"-p {port} {place}" if port else place
    for words, remedy in SSH_WORDS:
        if re.search(words, text, re.IGNORECASE):
            return remedy.format(known=known, place=place)
    return f"try by hand: ssh -o BatchMode=yes {place} python3 --version"
