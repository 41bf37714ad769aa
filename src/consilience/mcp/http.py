"""The server over streamable HTTP: for this machine alone unless a token is set, and only when asked by its name."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from consilience.api.binding import Binding, token_of
from consilience.errors import ConfigError
from consilience.experiments.settings import keys_and_urls
from consilience.mcp.desk import PATIENCE_S
from consilience.mcp.errands import Project
from consilience.mcp.server import check_installed, make_server

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

HOST: Final = "127.0.0.1"
PORT: Final = 8766
PATH: Final = "/mcp"
TOKEN_VARIABLE: Final = "CONSILIENCE_MCP_TOKEN"  # noqa: S105 - the name of a variable
BACKLOG: Final = 128


class Guarded:
    """An application that answers only who brings the token.

    Args:
        app: The application.
        token: The token.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] == "http":
            brought = [value for name, value in scope["headers"] if name == b"authorization"]
            if len(brought) != 1 or not secrets.compare_digest(brought[0], self._expected):
                from starlette.responses import PlainTextResponse  # noqa: PLC0415 - an extra

                refusal = PlainTextResponse("a token is needed", 401, {"WWW-Authenticate": "Bearer"})
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


def make_app(project: Project, hosts: Sequence[str], *, token: str | None, patience_s: float = PATIENCE_S) -> ASGIApp:
    """Return the server as an application: a foreign ``Host`` gets 421, a foreign ``Origin`` 403, no token 401."""
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415 - an extra

    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=list(hosts),
        allowed_origins=[f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")],
    )
    server = make_server(project, patience_s=patience_s)
    app: Any = server.streamable_http_app(streamable_http_path=PATH, transport_security=security)
    return app if token is None else Guarded(app, token)


def serve_http(
    project: Project, binding: Binding, *, listening: Callable[[str], None], patience_s: float = PATIENCE_S
) -> None:
    """Serve until interrupted; then runs finish what is in flight.

    Args:
        project: Where assistants work.
        binding: Where to listen.
        listening: Is told the address once connections are taken.
        patience_s: Seconds after which a call returns the id of its run.

    Raises:
        ConfigError: The SDK is not installed, the address is taken, or other machines could ask without a token.
    """
    check_installed()
    import uvicorn  # noqa: PLC0415 - an extra

    token = token_of(binding, keys_and_urls(project.root, project.environment), TOKEN_VARIABLE)
    with _listen(binding) as listener:
        port = listener.getsockname()[1]
        app = make_app(project, binding.hosts(port), token=token, patience_s=patience_s)
        listening(f"http://{binding.in_address}:{port}{PATH}")
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        uvicorn.Server(config).run([listener])


def _listen(binding: Binding) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            binding.host, binding.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # The protocol is named because asyncio sends without delay only over sockets that say they are TCP.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise ConfigError(f"{binding.host} is no address: {error.strerror}", hint="Choose another --host.") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"cannot listen on {binding.host}:{binding.port}: {error.strerror}", hint="Choose another --port or --host."
        ) from error
    return listener
