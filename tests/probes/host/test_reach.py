"""A port is reached or the reason is told in a few words."""

from __future__ import annotations

import socket

import pytest

from probes.host.reach import reach


def test_an_open_port_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert reach("127.0.0.1", server.getsockname()[1], 5.0) == ""


def test_a_closed_port_refuses() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert reach("127.0.0.1", bound.getsockname()[1], 5.0) == "refused"


def test_a_host_that_does_not_answer_is_waited_for_so_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def silent(address: object, timeout: float) -> None:
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", silent)
    assert reach("192.0.2.1", 445, 4.0) == "no answer within 4 s"


def test_a_name_that_does_not_resolve_is_told() -> None:
    assert reach("no-such-host.invalid", 445, 5.0) == "the name does not resolve"
