"""Turns findings into checks: well, costly or missing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bottleneck.doctor.look import CLIENT, COSTS, MISSING, OK, SERVER, SHARE, Check, Findings
from bottleneck.login.target import spelling_hint
from bottleneck.text.units import rate_text, size_text
from probes import STAGES
from probes.core.stage import stages_of
from probes.files.free_space import LEAST_SHARE_BYTES, beyond_reserve_bytes, no_room
from probes.host.facts import Place, Readiness

OLDEST_FIO = (3, 0)
SMALL_BYTES = 256 << 20
CLOCK_SECONDS = 60.0
KERBEROS_SECONDS = 300.0
BETWEEN_HOSTS = tuple(each.name for each in stages_of(STAGES) if each.by_agent)
STARTED_THERE = "copies started by the server"
WITHOUT_AGENT = (*BETWEEN_HOSTS, "disk of the server", STARTED_THERE)
OVER_SMB = tuple(each.name for each in stages_of(STAGES) if "share" in each.needs)
SMB1_EXTRA = "uv tool install '.[smb1]' in a clone"
OTHER_SYSTEMS = frozenset(("win32", "darwin"))
"""Systems in Readiness.families whose interfaces ethtool does not read."""
_MANAGERS = {
    **dict.fromkeys(("debian", "ubuntu"), "apt"),
    **dict.fromkeys(("fedora", "rhel", "centos"), "dnf"),
    **dict.fromkeys(("suse", "opensuse", "sles"), "zypper"),
    **dict.fromkeys(("opensuse-leap", "opensuse-tumbleweed"), "zypper"),
    **{"alpine": "apk", "arch": "pacman", "win32": "winget", "darwin": "brew"},
}
"""Package managers by ID and ID_LIKE of os-release(5), or by the name of another system."""
_COMMANDS = {
    "apt": "apt install",
    "dnf": "dnf install",
    "zypper": "zypper install",
    "apk": "apk add",
    "pacman": "pacman -S",
    "winget": "winget install",
    "brew": "brew install",
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
    ("ssh", "brew"): "openssh",
    ("smartctl", ""): "smartmontools",
    ("python3", "pacman"): "python",
    ("ssh", "winget"): "Microsoft.OpenSSH.Preview",
    ("smartctl", "winget"): "smartmontools.smartmontools",
}


def install(program: str, families: Sequence[str]) -> str:
    """Returns `apt install fio`; without a known manager, `install fio`."""
    manager = next((_MANAGERS[each] for each in families if each in _MANAGERS), "")
    name = _NAMES.get((program, manager)) or _NAMES.get((program, "")) or program
    return f"{_COMMANDS.get(manager, 'install')} {name}"


def all_checks(findings: Findings) -> tuple[Check, ...]:
    """Returns all checks, this host's first."""
    return (*_program(findings), *_client(findings), *_share(findings), *_server(findings))


def _ok(where: str, name: str, sentence: str) -> Check:
    return Check(where, name, OK, sentence)


def _costs(where: str, name: str, sentence: str, remedy: str = "", *stages: str) -> Check:
    return Check(where, name, COSTS, sentence, remedy, stages)


def _missing_check(
    where: str, name: str, sentence: str, remedy: str = "", *stages: str, kind: str = ""
) -> Check:
    return Check(where, name, MISSING, sentence, remedy, stages, kind)


# -- this host -----------------------------------------------------------------------------------


def _program(findings: Findings) -> Iterator[Check]:
    program, packages = findings.program, findings.program.packages
    library = packages.get("smbprotocol", "?")
    text = f"copy-bottleneck {program.version} on Python {program.python}, smbprotocol {library}"
    yield _ok(CLIENT, "program", f"{text}; no conflicting package Bottleneck")
    offers = findings.offered is not None and "smb1" in findings.offered["dialects"]
    if "impacket" in packages:
        yield _ok(CLIENT, "impacket", f"impacket {packages['impacket']}: SMB1 can be measured")
    elif not offers:
        text = "impacket not found: SMB1 is skipped, which few servers still offer"
        yield _costs(CLIENT, "impacket", text, SMB1_EXTRA, "smb-copy in smb1")
    if program.encoding.lower().replace("-", "") == "utf8":
        yield _ok(CLIENT, "encoding", "output is UTF-8")
    else:
        text = f"output is {program.encoding}: bars and foreign names are shown in ASCII"
        windows = "win32" in findings.client.families
        remedy = (
            "setx PYTHONUTF8 1, then open another terminal" if windows else "export LC_ALL=C.UTF-8"
        )
        yield _costs(CLIENT, "encoding", text, remedy)
    shows = "terminal" if program.terminal else "no terminal: progress is one line per test"
    yield _ok(CLIENT, "terminal", shows)


def _client(findings: Findings) -> Iterator[Check]:
    ready, agent = findings.client, findings.request.agent
    yield from _common(CLIENT, ready)
    yield from _place(CLIENT, ready.place, "--folder DIR", "disk", "smb-copy")
    if ready.smb_client is not None:
        text = f"{ready.smb_client or 'no'} facts of the system's own SMB client (untested)"
        yield (_ok if ready.smb_client else _costs)(CLIENT, "SMB client", text)
    no_mount = findings.mount_trouble
    if no_mount is not None:
        yield _missing_check(CLIENT, "mount", no_mount.text, "", "native-copy", kind=no_mount.kind)
    elif findings.mount is not None:
        yield from _place(CLIENT, findings.mount, "another TARGET", "native-copy", name="mount")
    if agent.startswith("ssh://") or agent == "none":
        if "ssh" in ready.programs:
            yield _ok(CLIENT, "ssh", f"ssh {ready.programs['ssh']}")
        else:
            text = "ssh not found: --agent can only use exec:"
            yield _costs(CLIENT, "ssh", text, install("ssh", ready.families), *BETWEEN_HOSTS)
    if agent != "none" and "smbd" not in ready.programs:
        text = "Samba not found here: copies started by the server are skipped"
        remedy = "--client-share //CLIENT/SHARE"
        if "win32" not in ready.families:
            remedy = f"{install('smbd', ready.families)}, or {remedy}"
        yield _costs(CLIENT, "smbd", text, remedy, STARTED_THERE)


# -- the share -----------------------------------------------------------------------------------


def _share(findings: Findings) -> Iterator[Check]:
    """Yields checks of the share: reachable, dialects, login."""
    target, offer, trouble = findings.request.target, findings.offered, findings.share_trouble
    if target is None:
        return
    if trouble is not None:
        remedy = "check name, address and firewall; SMB uses port 445"
        yield _missing_check(SHARE, "server", trouble.text, remedy, *OVER_SMB, kind=trouble.kind)
        return
    if offer is None:
        return
    where = f"{target.host} port {target.port}"
    milliseconds = 1000 * float(offer["connect_seconds"])
    yield _ok(SHARE, "server", f"{where} replies in {milliseconds:.1f} ms")
    dialects = [str(each) for each in offer["dialects"]]
    if not dialects:
        text = (
            f"{where} answers in no SMB dialect: it may not be a file server, or a process limit "
        )
        text += "or a block list is in the way"
        yield _missing_check(SHARE, "dialects", text, "use its port", *OVER_SMB, kind="unreachable")
        return
    yield _ok(SHARE, "dialects", f"offers {', '.join(dialects)}; {offer.get('signing', '')}")
    if "smb1" in dialects and "impacket" not in findings.program.packages:
        text = "the server offers SMB1, but impacket was not found here: SMB1 is skipped"
        yield _missing_check(CLIENT, "impacket", text, SMB1_EXTRA, "smb-copy in smb1")
    yield from _login(findings)


def _login(findings: Findings) -> Iterator[Check]:
    trouble, facts = findings.login_trouble, findings.session
    if trouble is not None:
        target = findings.request.target
        hint = spelling_hint(target) if target is not None and trouble.kind == "share" else ""
        yield _missing_check(SHARE, "login", trouble.text, hint, *OVER_SMB, kind=trouble.kind)
        return
    if facts is None:
        yield _ok(SHARE, "login", "login not tested; use --user or --allow-guest")
        return
    protection = facts.get("encryption") or facts.get("signing")
    how = f"protected by {protection}" if protection else "not signed and not encrypted"
    yield _ok(SHARE, "login", f"logged in over SMB {facts.get('dialect')}, {how}")
    if facts.get("may_write") is False:
        text = "the share is read-only for this user, and the test files are written there"
        remedy = "use an account that may write, or --file FILE to measure pulls alone"
        yield _missing_check(SHARE, "write access", text, remedy, *OVER_SMB)
        return
    if bins := facts.get("bins"):
        text = f"the share may have a recycle bin ({', '.join(bins)}), which keeps deleted files"
        remedy = "exclude bottleneck-* from it: test files are empty there, and removed if you may"
        yield _costs(SHARE, "recycle bin", text, remedy, "small-files")
    free, total = (int(facts.get(name) or 0) for name in ("free_bytes", "total_bytes"))
    usable = beyond_reserve_bytes(free, total)
    lacking = no_room(free, total, LEAST_SHARE_BYTES) if usable < LEAST_SHARE_BYTES else ""
    if total and findings.request.target is not None:
        room = Place(findings.request.target.name, lacking, usable_bytes=usable)
        yield from _place(SHARE, room, "another TARGET", *OVER_SMB, name="room")


# -- the server ----------------------------------------------------------------------------------


def _server(findings: Findings) -> Iterator[Check]:
    """Yields checks of the server, or the reason why it was not reached."""
    request, ready, trouble = findings.request, findings.server, findings.agent_trouble
    if request.agent == "none":
        if request.target is not None and request.target.host:
            text = "no agent: network tests, and the disk and CPU of the server, are skipped"
            remedy = f"--agent ssh://{request.target.host}"
            yield _missing_check(SERVER, "agent", text, remedy, *WITHOUT_AGENT)
        return
    if trouble is not None:
        why, remedy = trouble.text, trouble.remedy
        yield _missing_check(SERVER, "agent", why, remedy, *WITHOUT_AGENT, kind=trouble.kind)
    if ready is None:
        return
    host = f"{ready.name}, {ready.distribution or ready.system}, Python {ready.python}"
    yield _ok(SERVER, "agent", f"agent on {host}")
    yield from _common(SERVER, ready)
    if ready.place is not None:
        yield from _place(
            SERVER,
            ready.place,
            "an account that may write (till then only reads, where it may read the share's files)",
            "writes of the server's disk",
        )
    elif request.target is not None and request.target.share:
        text = "directory of the share not found in smb.conf: a run searches for its test file"
        remedy = "--server-folder DIR, if the search fails"
        yield _costs(SERVER, "folder", text, remedy, "disk of the server")
    yield from _ports(findings)
    yield _copies_there(findings, ready)
    yield _clock(findings.ahead_seconds)


def _copies_there(findings: Findings, ready: Readiness) -> Check:
    if "smbclient" in ready.programs:
        return _ok(SERVER, "smbclient", f"smbclient {ready.programs['smbclient']}")
    text = "no program on the server can start copies"
    remedy = f"there: {install('smbclient', ready.families)}"
    return _missing_check(SERVER, "smbclient", text, remedy, STARTED_THERE)


def _ports(findings: Findings) -> Iterator[Check]:
    """Yields whether each host reaches the ports that the other opens for a run."""
    for where, why, whence, whose, stages in (
        (SERVER, findings.there, "from here", "the server's", BETWEEN_HOSTS),
        (CLIENT, findings.here, "from the server", "this host's", (STARTED_THERE,)),
    ):
        if why == "":
            yield _ok(where, "ports", f"TCP ports of {whose} agent are reachable {whence}")
        elif why is not None:
            text = f"a TCP port of {whose} agent is not reachable {whence} ({why})"
            ports = "the TCP ports of net.ipv4.ip_local_port_range"
            remedy = f"allow {ports} through {whose} firewall during a run"
            yield _missing_check(where, "ports", text, remedy, *stages)


def _clock(ahead_seconds: float) -> Check:
    off = abs(ahead_seconds)
    if off < CLOCK_SECONDS:
        return _ok(SERVER, "clock", "clocks agree within a minute")
    way = "ahead of" if ahead_seconds > 0 else "behind"
    consequence = "; Kerberos rejects that" if off > KERBEROS_SECONDS else ""
    text = f"the clock is {off:.0f} s {way} this host's{consequence}"
    return _costs(SERVER, "clock", text, "synchronize both with NTP")


# -- each host -----------------------------------------------------------------------------------


def _common(where: str, ready: Readiness) -> Iterator[Check]:
    yield _fio(where, ready)
    yield _root(where, ready)
    if "smartctl" in ready.programs:
        yield _ok(where, "smartctl", f"smartctl {ready.programs['smartctl']}")
    else:
        text = "smartctl not found: disk health and the rate of the disk's link are unknown"
        yield _costs(where, "smartctl", text, install("smartctl", ready.families), _disk(where))
    yield _cache(where, ready)
    if ready.sockets:
        text = f"{ready.sockets}: what limits the TCP connection of a copy is unknown"
        yield _costs(where, "sockets", text, "Linux with sock_diag", "smb-copy")
    else:
        yield _ok(where, "sockets", "the kernel reports every connection (sock_diag)")
    elsewhere = not ready.system.startswith("Linux")
    if ready.proc or (elsewhere and ready.psutil):
        by = "/proc" if ready.proc else f"psutil {ready.psutil}"
        yield _ok(where, "usage", f"CPU and memory are read from {by}")
    else:
        text = f"{'psutil' if elsewhere else '/proc'} not found: CPU and memory are unknown"
        remedy = "sudo python3 -m pip install psutil" if elsewhere else "mount /proc"
        yield _costs(where, "usage", text, remedy, "all")
    if ready.quotas:
        yield _ok(where, "cgroup", "a CPU quota can be detected")
    elif ready.proc:
        text = "cgroup file system not found: a CPU quota cannot be detected"
        yield _costs(where, "cgroup", text, "mount /sys/fs/cgroup, in a container read-only")
    if ready.interface not in (None, "lo") and not OTHER_SYSTEMS.intersection(ready.families):
        yield _driver(where, ready.interface, ready.driver)


def _disk(where: str) -> str:
    return "disk" if where == CLIENT else "disk of the server"


def _fio(where: str, ready: Readiness) -> Check:
    version = ready.programs.get("fio")
    remedy = install("fio", ready.families)
    numbers = tuple(int(word) for word in re.findall(r"\d{1,4}", version or "")[:2])
    if ready.without_fio:
        text = "disk rates are measured without fio, which this tool cannot use on this system"
        return _costs(where, "fio", text, "", "disk zones")
    if version is None:
        text = "fio not found: the disk is not measured"
    elif version == "?":
        text = "fio cannot start: the disk is not measured"
    elif numbers < OLDEST_FIO:
        text = f"fio {version} is too old; 3.0 or newer is required"
    elif "libaio" not in ready.engines:
        text = f"fio {version} has no libaio: direct reads cannot use a queue depth"
        remedy = "install a fio that was built with libaio"
    else:
        return _ok(where, "fio", f"fio {version} with {' and '.join(ready.engines)}")
    return _missing_check(where, "fio", text, remedy, _disk(where))


def _root(where: str, ready: Readiness) -> Check:
    windows = "win32" in ready.families
    who = "administrator" if windows else "root"
    if ready.privileged:
        return _ok(where, "rights", f"{who}: disks and processes of other users are readable")
    text = f"not {who}: --device, SMART, and sockets and files of other users are not readable"
    as_root = "start the terminal as administrator" if windows else "as root: sudo bottleneck ..."
    if where == SERVER:
        as_root = "--agent ssh://root@HOST, or exec: with a command that ends in sudo -n"
    return _costs(where, "rights", text, as_root, "disk zones of --device", "watch")


def _cache(where: str, ready: Readiness) -> Check:
    if ready.cache == "cachestat":
        return _ok(where, "page cache", "cached and uncached are verified with cachestat(2)")
    if ready.cache:
        text = "no cachestat(2) before Linux 6.5: mincore(2) verifies files of this user"
        return _ok(where, "page cache", text)
    text = "the page cache cannot be read here: `uncached` is not verified"
    return _costs(where, "page cache", text, "run on Linux", "*.uncached")


def _driver(where: str, name: str, driver: str | None) -> Check:
    if driver:
        return _ok(where, "interface", f"{name}: driver {driver} supports ethtool")
    text = f"{name}: no ethtool: link rate, duplex and flow control are unknown"
    remedy = "run on the host itself, not in a container or virtual machine"
    return _costs(where, "interface", text, remedy, "link-rate and duplex")


def _place(
    where: str, place: Place | None, remedy: str, *stages: str, name: str = "folder"
) -> Iterator[Check]:
    if place is None:
        return
    if place.trouble:
        yield _missing_check(where, name, f"{place.path}: {place.trouble}", remedy, *stages)
        return
    usable = place.usable_bytes
    on = f" ({place.filesystem})" if place.filesystem else ""
    room = "free space unknown" if usable is None else f"a run may write {size_text(usable)}"
    if usable is not None and usable < SMALL_BYTES:
        text = (
            f"{place.path}{on}: {room} only: copies above {rate_text(usable / 2)} take less than a "
            "second, and their rates vary"
        )
        yield _costs(where, name, text, f"free some space, or {remedy}", *stages)
    elif place.beside:
        text = f"the agent may not write there; its files are in {place.beside} meanwhile"
        yield _ok(where, name, f"{place.path}{on}: {room}; {text}")
    elif not place.nameless and name == "folder":
        text = f"{place.path}{on}: no O_TMPFILE: a killed run may leave a test file"
        yield _costs(where, name, text, "bottleneck cleanup, if that happens")
    else:
        yield _ok(where, name, f"{place.path}{on}: {room}")
