"""The fake on loopback: inside a test's process, or alone as ``consilience fake-server``."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import anyio
import uvicorn
from anyio.from_thread import start_blocking_portal
from starlette.applications import Starlette

from consilience.errors import ConfigError
from consilience.fakes.app import Fake, make_app
from consilience.fakes.calls import Responder
from consilience.fakes.faults import Script
from consilience.fakes.hits import Hit, HitJournal
from consilience.fakes.settings import Settings

HOST = "127.0.0.1"
BACKLOG = 2_048
IDLE_S = 3_600
HITS_KEPT_ALONE = 1_000


class FakeServer:
    """A running fake.

    Attributes:
        port: Where it listens.

    Args:
        settings: How it behaves.
        port: Where it listens.
    """

    def __init__(self, settings: Settings, port: int) -> None:
        self.port = port
        self._fake = Fake(settings, HitJournal(settings.clock))
        self._stop: Callable[[], None] = lambda: None

    @property
    def base_url(self) -> str:
        """Base URL for Anthropic's SDK."""
        return f"http://{HOST}:{self.port}"

    @property
    def openai_base_url(self) -> str:
        """Base URL for OpenAI's SDK and compatible clients."""
        return f"{self.base_url}/v1"

    @property
    def hits(self) -> tuple[Hit, ...]:
        """All requests received since the start or the last reset."""
        return self._fake.hits.all()

    def calls(self, model: str | None = None) -> tuple[Hit, ...]:
        """Return the requests for text, of one model where it is named."""
        calls = (hit for hit in self.hits if hit.call_index is not None)
        return tuple(hit for hit in calls if model is None or hit.model == model)

    def wait_for_calls(self, count: int, timeout_s: float = 10.0) -> bool:
        """Block until so many requests for text have come in; False when time runs out first."""
        return self._fake.hits.wait_for(count, timeout_s)

    def reset(
        self, script: Script = (), responder: Responder | None = None, *, settings: Settings | None = None
    ) -> None:
        """Forget hits, caches, batches and files and behave anew; requests under way end as they began."""
        chosen = replace(settings or Settings(), script=script, responder=responder)
        self._fake = Fake(chosen, HitJournal(chosen.clock))

    def stop(self) -> None:
        """Cut all connections and listen no more; a second time does nothing."""
        stop, self._stop = self._stop, lambda: None
        stop()


class _Server(uvicorn.Server):
    """A server that stops at once: open connections are cut, so that nothing waits for a call that hangs."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stopping = anyio.Event()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._stopping.wait()

    async def stop(self) -> None:
        self._stopping.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        while self.server_state.tasks:  # noqa: ASYNC110 - the server announces the end of its tasks to nobody
            await anyio.sleep(0.001)


@contextmanager
def running_fake(
    script: Script = (), responder: Responder | None = None, *, settings: Settings | None = None
) -> Iterator[FakeServer]:
    """Run a fake in a thread on a free loopback port for the length of a ``with`` block.

    Args:
        script: What goes wrong, call by call.
        responder: Writes the replies; None draws them from the schema.
        settings: Everything else; its own script and responder are replaced.
    """
    listener = _listen(0)
    fake = FakeServer(Settings(), listener.getsockname()[1])
    fake.reset(script, responder, settings=settings)
    with start_blocking_portal() as portal:
        server = portal.call(_Server, _config(make_app(lambda: fake._fake)))  # noqa: SLF001 - the server is its owner
        done = portal.start_task_soon(server.serve, [listener])

        def stop() -> None:
            portal.call(server.stop)
            done.result()

        fake._stop = stop  # noqa: SLF001 - as above
        try:
            yield fake
        finally:
            fake.stop()


def serve(port: int, *, settings: Settings | None = None, on_hit: Callable[[Hit], None] | None = None) -> None:
    """Run a fake until interrupted.

    Args:
        port: Where to listen on loopback.
        settings: How it behaves.
        on_hit: Called with each request once it is answered.

    Raises:
        ConfigError: The port is taken.
    """
    chosen = settings or Settings()
    fake = Fake(chosen, HitJournal(chosen.clock, kept=HITS_KEPT_ALONE, on_done=on_hit))
    with _listen(port) as listener:
        uvicorn.Server(_config(make_app(lambda: fake))).run([listener])


def _config(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=1,
    )


def _listen(port: int) -> socket.socket:
    # The protocol is named because asyncio sends without delay only over sockets that say they are TCP.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen on {HOST}:{port}: {error.strerror}", hint="Choose another --port.") from error
    return listener
