"""Metaculus: its questions over the API, behind a key, and the submission of forecasts, which is a step of its own.

Written against API 2.0 (``docs/openapi.yml`` of Metaculus/metaculus, as of 2025): ``GET /api/posts/`` page by page,
``GET /api/posts/ID/``, ``POST /api/questions/forecast/``. The key goes into the header and nowhere else. Nothing is
sent twice: what failed is an error, and trying again is the caller's decision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from consilience.core.question import Strict
from consilience.errors import ConfigError, DataError, SearchError, SearchFailure, reason
from consilience.forecasting.feeds.base import Skipped, distinct, objects, read_json
from consilience.forecasting.feeds.metaculus_posts import questions_of_post
from consilience.forecasting.questions import ForecastQuestion

if TYPE_CHECKING:
    import httpx2

KEY_VARIABLE = "METACULUS_TOKEN"
BASE_URL = "https://www.metaculus.com"
"""Environment variable that holds the key; who builds the client reads it."""
PAGE = 100
MOST_PAGES = 1_000
MOST_BYTES = 64 * 1024**2
"""Of one answer."""
TOLD = 300
"""Characters of a refusal that are repeated."""

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_STATUS: dict[int, tuple[SearchFailure, str]] = {
    401: ("refused", f"Check the key in {KEY_VARIABLE}."),
    403: ("refused", f"The account behind {KEY_VARIABLE} may not do this; Metaculus grants access on request."),
    404: ("not_found", "Check the id."),
    429: ("rate_limited", "Wait; Metaculus admits 1,000 requests an hour."),
}


class MetaculusForecast(Strict):
    """One forecast as Metaculus takes it; exactly one of the three forms.

    Attributes:
        question: The number of the question, which is not that of its page.
        probability_yes: Of a yes-no question.
        probability_yes_per_category: Of multiple choice, by the option's label.
        continuous_cdf: Of a numeric, discrete or date question.

    Raises:
        ValueError: None or several of the forms are given.
    """

    question: int = Field(ge=1)
    probability_yes: float | None = Field(default=None, ge=0, le=1)
    probability_yes_per_category: dict[str, float] | None = None
    continuous_cdf: tuple[float, ...] | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        forms = (self.probability_yes, self.probability_yes_per_category, self.continuous_cdf)
        if sum(form is not None for form in forms) != 1:
            raise ValueError("a forecast is one probability, one per category, or a cumulative distribution")
        return self


@dataclass(frozen=True)
class MetaculusClient:
    """Reads questions from Metaculus.

    Attributes:
        token: The key.
        base_url: The server; https, but for one on this machine.
        timeout_s: Seconds a request may take to connect, and between bytes.

    Raises:
        ConfigError: There is no key, or it cannot be sent in a header; or the key would travel unencrypted.
    """

    token: str = field(repr=False)
    base_url: str = BASE_URL
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        if not self.token:
            raise ConfigError("Metaculus needs a key", hint=f"Put it in the environment as {KEY_VARIABLE}.")
        if not all("!" <= sign <= "~" for sign in self.token):
            raise ConfigError(
                "the Metaculus key holds spaces or signs no key has", hint=f"Copy it into {KEY_VARIABLE} again."
            )
        parts = urlsplit(self.base_url)
        if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
            raise ConfigError(f"{self.base_url} would send the key unencrypted", hint="Use https.")

    def questions(
        self,
        *,
        tournament: str | None = None,
        statuses: Sequence[str] = ("open",),
        limit: int | None = None,
        skipped: list[Skipped] | None = None,
    ) -> list[ForecastQuestion]:
        """Return the questions of all pages, the earliest published first.

        Args:
            tournament: Slug or number of a tournament; None for the whole site.
            statuses: Of the posts: ``open``, ``upcoming``, ``closed``, ``resolved``.
            limit: Most posts asked for; a post may hold several questions.
            skipped: Takes posts that hold no question this package can ask (notebooks, conditional pairs), with the
                reason. Without it the first such post is an error.

        Raises:
            SearchError: Metaculus did not answer, or refused.
            DataError: An answer is not what the API promises; post and field are named.
            ConfigError: The extra with the HTTP client is not installed.
        """
        parameters: dict[str, Any] = {"statuses": list(statuses), "order_by": "published_at", "with_cp": "true"}
        if tournament is not None:
            parameters["tournaments"] = tournament
        found: dict[str, ForecastQuestion] = {}
        with self._open() as http:
            for where, post in self._posts(http, parameters, limit):
                for question in questions_of_post(post, where=where, base_url=self.base_url, skipped=skipped):
                    before = found.setdefault(question.id, question)
                    if before != question:  # the list moved between two pages, and the question with it
                        raise DataError(f"{where}: {question.id} came twice, and differs", hint="Ask again.")
        return list(found.values())

    def post(self, number: int, *, skipped: list[Skipped] | None = None) -> list[ForecastQuestion]:
        """Return the questions of one post: one, or several of a group.

        Raises:
            SearchError: Metaculus did not answer, or refused.
            DataError: The answer is not what the API promises, or holds no question to ask.
            ConfigError: The extra with the HTTP client is not installed.
        """
        where = f"Metaculus post {number}"
        with self._open() as http:
            answer = self._json(self._send(http, "GET", f"/api/posts/{number}/"), where=where)
        if not isinstance(answer, dict):
            raise DataError(f"{where} is no JSON object", hint="Ask again.")
        found = questions_of_post(answer, where=where, base_url=self.base_url, skipped=skipped)
        return distinct(found, where=where, skipped=skipped)

    def _posts(
        self, http: httpx2.Client, parameters: Mapping[str, Any], limit: int | None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield posts page by page; the server's link to the next is not followed, so the key goes nowhere else."""
        taken = 0
        for _ in range(MOST_PAGES):
            size = PAGE if limit is None else min(PAGE, limit - taken)
            if size <= 0:
                return
            where = f"Metaculus posts from {taken}"
            asked = {**parameters, "limit": size, "offset": taken}
            answer = self._json(self._send(http, "GET", "/api/posts/", params=asked), where=where)
            if not isinstance(answer, dict) or "next" not in answer:
                raise DataError(f"{where}, next: missing", hint="Ask again; the API may have changed.")
            posts = objects(answer.get("results"), where=f"{where}, results")
            for post in posts:
                yield f"Metaculus post {post.get('id')}", post
            taken += len(posts)
            if answer["next"] is None:
                return
            if not posts:
                raise DataError(f"{where}: an empty page that is not the last", hint="Ask again.")
        raise DataError(
            f"Metaculus has more than {taken} posts for this", hint="Ask for one tournament, or set a limit."
        )

    def _open(self) -> httpx2.Client:
        try:
            import httpx2  # noqa: PLC0415 - heavy, and there with the extra only
        except ImportError:
            raise ConfigError(
                "Metaculus is asked over HTTP, whose client is not installed", hint="pip install 'consilience[live]'"
            ) from None
        return httpx2.Client(
            base_url=self.base_url,
            headers={"Authorization": f"Token {self.token}", "Accept": "application/json"},
            timeout=self.timeout_s,
            follow_redirects=False,
            trust_env=urlsplit(self.base_url).hostname not in _LOOPBACK,
        )

    def _send(self, http: httpx2.Client, method: str, path: str, **content: Any) -> str:
        """Return the text of a good answer."""
        import httpx2  # noqa: PLC0415 - heavy

        try:
            with http.stream(method, path, **content) as response:
                body = bytearray()
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > MOST_BYTES:
                        raise _failed(f"{method} {path}: more than {MOST_BYTES:,} bytes", "Ask for less.", "unreadable")
                text = body.decode("utf-8", "replace")
        except httpx2.TimeoutException:
            said = f"{method} {path}: no answer within {self.timeout_s:g} s"
            raise _failed(said, _again(method), "timeout") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # Not chained: a library's error carries the request, and that the key.
            said = f"{method} {path}: {self._clean(reason(error))}"
            raise _failed(said, _again(method), "unreachable") from None
        if response.is_success:
            return text
        failure, hint = _STATUS.get(response.status_code, ("refused", "Read what it says."))
        if response.status_code >= 500:
            failure, hint = "unreachable", _again(method)
        if response.is_redirect:
            hint = "It points elsewhere, and the key is not sent there: check the address."
        wait = response.headers.get("retry-after", "")
        waits = f" It asks to wait {int(wait)} s." if wait.isdecimal() and len(wait) < 8 else ""
        said = self._clean(text)
        raise _failed(
            f"{method} {path}: HTTP {response.status_code}" + (f" ({said})" if said else ""), hint + waits, failure
        )

    def _clean(self, text: str) -> str:
        """Return what a server said in one short printable line, without the key."""
        line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
        return line.replace(self.token, "[key]")[:TOLD]

    @staticmethod
    def _json(text: str, *, where: str) -> Any:
        try:
            return read_json(text, where=where)
        except DataError as error:
            raise SearchError(error.message, hint="Ask again.", failure="unreadable") from None


def submit_forecasts(client: MetaculusClient, forecasts: Sequence[MetaculusForecast]) -> None:
    """Submit forecasts to Metaculus in one request; nothing else in this package does.

    Args:
        client: Whose account forecasts.
        forecasts: At least one, no two of one question. They are sent as they are: validate them first.

    Raises:
        DataError: There are none, or two are of one question.
        SearchError: Metaculus did not answer or refused. Where it did not answer, it may have taken them.
        ConfigError: The extra with the HTTP client is not installed.
    """
    numbers = [forecast.question for forecast in forecasts]
    if not numbers or len(set(numbers)) != len(numbers):
        raise DataError(
            f"{len(numbers)} forecasts of {len(set(numbers))} questions", hint="Submit one forecast per question."
        )
    body = [forecast.model_dump(mode="json", exclude_none=True) | {"source": "api"} for forecast in forecasts]
    with client._open() as http:  # noqa: SLF001 - the other half of the client, apart so that reading never submits
        client._send(http, "POST", "/api/questions/forecast/", json=body)  # noqa: SLF001 - the same


def _failed(said: str, hint: str, failure: SearchFailure) -> SearchError:
    return SearchError(f"Metaculus, {said}", hint=hint, failure=failure)


def _again(method: str) -> str:
    if method == "GET":
        return "Ask again later."
    return "Metaculus may have taken it all the same: look at the question before sending it again."
