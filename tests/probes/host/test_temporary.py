"""TMPDIR takes the place of /tmp and /var/tmp, for what is made and for what is cleaned up."""

from __future__ import annotations

import tempfile

import pytest

from probes.host import leftovers, temporary


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """What tempfile found out earlier."""
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_a_folder_of_ones_own_is_the_only_one(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert temporary.on_disk() == str(tmp_path)
    assert temporary.folders() == (str(tmp_path),)
    (tmp_path / "bottleneck-0123456789abcdef").mkdir()
    (only,) = leftovers.find([], 0.0)
    assert only.path == str(tmp_path / "bottleneck-0123456789abcdef")


def test_without_one_it_is_a_disk_and_the_usual_one(monkeypatch):
    monkeypatch.delenv("TMPDIR", raising=False)
    assert temporary.on_disk() == "/var/tmp"
    assert set(temporary.folders()) == {"/var/tmp", tempfile.gettempdir()}
