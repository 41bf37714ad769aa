"""The guard in conftest.py works: no test reaches beyond this machine."""

from __future__ import annotations

import socket

import pytest


def test_a_connection_beyond_this_machine_fails_the_test() -> None:
    with socket.socket() as line, pytest.raises(pytest.fail.Exception, match=r"192\.0\.2\.1"):
        line.connect(("192.0.2.1", 9))
    with pytest.raises(pytest.fail.Exception, match=r"example\.invalid"):
        socket.getaddrinfo("example.invalid", 80)


def test_loopback_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as line:
        assert line.getpeername() == server.getsockname()
