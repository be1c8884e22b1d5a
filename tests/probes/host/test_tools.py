"""Foreign programs: their versions, as they say them."""

import pytest

from probes.host import tools


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("fio-3.33\n", "3.33"),
        ("fio-3.41-12-gabc\n", "3.41"),
        ("OpenSSH_9.2p1 Debian-2+deb12u7, OpenSSL 3.0.17 1 Jul 2025\n", "9.2p1"),
        ("Version 4.17.12-Debian\n", "4.17.12"),
        ("command not found", None),
        ("", None),
    ],
)
def test_a_version_is_found_in_what_a_program_says(said, version):
    assert tools.parse_version(said) == version


def test_the_systems_folders_are_looked_at_whatever_path_says(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert tools.find("sh") is not None
