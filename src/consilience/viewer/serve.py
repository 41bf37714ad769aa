"""The viewer on a port: loopback, unless a token is asked for."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from typing import Final

import uvicorn

from consilience.errors import ConfigError
from consilience.viewer.app import make_app
from consilience.viewer.guard import LOOPBACK, Access
from consilience.viewer.study import Study

BACKLOG: Final = 128
_HTTP: Final = 80
SHORTEST: Final = 16
"""Characters that a token must have."""


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
        (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def access_of(host: str, port: int, token: str | None, known_as: Sequence[str] = ()) -> Access:
    """Return who may ask a viewer at an address.

    Args:
        host: Where it listens.
        port: Its port.
        token: What a browser must show; None asks for none.
        known_as: Names by which others reach it.

    Raises:
        ConfigError: Others reach the address and no token is asked for, or the token is too short.
    """
    if token is not None and len(token) < SHORTEST:
        raise ConfigError(
            f"the token has {len(token)} characters", hint=f"Give at least {SHORTEST}; CONSILIENCE_VIEW_TOKEN holds it."
        )
    if token is None and not is_loopback(host):
        raise ConfigError(
            f"{host} is reached from other machines, and no token is asked for",
            hint="Set CONSILIENCE_VIEW_TOKEN, or leave --host away: then only this machine sees the pages.",
        )
    names = {*LOOPBACK, f"[{host}]" if ":" in host else host.lower(), *map(str.lower, known_as)}
    answered = {f"{name}:{port}" for name in names}
    # Browsers leave the port of a scheme away: behind a proxy with TLS the name stands alone.
    answered |= {name for name in names if port == _HTTP} | set(map(str.lower, known_as))
    return Access(frozenset(answered), token)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one.

    Raises:
        ConfigError: The address is taken, or is none of this machine.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"cannot listen at {host}, port {port}: {error.strerror or error}", hint="Choose another: --port."
        ) from error
    return listener


def serve(study: Study, listener: socket.socket, access: Access) -> None:
    """Serve a study until interrupted.

    Args:
        study: What is shown.
        listener: From `listen`.
        access: From `access_of`.
    """
    uvicorn.Server(configured(study, access)).run([listener])


def configured(study: Study, access: Access) -> uvicorn.Config:
    """Return how the server runs: it says nothing of itself and logs no address, which may hold a token."""
    return uvicorn.Config(
        make_app(study, access),
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
