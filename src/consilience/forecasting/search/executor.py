"""The tools of one agent for one question: what a model asks for, done under rules that it cannot pass.

A model gives a query or an id and nothing else: cutoff, policy and limits are the executor's. A failed tool is a
record, never an exception, whatever its client raises; only a wrong setting ends the run. What a client returns goes
through ``carry`` raw; everything after is pure.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, get_args

import anyio
from pydantic import JsonValue

from consilience.errors import ConfigError, PlanError, SearchError, SearchFailure
from consilience.forecasting.search.admission import Admission, content_hash, period_of, spelled
from consilience.forecasting.search.base import SearchClient
from consilience.forecasting.search.cache import SearchCache
from consilience.forecasting.search.cache import asked as cached_as
from consilience.forecasting.search.dates import written
from consilience.forecasting.search.document import Document, Hit
from consilience.forecasting.search.policy import Asked, SourcePolicy
from consilience.forecasting.search.records import (
    Carry,
    Fetched,
    Filtered,
    Injection,
    InjectionRule,
    Tool,
    ToolRecord,
    UndatedRule,
)

__all__ = ["Carry", "Executor", "Fetched", "Filtered", "Injection", "SearchCache", "ToolRecord"]

LONGEST_QUERY = 400
"""Characters of a query; a longer one is blocked, not cut."""
MOST_DOCUMENTS = 99
"""Documents an agent of a panel can hold: ids have two digits after the seat's number."""
TIMEOUT_S = 60.0
"""Longest a call may take, whatever its client says."""
SEARCH_CHARACTERS = 1_500
READ_CHARACTERS = 12_000
TITLE_CHARACTERS = 300

_OPERATOR = re.compile(
    r"(?<![\w])-?(?:site|domain|host|inurl|allinurl|url|link|source|before|after|since|until|date|daterange"
    r"|start_date|end_date|published|time_range|max_results|include_domains|exclude_domains|cutoff):(?=\S)",
    re.IGNORECASE,
)
_UNSENDABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_PREFIX = re.compile(r"(?:[1-9][0-9]{0,2})?")


async def uncarried(tool: Tool, arguments: dict[str, JsonValue], work: Callable[[], Awaitable[Fetched]]) -> Fetched:
    """Run the work and record nothing."""
    del tool, arguments
    return await work()


@dataclass
class _Tally:
    """What one set of hits comes to."""

    kept: list[str] = field(default_factory=list)
    filtered: list[Filtered] = field(default_factory=list)
    injections: list[Injection] = field(default_factory=list)
    periods: Counter[str] = field(default_factory=Counter)

    def leave_out(self, hit: Hit, reason: str) -> None:
        self.filtered.append(Filtered(url=spelled(hit), title=hit.title, reason=reason, published=hit.published))


class Executor:
    """Searches and reads for one agent.

    Args:
        client: What searches; None, or a client named ``none``, disables both tools.
        question: What is asked; its own pages are not shown.
        cutoff: The first inadmissible instant; None for an open question.
        policy: Which sources may be shown.
        undated: Whether undated hits are rejected under a cutoff, or kept and flagged.
        max_results: Most documents a search keeps.
        id_prefix: The seat's number in a panel, empty for a lone agent.
        carry: Records what work gives, or returns what was recorded.
        cache: Shared by the agents of a question; None for one of its own.
        on_injection: Whether a hit with injection patterns is dropped or kept and recorded.
        clock: Seconds, for durations only.

    Attributes:
        log: Every use of a tool, in order; part of the artefact.

    Raises:
        PlanError: ``max_results`` is below 1, ``id_prefix`` is no number of a seat, or the cutoff has no zone.
    """

    def __init__(  # noqa: PLR0913 - each is a setting of the run
        self,
        *,
        client: SearchClient | None,
        question: Asked,
        cutoff: datetime | None,
        policy: SourcePolicy | None = None,
        undated: UndatedRule = "reject",
        max_results: int = 5,
        id_prefix: str = "",
        carry: Carry = uncarried,
        cache: SearchCache | None = None,
        on_injection: InjectionRule = "drop",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if max_results < 1 or not _PREFIX.fullmatch(id_prefix):
            raise PlanError(
                f'a search cannot keep {max_results} documents under the prefix "{id_prefix}"',
                hint="Set max_search_results to 1 or more; a prefix is a seat's number from 1 to 999, or empty.",
            )
        if cutoff is not None and cutoff.utcoffset() is None:
            raise PlanError("a search's cutoff has no time zone", hint="Give the cutoff as an instant, such as in UTC.")
        self.log: list[ToolRecord] = []
        self._client = None if client is None or client.name == "none" else client
        self._admission = Admission(question, policy or SourcePolicy(), cutoff, undated, on_injection)
        self._policy_digest = self._admission.policy.digest
        self._max_results = max_results
        self._prefix = id_prefix
        self._carry = carry
        self._cache = cache or SearchCache()
        self._clock = clock
        self._found: dict[str, Document] = {}
        self._whole: dict[str, Document] = {}
        self._own: dict[tuple[Tool, str], ToolRecord] = {}
        self._asked: Counter[tuple[Tool, str]] = Counter()

    @property
    def documents(self) -> Mapping[str, Document]:
        """Everything kept, by id; a document that was read has its whole text."""
        return {**self._found, **self._whole}

    def texts(self, evidence_id: str) -> tuple[str, ...]:
        """Return every text kept under an id, the excerpt first: a quotation may be of any of them."""
        return tuple(kept[evidence_id].text for kept in (self._found, self._whole) if evidence_id in kept)

    async def search(self, query: str, *, step: int) -> ToolRecord:
        """Search, and keep what the rules admit.

        Args:
            query: What the model asked for; white space is made single, nothing else is changed.
            step: The agent's turn.
        """
        plain = " ".join(query.split())
        reason = why_unsearchable(plain)
        if reason is not None:
            shown = plain[:LONGEST_QUERY].encode("utf-8", "backslashreplace").decode()
            return self._note("search", shown, step, status="blocked", reason=reason)
        limit, cutoff = self._max_results, self._admission.cutoff
        return await self._use(
            "search",
            plain,
            step,
            arguments={"query": plain, "max_results": limit, "cutoff": None if cutoff is None else cutoff.isoformat()},
            call=lambda client: client.search(plain, max_results=limit, cutoff=cutoff),
            admit=self._admit,
        )

    async def read(self, evidence_id: str, *, step: int) -> ToolRecord:
        """Fetch the whole document behind a kept id, under the same rules; what they forbid is blocked, with why.

        Its date is the later of the search's and the page's; where the page tells none, the search's stands.
        """
        document = self._found.get(evidence_id)
        if document is None:
            shown = evidence_id[:LONGEST_QUERY].encode("utf-8", "backslashreplace").decode()
            return self._note("read", shown, step, status="error", failure="not_found")
        cutoff = self._admission.cutoff

        async def call(client: SearchClient) -> tuple[Hit, ...]:
            return (await client.read(document.url, cutoff=cutoff),)

        return await self._use(
            "read",
            evidence_id,
            step,
            arguments={"url": document.url, "cutoff": None if cutoff is None else cutoff.isoformat()},
            call=call,
            admit=lambda hits: self._admit_whole(document, hits),
        )

    def shown(
        self, record: ToolRecord, *, search_characters: int = SEARCH_CHARACTERS, read_characters: int = READ_CHARACTERS
    ) -> dict[str, JsonValue]:
        """Return what the agent is shown of a record: documents, or a short error class; untrusted, for a fence.

        A text or title that is cut says how much of it is shown. What was filtered is not shown: that something lies
        past the cutoff is information from past the cutoff.
        """
        if record.status != "success":
            return {"status": record.status, "error": record.failure or record.reason or record.status}
        kept = self._found if record.tool == "search" else self._whole
        limit = search_characters if record.tool == "search" else read_characters
        return {"status": "success", "documents": [excerpt(kept[name], limit) for name in record.kept]}

    async def _use(
        self,
        tool: Tool,
        asked: str,
        step: int,
        *,
        arguments: dict[str, JsonValue],
        call: Callable[[SearchClient], Awaitable[Any]],
        admit: Callable[[tuple[Hit, ...]], _Tally],
    ) -> ToolRecord:
        client = self._client
        if client is None:
            return self._note(tool, asked, step, status="disabled")
        key = (tool, asked.casefold())
        known = self._own.get(key)
        if known is not None:
            self._asked[key] += 1
            again = {"step": step, "attempt": self._asked[key], "repeated": True, "duration_s": 0.0}
            self.log.append(known.model_copy(update=again))
            return self.log[-1]

        async def work() -> Fetched:
            return await self._cache.fetch(cached_as(tool, arguments), lambda: self._fetch(client, call))

        fetched = await self._carry(tool, arguments, work)
        told: dict[str, Any] = {"duration_s": fetched.duration_s, "shared": fetched.shared}
        if fetched.status == "error":
            return self._note(tool, asked, step, status="error", failure=fetched.failure, **told)
        tally = admit(fetched.hits)
        blocked = tool == "read" and not tally.kept
        record = self._note(
            tool,
            asked,
            step,
            status="blocked" if blocked else "success",
            reason=tally.filtered[-1].reason if blocked and tally.filtered else None,
            kept=tuple(tally.kept),
            filtered=tuple(tally.filtered),
            injections=tuple(tally.injections),
            **{period: tally.periods[period] for period in ("before", "undated", "after")},
            **told,
        )
        self._own[key] = record
        return record

    async def _fetch(self, client: SearchClient, call: Callable[[SearchClient], Awaitable[Any]]) -> Fetched:
        start = self._clock()
        failure: SearchFailure = "timeout"
        with anyio.move_on_after(TIMEOUT_S):
            try:
                hits = tuple(await call(client))
                return Fetched(status="success", hits=hits, duration_s=max(0.0, self._clock() - start))
            except ConfigError:
                raise  # a setting that is wrong fails every call: the run ends before it is spent for nothing
            except Exception as error:  # noqa: BLE001 - clients are foreign code: whatever they raise fails one call
                failure = failure_of(error)
        return Fetched(status="error", failure=failure, duration_s=max(0.0, self._clock() - start))

    def _admit(self, hits: tuple[Hit, ...]) -> _Tally:
        tally = _Tally()
        ids = {document.url: name for name, document in self._found.items()}
        hashes = {document.sha256 for document in self._found.values()}
        for hit in hits:
            tally.periods[period_of(hit.published, self._admission.cutoff)] += 1
            reason, patterns = self._admission.judge(hit)
            url, sha256, name = spelled(hit), content_hash(hit.title, hit.text), None
            full = len(tally.kept) >= self._max_results
            if reason is None and url in ids:
                reason = "duplicate address"
                if ids[url] not in tally.kept and not full:  # known from an earlier search: shown again, as it was
                    tally.kept.append(ids[url])
            elif reason is None and sha256 in hashes:
                reason = "duplicate content"
            elif reason is None and (full or (self._prefix and len(self._found) >= MOST_DOCUMENTS)):
                reason = "over the limit"
            if reason is None:
                name = self._keep(hit, url, sha256)
                ids[url] = name
                hashes.add(sha256)
                tally.kept.append(name)
            else:
                tally.leave_out(hit, reason)
            if patterns:
                tally.injections.append(Injection(url=url, patterns=patterns, kept=name))
        return tally

    def _keep(self, hit: Hit, url: str, sha256: str) -> str:
        name = f"D{self._prefix}{len(self._found) + 1:02d}"
        told = hit.model_dump() | {"url": url}
        self._found[name] = Document(**told, id=name, sha256=sha256, undated=self._admission.flags(hit))
        return name

    def _admit_whole(self, document: Document, hits: tuple[Hit, ...]) -> _Tally:
        tally = _Tally()
        for hit in hits[:1]:
            dates = [dated for dated in (document, hit) if dated.published is not None]
            latest = max(dates, key=lambda dated: dated.published or hit.retrieved_at, default=hit)
            whole = hit.model_copy(update={"published": latest.published, "date_source": latest.date_source})
            tally.periods[period_of(whole.published, self._admission.cutoff)] += 1
            reason, patterns = self._admission.judge(whole)
            name = None
            if reason is None:
                name = document.id
                told = whole.model_dump() | {"url": document.url, "title": whole.title or document.title}
                sha256 = content_hash(told["title"], whole.text)
                self._whole[name] = Document(**told, id=name, sha256=sha256, undated=self._admission.flags(whole))
                tally.kept.append(name)
            else:
                tally.leave_out(whole, reason)
            if patterns:
                tally.injections.append(Injection(url=spelled(whole), patterns=patterns, kept=name))
        return tally

    def _note(self, tool: Tool, asked: str, step: int, **told: Any) -> ToolRecord:
        key = (tool, asked.casefold())
        self._asked[key] += 1
        record = ToolRecord(
            tool=tool,
            query=asked if tool == "search" else None,
            evidence_id=asked if tool == "read" else None,
            cutoff=self._admission.cutoff,
            policy=self._policy_digest,
            step=step,
            attempt=self._asked[key],
            **told,
        )
        self.log.append(record)
        return record


def failure_of(error: BaseException) -> SearchFailure:
    """Return the short class under which a client's error is recorded; its text goes nowhere.

    A group has the class that its members share.

    Example:
        >>> failure_of(ConnectionResetError()), failure_of(ExceptionGroup("both", [TimeoutError(), KeyError()]))
        ('unreachable', 'broken_client')
    """
    if isinstance(error, BaseExceptionGroup):
        shared = {failure_of(one) for one in error.exceptions}
        return shared.pop() if len(shared) == 1 else "broken_client"
    if isinstance(error, SearchError):
        return error.failure if error.failure in get_args(SearchFailure) else "broken_client"
    if isinstance(error, TimeoutError):
        return "timeout"
    lost = (OSError, EOFError, anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)
    if isinstance(error, lost):
        return "unreachable"
    read_wrongly = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
    return "unreadable" if isinstance(error, read_wrongly) else "broken_client"


def why_unsearchable(query: str) -> str | None:
    """Return why a query is not sent; None where it is. A search operator is a filter that is not the model's to set.

    Example:
        >>> why_unsearchable("rates site:example.org")
        'a search operator'
        >>> why_unsearchable("Rates in 2025: what next?") is None
        True
    """
    if not query:
        return "an empty query"
    if len(query) > LONGEST_QUERY:
        return f"a query longer than {LONGEST_QUERY} characters"
    if _UNSENDABLE.search(query):
        return "characters that cannot be sent"
    return "a search operator" if _OPERATOR.search(query) else None


def excerpt(document: Document, limit: int = SEARCH_CHARACTERS) -> dict[str, JsonValue]:
    """Return a document as an agent is shown it; a text or title that is cut says how much of it is shown."""
    shown: dict[str, JsonValue] = {
        "id": document.id,
        "title": document.title[:TITLE_CHARACTERS],
        "url": document.url,
        "published": None if document.published is None else written(document.published),
        "text": document.text[:limit],
    }
    if document.undated:
        shown["warning"] = "undated: it may be later than the cutoff"
    if len(document.title) > TITLE_CHARACTERS:
        shown["title_cut"] = f"the first {TITLE_CHARACTERS} of {len(document.title)} characters"
    if len(document.text) > limit:
        shown["text_cut"] = f"the first {limit} of {len(document.text)} characters"
    return shown
