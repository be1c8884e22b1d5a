"""Logging in by a Kerberos ticket, at a KDC and an smbd of the test's own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from probes.core.records import Access, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files.open_files import listeners
from probes.programs.samba import private_samba
from probes.smb import kerberos
from probes.smb.login import open_session
from probes.smb.session import login
from tests.living import entered, until

REALM = "BOTTLENECK.TEST"
PASSWORD = "correct horse 47"
MISSING = [name for name in ("krb5", "gssapi") if importlib.util.find_spec(name) is None] + [
    name for name in ("krb5kdc", "kadmin.local", "kdb5_util", "kinit") if not shutil.which(name)
]
needs_a_kdc = pytest.mark.skipif(
    bool(MISSING),
    reason=f"NOT TESTED here: Kerberos needs {', '.join(MISSING)} "
    f"(apt-get install krb5-kdc krb5-admin-server krb5-user; {kerberos.EXTRA})",
)


def command(*words: str, text: str = "") -> None:
    subprocess.run(words, input=text, text=True, check=True, capture_output=True, timeout=30)


@pytest.fixture
def keytab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A KDC with this account and cifs/localhost; yields the key file of the latter."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "krb5.conf").write_text(
        f"[libdefaults]\ndefault_realm = {REALM}\ndns_lookup_kdc = false\nrdns = false\n"
        "dns_canonicalize_hostname = false\n"
        f"[realms]\n{REALM} = {{\nkdc = 127.0.0.1:{port}\n}}\n[domain_realm]\nlocalhost = {REALM}\n"
        f"[logging]\ndefault = FILE:{tmp_path}/log\nkdc = FILE:{tmp_path}/log\n"
    )
    # a standalone Samba takes no ticket that carries a domain's groups
    (tmp_path / "kdc.conf").write_text(
        f"[kdcdefaults]\nkdc_listen = 127.0.0.1:{port}\nkdc_tcp_listen = 127.0.0.1:{port}\n"
        f"[realms]\n{REALM} = {{\ndatabase_name = {tmp_path}/principals\n"
        f"key_stash_file = {tmp_path}/stash\nacl_file = {tmp_path}/acl\ndisable_pac = true\n}}\n"
    )
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    monkeypatch.setenv("KRB5_KDC_PROFILE", str(tmp_path / "kdc.conf"))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/cache")
    command("kdb5_util", "create", "-s", "-r", REALM, "-P", PASSWORD)
    account, service = psutil.Process().username(), "cifs/localhost"
    command("kadmin.local", "-q", f'addprinc -pw "{PASSWORD}" {account}')
    command("kadmin.local", "-q", f"addprinc -randkey {service}")
    command("kadmin.local", "-q", f"ktadd -k {tmp_path}/keytab {service}")
    kdc = subprocess.Popen(["krb5kdc", "-n"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert until(lambda: kdc.poll() is not None or bool(listeners("127.0.0.1", port)))
        assert kdc.poll() is None
        command("kinit", account, text=PASSWORD)
        yield tmp_path / "keytab"
    finally:
        kdc.terminate()
        kdc.wait()


@needs_a_kdc
def test_a_ticket_logs_in_signs_and_encrypts(keytab: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    options = (
        f"realm = {REALM}",
        "kerberos method = dedicated keytab",
        f"dedicated keytab file = FILE:{keytab}",
        "server min protocol = NT1",
    )
    assert kerberos.principal() == f"{psutil.Process().username()}@{REALM}"
    with private_samba(tmp_path / "shared", password="x", options=options) as server:
        peer = Endpoint(host="localhost", port=server.port, share=server.share)
        for dialect, security, used in [
            ("2.0.2", "signed", "hmac-sha256"),
            ("3.0", "encrypted", "aes-128-ccm"),
            ("3.1.1", "signed", "aes-gmac"),
            ("", "encrypted", "aes-128-gcm"),
        ]:
            with open_session(peer, dialect, security) as session:
                session.close(session.create_folder("x"))
                assert used in (session.facts.signing, session.facts.encryption)
        with pytest.raises(Unavailable, match="Kerberos is not supported"):
            entered(open_session(peer, "smb1"))
        nameless = Endpoint(host="127.0.0.1", port=server.port, share=server.share)
        with pytest.raises(
            Refused, match="not found in Kerberos database; use the server name"
        ) as caught:
            entered(open_session(nameless))
        assert caught.value.kind == "login" and "\n" not in caught.value.text
        # a user who is named logs in by his password, whatever tickets there are
        endpoint = Endpoint(
            host="localhost", port=server.port, share=server.share, access=Access("nobody", "x")
        )
        with pytest.raises(Refused, match="wrong user or password"), open_session(endpoint):
            pass
    (tmp_path / "cache").unlink()
    assert kerberos.principal() is None
    with pytest.raises(Refused, match="no user given"):
        login(peer)


def test_a_ticket_that_cannot_be_used_here_is_pointed_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
    for module in ("krb5", "gssapi"):
        monkeypatch.setitem(sys.modules, module, None)
    assert kerberos.principal() is None
    assert kerberos.hint() == ""
    cache.touch()
    assert kerberos.EXTRA in kerberos.hint()
    monkeypatch.setenv("KRB5CCNAME", os.fspath(cache))
    assert kerberos.EXTRA in kerberos.hint()
    monkeypatch.setenv("KRB5CCNAME", "KEYRING:persistent:0")
    assert kerberos.hint() == ""
    monkeypatch.setenv("KRB5CCNAME", os.fspath(cache))
    with pytest.raises(
        Refused, match="no user given; use --user NAME or --allow-guest; or install"
    ):
        login(Endpoint(host="127.0.0.1"))
