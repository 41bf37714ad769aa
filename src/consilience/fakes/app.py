"""The vendors' endpoints as one ASGI application."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from consilience.fakes.anthropic_shapes import read_batch, read_count, read_messages
from consilience.fakes.batches import Batches
from consilience.fakes.calls import Call, Endpoint
from consilience.fakes.faults import Fault
from consilience.fakes.hits import Hit, HitJournal
from consilience.fakes.openai_shapes import BatchShape, read_chat, read_responses, valid
from consilience.fakes.refusals import RefusedError, Vendor, error_body
from consilience.fakes.replies import anthropic_model, models_body, openai_model, reply_body
from consilience.fakes.settings import Settings
from consilience.fakes.speaking import Speaker, vendor_of
from consilience.fakes.uploads import read_upload

JSON = "application/json"
TRICKLE_S = 0.05
"""Seconds between two bytes of an answer that trickles."""
JSON_LINES = "application/x-jsonl"
REQUEST_ID = {"anthropic": "request-id", "openai": "x-request-id"}
Handler = Callable[["Exchange"], Awaitable[Response]]


class HalfBody(Response):
    """A response that promises its whole body and sends half; the server then closes the connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the headers and half of the body."""
        del scope, receive
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        half = bytes(self.body)[: len(self.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})


class Trickle(Response):
    """A response whose body comes byte by byte until the other side gives up."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the headers, and a byte at a time."""
        del scope
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        gone = anyio.Event()

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                continue
            gone.set()

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            for byte in bytes(self.body):
                if gone.is_set():
                    break
                await send({"type": "http.response.body", "body": bytes([byte]), "more_body": True})
                with anyio.move_on_after(TRICKLE_S):
                    await gone.wait()
            group.cancel_scope.cancel()


class Exchange:
    """One request on its way to an answer.

    Args:
        request: The request.
        hit: Its entry in the journal.
        vendor: Whose endpoint it reached.
    """

    def __init__(self, request: Request, hit: Hit, vendor: Vendor) -> None:
        self.request = request
        self.hit = hit
        self.vendor = vendor
        self.base_url = str(request.base_url).rstrip("/")

    async def json(self) -> Any:
        """Return the body as JSON values.

        Raises:
            RefusedError: It is none.
        """
        try:
            return json.loads(await self.request.body())
        except ValueError as error:
            raise RefusedError(400, "We could not parse the JSON body of your request.") from error

    def param(self, name: str) -> str:
        """Return a parameter of the path."""
        return str(self.request.path_params[name])


class Fake:
    """The state behind the endpoints.

    Args:
        settings: How it behaves.
        hits: Where requests are recorded.
    """

    def __init__(self, settings: Settings, hits: HitJournal) -> None:
        self.settings = settings
        self.hits = hits
        self._speaker = Speaker(settings)
        self._batches = Batches(settings.batches, seed=settings.seed, clock=settings.clock)
        self._replies = 0

    # Text

    def read(self, endpoint: Endpoint, body: Any) -> Call:
        """Return the call that a body makes.

        Raises:
            RefusedError: As the vendor would.
        """
        if endpoint == "messages":
            return read_messages(body, self.settings.models)
        if endpoint == "responses":
            return read_responses(body, self.settings.models)
        return read_chat(body, self.settings.models, ignore_schema=self.settings.ignore_schema)

    async def messages(self, exchange: Exchange) -> Response:
        """Answer ``/v1/messages``."""
        return await self._generate(exchange, "messages")

    async def responses(self, exchange: Exchange) -> Response:
        """Answer ``/v1/responses``."""
        body = await exchange.json()
        if isinstance(body, dict) and body.get("store") is not False:
            exchange.hit.notes.append("store is not false: the vendor would keep the response")
        return await self._generate(exchange, "responses")

    async def chat(self, exchange: Exchange) -> Response:
        """Answer ``/v1/chat/completions``."""
        return await self._generate(exchange, "chat")

    async def _generate(self, exchange: Exchange, endpoint: Endpoint) -> Response:
        call = self.read(endpoint, await exchange.json())
        fault = self._fault(exchange.hit)
        refused = None if fault is None else fault.refusal(exchange.vendor)
        if fault is not None and fault.kind == "hang":
            return await _hang(exchange)
        if fault is not None and fault.kind == "error_body" and refused is not None:
            return _json(error_body(exchange.vendor, refused, _request_id(exchange.hit)))
        if refused is not None:
            raise refused
        spoken = self._speaker.speak(call, fault)
        if self.settings.latency_s:
            await anyio.sleep(self.settings.latency_s)
        self._speaker.commit(call, spoken)
        self._replies += 1
        body = reply_body(call, spoken, number=self._replies, now=self.settings.clock())
        exchange.hit.usage = body.get("usage")
        if fault is not None and fault.kind == "broken_body":
            return Response(json.dumps(body).encode("ascii")[:-1], media_type=JSON)
        if fault is not None and fault.kind == "trickle":
            return Trickle(json.dumps(body).encode("ascii"), media_type=JSON)
        return _json(body, whole=fault is None or fault.kind != "drop")

    def _fault(self, hit: Hit) -> Fault | None:
        script = self.settings.script
        if not isinstance(script, Sequence):
            fault = script(hit)
        else:
            index = hit.call_index
            fault = script[index] if index is not None and index < len(script) else None
        hit.fault = None if fault is None else fault.kind
        return fault

    async def count_tokens(self, exchange: Exchange) -> Response:
        """Answer ``/v1/messages/count_tokens``."""
        call = read_count(await exchange.json(), self.settings.models)
        return _json({"input_tokens": call.total_tokens})

    # Batches and files

    def _answer(self, endpoint: Endpoint) -> Callable[[Any, Fault | None], dict[str, Any]]:
        def answer(body: Any, fault: Fault | None) -> dict[str, Any]:
            call = self.read(endpoint, body)
            refused = None if fault is None else fault.refusal(vendor_of(call))
            if refused is not None:
                raise refused
            spoken = self._speaker.speak(call, fault, tier="batch")
            self._speaker.commit(call, spoken)
            self._replies += 1
            return reply_body(call, spoken, number=self._replies, now=self.settings.clock())

        return answer

    async def create_message_batch(self, exchange: Exchange) -> Response:
        """Answer ``POST /v1/messages/batches``."""
        lines = read_batch(await exchange.json())
        return _json(self._batches.create_messages(lines, self._answer("messages"), exchange.base_url))

    async def message_batch(self, exchange: Exchange) -> Response:
        """Answer ``GET /v1/messages/batches/{id}``."""
        return _json(self._batches.retrieve_messages(exchange.param("id"), exchange.base_url))

    async def message_batch_results(self, exchange: Exchange) -> Response:
        """Answer ``GET /v1/messages/batches/{id}/results``."""
        return Response(self._batches.message_results(exchange.param("id")), media_type=JSON_LINES)

    async def cancel_message_batch(self, exchange: Exchange) -> Response:
        """Answer ``POST /v1/messages/batches/{id}/cancel``."""
        self._batches.cancel(exchange.param("id"))
        return await self.message_batch(exchange)

    async def upload(self, exchange: Exchange) -> Response:
        """Answer ``POST /v1/files``."""
        kind = exchange.request.headers.get("content-type", "")
        name, content = read_upload(kind, await exchange.request.body())
        return _json(self._batches.add_file(name, content, "batch"))

    async def file(self, exchange: Exchange) -> Response:
        """Answer ``GET /v1/files/{id}``."""
        return _json(self._batches.file(exchange.param("id"))[0])

    async def file_content(self, exchange: Exchange) -> Response:
        """Answer ``GET /v1/files/{id}/content``."""
        return Response(self._batches.file(exchange.param("id"))[1], media_type="application/octet-stream")

    async def create_batch(self, exchange: Exchange) -> Response:
        """Answer ``POST /v1/batches``."""
        shape = valid(BatchShape, await exchange.json())
        endpoint: Endpoint = "responses" if shape.endpoint == "/v1/responses" else "chat"
        return _json(self._batches.create_responses(shape, self._answer(endpoint)))

    async def batch(self, exchange: Exchange) -> Response:
        """Answer ``GET /v1/batches/{id}``."""
        return _json(self._batches.retrieve_responses(exchange.param("id")))

    async def cancel_batch(self, exchange: Exchange) -> Response:
        """Answer ``POST /v1/batches/{id}/cancel``."""
        self._batches.cancel(exchange.param("id"))
        return await self.batch(exchange)

    # Models

    async def list_models(self, exchange: Exchange) -> Response:
        """Answer ``GET /v1/models``."""
        ids = {name: spec.provider for name, spec in self.settings.models.items()}
        return _json(models_body(ids, anthropic=exchange.vendor == "anthropic"))

    async def model(self, exchange: Exchange) -> Response:
        """Answer ``GET /v1/models/{id}``."""
        name = exchange.param("id")
        spec = self.settings.models.get(name)
        anthropic = exchange.vendor == "anthropic"
        if spec is None or (spec.provider == "anthropic") != anthropic:
            raise RefusedError(404, f"model: {name}", code=None if anthropic else "model_not_found")
        return _json(anthropic_model(name) if anthropic else openai_model(name))

    async def nothing(self, exchange: Exchange) -> Response:
        """Answer every other path.

        Raises:
            RefusedError: Always.
        """
        raise RefusedError(404, f"{exchange.request.method} {exchange.request.url.path} is no endpoint")

    # Around every endpoint

    def authorise(self, exchange: Exchange) -> None:
        """Refuse a request that does not say who pays.

        Raises:
            RefusedError: No key, an unknown one, or no API version.
        """
        headers = exchange.request.headers
        key = headers.get("x-api-key", "") if exchange.vendor == "anthropic" else ""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        key = key or (token.strip() if scheme == "Bearer" else "")
        if not key:
            raise RefusedError(401, "authentication is required: send x-api-key or Authorization: Bearer")
        if self.settings.keys is not None and key not in self.settings.keys:
            raise RefusedError(401, "invalid API key")
        if exchange.vendor == "anthropic" and "anthropic-version" not in headers:
            raise RefusedError(400, "anthropic-version: header is required")


def make_app(current: Callable[[], Fake]) -> Starlette:
    """Return the application.

    Args:
        current: Returns the fake that answers now, so that a running server can be reset.
    """

    def endpoint(name: str) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            fake = current()
            vendor = _vendor(request)
            hit = fake.hits.add(
                method=request.method,
                path=request.url.path,
                query=request.url.query,
                headers=request.headers,
                body=await request.body(),
            )
            exchange = Exchange(request, hit, vendor)
            handler: Handler = getattr(fake, name)
            try:
                fake.authorise(exchange)
                response = await handler(exchange)
            except RefusedError as refused:
                if hit.fault is None:
                    hit.refused = refused.message
                response = _json(error_body(vendor, refused, _request_id(hit)), status=refused.http_status)
                response.headers.update(refused.headers)
            response.headers[REQUEST_ID[vendor]] = _request_id(hit)
            fake.hits.done(hit, None if hit.fault == "hang" else response.status_code)
            return response

        return respond

    routes = [
        ("POST", "/v1/messages", "messages"),
        ("POST", "/v1/messages/count_tokens", "count_tokens"),
        ("POST", "/v1/messages/batches", "create_message_batch"),
        ("GET", "/v1/messages/batches/{id}", "message_batch"),
        ("GET", "/v1/messages/batches/{id}/results", "message_batch_results"),
        ("POST", "/v1/messages/batches/{id}/cancel", "cancel_message_batch"),
        ("POST", "/v1/responses", "responses"),
        ("POST", "/v1/chat/completions", "chat"),
        ("POST", "/v1/files", "upload"),
        ("GET", "/v1/files/{id}", "file"),
        ("GET", "/v1/files/{id}/content", "file_content"),
        ("POST", "/v1/batches", "create_batch"),
        ("GET", "/v1/batches/{id}", "batch"),
        ("POST", "/v1/batches/{id}/cancel", "cancel_batch"),
        ("GET", "/v1/models", "list_models"),
        ("GET", "/v1/models/{id:path}", "model"),
    ]
    every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    return Starlette(
        routes=[
            *(Route(path, endpoint(name), methods=[method]) for method, path, name in routes),
            Route("/{path:path}", endpoint("nothing"), methods=every),
        ]
    )


def _vendor(request: Request) -> Vendor:
    if request.url.path.startswith("/v1/messages"):
        return "anthropic"
    if request.url.path.startswith("/v1/models") and "anthropic-version" in request.headers:
        return "anthropic"
    return "openai"


async def _hang(exchange: Exchange) -> Response:
    """Wait until the other side gives up."""
    while (await exchange.request.receive())["type"] != "http.disconnect":
        continue
    return Response(status_code=499)


def _request_id(hit: Hit) -> str:
    return f"req_fake_{hit.index + 1:06d}"


def _json(body: Any, *, status: int = 200, whole: bool = True) -> Response:
    """Return a JSON response; ASCII only, so that lone surrogates travel as escapes."""
    kind = Response if whole else HalfBody
    return kind(json.dumps(body).encode("ascii"), status_code=status, media_type=JSON)
