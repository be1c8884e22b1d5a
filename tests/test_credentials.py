"""Who logs in: the file, the environment, the prompt; and what is refused."""

import os

import pytest

from bottleneck import credentials
from probes.records import Access
from probes.stage import Refused


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


def test_a_link_is_not_followed(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(auth_file(tmp_path, "username = anna\n"))
    with pytest.raises(Refused, match="--auth-file"):
        credentials.read_auth_file(link)


def test_a_pipe_is_no_file(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path, 0o600)
    keep = os.open(path, os.O_RDWR)
    with pytest.raises(Refused, match="regular"):
        credentials.read_auth_file(path)
    os.close(keep)


def test_the_option_names_the_user_and_the_environment_the_password(monkeypatch):
    monkeypatch.setenv(credentials.PASSWORD_VARIABLE, "p")
    assert credentials.access("anna", "D", None, False, None) == Access("anna", "p", "D")


def test_a_domain_may_stand_in_front_of_the_user():
    found = credentials.access("D\\anna", None, None, False, lambda text: "p")
    assert found == Access("anna", "p", "D")


def test_the_prompt_is_the_last_way():
    asked = []
    credentials.access("anna", None, None, False, lambda text: asked.append(text) or "p")
    assert asked == ["Password of anna: "]


def test_a_password_behind_the_user_is_refused():
    with pytest.raises(Refused, match="--auth-file") as refused:
        credentials.access("anna%secret", None, None, False, None)
    assert "secret" not in refused.value.text


def test_nobody_is_refused_unless_a_guest_will_do():
    with pytest.raises(Refused, match="--user"):
        credentials.access(None, None, None, False, None)
    assert credentials.access(None, None, None, True, None) == Access(allow_guest=True)


def test_without_a_terminal_a_missing_password_is_refused():
    with pytest.raises(Refused, match=credentials.PASSWORD_VARIABLE):
        credentials.access("anna", None, None, False, None)
