"""Starts an agent: its command, the zip of modules, and the line of Python that loads it.

The stream is a pipe on this host, the system's ssh, or any command that passes streams. Nothing is
written on the other host: the modules are loaded from memory.
"""

from __future__ import annotations

import base64
import io
import re
import shlex
import zipfile
from pathlib import Path
from urllib.parse import unquote

import bottleneck
import probes
from bottleneck.login.target import SUCCESSORS
from probes.core.stage import Refused
from probes.system import tools

STAYS_HOME = (
    "probes/smb/",
    "probes/stages/smb_",
    "probes/stages/small_files.py",
    "probes/system/windows/",
    "probes/programs/samba.py",
    "probes/programs/iperf3.py",
)
"""Modules that need libraries, programs or a system that the other host lacks."""

CARRIED = (
    *"__init__ agents/__init__ agents/server agents/requests".split(),
    *"agents/request_checks agents/protocol".split(),
)
"""Modules of the coordinator's package that the agent needs."""

_STARTER_SOURCE = """
import importlib.abc,importlib.util,io,os,signal,sys,zipfile
signal.alarm(30)
def take(n):
 b=b""
 while len(b)<n:
  c=os.read(0,n-len(b))
  if not c: sys.exit(1)
  b+=c
 return b
n=b""
while not n.endswith(b"\\n"): n+=take(1)
z=zipfile.ZipFile(io.BytesIO(take(int(n))))
signal.alarm(0)
class Carried(importlib.abc.InspectLoader):
 s={n:z.read(n).decode() for n in z.namelist()}
 def is_package(self,n): return n.replace(".","/")+"/__init__.py" in self.s
 def get_source(self,n):
  p=n.replace(".","/")
  return self.s.get(p+"/__init__.py",self.s.get(p+".py"))
 def find_spec(self,n,path=None,target=None):
  if self.get_source(n) is not None: return importlib.util.spec_from_loader(n,self)
sys.dont_write_bytecode=True
sys.meta_path.insert(0,Carried())
from bottleneck.agents.server import main
main()
"""
"""Reads the zip's length and the zip from stdin within 30 s, then serves on the same stream."""

STARTER = (
    'exec(__import__("base64").b64decode("'
    + base64.b64encode(_STARTER_SOURCE.encode()).decode()
    + '"))'
)
"""_STARTER_SOURCE as one line without single quotes, newlines or `!`, safe in any login shell."""

# -I: no module from the current folder, the user's site or a variable.
TRAVELLING = ("python3", "-I", "-c", STARTER)

SSH_OPTIONS = (
    # Older ssh lacks some of these options; `*`, because this replaces the user's own list.
    "IgnoreUnknown=*",
    "RemoteCommand=none",
    "SessionType=default",
    "StdinNull=no",
    "ForkAfterAuthentication=no",
    # Without the server's banner, which would be mixed with ssh's errors.
    "LogLevel=ERROR",
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ConnectionAttempts=1",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=6",
    # No forwarding to the server, whatever the user's configuration says: -a and -x exclude agent
    # and display, this excludes ports.
    "ClearAllForwardings=yes",
    "Tunnel=no",
    "PermitLocalCommand=no",
    "EscapeChar=none",
    # A connection of our own that ends with us, shared with nobody.
    "ControlMaster=no",
    "ControlPath=none",
    "ControlPersist=no",
)
_PYTHON = "install python3 3.9 or newer there, and try: {by} python3 -V"
TROUBLES = (
    (
        "IDENTIFICATION HAS CHANGED",
        "the host key of {host} has changed since the last login",
        "ask its administrator whether it was replaced; if it was: ssh-keygen -R {known}",
    ),
    (
        "Host key verification failed",
        "the host key of {host} is not known to this user",
        "log in once and accept it: ssh {place}",
    ),
    (
        r"Permission denied \(",
        "ssh to {host} was refused: it accepts no key of this user",
        "install one there: ssh-copy-id {place} (or ssh-add)",
    ),
    (
        "Could not resolve",
        "ssh to {host}: the name cannot be resolved",
        "check it, or use an address",
    ),
    (
        "Connection refused",
        "ssh to {host}: nothing accepts connections on that port",
        "start sshd there, or use its port: ssh://host:port",
    ),
    (
        "timed out|No route|unreachable",
        "ssh to {host}: no answer",
        "check that the host is up and its firewall allows ssh",
    ),
    (
        "accepts no more requests",
        "ssh to {host} takes no more data",
        "try whether large packets arrive (ping -M do -s 1472 {host}), and ssh {place} python3 -V",
    ),
    (
        r"python3: (command )?not found|python3.*(No such file|Permission denied)",
        "{host} has no python3 that this account may start",
        _PYTHON,
    ),
    (
        "SyntaxError|TypeError|AttributeError|ImportError|ModuleNotFoundError",
        "python3 on {host} may be too old ({last})",
        _PYTHON,
    ),
)
"""Pattern in the output of ssh or the other end, its meaning, and the remedy."""
LONGEST_WORDS = 200
OF_SSH = 7
"""Number of entries, at the beginning, that are ssh's own messages."""


def explain_failure(spec: str, text: str, output: str) -> tuple[str, str]:
    """Returns why no agent started, in plain words, and the remedy.

    text: sentence if no pattern fits. output: errors that ssh and the other end printed.
    """
    if spec.startswith("exec:"):
        host, place, host_key = "the server", "", ""
        by = spec.removeprefix("exec:").strip()
    else:
        place, colon, port = spec.removeprefix("ssh://").rstrip("/").rpartition(":")
        if not colon or not port.isdigit():
            place, port = spec.removeprefix("ssh://").rstrip("/"), ""
        host = place.rpartition("@")[2].strip("[]")
        host_key = f"'[{host}]:{port}'" if port else host
        place = place.replace("[", "").replace("]", "")
        place = f"-p {port} {place}" if port else place
        by = f"ssh {place}"
    last = output.strip().rpartition("\n")[2][:LONGEST_WORDS]
    words = {"host": host, "place": place, "known": host_key, "by": by, "last": last}
    for pattern, what, remedy in TROUBLES if place else TROUBLES[OF_SSH:]:
        if re.search(pattern, output, re.IGNORECASE):
            return what.format(**words), remedy.format(**words)
    return text, f"try: {by} python3 -V"


def names_and_sources() -> dict[str, bytes]:
    """Returns the source of each module that travels, by path in the zip."""
    root = Path(bottleneck.__file__).parent
    carried = {f"bottleneck/{n}.py": (root / f"{n}.py") for n in CARRIED}
    probes_root = Path(probes.__file__).parent
    for path in sorted(probes_root.rglob("*.py")):
        name = f"probes/{path.relative_to(probes_root).as_posix()}"
        if not name.startswith(STAYS_HOME):
            carried[name] = path
    return {name: path.read_bytes() for name, path in carried.items()}


def program() -> bytes:
    """Returns the input of STARTER: the length of a zip, a newline, the zip."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, source in names_and_sources().items():
            bundle.writestr(name, source)
    return b"%d\n" % packed.tell() + packed.getvalue()


def command_for(spec: str) -> list[str]:
    """Returns the command that starts the travelling agent.

    spec: `ssh://[user@]host[:port]` or `exec:PREFIX`; the prefix is split as a shell would.

    Raises Refused, kind "usage": a malformed spec, or one that would be taken for an option.
    """
    if spec.startswith("tcp://"):
        raise Refused("usage", SUCCESSORS["tcp://"])
    if spec.startswith("exec:"):
        try:
            prefix = shlex.split(spec.removeprefix("exec:"))
        except ValueError as error:
            raise Refused("usage", f"--agent exec:PREFIX: {error}") from None
        return [*prefix, *TRAVELLING]
    if not spec.startswith("ssh://"):
        raise Refused(
            "usage", "--agent: must be one of ssh://[user@]host[:port], exec:PREFIX, none"
        )
    user, separator, place = spec.removeprefix("ssh://").rstrip("/").rpartition("@")
    if ":" in user:
        raise Refused("usage", "--agent: a password is not allowed here; use a key or an ssh agent")
    # The host as written: aliases in ssh's configuration are case-sensitive.
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%\w]+)\]|([\w.][\w.-]*))(?::(\d{1,5}))?", place)
    if match is None or separator and not re.fullmatch(r"[\w.][\w.@+-]*", unquote(user)):
        raise Refused(
            "usage",
            "--agent ssh://...: not a host that ssh can reach; use ssh://[user@]host[:port]",
        )
    host, port = match[1] or match[2], match[3]
    if port and not 0 < int(port) < 65536:
        raise Refused("usage", f"--agent ssh://...: {port} is not a port")
    options = [word for option in SSH_OPTIONS for word in ("-o", option)]
    if port:
        options += ["-p", port]
    if user:
        options += ["-l", unquote(user)]
    # ssh passes one string to the other side's shell: it is quoted here for that shell.
    ssh = tools.find("ssh") or "ssh"
    return [ssh, "-T", "-a", "-x", *options, "--", host, shlex.join(TRAVELLING)]
