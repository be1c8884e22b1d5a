"""The table of nas.py: real NAS boxes, and the end of a run that is right on each."""

from __future__ import annotations

import signal
from typing import Any

import nas_world as do
from nas_world import AUTH, PASSWORD, ROOT, RUN, Case

DOCTOR, SWEEP, PROBE = "doctor {target}", f"{RUN}\ncleanup {{target}}", "probe {} {{target}}"
ENDS, REFUSAL = (0, 3, 69, 77), (69, 77)
REST: dict[str, Any] = {"tells": True}
RATE, LOGGED = "MB/s", "logged in"
MIB = 1 << 20


def memory(size: str, folder: str = "shared") -> do.Action:
    """Puts the share, or another folder, on a file system of that size."""
    mount = f"mount -t tmpfs -o size={size},mode=0777 tmpfs {{{folder}}}"
    return do.command(mount, f"umount -l {{{folder}}}")


def script(text: str) -> do.Action:
    """Writes the program that lines of smb.conf name as {script}."""
    return do.file("script", f"#!/bin/sh\n{text}\n")


def in_push(action: do.Action) -> do.Action:
    """Acts in the first big push."""
    return do.when("pushed-*", MIB, action)


CTRL_C = in_push(lambda world: world.process.send_signal(signal.SIGINT))

BIN = "vfs objects = recycle | recycle:repository = "
TREE = BIN + ".recycle | recycle:keeptree = yes | recycle:versions = yes"
EXCLUDE = "recycle bin & recycle:exclude|another share"
PUSH = f"{RUN} --tree {ROOT}/docs/man"
EXCLUDED = TREE + " | recycle:exclude = source-*,pushed-* | recycle:exclude_dir = bottleneck-*"
DFREE = "dfree command = {script}"
SPACE = script("echo 2600000 2600000 1024")
THIN = TREE + f" | {DFREE} | strict allocate = yes"
OLD_BIN = do.command("mkdir -m 777 {shared}/.recycle")
BINS = (
    Case("bin .recycle, keeptree", (0, 3), EXCLUDE, TREE),
    Case("bin #recycle, flat", (0, 3), EXCLUDE, BIN + "#recycle"),
    Case("bin @Recycle, by user", (0, 3), EXCLUDE, BIN + "@Recycle/%U | recycle:versions = yes"),
    Case("bin outside the share", (0, 3), "", BIN + "{place}/outside"),
    Case("bin with maxsize", (0, 3), EXCLUDE, TREE + " | recycle:maxsize = 10000"),
    Case("bin that excludes test files", (0, 3), "", EXCLUDED),
    Case("bin, Ctrl-C", (130,), "", TREE, during=CTRL_C),
    Case("bin, doctor", (0, 3), "exclude bottleneck-", TREE, words=DOCTOR, prepare=OLD_BIN),
    Case("bin, small files", (3, 64, 69), "recycle bin", TREE, words=PROBE.format("small-files")),
    Case("bin, a pushed tree", (0, 3, 64), "bin.{0,20}would keep", TREE, words=PUSH, budget=15),
    Case("bin, then cleanup", (0,), "", TREE, words=SWEEP),
    Case("bin on a thin volume", (0, 3), EXCLUDE, THIN, prepare=memory("60m"), begin=SPACE),
)

PRINTER = "printable = yes | print command = cp %s {place}/printed/; rm %s"
PRINTING = "printing = bsd | disable spoolss = no | load printers = no"
ON_PRINTER = ("is a printer, not a share of files", PRINTER, PRINTING)
IPC, PIPE = "//127.0.0.1:{port}/IPC$", "not a share of files"
GUEST_RUN, GUESTS, LOGIN = RUN + " --allow-guest", "guest ok = yes", {"failed_logins": 1}
BAD_PASSWORD, BAD_USER = "map to guest = Bad Password", "map to guest = Bad User"
TRAP: dict[str, Any] = {"words": GUEST_RUN, "never": "account is locked", **LOGIN}
WRONG: dict[str, Any] = {"login": AUTH.replace(PASSWORD, "wrong-horse-47")}
NOBODY: dict[str, Any] = {"login": AUTH.replace("bottleneck", "anna")}
EDIT = "pdbedit -s {users} -u root -c "
LOCKOUT = do.command("pdbedit -s {users} -P bad~lockout~attempt -C 3")
KINDS = (
    Case("printer", (64,), *ON_PRINTER),
    Case("printer, doctor", (3, 64), *ON_PRINTER, words=DOCTOR),
    Case("printer, cleanup", (64,), *ON_PRINTER, words="cleanup {target} --older-than 0"),
    Case("IPC$", (64,), PIPE, words=f"diagnose {IPC}", never="0x[cC]0000"),
    Case("IPC$, doctor", (3, 64), PIPE, words=f"doctor {IPC}", never="0x[cC]0000"),
    Case("guest by a wrong password", (77,), "as a guest", GUESTS, BAD_PASSWORD, **TRAP, **WRONG),
    Case("lockout at 3", (77,), "as a g", GUESTS, BAD_PASSWORD, begin=LOCKOUT, **TRAP, **WRONG),
    Case("guest by a wrong user", (77,), "as a guest", GUESTS, BAD_USER, **TRAP, **NOBODY),
    Case("guest, not allowed", (77,), "as a guest", GUESTS, BAD_USER, **LOGIN, **NOBODY),
    # Samba books each login of its guest as one of a user that it does not know.
    Case("guest", (0, 3), "a guest", GUESTS, BAD_USER, GUEST_RUN, login="", failed_logins=99),
    Case("wrong password", (77,), **LOGIN, **WRONG),
    Case("user disabled", (77,), begin=do.command(EDIT + "[D]"), **LOGIN),
    Case("user locked", (77,), begin=do.command(EDIT + "[L]"), **LOGIN),
)
"""Shares of another type, and users who come back as guests."""

FORCE, HEIR = "force user = nobody", "force user = nobody | inherit owner = yes"
BOX = HEIR + " | directory mask = 0700 | create mask = 0600"
WORM = FORCE + " | vfs objects = worm | worm:grace_period = 1"
STUCK = HEIR + " | inherit permissions = yes"
NEXT_RUN, STICKY = SWEEP + "\n" + RUN, do.command("chmod 1777 {shared}")
IMMUTABLE = do.when("source-*", MIB, do.command("chattr +i {run}", "chattr -i {run}"))
APPEND = do.command("chattr +a {shared}", "chattr -a {shared}")
CRASH = in_push(do.crash)
RIGHTS = (
    Case("drop box, owner inherited", ENDS, "", BOX, **REST),
    Case("masks of 000", ENDS, "", FORCE + " | directory mask = 0 | create mask = 0", **REST),
    Case("directory mask 0300", ENDS, "", FORCE + " | directory mask = 0300", **REST),
    Case("sticky", ENDS, "", HEIR + " | directory mask = 0755", prepare=STICKY, **REST),
    Case("sticky, 0777", ENDS, "", HEIR + " | directory mask = 0777", prepare=STICKY, **REST),
    Case("append only", ENDS, "", "directory mask = 0777", prepare=APPEND, **REST),
    Case("drop box, then cleanup", (0, 3), "", BOX, words=SWEEP, **REST),
    Case("stuck", (64, *REFUSAL), "no file can be deleted", STUCK, prepare=STICKY, **REST),
    Case("stuck, then cleanup", (3,), "", STUCK, words=SWEEP, prepare=STICKY, **REST),
    # A file is closed to all after a second: what was opened before deletes it all the same.
    Case("worm", (3, *REFUSAL), "access is denied|can be deleted", WORM),
    Case("crash, then cleanup", (0,), words=SWEEP, during=CRASH),
    Case("crash, cleanup, next run", (0, 3), words=NEXT_RUN, during=CRASH),
    Case("folder immutable", (3,), during=IMMUTABLE, **REST),
    Case("share moved away", (3,), during=in_push(do.move_share), **REST),
    Case("folder removed", (0, 3), during=do.when("source-*", MIB, do.command("rm -r {run}"))),
    Case("server dies at free space", ENDS, "", DFREE, prepare=script("echo 9 9 0"), **REST),
)
"""Folders that cannot be entered or deleted, and cleanup."""

SMALL: dict[str, Any] = {"says": "too small to measure", "exits": (3,), "verdict": False}
QUOTA, DISK, PLACE = "full, or a quota is reached", "disk is full;", memory("40m")
FIGURES = {"0 of 0": "0 0", "2^64-1": f"{2**64 - 1} {2**64 - 1}", "below 0": "-1 -1"}
FIGURES |= {"more than all": "1000000 900000000"}
SPACES = (
    Case("quota of 40 MB", (0, 3), QUOTA, DFREE, never=DISK, prepare=PLACE, begin=SPACE),
    Case("max disk size 1 MB", **SMALL, lines="max disk size = 1"),
    *(Case(f"share of {it} MiB", **SMALL, prepare=memory(f"{it}m")) for it in (1, 15)),
    *(
        Case(f"free space {name}", (0, 3, 69), "", DFREE, prepare=script(f"echo {figures}"))
        for name, figures in FIGURES.items()
    ),
    Case("no space", (0, 3, 69), "not enough", DFREE, prepare=script("echo 1000000 0")),
    Case("client folder of 1 MiB", (0, 3, 69), prepare=memory("1m", "client")),
)
"""Quotas, thin volumes, tiny shares and figures that cannot be."""

SLEEP: dict[str, Any] = {"exits": (0, 3), "says": "asleep|waiting for the server", "budget": 35}
SLOW = "test -e {place}/awake || {{ touch {place}/awake; sleep 12; }}; echo 2600000 2600000 1024"
PEER = RUN + " --tcp-peer iperf3://127.0.0.1:{peer}"
CHANNELS = PROBE.format("smb-multichannel")
DENY, LONE, MANY = "hosts deny = ALL", "max connections = 1", "max connections"
BROKEN: dict[str, Any] = {"during": do.kill_iperf3, "prepare": do.serve_iperf3}
SILENT: dict[str, Any] = {"prepare": do.silent_peer, "never": "after 0 s"}
DEAD_LINK = do.command(r"ln -s msdfs:127.0.0.9\none {shared}/link")
DFS: dict[str, Any] = {"words": RUN + "/link", "prepare": DEAD_LINK}
STALL = do.when("pushed-*", 24 * MIB, do.freeze(60))
KILL = in_push(lambda world: world.signal_sessions(signal.SIGKILL))
BREAKS = (
    # It may be awake long enough to hold the folder, and sleep in a copy.
    Case("asleep at the folder", (0, 3), budget=35, during=do.when("", 0, do.freeze(14))),
    Case("asleep at the login", **SLEEP, during=do.freeze(14)),
    Case("asleep at free space", **SLEEP, share_lines=DFREE, prepare=script(SLOW)),
    Case("push stalls after 24 MiB", (3,), "at most", during=STALL, **REST),
    Case("cable pulled", (3,), during=do.when("source-*", MIB, do.freeze(60)), **REST),
    Case("restart", (0, 3), RATE, during=in_push(do.restart), budget=15),
    Case("session killed", (0, 3), RATE, during=KILL),
    Case("Ctrl-C", (130,), during=CTRL_C),
    Case("hosts deny, global", REFUSAL, "refuses this host", lines=DENY),
    Case("hosts deny, of the share", REFUSAL, "this (user or )?host", DENY),
    Case("max smbd processes", (69,), "process limit|block list", lines="max smbd processes = 1"),
    Case("max connections", (0, 3, 69), MANY, LONE),
    Case("max connections, probe", (3, 69), MANY, LONE, words=CHANNELS),
    Case("veto files", REFUSAL, "veto files", "veto files = /*.bin/*bottleneck*/"),
    Case("iperf3 peer is silent", (0, 3), words=PEER, **SILENT),
    Case("iperf3 peer breaks off", (0, 3), "broke off|interrupted", words=PEER, **BROKEN),
    Case("DFS link that is dead", (69,), "DFS", "msdfs root = yes", "host msdfs = yes", **DFS),
)
"""Sleeping disks, slow layers, restarts, refusals."""

SLASH, BLANK = "BOTTLENECK/bottleneck", "blank at the end "
FILES: dict[str, str | bytes] = {
    "BOM": b"\xef\xbb\xbf" + AUTH.encode(),
    "realm": AUTH + "realm = LAB\n",
    "; and # comments": f"; of the lab\n# as smbclient has it\n{AUTH}",
    "CRLF": AUTH.replace("\n", "\r\n"),
    "no blanks around =": AUTH.replace(" ", ""),
    "DOM/user": AUTH.replace("bottleneck", SLASH),
    "DOM\\user": AUTH.replace("bottleneck", SLASH.replace("/", "\\")),
}
PASSWORDS = (BLANK, "a#b;c%d$e'f", "Übergrößenträger", "x" * 120)
PLAIN, LAB = f"password = {PASSWORD}\n", AUTH.replace("bottleneck", "LAB\\bottleneck")
URL, REALM = "smb://BOTTLENECK;bottleneck@127.0.0.1:{port}/share", "smb://a@lab@127.0.0.1/share"
ENV: dict[str, Any] = {"password": BLANK, "variables": (("BOTTLENECK_PASSWORD", BLANK),)}
LOGINS = (
    *(Case(f"login: {it}", (0, 3), LOGGED, words=DOCTOR, login=text) for it, text in FILES.items()),
    *(
        Case(f"password {it[:16]!r}", (0, 3), LOGGED, words=DOCTOR, password=it, login=text)
        for it, text in ((it, AUTH.replace(PASSWORD, it)) for it in PASSWORDS)
    ),
    Case("login: UTF-16", (64,), "UTF-8", words=DOCTOR, login=AUTH.encode("utf-16")),
    Case("--user DOM/user", (0, 3), LOGGED, words=DOCTOR + " --user " + SLASH, login=PLAIN),
    Case("smb://DOM;user@", (0, 3), LOGGED, words=f"doctor {URL}", login=PLAIN),
    Case("smb://user@realm@", (3, 64, 69), words=f"doctor {REALM}", never="not allowed here"),
    Case("two domains", (64,), "domain", words=RUN + " --domain OTHER", login=LAB),
    Case("environment", (0, 3), LOGGED, words=DOCTOR + " --user bottleneck", login="", **ENV),
)
"""Users and login files."""

HOST_NAMES = "nas.example nas.example. nas nas. xn--bro-hoa büro"
KNOWN_HOSTS = do.file("hosts", f"127.0.0.1 localhost {HOST_NAMES}\n")
LOCAL, HOMES = "127.0.0.1:{port}", "127.0.0.1:{port}/User%20Homes"
HOSTS = ("//nas.example.:{port}", "//nas.:{port}", "//büro:{port}", f"SMB://{LOCAL}")
SHARES = ("User Homes", "data$", "te$t", "it's", "a&b;c", "`date`", "日本語", "dot.", "50%")
BLANKS: dict[str, Any] = {"share": "User Homes"}
ZONE, NFD = "doctor smb://[fe80::1%25lo]:{port}/share", "doctor //127.0.0.1:{port}/Bu\u0308ro"
NAMES = (
    *(
        Case(f"host {it}", (0, 3), LOGGED, words=f"doctor {it}/share", prepare=KNOWN_HOSTS)
        for it in (*HOSTS, f"cifs://{LOCAL}")
    ),
    Case("host with %25", (3, 69), words=ZONE, never="%25lo"),
    Case("host and an empty port", (3, 64, 69), words="doctor //nas:/share", never="in brackets"),
    Case("//h/User%20Homes", (64, 69), "User Homes", words=f"diagnose //{HOMES}", **BLANKS),
    Case("smb://h/User%20Homes", words=f"diagnose smb://{HOMES}", **BLANKS),
    Case("NFD name of an NFC share", (3, 64, 69), "[Uu]nicode|[Cc]ompos", words=NFD, share="Büro"),
    *(Case(f"share {name}", (0, 3), RATE, share=name, budget=10) for name in SHARES),
)
"""Names of hosts and shares."""

VFS = ("catia fruit streams_xattr", "streams_depot", "full_audit", "shadow_copy2", "crossrename")
UPPER = "default case = upper | preserve case = no"
# fmt: off
OF_SHARE = (
    *(f"vfs objects = {names}" for names in (*VFS, "acl_xattr")),
    "hide files = /*/", "hide dot files = yes", "hide unreadable = yes", UPPER,
    "mangled names = yes", "smb encrypt = required", "oplocks = no", "kernel oplocks = yes",
    "strict sync = yes | sync always = yes | strict locking = yes | aio read size = 0",
)
OF_SERVER = (
    "server min protocol = SMB3_11", "server max protocol = SMB2_02", "restrict anonymous = 2",
    "server min protocol = NT1 | server max protocol = NT1", "max open files = 120",
    "server signing = mandatory", "server signing = disabled",
)
# fmt: on
SEAL: dict[str, Any] = {"words": RUN + " --encryption on", "lines": "server smb encrypt = off"}
SETTINGS = (
    *(Case(lines, (0, 3), RATE, lines, budget=10) for lines in OF_SHARE),
    *(Case(lines, (0, 3), RATE, "", lines, budget=10) for lines in OF_SERVER),
    *(Case(line, (77,), "", line) for line in ("read only = yes", "valid users = nobody")),
    Case("case sensitive, upper", ENDS, "", UPPER + " | case sensitive = yes", **REST),
    # This kernel has no such locks: the server makes the file, and then says no.
    Case("kernel share modes", ENDS, "", "kernel share modes = yes", **REST),
    Case("--encryption on", (3, 69), "no supported encryption", **SEAL),
)
"""Settings that were no trouble, and have to stay none."""

CASES = (*KINDS, *BINS, *RIGHTS, *SPACES, *BREAKS, *LOGINS, *NAMES, *SETTINGS)
