"""Whether this host reaches a TCP port of another one."""

from __future__ import annotations

import errno
import socket

_SAYINGS = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "no route to it, or a firewall rejects it",
    errno.ENETUNREACH: "no route to it",
}


def reach(host: str, port: int, patience_seconds: float) -> str:
    """Empty where a connection is taken within so many seconds, else why not, in a few words.

    The connection is closed at once and nothing is sent.
    """
    try:
        socket.create_connection((host, port), timeout=patience_seconds).close()
    except socket.timeout:  # noqa: UP041 - only since Python 3.10 it is TimeoutError
        return f"no answer within {patience_seconds:.0f} s"
    except socket.gaierror:
        return "the name does not resolve"
    except OSError as error:
        return _SAYINGS.get(error.errno or 0) or (error.strerror or str(error)).lower()
    return ""
