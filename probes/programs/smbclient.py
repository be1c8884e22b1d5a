"""Samba's smbclient as an engine: one login, then one command at a time, driven through its pipes.

Runs on Python 3.9 with the standard library alone: it travels to the server. No shell, no file:
the password goes through a pipe, names are checked and quoted.
"""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import time
from contextlib import contextmanager
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from probes.core.records import SMB_PORT, Access, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.system import tools
from probes.system.child import end_with_parent
from probes.system.platform import descriptor, os
from probes.system.waiting import select

PROGRAM = "smbclient"
REMEDY = "install smbclient on the server"
LOGIN_SECONDS = 20.0
CLOSING_SECONDS = 1.0
IN_FLIGHT_BYTES = 16 << 20
"""Most that it has sent and not seen acknowledged: the window of cli_push (clireadwrite.c)."""
LONGEST_WORDS = 64 << 10

PROTOCOLS = {
    "smb1": "NT1",
    "2.0.2": "SMB2_02",
    "2.1": "SMB2_10",
    "3.0": "SMB3_00",
    "3.0.2": "SMB3_02",
    "3.1.1": "SMB3_11",
}
"""Our names of the dialects, and those of smb.conf(5)."""

_MARK = b"Current directory is "
"""What it says to `pwd`: it has logged in, or the command before is done."""

_FIXED_SIGNING = {"smb1": "md5", "2.0.2": "hmac-sha256", "2.1": "hmac-sha256"}
_CHOOSES_SINCE = (4, 15)
"""The first version that lets its user choose algorithms, and that knows AES-GMAC."""
_SIGNING = {"aes-gmac": "AES-128-GMAC", "aes-cmac": "AES-128-CMAC", "hmac-sha256": "HMAC-SHA256"}
_ENCRYPTION = ("aes-128-gcm", "aes-128-ccm", "aes-256-gcm", "aes-256-ccm")

_KINDS: Tuple[Tuple[str, str, str], ...] = (
    (
        "login",
        "LOGON_FAILURE|WRONG_PASSWORD|NO_SUCH_USER|ACCOUNT_|PASSWORD_|LOGON_TYPE|INVALID_LOGON",
        "check user and password",
    ),
    ("share", "BAD_NETWORK_NAME|BAD_NETWORK_PATH", "check the name of the share"),
    ("space", "DISK_FULL|QUOTA_EXCEEDED|DISK_QUOTA", "free space or use a smaller --size"),
    ("permission", "ACCESS_DENIED|MEDIA_WRITE_PROTECTED", "let this user write to the share"),
    (
        "unreachable",
        "HOST_UNREACHABLE|NETWORK_UNREACHABLE|CONNECTION_|IO_TIMEOUT|UNSUCCESSFUL|NOT_FOUND",
        "check that the port is open between the hosts",
    ),
)
"""Kinds of Refused, the NT statuses that mean them, and the remedy; the first that fits."""


class Said(Exception):
    """A command ended with an NT status; the text is smbclient's own line."""


def version() -> Optional[str]:
    """Version of this host's smbclient; None: there is none."""
    return tools.version(PROGRAM)


def algorithms(
    dialect: str, signing: Optional[str], encryption: Optional[str], program: Optional[str]
) -> Tuple[List[str], Optional[str], Optional[str]]:
    """Options that pin signing and encryption, and the names of what is then used.

    signing, encryption: what the server demands of this session, None where it demands nothing.
    program: smbclient's version. "unnamed" where that one keeps the choice to itself.
    """
    if encryption is not None:
        signing = None
    if dialect != "3.1.1" or signing is encryption is None:
        return [], _FIXED_SIGNING.get(dialect, "aes-cmac") if signing else None, encryption
    found = re.match(r"(\d+)\.(\d+)", program or "")
    if found is None or (int(found[1]), int(found[2])) < _CHOOSES_SINCE:
        return [], "aes-cmac" if signing else None, "unnamed" if encryption else None
    options = []
    if signing in _SIGNING:
        options.append(f"client smb3 signing algorithms={_SIGNING[signing]}")
    if encryption in _ENCRYPTION:
        options.append(f"client smb3 encryption algorithms={encryption.upper()}")
    return options, signing, encryption


class Connected:
    """An smbclient that is logged in to a share and waits for commands."""

    def __init__(self, process: subprocess.Popen[bytes], lines: socket.socket, where: str) -> None:
        self._process, self._lines = process, lines
        self._where = where
        self._words = b""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def send(self, command: str) -> None:
        """Starts a command; poll() tells when it is done."""
        self._words = b""
        with contextlib.suppress(BrokenPipeError):  # poll() finds its last words
            for line in (command, "pwd"):
                self._lines.send(f"{line}\n".encode())

    def poll(self, seconds: float) -> Optional[str]:
        """What it said to the command; None: not done after so long.

        Raises Said where it was an error, and ConnectionError where smbclient has ended.
        """
        assert self._process.stderr is not None
        fd, until = self._process.stderr.fileno(), time.monotonic() + seconds
        while b"\n" not in self._words.partition(_MARK)[2]:
            if not select.select([fd], [], [], max(0.0, until - time.monotonic()))[0]:
                return None
            more = os.read(fd, 1 << 16)
            if not more:
                raise ConnectionError(_said(self._words) or "smbclient ended without a message")
            self._words = (self._words + more)[-LONGEST_WORDS:]
        said = self._words.partition(_MARK)[0].decode("utf-8", "replace")
        if "NT_STATUS_" in said:
            raise Said(_said(self._words))
        return said

    def run(self, command: str, seconds: float) -> str:
        """A command that takes next to no time. Raises as poll(), TimeoutError after seconds."""
        self.send(command)
        said = self.poll(seconds)
        if said is None:
            raise TimeoutError(f"{self._where}: smbclient did not answer within {seconds:.0f} s")
        return said

    def size_bytes(self, path: str, seconds: float) -> Optional[int]:
        """Size that the server tells of a file; None: it tells none. Raises as run() but Said."""
        # Not `ls`: it opens the folder, and shares it with nobody who may delete it.
        try:
            said = self.run(f"allinfo {quoted(path)}", seconds)
        except Said:
            return None
        found = re.search(r"\[::\$DATA\], (\d+) bytes", said)
        return int(found[1]) if found else None


def place(peer: Endpoint) -> str:
    """A share as sentences name it: //host:port/share."""
    host = f"[{peer.host}]" if ":" in peer.host else peer.host
    return f"//{host}:{peer.port or SMB_PORT}/{peer.share}"


def quoted(name: str) -> str:
    """A name for smbclient's command line; ValueError for one that it could take for more."""
    if not name.isprintable() or '"' in name:
        raise ValueError("a name has characters that smbclient cannot take")
    return f'"{name}"'


@contextmanager
def connected(
    peer: Endpoint, dialect: str, options: Sequence[str] = (), pass_fds: Sequence[int] = ()
) -> Iterator[Connected]:
    """Logs in once to peer.share in that dialect and no other; ended however the block is left.

    options: lines of smb.conf for it. pass_fds: descriptors that its commands may name as
    /proc/self/fd/N. Raises Unavailable (no smbclient here, the dialect is not offered) and
    Refused with what the user has to mend.
    """
    program = tools.find(PROGRAM)
    if program is None:
        raise Unavailable(f"smbclient is not installed on {socket.gethostname()} ({REMEDY})")
    where = place(peer)
    # Message by message: a line that it reads together with another one stays in its buffer,
    # while it waits for the descriptor.
    lines, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with lines, its_end:
        secret = _secret(peer.access or Access())
        with descriptor(secret):
            process = _started(program, peer, dialect, options, its_end, (*pass_fds, secret))
        its_end.close()
        try:
            client = Connected(process, lines, where)
            _log_in(client, where, dialect)
            yield client
        finally:
            lines.close()
            _end(process)


def _log_in(client: Connected, where: str, dialect: str) -> None:
    client.send("")
    try:
        said = client.poll(LOGIN_SECONDS)
    except (ConnectionError, Said) as error:
        raise refusal(where, "login", str(error), dialect) from None
    if said is None:
        text = f"{where}: smbclient: no login within {LOGIN_SECONDS:.0f} s; check the host"
        raise Refused("unreachable", text)


def refusal(where: str, what: str, said: str, dialect: str = "") -> Exception:
    """What smbclient's own line means, as the exception to raise; one line with the remedy."""
    if "negotiation failed" in said.lower() or "INVALID_NETWORK_RESPONSE" in said:
        spoken = PROTOCOLS.get(dialect, dialect)
        return Unavailable(
            f"{where} does not agree with smbclient on {spoken}, or blocks this host: {said}"
        )
    for kind, statuses, remedy in _KINDS:
        if re.search(rf"NT_STATUS_(?:{statuses})", said):
            return Refused(kind, f"{where}: {what} by smbclient: {said}; {remedy}")
    return ConnectionError(f"{where}: {what} by smbclient: {said}")


def _secret(access: Access) -> int:
    """The reading end of a pipe that holds the password."""
    if "\n" in access.password or "\0" in access.password:
        raise Unavailable("smbclient does not support a password with a line break")
    reading, writing = os.pipe()
    # Some versions read it twice, and would read an empty one after the first.
    os.write(writing, f"{access.password}\n".encode() * 4)
    os.close(writing)
    return reading


def _started(
    program: str,
    peer: Endpoint,
    dialect: str,
    options: Sequence[str],
    lines: socket.socket,
    pass_fds: Sequence[int],
) -> subprocess.Popen[bytes]:
    access = peer.access or Access()
    if "%" in access.username:
        raise Unavailable("smbclient does not support a user name with %")
    if not access.username and not access.allow_guest:
        # a Kerberos ticket stays on its host, and nobody asked for a guest's session instead
        raise Unavailable("smbclient needs a user here; use --user NAME or --allow-guest")
    protocol = PROTOCOLS[dialect]
    command = [program, f"//{peer.host}/{peer.share}", f"--port={peer.port or SMB_PORT}"]
    # Its own messages go to stderr: stdout would be held back until its end.
    command += ["--stderr", "--configfile=/dev/null", f"--max-protocol={protocol}"]
    command += [f"--option={line}" for line in (f"client min protocol={protocol}", *options)]
    environment: Dict[str, str] = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}
    if access.username:
        command.append(f"--user={access.username}")
        environment["PASSWD_FD"] = str(pass_fds[-1])
    else:
        command += ["--user=guest", "--no-pass"]
    if access.domain:
        command.append(f"--workgroup={access.domain}")
    parent = os.getpid()
    return subprocess.Popen(
        command,
        stdin=lines.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        pass_fds=tuple(pass_fds),
        # In our process group, which the agent ends as a whole; and gone when we are killed.
        preexec_fn=lambda: end_with_parent(parent),
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stderr is not None
    with process.stderr:
        try:
            process.wait(CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _said(words: bytes) -> str:
    """Its line with an NT status, else its last; printable."""
    text = words.partition(_MARK)[0].decode("utf-8", "replace")
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    named = [line for line in lines if "NT_STATUS_" in line]
    line = (named or lines or [""])[0 if named else -1][:300]
    return "".join(each if each.isprintable() else "?" for each in line)
