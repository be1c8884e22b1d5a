"""Logging in by a Kerberos ticket that the user has already (kinit): is there one to use?"""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Any

from probes.system.platform import os

EXTRA = "the extra 'kerberos'"


def principal() -> str | None:
    """Who the default credential cache speaks for, while a ticket in it is valid; None: nobody.

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
    """What a user who was told to name himself may do instead, where a cache can be seen."""
    named = os.environ.get("KRB5CCNAME") or f"FILE:/tmp/krb5cc_{os.getuid()}"
    kind, colon, path = named.partition(":")
    if not colon:
        kind, path = "FILE", named
    if kind != "FILE" or not Path(path).exists():
        return ""
    if _library() is None:
        return f"; or install {EXTRA} to use the Kerberos ticket of this host"
    return "; the Kerberos cache of this host has no valid ticket (kinit renews it)"


def _library() -> Any:
    """The module krb5, where both it and gssapi are installed; otherwise None."""
    try:
        importlib.import_module("gssapi")
        return importlib.import_module("krb5")
    except (ImportError, OSError):
        return None
