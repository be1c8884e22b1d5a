"""Finds a Kerberos ticket that the user has already (kinit), for logging in."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Any

from probes.system.platform import os

EXTRA = "the extra 'kerberos'"


def principal() -> str | None:
    """Returns the principal of the default credential cache; None: none with a valid ticket.

    Needs the libraries of EXTRA (krb5 and gssapi, which pyspnego uses too).
    """
    krb5 = _library()
    if krb5 is None:
        return None
    try:
        cache = krb5.cc_default(krb5.init_context())
        valid = any(ticket.times.endtime > time.time() for ticket in cache)
        return str(cache.principal.name.decode("utf-8", "replace")) if valid else None
    except krb5.Krb5Error:
        return None


def hint() -> str:
    """Returns what a user without --user may do about Kerberos, where there is a cache."""
    cache = os.environ.get("KRB5CCNAME") or f"FILE:/tmp/krb5cc_{os.getuid()}"
    kind, colon, path = cache.partition(":")
    if not colon:
        kind, path = "FILE", cache
    if kind != "FILE" or not Path(path).exists():
        return ""
    if _library() is None:
        return f"; or install {EXTRA} to use the Kerberos ticket of this host"
    return "; the Kerberos cache of this host has no valid ticket (kinit renews it)"


def _library() -> Any:
    """Imports krb5, where both it and gssapi are installed; otherwise None."""
    try:
        importlib.import_module("gssapi")
        return importlib.import_module("krb5")
    except (ImportError, OSError):
        return None
