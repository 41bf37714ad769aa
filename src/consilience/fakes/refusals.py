"""What a vendor refuses, and the words in which each says so."""

from __future__ import annotations

from typing import Any, Literal

from consilience.errors import ModelError

Vendor = Literal["anthropic", "openai"]

ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
OPENAI_TYPES = {
    401: ("invalid_request_error", "invalid_api_key"),
    402: ("billing_error", "billing_hard_limit_reached"),
    404: ("invalid_request_error", "not_found"),
    429: ("requests", "rate_limit_exceeded"),
    503: ("server_error", "server_is_overloaded"),
}


class RefusedError(ModelError):
    """A request that the fake answers with an error.

    Args:
        status: HTTP status.
        message: What is wrong, as the vendor would say it.
        code: The vendor's stable code, where it gives one (OpenAI ``code``, Anthropic ``details.error_code``).
        kind: The error type, where it is not the usual one of the status.
        param: The parameter at fault (OpenAI).
        headers: Further response headers.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        kind: str | None = None,
        param: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.http_status = status
        self.code = code
        self.kind = kind
        self.param = param
        self.headers = headers or {}
        super().__init__(message, hint="Send what the vendor accepts.", status=status)


def error_body(vendor: Vendor, refused: RefusedError, request_id: str) -> dict[str, Any]:
    """Return the JSON body of an error in the vendor's shape.

    Example:
        >>> error_body("anthropic", RefusedError(529, "Overloaded"), "req_1")["error"]
        {'type': 'overloaded_error', 'message': 'Overloaded'}
    """
    status = refused.http_status
    if vendor == "anthropic":
        error: dict[str, Any] = {
            "type": refused.kind or ANTHROPIC_TYPES.get(status, "api_error"),
            "message": refused.message,
        }
        if refused.code:
            error["details"] = {"error_code": refused.code}
        return {"type": "error", "error": error, "request_id": request_id}
    kind, code = OPENAI_TYPES.get(status, ("server_error" if status >= 500 else "invalid_request_error", None))
    return {
        "error": {
            "message": refused.message,
            "type": refused.kind or kind,
            "param": refused.param,
            "code": refused.code or code,
        }
    }
