"""Samba's smbclient as an engine: one login, then one command at a time, through its pipes.

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
"""Largest amount in flight: the window of cli_push (clireadwrite.c)."""
LONGEST_WORDS = 64 << 10

PROTOCOLS = {
    "smb1": "NT1",
    "2.0.2": "SMB2_02",
    "2.1": "SMB2_10",
    "3.0": "SMB3_00",
    "3.0.2": "SMB3_02",
    "3.1.1": "SMB3_11",
}
"""Names of the dialects in smb.conf(5), by ours."""

_MARK = b"Current directory is "
"""Its answer to `pwd`, after the login or the previous command."""

_FIXED_SIGNING = {"smb1": "md5", "2.0.2": "hmac-sha256", "2.1": "hmac-sha256"}
_CHOOSES_SINCE = (4, 15)
"""First version that lets its user choose algorithms, and that has AES-GMAC."""
_SIGNING = {"aes-gmac": "AES-128-GMAC", "aes-cmac": "AES-128-CMAC", "hmac-sha256": "HMAC-SHA256"}

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
"""Kinds of Refused, their NT statuses, and the remedy; the first match counts."""


class StatusError(Exception):
    """A command ended with an NT status; the text is smbclient's own line."""


def version() -> Optional[str]:
    """Returns the version of this host's smbclient; None: there is none."""
    return tools.version(PROGRAM)


def algorithms(
    dialect: str, signing: Optional[str], encryption: Optional[str], program: Optional[str]
) -> Tuple[List[str], Optional[str], Optional[str]]:
    """Returns options that set signing and encryption, and the names of the algorithms used.

    signing, encryption: the server's demands, or None. program: smbclient's version. "unnamed"
    where that version does not reveal its choice.
    """
    if encryption is not None:
        signing = None
    if dialect != "3.1.1" or signing is encryption is None:
        return [], _FIXED_SIGNING.get(dialect, "aes-cmac") if signing else None, encryption
    match = re.match(r"(\d+)\.(\d+)", program or "")
    if match is None or (int(match[1]), int(match[2])) < _CHOOSES_SINCE:
        return [], "aes-cmac" if signing else None, "unnamed" if encryption else None
    options = []
    if signing in _SIGNING:
        options.append(f"client smb3 signing algorithms={_SIGNING[signing]}")
    if encryption in ("aes-128-gcm", "aes-128-ccm", "aes-256-gcm", "aes-256-ccm"):
        options.append(f"client smb3 encryption algorithms={encryption.upper()}")
    return options, signing, encryption


class Client:
    """An smbclient that is logged in to a share and waits for commands."""

    def __init__(self, process: subprocess.Popen[bytes], lines: socket.socket, where: str) -> None:
        self._process, self._lines = process, lines
        self._where = where
        self._words = b""

    @property
    def pid(self) -> int:
        """Process id of smbclient."""
        return self._process.pid

    def send(self, command: str) -> None:
        """Starts a command; poll() waits for its end."""
        self._words = b""
        with contextlib.suppress(BrokenPipeError):  # poll() reads its last message
            for line in (command, "pwd"):
                self._lines.send(f"{line}\n".encode())

    def poll(self, seconds: float) -> Optional[str]:
        """Returns the command's output; None: not done after some seconds.

        Raises Said where it is an error, and ConnectionError where smbclient has ended.
        """
        assert self._process.stderr is not None
        fd, deadline = self._process.stderr.fileno(), time.monotonic() + seconds
        while b"\n" not in self._words.partition(_MARK)[2]:
            if not select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return None
            chunk = os.read(fd, 1 << 16)
            if not chunk:
                raise ConnectionError(_message(self._words) or "smbclient ended without a message")
            self._words = (self._words + chunk)[-LONGEST_WORDS:]
        reply = self._words.partition(_MARK)[0].decode("utf-8", "replace")
        if "NT_STATUS_" in reply:
            raise StatusError(_message(self._words))
        return reply

    def run(self, command: str, seconds: float) -> str:
        """Runs a short command. Raises as poll(), TimeoutError after seconds."""
        self.send(command)
        reply = self.poll(seconds)
        if reply is None:
            raise TimeoutError(f"{self._where}: smbclient did not answer within {seconds:.0f} s")
        return reply

    def size_bytes(self, path: str, seconds: float) -> Optional[int]:
        """Returns a file's size from the server; None: no answer. Raises as run() but Said."""
        # Not `ls`: it opens the folder without sharing it for deletion.
        try:
            reply = self.run(f"allinfo {quoted_name(path)}", seconds)
        except StatusError:
            return None
        match = re.search(r"\[::\$DATA\], (\d+) bytes", reply)
        return int(match[1]) if match else None


def place(peer: Endpoint) -> str:
    """Returns a share's name in messages: //host:port/share."""
    host = f"[{peer.host}]" if ":" in peer.host else peer.host
    return f"//{host}:{peer.port or SMB_PORT}/{peer.share}"


def quoted_name(name: str) -> str:
    """Quotes a name for smbclient's command line; ValueError for one that it could split."""
    if not name.isprintable() or '"' in name:
        raise ValueError("a name has characters that smbclient cannot take")
    return f'"{name}"'


@contextmanager
def connect(
    peer: Endpoint, dialect: str, options: Sequence[str] = (), pass_fds: Sequence[int] = ()
) -> Iterator[Client]:
    """Logs in once to peer.share in that dialect and no other; ends it with the block.

    options: lines of smb.conf for it. pass_fds: descriptors that its commands may name as
    /proc/self/fd/N. Raises Unavailable (no smbclient here, the dialect is not offered) and
    Refused with the remedy.
    """
    program = tools.find(PROGRAM)
    if program is None:
        raise Unavailable(f"smbclient is not installed on {socket.gethostname()} ({REMEDY})")
    where = place(peer)
    # One message for each line: a second line in its buffer would not wake it, as it waits for the
    # descriptor.
    lines, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with lines, its_end:
        secret = _secret(peer.access or Access())
        with descriptor(secret):
            process = _start(program, peer, dialect, options, its_end, (*pass_fds, secret))
        its_end.close()
        try:
            client = Client(process, lines, where)
            _log_in(client, where, dialect)
            yield client
        finally:
            lines.close()
            _end(process)


def _log_in(client: Client, where: str, dialect: str) -> None:
    client.send("")
    try:
        reply = client.poll(LOGIN_SECONDS)
    except (ConnectionError, StatusError) as error:
        raise refusal(where, "login", str(error), dialect) from None
    if reply is None:
        text = f"{where}: smbclient: no login within {LOGIN_SECONDS:.0f} s; check the host"
        raise Refused("unreachable", text)


def refusal(where: str, step: str, line: str, dialect: str = "") -> Exception:
    """Returns the exception for a line of smbclient's; its text is one line with the remedy."""
    if "negotiation failed" in line.lower() or "INVALID_NETWORK_RESPONSE" in line:
        spoken = PROTOCOLS.get(dialect, dialect)
        return Unavailable(
            f"{where} does not agree with smbclient on {spoken}, or blocks this host: {line}"
        )
    for kind, statuses, remedy in _KINDS:
        if re.search(rf"NT_STATUS_(?:{statuses})", line):
            return Refused(kind, f"{where}: {step} by smbclient: {line}; {remedy}")
    return ConnectionError(f"{where}: {step} by smbclient: {line}")


def _secret(access: Access) -> int:
    """Returns the reading end of a pipe with the password."""
    if "\n" in access.password or "\0" in access.password:
        raise Unavailable("smbclient does not support a password with a line break")
    reading, writing = os.pipe()
    # Some versions read it twice, and would read an empty one after the first.
    os.write(writing, f"{access.password}\n".encode() * 4)
    os.close(writing)
    return reading


def _start(
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
        # a Kerberos ticket stays on its host, and a guest's session was not requested
        raise Unavailable("smbclient needs a user here; use --user NAME or --allow-guest")
    protocol = PROTOCOLS[dialect]
    command = [program, f"//{peer.host}/{peer.share}", f"--port={peer.port or SMB_PORT}"]
    # Its own messages go to stderr: stdout would be buffered until its end.
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
        # In our process group, which the agent ends; and killed when we are killed.
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


def _message(words: bytes) -> str:
    """Returns its line with an NT status, else its last; printable."""
    text = words.partition(_MARK)[0].decode("utf-8", "replace")
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    errors = [line for line in lines if "NT_STATUS_" in line]
    line = (errors or lines or [""])[0 if errors else -1][:300]
    return "".join(each if each.isprintable() else "?" for each in line)
