"""impacket's file server on this host, where no smbd is installed: SMB 2.0.2 and 20-50 MB/s.

It is then the cap of most copies, which whoever uses it has to say. One share and one user, for
connections of named hosts; in a child process that goes with its starter.
"""

from __future__ import annotations

import configparser
import json
import logging
import os
import secrets
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from probes.host.child import Event, spawn
from probes.host.sock_diag import plain_address
from probes.records import Access, Endpoint
from probes.stage import Unavailable

DIALECT = "2.0.2"
"""The only one that it speaks beside SMB1."""
START_SECONDS = 30.0


@contextmanager
def impacket_server(
    folder: Path, *, share: str, access: Access, address: str, allow: tuple[str, ...]
) -> Iterator[tuple[Endpoint, Callable[[], None]]]:
    """Serves folder as share on a free port of address until closed, to the addresses in allow.

    Yields where, and a function that ends it at once. Raises Unavailable where impacket is not
    installed or does not come up.
    """
    try:
        from impacket import ntlm, smbserver
    except ImportError:
        raise Unavailable("impacket is missing here (install copy-bottleneck[smb1])") from None
    credential = ntlm.compute_lmhash(access.password), ntlm.compute_nthash(access.password)

    def serve(tell: Callable[[Event], None], control_fd: int) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # it prints tracebacks of what peers send
        logging.disable()
        server = _only_for(smbserver.SMBSERVER, allow)(
            (address, 0), config_parser=_configuration(folder, share), ipv6=":" in address
        )
        server.processConfigFile()
        server.addCredential(access.username, 0, *credential)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        tell({"port": server.server_address[1]})
        os.read(control_fd, 1)

    child = spawn(serve)
    try:
        ready = select.select([child.events_fd], [], [], START_SECONDS)[0]
        told = json.loads(os.read(child.events_fd, 1 << 16) or b"{}") if ready else {}
        if "port" not in told:
            why = told.get("failed", f"no answer within {START_SECONDS:.0f} s")
            raise Unavailable(f"impacket's server did not start on {address}: {why}")
        served = Endpoint(host=address, port=int(told["port"]), share=share, access=access)
        yield served, child.kill
    finally:
        os.close(child.control_fd)
        child.kill()
        os.waitpid(child.pid, 0)
        os.close(child.events_fd)


def _only_for(server: Any, allow: tuple[str, ...]) -> Any:
    class OnlyFor(server):  # type: ignore[misc]
        """A server that closes connections of everybody else."""

        def verify_request(self, request: Any, client_address: Any) -> bool:
            """See socketserver.BaseServer."""
            return str(plain_address(client_address[0])) in allow

    return OnlyFor


def _configuration(folder: Path, share: str) -> configparser.ConfigParser:
    # No interpolation: a per cent sign in the folder's name is one.
    made = configparser.ConfigParser(interpolation=None)
    made["global"] = {
        "server_name": "BOTTLENECK",
        "server_os": "Unix",
        "server_domain": "WORKGROUP",
        "log_file": "None",
        "credentials_file": "",
        "challenge": secrets.token_hex(8),
        "SMB2Support": "True",
        "anonymous_logon": "False",
    }
    # Its tree connection looks IPC$ up, whoever asks.
    made["IPC$"] = {"comment": "", "read only": "yes", "share type": "3", "path": ""}
    made[share.upper()] = {
        "comment": "",
        "read only": "no",
        "share type": "0",
        "path": str(folder),
    }
    return made
