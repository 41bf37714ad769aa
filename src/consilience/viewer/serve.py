"""The viewer on a port: loopback, unless a token is asked for."""

from __future__ import annotations

import socket
from typing import Final

import uvicorn

from consilience.api.binding import Binding
from consilience.errors import ConfigError
from consilience.viewer.app import make_app
from consilience.viewer.guard import Access
from consilience.viewer.study import Study

BACKLOG: Final = 128


def listen(binding: Binding) -> socket.socket:
    """Return a socket that listens.

    Raises:
        ConfigError: The address is taken, or is none of this machine.
    """
    try:
        family = socket.getaddrinfo(binding.host, binding.port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((binding.host, binding.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"cannot listen at {binding.host}, port {binding.port}: {error.strerror or error}",
            hint="Choose another --port or --host.",
        ) from error
    return listener


def serve(study: Study, listener: socket.socket, access: Access) -> None:
    """Serve a study until interrupted.

    Args:
        study: What is shown.
        listener: From `listen`.
        access: Who may ask.
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
