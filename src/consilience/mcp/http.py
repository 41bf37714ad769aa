"""The server over streamable HTTP: for this machine alone unless a token is set, and only when asked by its name."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

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
SHORTEST_TOKEN: Final = 16
BACKLOG: Final = 128
LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Binding:
    """Where the server listens and who may ask.

    Attributes:
        host: Address or name it listens on.
        port: Its port; 0 takes a free one.
        names: Further names it is asked by, such as that of a reverse proxy.
    """

    host: str = HOST
    port: int = PORT
    names: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def token_of(project: Project, binding: Binding) -> str | None:
    """Return the token that every request must bring; None where none is set and only this machine can ask.

    Raises:
        ConfigError: The token is short, or is missing where other machines could ask.
    """
    token = keys_and_urls(project.root, project.environment).get(TOKEN_VARIABLE) or None
    if token is None and not binding.is_loopback:
        raise ConfigError(
            f"{binding.host} can be reached from other machines, and no token is set",
            hint=f"Set {TOKEN_VARIABLE} in the environment or .env, or leave --host out.",
        )
    if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise ConfigError(
            f"{TOKEN_VARIABLE} is not fit for a token",
            hint=f"At least {SHORTEST_TOKEN} printable characters of ASCII, such as openssl rand -hex 32 prints.",
        )
    return token


def hosts_of(binding: Binding, port: int) -> list[str]:
    """Return what a ``Host`` header may say: any other name is a rebound one.

    Example:
        >>> hosts_of(Binding(), 8766)
        ['127.0.0.1:8766', 'localhost:8766', '[::1]:8766']
    """
    own = f"[{binding.host}]" if ":" in binding.host else binding.host
    names = dict.fromkeys((*LOOPBACK_NAMES, *(() if binding.is_loopback else (own,)), *binding.names))
    bare = [*names] if port == 80 else [*binding.names]  # a proxy in front serves its name without our port
    return [*(f"{name}:{port}" for name in names), *bare]


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

    token = token_of(project, binding)
    with _listen(binding) as listener:
        port = listener.getsockname()[1]
        app = make_app(project, hosts_of(binding, port), token=token, patience_s=patience_s)
        host = f"[{binding.host}]" if ":" in binding.host else binding.host
        listening(f"http://{host}:{port}{PATH}")
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
