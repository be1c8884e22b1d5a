"""Who logs in: the file, the environment, the prompt; and what is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bottleneck.login import credentials
from probes.core.records import Access
from probes.core.stage import Refused


@pytest.fixture(autouse=True)
def no_password_around(monkeypatch):
    monkeypatch.delenv(credentials.PASSWORD_VARIABLE, raising=False)


def auth_file(folder, text, mode=0o600):
    path = folder / "auth"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_smbclients_file_is_understood(tmp_path):
    path = auth_file(tmp_path, "# mine\nusername = anna\npassword = a = b %\n\ndomain=D\n")
    assert credentials.access(None, None, path, False, None) == Access("anna", "a = b %", "D")


def test_what_editors_and_other_programs_leave_in_the_file_is_read(tmp_path):
    text = "\ufeff; mine\r\nusername = anna \r\n # x\r\npassword = \t a b \u2028 \r\nRealm=LAB\r\n"
    path = auth_file(tmp_path, text)
    entries = {"username": "anna", "password": "a b \u2028 ", "realm": "LAB"}
    assert credentials.read_auth_file(path) == entries
    assert credentials.access(None, None, path, False, None).domain == "LAB"


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_a_file_in_another_encoding_is_refused_with_the_remedy(tmp_path, encoding):
    path = auth_file(tmp_path, "")
    path.write_bytes("username = j\u00fcrgen\n".encode(encoding))
    with pytest.raises(Refused, match="not UTF-8 text; save it as UTF-8"):
        credentials.read_auth_file(path)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_file_that_others_may_read_is_refused(tmp_path, mode):
    path = auth_file(tmp_path, "username = anna\npassword = secret\n", mode)
    with pytest.raises(Refused, match="chmod 600") as refused:
        credentials.access(None, None, path, False, None)
    assert "secret" not in refused.value.text


def test_a_line_of_another_format_is_named_without_its_text(tmp_path):
    path = auth_file(tmp_path, "username = anna\nhunter2\n")
    with pytest.raises(Refused, match="line 2") as refused:
        credentials.read_auth_file(path)
    assert "hunter2" not in refused.value.text


def test_links_as_kubernetes_makes_them_are_followed(tmp_path):
    (tmp_path / "..2026").mkdir()
    auth_file(tmp_path / "..2026", "username = anna\n")
    (tmp_path / "..data").symlink_to("..2026")
    link = tmp_path / "secret"
    link.symlink_to("..data/auth")
    assert credentials.read_auth_file(link) == {"username": "anna"}


def test_a_file_of_another_user_is_refused(tmp_path, monkeypatch):
    path = auth_file(tmp_path, "username = anna\n")
    if os.geteuid() == 0:
        os.chown(path, 4711, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(Refused, match="another user"):
        credentials.read_auth_file(path)


def test_a_pipe_without_a_writer_is_refused_at_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path, 0o600)
    with pytest.raises(Refused, match="regular"):
        credentials.read_auth_file(path)


def test_the_pipe_of_a_process_substitution_is_refused_with_the_remedy():
    reader, writer = os.pipe()
    os.write(writer, b"username = anna\n")
    with pytest.raises(Refused, match="pipes are not accepted.*0600"):
        credentials.read_auth_file(Path(f"/dev/fd/{reader}"))
    os.close(reader)
    os.close(writer)


def test_the_password_leaves_the_environment_at_once_and_is_still_known(monkeypatch):
    monkeypatch.setenv(credentials.PASSWORD_VARIABLE, "p")
    credentials.take_from_environment()
    assert credentials.PASSWORD_VARIABLE not in os.environ
    assert credentials.access("anna", "D", None, False, None) == Access("anna", "p", "D")


def test_a_password_is_read_from_a_pipe_that_the_environment_names(monkeypatch):
    reader, writer = os.pipe()
    os.write(writer, "p m\u00f6re {{ \n".encode())
    os.close(writer)
    monkeypatch.setenv(credentials.DESCRIPTOR_VARIABLE, str(reader))
    credentials.take_from_environment()
    assert credentials.DESCRIPTOR_VARIABLE not in os.environ
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(reader)
    assert credentials.access("anna", "D", None, False, None).password == "p m\u00f6re {{ "


@pytest.mark.parametrize("number", ["", "x", "-1", "987654"])
def test_a_descriptor_that_is_none_has_no_password(monkeypatch, number):
    monkeypatch.setenv(credentials.DESCRIPTOR_VARIABLE, number)
    with pytest.raises(Refused, match="no password for anna"):
        credentials.access("anna", None, None, False, None)


def typed(text):
    return b"secret\xff".decode()


@pytest.mark.parametrize("way", ["typed", "set", "piped"])
def test_a_password_that_is_no_utf_8_is_refused_without_its_bytes(monkeypatch, way):
    if way == "set":
        monkeypatch.setenv(credentials.PASSWORD_VARIABLE, os.fsdecode(b"secret\xff"))
    elif way == "piped":
        reader, writer = os.pipe()
        os.write(writer, b"secret\xff")
        os.close(writer)
        monkeypatch.setenv(credentials.DESCRIPTOR_VARIABLE, str(reader))
    with pytest.raises(Refused, match="the password of anna is not UTF-8") as refused:
        credentials.access("anna", None, None, False, typed)
    text = refused.value.text
    assert refused.value.kind == "login" and "secret" not in text and "ff" not in text


@pytest.mark.parametrize(
    ("user", "domain", "line", "account"),
    [
        ("D\\anna", None, "", ("anna", "D")),
        ("D/anna", "d", "", ("anna", "D")),
        ("D;anna", None, "domain = d\nrealm = LAB", ("anna", "D")),
        (None, None, "username = D/anna\nrealm = LAB", ("anna", "D")),
        ("anna", "D", "domain = OTHER", ("anna", "D")),
        ("anna@lab.org", None, "realm = LAB", ("anna@lab.org", "")),
    ],
)
def test_a_domain_comes_with_the_user_or_beside_him(tmp_path, user, domain, line, account):
    path = auth_file(tmp_path, f"password = p\n{line}\n")
    access = credentials.access(user, domain, path, False, None)
    assert (access.username, access.domain) == account


@pytest.mark.parametrize(("domain", "says"), [("OTHER", "--domain"), (None, "domain =")])
def test_two_domains_are_refused_before_any_password_is_asked_for(tmp_path, domain, says):
    path = auth_file(tmp_path, "domain = OTHER\n")
    with pytest.raises(Refused) as refused:
        credentials.access("LAB\\anna", domain, path, False, None)
    assert refused.value.kind == "usage"
    assert refused.value.text == f"the domain in front of the user contradicts {says}; use one"


def test_the_prompt_is_the_last_way():
    prompts = []
    credentials.access("anna", None, None, False, lambda text: prompts.append(text) or "p")
    assert prompts == ["Password of anna: "]


@pytest.mark.parametrize(
    ("user", "says"),
    [("anna%secret", "--auth-file"), (None, "--user"), ("anna", credentials.PASSWORD_VARIABLE)],
)
def test_whoever_nobody_knows_or_has_no_password_is_refused(user, says):
    with pytest.raises(Refused, match=says) as refused:
        credentials.access(user, None, None, False, None)
    assert "secret" not in refused.value.text
    assert credentials.access(None, None, None, True, None) == Access(allow_guest=True)


CODE = """
from pathlib import Path
from bottleneck.login import credentials
shown = Path("/proc/self/environ").read_bytes()
assert b"BOTTLENECK_PASSWORD=hunter2 and more" in shown
credentials.take_from_environment()
assert credentials._taken == {"BOTTLENECK_PASSWORD": "hunter2 and more"}
shown = Path("/proc/self/environ").read_bytes()
assert b"hunter2" not in shown and b"more" not in shown
assert b"BEFORE=1" in shown and b"BOTTLENECK_PASSWORDS=2" in shown
import subprocess
assert "BOTTLENECK_PASSWORD=" not in subprocess.run(["env"], capture_output=True, text=True).stdout
"""


def test_a_secret_that_is_taken_is_overwritten_where_proc_shows_it():
    words = {"BEFORE": "1", "BOTTLENECK_PASSWORD": "hunter2 and more", "BOTTLENECK_PASSWORDS": "2"}
    environment = {**os.environ, **words}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
