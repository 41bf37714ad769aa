"""What the vendors' adapters share: how a failed call is told in our terms, and how a wait is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from consilience.errors import (
    AccountError,
    FinalModelError,
    ModelError,
    PlanError,
    TransientModelError,
    UnreachedModelError,
)
from consilience.models.request import Request, Usage

HEALING = frozenset({408, 409, 425, 429})
MAX_BODY_IN_MESSAGE = 300
SHORTEST_SECRET = 8
"""Shorter keys are no secrets, and looking for them would deface messages."""


@dataclass(frozen=True)
class Vendor:
    """How to advise a user of one vendor.

    Attributes:
        name: As users know it.
        key_variable: Environment variable that holds the key.
        secret: The key, so that a server that repeats it in an error tells it nobody else.
    """

    name: str
    key_variable: str
    secret: str = field(default="", repr=False)

    def holding(self, secret: str) -> Vendor:
        """Return the vendor with the key that its messages must not show."""
        return replace(self, secret=secret)

    def clean(self, text: str) -> str:
        """Return a text of the vendor's without the key."""
        return text.replace(self.secret, "[key]") if len(self.secret) >= SHORTEST_SECRET else text


def host_of(base_url: str) -> str:
    """Return host and port of a URL, without a user's name and password; they are part of a call's key.

    Example:
        >>> host_of("https://me:secret@api.example.org/v1")
        'api.example.org'
    """
    return urlsplit(base_url).netloc.rpartition("@")[2]


def check_sendable(request: Request) -> None:
    r"""Raise where a prompt holds what no request can carry.

    Raises:
        PlanError: A text holds a lone surrogate.
    """
    for block in (*request.system, *(block for message in request.messages for block in message.blocks)):
        try:
            block.text.encode()
        except UnicodeEncodeError:
            raise PlanError(
                "a prompt holds a lone surrogate, which no request can carry",
                hint="Look for a \\ud8.. to \\udf.. escape in the role's text or the question, and mend it.",
            ) from None


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return the seconds a server asks to wait, from ``Retry-After`` in either form; None when absent or malformed.

    Example:
        >>> retry_after({"retry-after": "2"}, now=datetime(2026, 1, 1, tzinfo=UTC))
        2.0
    """
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - now).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if seconds < float("inf") else None


def status_error(vendor: Vendor, model: str, status: int, body: Any, headers: Mapping[str, str]) -> ModelError:
    """Return the error of an HTTP status, with advice.

    408, 409, 425, 429 and 5xx may heal, except an exhausted quota; 401, 402, 403 and 404 concern the account and stop
    the run; everything else fails this turn.
    """
    said = _message(vendor, body)
    what = f"{vendor.name} refused a call of {model} with status {status}: {said}"
    code = _code(body)
    if any(word in code for word in ("quota", "billing", "spend_limit")) or "credit balance" in said:
        return AccountError(what, hint=f"Add credit to the {vendor.name} account or raise its limit.", status=status)
    if status in HEALING or status >= 500:
        hint = "It was tried again as often as the limits allow; run the same command later to resume."
        wait = retry_after(headers, now=datetime.now(UTC))
        return TransientModelError(what, hint=hint, status=status, retry_after_s=wait)
    advice = {
        401: f"Set {vendor.key_variable} to a valid key.",
        402: f"Add credit to the {vendor.name} account.",
        403: f"The key may not use this model: ask the {vendor.name} account's owner.",
        404: f"Check the base URL, where one is set, and the id {model} with: consilience providers-check.",
    }
    if status in advice:
        return AccountError(what, hint=advice[status], status=status)
    if "context" in said or "too long" in said or status == 413:
        return FinalModelError(
            what, hint="The prompt is longer than the model takes: show fewer sections.", status=status
        )
    if "schema" in said:
        return FinalModelError(what, hint="The vendor refuses the answer's schema: please report it.", status=status)
    return FinalModelError(what, hint="The request is refused as it stands; nothing was charged.", status=status)


def lost_error(vendor: Vendor, model: str, reason: str) -> TransientModelError:
    """Return the error of a call whose outcome is unknown; it may have been billed, so it is charged."""
    return TransientModelError(
        f"the connection to {vendor.name} was lost during a call of {model}: {vendor.clean(reason)}",
        hint="It was tried again as often as the limits allow; run the same command later to resume.",
    )


def broken(vendor: Vendor, model: str, error: Exception) -> TransientModelError:
    """Return the error of a call that has no status: never sent where no connection was made, else of unknown outcome.

    Args:
        vendor: Who was called.
        model: What was called.
        error: The SDK's error; its cause is that of the HTTP library.
    """
    cause = error.__cause__
    if type(cause).__name__ not in {"ConnectError", "ConnectTimeout"}:
        return lost_error(vendor, model, type(error).__name__)
    url = getattr(getattr(error, "request", None), "url", "")
    return UnreachedModelError(
        f"{vendor.name} cannot be reached at {host_of(str(url))}: {vendor.clean(str(cause))}",
        hint="Check the network and, where one is set, the base URL; nothing was sent and nothing is charged.",
    )


def json_body(text: str, vendor: Vendor, model: str) -> dict[str, Any]:
    """Return the JSON object of a response with status 200.

    Raises:
        TransientModelError: It is no JSON object, or an error in the clothes of a success.
    """
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        raise lost_error(vendor, model, "the body is no JSON") from None
    if not isinstance(body, dict):
        raise lost_error(vendor, model, "the body is no JSON object")
    if body.get("type") == "error" or (body.get("error") and "id" not in body):
        raise lost_error(vendor, model, f"status 200 with an error: {_message(vendor, body)}")
    return body


def counts(*values: Any) -> list[int] | None:
    """Return token counts if the vendor gave all of them as whole numbers, else None: part of a bill is no bill.

    Example:
        >>> counts(1, 2), counts(1, None)
        ([1, 2], None)
    """
    whole = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    return whole if len(whole) == len(values) else None


def bill(*buckets: int) -> Usage | None:
    """Return usage in the order of its buckets, or None where the vendor's parts exceed their whole.

    Example:
        >>> bill(1, 0, 0, 0, -2, 4) is None
        True
    """
    return Usage(*buckets) if min(buckets) >= 0 else None


def fields(value: Any) -> dict[str, Any]:
    """Return an object of a body, empty where the vendor put something else in its place.

    Example:
        >>> fields({"a": 1}), fields(None)
        ({'a': 1}, {})
    """
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list in a body; none where the vendor put something else in its place.

    Example:
        >>> objects([{"a": 1}, None]), objects("text")
        ([{'a': 1}], [])
    """
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def _message(vendor: Vendor, body: Any) -> str:
    error = body.get("error", body) if isinstance(body, dict) else body
    said = error.get("message") if isinstance(error, dict) else error
    text = said if isinstance(said, str) else json.dumps(said) if said is not None else "no message"
    return vendor.clean(" ".join(text.split()))[:MAX_BODY_IN_MESSAGE]


def _code(body: Any) -> str:
    error = fields(fields(body).get("error", body))
    inner = fields(error.get("details")).get("error_code")
    return " ".join(str(part) for part in (error.get("code"), error.get("type"), inner) if part)
