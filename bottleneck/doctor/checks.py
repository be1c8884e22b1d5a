"""What was seen, as checks: what is well, what costs something, what is missing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bottleneck.doctor.look import CLIENT, COSTS, MISSING, OK, SERVER, SHARE, Check, Looked
from bottleneck.units import size_text
from probes import STAGES
from probes.host.facts import Place, Readiness
from probes.stage import described

OLDEST_FIO = (3, 0)
LEAST_BYTES = 4 << 20
SMALL_BYTES = 256 << 20
CLOCK_SECONDS = 60.0
KERBEROS_SECONDS = 300.0
BETWEEN_HOSTS = tuple(each.name for each in described(STAGES) if each.by_agent)
STARTED_THERE = "copies that the server starts"
WITHOUT_AGENT = (*BETWEEN_HOSTS, "disk of the server", STARTED_THERE)
OVER_SMB = tuple(each.name for each in described(STAGES) if "share" in each.needs)
SMB1_EXTRA = "uv tool install 'copy-bottleneck[smb1]'"
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
_MANAGERS = {
    **dict.fromkeys(("debian", "ubuntu"), "apt"),
    **dict.fromkeys(("fedora", "rhel", "centos"), "dnf"),
    **dict.fromkeys(("suse", "opensuse", "sles"), "zypper"),
    **dict.fromkeys(("opensuse-leap", "opensuse-tumbleweed"), "zypper"),
    **{"alpine": "apk", "arch": "pacman"},
}
"""By ID and ID_LIKE of os-release(5)."""
_COMMANDS = {
    "apt": "apt install",
    "dnf": "dnf install",
    "zypper": "zypper install",
    "apk": "apk add",
    "pacman": "pacman -S",
}
_NAMES = {
    ("smbclient", "dnf"): "samba-client",
    ("smbclient", "zypper"): "samba-client",
    ("smbclient", "apk"): "samba-client",
    ("smbd", ""): "samba",
    ("ssh", ""): "openssh-client",
    ("ssh", "dnf"): "openssh-clients",
    ("ssh", "zypper"): "openssh-clients",
    ("ssh", "pacman"): "openssh",
    ("smartctl", ""): "smartmontools",
    ("python3", "pacman"): "python",
}


def install(program: str, families: Sequence[str]) -> str:
    """As `apt install fio`; without a known manager, `install fio`."""
    manager = next((_MANAGERS[each] for each in families if each in _MANAGERS), "")
    name = _NAMES.get((program, manager)) or _NAMES.get((program, "")) or program
    return f"{_COMMANDS.get(manager, 'install')} {name}"


def judged(seen: Looked) -> tuple[Check, ...]:
    """Every check, this host's first."""
    return (*_program(seen), *_client(seen), *_share(seen), *_server(seen))


def _ok(where: str, name: str, sentence: str) -> Check:
    return Check(where, name, OK, sentence)


def _costs(where: str, name: str, sentence: str, remedy: str = "", *stages: str) -> Check:
    return Check(where, name, COSTS, sentence, remedy, stages)


def _missing(
    where: str, name: str, sentence: str, remedy: str = "", *stages: str, kind: str = ""
) -> Check:
    return Check(where, name, MISSING, sentence, remedy, stages, kind)


# -- this host -----------------------------------------------------------------------------------


def _program(seen: Looked) -> Iterator[Check]:
    program, packages = seen.program, seen.program.packages
    library = packages.get("smbprotocol", "?")
    text = f"copy-bottleneck {program.version} on Python {program.python}, smbprotocol {library}"
    yield _ok(CLIENT, "program", f"{text}; no numeric Bottleneck beside it")
    offers = seen.offered is not None and "smb1" in seen.offered["dialects"]
    if "impacket" in packages:
        yield _ok(CLIENT, "impacket", f"impacket {packages['impacket']}: SMB1 is measured")
    elif not offers:
        text = "impacket is not installed: SMB1 is left out, which few servers still offer"
        yield _costs(CLIENT, "impacket", text, SMB1_EXTRA, "smb-copy in smb1")
    if program.encoding.lower().replace("-", "") == "utf8":
        yield _ok(CLIENT, "encoding", "text is UTF-8")
    else:
        text = f"text is {program.encoding}: bars and foreign names are drawn in ASCII"
        yield _costs(CLIENT, "encoding", text, "export LC_ALL=C.UTF-8")
    shows = "a terminal" if program.terminal else "no terminal: progress is a plain line a stage"
    yield _ok(CLIENT, "terminal", shows)


def _client(seen: Looked) -> Iterator[Check]:
    ready, agent = seen.client, seen.wanted.agent
    yield from _common(CLIENT, ready)
    yield from _place(CLIENT, ready.place, "--folder DIR", "disk", "smb-copy")
    if seen.mount is not None:
        yield from _place(CLIENT, seen.mount, "another TARGET", "native-copy", name="mount")
    if agent.startswith("ssh://") or agent == "none":
        if "ssh" in ready.programs:
            yield _ok(CLIENT, "ssh", f"ssh {ready.programs['ssh']}")
        else:
            text = "no ssh: the agent reaches a server by exec: or tcp:// alone"
            yield _costs(CLIENT, "ssh", text, install("ssh", ready.families), *BETWEEN_HOSTS)
    if agent != "none" and "smbd" not in ready.programs:
        text = (
            "no Samba here to open a share of our own for the server: impacket's slow one is "
            "taken, where that is installed"
        )
        remedy = install("smbd", ready.families) + ", or --client-share //CLIENT/SHARE"
        yield _costs(CLIENT, "smbd", text, remedy, STARTED_THERE)


# -- the share -----------------------------------------------------------------------------------


def _share(seen: Looked) -> Iterator[Check]:
    """Whether it is reached, what it speaks, and whether it takes the login."""
    target, told, trouble = seen.wanted.target, seen.offered, seen.share_trouble
    if target is None:
        return
    if trouble is not None:
        remedy = "check name, address and firewall; the file server's port is 445"
        yield _missing(SHARE, "server", trouble.text, remedy, *OVER_SMB, kind=trouble.kind)
        return
    if told is None:
        return
    where = f"{target.host} port {target.port}"
    milliseconds = 1000 * float(told["connect_seconds"])
    yield _ok(SHARE, "server", f"{where} answers in {milliseconds:.1f} ms")
    dialects = [str(each) for each in told["dialects"]]
    if not dialects:
        text = f"{where} speaks no dialect of SMB: is it a file server?"
        yield _missing(SHARE, "dialects", text, "name its port", *OVER_SMB, kind="unreachable")
        return
    yield _ok(SHARE, "dialects", f"offers {', '.join(dialects)}; {told.get('signing', '')}")
    if "smb1" in dialects and "impacket" not in seen.program.packages:
        text = "the server offers SMB1, and impacket is not installed: SMB1 is left out"
        yield _missing(CLIENT, "impacket", text, SMB1_EXTRA, "smb-copy in smb1")
    yield _login(seen)


def _login(seen: Looked) -> Check:
    trouble, facts = seen.login_trouble, seen.session
    if trouble is not None:
        return _missing(SHARE, "login", trouble.text, "", *OVER_SMB, kind=trouble.kind)
    if facts is None:
        return _ok(SHARE, "login", "not tried: give --user or --allow-guest for one attempt")
    kept = facts.get("encryption") or facts.get("signing")
    how = f"protected by {kept}" if kept else "neither signed nor encrypted"
    text = f"logged in by SMB {facts.get('dialect')}, {how}; whether it may be written to, "
    return _ok(SHARE, "login", text + "a run finds out")


# -- the server ----------------------------------------------------------------------------------


def _server(seen: Looked) -> Iterator[Check]:
    """Of the other host, or why it was not reached."""
    wanted, ready, trouble = seen.wanted, seen.server, seen.agent_trouble
    if wanted.agent == "none":
        if wanted.target is not None and wanted.target.host:
            text = "no agent: the network's stages and all that lies within the server are left out"
            remedy = f"--agent ssh://{wanted.target.host}"
            yield _missing(SERVER, "agent", text, remedy, *WITHOUT_AGENT)
        return
    if trouble is not None:
        remedy = _agent_remedy(wanted.agent, trouble.text)
        yield _missing(SERVER, "agent", trouble.text, remedy, *WITHOUT_AGENT, kind=trouble.kind)
    if ready is None:
        return
    about = f"{ready.name}, {ready.distribution or ready.system}, Python {ready.python}"
    yield _ok(SERVER, "agent", f"answers: {about}")
    yield from _common(SERVER, ready)
    if ready.place is not None:
        yield from _place(SERVER, ready.place, "--server-folder DIR", "disk of the server")
    elif wanted.target is not None and wanted.target.share:
        text = "smb.conf does not tell the share's folder: the run looks for its own file there"
        remedy = "--server-folder DIR, if the run does not find it"
        yield _costs(SERVER, "folder", text, remedy, "disk of the server")
    yield from _ports(seen)
    yield _copies_there(seen, ready)
    yield _clock(seen.ahead_seconds)


def _copies_there(seen: Looked, ready: Readiness) -> Check:
    if "smbclient" in ready.programs:
        return _ok(SERVER, "smbclient", f"smbclient {ready.programs['smbclient']}")
    if seen.installed:
        return _ok(SERVER, "smbclient", "copy-bottleneck is installed there: it makes the copies")
    text = "the server has nothing to start copies with"
    remedy = f"there: {install('smbclient', ready.families)}, or install copy-bottleneck"
    return _missing(SERVER, "smbclient", text, remedy, STARTED_THERE)


def _ports(seen: Looked) -> Iterator[Check]:
    """Whether each host reaches what the other one opens for a run."""
    ways = (
        (SERVER, seen.there, "from here", "the server's", BETWEEN_HOSTS),
        (CLIENT, seen.here, "from the server", "this host's", (STARTED_THERE,)),
    )
    for where, why, whence, whose, stages in ways:
        if why == "":
            yield _ok(where, "ports", f"a port that its agent opens is reached {whence}")
        elif why is not None:
            text = f"a port that {whose} agent opens is not reached {whence} ({why})"
            remedy = (
                f"let the other host through {whose} firewall, to TCP ports of "
                "net.ipv4.ip_local_port_range, for the time of a run"
            )
            yield _missing(where, "ports", text, remedy, *stages)


def _clock(ahead_seconds: float) -> Check:
    off = abs(ahead_seconds)
    if off < CLOCK_SECONDS:
        return _ok(SERVER, "clock", "both clocks agree within a minute")
    way = "ahead of" if ahead_seconds > 0 else "behind"
    more = "; Kerberos refuses that" if off > KERBEROS_SECONDS else ""
    text = f"its clock is {off:.0f} s {way} this host's{more}"
    return _costs(SERVER, "clock", text, "set both by NTP")


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


# -- each host -----------------------------------------------------------------------------------


def _common(where: str, ready: Readiness) -> Iterator[Check]:
    yield _fio(where, ready)
    yield _root(where, ready)
    if "smartctl" in ready.programs:
        yield _ok(where, "smartctl", f"smartctl {ready.programs['smartctl']}")
    else:
        text = "no smartctl: a disk's health and the rate of its link stay unknown"
        yield _costs(where, "smartctl", text, install("smartctl", ready.families), _disk(where))
    yield _cache(where, ready)
    if ready.sockets:
        text = f"{ready.sockets}: who limits the connection of an SMB copy stays unknown"
        yield _costs(where, "sockets", text, "Linux with sock_diag", "smb-copy")
    else:
        yield _ok(where, "sockets", "the kernel tells of every connection (sock_diag)")
    if not ready.proc and ready.psutil is None:
        text = "neither /proc nor psutil: CPU and memory of this host stay unknown"
        yield _costs(where, "usage", text, "sudo python3 -m pip install psutil", "all")
    else:
        by = f"psutil {ready.psutil}" if ready.psutil else "/proc"
        yield _ok(where, "usage", f"CPU and memory are read by {by}")
    if ready.quotas:
        yield _ok(where, "cgroup", "a CPU quota would be seen")
    else:
        text = "no cgroup file system is to be seen: nor would a CPU quota be"
        yield _costs(where, "cgroup", text, "mount /sys/fs/cgroup, in a container read-only")
    if ready.interface is not None and ready.interface != "lo":
        yield _driver(where, ready.interface, ready.driver)


def _disk(where: str) -> str:
    return "disk" if where == CLIENT else "disk of the server"


def _fio(where: str, ready: Readiness) -> Check:
    version = ready.programs.get("fio")
    remedy = install("fio", ready.families)
    numbers = tuple(int(word) for word in re.findall(r"\d{1,4}", version or "")[:2])
    if version is None:
        text = "fio is not installed: the disk is not measured"
    elif version == "?":
        text = "fio is there and does not start: the disk is not measured"
    elif numbers < OLDEST_FIO:
        text = f"fio {version} is too old; 3.0 or newer is needed"
    elif "libaio" not in ready.engines:
        text = f"fio {version} has no libaio: direct reads keep no depth of requests"
        remedy = "install a fio that was built with libaio"
    else:
        return _ok(where, "fio", f"fio {version} with {' and '.join(ready.engines)}")
    return _missing(where, "fio", text, remedy, _disk(where))


def _root(where: str, ready: Readiness) -> Check:
    if ready.privileged:
        return _ok(where, "rights", "root: disks and other users' programs can be looked at")
    text = "not root: --device, a disk's SMART, and other users' sockets and files stay closed"
    as_root = "as root: sudo bottleneck ..."
    if where == SERVER:
        as_root = "--agent ssh://root@HOST, or exec: with a command that ends in sudo -n"
    return _costs(where, "rights", text, as_root, "disk zones of --device", "watch")


def _cache(where: str, ready: Readiness) -> Check:
    if ready.cache == "cachestat":
        return _ok(where, "page cache", "cached and uncached are proven by cachestat(2)")
    if ready.cache:
        text = "this kernel has no cachestat(2) (Linux 6.5): mincore(2) proves what we own"
        return _ok(where, "page cache", text)
    text = "what the page cache holds cannot be proven here: `uncached` stays unproven"
    return _costs(where, "page cache", text, "run it on Linux", "*.uncached")


def _driver(where: str, name: str, driver: str | None) -> Check:
    if driver:
        return _ok(where, "interface", f"{name}: its driver {driver} answers ethtool")
    text = f"{name}: no driver answers ethtool: its link rate, duplex and flow control stay unknown"
    remedy = "run it on the host itself, not in a container or virtual machine"
    return _costs(where, "interface", text, remedy, "link-rate and duplex")


def _place(
    where: str, place: Place | None, remedy: str, *stages: str, name: str = "folder"
) -> Iterator[Check]:
    if place is None:
        return
    if place.trouble:
        yield _missing(where, name, f"{place.path}: {place.trouble}", remedy, *stages)
        return
    usable = place.usable_bytes
    if usable is not None and usable < LEAST_BYTES:
        text = f"{place.path} has no room: a tenth of it, and at least 2 GiB, stay free"
        yield _missing(where, name, text, f"make room, or {remedy}", *stages)
        return
    on = f" ({place.filesystem})" if place.filesystem else ""
    room = "room is not told" if usable is None else f"a run may write {size_text(usable)}"
    if usable is not None and usable < SMALL_BYTES:
        text = f"{place.path}{on}: {room} only: copies stay small, and their rates doubtful"
        yield _costs(where, name, text, f"make room, or {remedy}", *stages)
    elif not place.nameless and name == "folder":
        text = f"{place.path}{on} knows no nameless files: a run that is killed may leave one"
        yield _costs(where, name, text, "bottleneck cleanup, should that happen")
    else:
        yield _ok(where, name, f"{place.path}{on}: {room}")
