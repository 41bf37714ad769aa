"""Who may ask, and what a page may do: Host, Origin and token are checked before any page is made."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE: Final = "consilience_token"
SECURITY: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """Who may ask.

    Attributes:
        hosts: Values of the header ``Host`` that are answered; others may come from a name that was bound anew to
            this address.
        token: What a browser must show; None asks for none, which is right on loopback alone.
    """

    hosts: frozenset[str]
    token: str | None = None


class Guard:
    """An application behind its guard: pages are read only, by whom `Access` lets in, under `SECURITY`.

    Args:
        app: What is guarded.
        access: Who may ask.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY)
            await send(message)

        refusal = self._refusal(scope)
        await (self._app if refusal is None else refusal)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        if host not in self._access.hosts:
            return PlainTextResponse("This host name is not served here.\n", status_code=400)
        if origin is not None and origin.lower() not in {f"http://{host}", f"https://{host}"}:  # a proxy may add TLS
            return PlainTextResponse("Requests from other pages are refused.\n", status_code=403)
        if scope["method"] not in {"GET", "HEAD"}:
            return PlainTextResponse("Pages are read only.\n", status_code=405, headers={"Allow": "GET, HEAD"})
        return None if self._access.token is None else self._unknown(scope, headers, self._access.token)

    def _unknown(self, scope: Scope, headers: Headers, token: str) -> Response | None:
        """Return what is said to a browser that has not shown the token; one that brings it in the address keeps it."""
        shown = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if _same(shown, token) or _same(bearer, token):
            return None
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if not _same(query.pop("token", [""])[0], token):
            return PlainTextResponse("Open the address with ?token=… once.\n", status_code=401)
        # The address with the token must not stay in the browser's history as the page's own.
        rest = urlencode(query, doseq=True)
        answer = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), status_code=303)
        answer.set_cookie(COOKIE, token, httponly=True, samesite="strict")
        return answer


def _same(shown: str, token: str) -> bool:
    return hmac.compare_digest(shown.encode("utf-8", "surrogatepass"), token.encode("utf-8", "surrogatepass"))
